//! What is measured of a target, and the evidence that it makes.

use std::collections::BTreeMap;

use super::options::NAME;
use crate::analysis::findings::{Evidence, Polls, Trust, Wakeups};
use crate::lab::io::{self, Account, Calls};
use crate::lab::measure::Seen;
use crate::lab::record::{Record, middle};
use crate::lab::subject;
use crate::lab::target::Started;
use crate::load::{Address, Amount, Spec};

/// The ways to a server, which are the names of its loads: most is said of the first that it has.
pub const WAYS: [&str; 2] = ["TCP", "unix"];
/// Variants on one connection are loads of these names. Here the client polls without sleeping, and
/// the server is as it is.
pub const CLIENT_AWAKE: &str = "client never sleeps";
/// The server sleeps at once.
pub const SERVER_SLEEPS: &str = "server sleeps at once";
/// The server does not sleep.
pub const SERVER_AWAKE: &str = "server never sleeps";
/// Neither sleeps.
pub const BOTH_AWAKE: &str = "neither sleeps";
/// Many callers share the connection.
pub const SHARED: &str = "50 callers share it";
/// All variants, in the order of the table.
pub const VARIANTS: [&str; 5] = [CLIENT_AWAKE, SERVER_SLEEPS, SERVER_AWAKE, BOTH_AWAKE, SHARED];

/// A run under trace, seconds: tracing slows the server, and its figures are no measurement.
const TRACED_S: f64 = 0.5;
/// The same in the short form.
const TRACED_SHORT_S: f64 = 0.2;

/// The way of an address.
pub fn way(address: &Address) -> &'static str {
    WAYS[usize::from(matches!(address, Address::Unix(_)))]
}

/// A target and all that was seen of it.
#[derive(Debug, Default)]
pub struct Subject {
    /// Its loads: by way, and the variants on one connection.
    pub record: Record,
    /// What a trace counted over a way with so many connections, under loads of its own.
    pub traced: BTreeMap<(&'static str, usize), Account>,
    /// What one wake-up costs on this machine, microseconds.
    pub wake_us: f64,
    /// Cores of the machine.
    pub cores: usize,
}

/// A way and connections that a target was measured at.
pub struct Point<'a> {
    /// The target.
    pub of: &'a Subject,
    /// The way.
    pub way: &'static str,
    /// Connections.
    pub connections: usize,
    /// What the server counted.
    pub account: Option<Account>,
    /// What a trace counted.
    pub traced: Option<&'a Account>,
}

impl<'a> Point<'a> {
    /// Its loads, one per repetition.
    pub fn loads(&self) -> Vec<&'a Seen> {
        self.of.record.at(self.way, self.connections)
    }

    /// What is known of the server's calls: its own account, then a trace.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.account.iter().chain(self.traced)
    }

    /// The first of them.
    pub fn known(&self) -> Option<Account> {
        self.accounts().next().cloned()
    }

    /// Share of all cores that nobody used.
    pub fn idle_share(&self) -> f64 {
        (middle(&self.loads(), |seen| seen.idle_cpus) / self.of.cores as f64).min(1.0)
    }
}

impl Subject {
    /// Nothing seen yet.
    pub fn new(target: &Started, wake_us: f64) -> Self {
        let mut record = Record::of(target);
        record.process(target, "no CPU and no trace of it");
        // Threads are not watched here: watching could wake what sleeps.
        record.sight.pid = None;
        Self { record, wake_us, cores: crate::host::machine().cores, ..Self::default() }
    }

