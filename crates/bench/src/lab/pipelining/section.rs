//! The experiment's part of a report.

use super::evidence::{client_busy, server_busy};
use super::measure::Seen;
use crate::analysis::figure::{count, percent, time};
use crate::analysis::little::littles_law;
use crate::load::Spec;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::Finding;

/// What a cell says that could not be filled.
const UNKNOWN: &str = "-";

/// Tells the experiment.
pub fn section(all: &[Seen], findings: &[Finding], load: &Spec) -> Section {
    Section {
        title: "Pipelining: when do the replies leave?".to_owned(),
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
    let columns = [
        "target",
        "requests/s",
        "p50",
        "p99",
        "p99.9",
        "in flight",
        "Little's law",
        "client CPU",
        "busiest server thread",
        "server CPU per request",
        "with QUICKACK",
    ];
    let row = |seen: &Seen| {
        let Some(load) = seen.median() else { return vec![seen.name.clone()] };
        let latency = &load.latency;
        let ratio = littles_law(load.in_flight, load.throughput, latency.mean_us / 1e6);
        let server = load.server.map_or(UNKNOWN.to_owned(), |one| time(one.cpu_us_per_request));
        let quick = seen.median_quick();
        vec![
            seen.name.clone(),
            count(load.throughput),
            time(latency.p50_us),
            time(latency.p99_us),
            time(latency.p999_us),
            count(load.in_flight),
            format!("{ratio:.2}"),
            if seen.mixed { UNKNOWN.to_owned() } else { percent(client_busy(load)) },
            server_busy(seen).map_or(UNKNOWN.to_owned(), percent),
            server,
            quick.map_or(UNKNOWN.to_owned(), |quick| count(quick.throughput)),
        ]
    };
    table("Load", &columns, all.iter().map(row).collect())
}

fn costs(all: &[Seen]) -> Table {
    let columns = [
        "target",
        "polls per request",
        "receives",
        "sends",
        "from",
        "all system calls per request (traced)",
        "memory growth, bytes per request",
    ];
    let row = |seen: &Seen| {
        let mut row = vec![seen.name.clone()];
        match seen.account.as_ref().or(seen.traced.as_ref()) {
            Some(one) => {
                let each = [one.polls, one.receives, one.sends];
                row.extend(each.map(|calls| format!("{:.3}", one.per_request(calls))));
                row.push(one.source.clone());
            }
            None => row.extend([UNKNOWN; 4].map(str::to_owned)),
        }
        let traced = seen.traced.as_ref();
        row.push(
            traced.map_or(UNKNOWN.to_owned(), |one| format!("{:.3}", one.calls_per_request())),
        );
        let growth =
            (!seen.growth.is_empty()).then(|| crate::analysis::spread::median(&seen.growth));
        row.push(growth.map_or(UNKNOWN.to_owned(), |bytes| format!("{bytes:.1}")));
        row
    };
    table("What a request costs the server", &columns, all.iter().map(row).collect())
}

/// What the arithmetic of a benchmark says that takes the first reply of a batch for all of them.
fn single_batches(all: &[Seen]) -> Table {
    let columns = [
        "target",
        "first reply after",
        "last reply after",
        "segments per reply",
        "by the first reply",
    ];
    let row = |seen: &Seen| {
        let one = seen.batches.as_ref()?;
        let replies = one.replies().max(1) as f64;
        let segments = one.segments.map(|segments| format!("{:.2}", segments as f64 / replies));
        Some(vec![
            seen.name.clone(),
            time(one.first_us),
            time(one.last_us),
            segments.unwrap_or_else(|| UNKNOWN.to_owned()),
            one.by_the_first(),
        ])
    };
    table("One connection, batches of PING", &columns, all.iter().filter_map(row).collect())
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|&name| name.to_owned()).collect();
    Table { title: title.to_owned(), columns, rows }
}
