//! The report's part, and the original's CSV.

use std::fmt::Write;

use super::Plan;
use super::drivers::Driven;
use super::levels::{COMMANDS, Subject};
use super::verdict::verdict;
use crate::analysis::figure::{count, percent, time};
use crate::analysis::spread::median;
use crate::lab::Told;
use crate::lab::measure::Seen;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::{Finding, Latency, Sample};

/// Published: requests per second and the client's load average at the end.
const PUBLISHED: [(&str, f64, &str); 2] =
    [("Redis", 130_000.0, "7.3"), ("one thread that owns the map", 73_000.0, "2.2")];

/// Everything that the experiment leaves behind.
pub fn told(subjects: &[Subject], driven: &[Driven], plan: &Plan) -> Told {
    let mut findings: Vec<Finding> =
        subjects.iter().flat_map(|subject| subject.findings(plan)).collect();
    findings.extend(driven.iter().filter_map(Driven::finding));
    let levels = subjects.iter().flat_map(|subject| {
        let points = subject.points.iter().filter_map(|point| point.seen.as_ref());
        points.chain(&subject.pings)
    });
    let drives = driven.iter().filter_map(|one| one.seen.as_ref().ok());
    let measurements = levels.chain(drives).map(|seen| seen.measurement.clone()).collect();
    let mut section = Section {
        title: "Ramp".to_owned(),
        prose: prose(plan),
        plots: COMMANDS.iter().flat_map(|(command, _)| plots(subjects, command, plan)).collect(),
        tables: COMMANDS.iter().map(|(command, _)| table(subjects, command, plan)).collect(),
        findings: findings.clone(),
    };
    section.tables.push(top(subjects, plan));
    if !driven.is_empty() {
        section.plots.push(under_way(driven));
        section.tables.push(back_pressure(driven));
    }
    Told {
        measurements,
        findings,
        sections: vec![section],
        files: files(subjects, plan),
        ..Told::default()
    }
}

fn prose(plan: &Plan) -> Vec<String> {
    vec![format!(
        "SET and GET of {} keys with {} bytes; every worker has a connection and one request at a time. A level \
         ends when throughput has settled (the halves of its last samples and their spread within 3 %), after {} s \
         at the latest. Load is the machine's 1-minute average, client CPU the load generator's own.",
        count(plan.keys as f64),
        plan.data,
        plan.seconds
    )]
}

/// The median of a figure over the repetitions of a level.
fn middle(seen: &[&Seen], figure: impl Fn(&Seen) -> f64) -> f64 {
    median(&seen.iter().map(|one| figure(one)).collect::<Vec<f64>>())
}

fn client_cpus(seen: &Seen) -> f64 {
    seen.measurement.client_cpu_s / seen.measurement.seconds
}

fn plots(subjects: &[Subject], command: &str, plan: &Plan) -> Vec<Plot> {
    let upper = command.to_uppercase();
    let new = |what: &str, y: &str| {
        Plot::new(Kind::Line, &format!("{upper}: {what} by workers"), "workers", y)
    };
    let line = |subject: &Subject, name: &str, figure: &dyn Fn(&Seen) -> f64| {
        let point = |&workers: &usize| {
            let at = subject.at(command, workers);
            (!at.is_empty()).then(|| (workers as f64, middle(&at, figure)))
        };
        Series::new(name, plan.workers.iter().filter_map(point).collect())
    };
    let mut throughput = new("throughput", "requests/s").log(false, true);
    let mut latency = new("median and 99th percentile", "microseconds").log(false, true);
    let mut cpu = new("CPU of the client", "CPUs");
    let mut load = new("load average", "1-minute load");
    for subject in subjects {
        let name = &subject.name;
        let levels = subject.levels(command, plan);
        let levels: Vec<(f64, Vec<f64>)> =
            levels.into_iter().map(|level| (level.load, level.throughput)).collect();
        throughput = throughput.with(Series::repeated(name, &levels));
        latency = latency
            .with(line(subject, name, &|seen| seen.measurement.latency.p99_us))
            .with(line(subject, &format!("{name}, median"), &|s| s.measurement.latency.p50_us));
        cpu = cpu.with(line(subject, name, &client_cpus));
        load = load.with(line(subject, name, &|seen| seen.measurement.load_average));
    }
    vec![throughput, latency, cpu, load]
}

/// What piles up: the unbounded driver at each server, and one with a bound beside it.
fn under_way(driven: &[Driven]) -> Plot {
    let title = "Requests under way over time";
    let mut plot = Plot::new(Kind::Line, title, "seconds", "requests").log(false, true);
    let bounded = driven.iter().find(|one| one.allowed.is_some() && one.seen.is_ok());
    for one in driven.iter().filter(|one| one.allowed.is_none()).chain(bounded) {
        if let Ok(seen) = &one.seen {
            let point = |sample: &Sample| (sample.at_s, sample.in_flight);
            let points = seen.measurement.series.iter().map(point).collect();
            plot = plot.with(Series::new(&format!("{}, {}", one.target, one.driver), points));
        }
    }
    plot
}

