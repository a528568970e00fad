//! Removing keys to make room (`maxmemory-policy`).
//!
//! The exact order of all keys is not kept anywhere. Each worker samples instead, as redis.io's
//! page on key eviction describes it:
//!
//! ```text
//! sample   some keys, chosen at random: a database by its number of keys, a slot, and there a
//!          bucket (policies for all keys) or a record of the expiry index (volatile-...); another
//!          slot if that one has too few
//! pool     the best candidates of all samples so far, of this worker
//! victim   the best of the pool. It is looked up again under its slot's lock: one that was used,
//!          changed or removed meanwhile is dropped
//! ```
//!
//! A budget (`Keyspace::set_evictable`) says which keys of its database may go, whoever asks.
//! One that asks for its own database names it in [`Eviction`], and gets no other's key.
//!
//! One slot is locked at a time, and no other lock is held. Slots with a long holder, and frozen
//! ones, are passed over. Almost every step reads memory that is in no cache. So several places are
//! sampled together, and what the next step of each will read is fetched meanwhile.

use crate::access::Access;
use crate::entry::EntryPtr;
use crate::event::{Event, EventClass};
use crate::guard::Guard;
use crate::keyspace::Keyspace;
use crate::may::Intent;
use crate::memory::BucketMem;
use crate::stats::{add, get};
use crate::table::HeldTable;
use crate::undo::Place;
use crate::uses::{Uses, idle_seconds};
use base::sync::hint::Ordering::Relaxed;
use base::{DbIndex, SLOTS, SlotId, UnixMs};

/// A key was removed to make room.
pub const EVICTED: Event = Event::new(&(EventClass::Evicted, "evicted"));

/// Candidates that a worker remembers, as many as Redis says that it does.
const POOL_MAX: usize = 16;
/// The most keys that one call removes.
pub const EVICTIONS_MAX: usize = 8;
/// Keys that are evicted for each place that is sampled: its slot is locked once for both.
const FROM_EACH: usize = 2;
const PLACES_MAX: usize = EVICTIONS_MAX / FROM_EACH;
/// Buckets of a place which are prefetched.
const FETCHED: usize = 2;
/// Samples that may find nothing before there is nothing to be found.
const TRIES: usize = 8;
/// Draws of a slot that has keys.
const DRAWS: usize = 32;
/// Slots that are looked at for one sample.
const SLOTS_MAX: usize = 64;
/// Buckets of one slot that are looked at for one sample.
const BUCKETS_MAX: usize = 16;
/// Records of one slot's expiry index from which a sample begins.
const RECORDS_MAX: u64 = 1024;

/// Which key goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that was used the longest time ago.
    #[default]
    LeastRecent,
    /// The one that is used least often.
    LeastFrequent,
    /// The one that expires first.
    NearestExpiry,
    /// Any.
    Random,
}

/// Which keys of a database may be evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evictable {
    /// All.
    #[default]
    All,
    /// Those with an expiry.
    Volatile,
    /// None.
    Nothing,
}

impl Evictable {
    const ALL: [Self; 3] = [Self::All, Self::Volatile, Self::Nothing];
}

/// How keys are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eviction {
    /// Only keys of this database go; `None`: of any.
    pub db: Option<DbIndex>,
    /// Which goes first.
    pub order: Order,
    /// Only keys with an expiry go.
    pub is_volatile: bool,
    /// Keys that are compared for each that goes, at least.
    pub samples: usize,
}

/// A key that may go, as it was seen.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// The higher, the sooner.
    score: u64,
    place: Place,
    entry: u64,
    uses: u32,
}

/// The best candidates, the best one last.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    how: Eviction,
    candidates: Vec<Candidate>,
}

impl Pool {
    /// Whether a candidate with this score is among the best.
    fn wants(&self, score: u64, entry: u64) -> bool {
        let is_better = self.candidates.len() < POOL_MAX
            || self.candidates.first().is_some_and(|worst| worst.score < score);
        is_better && self.candidates.iter().all(|old| old.entry != entry)
    }

    fn add(&mut self, new: Candidate) {
        let at = self.candidates.partition_point(|old| old.score <= new.score);
        if self.candidates.len() < POOL_MAX {
            self.candidates.insert(at, new);
        } else if at > 0 {
            self.candidates[..at].rotate_left(1);
            self.candidates[at - 1] = new;
        }
    }
}

