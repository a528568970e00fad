//! What was measured of one target: its loads at their levels, those that count and those that do
//! not.

use super::io::{self, Account};
use super::measure::{self, Seen, Sight};
use super::subject;
use super::target::Started;
use crate::analysis::findings::{Client, Evidence, Trust};
use crate::analysis::retrograde::Level;
use crate::analysis::spread::median;
use crate::load::Spec;
use crate::report::Series;
use crate::result::{Measurement, Sample};

/// One load.
#[derive(Debug, Default)]
pub struct Point {
    /// Its name: a command, a variant.
    pub load: String,
    /// Its connections.
    pub level: usize,
    /// What was seen, if it could be put on at all.
    pub seen: Option<Seen>,
    /// Why it does not count, if it does not.
    pub fault: Option<String>,
    /// What the server counted meanwhile, where it was asked.
    pub account: Option<Account>,
}

impl Point {
    /// What was seen if it counts, else why it does not.
    pub fn valid(&self) -> Result<&Seen, &str> {
        match (&self.seen, &self.fault) {
            (Some(seen), None) => Ok(seen),
            (_, fault) => Err(fault.as_deref().unwrap_or_default()),
        }
    }
}

/// All loads of a target, in the order in which they were put on.
#[derive(Debug, Default)]
pub struct Record {
    /// The target's name in tables.
    pub name: String,
    /// What of the target can be seen.
    pub sight: Sight,
    /// The loads.
    pub points: Vec<Point>,
    /// What could not be seen, in sentences.
    pub unseen: Vec<String>,
}

impl Record {
    /// Nothing was measured yet of a target.
    pub fn of(started: &Started) -> Self {
        let sight = Sight::of(started);
        Self { name: started.name.clone(), sight, ..Self::default() }
    }

    /// Puts a load on until it ends or `enough` says that its samples are.
    pub fn measure(
        &self,
        load: &str,
        spec: &Spec,
        enough: &mut dyn FnMut(&[Sample]) -> bool,
    ) -> Point {
        let (seen, fault) = match measure::run(spec, self.sight, enough) {
            Ok(seen) => {
                let fault = measure::fault(&seen.measurement);
                (Some(seen), fault)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        Point { load: load.to_owned(), level: spec.connections, seen, fault, account: None }
    }

    /// The same, and keeps it. What was seen, if it counts.
    pub fn run_until(
        &mut self,
        load: &str,
        spec: &Spec,
        enough: &mut dyn FnMut(&[Sample]) -> bool,
    ) -> Option<&Seen> {
        let point = self.measure(load, spec, enough);
        self.keep(point)
    }

    /// Puts a load on to its end, and keeps it.
    pub fn run(&mut self, load: &str, spec: &Spec) -> Option<&Seen> {
        self.run_until(load, spec, &mut |_| false)
    }

    /// The same, with what the server counts meanwhile.
    pub fn run_counted(&mut self, load: &str, spec: &Spec, ask: &client::Address) -> Option<&Seen> {
        let before = io::read(ask);
        let mut point = self.measure(load, spec, &mut |_| false);
        if point.fault.is_none() {
            point.account = before.and_then(|before| Some(io::read(ask)?.since(&before)));
        }
        self.keep(point)
    }

    fn keep(&mut self, point: Point) -> Option<&Seen> {
        self.points.push(point);
        self.points.last().and_then(|point| point.valid().ok())
    }

    /// Notes what could not be seen, once.
    pub fn unseen(&mut self, what: String) {
        if !self.unseen.contains(&what) {
            self.unseen.push(what);
        }
    }

    /// Why loads do not count and what could not be seen, each with the target's name.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let fault = |point: &Point| {
            let fault = point.fault.as_ref()?;
            Some(match point.seen {
                Some(_) => format!("Failures ({fault}), so the point does not count."),
                None => format!("The load could not be put on: {fault}."),
            })
        };
        let all = self.points.iter().filter_map(fault).chain(self.unseen.iter().cloned());
        all.map(|note| format!("{}: {note}", self.name))
    }

