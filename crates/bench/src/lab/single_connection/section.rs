//! The experiment's part of a report.

use super::evidence::{client_us, idle_share, middle, server_us};
use super::measure::{Point, Seen, Way};
use crate::analysis::figure::{cell, cell_or_empty, count, percent, time};
use crate::lab::io::{Account, Histogram};
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Finding, FindingKind, Measurement};

/// Tells the experiment.
pub fn section(all: &[Seen], findings: &[Finding]) -> Section {
    Section {
        title: "A single connection: what does a request wait for?".to_owned(),
        answers: all.iter().map(|seen| (seen.name.clone(), cause(seen, findings))).collect(),
        prose: prose(all),
        plots: vec![throughput(all), events(all), poll_times(all)],
        tables: vec![loads(all), calls(all), variants(all)],
        findings: findings.to_vec(),
    }
}

fn prose(all: &[Seen]) -> Vec<String> {
    let mut prose = vec![
        "SETs on few connections, one request at a time on each. Throughput is from runs without a trace; polls, \
         receives and sends are from the server's own account, or from a short run of their own under strace, which \
         slows the server and lets events gather."
            .to_owned(),
        "Published for two servers that differed 8 times in throughput: 2,000,054 polls that brought one event each \
         against 444,528 polls that brought seven."
            .to_owned(),
    ];
    if let Some(seen) = all.first() {
        let wake = time(seen.wake_us);
        prose.push(format!("To wake a thread that sleeps on another core costs {wake} here."));
    }
    for seen in all {
        let notes = seen.faults.iter().chain(&seen.unseen);
        prose.extend(notes.map(|note| format!("{}: {note}", seen.name)));
    }
    prose
}

/// What limits it, in a sentence.
fn cause(seen: &Seen, findings: &[Finding]) -> String {
    let found = |kind| findings.iter().any(|one| one.kind == kind && one.target == seen.name);
    let way = seen.main_way().unwrap_or(Way::Tcp);
    let idle = seen.points.get(&(way, 1)).and_then(|point| idle_share(seen, point));
    let idle =
        idle.map(|share| format!(" On one connection {} of the machine was idle.", percent(share)));
    let idle = idle.unwrap_or_default();
    match (found(FindingKind::PollPerRequest), found(FindingKind::WakeupBound)) {
        (true, true) => format!(
            "The number of polls limits it with many connections; with one, the wake-up of sleeping cores.{idle}"
        ),
        (true, false) => format!("The number of polls limits it.{idle}"),
        (false, true) => {
            format!("The wake-up of sleeping cores limits it, not the number of polls.{idle}")
        }
        (false, false) => format!("Neither polls nor wake-ups limit it.{idle}"),
    }
}

/// The points of one way, ascending in connections.
fn of_way(seen: &Seen, way: Way) -> impl Iterator<Item = (usize, &Point)> {
    seen.points.iter().filter(move |((of, _), _)| *of == way).map(|((_, n), point)| (*n, point))
}

fn throughput(all: &[Seen]) -> Plot {
    let title = "Throughput, one request at a time per connection";
    let plot = Plot::new(Kind::Line, title, "connections", "requests per second").log(true, true);
    let both = |seen: &Seen| {
        [Way::Tcp, Way::Unix].map(|way| {
            let levels: Vec<(f64, Vec<f64>)> = of_way(seen, way)
                .map(|(n, point)| {
                    (n as f64, point.loads.iter().map(|one| one.throughput).collect())
                })
                .collect();
            Series::repeated(&format!("{}, {}", seen.name, way.word()), &levels)
        })
    };
    all.iter().flat_map(both).filter(|series| !series.points.is_empty()).fold(plot, Plot::with)
}

