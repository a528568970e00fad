//! The report's part.

use super::adaptive;
use super::classic::{COMMON_LABEL, label, line, yardstick};
use super::subject::{Seen, Way};
use super::verdict::verdict;
use super::{NAME, Plan, Row, Rows, per_thousand};
use crate::acks::{CLASSIC, Classic};
use crate::analysis::figure::{cell, count, time};
use crate::analysis::findings::{Client, Evidence, Reading, Trust, judge};
use crate::analysis::retrograde::Level;
use crate::analysis::spread::Spread;
use crate::lab::Told;
use crate::report::{Kind, Plot, Section, Series, Table};
use crate::result::Finding;
use ingest::Strategy;
use ingest::v2::Acking;

/// What the clocks and counts are, so that rows can be compared.
const LIKE_WITH_LIKE: &str = "Every figure is acknowledged messages (of the null reader: messages read to the end) over the time from the first \
    write of any connection to the last acknowledgement of any; connecting is not part of it, and each acknowledgement is checked: \
    previous + skipped + 1 = id. Protocol 2 sends the same payloads, in messages that are 8 bytes shorter and frames of 16 bytes more; a frame \
    is a write, and never more is sent than was granted.";

/// Of the grid.
pub fn grid(rows: Rows, servers: &[&str], plan: &Plan) -> Told {
    let mut prose = vec![format!(
        "Small messages to the five ports of classic ingest and to one of protocol 2, the same clients for all; one thing is changed at a \
         time from {}. About {} s per point. Request-reply waits for the answers of a write before the next one; a client that waits \
         does so whatever it speaks.",
        plan.points[0], plan.seconds
    )];
    prose.push(LIKE_WITH_LIKE.to_owned());
    let answers = answers(servers, &rows.all, &mut prose);
    let findings: Vec<Finding> =
        servers.iter().flat_map(|name| findings(name, &rows.all, plan)).collect();
    let mut tables = vec![table("All points", &rows.all), best(&rows.all, servers)];
    for name in servers {
        let (told, table) = adaptive::check(name, &rows.all);
        prose.extend(told);
        tables.extend(table);
    }
    let mut plots = plots(&rows.all, plan);
    plots.extend(adaptive::plot(&rows.all, plan));
    let title = "Acks".to_owned();
    let section = Section { title, answers, prose, plots, tables, findings };
    told(rows, section)
}

/// Of the published clients.
pub fn classic(rows: Rows, servers: &[&str], plan: &Plan) -> Told {
    let mut prose = vec![format!(
        "The five published clients: clients x messages of 17 bytes, {} repetitions, medians.",
        plan.repetitions
    )];
    prose.push(LIKE_WITH_LIKE.to_owned());
    for row in &rows.all {
        if let (Way::Strategy(_), Some(seen)) = (row.way, row.clean().next()) {
            let kind = if row.label == COMMON_LABEL {
                format!("{} {COMMON_LABEL}", row.way.name())
            } else {
                row.label.clone()
            };
            prose.push(format!("{}, {kind}: {}", row.subject, line(&seen.measurement)));
        }
    }
    let common = rows.all.iter().any(|row| row.label == COMMON_LABEL);
    if common {
        prose.push(
            "The published clients differ in everything at once; the verdict is that of the client that is the same for all."
                .to_owned(),
        );
    }
    let only: Vec<Row> = Vec::new();
    let (same, published): (Vec<Row>, Vec<Row>) =
        rows.all.into_iter().partition(|row| row.label == COMMON_LABEL);
    let answers = answers(servers, if common { &same } else { &only }, &mut prose);
    let rows = Rows { all: published, failed: rows.failed };
    let section = Section {
        title: "Acks: the published clients".to_owned(),
        answers,
        prose,
        plots: vec![bars(&rows.all, servers)],
        tables: vec![
            beside(&rows, servers),
            table("The published clients", &rows.all),
            table("The same client for all", &same),
        ],
        findings: Vec::new(),
    };
    let all = rows.all.into_iter().chain(same).collect();
    told(Rows { all, failed: rows.failed }, section)
}

