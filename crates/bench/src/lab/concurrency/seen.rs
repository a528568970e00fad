//! What was seen of each target, and what the rules make of it.

use crate::analysis::findings::{self, Admission, Connects, Evidence};
use crate::analysis::retrograde::Level;
use crate::analysis::usl::{self, Usl};
use crate::lab::measure::{self, Seen, Sight};
use crate::lab::subject;
use crate::lab::target::Started;
use crate::result::Finding;

use super::NAME;
use super::connects::Counter;

/// A target and what was seen of it.
#[derive(Debug)]
pub struct Subject {
    /// It, running.
    pub started: Started,
    /// What of it can be seen.
    pub sight: Sight,
    /// Who was served.
    pub admission: Option<Admission>,
    /// How connecting went.
    pub connects: Option<Connects>,
    /// Who counted overflows then.
    pub counter: Option<Counter>,
    /// All loads.
    pub points: Vec<Point>,
}

/// One load at one number of connections.
#[derive(Debug)]
pub struct Point {
    /// Connections.
    pub connections: usize,
    /// What was seen, if it could be put on at all.
    pub seen: Option<Seen>,
    /// Why it does not count, if it does not.
    pub fault: Option<String>,
}

impl Subject {
    /// Nothing seen yet.
    pub fn new(started: Started) -> Self {
        let pid = subject::process(&started);
        let sight = Sight { pid, mixed: subject::is_own_process(&started) };
        let (admission, connects, counter, points) = (None, None, None, Vec::new());
        Self { started, sight, admission, connects, counter, points }
    }

    /// Connections that are served at a time, if that is fewer than were asked for.
    pub fn capacity(&self) -> Option<usize> {
        let seen = self.admission.as_ref()?;
        (seen.served + seen.refused < seen.opened).then_some(seen.served)
    }

    /// True if a lower level was beyond what is served already.
    pub fn is_beyond(&self, connections: usize) -> bool {
        let Some(capacity) = self.capacity() else { return false };
        let tried = self.points.iter().map(|point| point.connections);
        connections > capacity && tried.filter(|n| *n > capacity).any(|n| n < connections)
    }

    /// Loads that count.
    pub fn valid(&self) -> impl Iterator<Item = (usize, &Seen)> + Clone {
        let counts = |point: &&Point| point.fault.is_none();
        self.points
            .iter()
            .filter(counts)
            .filter_map(|point| Some((point.connections, point.seen.as_ref()?)))
    }

    /// Throughput by connections, of the loads that count.
    pub fn levels(&self) -> Vec<Level> {
        let mut levels: Vec<Level> = Vec::new();
        for (connections, seen) in self.valid() {
            let (load, value) = (connections as f64, seen.measurement.throughput);
            match levels.iter_mut().find(|level| level.load.total_cmp(&load).is_eq()) {
                Some(level) => level.throughput.push(value),
                None => levels.push(Level::new(load, &[value])),
            }
        }
        levels.sort_by(|a, b| a.load.total_cmp(&b.load));
        levels
    }

    /// The level with the highest median: connections, requests per second.
    pub fn best(&self) -> Option<(f64, f64)> {
        let levels = self.levels();
        let best = levels.iter().max_by(|a, b| a.median().total_cmp(&b.median()))?;
        Some((best.load, best.median()))
    }

    /// The Universal Scalability Law, fitted to all loads that count.
    pub fn law(&self) -> Option<Usl> {
        let points: Vec<(f64, f64)> =
            self.valid().map(|(n, seen)| (n as f64, seen.measurement.throughput)).collect();
        usl::fit(&points)
    }

    /// What the rules find.
    pub fn findings(&self) -> Vec<Finding> {
        let levels = self.levels();
        let peak = self.best().map_or(0.0, |best| best.0) as usize;
        let at_peak = self.valid().filter(|(n, _)| *n == peak);
        findings::judge(&Evidence {
            experiment: NAME.to_owned(),
            target: self.started.name.clone(),
            trust: measure::trust(self.valid().map(|(_, seen)| seen), &levels),
            admission: self.admission.clone(),
            connects: self.connects.clone(),
            // The median of the repetitions would do as well; the least busy one accuses nobody wrongly.
            client: at_peak
                .filter_map(|(_, seen)| seen.client())
                .min_by(|a, b| a.busiest_thread.total_cmp(&b.busiest_thread)),
            levels,
            ..Evidence::default()
        })
    }
}

/// Pool or task? What a pool of threads gains over the best that serves everybody, as far as it serves at all.
/// `subjects` are name, capacity if limited, and throughput by connections. `None` without one of each kind.
pub fn pool_or_task(subjects: &[(String, Option<usize>, Vec<Level>)]) -> Option<Vec<String>> {
    let open: Vec<_> = subjects.iter().filter(|s| s.1.is_none() && !s.2.is_empty()).collect();
    let pools: Vec<_> = subjects.iter().filter(|s| s.1.is_some_and(|size| size > 1)).collect();
    if open.is_empty() || pools.is_empty() {
        return None;
    }
    let best = |load: f64| {
        let at = |levels: &[Level]| {
            levels.iter().find(|l| l.load.total_cmp(&load).is_eq()).map(Level::median)
        };
        open.iter().filter_map(|s| at(&s.2)).reduce(f64::max)
    };
    let mut told = Vec::new();
    let mut gains: Vec<f64> = Vec::new();
    for (name, size, levels) in &pools {
        let size = size.unwrap_or(0);
        let ratios: Vec<f64> =
            levels.iter().filter_map(|l| Some(l.median() / best(l.load)?)).collect();
        if ratios.is_empty() {
            continue;
        }
        let ratio = crate::analysis::spread::median(&ratios);
        gains.push(ratio);
        told.push(format!(
            "{name} serves {size} connections and leaves the next one waiting; up to there it reaches {ratio:.2} \
             of the best that serves everybody."
        ));
    }
    let gain = gains.iter().copied().reduce(f64::max)?;
    told.push(if gain > 1.10 {
        format!(
            "Pool or task? Here a pool was up to {gain:.2} times as fast as a task per connection, for as many \
             connections as it has threads; the others hang."
        )
    } else {
        format!(
            "Pool or task? Task: no pool gained by its bound ({gain:.2} at best), and each hangs beyond its size. \
             A pool of threads for connections must be as large as the number of connections, and then it is a \
             thread per connection."
        )
    });
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        name: &str,
        size: Option<usize>,
        levels: &[(f64, f64)],
    ) -> (String, Option<usize>, Vec<Level>) {
        (name.to_owned(), size, levels.iter().map(|(n, x)| Level::new(*n, &[*x])).collect())
    }

    #[test]
    fn a_pool_that_gains_nothing_loses() {
        let task = of("task", None, &[(1.0, 10.0), (4.0, 40.0), (16.0, 60.0)]);
        let pool = of("pool", Some(4), &[(1.0, 10.0), (4.0, 38.0)]);
        let told = pool_or_task(&[task.clone(), pool]).expect("there are both");
        assert!(told[0].contains("serves 4") && told[0].contains("0.97 of"), "{told:?}");
        assert!(told[1].contains("Task: no pool gained"), "{told:?}");
        let fast = of("pool", Some(4), &[(1.0, 20.0), (4.0, 80.0)]);
        let told = pool_or_task(&[task.clone(), fast]).expect("there are both");
        assert!(told[1].contains("2.00 times"), "{told:?}");
        assert_eq!(pool_or_task(&[task]), None);
    }
}
