//! The report's part, and the original's CSV.

use std::fmt::{Display, Write};

use super::drivers::Driven;
use super::options::{Plan, TEXTS};
use super::subject::{COMMANDS, PING, Subject};
use crate::analysis::figure::{cell_or_empty, count, percent, time};
use crate::analysis::spread::median;
use crate::lab::measure::{Seen, Threads};
use crate::lab::record::middle;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Latency, Measurement, Sample};

/// Published: requests per second and the client's load average at the end.
const PUBLISHED: [(&str, f64, &str); 2] =
    [("Redis", 130_000.0, "7.3"), ("one thread that owns the map", 73_000.0, "2.2")];

/// Tells the experiment.
pub fn section(subjects: &[Subject], driven: &[Driven], plan: &Plan) -> Section {
    let findings = subjects.iter().flat_map(|subject| subject.findings(plan));
    let names = COMMANDS.map(|(command, _)| command);
    let mut plots: Vec<Plot> = names.iter().flat_map(|name| plots(subjects, name)).collect();
    let mut tables: Vec<Table> = names.iter().map(|name| table(subjects, name, plan)).collect();
    tables.push(top(subjects, plan));
    if !driven.is_empty() {
        plots.push(under_way(driven));
        tables.push(back_pressure(driven));
    }
    let values: [(&str, &dyn Display); 3] = [
        ("keys", &count(plan.data.keys as f64)),
        ("bytes", &plan.data.data_size),
        ("seconds", &plan.seconds),
    ];
    Section {
        title: "Ramp".to_owned(),
        answers: subjects.iter().filter_map(best).collect(),
        prose: vec![TEXTS.sentence("load", &values)],
        plots,
        tables,
        findings: findings.chain(driven.iter().filter_map(Driven::finding)).collect(),
    }
}

/// The highest throughput of each command.
fn best(subject: &Subject) -> Option<(String, String)> {
    let best = |(command, _): (&str, _)| {
        let (at, best) = subject.record.best(command)?;
        let values: [(&str, &dyn Display); 3] =
            [("command", &command.to_uppercase()), ("best", &count(best)), ("at", &count(at))];
        Some(TEXTS.sentence("command", &values))
    };
    let figures: Vec<String> = COMMANDS.into_iter().filter_map(best).collect();
    let text = || TEXTS.sentence("best", &[("figures", &figures.join(" and "))]);
    (!figures.is_empty()).then(|| (subject.name().to_owned(), text()))
}

fn plots(subjects: &[Subject], command: &str) -> Vec<Plot> {
    let upper = command.to_uppercase();
    let new = |what: &str, y: &str| {
        Plot::new(Kind::Line, &format!("{upper}: {what} by workers"), "workers", y)
    };
    let mut throughput = new("throughput", "requests/s").log(false, true);
    let mut latency = new("median and 99th percentile", "microseconds").log(false, true);
    let mut cpu = new("CPU of the client", "CPUs");
    let mut load = new("load average", "1-minute load");
    for Subject { record, .. } in subjects {
        let name = &record.name;
        let [p99, p50] = ["99th percentile", "median"].map(|what| format!("{name}, {what}"));
        throughput = throughput.with(record.throughput(command, name));
        latency = latency
            .with(record.line(command, &p99, |seen| seen.measurement.latency.p99_us))
            .with(record.line(command, &p50, |seen| seen.measurement.latency.p50_us));
        cpu = cpu.with(record.line(command, name, Seen::client_cpus));
        load = load.with(record.line(command, name, |seen| seen.measurement.load_average));
    }
    vec![throughput, latency, cpu, load]
}

/// What piles up: the unbounded driver at each server, and one with a bound beside it.
fn under_way(driven: &[Driven]) -> Plot {
    let title = "Requests under way over time";
    let mut plot = Plot::new(Kind::Line, title, "seconds", "requests").log(false, true);
    let bounded = driven.iter().find(|one| one.allowed.is_some() && one.point.valid().is_ok());
    for one in driven.iter().filter(|one| one.allowed.is_none()).chain(bounded) {
        if let Ok(seen) = one.point.valid() {
            let point = |sample: &Sample| (sample.at_s, sample.in_flight);
            let points = seen.measurement.series.iter().map(point).collect();
            plot = plot.with(Series::new(&format!("{}, {}", one.target, one.point.load), points));
        }
    }
    plot
}