/// Which strategy wins at each server; what belongs to it goes to the prose.
fn answers(servers: &[&str], rows: &[Row], prose: &mut Vec<String>) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    for name in servers {
        let mut told = verdict(name, rows).into_iter();
        answers.extend(told.next().map(|first| ((*name).to_owned(), first)));
        prose.extend(told.map(|text| format!("{name}: {text}")));
    }
    answers
}

fn told(rows: Rows, section: Section) -> Told {
    let seen = rows.all.iter().flat_map(|row| &row.seen);
    Told {
        measurements: seen.map(|seen| seen.measurement.clone()).collect(),
        findings: section.findings.clone(),
        sections: vec![section],
        files: Vec::new(),
        failed: rows.failed,
    }
}

fn table(title: &str, rows: &[Row]) -> Table {
    let us = |value: f64| format!("{value:.4}");
    let unless_null = |row: &Row, value: Option<f64>, show: fn(f64) -> String| {
        cell(value.filter(|_| row.way != Way::Null), show)
    };
    let p50 = |seen: &Seen| Some(seen.measurement.latency.p50_us);
    let p99 = |seen: &Seen| Some(seen.measurement.latency.p99_us);
    Table::of(
        title,
        rows,
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
            .filter(|row| row.subject == name && row.way == way)
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
fn beside(rows: &Rows, servers: &[&str]) -> Table {
    let own = |classic: &Classic, name: &str| {
        rows.find(&label(classic), name, Way::Strategy(classic.strategy)).and_then(Row::throughput)
    };
    let yard = |classic: &Classic| {
        let (model, way) = yardstick(classic.strategy, "model:null-reader", "model:echo-ack");
        (way.name(), rows.find(&label(classic), model, way).and_then(Row::throughput))
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

fn bars(rows: &[Row], servers: &[&str]) -> Plot {
    let title = "Messages per second of the published clients";
    let mut plot = Plot::new(Kind::Bar, title, "strategy", "messages/s").log(false, true);
    plot.categories = CLASSIC.iter().map(|c| c.strategy.name().to_owned()).collect();
    let published = (0..).zip(CLASSIC).map(|(x, c)| (f64::from(x), c.published as f64)).collect();
    plot = plot.with(Series::new("published", published));
    for name in servers {
        let at =
            |strategy| rows.iter().find(|r| r.subject == *name && r.way == Way::Strategy(strategy));
        let points = (0..)
            .zip(CLASSIC)
            .filter_map(|(x, c)| Some((f64::from(x), at(c.strategy)?.throughput()?)));
        plot = plot.with(Series::new(name, points.collect()));
    }
    plot
}

/// One line for each way; the target's name stands in front where there are several.
fn plots(rows: &[Row], plan: &Plan) -> Vec<Plot> {
    let base = plan.points[0];
    let mut throughput =
        Plot::new(Kind::Line, "Messages per second by clients", "clients", "messages/s")
            .log(true, true);
    let mut size =
        Plot::new(Kind::Line, "Messages per second by size", "bytes of a message", "messages/s")
            .log(true, true);
    let mut cost = Plot::new(
        Kind::Bar,
        "Server CPU per message",
        "what differs from the first point (c: clients, b: messages per write)",
        "microseconds",
    )
    .log(false, true);
    cost.categories = plan.points.iter().map(|point| point.difference(&base)).collect();
    for (subject, way) in kinds(rows) {
        let name = format!("{subject}: {}", way.name());
        let of = || rows.iter().filter(|row| row.subject == subject && row.way == way);
        let levels = |keep: &dyn Fn(&super::Point) -> Option<usize>| {
            let mut levels: Vec<(f64, Vec<f64>)> =
                of().filter_map(|row| Some((keep(&row.point?)? as f64, rates(row)))).collect();
            levels.sort_by(|a, b| a.0.total_cmp(&b.0));
            levels
        };
        let clients =
            levels(&|p| (*p == super::Point { clients: p.clients, ..base }).then_some(p.clients));
        let sizes = levels(&|p| {
            let same = super::Point { message_size: p.message_size, ..base };
            (*p == same).then_some(p.message_size)
        });
        throughput = throughput.with(Series::repeated(&name, &clients));
        size = size.with(Series::repeated(&name, &sizes));
        let at = |row: &Row| {
            let x = plan.points.iter().position(|point| Some(*point) == row.point)?;
            Some((x as f64, row.server_us()?))
        };
        cost = cost.with(Series::new(&name, of().filter_map(at).collect()));
    }
    vec![throughput, size, cost]
}

fn kinds(rows: &[Row]) -> Vec<(String, Way)> {
    let mut kinds = Vec::new();
    for row in rows {
        let kind = (row.subject.clone(), row.way);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn rates(row: &Row) -> Vec<f64> {
    row.clean().map(|seen| seen.measurement.throughput).collect()
}

/// What the general rules say of each strategy of a server.
fn findings(name: &str, rows: &[Row], plan: &Plan) -> Vec<Finding> {
    let base = plan.points[0];
    let of = |way: Way| {
        let own = rows.iter().filter(|row| row.subject == name && row.way == way);
        let own: Vec<&Row> = own.collect();
        let by_clients = own.iter().filter(|row| {
            row.point.is_some_and(|p| p == super::Point { clients: p.clients, ..base })
        });
        let mut levels: Vec<Level> = by_clients
            .filter_map(|row| Some(Level::new(row.point?.clients as f64, &rates(row))))
            .filter(|level| !level.throughput.is_empty())
            .collect();
        levels.sort_by(|a, b| a.load.total_cmp(&b.load));
        let client = own.first().and_then(|row| client(row, plan));
        let spread = levels.iter().filter_map(|l| Some(Spread::of(&l.throughput)?.relative()));
        let others = own.iter().flat_map(|row| row.clean()).map(|s| s.measurement.other_cpus);
        judge(&Evidence {
            experiment: NAME.to_owned(),
            target: format!("{name}, {}", way.name()),
            trust: Trust {
                other_cpus: others.fold(0.0, f64::max),
                client_busy: client.as_ref().map(|client| client.busiest_thread),
                relative_spread: spread.reduce(f64::max),
                repetitions: plan.repetitions,
            },
            levels,
            client,
            reading: reading(rows, &own),
            ..Evidence::default()
        })
    };
    let sent = |way: &Way| rows.iter().any(|row| row.subject == name && row.way == *way);
    let classic = Strategy::ALL.into_iter().map(Way::Strategy);
    classic.chain(Acking::ALL.map(Way::Two).into_iter().filter(sent)).flat_map(of).collect()
}

/// The one client that looks for acknowledgements after every small write, beside itself at the
/// null reader. (Request-reply always waits.)
fn reading(rows: &[Row], own: &[&Row]) -> Option<Reading> {
    let looks = |row: &&&Row| row.point.is_some_and(|point| point.looks && point.clients == 1);
    let row = own.iter().find(looks)?;
    if !matches!(row.way, Way::Strategy(strategy) if strategy != Strategy::RequestReply) {
        return None;
    }
    let null = rows.iter().find(|other| other.way == Way::Null && other.label == row.label)?;
    let point = row.point?;
    Some(Reading {
        per_write: point.batch,
        message_bytes: point.message_size,
        reads: row.middle(|seen| seen.reads)?,
        throughput: row.throughput()?,
        discarded: null.throughput()?,
    })
}

/// The client's threads share the load evenly, so their mean stands for the busiest; the server's
/// CPU is that of all its threads, so a saturated client is claimed too seldom, never too often.
fn client(row: &Row, plan: &Plan) -> Option<Client> {
    let threads = plan.threads.min(row.point?.clients);
    let busy = |seen: &Seen| seen.measurement.client_cpu_s / seen.measurement.seconds;
    let server = |seen: &Seen| Some(seen.measurement.server?.cpu_s / seen.measurement.seconds);
    Some(Client {
        threads,
        busiest_thread: (row.middle(|seen| Some(busy(seen)))? / threads as f64).min(1.0),
        server_busiest_thread: row.middle(server).map(|share| share.min(1.0)),
    })
}