impl Eviction {
    fn score(&self, entry: EntryPtr, uses: Uses, now: UnixMs, draw: u64) -> u64 {
        match self.order {
            Order::Random => draw,
            Order::NearestExpiry => i64::MAX.abs_diff(entry.expiry().map_or(i64::MAX, |at| at.0)),
            Order::LeastRecent | Order::LeastFrequent => match uses.rarity(entry.uses(), now) {
                Some(rarity) => rarity,
                // (When, not for how long: candidates of earlier samples are compared with it.)
                None => i64::MAX.abs_diff(now.0 / 1000 - idle_seconds(entry.uses(), now) as i64),
            },
        }
    }
}

impl Keyspace {
    /// Keys that were evicted.
    pub fn evicted(&self) -> u64 {
        self.sum(|w| &w.evicted)
    }

    /// Keys of a database that were evicted.
    pub fn db_evicted(&self, db: DbIndex) -> u64 {
        self.sum(|w| &w.evicted_from[db.index()])
    }

    /// Sets which keys of a database may be evicted, whoever needs room. It stays with the number
    /// of the database when SWAPDB exchanges the contents. A worker that is inside its section may
    /// still evict one key by the old rule.
    pub fn set_evictable(&self, db: DbIndex, evictable: Evictable) {
        self.evictable[db.index()].store(evictable as u16, Relaxed);
    }

    fn evictable(&self, db: DbIndex) -> Evictable {
        Evictable::ALL[self.evictable[db.index()].load(Relaxed) as usize]
    }

    /// How keys of this physical database are chosen; `None` if none of them may go.
    fn eviction_of(&self, physical: u16, how: Eviction) -> Option<Eviction> {
        let db = self.logical(physical);
        if how.db.is_some_and(|only| only != db) {
            return None;
        }
        match self.evictable(db) {
            Evictable::All => Some(how),
            Evictable::Volatile => Some(Eviction { is_volatile: true, ..how }),
            Evictable::Nothing => None,
        }
    }

    /// A database, by its share of the keys which may go; `None` if there are none.
    fn draw_database(&self, how: Eviction, draw: u64) -> Option<u16> {
        if let Some(db) = how.db {
            return Some(self.physical(db)).filter(|physical| self.is_used(*physical));
        }
        let count = |physical: u16| {
            let Some(how) = self.eviction_of(physical, how) else { return 0 };
            let of = |w: &crate::stats::WorkerStats| {
                let counts = w.of(physical);
                get(if how.is_volatile { &counts.expires } else { &counts.keys })
            };
            self.all_stats().map(of).sum::<i64>().max(0) as u64
        };
        let used = || (0..self.databases()).filter(|physical| self.is_used(*physical));
        let all: u64 = used().map(count).sum();
        let mut left = draw.checked_rem(all)?;
        used().find(|physical| {
            let keys = count(*physical);
            let is_here = left < keys;
            left = left.saturating_sub(keys);
            is_here
        })
    }
}

impl Access {
    /// Removes keys to make room: until what they took is `excess` bytes, but at least one and at
    /// most so many. Returns how many: 0 if none may go that can be found. The caller is inside its
    /// section and holds no guard.
    ///
    /// What a save has captured stays for a while, and counts as if it was gone.
    pub fn evict(&mut self, how: Eviction, now: UnixMs, max: usize, excess: u64) -> usize {
        if self.w.pool.how != how {
            let mut candidates = std::mem::take(&mut self.w.pool.candidates);
            candidates.clear();
            candidates.reserve(POOL_MAX);
            self.w.pool = Pool { how, candidates };
        }
        let max = max.clamp(1, EVICTIONS_MAX);
        for _ in 0..TRIES {
            self.sample(how, now, max.div_ceil(FROM_EACH));
            let count = self.evict_candidates(how, now, max, excess);
            if count > 0 {
                return count;
            }
        }
        self.search(how, now);
        self.evict_candidates(how, now, max, excess)
    }

    /// Removes the best of the pool, as [`Access::evict`] says.
    fn evict_candidates(&mut self, how: Eviction, now: UnixMs, max: usize, excess: u64) -> usize {
        self.fetch_candidates(max);
        let (mut count, mut bytes) = (0, 0);
        while count < max
            && (count == 0 || bytes < excess)
            && let Some(candidate) = self.w.pool.candidates.pop()
        {
            let slot = candidate.place.slot;
            let Ok(mut guard) = self.lock_one(slot, now, Intent::Write) else { continue };
            if let Some(took) = guard.evict_candidate(&candidate, how) {
                (count, bytes) = (count + 1, bytes + took as u64);
            }
        }
        count
    }

