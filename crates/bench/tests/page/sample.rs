//! A report like that of a full run of the laboratory: five experiments, findings with evidence,
//! and names and replies from outside which try to break the page. Figures are computed by
//! formulas, not measured.

use bench::analysis::findings::{Admission, Evidence, Polls, Stall, Trust, Wakeups, judge};
use bench::analysis::retrograde::Level;
use bench::analysis::usl;
use bench::report::{Document, Kind, Plot, Section, Series, Table};
use bench::result::{Finding, Latency, Machine};

/// A name which a page must not interpret as a tag.
pub const HOSTILE: &str =
    "<script>alert('x')</script> & \"co\"\u{1b}[31m http://example.invalid/x.png";

const LEVELS: [f64; 12] =
    [1.0, 2.0, 5.0, 6.0, 15.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0, 10_000.0];

/// Name, throughput of one client, contention and coherency.
const TARGETS: [(&str, f64, f64, f64); 4] = [
    ("sheafdb", 31_000.0, 0.08, 1e-9),
    ("redis-server", 24_000.0, 0.13, 4e-8),
    ("valkey-server", 19_000.0, 0.10, 3e-5),
    ("model:single-writer", 15_000.0, 0.20, 2e-7),
];

/// The machine of the sample.
pub fn machine() -> Machine {
    Machine {
        cpu: "Example CPU @ 2.90GHz".to_owned(),
        cores: 2,
        memory_bytes: 8 << 30,
        kernel: "6.1.0-example".to_owned(),
        virtualization: "kvm".to_owned(),
        clock_source: "tsc".to_owned(),
    }
}

/// The report of the sample.
pub fn document() -> Document {
    Document {
        title: "Laboratory: five experiments".to_owned(),
        intro: vec![
            "sheafdb-bench lab all --target sheafdb,redis-server --report report.html".to_owned(),
            format!(
                "Started 2026-01-05 20:15 UTC; 3 repetitions; the last target is called {HOSTILE}"
            ),
        ],
        sections: vec![concurrency(), pipelining(), ramp(), polls(), acks()],
    }
}

/// What the experiments add to the answer about each of these.
fn answers(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "It was measured.".to_owned())).collect()
}

fn findings(experiment: &str, target: &str, change: impl FnOnce(&mut Evidence)) -> Vec<Finding> {
    let trust = Trust { repetitions: 3, ..Trust::default() };
    let mut evidence = Evidence {
        experiment: experiment.to_owned(),
        target: target.to_owned(),
        trust,
        ..Evidence::default()
    };
    change(&mut evidence);
    judge(&evidence)
}

/// A repeatable deviation around 1.
fn wobble(a: usize, b: usize) -> f64 {
    let mixed = (a * 7919 + b * 104_729 + 13) % 101;
    0.96 + mixed as f64 / 1250.0
}

fn throughput(target: usize, load: f64) -> f64 {
    let (_, lambda, sigma, kappa) = TARGETS[target];
    lambda * load / (1.0 + sigma * (load - 1.0) + kappa * load * (load - 1.0))
}

fn repetitions(target: usize, load: f64) -> Vec<f64> {
    (0..3).map(|r| throughput(target, load) * wobble(target * 31 + load as usize, r)).collect()
}

