//! The report's part.

use std::fmt::Display;

use super::backlog::{Row, STALL};
use super::connects::{Counter, SLOW};
use super::options::{LOAD, NAME, Plan, TEXTS};
use super::subject::{Subject, pool_or_task};
use crate::analysis::figure::{cell_or_empty, count, percent, time};
use crate::analysis::findings::{self, Connects, Evidence, Trust};
use crate::analysis::usl::Usl;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Finding, FindingKind};

/// The published figures: connections, the experiment's server with what it was then, Redis beside
/// it; requests per second.
const PUBLISHED: &[(usize, f64, &str, Option<f64>)] = &[
    (1, 14_900.0, "one connection at a time", None),
    (2, 146.0, "one connection at a time", None),
    (5, 52_000.0, "a task per connection", None),
    (6, 68_800.0, "a task per connection", Some(120_800.0)),
    (15, 44_900.0, "a task per connection", Some(176_000.0)),
];

/// Tells the experiment.
pub fn section(subjects: &[Subject], rows: &[Row], plan: &Plan) -> Section {
    let mut findings: Vec<Finding> = subjects.iter().flat_map(Subject::findings).collect();
    findings.extend(rows.iter().filter(|row| row.backlog.is_some()).flat_map(queue_finding));
    let mut tables =
        vec![throughput(subjects, plan), served(subjects), scaling(subjects), connecting(subjects)];
    if !rows.is_empty() {
        tables.push(queues(rows));
    }
    tables.push(published(subjects));
    Section {
        title: "Concurrency".to_owned(),
        answers: subjects.iter().filter_map(best).collect(),
        prose: prose(subjects, plan),
        plots: plots(subjects),
        tables,
        findings,
    }
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
        finding.caveats.push(TEXTS.sentence("stopped", &[("time", &stall())]));
    }
    found
}

/// How long the acceptor stands still.
fn stall() -> String {
    time(STALL.as_secs_f64() * 1e6)
}

fn prose(subjects: &[Subject], plan: &Plan) -> Vec<String> {
    let values: [(&str, &dyn Display); 3] = [
        ("keys", &count(plan.data.keys as f64)),
        ("bytes", &plan.data.data_size),
        ("seconds", &plan.seconds),
    ];
    let pools: Vec<_> =
        subjects.iter().map(|s| (s.name().to_owned(), s.capacity(), s.levels())).collect();
    let pools = pool_or_task(&pools).into_iter().flatten();
    [TEXTS.sentence("load", &values)].into_iter().chain(pools).collect()
}

/// The highest throughput, and the peak by the law where that describes the figures.
fn best(subject: &Subject) -> Option<(String, String)> {
    let (at, best) = subject.best()?;
    let text = TEXTS.sentence("best", &[("best", &count(best)), ("at", &count(at))]);
    let law = subject.law().filter(Usl::is_good);
    let parts = [Some(text), law.as_ref().and_then(|law| peak(subject, law, (at, best)))];
    Some((subject.name().to_owned(), parts.into_iter().flatten().collect::<Vec<_>>().join(" ")))
}

/// The peak by the law, with a warning for levels beyond it.
fn peak(subject: &Subject, law: &Usl, (at, best): (f64, f64)) -> Option<String> {
    let levels = subject.levels();
    let last = levels.last()?;
    let fit = format!("{:.2}", law.r_squared);
    let Some(peak) = law.peak() else { return Some(TEXTS.sentence("no peak", &[("fit", &fit)])) };
    let mut text = TEXTS.sentence("peak", &[("peak", &count(peak.round())), ("fit", &fit)]);
    if last.load > peak && at < last.load {
        let share = percent(last.median() / best);
        text += " ";
        text += &TEXTS.sentence("beyond", &[("share", &share), ("most", &count(last.load))]);
    }
    Some(text)
}

fn plots(subjects: &[Subject]) -> Vec<Plot> {
    let new = |title, y| Plot::new(Kind::Line, title, "connections", y);
    let mut throughput = new("Throughput by connections", "requests/s").log(true, false);
    let mut tail = new("99th percentile of latency by connections", "microseconds").log(true, true);
    for subject in subjects {
        let (name, record) = (subject.name(), &subject.record);
        throughput = throughput.with(record.throughput(LOAD, name));
        if let Some(law) = subject.law().filter(Usl::is_good) {
            let most = subject.levels().last().map_or(1.0, |level| level.load);
            let steps = (0..=40).map(|i| most.powf(f64::from(i) / 40.0));
            let curve = steps.map(|n| (n, law.throughput(n))).collect();
            throughput = throughput.with(Series::curve(&format!("{name}, law"), name, curve));
        }
        tail = tail.with(record.line(LOAD, name, |seen| seen.measurement.latency.p99_us));
    }
    vec![throughput, tail]
}

/// A table with a column for each target, behind those that are given.
fn by_target<T>(
    title: &str,
    given: &[&str],
    subjects: &[Subject],
    rows: impl Iterator<Item = T>,
    cells: impl Fn(&T) -> Vec<String>,
    cell: impl Fn(&T, &Subject) -> String,
) -> Table {
    let names: Vec<&str> = subjects.iter().map(Subject::name).collect();
    let row = |row: T| [cells(&row), subjects.iter().map(|s| cell(&row, s)).collect()].concat();
    Table::new(title, &[given, &names].concat(), rows.map(row).collect())
}

