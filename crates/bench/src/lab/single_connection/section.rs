//! The experiment's part of a report.

use super::options::TEXTS;
use super::subject::{Point, Subject, VARIANTS, WAYS, client_us, server_us};
use crate::analysis::figure::{cell, cell_or_empty, count, percent, time};
use crate::lab::io::{Account, Histogram};
use crate::lab::measure::Seen;
use crate::lab::record::middle;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Finding, FindingKind};

/// Tells the experiment.
pub fn section(all: &[Subject], findings: Vec<Finding>) -> Section {
    let wake = all.first().map(|one| TEXTS.sentence("wake", &[("wake", &time(one.wake_us))]));
    let how = ["load", "published"].map(|text| TEXTS.sentence(text, &[]));
    let notes = all.iter().flat_map(|one| one.record.notes());
    Section {
        title: "A single connection: what does a request wait for?".to_owned(),
        answers: all.iter().map(|one| (one.record.name.clone(), cause(one, &findings))).collect(),
        prose: how.into_iter().chain(wake).chain(notes).collect(),
        plots: vec![throughput(all), events(all), poll_times(all)],
        tables: vec![loads(all), calls(all), variants(all)],
        findings,
    }
}

/// Its speed on one connection, and what limits it.
fn cause(subject: &Subject, findings: &[Finding]) -> String {
    let name = &subject.record.name;
    let found = |kind| findings.iter().any(|one| one.kind == kind && one.target == *name);
    let cause = match (found(FindingKind::PollPerRequest), found(FindingKind::WakeupBound)) {
        (true, true) => "polls and wake-ups",
        (true, false) => "polls",
        (false, true) => "wake-ups",
        (false, false) => "neither",
    };
    let speed = |point: &Point<'_>| {
        let rate = middle(&point.loads(), |seen| seen.measurement.throughput);
        rate.is_finite().then(|| TEXTS.sentence("speed", &[("rate", &count(rate))]))
    };
    let speed = subject.alone().as_ref().and_then(speed);
    let idle =
        |point: Point<'_>| TEXTS.sentence("idle", &[("share", &percent(point.idle_share()))]);
    let idle = subject.alone().map(idle);
    speed.into_iter().chain([TEXTS.sentence(cause, &[])]).chain(idle).collect::<Vec<_>>().join(" ")
}

fn throughput(all: &[Subject]) -> Plot {
    let title = "Throughput, one request at a time per connection";
    let plot = Plot::new(Kind::Line, title, "connections", "requests per second").log(true, true);
    let both = |one: &Subject| {
        WAYS.map(|way| one.record.throughput(way, &format!("{}, {way}", one.record.name)))
    };
    all.iter().flat_map(both).filter(|series| !series.points.is_empty()).fold(plot, Plot::with)
}

/// Events per poll with the most connections.
fn events(all: &[Subject]) -> Plot {
    let title = "Events per poll, with the most connections";
    let mut plot = Plot::new(Kind::Bar, title, "events", "share of polls");
    let last = |one: &Subject| {
        let last = one.main_points().last()?;
        let account = last.known()?;
        Some((one.record.name.clone(), account.events_per_poll))
    };
    let histograms: Vec<(String, Histogram)> = all.iter().filter_map(last).collect();
    let mut buckets: Vec<u64> =
        histograms.iter().flat_map(|(_, each)| each.iter().map(|(from, _)| *from)).collect();
    buckets.sort_unstable();
    buckets.dedup();
    plot.categories = buckets.iter().map(|from| bucket(*from)).collect();
    for (name, histogram) in &histograms {
        let total: u64 = histogram.iter().map(|(_, n)| n).sum();
        let place = |from: u64| buckets.iter().position(|one| *one == from).unwrap_or(0) as f64;
        let points = histogram.iter().map(|(from, n)| (place(*from), *n as f64 / total as f64));
        plot = plot.with(Series::new(name, points.collect()));
    }
    plot
}

/// `1`, `2-3`, `4-7` ...
fn bucket(from: u64) -> String {
    if from < 2 { from.to_string() } else { format!("{from}-{}", from * 2 - 1) }
}