    /// Looks for keys with an expiry in one slot after the other, from a random one on, where the
    /// samples have found none although there are some: few, in slots which are full of others. The
    /// first that has one ends it. O(slots), so it takes up to a millisecond.
    fn search(&mut self, how: Eviction, now: UnixMs) {
        let draw = self.w.dice.draw();
        let Some(physical) = self.ks.draw_database(how, draw) else { return };
        let Some(how) = self.ks.eviction_of(physical, how).filter(|how| how.is_volatile) else {
            return;
        };
        if self.ks.sum(|w| &w.of(physical).expires) == 0 {
            return;
        }
        let first = self.w.dice.draw() as usize;
        for n in 0..SLOTS {
            let slot = SlotId::new((first.wrapping_add(n) % SLOTS) as u16);
            if !self.ks.is_occupied(physical, slot) || !self.ks.due.has_any(slot) {
                continue;
            }
            let Ok(mut guard) = self.lock_one(slot, now, Intent::Write) else { continue };
            let sample = Sample { physical, first: slot, point: draw };
            if guard.sample_due(&sample, slot, how, how.samples) > 0 {
                return;
            }
        }
    }

    /// Fetches what leads to the best candidates, which are looked up next.
    fn fetch_candidates(&self, count: usize) {
        let best = || self.w.pool.candidates.iter().rev().take(count);
        best().for_each(|candidate| self.ks.prefetch_slot(candidate.place.slot));
        for Candidate { place, .. } in best() {
            self.ks.prefetch_bucket_of(place.slot, place.hash, place.physical);
        }
    }

    /// Adds samples of so many places of one database to the pool.
    fn sample(&mut self, how: Eviction, now: UnixMs, places: usize) {
        let draw = self.w.dice.draw();
        let Some(physical) = self.ks.draw_database(how, draw) else { return };
        let Some(how) = self.ks.eviction_of(physical, how) else { return };
        let how = Eviction { samples: how.samples * FROM_EACH, ..how };
        let mut drawn = [Sample { physical, first: SlotId::new(0), point: 0 }; PLACES_MAX];
        let drawn = &mut drawn[..places];
        for sample in &mut *drawn {
            let Some(first) = self.draw_slot(physical, how.is_volatile) else { return };
            self.ks.prefetch_slot(first);
            *sample = Sample { physical, first, point: self.w.dice.draw() };
        }
        if !how.is_volatile {
            self.fetch_entries(drawn);
        }
        for sample in &*drawn {
            self.sample_from(how, now, sample);
        }
    }

    /// Fetches what [`Guard::sample_slot`] will read.
    fn fetch_entries(&self, drawn: &[Sample]) {
        let mut buckets = [[0; FETCHED]; PLACES_MAX];
        for (Sample { physical, first, point }, buckets) in drawn.iter().zip(&mut buckets) {
            self.ks.prefetch_buckets(*first, *physical, *point, buckets);
        }
        for bucket in buckets[..drawn.len()].iter().flatten() {
            self.ks.prefetch_entries(*bucket);
        }
    }

    /// Adds a sample to the pool.
    fn sample_from(&mut self, how: Eviction, now: UnixMs, sample: &Sample) {
        let (mut slot, mut seen) = (sample.first, 0);
        for _ in 0..SLOTS_MAX {
            if let Ok(mut guard) = self.lock_one(slot, now, Intent::Write) {
                seen += guard.sample_slot(sample, slot, how, how.samples - seen);
            }
            if seen >= how.samples {
                return;
            }
            let Some(next) = self.draw_slot(sample.physical, how.is_volatile) else { return };
            slot = next;
        }
    }

    /// A slot that may have keys which may go, each as likely; `None` if there is none.
    ///
    /// Slots are drawn until one has keys. To take the next one that has would favour what stands
    /// behind a long row of empty slots: its keys would go early, and others hardly ever. Where
    /// nearly all are empty it is done all the same.
    fn draw_slot(&mut self, physical: u16, is_volatile: bool) -> Option<SlotId> {
        let mut slot = SlotId::new(0);
        for _ in 0..DRAWS {
            slot = SlotId::new((self.w.dice.draw() as usize % SLOTS) as u16);
            let may_expire = || !is_volatile || self.ks.due.has_any(slot);
            if self.ks.is_occupied(physical, slot) && may_expire() {
                return Some(slot);
            }
        }
        let next = self.ks.next_to_sample(physical, is_volatile, slot.index());
        next.or_else(|| self.ks.next_to_sample(physical, is_volatile, 0))
    }
}

/// Where a sample is taken.
#[derive(Clone, Copy, Debug)]
struct Sample {
    physical: u16,
    /// The slot in which it begins.
    first: SlotId,
    /// Where in a slot it begins.
    point: u64,
}

impl Keyspace {
    /// The first slot from `from` on that may have keys which may go.
    fn next_to_sample(&self, physical: u16, is_volatile: bool, from: usize) -> Option<SlotId> {
        let mut at = from;
        loop {
            let slot = self.next_occupied(physical, at)?;
            if !is_volatile || self.due.has_any(slot) {
                return Some(slot);
            }
            at = slot.index() + 1;
        }
    }
}

