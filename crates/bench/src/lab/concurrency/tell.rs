//! The report's part.

use super::backlog::{Row, STALL};
use super::connects::{Counter, SLOW};
use super::seen::{Subject, pool_or_task};
use super::{NAME, Plan};
use crate::analysis::figure::{count, percent, time};
use crate::analysis::findings::{self, Connects, Evidence, Trust};
use crate::analysis::retrograde::Level;
use crate::analysis::spread::median;
use crate::analysis::usl::Usl;
use crate::lab::Told;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Finding, FindingKind};

/// The published figures: connections, the experiment's server with what it was then, Redis beside it; requests
/// per second.
const PUBLISHED: &[(usize, f64, &str, Option<f64>)] = &[
    (1, 14_900.0, "one connection at a time", None),
    (2, 146.0, "one connection at a time", None),
    (5, 52_000.0, "a task per connection", None),
    (6, 68_800.0, "a task per connection", Some(120_800.0)),
    (15, 44_900.0, "a task per connection", Some(176_000.0)),
];

/// Everything that the experiment leaves behind.
pub fn told(subjects: &[Subject], rows: &[Row], plan: &Plan) -> Told {
    let mut findings: Vec<Finding> = subjects.iter().flat_map(Subject::findings).collect();
    findings.extend(rows.iter().filter(|row| row.backlog.is_some()).flat_map(queue_finding));
    let measurements = subjects.iter().flat_map(|subject| &subject.points);
    let measurements = measurements
        .filter_map(|point| point.seen.as_ref())
        .map(|seen| seen.measurement.clone())
        .collect();
    let mut section = Section {
        title: "Concurrency".to_owned(),
        prose: prose(subjects, plan),
        plots: plots(subjects),
        tables: vec![throughput(subjects, plan), served(subjects), scaling(subjects)],
        findings: findings.clone(),
    };
    section.tables.push(connecting(subjects));
    if !rows.is_empty() {
        section.tables.push(queues(rows));
    }
    section.tables.push(published(subjects));
    Told { measurements, findings, sections: vec![section], ..Told::default() }
}

/// The overflow of a queue that was stalled on purpose, under the model's name.
fn queue_finding(row: &Row) -> Vec<Finding> {
    let evidence = Evidence {
        experiment: NAME.to_owned(),
        target: format!("{} (stalled)", row.target),
        connects: Some(row.connects.clone()),
        trust: Trust { repetitions: 1, ..Trust::default() },
        ..Evidence::default()
    };
    let mut found = findings::judge(&evidence);
    // A queue that held is no finding: the server itself is judged elsewhere.
    found.retain(|finding| finding.kind == FindingKind::BacklogOverflow);
    for finding in &mut found {
        let stall = time(STALL.as_secs_f64() * 1e6);
        finding.caveats.push(format!("The acceptor was stopped for {stall} on purpose."));
    }
    found
}

fn prose(subjects: &[Subject], plan: &Plan) -> Vec<String> {
    let mut prose = vec![format!(
        "SET of {} keys with {} bytes, one request at a time per connection, {} s per level; targets in turn at \
         each level. Before that each is asked who is served at all: connections are opened and kept, each sends \
         one PING.",
        count(plan.keys as f64),
        plan.data,
        plan.seconds
    )];
    let pools: Vec<_> =
        subjects.iter().map(|s| (s.started.name.clone(), s.capacity(), s.levels())).collect();
    prose.extend(pool_or_task(&pools).into_iter().flatten());
    prose.extend(subjects.iter().filter_map(peak));
    prose
}

