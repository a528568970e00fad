//! What is measured of a target, and the evidence that it makes.

use super::options::NAME;
use super::probe::{self, Batches};
use crate::analysis::findings::{Client, Evidence, STALL_US, Sends, Stall, Stranding};
use crate::analysis::spread::median;
use crate::lab::experiment::Error;
use crate::lab::io::{self, Account, Calls};
use crate::lab::measure::{Seen, Sight};
use crate::lab::record::Record;
use crate::lab::target::Target;
use crate::load::{Address, Amount, Spec};

/// The load.
const LOAD: &str = "batches";
/// The same with acknowledgements sent at once, where batches are slow enough to ask.
const QUICK: &str = "batches, acknowledged at once";
/// Longest look at single batches, seconds.
const BATCHES_S: f64 = 1.0;
/// The traced run, seconds: tracing slows the server, and its figures are no measurement.
const TRACED_S: f64 = 0.3;

/// A target and all that was seen of it.
#[derive(Debug, Default)]
pub struct Subject {
    /// Its loads.
    pub record: Record,
    /// Did replies stay behind?
    pub stranding: Option<Stranding>,
    /// Single batches on one connection.
    pub batches: Option<Batches>,
    /// What a trace counted under a load of its own.
    pub traced: Option<Account>,
    /// Bytes that the server's memory grew by per request, once per repetition.
    pub growth: Vec<f64>,
    /// Requests in a batch.
    pub pipeline: usize,
}

impl Subject {
    /// Nothing seen yet.
    pub fn new(name: &str) -> Self {
        let record = Record { name: name.to_owned(), ..Record::default() };
        Self { record, ..Self::default() }
    }

    /// The load of median throughput.
    pub fn load(&self) -> Option<&Seen> {
        self.record.median(LOAD)
    }

    /// The same with acknowledgements sent at once.
    pub fn quick(&self) -> Option<&Seen> {
        self.record.median(QUICK)
    }

    /// What is known of the server's calls: its own account, else a trace.
    pub fn counted(&self) -> Option<Account> {
        self.record.account(LOAD, None).or(self.traced.clone())
    }

    /// Did replies stay behind?
    pub fn is_stranded(&self) -> bool {
        self.stranding.as_ref().is_some_and(|seen| seen.received < seen.asked)
    }

    /// CPU share of the server's busiest thread.
    pub fn server_busy(&self) -> Option<f64> {
        let threads = self.record.valid(LOAD).filter_map(|(_, seen)| seen.threads);
        let busiest: Vec<f64> = threads.map(|threads| threads.busiest).collect();
        (!busiest.is_empty()).then(|| median(&busiest))
    }

    /// Starts the target afresh and measures it once; what need be seen only once is looked at if
    /// it is the `first` time.
    pub fn measure(
        &mut self,
        target: &Target,
        load: &Spec,
        short: bool,
        first: bool,
    ) -> Result<(), Error> {
        let started = target.start()?;
        let Some(address) = io::ways(&started).into_iter().next() else { return Ok(()) };
        self.record.sight = Sight::of(&started);
        self.pipeline = load.pipeline;
        let pid = self.record.process(&started, "no memory, no CPU and no trace of it");
        let target = self.record.name.clone();
        let spec = Spec { target, address: address.clone(), server_pid: pid, ..load.clone() };
        if first {
            self.stranding = probe::stranding(&address, spec.pipeline);
            if self.stranding.is_none() {
                let why = "It answers SET or PING with an error, or not at all.";
                self.record.unseen(why.to_owned());
            }
        }
        if self.is_stranded() {
            let why = "Batches in lock-step would wait for ever: no load was put on.";
            self.record.unseen(why.to_owned());
            return Ok(());
        }
        if first {
            let seconds = seconds(&spec).min(BATCHES_S);
            self.batches = probe::batches(&address, spec.pipeline, seconds);
        }
        self.put_on(&spec, &started.address(), pid);
        if first && (self.record.account(LOAD, None).is_none() || !short) {
            self.trace(spec, pid);
        }
        Ok(())
    }

    /// Puts the load on while the server's account, memory and CPU are watched.
    fn put_on(&mut self, spec: &Spec, address: &client::Address, pid: Option<u32>) {
        let memory = io::memory(address, pid);
        let Some(seen) = self.record.run_counted(LOAD, spec, address) else { return };
        let (requests, is_slow) =
            (seen.measurement.requests, seen.measurement.latency.p99_us >= STALL_US.0);
        self.growth.extend(io::memory(address, pid).growth_per_request(&memory, requests));
        if is_slow && matches!(spec.address, Address::Tcp(_)) {
            let quick = Spec { quick_ack: true, ..spec.clone() };
            self.record.run(QUICK, &quick);
        }
    }

    /// A short run under trace.
    fn trace(&mut self, spec: Spec, pid: Option<u32>) {
        let Some(pid) = pid else { return };
        let amount = Amount::Seconds(TRACED_S.min(seconds(&spec)));
        match io::traced(pid, Calls::All, &Spec { amount, ..spec }) {
            Ok(account) => self.traced = Some(account),
            Err(why) => self.record.unseen(format!("No trace: {why}")),
        }
    }

