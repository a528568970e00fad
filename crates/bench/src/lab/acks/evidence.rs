//! From rows to findings: what the general rules say of each strategy.

use ingest::Strategy;
use ingest::v2::Acking;

use super::options::{NAME, Plan};
use super::point::Way;
use super::rows::{Row, Seen, by_clients, other_cpus};
use crate::analysis::findings::{Client, Evidence, Reading, Trust, judge};
use crate::analysis::retrograde::Level;
use crate::analysis::spread::Spread;
use crate::result::Finding;

/// What the general rules say of each strategy of a server.
pub fn findings(name: &str, rows: &[Row], plan: &Plan) -> Vec<Finding> {
    let of = |way: Way| {
        let own: Vec<&Row> = rows.iter().filter(|row| row.is_of(name, way)).collect();
        let levels = by_clients(&own, plan.points[0]).into_iter();
        let levels: Vec<Level> = levels
            .filter(|(_, rates)| !rates.is_empty())
            .map(|(clients, rates)| Level::new(clients, &rates))
            .collect();
        let client = own.first().and_then(|row| client(row, plan));
        let spread = levels.iter().filter_map(|l| Some(Spread::of(&l.throughput)?.relative()));
        judge(&Evidence {
            experiment: NAME.to_owned(),
            target: format!("{name}, {}", way.name()),
            trust: Trust {
                other_cpus: other_cpus(own.iter().copied()),
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
    let sent = |way: &Way| rows.iter().any(|row| row.is_of(name, *way));
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
