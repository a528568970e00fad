//! One subject of the ramp: one command, so many workers, until throughput has settled.

use super::options::{NAME, Plan};
use super::wakes;
use crate::analysis::findings::{self, Evidence, Wakes, Writer};
use crate::analysis::spread::median;
use crate::analysis::steady::{TOLERANCE, is_steady};
use crate::lab::experiment::Error;
use crate::lab::measure::Sight;
use crate::lab::record::{Record, middle};
use crate::lab::subject;
use crate::lab::target::Started;
use crate::load::{self, Amount, Command, Driver, Populate, Spec};
use crate::report::IN_PROCESS;
use crate::result::{Finding, FindingKind, Sample};

/// Samples of a level at most; the settling window is half of them.
const SAMPLES: f64 = 16.0;
const WINDOW: usize = 8;
/// Shorter samples hold too few requests to tell settling from noise.
const SAMPLE_S_MIN: f64 = 0.02;
/// The table's threads each keep a histogram per sample: fewer samples spare memory.
const SAMPLES_TABLE: f64 = 4.0;

/// The commands of the ramp, with their names in tables.
pub const COMMANDS: [(&str, &[&str]); 2] =
    [("set", &["SET", "__key__", "__data__"]), ("get", &["GET", "__key__"])];

/// The load without data at the highest level.
pub const PING: &str = "ping";

/// A server, or the table in this process.
#[derive(Debug)]
pub struct Subject {
    /// The server; none for the table.
    pub server: Option<Started>,
    /// All loads of the ramp, and PING at the highest level where it is answered.
    pub record: Record,
    /// Which threads one request wakes.
    pub wakes: Option<Wakes>,
}

impl Subject {
    /// A server.
    pub fn server(started: Started) -> Self {
        Self { record: Record::of(&started), server: Some(started), wakes: None }
    }

    /// The table in this process.
    pub fn table() -> Self {
        let (name, sight) = (IN_PROCESS.to_owned(), Sight { pid: None, mixed: true });
        Self { server: None, record: Record { name, sight, ..Record::default() }, wakes: None }
    }

    /// What it is called in tables.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Finds out which threads one request wakes.
    pub fn observe_wakes(&mut self) {
        self.wakes = self.server.as_ref().and_then(wakes::observe);
    }

    /// A load of one command at it.
    pub fn spec(&self, words: &[&str], workers: usize, plan: &Plan) -> Spec {
        let samples = if self.server.is_some() { SAMPLES } else { SAMPLES_TABLE };
        let base = match &self.server {
            Some(started) => subject::spec(started, words, workers, plan.seconds),
            None => Spec {
                target: self.name().to_owned(),
                connections: workers,
                amount: Amount::Seconds(plan.seconds),
                commands: vec![Command::new(words)],
                driver: Driver::InProcess,
                ..Spec::default()
            },
        };
        Spec {
            sample_s: (plan.seconds / samples).max(SAMPLE_S_MIN),
            // A server has its keys already; a table lives as long as its load.
            populate: if self.server.is_some() { Populate::No } else { Populate::Auto },
            ..plan.data.of(base)
        }
    }

    /// Writes all keys once, so that GET finds them.
    pub fn write_keys(&self, plan: &Plan) -> Result<(), Error> {
        if self.server.is_none() {
            return Ok(());
        }
        let spec = Spec {
            populate: Populate::Yes,
            amount: Amount::Requests(1),
            ..self.spec(COMMANDS[1].1, 1, plan)
        };
        Ok(load::run(&spec).map(|_| ())?)
    }

    /// Measures one level with each command.
    pub fn level(&mut self, workers: usize, plan: &Plan) {
        for (command, words) in COMMANDS {
            let spec = self.spec(words, workers, plan);
            self.record.run_until(command, &spec, &mut has_settled);
        }
    }

    /// Measures PING, which needs no data.
    pub fn ping(&mut self, workers: usize, plan: &Plan) {
        if self.server.is_none() {
            return;
        }
        let spec = self.spec(&["PING"], workers, plan);
        let point = self.record.measure(PING, &spec, &mut has_settled);
        // A server without PING is judged without it.
        self.record.points.extend(Some(point).filter(|point| point.valid().is_ok()));
    }

