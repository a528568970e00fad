//! What a handler of data may touch: the locked slots, its arguments, the reply; nothing else.

use base::prng::Prng;
use base::{DbIndex, SlotId, UnixMs};
use keyspace::{Guard, Key};
use resp::{Args, Proto, Reply};

/// Settings that handlers read; the worker refreshes them when the configuration changes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `proto-max-bulk-len`: the longest string a command may build, bytes.
    pub bulk_len_max: u64,
    /// `databases`.
    pub databases: u16,
    /// `hll-sparse-max-bytes`: bytes above which a HyperLogLog is dense.
    pub hll_sparse_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bulk_len_max: 512 << 20,
            databases: 16,
            hll_sparse_max: value::hll::SPARSE_MAX_DEFAULT,
        }
    }
}

/// Counters that handlers feed, and the dice they throw; owned by the worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// State of the random draws of handlers; the worker starts it with one of its driver's.
    pub random: u64,
}

impl Tally {
    /// 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(1);
        Prng::new(self.random).draw()
    }
}

impl Tally {
    /// Counts a lookup by a read command.
    #[inline]
    pub fn count(&mut self, found: bool) {
        if found {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }
}

/// The context of one command.
pub struct Ctx<'a, 'g> {
    /// The locked slots, and the only way to data.
    pub guard: &'a mut Guard<'g>,
    /// Where the reply goes.
    pub reply: Reply<'a>,
    /// All arguments, the command's name first.
    pub args: Args<'a>,
    /// The selected (logical) database.
    pub db: DbIndex,
    /// Time of this batch; relative expiries count from here.
    pub now: UnixMs,
    /// Limits from the configuration.
    pub settings: &'a Settings,
    /// Keyspace hits and misses, random draws.
    pub tally: &'a mut Tally,
    first: First,
}

/// What framing computed from a command's first key. (Plain numbers, each loaded as it was stored: copying
/// a whole [`Key`] right after it was written would wait for the stores.)
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// Which argument it is; 0 for none.
    pub arg: u32,
    /// Its slot.
    pub slot: SlotId,
    /// Its hash.
    pub hash: u64,
}

impl First {
    /// No key was hashed.
    pub const NONE: Self = Self { arg: 0, slot: SlotId::new(0), hash: 0 };
}

impl<'a, 'g> Ctx<'a, 'g> {
    /// A context; `first` is what framing already computed.
    #[inline]
    #[allow(clippy::too_many_arguments)] // the fields themselves, set once per command
    pub fn new(
        guard: &'a mut Guard<'g>,
        reply: Reply<'a>,
        args: Args<'a>,
        db: DbIndex,
        now: UnixMs,
        settings: &'a Settings,
        tally: &'a mut Tally,
        first: First,
    ) -> Self {
        Self { guard, reply, args, db, now, settings, tally, first }
    }

    /// Argument `i` as a key, hashed at most once for the first key of a command.
    #[inline]
    pub fn key(&self, i: usize) -> Key<'a> {
        let bytes = self.args.get(i);
        if self.first.arg as usize == i {
            Key { bytes, hash: self.first.hash, slot: self.first.slot }
        } else {
            self.hashed(bytes)
        }
    }

    #[inline(never)]
    fn hashed(&self, bytes: &'a [u8]) -> Key<'a> {
        self.guard.keyspace().key(bytes)
    }

    /// Argument `i`.
    #[inline]
    pub fn arg(&self, i: usize) -> &'a [u8] {
        self.args.get(i)
    }

    /// Protocol of the reply.
    #[inline]
    pub fn proto(&self) -> Proto {
        self.reply.proto()
    }

    /// Counts a lookup by a read command for `keyspace_hits` and `keyspace_misses`.
    #[inline]
    pub fn count_lookup(&mut self, found: bool) {
        self.tally.count(found);
    }
}
