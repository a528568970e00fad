//! A server with its settings and one trace: all that was seen of it, and what exact caches make of
//! the same trace with as many entries.

use super::case::{Look, Run};
use super::options::NAME;
use super::simulate::{Simulator, mean_age};
use super::tally::is_warm_up;
use super::trace::Trace;
use crate::analysis::findings::{Caching, Evidence, Trust};
use crate::analysis::spread::median;
use crate::result::{Measurement, ServerUse};

/// The subject.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The target's name in tables.
    pub target: String,
    /// The trace's number.
    pub trace: usize,
    /// The trace's name.
    pub trace_name: String,
    /// Its runs.
    pub runs: Vec<Run>,
    /// Hits of the exact order that its policy approximates, with as many entries as it held.
    pub exact: Option<(Simulator, f64)>,
    /// Hits of the best of those that withstand scans, with as many entries.
    pub resistant: Option<(Simulator, f64)>,
    /// Seconds that a key waits in an exact LRU before it goes.
    pub age_s: Option<f64>,
    /// The share of reads of keys that are read once.
    pub read_once: f64,
}

impl Subject {
    /// A subject with its runs, of which there is at least one, and what simulators say. Without
    /// looks at a server's entries it is compared with caches of `capacity`.
    pub fn of(target: &str, number: usize, trace: &Trace, runs: Vec<Run>, capacity: u64) -> Self {
        let mut subject = Self {
            target: target.to_owned(),
            trace: number,
            trace_name: trace.name.clone(),
            runs,
            exact: None,
            resistant: None,
            age_s: None,
            read_once: trace.read_once(),
        };
        let held = match subject.entries() {
            Some(entries) if !trace.is_sized => entries.round() as u64,
            _ => capacity,
        };
        let is_bounded = subject.runs.iter().any(|run| run.looks.iter().any(|l| l.evicted > 0));
        if is_bounded && held > 0 {
            let exact = Simulator::exact(&subject.policy());
            let play = |simulator: Simulator| (simulator, simulator.play(trace, held).ratio());
            subject.exact = exact.map(play);
            let resistant = Simulator::RESISTANT.into_iter().map(play);
            subject.resistant = resistant.max_by(|a, b| a.1.total_cmp(&b.1));
            let rate = trace.accesses.len() as f64 / subject.seconds();
            subject.age_s = mean_age(trace, held).map(|age| age / rate);
        }
        subject
    }

    /// Its policy, as it reports it.
    pub fn policy(&self) -> String {
        self.runs.iter().find_map(|run| run.policy.clone()).unwrap_or_else(|| "-".to_owned())
    }

    /// The samples of its policy.
    pub fn samples(&self) -> String {
        self.runs.iter().find_map(|run| run.samples.clone()).unwrap_or_else(|| "-".to_owned())
    }

    /// Target, policy and samples.
    pub fn name(&self) -> String {
        match self.policy().as_str() {
            "-" => self.target.clone(),
            policy => format!("{}, {policy} {}", self.target, self.samples()),
        }
    }

    /// The median share of hits.
    pub fn ratio(&self) -> f64 {
        self.middle(|run| Some(run.played.tally.ratio())).unwrap_or(f64::NAN)
    }

    /// Entries that it held when the cache was warm, on average.
    pub fn entries(&self) -> Option<f64> {
        self.middle(|run| {
            let accesses = run.played.tally.reads() as usize;
            let warm = |look: &&Look| !is_warm_up(look.at, accesses);
            let held: Vec<f64> =
                run.looks.iter().filter(warm).map(|look| look.entries as f64).collect();
            (!held.is_empty()).then(|| held.iter().sum::<f64>() / held.len() as f64)
        })
    }

    /// Its memory at the most over its limit, of all runs.
    pub fn peak(&self) -> Option<f64> {
        self.runs.iter().filter_map(|run| run.peak).reduce(f64::max)
    }

    /// Keys that it evicted.
    pub fn evicted(&self) -> Option<f64> {
        self.middle(|run| run.looks.last().map(|look| look.evicted as f64))
    }

    /// Its limit when the cache was warm.
    pub fn limit(&self) -> Option<f64> {
        self.middle(|run| run.looks.last().map(|look| look.limit as f64))
    }

    /// Microseconds of its CPU for a request.
    pub fn cpu_us(&self) -> Option<f64> {
        self.middle(|run| run.cpu_us)
    }

    /// Requests per second, reads and writes.
    pub fn requests_per_second(&self) -> Option<f64> {
        self.middle(|run| Some(requests(run) as f64 / run.played.seconds))
    }

    fn seconds(&self) -> f64 {
        self.middle(|run| Some(run.played.seconds)).unwrap_or(f64::NAN)
    }

    fn middle(&self, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let all: Vec<f64> = self.runs.iter().filter_map(figure).collect();
        (!all.is_empty()).then(|| median(&all))
    }

    /// What could not be seen or done, each with the name.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        let refused = self.runs.iter().map(|run| run.played.refused).sum::<u64>();
        let refusal = format!("On {} it refused {refused} values (OOM).", self.trace_name);
        let unseen = self.runs.iter().flat_map(|run| run.unseen.iter().cloned());
        for what in unseen.chain((refused > 0).then_some(refusal)) {
            let note = format!("{}: {what}", self.target);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    /// The evidence.
    pub fn evidence(&self) -> Evidence {
        let caching = Caching {
            trace: self.trace_name.clone(),
            hits: self.ratio(),
            exact: self.exact.map(|(simulator, hits)| (simulator.name(), hits)),
            resistant: self.resistant.map(|(simulator, hits)| (simulator.name(), hits)),
            read_once: self.read_once,
            age_s: self.age_s,
            over_limit: self.peak(),
        };
        Evidence {
            experiment: NAME.to_owned(),
            target: format!("{}, {}", self.name(), self.trace_name),
            trust: Trust { repetitions: self.runs.len(), ..Trust::default() },
            caching: Some(caching),
            ..Evidence::default()
        }
    }

    /// The runs as measurements.
    pub fn measurements(&self) -> impl Iterator<Item = Measurement> {
        let entries = self.entries().map_or("-".to_owned(), |entries| format!("{entries:.0}"));
        let parameters = [("policy", self.policy()), ("samples", self.samples())];
        let parameters: Vec<_> =
            parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.runs.iter().map(move |run| Measurement {
            load: format!("{}, {entries} entries", self.trace_name),
            target: self.target.clone(),
            parameters: parameters.clone(),
            seconds: run.played.seconds,
            requests: requests(run),
            throughput: requests(run) as f64 / run.played.seconds,
            hit_ratio: Some(run.played.tally.ratio()),
            server: run.cpu_us.map(|cpu_us_per_request| ServerUse {
                cpu_us_per_request,
                cpu_s: cpu_us_per_request * requests(run) as f64 / 1e6,
                resident_bytes: 0,
            }),
            ..Measurement::default()
        })
    }
}

/// Reads, and a write for each miss.
fn requests(run: &Run) -> u64 {
    2 * run.played.tally.reads() - run.played.tally.hits()
}
