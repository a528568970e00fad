//! What was measured of one target: its loads at their levels, those that count and those that do
//! not.

use super::measure::{self, Seen, Sight};
use super::subject;
use super::target::Started;
use crate::analysis::findings::{Client, Trust};
use crate::analysis::retrograde::Level;
use crate::analysis::spread::median;
use crate::load::Spec;
use crate::report::Series;
use crate::result::{Measurement, Sample};

/// One load.
#[derive(Debug)]
pub struct Point {
    /// Its name: a command.
    pub load: &'static str,
    /// Its connections.
    pub level: usize,
    /// What was seen, if it could be put on at all.
    pub seen: Option<Seen>,
    /// Why it does not count, if it does not.
    pub fault: Option<String>,
}

/// All loads of a target, in the order in which they were put on.
#[derive(Debug)]
pub struct Record {
    /// What of the target can be seen.
    pub sight: Sight,
    /// The loads.
    pub points: Vec<Point>,
}

impl Record {
    /// Nothing was measured yet of a target.
    pub fn of(started: &Started) -> Self {
        let (pid, mixed) = (subject::process(started), subject::is_own_process(started));
        Self { sight: Sight { pid, mixed }, points: Vec::new() }
    }

    /// Puts a load on until it ends or `settled` says that its samples are enough.
    pub fn run(
        &mut self,
        load: &'static str,
        spec: &Spec,
        settled: &mut dyn FnMut(&[Sample]) -> bool,
    ) {
        let (seen, fault) = match measure::run(spec, self.sight, settled) {
            Ok(seen) => {
                let fault = seen.fault();
                (Some(seen), fault)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        self.points.push(Point { load, level: spec.connections, seen, fault });
    }

    /// The loads of this name that count, with their levels.
    pub fn valid(&self, load: &str) -> impl Iterator<Item = (usize, &Seen)> + Clone {
        self.points
            .iter()
            .filter(move |point| point.load == load && point.fault.is_none())
            .filter_map(|point| Some((point.level, point.seen.as_ref()?)))
    }

    /// The loads at one level that count.
    pub fn at(&self, load: &str, level: usize) -> Vec<&Seen> {
        self.valid(load).filter(|(at, _)| *at == level).map(|(_, seen)| seen).collect()
    }

    /// Why a level does not count.
    pub fn fault(&self, load: &str, level: usize) -> Option<&str> {
        let mut at = self.points.iter().filter(|one| one.load == load && one.level == level);
        at.find_map(|point| point.fault.as_deref())
    }

    /// Throughput by level, ascending.
    pub fn levels(&self, load: &str) -> Vec<Level> {
        let mut levels: Vec<usize> = self.valid(load).map(|(level, _)| level).collect();
        levels.sort_unstable();
        levels.dedup();
        let rates = |level: usize| -> Vec<f64> {
            self.at(load, level).iter().map(|seen| seen.measurement.throughput).collect()
        };
        levels.into_iter().map(|level| Level::new(level as f64, &rates(level))).collect()
    }

    /// The median of a figure at a level; not a number if nothing counts there.
    pub fn middle(&self, load: &str, level: usize, figure: impl Fn(&Seen) -> f64) -> f64 {
        middle(&self.at(load, level), figure)
    }

    /// Throughput by level, with its repetitions.
    pub fn throughput(&self, load: &str, name: &str) -> Series {
        let levels = self.levels(load).into_iter();
        let levels: Vec<_> = levels.map(|level| (level.load, level.throughput)).collect();
        Series::repeated(name, &levels)
    }

    /// The median of a figure by level.
    pub fn line(&self, load: &str, name: &str, figure: impl Fn(&Seen) -> f64) -> Series {
        let levels = self.levels(load).into_iter().map(|level| level.load);
        let point = |level: f64| (level, self.middle(load, level as usize, &figure));
        Series::new(name, levels.map(point).collect())
    }

    /// How far the figures of a load can be trusted.
    pub fn trust(&self, load: &str) -> Trust {
        let seen = || self.valid(load).map(|(_, seen)| seen);
        let busy = seen().filter_map(|one| one.client_busy).reduce(f64::max);
        let levels: Vec<Vec<&Measurement>> = self
            .levels(load)
            .iter()
            .map(|level| self.at(load, level.load as usize))
            .map(|at| at.into_iter().map(|seen| &seen.measurement).collect())
            .collect();
        Trust::of(&levels, busy)
    }

    /// The client's CPU at a level. The median of the repetitions would do as well; the least busy
    /// one accuses nobody wrongly.
    pub fn client(&self, load: &str, level: usize) -> Option<Client> {
        let clients = self.at(load, level).into_iter().filter_map(Seen::client);
        clients.min_by(|a, b| a.busiest_thread.total_cmp(&b.busiest_thread))
    }

    /// All that was measured, whether it counts or not.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        self.points.iter().filter_map(|point| Some(&point.seen.as_ref()?.measurement))
    }
}

/// The median of a figure over repetitions; not a number if there are none.
pub fn middle(seen: &[&Seen], figure: impl Fn(&Seen) -> f64) -> f64 {
    median(&seen.iter().map(|one| figure(one)).collect::<Vec<f64>>())
}