fn table(subjects: &[Subject], command: &str, plan: &Plan) -> Table {
    let columns = ["workers", "target", "op/s", "mean", "p50", "p99", "p99.9", "client CPUs", "la"];
    let row = |subject: &Subject, workers: usize| {
        let mut row = vec![workers.to_string(), subject.name.clone()];
        let at = subject.at(command, workers);
        if at.is_empty() {
            let points = subject.points.iter();
            let fault = points
                .filter(|point| point.command == command && point.workers == workers)
                .find_map(|point| point.fault.clone());
            row.push(format!("not valid: {}", fault.unwrap_or_default()));
            return row;
        }
        let of =
            |figure: fn(&Latency) -> f64| time(middle(&at, |s| figure(&s.measurement.latency)));
        row.push(count(middle(&at, |seen| seen.measurement.throughput)));
        row.extend([of(|l| l.mean_us), of(|l| l.p50_us), of(|l| l.p99_us), of(|l| l.p999_us)]);
        row.push(format!("{:.2}", middle(&at, client_cpus)));
        row.push(format!("{:.2}", middle(&at, |seen| seen.measurement.load_average)));
        row
    };
    let rows = plan.workers.iter().flat_map(|&n| subjects.iter().map(move |s| row(s, n)));
    Table {
        title: command.to_uppercase(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// The highest level beside PING, threads and the published figures.
fn top(subjects: &[Subject], plan: &Plan) -> Table {
    let most = *plan.workers.last().expect("a plan has workers");
    let columns = [
        "target",
        "SET/s",
        "GET/s",
        "PING/s",
        "server threads",
        "busiest",
        "idle CPUs",
        "client CPUs",
        "load",
    ];
    let row = |subject: &Subject| {
        let (sets, gets) = (subject.at("set", most), subject.at("get", most));
        let pings: Vec<&Seen> = subject.pings.iter().collect();
        let shown = |value: f64, as_text: &dyn Fn(f64) -> String| {
            if value.is_finite() { as_text(value) } else { String::new() }
        };
        let rate = |seen: &[&Seen]| shown(middle(seen, |s| s.measurement.throughput), &count);
        let threads: Vec<_> = sets.iter().chain(&gets).filter_map(|seen| seen.threads).collect();
        let busiest = median(&threads.iter().map(|one| one.busiest).collect::<Vec<f64>>());
        let two = |value: f64| format!("{value:.2}");
        vec![
            subject.name.clone(),
            rate(&sets),
            rate(&gets),
            rate(&pings),
            threads.iter().map(|one| one.active).max().map_or(String::new(), |n| n.to_string()),
            shown(busiest, &percent),
            shown(middle(&sets, |seen| seen.idle_cpus), &two),
            shown(middle(&sets, client_cpus), &two),
            shown(middle(&sets, |seen| seen.measurement.load_average), &two),
        ]
    };
    let published = PUBLISHED.iter().map(|(name, rate, load)| {
        let mut row = vec![String::new(); columns.len()];
        row[0] = format!("published: {name}");
        row[1] = count(*rate);
        row.truncate(columns.len() - 1);
        row.push((*load).to_owned());
        row
    });
    Table {
        title: format!("At {most} workers, beside the published figures"),
        columns: columns.map(str::to_owned).to_vec(),
        rows: subjects.iter().map(row).chain(published).collect(),
    }
}

fn back_pressure(driven: &[Driven]) -> Table {
    let row = |one: &Driven| {
        let mut row = vec![one.target.clone(), one.driver.to_owned()];
        row.push(one.allowed.map_or("no bound".to_owned(), |n| n.to_string()));
        match &one.seen {
            Ok(seen) => {
                let seen = &seen.measurement;
                row.push(count(seen.in_flight_max as f64));
                row.push(count(seen.throughput));
                row.push(time(seen.latency.p99_us));
            }
            Err(_) => row.extend([String::new(), String::new(), String::new()]),
        }
        row.push(verdict(one));
        row
    };
    Table {
        title: "Back pressure: 4 connections, 16 requests each where there is a bound".to_owned(),
        columns: ["target", "driver", "allowed", "most under way", "op/s", "p99", "verdict"]
            .map(str::to_owned)
            .to_vec(),
        rows: driven.iter().map(row).collect(),
    }
}

/// The original's CSV, one file per target and command.
fn files(subjects: &[Subject], plan: &Plan) -> Vec<(String, String)> {
    let file = |subject: &Subject, command: &str| {
        let mut text = "concurrency;total count;op/s;mean;stdev %;la\n".to_owned();
        for &workers in &plan.workers {
            let at = subject.at(command, workers);
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
        let name: String = subject.name.chars().map(safe).collect();
        (format!("ramp-{name}-{command}.csv"), text)
    };
    subjects.iter().flat_map(|s| COMMANDS.iter().map(move |(c, _)| file(s, c))).collect()
}