/// Visits entries of the bucket of a point and of the next ones, until there were so many. Returns
/// how many.
fn visit_some(
    table: HeldTable<'_>,
    mem: &BucketMem,
    point: u64,
    max: usize,
    mut each: impl FnMut(EntryPtr),
) -> usize {
    let (mut seen, mut point) = (0, table.bucket_start(point));
    for _ in 0..BUCKETS_MAX {
        let next = table.visit(mem, point, |entry| {
            seen += 1;
            each(entry);
        });
        point = next.unwrap_or(0);
        if seen >= max || seen >= table.len() as usize {
            break;
        }
    }
    seen
}

impl Guard<'_> {
    /// Adds up to `max` keys of a covered slot to the pool, and some more if they share a bucket.
    /// Returns how many.
    fn sample_slot(&mut self, sample: &Sample, slot: SlotId, how: Eviction, max: usize) -> usize {
        let physical = sample.physical;
        if how.is_volatile {
            return self.sample_due(sample, slot, how, max);
        }
        let Some(table) = self.owned(slot).table(physical).filter(|table| table.len() > 0) else {
            self.ks.mark_empty(physical, slot);
            return 0;
        };
        let (ks, mut pool) = (self.ks, std::mem::take(&mut self.w.pool));
        let seen = visit_some(table, &ks.mem, sample.point, max, |entry| {
            self.offer(&mut pool, how, (physical, slot), entry);
        });
        self.w.pool = pool;
        seen
    }

    /// The same, of keys with an expiry.
    fn sample_due(&mut self, sample: &Sample, slot: SlotId, how: Eviction, max: usize) -> usize {
        let Sample { physical, point, .. } = *sample;
        let records: Vec<u64> = self
            .owned(slot)
            .with_parts_if_any(|_, parts| {
                let set = parts.due.iter().find(|(of, _)| *of == physical)?;
                let first = match how.order {
                    Order::NearestExpiry => 0,
                    _ => point % (set.1.len() as u64).clamp(1, RECORDS_MAX),
                };
                Some(set.1.hashes(first as usize, max))
            })
            .flatten()
            .unwrap_or_default();
        let Some(table) = self.owned(slot).table(physical) else { return 0 };
        let (ks, mut pool) = (self.ks, std::mem::take(&mut self.w.pool));
        let mut seen = 0;
        for hash in records {
            table.visit_tag(&ks.mem, hash, |entry| {
                if entry.expiry().is_some() && ks.hasher.hash(entry.key()) == hash {
                    seen += 1;
                    self.offer(&mut pool, how, (physical, slot), entry);
                }
            });
        }
        self.w.pool = pool;
        seen
    }

    fn offer(
        &mut self,
        pool: &mut Pool,
        how: Eviction,
        (physical, slot): (u16, SlotId),
        entry: EntryPtr,
    ) {
        let draw = if how.order == Order::Random { self.w.dice.draw() } else { 0 };
        let score = how.score(entry, self.w.uses, self.w.now, draw);
        if pool.wants(score, entry.address()) {
            let place = Place { hash: self.ks.hasher.hash(entry.key()), slot, physical };
            pool.add(Candidate { score, place, entry: entry.address(), uses: entry.uses() });
        }
    }

    /// Removes a candidate of this slot, if it is what it was. Returns the bytes of its entry.
    fn evict_candidate(&mut self, candidate: &Candidate, how: Eviction) -> Option<usize> {
        let Candidate { place, .. } = *candidate;
        // (The databases may have been swapped, and their budgets changed.)
        let how = self.ks.eviction_of(place.physical, how)?;
        let table = self.owned(place.slot).table(place.physical)?;
        let found = table.find_address(&self.ks.mem, place.hash, candidate.entry);
        let may_go = |entry: EntryPtr| {
            entry.uses() == candidate.uses
                && (!how.is_volatile || entry.expiry().is_some())
                && self.ks.hasher.hash(entry.key()) == place.hash
        };
        let found = found.filter(|found| may_go(found.entry))?;
        let bytes = found.entry.memory();
        let db = self.ks.logical(place.physical);
        self.record(db, &[b"DEL", found.entry.key()]);
        self.remove_found(Event::SILENT, EVICTED, db, place, table, &found);
        let stats = self.ks.stats(self.w.index);
        add(&stats.evicted, 1);
        add(&stats.evicted_from[db.index()], 1);
        self.finish();
        self.take_drawn(); // no client's
        Some(bytes)
    }
}
