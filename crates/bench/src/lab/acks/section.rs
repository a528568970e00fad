//! The report's part.

use std::borrow::Borrow;

use super::adaptive;
use super::classic::{COMMON_LABEL, label, line, yardstick};
use super::evidence::findings;
use super::options::{Plan, TEXTS};
use super::point::Way;
use super::rows::{Row, Rows, Seen, by_clients, by_size, find, per_thousand};
use super::verdict::verdict;
use crate::acks::{CLASSIC, Classic};
use crate::analysis::figure::{cell, count, time};
use crate::lab::experiment::Output;
use crate::report::{Kind, Plot, Section, Series, Table};

/// Of the grid.
pub fn grid(rows: &Rows, servers: &[&str], plan: &Plan) -> Output {
    let load = TEXTS.sentence("grid", &[("base", &plan.points[0]), ("seconds", &plan.seconds)]);
    let mut prose = vec![load, TEXTS.sentence("like with like", &[])];
    let answers = answers(servers, &rows.all, &mut prose);
    let findings = servers.iter().flat_map(|name| findings(name, &rows.all, plan)).collect();
    let mut tables = vec![table("All points", &rows.all), best(&rows.all, servers)];
    for name in servers {
        let (sentences, table) = adaptive::check(name, &rows.all);
        prose.extend(sentences);
        tables.extend(table);
    }
    let mut plots = plots(&rows.all, plan);
    plots.extend(adaptive::plot(&rows.all, plan));
    output(rows, Section { title: "Acks".to_owned(), answers, prose, plots, tables, findings })
}

/// Of the published clients.
pub fn classic(rows: &Rows, servers: &[&str], plan: &Plan) -> Output {
    let published = TEXTS.sentence("published", &[("repetitions", &plan.repetitions)]);
    let mut prose = vec![published, TEXTS.sentence("like with like", &[])];
    for row in rows.all.iter().filter(|row| matches!(row.way, Way::Strategy(_))) {
        let Some(seen) = row.clean().next() else { continue };
        let is_common = row.label == COMMON_LABEL;
        let strategy = if is_common { format!("{} ", row.way.name()) } else { String::new() };
        let line = line(&seen.measurement);
        prose.push(format!("{}, {strategy}{}: {line}", row.subject, row.label));
    }
    let is_common = |row: &&Row| row.label == COMMON_LABEL;
    if rows.all.iter().any(|row| is_common(&row)) {
        prose.push(TEXTS.sentence("common", &[]));
    }
    let (same, published): (Vec<&Row>, Vec<&Row>) = rows.all.iter().partition(is_common);
    let answers = answers(servers, &same, &mut prose);
    let section = Section {
        title: "Acks: the published clients".to_owned(),
        answers,
        prose,
        plots: vec![bars(&published, servers)],
        tables: vec![
            beside(&rows.all, servers),
            table("The published clients", &published),
            table("The same client for all", &same),
        ],
        findings: Vec::new(),
    };
    output(rows, section)
}

/// Which strategy wins at each server; what belongs to it goes to the prose.
fn answers<R: Borrow<Row>>(
    servers: &[&str],
    rows: &[R],
    prose: &mut Vec<String>,
) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    for name in servers {
        let mut sentences = verdict(name, rows).into_iter();
        answers.extend(sentences.next().map(|first| ((*name).to_owned(), first)));
        prose.extend(sentences.map(|text| format!("{name}: {text}")));
    }
    answers
}

fn output(rows: &Rows, section: Section) -> Output {
    let seen = rows.all.iter().flat_map(|row| &row.seen);
    let output = Output::of(section, seen.map(|seen| &seen.measurement));
    Output { failed: rows.failed.clone(), ..output }
}

fn table<R: Borrow<Row>>(title: &str, rows: &[R]) -> Table {
    let us = |value: f64| format!("{value:.4}");
    let unless_null = |row: &Row, value: Option<f64>, show: fn(f64) -> String| {
        cell(value.filter(|_| row.way != Way::Null), show)
    };
    let p50 = |seen: &Seen| Some(seen.measurement.latency.p50_us);
    let p99 = |seen: &Seen| Some(seen.measurement.latency.p99_us);
    Table::of(
        title,
        rows.iter().map(Borrow::borrow),
        &[
            ("sent", &|row| row.label.clone()),
            ("target", &|row| row.subject.clone()),
            ("strategy", &|row| row.way.name().to_owned()),
            ("messages/s", &|row| row.throughput().map_or("failed".to_owned(), count)),
            ("acks per 1,000", &|row| {
                unless_null(row, row.middle(|seen| Some(seen.acks)), per_thousand)
            }),
            ("reads per 1,000", &|row| cell(row.middle(|seen| seen.reads), per_thousand)),
            ("server us", &|row| cell(row.server_us(), us)),
            ("client us", &|row| cell(row.client_us(), us)),
            ("p50", &|row| unless_null(row, row.middle(p50), time)),
            ("p99", &|row| unless_null(row, row.middle(p99), time)),
        ],
    )
}

