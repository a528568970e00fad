//! The report's part.

use super::adaptive;
use super::classic::{COMMON_LABEL, label, line, yardstick};
use super::subject::{Seen, Way};
use super::verdict::verdict;
use super::{NAME, Plan, Row, Rows, per_thousand};
use crate::acks::CLASSIC;
use crate::analysis::figure::{count, time};
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
    prose.extend(servers.iter().flat_map(|name| verdict(name, &rows.all)));
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
    let section = Section { title: "Acks".to_owned(), prose, plots, tables, findings };
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
    prose.extend(servers.iter().flat_map(|name| verdict(name, if common { &same } else { &only })));
    let rows = Rows { all: published, failed: rows.failed };
    let section = Section {
        title: "Acks: the published clients".to_owned(),
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

/// A figure that may not be there.
fn cell(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

fn table(title: &str, rows: &[Row]) -> Table {
    let columns = [
        "sent",
        "target",
        "strategy",
        "messages/s",
        "acks per 1,000",
        "reads per 1,000",
        "server us",
        "client us",
        "p50",
        "p99",
    ];
    let row = |row: &Row| {
        let us = |value: f64| format!("{value:.4}");
        let latency = |of: fn(&Seen) -> f64| cell(row.middle(|seen| Some(of(seen))), time);
        let acknowledged = row.way != Way::Null;
        let unless_null = |text: String| if acknowledged { text } else { "-".to_owned() };
        let throughput = match row.throughput() {
            Some(value) => count(value),
            None => "failed".to_owned(),
        };
        vec![
            row.label.clone(),
            row.subject.clone(),
            row.way.name().to_owned(),
            throughput,
            unless_null(cell(row.middle(|seen| Some(seen.acks)), per_thousand)),
            cell(row.middle(|seen| seen.reads), per_thousand),
            cell(row.server_us(), us),
            cell(row.client_us(), us),
            unless_null(latency(|seen| seen.measurement.latency.p50_us)),
            unless_null(latency(|seen| seen.measurement.latency.p99_us)),
        ]
    };
    let columns = columns.map(str::to_owned).to_vec();
    Table { title: title.to_owned(), columns, rows: rows.iter().map(row).collect() }
}

/// Published figures beside the most of any point.
fn best(rows: &[Row], servers: &[&str]) -> Table {
    let mut all = Vec::new();
    for classic in CLASSIC {
        for name in servers {
            let way = Way::Strategy(classic.strategy);
            let best = rows
                .iter()
                .filter(|row| row.subject == *name && row.way == way)
                // The published clients sent batches.
                .filter(|row| row.point.is_some_and(|point| point.block.is_none()))
                .filter_map(|row| Some((row.throughput()?, row)))
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let (most, with) = best.map_or(("-".to_owned(), String::new()), |(most, row)| {
                (count(most), row.label.clone())
            });
            let published = count(classic.published as f64);
            all.push(vec![
                classic.strategy.name().to_owned(),
                published,
                (*name).to_owned(),
                most,
                with,
            ]);
        }
    }
    let columns = ["strategy", "published/s", "target", "most here/s", "with"];
    let columns = columns.map(str::to_owned).to_vec();
    Table { title: "Beside the published figures".to_owned(), columns, rows: all }
}

/// Published figures beside the same clients here and what reads without a thought.
fn beside(rows: &Rows, servers: &[&str]) -> Table {
    let mut all = Vec::new();
    for classic in CLASSIC {
        let (model, way) = yardstick(classic.strategy, "model:null-reader", "model:echo-ack");
        let label = label(&classic);
        let yard = rows.find(&label, model, way).and_then(Row::throughput);
        for name in servers {
            let own = rows.find(&label, name, Way::Strategy(classic.strategy));
            let own = own.and_then(Row::throughput);
            all.push(vec![
                label.clone(),
                count(classic.published as f64),
                (*name).to_owned(),
                cell(own, count),
                format!("{} {}", way.name(), cell(yard, count)),
                cell(own.zip(yard).map(|(own, yard)| own / yard), |ratio| format!("{ratio:.2}")),
            ]);
        }
    }
    let columns = ["client", "published/s", "target", "here/s", "beside/s", "ratio"];
    let columns = columns.map(str::to_owned).to_vec();
    Table { title: "Beside the published figures".to_owned(), columns, rows: all }
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

/// The one client that looks for acknowledgements after every small write, beside itself at the null reader. (Request-reply
/// always waits.)
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

/// The client's threads share the load evenly, so their mean stands for the busiest; the server's CPU is that of all
/// its threads, so a saturated client is claimed too seldom, never too often.
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
