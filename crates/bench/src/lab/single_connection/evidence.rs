//! From what was seen to the evidence of findings. Pure.

use super::NAME;
use super::measure::{Point, Seen};
use super::variants::Variant;
use crate::analysis::findings::{Evidence, Polls, Trust, Wakeups};
use crate::analysis::spread::median;
use crate::result::Measurement;

/// The evidence that one target left.
pub fn evidence(seen: &Seen) -> Evidence {
    Evidence {
        experiment: NAME.to_owned(),
        target: seen.name.clone(),
        trust: trust(seen),
        polls: polls(seen),
        wakeups: wakeups(seen),
        ..Evidence::default()
    }
}

fn trust(seen: &Seen) -> Trust {
    let points: Vec<_> = seen.points.values().map(|point| point.loads.iter().collect()).collect();
    Trust::of(&points, None)
}

/// Polls with the most connections.
fn polls(seen: &Seen) -> Option<Polls> {
    let way = seen.main_way()?;
    let (_, point) = seen.points.iter().rfind(|((of, _), _)| *of == way)?;
    let account = point.best()?;
    Some(Polls {
        in_flight: middle(&point.loads, |load| load.in_flight)?,
        requests: account.requests,
        polls: account.polls,
        events: account.events,
        source: account.source.clone(),
    })
}

/// One connection, one request at a time.
fn wakeups(seen: &Seen) -> Option<Wakeups> {
    let point = seen.points.get(&(seen.main_way()?, 1))?;
    let loads = &point.loads;
    let awake = |variant: Variant| {
        let latency_us = middle(seen.variants.get(&variant)?, |load| load.latency.p50_us)?;
        Some((variant.words(), latency_us))
    };
    Some(Wakeups {
        latency_us: middle(loads, |load| load.latency.p50_us)?,
        // A client in one process with the server: its CPU is that of both.
        client_cpu_us: middle(loads, client_us)?,
        server_cpu_us: middle(loads, server_us).filter(|us| us.is_finite()),
        wake_us: Some(seen.wake_us),
        idle_cpus: idle_share(seen, point)? * seen.cores as f64,
        // Where only one side stays awake the other's core is idle for so short a time that it does
        // not sleep deeply.
        awake: [Variant::BothSpin, Variant::ClientSpins, Variant::ServerSpins]
            .into_iter()
            .filter_map(awake)
            .min_by(|a, b| a.1.total_cmp(&b.1)),
    })
}

/// CPU of the client per request, microseconds.
pub fn client_us(load: &Measurement) -> f64 {
    load.client_cpu_s * 1e6 / load.requests.max(1) as f64
}

/// CPU of the server per request, microseconds; not a number if it could not be seen.
pub fn server_us(load: &Measurement) -> f64 {
    load.server.map_or(f64::NAN, |one| one.cpu_us_per_request)
}

/// The idleness of the host: share of all cores that nobody used, with this point's loads.
pub fn idle_share(seen: &Seen, point: &Point) -> Option<f64> {
    middle(&point.loads, |load| {
        let server_s = load.server.map_or(0.0, |server| server.cpu_s);
        let busy = (load.client_cpu_s + server_s) / load.seconds + load.other_cpus;
        (1.0 - busy / seen.cores as f64).clamp(0.0, 1.0)
    })
}

