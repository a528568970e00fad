//! What was seen of each target, and what the rules make of it.

use std::fmt::Display;

use crate::analysis::findings::{self, Admission, Connects, Evidence};
use crate::analysis::retrograde::Level;
use crate::analysis::usl::{self, Usl};
use crate::lab::record::Record;
use crate::lab::target::Started;
use crate::result::Finding;

use super::connects::Counter;
use super::options::{LOAD, NAME, TEXTS};

/// A target and what was seen of it.
#[derive(Debug)]
pub struct Subject {
    /// It, running.
    pub started: Started,
    /// Its loads.
    pub record: Record,
    /// Who was served.
    pub admission: Option<Admission>,
    /// How connecting went.
    pub connects: Option<Connects>,
    /// Who counted overflows then.
    pub counter: Option<Counter>,
}

impl Subject {
    /// Nothing seen yet.
    pub fn new(started: Started) -> Self {
        let record = Record::of(&started);
        Self { started, record, admission: None, connects: None, counter: None }
    }

    /// What it is called in tables.
    pub fn name(&self) -> &str {
        &self.started.name
    }

    /// Connections that are served at a time, if that is fewer than were asked for.
    pub fn capacity(&self) -> Option<usize> {
        let seen = self.admission.as_ref()?;
        (seen.served + seen.refused < seen.opened).then_some(seen.served)
    }

    /// True if a lower level was beyond what is served already.
    pub fn is_beyond(&self, connections: usize) -> bool {
        let Some(capacity) = self.capacity() else { return false };
        let tried = self.record.points.iter().map(|point| point.level);
        connections > capacity && tried.filter(|n| *n > capacity).any(|n| n < connections)
    }

    /// Throughput by connections, of the loads that count.
    pub fn levels(&self) -> Vec<Level> {
        self.record.levels(LOAD)
    }

    /// Median throughput with so many connections.
    pub fn rate(&self, connections: usize) -> Option<f64> {
        let rate = self.record.middle(LOAD, connections, |seen| seen.measurement.throughput);
        Some(rate).filter(|rate| rate.is_finite())
    }

    /// The level with the highest median: connections, requests per second.
    pub fn best(&self) -> Option<(f64, f64)> {
        self.record.best(LOAD)
    }

    /// The Universal Scalability Law, fitted to all loads that count.
    pub fn law(&self) -> Option<Usl> {
        let points = self.record.valid(LOAD);
        let points = points.map(|(n, seen)| (n as f64, seen.measurement.throughput));
        usl::fit(&points.collect::<Vec<_>>())
    }

    /// What the rules find.
    pub fn findings(&self) -> Vec<Finding> {
        let peak = self.best().map_or(0.0, |best| best.0) as usize;
        findings::judge(&Evidence {
            admission: self.admission.clone(),
            connects: self.connects.clone(),
            client: self.record.client(LOAD, peak),
            levels: self.levels(),
            ..self.record.evidence(NAME, &[LOAD])
        })
    }
}

/// Pool or task? What a pool of threads gains over the best that serves everybody, as far as it
/// serves at all. `subjects` are name, capacity if limited, and throughput by connections. `None`
/// without one of each kind.
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
    let mut sentences = Vec::new();
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
        let values: [(&str, &dyn Display); 3] =
            [("name", name), ("size", &size), ("ratio", &format!("{ratio:.2}"))];
        sentences.push(TEXTS.sentence("bounded", &values));
    }
    let gain = gains.iter().copied().reduce(f64::max)?;
    let answer = if gain > 1.10 { "pool" } else { "task" };
    sentences.push(TEXTS.sentence(answer, &[("gain", &format!("{gain:.2}"))]));
    Some(sentences)
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
    fn a_pool_without_a_gain_is_not_recommended() {
        let task = of("task", None, &[(1.0, 10.0), (4.0, 40.0), (16.0, 60.0)]);
        let pool = of("pool", Some(4), &[(1.0, 10.0), (4.0, 38.0)]);
        let sentences = pool_or_task(&[task.clone(), pool]).expect("there are both");
        assert!(
            sentences[0].contains("serves at most 4") && sentences[0].contains("0.97 of"),
            "{sentences:?}"
        );
        assert!(sentences[1].contains("Task: no pool gained"), "{sentences:?}");
        let fast = of("pool", Some(4), &[(1.0, 20.0), (4.0, 80.0)]);
        let sentences = pool_or_task(&[task.clone(), fast]).expect("there are both");
        assert!(sentences[1].contains("2.00 times"), "{sentences:?}");
        assert_eq!(pool_or_task(&[task]), None);
    }
}