    /// Its points: by way, ascending in connections.
    pub fn points(&self) -> impl Iterator<Item = Point<'_>> {
        let point = |way: &'static str, connections| Point {
            of: self,
            way,
            connections,
            account: self.record.account(way, connections),
            traced: self.traced.get(&(way, connections)),
        };
        WAYS.into_iter().flat_map(move |way| {
            let levels = self.record.levels(way).into_iter();
            levels.map(move |level| point(way, level.load as usize))
        })
    }

    /// The points of the way that most is said of: TCP where there is that.
    pub fn main_points(&self) -> impl Iterator<Item = Point<'_>> {
        let way = self.points().next().map(|first| first.way);
        self.points().filter(move |point| Some(point.way) == way)
    }

    /// One connection.
    pub fn alone(&self) -> Option<Point<'_>> {
        self.main_points().find(|point| point.connections == 1)
    }

    /// Measures the target on so many connections, over each way that there is.
    pub fn measure(&mut self, target: &Started, load: &Spec) {
        for address in io::ways(target) {
            let way = way(&address);
            let spec = self.at(target, address, &format!("set {way}"), load);
            self.record.run_counted(way, &spec, &target.address());
        }
    }

    /// A load at an address of it.
    pub fn at(&self, target: &Started, address: Address, name: &str, load: &Spec) -> Spec {
        let server_pid = subject::process(target);
        let (name, target) = (name.to_owned(), self.record.name.clone());
        Spec { name, target, address, server_pid, ..load.clone() }
    }

    /// Runs under trace, for servers that do not report how long their polls take. In the short
    /// form only for those that report nothing at all.
    pub fn trace(&mut self, target: &Started, connections: &[usize], load: &Spec, short: bool) {
        let (Some(pid), Some(address)) =
            (subject::process(target), io::ways(target).into_iter().next())
        else {
            return;
        };
        let way = way(&address);
        for &connections in connections {
            let own = self.record.account(way, connections);
            let is_told = own.is_some_and(|account| short || !account.poll_ns.is_empty());
            if is_told || self.record.at(way, connections).is_empty() {
                continue;
            }
            let amount = Amount::Seconds(if short { TRACED_SHORT_S } else { TRACED_S });
            let spec = Spec { address: address.clone(), connections, amount, ..load.clone() };
            match io::traced(pid, Calls::Io, &spec) {
                Ok(account) => drop(self.traced.insert((way, connections), account)),
                Err(why) => return self.record.unseen(format!("No trace: {why}")),
            }
        }
    }

    /// The evidence that the target left.
    pub fn evidence(&self) -> Evidence {
        let evidence = self.record.evidence(NAME, &WAYS);
        let trust = Trust { client_busy: None, ..evidence.trust };
        Evidence { trust, polls: self.polls(), wakeups: self.wakeups(), ..evidence }
    }

    /// Polls with the most connections.
    fn polls(&self) -> Option<Polls> {
        let point = self.main_points().last()?;
        let account = point.known()?;
        Some(Polls {
            in_flight: middle(&point.loads(), |seen| seen.measurement.in_flight),
            requests: account.requests,
            polls: account.polls,
            events: account.events,
            source: account.source,
        })
    }

    /// One connection, one request at a time.
    fn wakeups(&self) -> Option<Wakeups> {
        let point = self.alone()?;
        let loads = point.loads();
        let awake = |variant: &'static str| {
            let latency_us = middle(&self.record.at(variant, 1), p50_us);
            latency_us.is_finite().then_some((variant, latency_us))
        };
        Some(Wakeups {
            latency_us: middle(&loads, p50_us),
            // A client in one process with the server: its CPU is that of both.
            client_cpu_us: middle(&loads, client_us),
            server_cpu_us: Some(middle(&loads, server_us)).filter(|us| us.is_finite()),
            wake_us: Some(self.wake_us),
            idle_cpus: point.idle_share() * self.cores as f64,
            // Where only one side stays awake the other's core is idle for so short a time that it
            // does not sleep deeply.
            awake: [BOTH_AWAKE, CLIENT_AWAKE, SERVER_AWAKE]
                .into_iter()
                .filter_map(awake)
                .min_by(|a, b| a.1.total_cmp(&b.1)),
        })
    }
}

fn p50_us(seen: &Seen) -> f64 {
    seen.measurement.latency.p50_us
}

/// CPU of the client per request, microseconds.
pub fn client_us(seen: &Seen) -> f64 {
    seen.measurement.client_cpu_s * 1e6 / seen.measurement.requests.max(1) as f64
}