/// Events per poll with the most connections.
fn events(all: &[Seen]) -> Plot {
    let title = "Events per poll, with the most connections";
    let mut plot = Plot::new(Kind::Bar, title, "events", "share of polls");
    let last = |seen: &Seen| {
        let (_, point) = of_way(seen, seen.main_way()?).last()?;
        Some(point.best()?.events_per_poll.clone())
    };
    let histograms: Vec<(&str, Histogram)> =
        all.iter().filter_map(|seen| Some((seen.name.as_str(), last(seen)?))).collect();
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
fn poll_times(all: &[Seen]) -> Plot {
    let title = "Time in poll, one connection";
    let mut plot =
        Plot::new(Kind::Step, title, "microseconds at most", "share of polls").log(true, false);
    for seen in all {
        let Some(histogram) = seen.main_way().and_then(|way| times(seen.points.get(&(way, 1))?))
        else {
            continue;
        };
        let total: u64 = histogram.iter().map(|(_, n)| n).sum();
        let mut below = 0;
        let points = histogram.iter().map(|(from, n)| {
            below += n;
            ((from * 2).max(1) as f64 / 1000.0, below as f64 / total as f64)
        });
        let points = points.collect();
        plot = plot.with(Series::new(&seen.name, points));
    }
    plot
}

/// Times in poll: of the server's own account, else of a trace.
fn times(point: &Point) -> Option<&Histogram> {
    let both = [&point.account, &point.traced];
    both.into_iter().flatten().map(|one| &one.poll_ns).find(|histogram| !histogram.is_empty())
}

/// A point of a target: which, over which way, with how many connections.
type Place<'a> = (&'a Seen, Way, usize, &'a Point);

fn places(all: &[Seen]) -> impl Iterator<Item = Place<'_>> {
    let of = |seen| move |((way, n), point): (&(Way, usize), _)| (seen, *way, *n, point);
    all.iter().flat_map(move |seen| seen.points.iter().map(of(seen)))
}

fn loads(all: &[Seen]) -> Table {
    let median =
        |(.., point): &Place<'_>, figure: fn(&Measurement) -> f64, show: fn(f64) -> String| {
            cell(middle(&point.loads, figure), show)
        };
    Table::of(
        "Load",
        places(all),
        &[
            ("target", &|(seen, ..)| seen.name.clone()),
            ("way", &|(_, way, ..)| way.word().to_owned()),
            ("connections", &|(_, _, n, _)| n.to_string()),
            ("requests/s", &|place| median(place, |one| one.throughput, count)),
            ("p50", &|place| median(place, |one| one.latency.p50_us, time)),
            ("p99", &|place| median(place, |one| one.latency.p99_us, time)),
            ("client CPU per request", &|place| median(place, client_us, time)),
            ("server CPU per request", &|place| median(place, server_us, time)),
            ("idle machine", &|(seen, .., point)| cell(idle_share(seen, point), percent)),
        ],
    )
}

fn calls(all: &[Seen]) -> Table {
    let polls = |point: &Point| {
        let mut timed = [&point.account, &point.traced].into_iter().flatten();
        let timed = timed.find_map(|one| Some((one.poll_ns_median()?, &one.source)));
        timed.map_or("-".to_owned(), |(ns, source)| {
            format!("{} ({source})", time(ns as f64 / 1000.0))
        })
    };
    let each = |one: &Account, calls: u64| format!("{:.2}", one.per_request(calls));
    Table::of(
        "What a request costs the server",
        places(all).filter_map(|place| Some((place, place.3.best()?))),
        &[
            ("target", &|((seen, ..), _)| seen.name.clone()),
            ("way", &|((_, way, ..), _)| way.word().to_owned()),
            ("connections", &|((_, _, n, _), _)| n.to_string()),
            ("from", &|(_, one)| one.source.clone()),
            ("polls per request", &|(_, one)| format!("{:.3}", one.per_request(one.polls))),
            ("events per poll", &|(_, one)| format!("{:.2}", one.events_each())),
            ("receives per request", &|(_, one)| each(one, one.receives)),
            ("sends per request", &|(_, one)| each(one, one.sends)),
            ("half of the polls take at most", &|((.., point), _)| polls(point)),
        ],
    )
}

fn variants(all: &[Seen]) -> Table {
    let rows = all.iter().flat_map(|seen| {
        let as_is = seen.main_way().and_then(|way| seen.points.get(&(way, 1)));
        let as_is = as_is.map(|point| (seen, "as it is", &point.loads));
        let others = seen.variants.iter();
        as_is.into_iter().chain(others.map(move |(which, loads)| (seen, which.words(), loads)))
    });
    Table::of(
        "Variants",
        rows,
        &[
            ("target", &|(seen, ..)| seen.name.clone()),
            ("on one connection", &|(_, words, _)| (*words).to_owned()),
            ("requests/s", &|(.., all)| cell_or_empty(middle(all, |one| one.throughput), count)),
            ("p50", &|(.., all)| cell_or_empty(middle(all, |one| one.latency.p50_us), time)),
            ("p99", &|(.., all)| cell_or_empty(middle(all, |one| one.latency.p99_us), time)),
        ],
    )
}