/// The peak by the law and by measurement, with a warning for levels beyond it. Where the law does not describe
/// the figures, the table says so.
fn peak(subject: &Subject) -> Option<String> {
    let name = &subject.started.name;
    let (at, best) = subject.best()?;
    let law = subject.law().filter(Usl::is_good)?;
    let peak = law.peak();
    let most = subject.levels().last()?.load;
    let fitted = match peak {
        Some(peak) => format!(
            "the Universal Scalability Law puts the peak at {} connections (R2 {:.2})",
            count(peak.round()),
            law.r_squared
        ),
        None => {
            format!("the Universal Scalability Law sees no peak (R2 {:.2})", law.r_squared)
        }
    };
    let beyond = peak.filter(|peak| most > *peak && at < most).map(|_| {
        let last = subject.levels().last().map_or(0.0, Level::median);
        format!(
            " Warning: beyond the peak more connections bring less, {} of it at {}.",
            percent(last / best),
            count(most)
        )
    });
    let best = count(best);
    Some(format!(
        "{name}: best measured {best}/s with {} at once; {fitted}.{}",
        count(at),
        beyond.unwrap_or_default()
    ))
}

fn plots(subjects: &[Subject]) -> Vec<Plot> {
    let new = |title, y| Plot::new(Kind::Line, title, "connections", y);
    let mut throughput = new("Throughput by connections", "requests/s").log(true, false);
    let mut tail = new("99th percentile of latency by connections", "microseconds").log(true, true);
    for subject in subjects {
        let name = &subject.started.name;
        let levels: Vec<(f64, Vec<f64>)> =
            subject.levels().into_iter().map(|level| (level.load, level.throughput)).collect();
        throughput = throughput.with(Series::repeated(name, &levels));
        let most = levels.last().map_or(1.0, |level| level.0);
        if let Some(law) = subject.law().filter(Usl::is_good) {
            let steps = (0..=40).map(|i| most.powf(f64::from(i) / 40.0));
            let curve = steps.map(|n| (n, law.throughput(n))).collect();
            throughput = throughput.with(Series::curve(&format!("{name}, law"), name, curve));
        }
        let p99 = |load: f64| {
            let at = subject.valid().filter(|(n, _)| (*n as f64).total_cmp(&load).is_eq());
            let values: Vec<f64> = at.map(|(_, seen)| seen.measurement.latency.p99_us).collect();
            (load, median(&values))
        };
        let points = levels.iter().map(|level| p99(level.0)).collect();
        tail = tail.with(Series::new(name, points));
    }
    vec![throughput, tail]
}

fn names(subjects: &[Subject]) -> Vec<String> {
    subjects.iter().map(|subject| subject.started.name.clone()).collect()
}

fn throughput(subjects: &[Subject], plan: &Plan) -> Table {
    let cell = |subject: &Subject, connections: usize| {
        let levels = subject.levels();
        let level = levels.iter().find(|l| l.load.total_cmp(&(connections as f64)).is_eq());
        let fault = || {
            let point = subject.points.iter().find(|p| p.connections == connections)?;
            point.fault.as_ref()
        };
        match level {
            Some(level) => count(level.median()),
            None if subject.is_beyond(connections) => "hangs".to_owned(),
            None => fault().map_or(String::new(), |why| format!("not valid: {why}")),
        }
    };
    let row = |&connections: &usize| {
        let cells = subjects.iter().map(|subject| cell(subject, connections));
        [count(connections as f64)].into_iter().chain(cells).collect()
    };
    Table {
        title: "Requests per second".to_owned(),
        columns: [vec!["connections".to_owned()], names(subjects)].concat(),
        rows: plan.levels.iter().map(row).collect(),
    }
}

fn served(subjects: &[Subject]) -> Table {
    let row = |subject: &Subject| {
        let name = subject.started.name.clone();
        let Some(seen) = &subject.admission else {
            return vec![name, "not known".to_owned()];
        };
        let after = seen.served_after_close.map_or(String::new(), |n| n.to_string());
        let all = [seen.opened, seen.served, seen.refused].map(|n| count(n as f64));
        [vec![name], all.to_vec(), vec![after]].concat()
    };
    Table {
        title: "Who is served".to_owned(),
        columns: ["target", "open", "served", "refused", "served after one was closed"]
            .map(str::to_owned)
            .to_vec(),
        rows: subjects.iter().map(row).collect(),
    }
}

