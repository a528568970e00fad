//! From what was seen to the evidence of findings. Pure.

use super::NAME;
use super::measure::{Point, Seen};
use super::variants::Variant;
use crate::analysis::findings::{Evidence, Polls, Trust, Wakeups};
use crate::analysis::spread::{Spread, median};
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
    let points = || seen.points.values().map(|point| &point.loads);
    let loads = || points().flatten();
    let spread = |loads: &Vec<Measurement>| {
        let throughput: Vec<f64> = loads.iter().map(|load| load.throughput).collect();
        Spread::of(&throughput).map(|spread| spread.relative())
    };
    Trust {
        other_cpus: loads().map(|load| load.other_cpus).fold(0.0, f64::max),
        client_busy: None,
        relative_spread: points().filter_map(spread).reduce(f64::max),
        repetitions: points().map(Vec::len).min().unwrap_or(0),
    }
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
    let loads = &seen.points.get(&(seen.main_way()?, 1))?.loads;
    let spinning = |variant| middle(seen.variants.get(&variant)?, |load| load.latency.p50_us);
    let requests = |load: &Measurement| load.requests.max(1) as f64;
    let server_cpu =
        |load: &Measurement| load.server.map_or(f64::NAN, |one| one.cpu_us_per_request);
    Some(Wakeups {
        latency_us: middle(loads, |load| load.latency.p50_us)?,
        // A client in one process with the server: its CPU is that of both.
        client_cpu_us: middle(loads, |load| load.client_cpu_s * 1e6 / requests(load))?,
        server_cpu_us: middle(loads, server_cpu).filter(|us| us.is_finite()),
        wake_us: Some(seen.wake_us),
        spinning_latency_us: [Variant::BothSpin, Variant::ServerSpins]
            .into_iter()
            .filter_map(spinning)
            .reduce(f64::min),
    })
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