fn table(subjects: &[Subject], command: &str, plan: &Plan) -> Table {
    let columns = ["workers", "target", "op/s", "mean", "p50", "p99", "p99.9", "client CPUs", "la"];
    let row = |subject: &Subject, workers: usize| {
        let mut row = vec![workers.to_string(), subject.name().to_owned()];
        let at = subject.record.at(command, workers);
        if at.is_empty() {
            let fault = subject.record.fault(command, workers).unwrap_or_default();
            row.push(format!("not valid: {fault}"));
            return row;
        }
        let of =
            |figure: fn(&Latency) -> f64| time(middle(&at, |s| figure(&s.measurement.latency)));
        row.push(count(middle(&at, |seen| seen.measurement.throughput)));
        row.extend([of(|l| l.mean_us), of(|l| l.p50_us), of(|l| l.p99_us), of(|l| l.p999_us)]);
        row.push(two_decimals(middle(&at, Seen::client_cpus)));
        row.push(two_decimals(middle(&at, |seen| seen.measurement.load_average)));
        row
    };
    let rows = plan.workers.iter().flat_map(|&n| subjects.iter().map(move |s| row(s, n)));
    Table::new(&command.to_uppercase(), &columns, rows.collect())
}

fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

/// The highest level beside PING, threads and the published figures.
fn top(subjects: &[Subject], plan: &Plan) -> Table {
    let most = plan.most();
    let rate = |seen: &Seen| seen.measurement.throughput;
    let at = |s: &Subject, command: &str, figure: fn(&Seen) -> f64, show: fn(f64) -> String| {
        cell_or_empty(s.record.middle(command, most, figure), show)
    };
    let threads = |s: &Subject| -> Vec<Threads> {
        let at = COMMANDS.iter().flat_map(|(command, _)| s.record.at(command, most));
        at.filter_map(|seen| seen.threads).collect()
    };
    let active = |s: &Subject| threads(s).iter().map(|one| one.active).max();
    let busiest =
        |s: &Subject| median(&threads(s).iter().map(|one| one.busiest).collect::<Vec<f64>>());
    let mut table = Table::of(
        &format!("At {most} workers, beside the published figures"),
        subjects,
        &[
            ("target", &|s| s.name().to_owned()),
            ("SET/s", &|s| at(s, "set", rate, count)),
            ("GET/s", &|s| at(s, "get", rate, count)),
            ("PING/s", &|s| at(s, PING, rate, count)),
            ("server threads", &|s| active(s).map_or(String::new(), |n| n.to_string())),
            ("busiest", &|s| cell_or_empty(busiest(s), percent)),
            ("idle CPUs", &|s| at(s, "set", |seen| seen.idle_cpus, two_decimals)),
            ("client CPUs", &|s| at(s, "set", Seen::client_cpus, two_decimals)),
            ("load", &|s| at(s, "set", |seen| seen.measurement.load_average, two_decimals)),
        ],
    );
    for (name, rate, load) in PUBLISHED {
        let mut row = vec![String::new(); table.columns.len()];
        (row[0], row[1]) = (format!("published: {name}"), count(rate));
        *row.last_mut().expect("there are columns") = String::from(load);
        table.rows.push(row);
    }
    table
}

fn back_pressure(driven: &[Driven]) -> Table {
    let seen = |one: &Driven, show: &dyn Fn(&Measurement) -> String| {
        one.point.valid().map_or(String::new(), |seen| show(&seen.measurement))
    };
    Table::of(
        "Back pressure: 4 connections, 16 requests each where there is a bound",
        driven,
        &[
            ("target", &|one| one.target.clone()),
            ("driver", &|one| one.point.load.clone()),
            ("allowed", &|one| one.allowed.map_or("no bound".to_owned(), |n| n.to_string())),
            ("most under way", &|one| seen(one, &|m| count(m.in_flight_max as f64))),
            ("op/s", &|one| seen(one, &|m| count(m.throughput))),
            ("p99", &|one| seen(one, &|m| time(m.latency.p99_us))),
            ("verdict", &|one| one.verdict()),
        ],
    )
}

/// The original's CSV, one file per target and command.
pub fn files(subjects: &[Subject], plan: &Plan) -> Vec<(String, String)> {
    let file = |subject: &Subject, command: &str| {
        let mut text = "concurrency;total count;op/s;mean;stdev %;la\n".to_owned();
        for &workers in &plan.workers {
            let at = subject.record.at(command, workers);
            if at.is_empty() {
                continue;
            }
            let total: u64 = at.iter().map(|seen| seen.measurement.requests).sum();
            let rate = middle(&at, |seen| seen.measurement.throughput);
            let mean = middle(&at, |seen| seen.measurement.latency.mean_us);
            let spread = |seen: &Seen| {
                let latency = &seen.measurement.latency;
                100.0 * latency.stdev_us / latency.mean_us
            };
            let (stdev, la) =
                (middle(&at, spread), middle(&at, |seen| seen.measurement.load_average));
            let _ = writeln!(text, "{workers};{total};{rate:.0};{mean:.1};{stdev:.1};{la:.2}");
        }
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
        let name: String = subject.name().chars().map(safe).collect();
        (format!("ramp-{name}-{command}.csv"), text)
    };
    subjects.iter().flat_map(|s| COMMANDS.iter().map(move |(c, _)| file(s, c))).collect()
}
