//! What can be asked of the experiment.

use std::path::PathBuf;

use clap::Args;

use super::Plan;
use crate::lab::Setup;

/// The published levels.
const WORKERS: &[usize] = &[5, 10, 15, 20, 25, 30, 40, 50, 60];
const WORKERS_SHORT: &[usize] = &[5, 20, 60];
/// Most workers: the table in this process has a thread for each.
const WORKERS_MAX: usize = 1000;

/// Options of `lab ramp`.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Workers at each level, each with a connection [default: 5,10,15,20,25,30,40,50,60]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub workers: Vec<usize>,
    /// Keys [default: 100000]
    #[arg(long, value_name = "N")]
    pub keys: Option<u64>,
    /// Bytes of a value [default: 16]
    #[arg(long, value_name = "BYTES")]
    pub data_size: Option<usize>,
    /// Threads of the load generator [default: 1]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Leave the table in this process out
    #[arg(long)]
    pub no_table: bool,
    /// Leave the ways to drive a server out
    #[arg(long)]
    pub no_drivers: bool,
    /// Write the levels as the original did: `concurrency;total count;op/s;mean;stdev %;la`
    #[arg(long, value_name = "FILE")]
    pub ramp_csv: Option<PathBuf>,
}

impl Options {
    /// All choices made; refuses what cannot be run, with the reason.
    pub fn plan(&self, setup: &Setup) -> Result<Plan, String> {
        let choice = if setup.short { WORKERS_SHORT } else { WORKERS };
        let mut workers =
            if self.workers.is_empty() { choice.to_vec() } else { self.workers.clone() };
        workers.sort_unstable();
        workers.dedup();
        if workers[0] == 0 || workers[workers.len() - 1] > WORKERS_MAX {
            return Err(format!("workers are 1 to {WORKERS_MAX}"));
        }
        Ok(Plan {
            workers,
            seconds: setup.seconds.unwrap_or(if setup.short { 0.3 } else { 10.0 }),
            keys: self.keys.unwrap_or(100_000),
            data: self.data_size.unwrap_or(16),
            threads: self.threads.unwrap_or(1),
            table: !self.no_table,
            drivers: !self.no_drivers,
            repetitions: setup.repetitions.max(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_levels_unless_others_are_named() {
        let setup = Setup { targets: vec![], seconds: None, short: false, repetitions: 1 };
        let plan = Options::default().plan(&setup).expect("it can run");
        assert_eq!(plan.workers, WORKERS);
        let some = Options { workers: vec![9, 3, 9], ..Options::default() };
        assert_eq!(some.plan(&setup).expect("it can run").workers, [3, 9]);
        let none = Options { workers: vec![0], ..Options::default() };
        assert!(none.plan(&setup).is_err());
        let many = Options { workers: vec![WORKERS_MAX + 1], ..Options::default() };
        assert!(many.plan(&setup).is_err());
    }
}
