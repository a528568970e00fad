//! The window: up to 32 framed commands, across connections, that are prefetched and then executed in
//! order. Framing only guesses a command's first key; everything that decides is read at execution.

use base::{Blob, DbIndex, SlotId};
use command::CommandId;
use keyspace::{Guess, Key, Keyspace};
use resp::{Args, Span};

/// A key of a request: where it stands and what was computed from it.
#[derive(Clone, Copy, Debug)]
pub struct KeyRef {
    /// Its hash.
    pub hash: u64,
    /// Its slot.
    pub slot: SlotId,
    /// Which argument it is; 0 for no key.
    pub arg: u32,
}

impl KeyRef {
    /// Of argument `arg`.
    #[inline]
    pub fn new(ks: &Keyspace, args: Args<'_>, arg: usize) -> Self {
        let key = ks.key(args.get(arg));
        Self { hash: key.hash, slot: key.slot, arg: arg as u32 }
    }

    /// The key itself.
    #[inline]
    pub fn key<'a>(&self, args: Args<'a>) -> Key<'a> {
        Key { bytes: args.get(self.arg as usize), hash: self.hash, slot: self.slot }
    }
}

/// Commands per window: 64 gains nothing over 32, and 32 keeps the prefetched lines in cache.
pub const WINDOW: usize = 32;

/// How far behind framing the bucket of a command is asked for.
const BUCKET_BEHIND: usize = 8;

/// And its entry.
const ENTRY_BEHIND: usize = WINDOW - ENTRIES_AHEAD;

/// How many commands before its own an entry is asked for during execution.
const ENTRIES_AHEAD: usize = 20;

/// Commands of one session per turn; then the next session.
pub const COMMANDS_PER_TURN: usize = 512;

/// One framed command.
#[derive(Clone, Copy, Debug)]
pub struct Framed {
    /// Index of the session.
    pub session: u32,
    /// Where its bytes begin in the receive area.
    pub start: u32,
    /// Where they end.
    pub end: u32,
    /// Its first span.
    pub spans_from: u32,
    /// Number of its spans.
    pub spans_len: u32,
    /// The command, `None` if there is none of that name.
    pub id: Option<CommandId>,
    /// The first key, if it has one; `arg` 0 means none.
    pub key: KeyRef,
    /// Database guessed for prefetching.
    pub db: DbIndex,
    /// Where the first key is probably found.
    pub guess: Guess,
}

/// A key reference that stands for "no key".
pub const NO_KEY: KeyRef = KeyRef { hash: 0, slot: SlotId::new(0), arg: 0 };

/// Framed commands waiting for execution.
#[derive(Debug, Default)]
pub struct Window {
    /// In order of arrival.
    pub commands: Vec<Framed>,
    /// The arguments of all of them.
    pub spans: Vec<Span>,
    /// Decoded quoted arguments of inline commands (rare).
    pub blobs: Vec<Blob>,
    /// Commands whose bucket was asked for, and whose entry was.
    asked: (usize, usize),
}

impl Window {
    /// An empty window with room for a full one.
    pub fn new() -> Self {
        Self {
            commands: Vec::with_capacity(WINDOW),
            spans: Vec::with_capacity(WINDOW * 8),
            blobs: Vec::new(),
            asked: (0, 0),
        }
    }

    /// True if it must be executed before more is framed.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.commands.len() >= WINDOW
    }

    /// True if nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The arguments of a command in this window.
    #[inline]
    pub fn args<'a>(&'a self, input: &'a [u8], c: &Framed) -> Args<'a> {
        let from = c.spans_from as usize;
        Args::new(input, &self.spans[from..from + c.spans_len as usize], &self.blobs)
    }

    /// Adds a command and asks for memory in stages: its slot's line now, the bucket of a command
    /// some places back, the entry of one further back. Framing goes on while the lines arrive.
    #[inline]
    pub fn push(&mut self, ks: &Keyspace, command: Framed) {
        if command.key.arg != 0 {
            ks.prefetch_slot(command.key.slot);
        }
        self.commands.push(command);
        let n = self.commands.len();
        self.ask(ks, n.saturating_sub(BUCKET_BEHIND), n.saturating_sub(ENTRY_BEHIND));
    }

    /// Asks for the buckets that are left and the first entries, before execution; the other entries are
    /// asked for while their predecessors are executed, see [`Window::ask_ahead`].
    #[inline]
    pub fn ask_all(&mut self, ks: &Keyspace) {
        let n = self.commands.len();
        if n > 1 {
            self.ask(ks, n, n.min(ENTRIES_AHEAD));
        }
    }

    /// Before command `at` is executed: asks for the entry of one further on.
    #[inline(always)]
    pub fn ask_ahead(&self, ks: &Keyspace, at: usize) {
        if let Some(c) = self.commands.get(at + ENTRIES_AHEAD)
            && c.key.arg != 0
        {
            ks.prefetch_entry(c.guess);
        }
    }

    #[inline]
    fn ask(&mut self, ks: &Keyspace, buckets: usize, entries: usize) {
        while self.asked.0 < buckets {
            let c = &mut self.commands[self.asked.0];
            if c.key.arg != 0 {
                c.guess = ks.prefetch_bucket(c.key.slot, c.key.hash, c.db);
            }
            self.asked.0 += 1;
        }
        while self.asked.1 < entries {
            let c = &self.commands[self.asked.1];
            if c.key.arg != 0 {
                ks.prefetch_entry(c.guess);
            }
            self.asked.1 += 1;
        }
    }

    /// Forgets everything; a huge request does not keep its memory.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.spans.clear();
        if self.spans.capacity() > SPANS_KEPT {
            self.spans.shrink_to(SPANS_KEPT);
        }
        self.blobs.clear();
        self.asked = (0, 0);
    }
}

/// Spans whose memory a window keeps between uses.
const SPANS_KEPT: usize = 4096;
