//! The experiment's part of a report.

use super::options::TEXTS;
use super::probe::Batches;
use super::subject::Subject;
use crate::analysis::figure::{cell, count, percent, time};
use crate::analysis::little::littles_law;
use crate::analysis::spread::median;
use crate::lab::io::Account;
use crate::lab::measure::Seen;
use crate::load::Spec;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Finding, Measurement};

/// Tells the experiment.
pub fn section(all: &[Subject], findings: Vec<Finding>, load: &Spec) -> Section {
    let load = TEXTS.sentence(
        "load",
        &[
            ("connections", &load.connections),
            ("pipeline", &load.pipeline),
            ("keys", &count(load.keys.count() as f64)),
            ("bytes", &load.data.1),
        ],
    );
    let how = [load, TEXTS.sentence("published", &[]), TEXTS.sentence("figures", &[])];
    Section {
        title: "Pipelining: when do the replies leave?".to_owned(),
        answers: all.iter().filter_map(speed).collect(),
        prose: how.into_iter().chain(all.iter().flat_map(|one| one.record.notes())).collect(),
        plots: vec![throughput(all), distribution(all)],
        tables: vec![loads(all), costs(all), single_batches(all)],
        findings,
    }
}

/// Its throughput, and what it sends where that is known.
fn speed(subject: &Subject) -> Option<(String, String)> {
    let load = subject.load()?;
    let rate = count(load.measurement.throughput);
    let speed = TEXTS.sentence("speed", &[("rate", &rate), ("pipeline", &subject.pipeline)]);
    let sends = subject.counted().map(|calls| calls.per_request(calls.sends));
    let sends = sends.map(|each| TEXTS.sentence("sends", &[("each", &format!("{each:.3}"))]));
    Some((name(subject), [Some(speed), sends].into_iter().flatten().collect::<Vec<_>>().join(" ")))
}

fn name(subject: &Subject) -> String {
    subject.record.name.clone()
}

fn throughput(all: &[Subject]) -> Plot {
    let title = "Throughput in batches";
    let mut plot = Plot::new(Kind::Bar, title, "target", "requests per second");
    plot.categories = all.iter().map(name).collect();
    let bars = |name: &str, of: fn(&Subject) -> Option<&Seen>| {
        let rate = |subject| Some(of(subject)?.measurement.throughput);
        let points = all.iter().enumerate().filter_map(|(at, one)| Some((at as f64, rate(one)?)));
        Series::new(name, points.collect())
    };
    let plot = plot.with(bars("as it is", Subject::load));
    let quick = bars("acknowledged at once", Subject::quick);
    if quick.points.is_empty() { plot } else { plot.with(quick) }
}

fn distribution(all: &[Subject]) -> Plot {
    let title = "Latency of requests in batches";
    let plot = Plot::new(Kind::Step, title, "microseconds", "share of requests").log(true, false);
    all.iter().filter_map(|one| Some((one, one.load()?))).fold(plot, |plot, (subject, load)| {
        let points = load.measurement.latency.cumulative.clone();
        plot.with(Series::new(&subject.record.name, points))
    })
}

fn loads(all: &[Subject]) -> Table {
    // Of a target without a load the name stands alone.
    let seen = |subject: &Subject, show: &dyn Fn(&Seen) -> String| {
        subject.load().map_or(String::new(), show)
    };
    let load = |subject: &Subject, show: &dyn Fn(&Measurement) -> String| {
        seen(subject, &|seen| show(&seen.measurement))
    };
    let law = |load: &Measurement| {
        let latency_s = load.latency.mean_us / 1e6;
        format!("{:.2}", littles_law(load.in_flight, load.throughput, latency_s))
    };
    let server_us =
        |load: &Measurement| cell(load.server.map(|server| server.cpu_us_per_request), time);
    let quick = |one: &Subject| one.quick().map(|quick| quick.measurement.throughput);
    Table::of(
        "Load",
        all,
        &[
            ("target", &|&one| name(one)),
            ("requests/s", &|one| load(one, &|m| count(m.throughput))),
            ("p50", &|one| load(one, &|m| time(m.latency.p50_us))),
            ("p99", &|one| load(one, &|m| time(m.latency.p99_us))),
            ("p99.9", &|one| load(one, &|m| time(m.latency.p999_us))),
            ("in flight", &|one| load(one, &|m| count(m.in_flight))),
            ("Little's law", &|one| load(one, &law)),
            ("client CPU", &|one| {
                let alone = !one.record.sight.mixed;
                seen(one, &|load| cell(alone.then(|| load.client_share()), percent))
            }),
            ("busiest server thread", &|one| load(one, &|_| cell(one.server_busy(), percent))),
            ("server CPU per request", &|one| load(one, &server_us)),
            ("with QUICKACK", &|one| load(one, &|_| cell(quick(one), count))),
        ],
    )
}

fn costs(all: &[Subject]) -> Table {
    let thousandths = |each: f64| format!("{each:.3}");
    let of = |one: &Subject, calls: fn(&Account) -> u64| {
        cell(one.counted().map(|one| one.per_request(calls(&one))), thousandths)
    };
    let calls = |one: &Subject| one.traced.as_ref().map(Account::calls_per_request);
    Table::of(
        "What a request costs the server",
        all,
        &[
            ("target", &|&one| name(one)),
            ("polls per request", &|one| of(one, |one| one.polls)),
            ("receives", &|one| of(one, |one| one.receives)),
            ("sends", &|one| of(one, |one| one.sends)),
            ("from", &|one| one.counted().map_or("-".to_owned(), |one| one.source)),
            ("all system calls per request (traced)", &|one| cell(calls(one), thousandths)),
            ("memory growth, bytes per request", &|one| {
                cell(median(&one.growth), |bytes| format!("{bytes:.1}"))
            }),
        ],
    )
}

/// What the arithmetic of a benchmark says that takes the first reply of a batch for all of them.
fn single_batches(all: &[Subject]) -> Table {
    let segments = |one: &Batches| {
        let segments = one.segments.map(|segments| segments as f64);
        cell(segments.map(|n| n / one.replies().max(1) as f64), |each| format!("{each:.2}"))
    };
    Table::of(
        "One connection, batches of PING",
        all.iter().filter_map(|one| Some((one, one.batches.as_ref()?))),
        &[
            ("target", &|(one, _)| name(one)),
            ("first reply after", &|(_, one)| time(one.first_us)),
            ("last reply after", &|(_, one)| time(one.last_us)),
            ("segments per reply", &|(_, one)| segments(one)),
            ("by the first reply", &|(_, one)| one.by_the_first()),
        ],
    )
}
