//! What a handler of data may touch: the locked slots, its arguments, the reply; nothing else.

use std::any::Any;
use std::cell::Cell;

use base::{DbIndex, SlotId, UnixMs};
pub use config::HandlerSettings as Settings;
use keyspace::{Entry, EntryMut, Event, Guard, Key, Kind, Parked, PrefetchTarget};
use resp::{Args, Proto, Reply};

use crate::error::Error;
use crate::tally::Tally;

/// A scratch buffer of more bytes is not kept.
const SCRATCH_KEPT_MAX: usize = 64 * 1024;

/// So many keys are prefetched.
const MANY_KEYS: usize = 64;
/// How many at a time: a core has about twenty cache misses in flight.
pub(crate) const WARM_KEYS: usize = 16;

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
    /// `None` on the short path, which has no more than the slot of one key and no work done ahead.
    full: Option<&'a Full<'a>>,
}

/// What a command on the full path has beyond the short one's.
pub struct Full<'a> {
    /// What was done ahead of it, until it takes it, or hands on for its next run.
    prepared: Cell<Prepared>,
    /// Its keys as they were hashed to lock their slots, in the order of its arguments.
    keys: &'a [First],
    /// Which of them was asked for last.
    at: Cell<usize>,
    /// Its client speaks RESP2 and has subscriptions.
    is_in_subscribed_mode: bool,
}

impl<'a> Full<'a> {
    /// With what was done ahead of the command, and its keys if they were hashed.
    pub fn new(prepared: Prepared, keys: &'a [First]) -> Self {
        let is_in_subscribed_mode = false;
        Self { prepared: Cell::new(prepared), keys, at: Cell::new(0), is_in_subscribed_mode }
    }

    /// The same, of a client that speaks RESP2 and has subscriptions, or of another one.
    #[must_use]
    pub fn in_subscribed_mode(self, is_in_subscribed_mode: bool) -> Self {
        Self { is_in_subscribed_mode, ..self }
    }

    /// What was done ahead, if the command has not taken it.
    pub fn into_prepared(self) -> Prepared {
        self.prepared.into_inner()
    }

    /// The key in argument `i`, if it was hashed: handlers ask for keys in their order, once or
    /// several times.
    #[inline]
    fn find(&self, i: usize) -> Option<First> {
        let is_at = |at: usize| self.keys.get(at).filter(|key| key.arg as usize == i);
        let (last, next) = (self.at.get(), self.at.get() + 1);
        if let Some(key) = is_at(next) {
            self.at.set(next);
            return Some(*key);
        }
        is_at(last).copied().or_else(|| {
            let first = is_at(0)?;
            self.at.set(0);
            Some(*first)
        })
    }
}

/// A command under way whose locks are dropped between steps.
pub trait Resumable: Send + Any {
    /// One step of at most about 200 microseconds.
    ///
    /// # Errors
    /// Those of the command, which ends with it.
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error>;

    /// About how many bytes it has built so far that belong to no key yet.
    fn memory(&self) -> usize {
        0
    }
}

/// How far a step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// The work is done, and its reply complete.
    Complete,
    /// There is more to do.
    More,
    /// There is more to do, once a long holder is out of the way.
    Park(Parked),
}

impl Progress {
    /// Complete, or not yet.
    #[inline]
    pub const fn complete_if(is_complete: bool) -> Self {
        if is_complete { Self::Complete } else { Self::More }
    }
}

/// The work that was prepared for a command ([`crate::Done::Prepare`]); `None` once the command has
/// it.
pub type Prepared = Option<Box<dyn Resumable>>;

/// What was computed from a key: of a command's first key by framing, of all keys when their slots
/// are locked. (Plain numbers, each loaded as it was stored: copying a whole [`Key`] right after it
/// was written would wait for the stores.)
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

    /// The key itself, whose bytes these are.
    #[inline]
    fn of(self, bytes: &[u8]) -> Key<'_> {
        Key { bytes, hash: self.hash, slot: self.slot }
    }
}

