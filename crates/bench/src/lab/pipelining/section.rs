//! The experiment's part of a report.

use super::evidence::{client_busy, server_busy};
use super::measure::Seen;
use super::probe::Batches;
use crate::analysis::figure::{cell, count, percent, time};
use crate::analysis::little::littles_law;
use crate::analysis::spread::median;
use crate::lab::io::Account;
use crate::load::Spec;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Finding, Measurement};

/// Tells the experiment.
pub fn section(all: &[Seen], findings: &[Finding], load: &Spec) -> Section {
    Section {
        title: "Pipelining: when do the replies leave?".to_owned(),
        answers: Vec::new(),
        prose: prose(all, load),
        plots: vec![throughput(all), distribution(all)],
        tables: vec![loads(all), costs(all), single_batches(all)],
        findings: findings.to_vec(),
    }
}

fn prose(all: &[Seen], load: &Spec) -> Vec<String> {
    let keys = load.keys.count();
    let mut prose = vec![
        format!(
            "{} connections send batches of {} requests on {} keys with values of {} bytes, each batch when the one \
             before is answered. A server may send each reply by itself, gather them until there is nothing left to \
             read, or until there are enough bytes; and Nagle's algorithm may hold a small send back until the one \
             before is acknowledged.",
            load.connections, load.pipeline, count(keys as f64), load.data.1
        ),
        "Published for one server before and after it gathered its replies: 3.65M to 4.21M operations a second, \
         99th percentile from 8.1 to 4.8 ms; and 33,000 against 193,000 requests a second for one whose batches \
         stalled, which a benchmark that takes the first reply of a batch for all of them does not show."
            .to_owned(),
        "What a server allocates cannot be seen from outside: the growth of its own figure (used_memory), else of its \
         resident memory, stands for it; values that were written are part of it. Little's law on the load says \
         whether its figures hold together; on single batches, what the latency of the first reply hides."
            .to_owned(),
    ];
    for seen in all {
        let notes = seen.faults.iter().chain(&seen.unseen);
        prose.extend(notes.map(|note| format!("{}: {note}", seen.name)));
    }
    prose
}

fn throughput(all: &[Seen]) -> Plot {
    let title = "Throughput in batches";
    let mut plot = Plot::new(Kind::Bar, title, "target", "requests per second");
    plot.categories = all.iter().map(|seen| seen.name.clone()).collect();
    let bars = |name: &str, of: &dyn Fn(&Seen) -> Option<f64>| {
        let points = all.iter().enumerate().filter_map(|(at, seen)| Some((at as f64, of(seen)?)));
        Series::new(name, points.collect())
    };
    plot.with(bars("as it is", &|seen| Some(seen.median()?.throughput)))
        .with(bars("acknowledged at once", &|seen| Some(seen.median_quick()?.throughput)))
}

fn distribution(all: &[Seen]) -> Plot {
    let title = "Latency of requests in batches";
    let plot = Plot::new(Kind::Step, title, "microseconds", "share of requests").log(true, false);
    all.iter().filter_map(|seen| Some((seen, seen.median()?))).fold(plot, |plot, (seen, load)| {
        plot.with(Series::new(&seen.name, load.latency.cumulative.clone()))
    })
}

fn loads(all: &[Seen]) -> Table {
    // Of a target without a load the name stands alone.
    let load = |seen: &Seen, show: &dyn Fn(&Measurement) -> String| {
        seen.median().map_or(String::new(), show)
    };
    let law = |load: &Measurement| {
        let latency_s = load.latency.mean_us / 1e6;
        format!("{:.2}", littles_law(load.in_flight, load.throughput, latency_s))
    };
    let server_us =
        |load: &Measurement| cell(load.server.map(|server| server.cpu_us_per_request), time);
    Table::of(
        "Load",
        all,
        &[
            ("target", &|seen| seen.name.clone()),
            ("requests/s", &|seen| load(seen, &|m| count(m.throughput))),
            ("p50", &|seen| load(seen, &|m| time(m.latency.p50_us))),
            ("p99", &|seen| load(seen, &|m| time(m.latency.p99_us))),
            ("p99.9", &|seen| load(seen, &|m| time(m.latency.p999_us))),
            ("in flight", &|seen| load(seen, &|m| count(m.in_flight))),
            ("Little's law", &|seen| load(seen, &law)),
            ("client CPU", &|seen| {
                load(seen, &|m| cell((!seen.mixed).then(|| client_busy(m)), percent))
            }),
            ("busiest server thread", &|seen| load(seen, &|_| cell(server_busy(seen), percent))),
            ("server CPU per request", &|seen| load(seen, &server_us)),
            ("with QUICKACK", &|seen| {
                load(seen, &|_| cell(seen.median_quick().map(|quick| quick.throughput), count))
            }),
        ],
    )
}

fn costs(all: &[Seen]) -> Table {
    let of = |seen: &Seen, calls: fn(&Account) -> u64| {
        let each = seen.counted().map(|one| one.per_request(calls(one)));
        cell(each, |each| format!("{each:.3}"))
    };
    let calls = |seen: &Seen| seen.traced.as_ref().map(Account::calls_per_request);
    let growth = |seen: &Seen| median(&seen.growth);
    Table::of(
        "What a request costs the server",
        all,
        &[
            ("target", &|seen| seen.name.clone()),
            ("polls per request", &|seen| of(seen, |one| one.polls)),
            ("receives", &|seen| of(seen, |one| one.receives)),
            ("sends", &|seen| of(seen, |one| one.sends)),
            ("from", &|s| s.counted().map_or("-".to_owned(), |one| one.source.clone())),
            ("all system calls per request (traced)", &|seen| {
                cell(calls(seen), |each| format!("{each:.3}"))
            }),
            ("memory growth, bytes per request", &|seen| {
                cell(growth(seen), |bytes| format!("{bytes:.1}"))
            }),
        ],
    )
}

/// What the arithmetic of a benchmark says that takes the first reply of a batch for all of them.
fn single_batches(all: &[Seen]) -> Table {
    let segments = |one: &Batches| {
        let segments = one.segments.map(|segments| segments as f64);
        cell(segments.map(|n| n / one.replies().max(1) as f64), |each| format!("{each:.2}"))
    };
    Table::of(
        "One connection, batches of PING",
        all.iter().filter_map(|seen| Some((&seen.name, seen.batches.as_ref()?))),
        &[
            ("target", &|(name, _)| (*name).clone()),
            ("first reply after", &|(_, one)| time(one.first_us)),
            ("last reply after", &|(_, one)| time(one.last_us)),
            ("segments per reply", &|(_, one)| segments(one)),
            ("by the first reply", &|(_, one)| one.by_the_first()),
        ],
    )
}