fn concurrency() -> Section {
    let mut rate = Plot::new(
        Kind::Line,
        "Throughput against connections (median and range of 3)",
        "connections",
        "requests/s",
    )
    .log(true, false);
    let mut latency =
        Plot::new(Kind::Line, "p99 latency against connections", "connections", "microseconds")
            .log(true, true);
    let mut rows = Vec::new();
    for (at, (name, ..)) in TARGETS.iter().enumerate() {
        let levels: Vec<(f64, Vec<f64>)> =
            LEVELS.iter().map(|load| (*load, repetitions(at, *load))).collect();
        let measured = Series::repeated(name, &levels);
        let fit = usl::fit(&measured.points).expect("twelve levels");
        for (load, rate) in &measured.points {
            rows.push(vec![
                (*name).to_owned(),
                format!("{load}"),
                format!("{rate:.0}"),
                format!("{:.1}", 1.8e6 * load / rate),
            ]);
        }
        let tail = measured.points.iter().map(|(load, x)| (*load, 1.8e6 * load / x)).collect();
        latency = latency.with(Series::new(name, tail));
        rate = rate.with(measured);
        if at == 2 {
            let curve: Vec<(f64, f64)> = (0..=80)
                .map(|i| 10_f64.powf(f64::from(i) / 20.0))
                .map(|n| (n, fit.throughput(n)))
                .collect();
            rate = rate.with(Series::curve("its scalability law", name, curve));
        }
    }
    let levels: Vec<Level> = LEVELS.iter().map(|n| Level::new(*n, &repetitions(2, *n))).collect();
    let mut found = findings("concurrency", TARGETS[2].0, |e| e.levels = levels);
    found.extend(findings("concurrency", HOSTILE, |e| {
        e.admission = Some(Admission {
            opened: 2,
            served: 1,
            waited_s: 1.0,
            served_after_close: Some(1),
            ..Admission::default()
        });
        e.trust.other_cpus = 0.31;
    }));
    let columns = ["target", "connections", "requests/s", "p99 us"].map(str::to_owned).to_vec();
    Section {
        title: "Concurrency".to_owned(),
        answers: answers(&TARGETS.map(|(name, ..)| name)),
        prose: vec![
            "SET with 64-byte values at 1 to 10,000 connections, one request at a time on each. \
             Targets took turns within each level."
                .to_owned(),
        ],
        plots: vec![rate, latency],
        tables: vec![Table { title: "Every level".to_owned(), columns, rows }],
        findings: found,
    }
}

/// The share of requests at or below each latency: a body around `middle`, and a stalled part at 41
/// ms.
fn distribution(middle: f64, stalled: f64) -> Vec<(f64, f64)> {
    let body = |us: f64| 1.0 / (1.0 + (us / middle).powf(-4.5));
    let stall = |us: f64| 1.0 / (1.0 + (us / 41_000.0).powf(-90.0));
    (0..=130)
        .map(|i| 20.0 * 10_f64.powf(f64::from(i) / 34.0))
        .map(|us| (us, (1.0 - stalled) * body(us) + stalled * stall(us)))
        .collect()
}

fn pipelining() -> Section {
    let mut plot = Plot::new(
        Kind::Step,
        "Latency distribution at -c 32 --pipeline 30",
        "microseconds",
        "share of requests",
    )
    .log(true, false);
    for (name, middle, stalled) in [
        ("sheafdb", 260.0, 0.0),
        ("redis-server", 420.0, 0.0),
        ("model:flush-per-reply", 350.0, 0.6),
    ] {
        plot = plot.with(Series::new(name, distribution(middle, stalled)));
    }
    // The experiment's bars stand in front, named after loads.
    let mut bars = Plot::new(Kind::Bar, "Throughput in batches", "target", "requests per second");
    bars.categories =
        ["sheafdb", "redis-server", "model:flush-per-reply"].map(str::to_owned).to_vec();
    let bars = bars
        .with(Series::new("as it is", vec![(0.0, 410e3), (1.0, 260e3), (2.0, 33e3)]))
        .with(Series::new("acknowledged at once", vec![(2.0, 193e3)]));
    let found = findings("pipelining", "model:flush-per-reply", |e| {
        e.stall = Some(Stall {
            pipeline: 30,
            in_flight: 960.0,
            throughput: 33_000.0,
            latency: Latency {
                mean_us: 24_800.0,
                cumulative: distribution(350.0, 0.6),
                ..Latency::default()
            },
            client_busy: 0.12,
            server_busy: Some(0.18),
            quick_ack_throughput: Some(193_000.0),
        });
    });
    Section {
        title: "Pipelining".to_owned(),
        answers: answers(&["sheafdb", "redis-server", "model:flush-per-reply"]),
        prose: vec!["Ratio 1:10, 256-byte values, keys uniform over ten million.".to_owned()],
        plots: vec![bars, plot],
        findings: found,
        ..Section::default()
    }
}

