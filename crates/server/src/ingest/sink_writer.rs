//! The way of a classic connection's messages into its sink: they are cut out of what was received,
//! written into the key, and what the sink does not accept now is kept, a read and a message at
//! most.

use crate::ingest::pour::Poured;
use crate::worker::core::Core;
use driver::ConnId;
use ingest::{Messages, Order, Piece, Pieces, Sink};
use keyspace::Access;

/// Writes a connection's messages into its sink.
pub(crate) struct SinkWriter {
    sink: Sink,
    pub(crate) pieces: Pieces,
    /// Bytes which were received and are not written yet.
    pub(crate) kept: Vec<u8>,
    pub(crate) waits: Waits,
}

/// What a connection waits for before it retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Nothing: all is written.
    No,
    /// The keyspace wakes it when the gate opens or the slot is free.
    Wakeup,
    /// Memory, which is polled.
    Memory,
}

/// How the writing of a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// Everything is written.
    All,
    /// The remaining messages are to be retried.
    Wait(Waits),
    /// This sink never accepts them; the reason.
    Never(&'static str),
}

impl SinkWriter {
    /// A writer to a sink which keeps messages; `None` for the null sink.
    pub fn to(sink: &Sink, order: Order) -> Option<Box<Self>> {
        (!sink.is_null()).then(|| {
            let (sink, pieces) = (sink.clone(), Pieces::new(order));
            Box::new(Self { sink, pieces, kept: Vec::new(), waits: Waits::No })
        })
    }

    /// True while nothing may be received.
    pub fn waits(&self) -> bool {
        self.waits != Waits::No
    }

    /// True if unwritten bytes, and perhaps whole messages among them, are kept.
    pub fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Bytes of memory that are held for messages.
    pub fn memory(&self) -> usize {
        self.pieces.buffered() + self.kept.capacity()
    }

    /// Writes a block, as far as the sink accepts it. Returns how many of its bytes are used, and
    /// how it ended.
    pub(crate) fn write(
        &mut self,
        (core, access): (&mut Core, &mut Access),
        conn: ConnId,
        block: &[u8],
        payload_max: u32,
    ) -> (usize, WriteEnd) {
        let mut at = 0;
        loop {
            let (messages, count, used) = match self.pieces.next(&block[at..], payload_max) {
                Piece::Whole { messages, count, used } => (messages, count, used),
                Piece::Partial | Piece::Oversized => return (block.len(), WriteEnd::All),
            };
            let (taken, end) =
                match core.pour(access, conn, &self.sink, messages.clone(), (count, None)) {
                    Poured::All => (count, WriteEnd::All),
                    Poured::Later { taken } => (taken, WriteEnd::Wait(Waits::Wakeup)),
                    Poured::Full { taken } => (taken, WriteEnd::Wait(Waits::Memory)),
                    Poured::WrongType { taken } => {
                        (taken, WriteEnd::Never("the key holds a value of another type"))
                    }
                    Poured::NoMoreIds { taken } => {
                        (taken, WriteEnd::Never("the ids of the stream are used up"))
                    }
                    Poured::NoDb => (0, WriteEnd::Never("there is no such database")),
                    Poured::Broken { taken } => (taken, WriteEnd::Never("a panic was undone")),
                };
            if taken == count {
                self.pieces.mark_taken();
                at += used;
            } else {
                at += bytes_of(messages, taken);
            }
            if end != WriteEnd::All {
                return (at, end);
            }
        }
    }
}

/// Bytes of the first so many messages.
fn bytes_of(mut messages: Messages<'_>, count: usize) -> usize {
    let all = messages.remaining().len();
    messages.by_ref().take(count).for_each(drop);
    all - messages.remaining().len()
}
