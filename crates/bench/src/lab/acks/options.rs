//! What can be asked of the experiment, and what it says.

use std::net::SocketAddr;

use clap::Args;
use ingest::HEADER_BYTES;

use super::point::Point;
use crate::acks::BATCH_MAX;
use crate::analysis::texts::Texts;
use crate::lab::experiment::Setup;

/// The experiment's name.
pub const NAME: &str = "acks";
/// What it says.
pub const TEXTS: Texts = Texts(include_str!("text.txt"));

/// Bytes of a published message: a header and a payload of 5 bytes.
const MESSAGE: usize = 17;
/// Messages per write where nothing else is said.
const BATCH: usize = 50;
/// Bytes of the block client's writes.
const BLOCK: usize = 64 << 10;
/// Largest message that can be asked for, bytes: the server's own limit, with the header.
const MESSAGE_MAX: usize = (1 << 20) + HEADER_BYTES;

/// Options of `lab acks`.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Run the five published clients instead, and print their results
    #[arg(long)]
    pub classic: bool,
    /// Numbers of clients to measure, separated by commas [default: 1,2,3,16,50]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub clients: Vec<usize>,
    /// Sizes of a classic message in bytes, with its header of 12; protocol 2 sends the same
    /// payload [default: 17,112,1036]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub message_size: Vec<usize>,
    /// Messages per write; with protocol 2, per Data frame [default: 50,1,150]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub batch: Vec<usize>,
    /// Threads of the load generator
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub threads: usize,
    /// Address for INFO of a server that is already running, to read its counters
    #[arg(long, value_name = "HOST:PORT")]
    pub info: Option<SocketAddr>,
    /// Address for protocol 2 of a server that is already running; the listener must allow any sink
    #[arg(long, value_name = "HOST:PORT")]
    pub protocol2: Option<SocketAddr>,
}

/// What one run does, all choices made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is sent; the first is what the others are compared with.
    pub points: Vec<Point>,
    /// Seconds per point, roughly.
    pub seconds: f64,
    /// Threads of the load generator.
    pub threads: usize,
    /// Repetitions of each point.
    pub repetitions: usize,
    /// Where a server that runs already answers INFO.
    pub info: Option<SocketAddr>,
    /// Where it takes protocol 2.
    pub protocol2: Option<SocketAddr>,
}

impl Options {
    /// All choices made; refuses what cannot be run, with the reason.
    pub fn plan(&self, setup: &Setup) -> Result<Plan, String> {
        let choose = |given: &[usize], long: &[usize], short: &[usize]| match given {
            [] if setup.short => short.to_vec(),
            [] => long.to_vec(),
            given => given.to_vec(),
        };
        let clients = choose(&self.clients, &[1, 2, 3, 16, 50], &[1, 2, 16]);
        let sizes = choose(&self.message_size, &[MESSAGE, 112, 1036], &[MESSAGE, 1036]);
        let batches = choose(&self.batch, &[BATCH, 1, 150], &[BATCH, 1]);
        if clients.contains(&0) || clients.iter().any(|n| *n > 10_000) {
            return Err("clients are 1 to 10000".to_owned());
        }
        if sizes.iter().any(|bytes| !(HEADER_BYTES..=MESSAGE_MAX).contains(bytes)) {
            return Err(format!("a message has from {HEADER_BYTES} to {MESSAGE_MAX} bytes"));
        }
        if batches.iter().any(|n| !(1..=BATCH_MAX).contains(n)) {
            return Err(format!("messages per write are 1 to {BATCH_MAX}"));
        }
        Ok(Plan {
            points: points(&clients, &sizes, &batches),
            seconds: setup.seconds(1.0, 0.1),
            threads: self.threads.max(1),
            repetitions: setup.repetitions.max(1),
            info: self.info,
            protocol2: self.protocol2,
        })
    }
}

/// One thing is changed at a time, from the first of each list.
fn points(clients: &[usize], sizes: &[usize], batches: &[usize]) -> Vec<Point> {
    let base = Point {
        clients: clients[0],
        message_size: sizes[0],
        batch: batches[0],
        waits: false,
        nodelay: true,
        looks: false,
        block: None,
    };
    let mut points: Vec<Point> = clients.iter().map(|&clients| Point { clients, ..base }).collect();
    points.extend(sizes[1..].iter().map(|&message_size| Point { message_size, ..base }));
    points.extend(batches[1..].iter().map(|&batch| Point { batch, ..base }));
    points.extend(batches.iter().map(|&batch| Point { batch, nodelay: false, ..base }));
    // As published clients do: a look for acknowledgements after every write.
    let looks = Point { nodelay: false, looks: true, ..base };
    points.extend(clients.iter().map(|&clients| Point { clients, ..looks }));
    points.push(Point { block: Some(BLOCK), ..base });
    points.extend(clients.iter().map(|&clients| Point { clients, waits: true, ..base }));
    let mut once: Vec<Point> = Vec::new();
    for point in points {
        if !once.contains(&point) {
            once.push(point);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(short: bool) -> Setup {
        Setup { targets: vec![], seconds: None, short, repetitions: 1 }
    }

    #[test]
    fn points_vary_one_parameter_and_are_unique() {
        let options = Options { clients: vec![1, 2, 2], ..Options::default() };
        let plan = options.plan(&setup(false)).expect("it can run");
        // Clients 2, sizes 2 more, batches 2 more, NODELAY off with 3 batches, a check after every
        // write with both clients, the block, and both clients again with waiting.
        assert_eq!(plan.points.len(), 2 + 2 + 2 + 3 + 2 + 1 + 2);
        let base = plan.points[0];
        for point in &plan.points[1..6] {
            let changed = [
                point.clients != base.clients,
                point.message_size != base.message_size,
                point.batch != base.batch,
            ];
            assert_eq!(changed.iter().filter(|c| **c).count(), 1, "{point:?}");
        }
        assert!(plan.points.iter().filter(|p| !p.nodelay && !p.looks).count() == 3);
    }

    #[test]
    fn invalid_options_are_refused() {
        let bad = |options: Options| assert!(options.plan(&setup(true)).is_err(), "{options:?}");
        bad(Options { clients: vec![0], ..Options::default() });
        bad(Options { message_size: vec![11], ..Options::default() });
        bad(Options { batch: vec![BATCH_MAX + 1], ..Options::default() });
        bad(Options { batch: vec![0], ..Options::default() });
    }
}
