//! What can be asked of the experiment, and what it says.

use std::path::PathBuf;

use clap::Args;

use crate::analysis::texts::Texts;
use crate::lab::experiment::Setup;
use crate::lab::subject::Data;

/// The experiment's name.
pub const NAME: &str = "ramp";
/// What it says.
pub const TEXTS: Texts = Texts(include_str!("text.txt"));

/// The published levels.
const WORKERS: &[usize] = &[5, 10, 15, 20, 25, 30, 40, 50, 60];
const WORKERS_SHORT: &[usize] = &[5, 20, 60];
/// Most workers: the table in this process has a thread for each.
const WORKERS_MAX: usize = 1000;

/// Options of `lab ramp`.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Numbers of workers to measure; each worker has one connection
    /// [default: 5,10,15,20,25,30,40,50,60]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub workers: Vec<usize>,
    /// What is written.
    #[command(flatten)]
    pub data: Data,
    /// Skip the table inside the load generator, which needs no network
    #[arg(long)]
    pub no_table: bool,
    /// Skip the comparison of the ways to load a server
    #[arg(long)]
    pub no_drivers: bool,
    /// Write the levels as CSV with the columns `concurrency;total count;op/s;mean;stdev %;la`
    #[arg(long, value_name = "FILE")]
    pub ramp_csv: Option<PathBuf>,
}

/// What one run does, all choices made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Workers, ascending.
    pub workers: Vec<usize>,
    /// Longest time of a level, seconds.
    pub seconds: f64,
    /// What is written.
    pub data: Data,
}

impl Plan {
    /// Workers of the highest level.
    pub fn most(&self) -> usize {
        *self.workers.last().expect("a plan has workers")
    }
}

impl Options {
    /// All choices made; refuses what cannot be run, with the reason.
    pub fn plan(&self, setup: &Setup) -> Result<Plan, String> {
        let workers = setup.levels(&self.workers, WORKERS, WORKERS_SHORT);
        if workers[0] == 0 || workers[workers.len() - 1] > WORKERS_MAX {
            return Err(format!("workers are 1 to {WORKERS_MAX}"));
        }
        Ok(Plan { workers, seconds: setup.seconds(10.0, 0.3), data: self.data.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_default_to_the_published_ones() {
        let setup = Setup { targets: vec![], seconds: None, short: false, repetitions: 1 };
        let of = |workers: &[usize]| {
            let workers = workers.to_vec();
            Options { workers, ..Options::default() }.plan(&setup).map(|plan| plan.workers)
        };
        assert_eq!(of(&[]).expect("it can run"), WORKERS);
        assert_eq!(of(&[9, 3, 9]).expect("it can run"), [3, 9]);
        assert!(of(&[0]).is_err() && of(&[WORKERS_MAX + 1]).is_err());
    }
}