/// Every published client at every server.
fn published<'a>(servers: &[&'a str]) -> impl Iterator<Item = (Classic, &'a str)> {
    CLASSIC.into_iter().flat_map(|classic| servers.iter().map(move |name| (classic, *name)))
}

/// Published figures beside the most of any point.
fn best(rows: &[Row], servers: &[&str]) -> Table {
    let most = |classic: &Classic, name: &str| {
        let way = Way::Strategy(classic.strategy);
        rows.iter()
            .filter(|row| row.is_of(name, way))
            // The published clients sent batches.
            .filter(|row| row.point.is_some_and(|point| point.block.is_none()))
            .filter_map(|row| Some((row.throughput()?, row.label.clone())))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let all = published(servers).map(|(classic, name)| (classic, name, most(&classic, name)));
    Table::of(
        "Beside the published figures",
        all,
        &[
            ("strategy", &|(classic, ..)| classic.strategy.name().to_owned()),
            ("published/s", &|(classic, ..)| count(classic.published as f64)),
            ("target", &|(_, name, _)| (*name).to_owned()),
            ("most here/s", &|(.., best)| cell(best.as_ref().map(|best| best.0), count)),
            ("with", &|(.., best)| best.as_ref().map_or(String::new(), |best| best.1.clone())),
        ],
    )
}

/// Published figures beside the same clients here and what reads without a thought.
fn beside(rows: &[Row], servers: &[&str]) -> Table {
    let rate = |classic: &Classic, name: &str, way| {
        find(rows, &label(classic), name, way).and_then(Row::throughput)
    };
    let own = |classic: &Classic, name: &str| rate(classic, name, Way::Strategy(classic.strategy));
    let yard = |classic: &Classic| {
        let (model, way) = yardstick(classic.strategy, "model:null-reader", "model:echo-ack");
        (way.name(), rate(classic, model, way))
    };
    let ratio = |classic: &Classic, name: &str| Some(own(classic, name)? / yard(classic).1?);
    Table::of(
        "Beside the published figures",
        published(servers),
        &[
            ("client", &|(classic, _)| label(classic)),
            ("published/s", &|(classic, _)| count(classic.published as f64)),
            ("target", &|(_, name)| (*name).to_owned()),
            ("here/s", &|(classic, name)| cell(own(classic, name), count)),
            ("beside/s", &|(classic, _)| {
                let (name, rate) = yard(classic);
                format!("{name} {}", cell(rate, count))
            }),
            ("ratio", &|(classic, name)| cell(ratio(classic, name), |ratio| format!("{ratio:.2}"))),
        ],
    )
}

fn bars(rows: &[&Row], servers: &[&str]) -> Plot {
    let title = "Messages per second of the published clients";
    let mut plot = Plot::new(Kind::Bar, title, "strategy", "messages/s").log(false, true);
    plot.categories = CLASSIC.iter().map(|c| c.strategy.name().to_owned()).collect();
    let bars = |name: &str, of: &dyn Fn(&Classic) -> Option<f64>| {
        let points = (0..).zip(&CLASSIC).filter_map(|(x, c)| Some((f64::from(x), of(c)?)));
        Series::new(name, points.collect())
    };
    plot = plot.with(bars("published", &|classic| Some(classic.published as f64)));
    for name in servers {
        let own = |classic: &Classic| {
            let way = Way::Strategy(classic.strategy);
            rows.iter().find(|row| row.is_of(name, way))?.throughput()
        };
        plot = plot.with(bars(name, &own));
    }
    plot
}

/// One line for each way; the target's name stands in front where there are several.
fn plots(rows: &[Row], plan: &Plan) -> Vec<Plot> {
    let base = plan.points[0];
    let new =
        |kind, title, x, y| Plot::new(kind, title, x, y).log(matches!(kind, Kind::Line), true);
    let y = "messages/s";
    let mut throughput = new(Kind::Line, "Messages per second by clients", "clients", y);
    let mut size = new(Kind::Line, "Messages per second by size", "bytes of a message", y);
    let x = "what differs from the first point (c: clients, b: messages per write)";
    let mut cost = new(Kind::Bar, "Server CPU per message", x, "microseconds");
    cost.categories = plan.points.iter().map(|point| point.difference(&base)).collect();
    let mut kinds: Vec<(&str, Way)> = Vec::new();
    for row in rows {
        if !kinds.contains(&(&row.subject, row.way)) {
            kinds.push((&row.subject, row.way));
        }
    }
    for (subject, way) in kinds {
        let name = format!("{subject}: {}", way.name());
        let own: Vec<&Row> = rows.iter().filter(|row| row.is_of(subject, way)).collect();
        throughput = throughput.with(Series::repeated(&name, &by_clients(&own, base)));
        size = size.with(Series::repeated(&name, &by_size(&own, base)));
        let at = |row: &&Row| {
            let x = plan.points.iter().position(|point| Some(*point) == row.point)?;
            Some((x as f64, row.server_us()?))
        };
        cost = cost.with(Series::new(&name, own.iter().filter_map(at).collect()));
    }
    vec![throughput, size, cost]
}