    /// What the rules find with either command, each finding once.
    pub fn findings(&self, plan: &Plan) -> Vec<Finding> {
        let each = COMMANDS.map(|(command, _)| (command, self.judge(command, plan)));
        merge(&each)
    }

    fn judge(&self, command: &str, plan: &Plan) -> Vec<Finding> {
        let most = plan.most();
        findings::judge(&Evidence {
            writer: self.server.as_ref().and_then(|_| self.writer(command, most)),
            client: self.record.client(command, most),
            levels: self.record.levels(command),
            ..self.record.evidence(NAME, &[command])
        })
    }

    /// What limits throughput at the highest level.
    fn writer(&self, command: &str, most: usize) -> Option<Writer> {
        let known = |value: f64| Some(value).filter(|value| value.is_finite());
        let rate = |load| known(self.record.middle(load, most, |seen| seen.measurement.throughput));
        let top = self.record.at(command, most);
        let threads: Vec<_> = top.iter().filter_map(|seen| seen.threads).collect();
        Some(Writer {
            data_throughput: rate(command)?,
            ping_throughput: rate(PING),
            busiest_thread: known(median(
                &threads.iter().map(|one| one.busiest).collect::<Vec<_>>(),
            )),
            active_threads: threads.iter().map(|one| one.active).max(),
            idle_cpus: known(middle(&top, |seen| seen.idle_cpus)),
            wakes: self.wakes.clone(),
        })
    }
}

/// True once the newest samples have settled.
fn has_settled(samples: &[Sample]) -> bool {
    let rates: Vec<f64> = samples.iter().map(|sample| sample.throughput).collect();
    is_steady(&rates, WINDOW, TOLERANCE)
}

/// The findings of several commands: each kind once, its evidence with the command in front; `none`
/// only if all found nothing.
fn merge(each: &[(&str, Vec<Finding>)]) -> Vec<Finding> {
    let something = each.iter().any(|(_, found)| found.iter().any(|f| f.kind != FindingKind::None));
    let mut merged: Vec<Finding> = Vec::new();
    for (command, found) in each {
        for one in found.iter().filter(|f| !something || f.kind != FindingKind::None) {
            let evidence: Vec<String> = one
                .evidence
                .iter()
                .map(|line| format!("{}: {line}", command.to_uppercase()))
                .collect();
            match merged.iter_mut().find(|other| other.kind == one.kind) {
                None => merged.push(Finding { evidence, ..one.clone() }),
                Some(other) => {
                    other.evidence.extend(evidence);
                    for caveat in &one.caveats {
                        // The same caveat with other figures says nothing new.
                        let words = |text: &str| text.split(char::is_numeric).next().map(str::len);
                        let end = words(caveat).unwrap_or(0);
                        if !other.caveats.iter().any(|c| c.get(..end) == caveat.get(..end)) {
                            other.caveats.push(caveat.clone());
                        }
                    }
                }
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: FindingKind, caveat: &str) -> Finding {
        Finding {
            kind,
            experiment: NAME.to_owned(),
            target: "x".to_owned(),
            evidence: vec!["e".to_owned()],
            caveats: vec![caveat.to_owned()],
        }
    }

    #[test]
    fn findings_of_one_kind_are_merged_and_none_is_reported_alone() {
        let flat = FindingKind::SingleWriterFlat;
        let both = merge(&[
            ("set", vec![finding(flat, "a")]),
            ("get", vec![finding(flat, "a"), finding(FindingKind::Retrograde, "b")]),
        ]);
        assert_eq!(both.len(), 2);
        assert_eq!(both[0].evidence, ["SET: e", "GET: e"]);
        assert_eq!(both[0].caveats, ["a"]);
        let none = FindingKind::None;
        let one = merge(&[("set", vec![finding(none, "")]), ("get", vec![finding(flat, "")])]);
        assert_eq!((one.len(), one[0].kind), (1, flat));
        let nothing = merge(&[("set", vec![finding(none, "")]), ("get", vec![finding(none, "")])]);
        assert_eq!((nothing.len(), nothing[0].kind), (1, none));
    }
}
