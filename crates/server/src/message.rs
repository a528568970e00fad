//! What workers tell each other. Everything is plain data; a mailbox never blocks nor fails.

use driver::{ConnId, PeerAddr, Socket};

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
    /// CLIENT PAUSE ended or was changed: paused sessions try again.
    PauseChanged,
    /// The World gate has opened, or a slot's long holder is done: this session tries its command again.
    Retry(ConnId),
    /// CLIENT KILL: close this connection.
    Kill {
        /// The connection to close.
        conn: ConnId,
        /// Its client id, in case the index was reused.
        id: u64,
    },
    /// SHUTDOWN or a signal: flush what was executed, then end.
    Shutdown,
}
