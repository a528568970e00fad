//! The window: up to 32 framed commands, across connections, that are prefetched and then executed
//! in order. Framing only guesses a command's first key; everything that decides is read at
//! execution.

use std::cell::Cell;

use base::DbIndex;
use command::CommandId;
use command::spec::{Flags, Traits};
use keyspace::{Keyspace, PrefetchTarget};
use resp::{Args, BigArg, Span};

/// A key of a request: its argument index, its hash and its slot.
pub type KeyRef = command::First;

/// The keys of a request that were hashed before its handler is called.
#[derive(Clone, Copy)]
pub struct Hashed<'a> {
    /// The first key, hashed by framing.
    pub first: KeyRef,
    /// All keys, hashed to lock their slots.
    pub all: &'a [KeyRef],
}

impl Hashed<'_> {
    /// No key was hashed.
    pub const NONE: Self = Self { first: NO_KEY, all: &[] };
}

/// Hashes argument `arg`.
#[inline(always)]
pub fn key_ref(ks: &Keyspace, args: Args<'_>, arg: usize) -> KeyRef {
    let key = ks.key(args.get(arg));
    KeyRef { hash: key.hash, slot: key.slot, arg: arg as u32 }
}

/// Commands per window: 64 gains nothing over 32, and 32 keeps the prefetched lines in cache.
pub const WINDOW: usize = 32;

/// How many commands behind framing the bucket of a command is prefetched.
const BUCKETS_BEHIND: usize = 8;

/// How many commands ahead of execution an entry is prefetched.
const ENTRIES_AHEAD: usize = 6;

/// From this command on, framing prefetches one of the first entries with every second command.
const FIRST_ENTRY_AT: usize = WINDOW - 2 * ENTRIES_AHEAD;

/// Commands of one session per turn; then the next session.
pub const COMMANDS_PER_TURN: usize = 512;

/// Whether a command may take memory, by itself or by what it ends.
fn takes_memory(id: CommandId) -> bool {
    let spec = id.spec();
    spec.flags.contains(Flags::DENYOOM) || spec.traits.contains(Traits::ENDS_MULTI)
}

/// One framed command.
#[derive(Clone, Debug)]
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
    /// Where the first key is probably found; set when its bucket is prefetched.
    pub guess: Cell<PrefetchTarget>,
}

/// A key reference that stands for "no key".
pub const NO_KEY: KeyRef = KeyRef::NONE;

/// Commands of one session that were framed in a row: their end in the window.
#[derive(Clone, Copy, Debug)]
struct Run {
    session: u32,
    end: usize,
}

/// How many of a window's commands are counted for their clients, and how many of its runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    commands: usize,
    runs: usize,
}

impl Counted {
    /// Skips the commands before this one: they are counted elsewhere.
    pub fn skip_to(&mut self, command: usize) {
        self.commands = command;
    }

    /// Commands that are counted.
    pub fn commands(&self) -> usize {
        self.commands
    }
}

/// Framed commands waiting for execution.
#[derive(Debug, Default)]
pub struct Window {
    /// In order of arrival.
    pub commands: Vec<Framed>,
    /// The arguments of all of them.
    pub spans: Vec<Span>,
    /// Decoded quoted arguments of inline commands (rare).
    pub blobs: Vec<BigArg>,
    /// True if some command names a member of a collection.
    pub has_members: bool,
    /// The database of its first command, and whether others have another one, as framing guesses.
    pub db: DbIndex,
    /// See `db`.
    pub is_mixed: bool,
    /// Which session sent which commands.
    runs: Vec<Run>,
}

impl Window {
    /// An empty window with room for a full one.
    pub fn new() -> Self {
        Self {
            commands: Vec::with_capacity(WINDOW),
            spans: Vec::with_capacity(WINDOW * 8),
            blobs: Vec::new(),
            has_members: false,
            db: DbIndex(0),
            is_mixed: false,
            runs: Vec::with_capacity(WINDOW),
        }
    }

    /// Assigns the commands framed since the last call to this session, which is in this database.
    pub fn end_run(&mut self, session: u32, db: DbIndex) {
        let end = self.commands.len();
        let from = self.runs.last().map_or(0, |run| run.end);
        if from < end {
            if from == 0 {
                self.db = db;
            }
            self.is_mixed |= self.db != db;
            self.runs.push(Run { session, end });
        }
    }

