//! Runs a sequence on one server: records every reply, then the final state.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::dice::Args;
use super::events::{KeyEvent, Listener};
use super::family::is;
use super::sequence::{Delivery, Sequence, Step};
use super::state::{self, Facts};
use crate::wire::{Value, Wire, encode};

/// Wait after a command which sets an expiry of a few milliseconds.
pub const SETTLE: Duration = Duration::from_millis(12);
/// The databases that sequences use and whose state is compared.
pub const DATABASES: u8 = 4;
/// Stands for the payload of the last DUMP on the connection.
pub const DUMPED: &[u8] = b"<the last DUMP>";
/// The same with one byte changed.
pub const DUMPED_DAMAGED: &[u8] = b"<the last DUMP, damaged>";

/// All replies of one server.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// One for each step.
    pub replies: Vec<Value>,
    /// The events of keys, in their order; `None` if they were not asked for.
    pub events: Option<Vec<KeyEvent>>,
    /// By database and key: questions and answers.
    pub state: BTreeMap<(u8, Vec<u8>), Facts>,
    /// Why it ended early; `None` if it did not.
    pub broken: Option<String>,
}

impl Trace {
    /// How many replies are errors.
    pub fn errors(&self) -> usize {
        let of = |value: &Value| match value {
            Value::Array(values) => values.iter().filter(is_error).count(),
            _ => 0,
        };
        let all = self.replies.iter().map(|reply| match reply {
            Value::Map(told) if !told.is_empty() => told.iter().map(|(_, all)| of(all)).sum(),
            other => usize::from(is_error(&other)),
        });
        all.sum()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a predicate of an iterator")]
fn is_error(value: &&Value) -> bool {
    matches!(value, Value::Error(_))
}

/// Runs it from an empty keyspace on new connections.
///
/// A reply which does not arrive within `patience` counts as missing.
pub fn execute(
    server: SocketAddr,
    sequence: &Sequence,
    patience: Duration,
    hears_events: bool,
) -> Trace {
    let mut trace = Trace::default();
    if let Err(why) = Run::execute(server, sequence, (patience, hears_events), &mut trace) {
        trace.broken = Some(why.to_string());
    }
    trace
}

/// A connection of the sequence.
pub(super) struct Peer {
    pub wire: Wire,
    /// Its client id, for CLIENT UNBLOCK.
    id: String,
    /// The step which blocks and has no reply yet.
    waits: Option<usize>,
    /// The payload of the last DUMP.
    dumped: Option<Vec<u8>>,
}

pub(super) struct Run<'a> {
    /// The connection which observes the server and resets it.
    pub judge: Wire,
    pub peers: BTreeMap<u8, Peer>,
    pub patience: Duration,
    pub trace: &'a mut Trace,
}

impl Run<'_> {
    fn execute(
        server: SocketAddr,
        sequence: &Sequence,
        (patience, hears_events): (Duration, bool),
        trace: &mut Trace,
    ) -> io::Result<()> {
        let mut judge = open(server, 2, patience)?;
        judge.command(&["FLUSHALL"])?;
        let mut peers = BTreeMap::new();
        let blocking = sequence.steps.iter().any(|step| may_block(&step.args));
        for conn in sequence.steps.iter().map(|step| step.conn).chain([1]) {
            if let std::collections::btree_map::Entry::Vacant(place) = peers.entry(conn) {
                let mut wire = open(server, sequence.proto, patience)?;
                let id = match blocking.then(|| wire.command(&["CLIENT", "ID"])).transpose()? {
                    Some(Value::Int(id)) => id.to_string(),
                    _ => String::new(),
                };
                place.insert(Peer { wire, id, waits: None, dumped: None });
            }
        }
        let listener = match sequence.delivery {
            Delivery::Gathered => None,
            _ if !hears_events => None,
            _ => Some(Listener::open(server, &mut judge, patience)?),
        };
        let mut run = Run { judge, peers, patience, trace };
        match sequence.delivery {
            Delivery::OneByOne => run.one_by_one(&sequence.steps)?,
            Delivery::Pipelined => run.pipeline(sequence, usize::MAX)?,
            Delivery::Pieces(len) => run.pipeline(sequence, len)?,
            Delivery::Gathered => {
                run.await_no_subscribers()?;
                run.gathered(sequence)?;
            }
        }
        run.close()?;
        if let Some(listener) = listener {
            run.trace.events = Some(listener.heard(&mut run.judge)?);
        }
        state::read(&mut run.judge, &mut run.trace.state)
    }