/// Time in poll on one connection: share of polls that took at most so long.
fn poll_times(all: &[Subject]) -> Plot {
    let title = "Time in poll, one connection";
    let plot =
        Plot::new(Kind::Step, title, "microseconds at most", "share of polls").log(true, false);
    let series = |one: &Subject| {
        let point = one.alone()?;
        let histogram = point.accounts().map(|one| &one.poll_ns).find(|times| !times.is_empty())?;
        let total: u64 = histogram.iter().map(|(_, n)| n).sum();
        let mut below = 0;
        let points = histogram.iter().map(|(from, n)| {
            below += n;
            ((from * 2).max(1) as f64 / 1000.0, below as f64 / total as f64)
        });
        Some(Series::new(&one.record.name, points.collect()))
    };
    all.iter().filter_map(series).fold(plot, Plot::with)
}

fn loads(all: &[Subject]) -> Table {
    let median = |point: &Point<'_>, figure: fn(&Seen) -> f64, show: fn(f64) -> String| {
        cell(middle(&point.loads(), figure), show)
    };
    Table::of(
        "Load",
        all.iter().flat_map(Subject::points),
        &[
            ("target", &|point| point.of.record.name.clone()),
            ("way", &|point| point.way.to_owned()),
            ("connections", &|point| point.connections.to_string()),
            ("requests/s", &|point| median(point, |one| one.measurement.throughput, count)),
            ("p50", &|point| median(point, |one| one.measurement.latency.p50_us, time)),
            ("p99", &|point| median(point, |one| one.measurement.latency.p99_us, time)),
            ("client CPU per request", &|point| median(point, client_us, time)),
            ("server CPU per request", &|point| median(point, server_us, time)),
            ("idle machine", &|point| cell(point.idle_share(), percent)),
        ],
    )
}

fn calls(all: &[Subject]) -> Table {
    let polls = |point: &Point<'_>| {
        let timed = point.accounts().find_map(|one| Some((one.poll_ns_median()?, &one.source)));
        timed.map_or("-".to_owned(), |(ns, source)| {
            format!("{} ({source})", time(ns as f64 / 1000.0))
        })
    };
    let each = |one: &Account, calls: u64| format!("{:.2}", one.per_request(calls));
    Table::of(
        "What a request costs the server",
        all.iter().flat_map(Subject::points).filter_map(|point| Some((point.known()?, point))),
        &[
            ("target", &|(_, point)| point.of.record.name.clone()),
            ("way", &|(_, point)| point.way.to_owned()),
            ("connections", &|(_, point)| point.connections.to_string()),
            ("from", &|(one, _)| one.source.clone()),
            ("polls per request", &|(one, _)| format!("{:.3}", one.per_request(one.polls))),
            ("events per poll", &|(one, _)| format!("{:.2}", one.events_each())),
            ("receives per request", &|(one, _)| each(one, one.receives)),
            ("sends per request", &|(one, _)| each(one, one.sends)),
            ("half of the polls take at most", &|(_, point)| polls(point)),
        ],
    )
}

fn variants(all: &[Subject]) -> Table {
    let rows = all.iter().flat_map(|subject| {
        let as_it_is = subject.alone().map(|point| ("as it is", point.loads()));
        let loads = |variant| (variant, subject.record.at(variant, 1));
        let tried = VARIANTS.map(loads).into_iter().filter(|(_, loads)| !loads.is_empty());
        as_it_is.into_iter().chain(tried).map(move |(words, loads)| (subject, words, loads))
    });
    let figure = |loads: &[&Seen], of: fn(&Seen) -> f64, show: fn(f64) -> String| {
        cell_or_empty(middle(loads, of), show)
    };
    Table::of(
        "Variants",
        rows,
        &[
            ("target", &|(one, ..)| one.record.name.clone()),
            ("on one connection", &|(_, words, _)| (*words).to_owned()),
            ("requests/s", &|(.., all)| figure(all, |one| one.measurement.throughput, count)),
            ("p50", &|(.., all)| figure(all, |one| one.measurement.latency.p50_us, time)),
            ("p99", &|(.., all)| figure(all, |one| one.measurement.latency.p99_us, time)),
        ],
    )
}