/// CPU of the server per request, microseconds; not a number if it could not be seen.
pub fn server_us(seen: &Seen) -> f64 {
    seen.measurement.server.map_or(f64::NAN, |one| one.cpu_us_per_request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::findings::judge;
    use crate::lab::record;
    use crate::result::FindingKind::{self, PollPerRequest, WakeupBound};
    use crate::result::{Latency, Measurement, ServerUse};

    /// A load of this many requests, its latency, and the CPU time of client and server per request
    /// in microseconds.
    fn load(requests: u64, p50_us: f64, client_us: f64, server_us: f64, other: f64) -> Measurement {
        let cpu_s = |us: f64| us * requests as f64 / 1e6;
        let server =
            ServerUse { cpu_s: cpu_s(server_us), cpu_us_per_request: server_us, resident_bytes: 1 };
        Measurement {
            seconds: 1.0,
            requests,
            in_flight: 1.0,
            latency: Latency { p50_us, ..Latency::default() },
            client_cpu_s: cpu_s(client_us),
            server: Some(server),
            other_cpus: other,
            ..Measurement::default()
        }
    }

    fn point(load: &str, level: usize, measurement: Measurement) -> record::Point {
        let (load, seen) = (load.to_owned(), Some(Seen::of(measurement, 1, 2)));
        record::Point { load, level, seen, ..record::Point::default() }
    }

    /// A subject on two cores with this cost of a wake.
    fn subject(wake_us: f64, points: Vec<record::Point>) -> Subject {
        let record = Record { name: "it".to_owned(), points, ..Record::default() };
        Subject { record, wake_us, cores: 2, ..Subject::default() }
    }

    /// Results of one connection whose requests take `p50_us` with 5 us of work on each side, and
    /// of fifty connections.
    fn seen(p50_us: f64, polls: u64, events: u64) -> Subject {
        let of = |p50_us| load(10_000, p50_us, 5.0, 5.0, 0.1);
        let points = vec![
            point("TCP", 1, of(p50_us)),
            point("TCP", 50, Measurement { in_flight: 49.0, ..of(500.0) }),
            point("unix", 50, Measurement { in_flight: 49.0, ..of(400.0) }),
        ];
        let mut subject = subject(12.0, points);
        let account = Account { requests: 10_000, polls, events, ..Account::default() };
        subject.traced.insert(("TCP", 50), account);
        subject
    }

    fn kinds(subject: &Subject) -> Vec<FindingKind> {
        judge(&subject.evidence()).iter().map(|one| one.kind).collect()
    }

    #[test]
    fn the_cause_is_polls_or_wakes_or_neither() {
        assert_eq!(kinds(&seen(12.0, 10_002, 10_002)), [PollPerRequest]);
        assert_eq!(kinds(&seen(40.0, 1_500, 10_002)), [WakeupBound]);
        assert_eq!(kinds(&seen(40.0, 10_002, 10_002)), [PollPerRequest, WakeupBound]);
        assert_eq!(kinds(&seen(12.0, 1_500, 10_002)), [FindingKind::None]);
    }

    #[test]
    fn a_variant_without_sleep_takes_precedence() {
        let mut one = seen(40.0, 1_500, 10_002);
        one.record.points.push(point(BOTH_AWAKE, 1, load(10_000, 39.0, 5.0, 5.0, 0.1)));
        assert_eq!(kinds(&one), [FindingKind::None], "it is as slow without sleep");
        one.record.points.push(point(SERVER_AWAKE, 1, load(10_000, 15.0, 5.0, 5.0, 0.1)));
        assert_eq!(kinds(&one), [WakeupBound]);
    }

    /// Recorded by `lab single-connection` from servers which sleep between two requests, on two
    /// virtual cores. Client and server used 81 % of the time of a round trip, most of it for
    /// sleeping and waking. By CPU time alone neither seemed to wait.
    #[test]
    fn recorded_servers_which_sleep_per_request_are_found() {
        let recorded = |name: &str, p50_us: f64, client_us, server_us, other| {
            let seconds = p50_us / 1e6 * 1000.0;
            let load = load(1000, p50_us, client_us, server_us, other);
            point(name, 1, Measurement { seconds, ..load })
        };
        let quiet = |(p50_us, client_us, server_us): (f64, f64, f64), awake_us| {
            let as_it_is = recorded("TCP", p50_us, client_us, server_us, 0.05);
            let awake = recorded(CLIENT_AWAKE, awake_us, awake_us, 10.0, 0.0);
            subject(23.3, vec![as_it_is, awake])
        };
        for mut sleeps in [
            quiet((79.9, 29.8, 34.9), 22.6), // redis-server
            quiet((75.6, 29.8, 30.9), 23.8), // model:event-loop
            quiet((70.6, 25.2, 29.8), 20.9), // model:thread-per-connection
        ] {
            assert_eq!(kinds(&sleeps), [WakeupBound], "{sleeps:?}");
            sleeps.record.points.truncate(1);
            assert_eq!(kinds(&sleeps), [WakeupBound], "two wake-ups of 23.3 us explain it");
        }
        // The same on a machine which other programs kept awake: a round trip was pure work.
        let as_it_is = recorded("TCP", 16.6, 8.6, 8.9, 0.9);
        let awake = recorded(CLIENT_AWAKE, 17.7, 18.8, 11.0, 1.3);
        let mut busy = subject(23.3, vec![as_it_is, awake]);
        assert_eq!(kinds(&busy), [FindingKind::None]);
        busy.record.points.truncate(1);
        assert_eq!(kinds(&busy), [FindingKind::None], "shorter than two wake-ups");
    }

    #[test]
    fn the_idle_share_is_the_time_without_work() {
        let share = seen(40.0, 1, 1).alone().expect("it was measured").idle_share();
        assert!((share - 0.9).abs() < 1e-9, "{share}");
        assert!(subject(12.0, Vec::new()).alone().is_none());
    }
}
