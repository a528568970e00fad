//! Messages between workers. Everything is plain data; a mailbox never blocks and never fails.

use crate::sessions::card::ClientCard;
use crate::sessions::output::Hold;
use crate::sessions::session::Session;
use base::sync::Arc;
use base::sync::atomic::AtomicBool;
use driver::{ConnId, Moving, PeerAddr, Socket};
use keyspace::Ticket;
use resp::OutBuf;
use std::fmt;

/// The reply to a blocked session.
#[derive(Debug)]
pub struct Served {
    /// The blocked connection.
    pub conn: ConnId,
    /// The ticket that was claimed for it.
    pub ticket: Arc<Ticket>,
    /// The reply.
    pub out: OutBuf,
    /// What must have happened before the reply leaves.
    pub hold: Hold,
    /// How long it took to serve, nanoseconds.
    pub ns: u64,
    /// The reply is an error.
    pub has_failed: bool,
}

/// A client on its way to another worker.
pub struct Moved {
    /// Its session.
    pub session: Box<Session>,
    /// Its connection.
    pub connection: Moving,
}

impl fmt::Debug for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moved({})", self.session.card.id)
    }
}

/// A message to a worker.
#[derive(Debug)]
pub enum Message {
    /// A connection that the acceptor hands over.
    Connection {
        /// The accepted socket.
        socket: Socket,
        /// Where it came from.
        peer: PeerAddr,
        /// Its client id.
        id: u64,
    },
    /// A connection of an ingest listener that the acceptor hands over.
    Ingest {
        /// The accepted socket.
        socket: Socket,
        /// Its listener's place among the ingest listeners.
        port: u32,
    },
    /// A newer connection has taken over the producer of this ingest connection.
    TakenOver {
        /// The older connection.
        conn: ConnId,
        /// Its number among the producer's connections, in case the index was reused.
        epoch: u64,
    },
    /// A fence was published: the worker follows the changed rules and passes the fence.
    Fence,
    /// Held replies of this worker's sessions may leave now.
    Released,
    /// CLIENT PAUSE ended or was changed: paused sessions retry.
    PauseChanged,
    /// The World gate has opened, or a slot is no longer held for long: this session retries its
    /// command.
    Retry(ConnId),
    /// A run of CONFIG REWRITE has ended.
    Rewritten {
        /// The number of the run.
        run: u64,
        /// How it ended.
        written: crate::settings::rewriter::Written,
    },
    /// The thread of a save.
    Saver {
        /// Its number.
        number: u64,
        /// What it tells.
        what: crate::persist::save::FromWalker,
    },
    /// This worker has to begin a save, which is the run of the server.
    BeginSave(crate::persist::save::status::Wanted),
    /// The save of this worker is given up.
    GiveUpSave,
    /// The server does not end: the save before its end has failed, or was aborted.
    ShutdownFailed,
    /// Records were handed over while worker 0 slept; for worker 0.
    Journal,
    /// BGREWRITEAOF while there is no append-only file; for worker 0.
    RewriteAppendOnly,
    /// The stream of replication has another id; for worker 0.
    Renamed,
    /// CONFIG SET appendonly; for worker 0.
    AppendOnly,
    /// A file is planned to be loaded; for worker 0.
    Load,
    /// DEBUG LOADAOF of this worker's session; for worker 0.
    LoadAppendOnly(usize, ConnId),
    /// DEBUG RELOAD or LOADAOF is over, or has not begun for this reason.
    Reloaded(ConnId, Option<command::Error>),
    /// The threads that load a file have room for another block, or have ended.
    Loading,
    /// The thread of a MIGRATE is back.
    Migrated(Box<crate::migrate::conversation::Trip>),
    /// A blocked session was served: this is its reply.
    Served(Box<Served>),
    /// The command of a blocked session panicked when it was served, and was undone.
    ServingPanicked {
        /// The blocked connection.
        conn: ConnId,
        /// Its ticket, which was claimed.
        ticket: Arc<Ticket>,
    },
    /// CLIENT UNBLOCK has claimed the ticket of a blocked session.
    Unblocked {
        /// The blocked connection.
        conn: ConnId,
        /// Its ticket.
        ticket: Arc<Ticket>,
        /// Answer with an error, instead of as if its time were up.
        with_error: bool,
    },
    /// CLIENT KILL: close the connection of this client. If it has moved, the message follows it.
    Kill(Arc<ClientCard>),
    /// A client that another worker hands over.
    Moved(Box<Moved>),
    /// A line for every session of this worker that monitors, and what must have happened before it
    /// leaves.
    Monitor(Arc<[u8]>, Hold),
    /// Lines for them were dropped: they are closed.
    MonitorLost,
    /// Messages for subscribers of this worker are in its inbox.
    Published,
    /// The admin thread asks whether the workers answer: each sets its own flag.
    Probe(Arc<[AtomicBool]>),
    /// SHUTDOWN or a signal: flush what was executed, then end.
    Shutdown,
}