impl<'a, 'g> Ctx<'a, 'g> {
    /// The context of a command on the short path, which holds the slot of its one key and no
    /// other; `first` is what framing already computed.
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
        Self { guard, reply, args, db, now, settings, tally, first, full: None }
    }

    /// The context of a command on the full path: it has locked every slot that it needs, and those
    /// that serving clients which wait for its keys needs.
    #[inline]
    #[must_use]
    pub fn with_full(self, full: &'a Full<'a>) -> Self {
        Self { full: Some(full), ..self }
    }

    /// True if its client speaks RESP2 and has subscriptions.
    #[inline]
    pub fn is_in_subscribed_mode(&self) -> bool {
        self.full.is_some_and(|full| full.is_in_subscribed_mode)
    }

    /// Argument `i` as a key; what was hashed to lock it is not hashed again.
    #[inline]
    pub fn key(&self, i: usize) -> Key<'a> {
        if self.first.arg as usize == i {
            self.first.of(self.args.get(i))
        } else {
            self.further_key(i)
        }
    }

    #[inline(never)]
    fn further_key(&self, i: usize) -> Key<'a> {
        let bytes = self.args.get(i);
        match self.full.and_then(|full| full.find(i)) {
            Some(key) => key.of(bytes),
            None => self.guard.keyspace().key(bytes),
        }
    }

    /// True if the request has so many keys that they are worth [`Ctx::warm_keys`].
    pub fn has_many_keys(&self) -> bool {
        self.full.is_some_and(|full| full.keys.len() >= MANY_KEYS)
    }

    /// Called before key number `n` of many is used: with every 16th, prefetches what it and the 15
    /// behind it are found by. A key that is in no cache takes three loads, one behind the other;
    /// those of several keys go on at the same time.
    pub fn warm_keys(&self, n: usize) {
        let Some(full) = self.full.filter(|_| n.is_multiple_of(WARM_KEYS)) else { return };
        let end = full.keys.len().min(n + WARM_KEYS);
        self.fetch(full.keys[n.min(end)..end].iter().map(|key| (key.slot, key.hash)));
    }

    /// Prefetches what these keys are found by: [`WARM_KEYS`] at most, each by slot and hash.
    pub(crate) fn fetch(&self, keys: impl Iterator<Item = (SlotId, u64)>) {
        let (keyspace, mut count) = (self.guard.keyspace(), 0);
        let mut targets = [PrefetchTarget::default(); WARM_KEYS];
        for ((slot, hash), target) in keys.zip(&mut targets) {
            *target = keyspace.prefetch_bucket(slot, hash, self.db);
            count += 1;
        }
        targets[..count].iter().for_each(|target| keyspace.prefetch_entry(*target));
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

    /// True if what expires at this time goes at once: it is past. In import mode nothing does, and
    /// nothing where what is due is ignored, because earlier changes are repeated: those that
    /// follow were made when it was not past.
    pub fn is_past(&self, at: UnixMs) -> bool {
        at <= self.now && !self.guard.ignores_due() && !self.guard.keyspace().is_importing()
    }

    /// The key in argument `i`, looked up for reading and counted: `None` if it does not exist, an
    /// error if it holds another kind of value.
    #[inline]
    pub fn read_kind(&mut self, i: usize, kind: Kind) -> Result<Option<Entry<'_>>, Error> {
        self.read_reply(i, kind).map(|(entry, _)| entry)
    }

    /// As [`Ctx::read_kind`], together with the reply: to write it while the entry is looked at.
    #[inline]
    pub fn read_reply(
        &mut self,
        i: usize,
        kind: Kind,
    ) -> Result<(Option<Entry<'_>>, &mut Reply<'a>), Error> {
        let key = self.key(i);
        let entry = self.guard.look_up(self.db, &key);
        self.tally.count(entry.is_some());
        match entry {
            Some(entry) if entry.kind() != kind => Err(Error::WrongType),
            entry => Ok((entry, &mut self.reply)),
        }
    }

    /// As [`Ctx::read_kind`] for any key and database, without counting: for commands that look at
    /// keys which they also write.
    pub fn peek_kind(&mut self, key: &Key<'_>, kind: Kind) -> Result<Option<Entry<'_>>, Error> {
        match self.guard.read(self.db, key) {
            Some(entry) if entry.kind() != kind => Err(Error::WrongType),
            entry => Ok(entry),
        }
    }

    /// The key in argument `i`, looked up to be changed: `None` if it does not exist, an error if
    /// it holds another kind of value. Its first change tells the event.
    #[inline]
    pub fn entry_mut_kind(
        &mut self,
        event: Event,
        i: usize,
        kind: Kind,
    ) -> Result<Option<EntryMut<'_, 'g>>, Error> {
        self.change_reply(event, i, kind).map(|(entry, _)| entry)
    }

    /// As [`Ctx::entry_mut_kind`], together with the reply: to write it while the entry is changed.
    #[inline]
    #[allow(clippy::type_complexity)] // two borrows of one context
    pub fn change_reply(
        &mut self,
        event: Event,
        i: usize,
        kind: Kind,
    ) -> Result<(Option<EntryMut<'_, 'g>>, &mut Reply<'a>), Error> {
        let key = self.key(i);
        match self.guard.entry_mut(event, self.db, &key) {
            Some(entry) if entry.kind() != kind => Err(Error::WrongType),
            entry => Ok((entry, &mut self.reply)),
        }
    }

    /// An empty buffer, to build a packed value in; given back by [`Ctx::keep_scratch`], it is used
    /// again without an allocation.
    pub fn scratch(&mut self) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut self.tally.scratch);
        scratch.clear();
        scratch
    }

    /// Keeps a buffer from [`Ctx::scratch`] for the next command, unless it has grown big.
    pub fn keep_scratch(&mut self, mut scratch: Vec<u8>) {
        if scratch.capacity() <= SCRATCH_KEPT_MAX {
            scratch.clear();
            self.tally.scratch = scratch;
        }
    }

    /// Asked by a handler that is about to put elements into a list of this slot. True if clients
    /// wait there and serving them needs slots that are not locked: the handler returns
    /// [`crate::Done::Reach`] and is called again. True only on the short path, where the command
    /// has locked no more than the slot of its key.
    #[inline(always)]
    pub fn must_reach(&mut self, slot: SlotId) -> bool {
        self.guard.slot_has_movers(slot) && self.full.is_none()
    }

    /// The work that was done ahead of this command, if there is any.
    pub fn prepared<P: Resumable>(&mut self) -> Option<Box<P>> {
        downcast(self.full?.prepared.take()?)
    }

    /// Hands work to a second run of this command, under the same locks.
    pub fn set_prepared(&mut self, work: Box<dyn Resumable>) {
        if let Some(full) = self.full {
            full.prepared.set(Some(work));
        }
    }

    /// Counts a lookup by a read command for `keyspace_hits` and `keyspace_misses`, and notifies
    /// listeners of a miss.
    #[inline]
    pub fn count_lookup(&mut self, key: &Key<'_>, found: bool) {
        self.tally.count(found);
        if !found {
            self.guard.notify(Event::MISS, self.db, key);
        }
    }
}

/// Work that was left, as its own type again.
fn downcast<P: Resumable>(work: Box<dyn Resumable>) -> Option<Box<P>> {
    let work: Box<dyn Any> = work;
    work.downcast().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_hashed_keys_are_found_in_any_order() {
        let hashed = |arg: u32| First { arg, hash: u64::from(arg) * 10, slot: SlotId::new(0) };
        let keys = [1, 3, 5].map(hashed);
        let full = Full::new(None, &keys);
        let find = |i| full.find(i).map(|key| key.hash);
        let pass = [find(1), find(3), find(3), find(5)];
        assert_eq!(pass, [Some(10), Some(30), Some(30), Some(50)], "in order, once or twice");
        assert_eq!([find(1), find(3)], [Some(10), Some(30)], "from the first one on again");
        assert_eq!([find(2), find(0), find(7), find(3)], [None, None, None, Some(30)]);
        assert_eq!(Full::new(None, &[]).find(1).map(|key| key.hash), None);
    }
}
