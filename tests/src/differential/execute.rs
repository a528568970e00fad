//! Running a sequence on one server: every reply, then the state that is left.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

use super::sequence::{Delivery, Sequence};
use crate::wire::{Value, Wire, encode};

/// After a command that sets an expiry of a few milliseconds.
pub const SETTLE: Duration = Duration::from_millis(12);
/// The databases that sequences use and whose state is compared.
pub const DATABASES: u8 = 4;

/// What is left of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// TYPE
    pub kind: Value,
    /// Its value, as its type's reading command tells it.
    pub value: Value,
    /// OBJECT ENCODING
    pub encoding: Value,
    /// PTTL
    pub ttl: Value,
}

/// Everything that one server said.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// One for each step.
    pub replies: Vec<Value>,
    /// By database and key.
    pub state: BTreeMap<(u8, Vec<u8>), Left>,
    /// Why it ended early, if it did.
    pub broken: Option<String>,
}

impl Trace {
    /// How many replies are errors.
    pub fn errors(&self) -> usize {
        self.replies.iter().filter(|reply| matches!(reply, Value::Error(_))).count()
    }
}

/// Runs it from an empty keyspace on new connections.
///
/// A reply that does not come within `patience` does not come.
pub fn execute(server: SocketAddr, sequence: &Sequence, patience: Duration) -> Trace {
    let mut trace = Trace::default();
    if let Err(why) = try_execute(server, sequence, patience, &mut trace) {
        trace.broken = Some(why.to_string());
    }
    trace
}

fn try_execute(
    server: SocketAddr,
    sequence: &Sequence,
    patience: Duration,
    trace: &mut Trace,
) -> io::Result<()> {
    let mut wires = BTreeMap::new();
    for conn in sequence.steps.iter().map(|step| step.conn).chain([1]) {
        if let std::collections::btree_map::Entry::Vacant(place) = wires.entry(conn) {
            place.insert(open(server, sequence.proto, patience)?);
        }
    }
    let mut judge = open(server, 2, patience)?;
    judge.command(&["FLUSHALL"])?;
    let first = wires.get_mut(&1).expect("opened above");
    match sequence.delivery {
        Delivery::OneByOne => {
            for step in &sequence.steps {
                let wire = wires.get_mut(&step.conn).expect("opened above");
                trace.replies.push(wire.command(&step.args)?);
                if step.settle {
                    sleep(SETTLE);
                }
            }
        }
        Delivery::Pipelined => pipeline(first, sequence, usize::MAX, trace)?,
        Delivery::Pieces(len) => pipeline(first, sequence, len, trace)?,
    }
    for (conn, wire) in &mut wires {
        // A reply more than commands would show here.
        let echo = format!("the end of {conn}");
        let unsubscribed = wire.command(&["ECHO", &echo])?;
        let in_multi = Value::Simple(b"QUEUED".to_vec());
        if unsubscribed != Value::Bulk(echo.into_bytes()) && unsubscribed != in_multi {
            return Err(io::Error::other(format!("a reply too many: {unsubscribed:?}")));
        }
    }
    drop(wires);
    for database in 0..DATABASES {
        state(&mut judge, database, trace)?;
    }
    Ok(())
}

fn open(server: SocketAddr, proto: u8, patience: Duration) -> io::Result<Wire> {
    let mut wire = Wire::connect(server)?;
    wire.stream().set_read_timeout(Some(patience))?;
    if proto == 3 {
        wire.command(&["HELLO", "3"])?;
    }
    Ok(wire)
}

/// Sends everything in pieces and then reads all replies; sequences are far smaller than the
/// buffers between us.
fn pipeline(
    wire: &mut Wire,
    sequence: &Sequence,
    piece: usize,
    trace: &mut Trace,
) -> io::Result<()> {
    let bytes: Vec<u8> = sequence.steps.iter().flat_map(|step| encode(&step.args)).collect();
    for part in bytes.chunks(piece.min(bytes.len().max(1))) {
        wire.send(part)?;
    }
    for _ in &sequence.steps {
        trace.replies.push(wire.receive()?);
    }
    Ok(())
}

fn state(judge: &mut Wire, database: u8, trace: &mut Trace) -> io::Result<()> {
    judge.command(&["SELECT", &database.to_string()])?;
    let keys = match judge.command(&["KEYS", "*"])? {
        Value::Array(keys) => keys,
        other => return Err(io::Error::other(format!("KEYS answered {other:?}"))),
    };
    for key in keys {
        let Value::Bulk(key) = key else { return Err(io::Error::other("a key is no string")) };
        let mut ask = |words: &[&str]| {
            let mut args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            args.push(&key);
            judge.command(&args)
        };
        let left = Left {
            kind: ask(&["TYPE"])?,
            value: ask(&["GET"])?,
            encoding: ask(&["OBJECT", "ENCODING"])?,
            ttl: ask(&["PTTL"])?,
        };
        trace.state.insert((database, key), left);
    }
    Ok(())
}