fn ramp() -> Section {
    let mut rate =
        Plot::new(Kind::Line, "Throughput over time, 30 workers", "seconds", "requests/s");
    let mut tail = Plot::new(Kind::Line, "p99 over time, 30 workers", "seconds", "microseconds");
    for (at, (name, ..)) in TARGETS.iter().enumerate() {
        let seconds = || (1..=60).map(|s| (f64::from(s), wobble(at, s as usize)));
        let base = throughput(at, 30.0);
        rate = rate.with(Series::new(name, seconds().map(|(s, w)| (s, base * w)).collect()));
        let tails = seconds().map(|(s, w)| (s, 5.4e7 / base / w / w)).collect();
        tail = tail.with(Series::new(name, tails));
    }
    let levels = [5.0, 15.0, 30.0, 60.0].map(|n| Level::new(n, &[throughput(0, n)])).to_vec();
    Section {
        title: "Ramp".to_owned(),
        answers: answers(&TARGETS.map(|(name, ..)| name)),
        prose: vec!["Levels of 60 seconds; the two plots show the one of 30 workers.".to_owned()],
        plots: vec![rate, tail, Plot::new(Kind::Line, "Load average", "seconds", "load")],
        findings: findings("ramp", "sheafdb", |e| e.levels = levels),
        ..Section::default()
    }
}

fn polls() -> Section {
    let shares = |name: &str, of: &[f64]| {
        let powers = (0..).map(|power| 2_f64.powi(power));
        Series::new(name, powers.zip(of.iter().copied()).collect())
    };
    let mut events = Plot::new(
        Kind::Bar,
        "Events per poll at 50 connections",
        "events that one poll brought",
        "share of polls",
    );
    events.series = vec![
        shares("sheafdb", &[0.21, 0.08, 0.06, 0.10, 0.23, 0.32]),
        shares("redis-server", &[0.35, 0.20, 0.18, 0.15, 0.09, 0.03]),
        shares("model:poll-per-request", &[0.97, 0.03]),
    ];
    let mut causes = Plot::new(Kind::Bar, "One round trip", "where the time goes", "microseconds");
    causes.categories =
        ["client works", "server works", "asleep", "asleep with busy polling on both sides"]
            .map(str::to_owned)
            .to_vec();
    causes.series = vec![
        Series::new("sheafdb", vec![(0.0, 7.0), (1.0, 6.1), (2.0, 52.0), (3.0, 3.3)]),
        Series::new("redis-server", vec![(0.0, 7.2), (1.0, 9.4), (2.0, 55.5)]),
    ];
    let mut found = findings("single-connection", "model:poll-per-request", |e| {
        e.polls = Some(Polls {
            in_flight: 50.0,
            requests: 1_000_000,
            polls: 1_000_054,
            events: 1_030_000,
            source: "strace".to_owned(),
        });
    });
    found.extend(findings("single-connection", "sheafdb", |e| {
        e.wakeups = Some(Wakeups {
            latency_us: 65.1,
            client_cpu_us: 7.0,
            server_cpu_us: Some(6.1),
            wake_us: Some(24.0),
            idle_cpus: 1.1,
            awake: Some(("neither sleeps", 16.4)),
        });
    }));
    Section {
        title: "Single connection".to_owned(),
        answers: answers(&["sheafdb", "redis-server", "model:poll-per-request"]),
        plots: vec![events, causes],
        findings: found,
        ..Section::default()
    }
}

/// Names of groups and of ways to acknowledge, as the short form of the experiment `acks` has them.
pub const GROUPS: [&str; 14] = [
    "base",
    "c=2",
    "c=16",
    "1036 B",
    "b=1",
    "Nagle",
    "b=1 Nagle",
    "looks Nagle",
    "c=2 looks Nagle",
    "c=16 looks Nagle",
    "64 KiB",
    "waits",
    "c=2 waits",
    "c=16 waits",
];
const WAYS: [&str; 8] =
    ["request-reply", "sync", "async", "sync-batch", "timed", "adaptive", "synchronous", "batched"];

fn acks() -> Section {
    let x = "what differs from the first point (c: clients, b: messages per write)";
    let mut cost =
        Plot::new(Kind::Bar, "Server CPU per message", x, "microseconds").log(false, true);
    cost.categories = GROUPS.map(str::to_owned).to_vec();
    for (at, way) in WAYS.iter().enumerate() {
        let us = |group: usize| 0.04 * (1 + group % 5 + at) as f64 * wobble(at, group);
        let points = (0..GROUPS.len()).map(|group| (group as f64, us(group))).collect();
        cost = cost.with(Series::new(&format!("sheafdb: {way}"), points));
    }
    Section {
        title: "Acks".to_owned(),
        answers: answers(&["sheafdb"]),
        plots: vec![cost],
        ..Section::default()
    }
}
