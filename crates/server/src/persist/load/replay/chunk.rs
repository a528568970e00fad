//! Commands on their way from the thread that reads them to one that runs them: their bytes, copied
//! one behind the other, and what was found out about them.

use base::{DbIndex, SlotId};
use command::{CommandId, First};
use resp::{Args, Span};

/// What a command, or all of a transaction, locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// One slot.
    One(SlotId),
    /// The slots of its keys, which are found again when it runs.
    Many,
    /// The whole keyspace.
    World,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) id: CommandId,
    pub(crate) db: DbIndex,
    /// Its offset in the file.
    pub(crate) at: u64,
    /// Of the first command of a transaction: what all of it needs.
    pub(crate) needs: Needs,
    /// Its key, if it is hashed.
    pub(crate) first: First,
    /// Commands that run as one with this one, itself counted: those of its transaction.
    pub(crate) count: u32,
    /// Where its bytes and its spans begin.
    bytes: usize,
    spans: usize,
}

/// Commands, in order.
#[derive(Default)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    commands: Vec<Command>,
}

/// What is known of a command before it is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) id: CommandId,
    pub(crate) db: DbIndex,
    pub(crate) at: u64,
    pub(crate) needs: Needs,
    pub(crate) first: First,
}

impl Chunk {
    /// Adds a command by itself. Its spans are places in `raw`.
    #[inline]
    pub(crate) fn push(&mut self, known: &Known, raw: &[u8], spans: &[Span]) {
        let Known { id, db, at, needs, first } = *known;
        let (bytes, from) = (self.bytes.len(), self.spans.len());
        self.bytes.extend_from_slice(raw);
        self.spans.extend_from_slice(spans);
        self.commands.push(Command { id, db, at, needs, first, count: 1, bytes, spans: from });
    }

    /// Adds the commands of another chunk, as one transaction which needs this.
    pub(crate) fn push_transaction(&mut self, other: &Self, needs: Needs) {
        let (bytes, spans) = (self.bytes.len(), self.spans.len());
        let at = self.commands.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.spans.extend_from_slice(&other.spans);
        let moved = other.commands.iter();
        self.commands.extend(moved.map(|command| Command {
            bytes: command.bytes + bytes,
            spans: command.spans + spans,
            ..*command
        }));
        if let Some(first) = self.commands.get_mut(at) {
            first.needs = needs;
            first.count = u32::try_from(other.commands.len()).expect("bounded by the file's bytes");
        }
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// The arguments of the command with this number.
    #[inline]
    pub(crate) fn args(&self, number: usize) -> Args<'_> {
        let command = &self.commands[number];
        let next = self.commands.get(number + 1);
        let end = next.map_or(self.spans.len(), |next| next.spans);
        Args::new(&self.bytes[command.bytes..], &self.spans[command.spans..end], &[])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Empties it; its memory is used again unless it was large.
    pub(crate) fn clear(&mut self, kept_bytes: usize) {
        if self.bytes.capacity() > kept_bytes || self.spans.capacity() > kept_bytes {
            *self = Self::default();
        }
        self.bytes.clear();
        self.spans.clear();
        self.commands.clear();
    }
}
