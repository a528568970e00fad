//! What can be asked of the experiment, and what it says.

use std::time::Duration;

use clap::Args;

use crate::analysis::texts::Texts;
use crate::lab::experiment::Setup;
use crate::lab::subject::Data;
use crate::load::CONNECTIONS_MAX;

/// The experiment's name.
pub const NAME: &str = "concurrency";
/// The name of its only load.
pub const LOAD: &str = "set";
/// What it says.
pub const TEXTS: Texts = Texts(include_str!("text.txt"));

/// The published levels, and on to ten thousand.
const LEVELS: &[usize] = &[1, 2, 5, 6, 15, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];
/// The published levels and one beyond the largest pool.
const LEVELS_SHORT: &[usize] = &[1, 2, 5, 6, 15, 50, 300];
/// Lengths of the listen queue.
const BACKLOGS: &[u32] = &[1, 5, 50, 511];
const BACKLOGS_SHORT: &[u32] = &[1, 50];

/// Options of `lab concurrency`.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Numbers of connections to measure, separated by commas
    /// [default: 1,2,5,6,15,50,100,250,500,1000,2500,5000,10000]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub connections: Vec<usize>,
    /// What is written.
    #[command(flatten)]
    pub data: Data,
    /// Lengths of the listen queue to measure while nothing is accepted [default: 1,5,50,511]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub backlogs: Vec<u32>,
    /// Skip the measurement of listen queues
    #[arg(long, conflicts_with = "backlogs")]
    pub no_backlog: bool,
    /// Seconds without any reply after which waiting connections count as not served
    /// [default: 1; short form: 0.5]
    #[arg(long, value_name = "SECONDS")]
    pub quiet: Option<f64>,
}

/// What one run does, all choices made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Connections, ascending.
    pub levels: Vec<usize>,
    /// Seconds per level.
    pub seconds: f64,
    /// What is written.
    pub data: Data,
    /// When no connection was answered for this time, those that still wait are not served.
    pub quiet: Duration,
    /// Lengths of the listen queue of the stalled model.
    pub backlogs: Vec<u32>,
    /// Connections at once while it is stalled.
    pub burst_stalled: usize,
    /// How long connections are waited for.
    pub wait: Duration,
}

impl Options {
    /// All choices made; refuses what cannot be run, with the reason.
    pub fn plan(&self, setup: &Setup) -> Result<Plan, String> {
        let short = setup.short;
        let levels = setup.levels(&self.connections, LEVELS, LEVELS_SHORT);
        if levels[0] == 0 || levels[levels.len() - 1] > CONNECTIONS_MAX {
            return Err(format!("connections are 1 to {CONNECTIONS_MAX}"));
        }
        let backlogs = match (self.no_backlog, self.backlogs.is_empty()) {
            (true, _) => vec![],
            (_, true) => if short { BACKLOGS_SHORT } else { BACKLOGS }.to_vec(),
            _ => self.backlogs.clone(),
        };
        let quiet = self.quiet.unwrap_or(if short { 0.5 } else { 1.0 });
        if !(0.05..=60.0).contains(&quiet) {
            return Err("quiet is 0.05 to 60 seconds".to_owned());
        }
        Ok(Plan {
            levels,
            seconds: setup.seconds(2.0, 0.15),
            data: self.data.clone(),
            quiet: Duration::from_secs_f64(quiet),
            backlogs,
            burst_stalled: if short { 100 } else { 600 },
            wait: Duration::from_millis(if short { 1300 } else { 3500 }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(short: bool) -> Setup {
        Setup { targets: vec![], seconds: None, short, repetitions: 1 }
    }

    #[test]
    fn the_long_form_reaches_ten_thousand_and_the_short_form_exceeds_every_pool() {
        let long = Options::default().plan(&setup(false)).expect("it can run");
        assert_eq!((long.levels[0], long.levels[12], long.backlogs.len()), (1, 10_000, 4));
        let short = Options::default().plan(&setup(true)).expect("it can run");
        assert!(*short.levels.last().expect("levels") > 256, "beyond the largest pool");
    }

    #[test]
    fn levels_are_sorted_and_limits_are_enforced() {
        let of = |connections: &[usize]| {
            let connections = connections.to_vec();
            Options { connections, ..Options::default() }.plan(&setup(true))
        };
        assert_eq!(of(&[5, 1, 5, 3]).expect("it can run").levels, [1, 3, 5]);
        assert!(of(&[0]).is_err() && of(&[CONNECTIONS_MAX + 1]).is_err());
        let none = Options { no_backlog: true, ..Options::default() };
        assert!(none.plan(&setup(false)).expect("it can run").backlogs.is_empty());
        let hasty = Options { quiet: Some(0.0), ..Options::default() };
        assert!(hasty.plan(&setup(true)).is_err());
    }
}