fn throughput(subjects: &[Subject], plan: &Plan) -> Table {
    let cell = |&n: &usize, subject: &Subject| match subject.rate(n) {
        Some(rate) => count(rate),
        None if subject.is_beyond(n) => "hangs".to_owned(),
        None => {
            let fault = subject.record.fault(LOAD, n);
            fault.map_or(String::new(), |why| format!("not valid: {why}"))
        }
    };
    let levels = plan.levels.iter().copied();
    let given = |n: &usize| vec![count(*n as f64)];
    by_target("Requests per second", &["connections"], subjects, levels, given, cell)
}

/// The published figures beside those of here.
fn published(subjects: &[Subject]) -> Table {
    type Published = (usize, f64, &'static str, Option<f64>);
    let given = |(connections, rate, what, redis): &Published| {
        vec![
            connections.to_string(),
            format!("{} ({what})", count(*rate)),
            cell_or_empty(*redis, count),
        ]
    };
    let here = |row: &Published, subject: &Subject| match subject.rate(row.0) {
        Some(rate) => count(rate),
        None if subject.capacity().is_some_and(|size| row.0 > size) => "hangs".to_owned(),
        None => String::new(),
    };
    let title = "Beside the published figures, requests per second";
    let columns = ["connections", "published server", "published Redis"];
    by_target(title, &columns, subjects, PUBLISHED.iter().copied(), given, here)
}

fn served(subjects: &[Subject]) -> Table {
    let row = |subject: &Subject| {
        let name = subject.name().to_owned();
        let Some(seen) = &subject.admission else {
            return vec![name, "not known".to_owned()];
        };
        let after = seen.served_after_close.map_or(String::new(), |n| n.to_string());
        let all = [seen.opened, seen.served, seen.refused].map(|n| count(n as f64));
        [vec![name], all.to_vec(), vec![after]].concat()
    };
    let columns = ["target", "open", "served", "refused", "served after one was closed"];
    Table::new("Who is served", &columns, subjects.iter().map(row).collect())
}

fn scaling(subjects: &[Subject]) -> Table {
    let law = |subject: &Subject, show: &dyn Fn(&Usl) -> String| {
        subject.law().map_or(String::new(), |law| show(&law))
    };
    let peak = |law: &Usl| match law.peak() {
        _ if !law.is_good() => "no good fit".to_owned(),
        Some(peak) => count(peak.round()),
        None => "none".to_owned(),
    };
    Table::of(
        "Universal Scalability Law",
        subjects,
        &[
            ("target", &|s| s.name().to_owned()),
            ("best", &|s| cell_or_empty(s.best().map(|best| best.1), count)),
            ("at", &|s| cell_or_empty(s.best().map(|best| best.0), count)),
            ("lambda", &|s| law(s, &|law| count(law.lambda))),
            ("sigma", &|s| law(s, &|law| format!("{:.4}", law.sigma))),
            ("kappa", &|s| law(s, &|law| kappa(law.kappa))),
            ("R2", &|s| law(s, &|law| format!("{:.2}", law.r_squared))),
            ("peak", &|s| law(s, &peak)),
        ],
    )
}

/// Often a very small figure, and zero where the fit stops at its bound.
fn kappa(kappa: f64) -> String {
    if kappa == 0.0 { "0".to_owned() } else { format!("{kappa:.2e}") }
}

/// Connections to listeners: whose, what became of them, who counted overflows.
fn listeners<'a>(
    title: &str,
    all: impl Iterator<Item = (&'a str, &'a Connects, Option<Counter>)>,
) -> Table {
    let overflows = |seen: &Connects, counter: Option<Counter>| {
        let counted = seen.overflows.zip(counter);
        counted.map_or(String::new(), |(n, by)| format!("{n} ({})", by.name()))
    };
    Table::of(
        title,
        all,
        &[
            ("listener", &|(name, ..)| (*name).to_owned()),
            ("queue", &|(_, seen, _)| seen.backlog.map_or(String::new(), |n| n.to_string())),
            ("asked", &|(_, seen, _)| seen.asked.to_string()),
            ("at once", &|(_, c, _)| c.asked.saturating_sub(c.slow + c.failed).to_string()),
            ("late", &|(_, seen, _)| seen.slow.to_string()),
            ("never", &|(_, seen, _)| seen.failed.to_string()),
            ("slowest", &|(_, seen, _)| time(seen.slowest_us)),
            ("overflows", &|(_, seen, counter)| overflows(seen, *counter)),
        ],
    )
}

fn connecting(subjects: &[Subject]) -> Table {
    let seen = |s| Some((Subject::name(s), s.connects.as_ref()?, s.counter));
    listeners("Connecting at once, server left alone", subjects.iter().filter_map(seen))
}

fn queues(rows: &[Row]) -> Table {
    let title = format!(
        "Listen queue with the acceptor stopped for {}; late is {} or more",
        stall(),
        time(SLOW.as_secs_f64() * 1e6)
    );
    listeners(&title, rows.iter().map(|row| (&*row.target, &row.connects, row.counter)))
}