    /// The points of a load that count.
    fn counting(&self, load: &str) -> impl Iterator<Item = (&Point, &Seen)> + Clone {
        let of = self.points.iter().filter(move |point| point.load == load);
        of.filter_map(|point| Some((point, point.valid().ok()?)))
    }

    /// The loads of this name that count, with their levels.
    pub fn valid(&self, load: &str) -> impl Iterator<Item = (usize, &Seen)> + Clone {
        self.counting(load).map(|(point, seen)| (point.level, seen))
    }

    /// The loads at one level that count.
    pub fn at(&self, load: &str, level: usize) -> Vec<&Seen> {
        self.valid(load).filter(|(at, _)| *at == level).map(|(_, seen)| seen).collect()
    }

    /// The load of median throughput.
    pub fn median(&self, load: &str) -> Option<&Seen> {
        let mut all: Vec<&Seen> = self.valid(load).map(|(_, seen)| seen).collect();
        all.sort_by(|a, b| a.measurement.throughput.total_cmp(&b.measurement.throughput));
        all.get(all.len() / 2).copied()
    }

    /// What the server counted under the loads of this name, at one level or at all.
    pub fn account(&self, load: &str, level: impl Into<Option<usize>>) -> Option<Account> {
        let level = level.into();
        let at = self.counting(load).filter(|(point, _)| level.is_none_or(|n| point.level == n));
        at.filter_map(|(point, _)| point.account.clone()).reduce(|mut all, one| {
            all.add(&one);
            all
        })
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

    /// The level with the highest median throughput: its load, and its requests per second.
    pub fn best(&self, load: &str) -> Option<(f64, f64)> {
        let levels = self.levels(load);
        let best = levels.iter().max_by(|a, b| a.median().total_cmp(&b.median()))?;
        Some((best.load, best.median()))
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

    /// Evidence of nothing yet, with how far the figures of these loads can be trusted.
    pub fn evidence(&self, experiment: &str, loads: &[&str]) -> Evidence {
        let (experiment, target) = (experiment.to_owned(), self.name.clone());
        Evidence { experiment, target, trust: self.trust(loads), ..Evidence::default() }
    }

    fn trust(&self, loads: &[&str]) -> Trust {
        let seen = loads.iter().flat_map(|load| self.valid(load));
        let busy = seen.filter_map(|(_, one)| one.client_busy).reduce(f64::max);
        let levels = loads.iter().flat_map(|load| {
            let levels = self.levels(load).into_iter();
            levels.map(|level| self.at(load, level.load as usize))
        });
        let points: Vec<Vec<&Measurement>> =
            levels.map(|at| at.into_iter().map(|seen| &seen.measurement).collect()).collect();
        Trust::of(&points, busy)
    }

    /// The client's CPU at a level: that of the repetition in which it was least busy, so that a
    /// client is not called saturated by mistake.
    pub fn client(&self, load: &str, level: usize) -> Option<Client> {
        let clients = self.at(load, level).into_iter().filter_map(Seen::client);
        clients.min_by(|a, b| a.busiest_thread.total_cmp(&b.busiest_thread))
    }

    /// All that was measured, whether it counts or not.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        self.points.iter().filter_map(|point| Some(&point.seen.as_ref()?.measurement))
    }

    /// All that counts.
    pub fn counted(&self) -> impl Iterator<Item = &Measurement> {
        self.points.iter().filter_map(|point| Some(&point.valid().ok()?.measurement))
    }

    /// Whether the server's process is one whose CPU and calls can be seen; notes it if not.
    pub fn process(&mut self, started: &Started, lacking: &str) -> Option<u32> {
        let pid = subject::process(started);
        if pid.is_none() {
            self.unseen(format!("Its process cannot be seen: {lacking}."));
        }
        pid
    }
}

/// The median of a figure over repetitions; not a number if there are none.
pub fn middle(seen: &[&Seen], figure: impl Fn(&Seen) -> f64) -> f64 {
    median(&seen.iter().map(|one| figure(one)).collect::<Vec<f64>>())
}