    /// The evidence that the target left.
    pub fn evidence(&self) -> Evidence {
        let load = self.load();
        Evidence {
            stranding: self.stranding.clone(),
            stall: load.map(|load| self.stall(load)),
            sends: self.sends(),
            client: load.filter(|_| !self.record.sight.mixed).map(|load| Client {
                threads: load.client_threads,
                busiest_thread: load.client_share(),
                server_busiest_thread: self.server_busy(),
            }),
            ..self.record.evidence(NAME, &[LOAD])
        }
    }

    fn stall(&self, seen: &Seen) -> Stall {
        let load = &seen.measurement;
        Stall {
            pipeline: self.pipeline,
            in_flight: load.in_flight,
            throughput: load.throughput,
            latency: load.latency.clone(),
            client_busy: seen.client_share(),
            server_busy: self.server_busy(),
            quick_ack_throughput: self.quick().map(|quick| quick.measurement.throughput),
        }
    }

    /// Sends per reply: as the server counts them, or a trace, or segments that came in single
    /// batches.
    fn sends(&self) -> Option<Sends> {
        let counting = |one: &Account| one.requests > 0;
        let own = self.record.account(LOAD, None).filter(counting);
        if let Some(account) = own.or_else(|| self.traced.clone().filter(counting)) {
            return Some(Sends {
                pipeline: self.pipeline,
                replies: account.requests,
                reply_bytes: account.per_request(account.bytes_out),
                sends: Some(account.sends),
                segments: None,
            });
        }
        let batches = self.batches.as_ref()?;
        Some(Sends {
            pipeline: batches.pipeline,
            replies: batches.replies(),
            reply_bytes: batches.reply_bytes,
            sends: None,
            segments: batches.segments,
        })
    }
}

fn seconds(spec: &Spec) -> f64 {
    match spec.amount {
        Amount::Seconds(seconds) => seconds,
        Amount::Requests(_) => BATCHES_S,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::findings::judge;
    use crate::lab::record::Point;
    use crate::result::FindingKind::{self, FlushPerReply, NagleStall, StrandedReply};
    use crate::result::{Latency, Measurement};

    fn kinds(subject: &Subject) -> Vec<FindingKind> {
        judge(&subject.evidence()).iter().map(|one| one.kind).collect()
    }

    /// Name, throughput and latency distribution of a load.
    type Load<'a> = (&'a str, f64, &'a [(f64, f64)]);

    fn subject(loads: &[Load<'_>]) -> Subject {
        let load = |&(load, throughput, cumulative): &Load<'_>| {
            let mean_us = 960.0 / throughput * 1e6;
            let measurement = Measurement {
                seconds: 1.0,
                throughput,
                in_flight: 960.0,
                latency: Latency { mean_us, cumulative: cumulative.to_vec(), ..Latency::default() },
                client_cpu_s: 0.1,
                ..Measurement::default()
            };
            let (load, seen) = (load.to_owned(), Some(Seen::of(measurement, 1, 2)));
            Point { load, level: 32, seen, ..Point::default() }
        };
        let mut subject = Subject { pipeline: 30, ..Subject::new("it") };
        subject.record.points = loads.iter().map(load).collect();
        subject
    }

    fn account(requests: u64, sends: u64) -> Account {
        Account { requests, sends, bytes_out: requests * 6, ..Account::default() }
    }

    #[test]
    fn a_stall_is_found_by_its_remedy() {
        let stalled: Load<'_> =
            (LOAD, 22_000.0, &[(100.0, 0.03), (41_000.0, 0.5), (48_000.0, 1.0)]);
        let cured = subject(&[stalled, (QUICK, 700_000.0, &[(900.0, 1.0)])]);
        assert_eq!(kinds(&cured), [NagleStall]);
        let slow = subject(&[stalled, (QUICK, 23_000.0, &[(41_000.0, 1.0)])]);
        assert_eq!(kinds(&slow), [FindingKind::None], "a slow server is not cured");
    }

    #[test]
    fn sends_are_taken_from_the_server_or_a_trace_or_the_wire() {
        let (pipeline, count, segments) = (30, 10, Some(299));
        let batches = Batches { pipeline, count, reply_bytes: 7.0, segments, ..Batches::default() };
        let mut seen = Subject { batches: Some(batches), ..subject(&[(LOAD, 1.0, &[])]) };
        assert_eq!(kinds(&seen), [FlushPerReply]);
        seen.traced = Some(account(3000, 100));
        assert_eq!(kinds(&seen), [FindingKind::None], "a trace knows better than the wire");
        seen.record.points[0].account = Some(account(3000, 3000));
        assert_eq!(kinds(&seen), [FlushPerReply], "the server knows better than a trace");
        seen.record.points[0].account = Some(account(0, 0));
        assert_eq!(kinds(&seen), [FindingKind::None], "who counted nothing knows nothing");
    }

    #[test]
    fn stranded_replies_are_found_without_a_load() {
        let stranding =
            Stranding { asked: 30, received: 0, waited_s: 0.4, received_after_nudge: 30 };
        let seen = Subject { stranding: Some(stranding), ..Subject::default() };
        assert!(seen.is_stranded());
        assert_eq!(kinds(&seen), [StrandedReply]);
    }

    #[test]
    fn the_median_load_represents_all_repetitions() {
        let seen = subject(&[3.0, 1.0, 2.0].map(|throughput| (LOAD, throughput, &[][..])));
        let median = seen.load().expect("there are three");
        assert!((median.measurement.throughput - 2.0).abs() < 1e-9);
        assert_eq!(seen.evidence().trust.repetitions, 3);
        assert!((median.client_share() - 0.1).abs() < 1e-9);
    }
}