    /// The index of a command of this window that is not counted yet.
    pub fn index_of(&self, c: &Framed, counted: &Counted) -> usize {
        let uncounted = &self.commands[counted.commands..];
        let ahead = uncounted.iter().take_while(|other| other.spans_from < c.spans_from).count();
        counted.commands + ahead
    }

    /// Calls `add` with the session and the number of commands of each run from `counted` up to
    /// `end`, and moves `counted` to `end`.
    pub fn count_runs(&self, counted: &mut Counted, end: usize, mut add: impl FnMut(u32, u64)) {
        while counted.commands < end
            && let Some(run) = self.runs.get(counted.runs)
        {
            let to = run.end.min(end);
            if to > counted.commands {
                add(run.session, (to - counted.commands) as u64);
                counted.commands = to;
            }
            counted.runs += usize::from(run.end == to);
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

    /// True if a command may take memory.
    #[cold]
    pub fn takes_memory(&self) -> bool {
        self.commands.iter().filter_map(|c| c.id).any(takes_memory)
    }

    /// The arguments of a command in this window.
    #[inline]
    pub fn args<'a>(&'a self, input: &'a [u8], c: &Framed) -> Args<'a> {
        let from = c.spans_from as usize;
        Args::new(input, &self.spans[from..from + c.spans_len as usize], &self.blobs)
    }

    /// Adds a command and prefetches in stages: its slot's line, the bucket of a command some
    /// places back, the first entries. Framing continues while the lines arrive.
    #[inline]
    pub fn push(&mut self, ks: &Keyspace, command: Framed) {
        if command.key.arg != 0 {
            ks.prefetch_slot(command.key.slot);
        }
        self.commands.push(command);
        let n = self.commands.len();
        if n > BUCKETS_BEHIND {
            self.prefetch_bucket(ks, n - 1 - BUCKETS_BEHIND);
        }
        if n >= FIRST_ENTRY_AT && n.is_multiple_of(2) {
            self.prefetch_entry(ks, (n - FIRST_ENTRY_AT) / 2);
        }
    }

    /// Before execution: prefetches what the first commands need and framing has not prefetched.
    pub fn prefetch_first(&self, ks: &Keyspace) {
        let n = self.commands.len();
        if n == 1 {
            return; // its own loads arrive as early
        }
        for at in n.saturating_sub(BUCKETS_BEHIND)..n.min(2 * ENTRIES_AHEAD) {
            self.prefetch_bucket(ks, at);
        }
        let asked = (n + 2).saturating_sub(FIRST_ENTRY_AT) / 2;
        for at in asked..n.min(ENTRIES_AHEAD) {
            self.prefetch_entry(ks, at);
        }
    }

    /// Before command `at` is executed: prefetches one of the last buckets and the entry of a later
    /// command. A core has about twenty cache misses in flight, and one more stalls it; so the
    /// prefetches are spread over framing and execution.
    #[inline(always)]
    pub fn prefetch_ahead(&self, ks: &Keyspace, at: usize) {
        let n = self.commands.len();
        let bucket = at + n.saturating_sub(BUCKETS_BEHIND).max(2 * ENTRIES_AHEAD);
        if bucket < n {
            self.prefetch_bucket(ks, bucket);
        }
        if at + ENTRIES_AHEAD < n {
            self.prefetch_entry(ks, at + ENTRIES_AHEAD);
        }
    }

    #[inline(always)]
    fn prefetch_bucket(&self, ks: &Keyspace, at: usize) {
        let c = &self.commands[at];
        if c.key.arg != 0 {
            c.guess.set(ks.prefetch_bucket(c.key.slot, c.key.hash, c.db));
        }
    }

    #[inline(always)]
    fn prefetch_entry(&self, ks: &Keyspace, at: usize) {
        let c = &self.commands[at];
        if c.key.arg != 0 {
            ks.prefetch_entry(c.guess.get());
        }
    }

    /// Empties the window and frees the memory that a huge request needed.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.runs.clear();
        self.spans.clear();
        if self.spans.capacity() > SPANS_KEPT {
            self.spans.shrink_to(SPANS_KEPT);
        }
        if !self.blobs.is_empty() {
            self.blobs.clear();
        }
        self.has_members = false;
        self.is_mixed = false;
    }
}

/// Spans whose memory a window keeps between uses.
const SPANS_KEPT: usize = 4096;