/// The median of a figure over repetitions; `None` without any.
pub fn middle(loads: &[Measurement], of: impl Fn(&Measurement) -> f64) -> Option<f64> {
    (!loads.is_empty()).then(|| median(&loads.iter().map(of).collect::<Vec<f64>>()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::measure::Way;
    use super::*;
    use crate::analysis::findings::judge;
    use crate::lab::io::Account;
    use crate::result::FindingKind::{self, PollPerRequest, WakeupBound};
    use crate::result::{Latency, ServerUse};

    /// A load whose requests take `p50_us` with 5 us of work on each side.
    fn load(in_flight: f64, p50_us: f64) -> Measurement {
        Measurement {
            seconds: 1.0,
            requests: 10_000,
            in_flight,
            latency: Latency { p50_us, ..Latency::default() },
            client_cpu_s: 0.05,
            server: Some(ServerUse { cpu_s: 0.05, cpu_us_per_request: 5.0, resident_bytes: 1 }),
            other_cpus: 0.1,
            ..Measurement::default()
        }
    }

    fn seen(p50_us: f64, polls: u64, events: u64) -> Seen {
        let account = Account { requests: 10_000, polls, events, ..Account::default() };
        let point = |load| Point { loads: vec![load], account: None, traced: None };
        let last = Point { traced: Some(account), ..point(load(49.0, 500.0)) };
        let points = [
            ((Way::Tcp, 1), point(load(1.0, p50_us))),
            ((Way::Tcp, 50), last),
            ((Way::Unix, 50), point(load(49.0, 400.0))),
        ];
        Seen {
            name: "it".to_owned(),
            points: BTreeMap::from(points),
            variants: BTreeMap::new(),
            wake_us: 12.0,
            cores: 2,
            mixed: false,
            unseen: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn kinds(seen: &Seen) -> Vec<FindingKind> {
        judge(&evidence(seen)).iter().map(|one| one.kind).collect()
    }

    #[test]
    fn the_cause_is_polls_or_wake_ups_or_neither() {
        assert_eq!(kinds(&seen(12.0, 10_002, 10_002)), [PollPerRequest]);
        assert_eq!(kinds(&seen(40.0, 1_500, 10_002)), [WakeupBound]);
        assert_eq!(kinds(&seen(40.0, 10_002, 10_002)), [PollPerRequest, WakeupBound]);
        assert_eq!(kinds(&seen(12.0, 1_500, 10_002)), [FindingKind::None]);
    }

    #[test]
    fn a_variant_without_sleep_decides_where_there_is_one() {
        let mut one = seen(40.0, 1_500, 10_002);
        one.variants.insert(Variant::BothSpin, vec![load(1.0, 39.0)]);
        assert_eq!(kinds(&one), [FindingKind::None], "it is as slow without sleep");
        one.variants.insert(Variant::ServerSpins, vec![load(1.0, 15.0)]);
        assert_eq!(kinds(&one), [WakeupBound]);
    }

    /// As `lab single-connection` recorded them of servers that sleep between two requests, on two
    /// virtual cores. Client and server used 81 % of the time of a round trip, most of it for
    /// sleeping and waking: by CPU alone nobody seemed to wait.
    #[test]
    fn servers_that_sleep_for_each_request_are_told_as_they_were_recorded() {
        let recorded = |p50_us: f64, client_us: f64, server_us: f64, other_cpus| Measurement {
            seconds: p50_us / 1e6 * 1000.0,
            requests: 1000,
            in_flight: 1.0,
            latency: Latency { p50_us, ..Latency::default() },
            client_cpu_s: client_us / 1000.0,
            server: Some(ServerUse {
                cpu_s: server_us / 1000.0,
                cpu_us_per_request: server_us,
                resident_bytes: 1,
            }),
            other_cpus,
            ..Measurement::default()
        };
        let with = |as_it_is: Measurement, awake: Measurement, wake_us| {
            let points = BTreeMap::from([(
                (Way::Tcp, 1),
                Point { loads: vec![as_it_is], account: None, traced: None },
            )]);
            let variants = BTreeMap::from([(Variant::ClientSpins, vec![awake])]);
            Seen { points, variants, wake_us, ..seen(0.0, 0, 0) }
        };
        let quiet = |as_it_is: (f64, f64, f64), awake_us| {
            let (p50_us, client_us, server_us) = as_it_is;
            let awake = recorded(awake_us, awake_us, 10.0, 0.0);
            with(recorded(p50_us, client_us, server_us, 0.05), awake, 23.3)
        };
        for sleeps in [
            quiet((79.9, 29.8, 34.9), 22.6), // redis-server
            quiet((75.6, 29.8, 30.9), 23.8), // model:event-loop
            quiet((70.6, 25.2, 29.8), 20.9), // model:thread-per-connection
        ] {
            assert_eq!(kinds(&sleeps), [WakeupBound], "{sleeps:?}");
            let untried = Seen { variants: BTreeMap::new(), ..sleeps };
            assert_eq!(kinds(&untried), [WakeupBound], "two wake-ups of 23.3 us explain it");
        }
        // The same two on a machine that others kept awake: a round trip was all work.
        let busy = with(recorded(16.6, 8.6, 8.9, 0.9), recorded(17.7, 18.8, 11.0, 1.3), 23.3);
        assert_eq!(kinds(&busy), [FindingKind::None]);
        let untried = Seen { variants: BTreeMap::new(), ..busy };
        assert_eq!(kinds(&untried), [FindingKind::None], "shorter than two wake-ups");
    }

    #[test]
    fn the_host_is_idle_where_nobody_works() {
        let one = seen(40.0, 1, 1);
        let share = idle_share(&one, &one.points[&(Way::Tcp, 1)]).expect("it was measured");
        assert!((share - 0.9).abs() < 1e-9, "{share}");
        assert_eq!(idle_share(&one, &Point::default()), None);
    }
}