fn scaling(subjects: &[Subject]) -> Table {
    let row = |subject: &Subject| {
        let best = subject.best();
        let mut row = vec![
            subject.started.name.clone(),
            best.map_or(String::new(), |b| count(b.1)),
            best.map_or(String::new(), |b| count(b.0)),
        ];
        if let Some(law) = subject.law() {
            let peak = law.peak().map_or("none".to_owned(), |peak| count(peak.round()));
            let peak = if law.is_good() { peak } else { "no good fit".to_owned() };
            row.extend([
                count(law.lambda),
                format!("{:.4}", law.sigma),
                format!("{:.2e}", law.kappa),
                format!("{:.2}", law.r_squared),
                peak,
            ]);
        }
        row
    };
    Table {
        title: "Universal Scalability Law".to_owned(),
        columns: ["target", "best", "at", "lambda", "sigma", "kappa", "R2", "peak"]
            .map(str::to_owned)
            .to_vec(),
        rows: subjects.iter().map(row).collect(),
    }
}

const QUEUE_COLUMNS: [&str; 8] =
    ["listener", "queue", "asked", "at once", "late", "never", "slowest", "overflows"];

fn queue_cells(name: &str, seen: &Connects, counter: Option<Counter>) -> Vec<String> {
    let overflows = seen.overflows.zip(counter);
    vec![
        name.to_owned(),
        seen.backlog.map_or(String::new(), |n| n.to_string()),
        seen.asked.to_string(),
        seen.asked.saturating_sub(seen.slow + seen.failed).to_string(),
        seen.slow.to_string(),
        seen.failed.to_string(),
        time(seen.slowest_us),
        overflows.map_or(String::new(), |(n, by)| format!("{n} ({})", by.name())),
    ]
}

fn connecting(subjects: &[Subject]) -> Table {
    let row = |subject: &Subject| {
        let seen = subject.connects.as_ref()?;
        Some(queue_cells(&subject.started.name, seen, subject.counter))
    };
    Table {
        title: "Connecting at once, server left alone".to_owned(),
        columns: QUEUE_COLUMNS.map(str::to_owned).to_vec(),
        rows: subjects.iter().filter_map(row).collect(),
    }
}

fn queues(rows: &[Row]) -> Table {
    Table {
        title: format!(
            "Listen queue with the acceptor stopped for {}; late is {} or more",
            time(STALL.as_secs_f64() * 1e6),
            time(SLOW.as_secs_f64() * 1e6)
        ),
        columns: QUEUE_COLUMNS.map(str::to_owned).to_vec(),
        rows: rows.iter().map(|r| queue_cells(&r.target, &r.connects, r.counter)).collect(),
    }
}

/// The published figures beside those of here.
fn published(subjects: &[Subject]) -> Table {
    let here = |subject: &Subject, connections: usize| {
        let level = |l: &&Level| l.load.total_cmp(&(connections as f64)).is_eq();
        let levels = subject.levels();
        match levels.iter().find(level) {
            Some(level) => count(level.median()),
            None if subject.capacity().is_some_and(|size| connections > size) => "hangs".to_owned(),
            None => String::new(),
        }
    };
    let row = |&(connections, rate, what, redis): &(usize, f64, &str, Option<f64>)| {
        let own = format!("{} ({what})", count(rate));
        let given = [connections.to_string(), own, redis.map_or(String::new(), count)];
        given.into_iter().chain(subjects.iter().map(|s| here(s, connections))).collect()
    };
    let given = ["connections", "published server", "published Redis"].map(str::to_owned);
    Table {
        title: "Beside the published figures, requests per second".to_owned(),
        columns: [given.to_vec(), names(subjects)].concat(),
        rows: PUBLISHED.iter().map(row).collect(),
    }
}
