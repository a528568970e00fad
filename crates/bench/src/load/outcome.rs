//! From what the threads did to the measurement that everybody reads.

use super::plan::{Plan, shown};
use super::record::Gathered;
use super::spec::{Amount, Arrivals, Driver, Pacing, Pattern, Spec};
use super::task::Outcome;
use crate::host::{self, Usage};
use crate::result::{Failures, Latency, Measurement, PerConnection};

/// Puts a measurement together; `seconds` is how long the load lasted.
pub fn measurement(
    plan: &Plan,
    outcomes: Vec<Outcome>,
    mut gathered: Gathered,
    usage: Option<Usage>,
    seconds: f64,
) -> Measurement {
    let spec = &plan.spec;
    let replies: u64 = outcomes.iter().map(|one| one.tally.replies).sum();
    let area: f64 = outcomes.iter().map(|one| one.area).sum();
    let in_flight_max = outcomes.iter().map(|one| one.peak).sum();
    let mut served: Vec<u64> = outcomes.iter().flat_map(|one| one.served.clone()).collect();
    served.sort_unstable();
    let mut failures = Failures::default();
    let mut unsent = 0;
    for one in outcomes {
        let more = one.tally.failures;
        failures.errors += more.errors;
        failures.lost += more.lost;
        failures.nil += more.nil;
        failures.wrong += more.wrong;
        if failures.first_error.is_empty() {
            failures.first_error = more.first_error;
        }
        if let Some(waited) = &one.unsent {
            unsent += waited.len();
            gathered.add_unsent(waited);
        }
    }
    let series = gathered.series(seconds);
    let (client_cpu_s, server, other_cpus) = usage.map_or((0.0, None, 0.0), |u| u.stop(replies));
    let target = match (spec.target.as_str(), spec.driver) {
        ("", Driver::InProcess) => "in-process".to_owned(),
        ("", _) => spec.address.to_string(),
        (name, _) => name.to_owned(),
    };
    let mut measured = Measurement {
        load: if spec.name.is_empty() { name(spec) } else { spec.name.clone() },
        target,
        parameters: parameters(plan),
        seconds,
        requests: replies.saturating_sub(failures.errors + failures.nil + failures.wrong),
        failures,
        throughput: replies as f64 / seconds,
        in_flight: area / 1e9 / seconds,
        latency: gathered.latency(),
        series,
        client_cpu_s,
        server,
        other_cpus,
        load_average: host::load_average(),
        offered: match spec.pacing {
            Pacing::Open { rate, .. } => rate,
            Pacing::Closed => 0.0,
        },
        unsent,
        in_flight_max,
        per_connection: PerConnection::of(&served),
        hit_ratio: None,
    };
    if !measured.has_rate() {
        measured.throughput = 0.0;
        measured.latency = Latency::default();
        measured.series.clear();
    }
    measured
}

/// `set`, `1:10 set:get`, or a command as it was typed.
fn name(spec: &Spec) -> String {
    if let [one] = &spec.commands[..] {
        let words: Vec<&[u8]> = one.args.iter().map(Vec::as_slice).collect();
        return match words[..] {
            [name, b"__key__"] | [name, b"__key__", b"__data__"] | [name] => lower(name),
            _ => shown(one),
        };
    }
    let joined = |part: &dyn Fn(&super::spec::Command) -> String| {
        spec.commands.iter().map(part).collect::<Vec<_>>().join(":")
    };
    let weights = joined(&|one| one.weight.to_string());
    format!("{weights} {}", joined(&|one| lower(&one.args[0])))
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_lowercase()
}

/// What a table shows as columns. Only what differs from one load to the next on purpose: no seed,
/// no timeout.
fn parameters(plan: &Plan) -> Vec<(String, String)> {
    let spec = &plan.spec;
    let mut list: Vec<(&str, String)> = vec![
        ("connections", spec.connections.to_string()),
        ("pipeline", spec.pipeline.to_string()),
        ("threads", spec.threads.to_string()),
        ("driver", driver_name(spec.driver).to_owned()),
    ];
    if let Driver::Multiplexed { callers } = spec.driver {
        list.push(("callers", callers.to_string()));
    }
    list.push(("keys", plan.keys.to_string()));
    list.push(("pattern", patterns(spec)));
    list.push(("data", range(spec.data)));
    if let Pacing::Open { rate, arrivals } = spec.pacing {
        let kind = match arrivals {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
        };
        list.push(("rate", format!("{rate} {kind}")));
    }
    match spec.amount {
        Amount::Requests(n) => list.push(("amount", format!("{n} requests"))),
        Amount::Seconds(s) => list.push(("amount", format!("{s} s"))),
    }
    let flags = [
        ("resp3", spec.resp3),
        ("verify", spec.verify),
        ("nagle", !spec.no_delay),
        ("quick ack", spec.quick_ack),
        ("spin", spec.spin),
    ];
    list.extend(flags.iter().filter(|(_, on)| *on).map(|(name, _)| (*name, "yes".to_owned())));
    if spec.misses > 0.0 {
        list.push(("misses", spec.misses.to_string()));
    }
    list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The name by which the command line knows it.
pub fn driver_name(driver: Driver) -> &'static str {
    match driver {
        Driver::LockStep => "lock-step",
        Driver::Window => "window",
        Driver::Multiplexed { .. } => "multiplexed",
        Driver::Unbounded => "unbounded",
        Driver::InProcess => "in-process",
    }
}

fn patterns(spec: &Spec) -> String {
    let mut names: Vec<String> = spec.commands.iter().map(|one| pattern(one.pattern)).collect();
    names.dedup();
    names.join(":")
}

fn pattern(pattern: Pattern) -> String {
    match pattern {
        Pattern::Uniform => "uniform".to_owned(),
        Pattern::Zipf { exponent } => format!("zipf({exponent})"),
        Pattern::HotSet { keys, requests } => format!("hot-set({keys},{requests})"),
        Pattern::Gaussian => "gaussian".to_owned(),
        Pattern::Sequential => "sequential".to_owned(),
        Pattern::Parallel => "parallel".to_owned(),
    }
}

fn range((low, high): (usize, usize)) -> String {
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}