    fn one_by_one(&mut self, steps: &[Step]) -> io::Result<()> {
        let settles = steps.iter().any(|step| step.settle);
        for (at, step) in steps.iter().enumerate() {
            self.unblock(step.conn)?;
            let peer = self.peers.get_mut(&step.conn).expect("opened at the start");
            peer.wire.send(&encode(&peer.filled_in(&step.args)))?;
            // A placeholder until the reply arrives.
            self.trace.replies.push(Value::Null);
            if !may_block(&step.args) || self.answers(step.conn)? {
                let peer = self.peers.get_mut(&step.conn).expect("opened at the start");
                let reply = peer.wire.receive()?;
                if let (true, Value::Bulk(payload)) = (is(&step.args, "DUMP"), &reply) {
                    peer.dumped = Some(payload.clone());
                }
                self.trace.replies[at] = reply;
            } else {
                self.peers.get_mut(&step.conn).expect("opened at the start").waits = Some(at);
            }
            // The short time to live of a queued command starts only now.
            if step.settle || settles && is(&step.args, "EXEC") {
                sleep(SETTLE);
            }
        }
        let conns: Vec<u8> = self.peers.keys().copied().collect();
        conns.into_iter().try_for_each(|conn| self.unblock(conn))
    }

    /// Waits until the command just sent has a reply or is blocked.
    fn answers(&mut self, conn: u8) -> io::Result<bool> {
        let peer = self.peers.get_mut(&conn).expect("opened at the start");
        let started = Instant::now();
        while started.elapsed() < self.patience {
            if peer.wire.has_reply(Duration::from_millis(1))? {
                return Ok(true);
            }
            let list = self.judge.command(&["CLIENT", "LIST", "ID", &peer.id])?;
            let Value::Bulk(text) = list else { continue };
            let text = String::from_utf8_lossy(&text).into_owned();
            let flags = text.split(' ').find_map(|field| field.strip_prefix("flags="));
            if flags.is_some_and(|flags| flags.contains('b')) {
                // Short timeouts are waited for; an endless wait lasts until a client serves it.
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Ends the wait of a connection: by reading its reply if it was served, else by CLIENT
    /// UNBLOCK.
    fn unblock(&mut self, conn: u8) -> io::Result<()> {
        let peer = self.peers.get_mut(&conn).expect("opened at the start");
        if let Some(at) = peer.waits.take() {
            self.judge.command(&["CLIENT", "UNBLOCK", &peer.id])?;
            self.trace.replies[at] = peer.wire.receive()?;
        }
        Ok(())
    }

    /// Sends everything in pieces and then reads all replies; sequences are far smaller than the
    /// buffers between us.
    fn pipeline(&mut self, sequence: &Sequence, piece: usize) -> io::Result<()> {
        let wire = &mut self.peers.get_mut(&1).expect("opened at the start").wire;
        let bytes: Vec<u8> = sequence.steps.iter().flat_map(|step| encode(&step.args)).collect();
        for part in bytes.chunks(piece.min(bytes.len().max(1))) {
            wire.send(part)?;
        }
        for _ in &sequence.steps {
            self.trace.replies.push(wire.receive()?);
        }
        Ok(())
    }

    /// Closes all connections; a surplus reply is an error.
    fn close(&mut self) -> io::Result<()> {
        for (conn, peer) in std::mem::take(&mut self.peers) {
            let mut wire = peer.wire;
            let echo = format!("the end of {conn}");
            let answer = wire.command(&["ECHO", &echo])?;
            let in_multi = Value::Simple(b"QUEUED".to_vec());
            if answer != Value::Bulk(echo.into_bytes()) && answer != in_multi {
                return Err(io::Error::other(format!("a reply too many: {answer:?}")));
            }
        }
        Ok(())
    }
}

impl Peer {
    /// The command, with placeholders replaced by the payload of the last DUMP.
    fn filled_in(&self, args: &[Vec<u8>]) -> Args {
        let mut args = args.to_vec();
        if let (true, Some(payload)) = (is(&args, "RESTORE"), &self.dumped) {
            for arg in &mut args {
                let damaged = *arg == DUMPED_DAMAGED;
                if *arg == DUMPED || damaged {
                    arg.clone_from(payload);
                    let middle = payload.len() / 2;
                    arg[middle] ^= u8::from(damaged);
                }
            }
        }
        args
    }
}

/// Whether this command may block without limit: a blocking one whose timeout is not short.
fn may_block(args: &[Vec<u8>]) -> bool {
    const LAST: [&str; 6] = ["BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX"];
    const FIRST: [&str; 2] = ["BLMPOP", "BZMPOP"];
    let timeout = if LAST.iter().any(|name| is(args, name)) {
        args.last()
    } else if FIRST.iter().any(|name| is(args, name)) {
        args.get(1)
    } else {
        None
    };
    let seconds = timeout.and_then(|text| std::str::from_utf8(text).ok()?.parse::<f64>().ok());
    seconds.is_some_and(|seconds| seconds == 0.0 || seconds >= 1.0)
}

pub(super) fn open(server: SocketAddr, proto: u8, patience: Duration) -> io::Result<Wire> {
    let mut wire = Wire::connect(server)?;
    wire.stream().set_read_timeout(Some(patience))?;
    if proto == 3 {
        wire.command(&["HELLO", "3"])?;
    }
    Ok(wire)
}
