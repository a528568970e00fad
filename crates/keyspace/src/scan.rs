//! Walks over a database: SCAN and RANDOMKEY.
//!
//! ```text
//! cursor    63      53 52           39 38                                   0
//!          +----------+---------------+--------------------------------------+
//!          |    0     | slot, 14 bits | upper 39 bits of a bit-reversed hash |
//!          +----------+---------------+--------------------------------------+
//! ```
//!
//! A cursor is a point: a slot, and within it a point in the space of bit-reversed hashes. Each
//! bucket is an interval of that space (`table.rs`). Growing and shrinking cut it differently but
//! keep the order, so everything before the cursor was visited, however the table has changed.

use crate::due::Due;
use crate::guard::{Guard, Mode};
use crate::parking::Parked;
use crate::view::Entry;
use base::{DbIndex, SLOTS, SlotId};

/// Bits of a cursor for the point within the slot. A bucket's interval begins with at most 32 bits,
/// so no bit is lost. With 14 bits for the slot a cursor is below 2^53, so clients may keep it in a
/// double.
const POINT_BITS: u32 = 39;
pub(crate) const CURSOR_END: u64 = (SLOTS as u64) << POINT_BITS;
/// The most buckets that one call visits, per element of COUNT.
const BUCKETS_PER_COUNT: u64 = 10;
/// How often RANDOMKEY tries again when it finds only expired keys.
const RANDOM_TRIES_MAX: usize = 100;

impl Guard<'_> {
    /// Passes about `count` keys of the database to `f`, from `cursor` on (0: from the start), and
    /// returns the next cursor, 0 at the end. Every key that exists from the first call to the last
    /// is shown once. Expired keys are not shown.
    ///
    /// The guard covers no slot ([`crate::Access::free`]; this locks one at a time), or all, or it
    /// is that of a transaction which has surveyed this call ([`Guard::survey`]). At a slot with a
    /// long holder the call ends early if it has shown a key.
    ///
    /// # Errors
    /// [`Parked::Slot`] behind a long holder if no key was shown; only for a guard that covers no
    /// slot.
    pub fn scan(
        &mut self,
        db: DbIndex,
        cursor: u64,
        count: u64,
        f: impl FnMut(Entry<'_>),
    ) -> Result<u64, Parked> {
        self.scan_while(db, cursor, count, || true, f)
    }

    /// As [`Guard::scan`], but ends behind a bucket when `goes_on` says so, which is asked behind
    /// each.
    ///
    /// # Errors
    /// As those.
    pub fn scan_while(
        &mut self,
        db: DbIndex,
        cursor: u64,
        count: u64,
        goes_on: impl FnMut() -> bool,
        f: impl FnMut(Entry<'_>),
    ) -> Result<u64, Parked> {
        if cursor >= CURSOR_END {
            return Ok(0);
        }
        let next = self.scan_occupied(db, cursor, count, goes_on, f);
        self.hold_at_passed_over();
        next
    }

    fn scan_occupied(
        &mut self,
        db: DbIndex,
        cursor: u64,
        count: u64,
        mut goes_on: impl FnMut() -> bool,
        mut f: impl FnMut(Entry<'_>),
    ) -> Result<u64, Parked> {
        let physical = self.ks.physical(db);
        let mut from = slot_of(cursor);
        let end = if self.mode() == Mode::Growing { self.known_until(from) } else { SLOTS };
        let mut point = Some(cursor << (64 - POINT_BITS));
        let mut elements = count.max(1);
        let mut buckets = elements.saturating_mul(BUCKETS_PER_COUNT);
        while let Some(slot) = self.next_to_walk(physical, from, end) {
            if slot.index() != from {
                point = Some(0);
            }
            if let Err(parked) = self.step_into(slot) {
                let has_shown = elements < count.max(1);
                return if has_shown {
                    Ok(cursor_at(slot.index(), point.unwrap_or(0)))
                } else {
                    Err(parked)
                };
            }
            while let Some(at) = point
                && elements > 0
                && buckets > 0
            {
                let (seen, next) = self.visit_bucket(db, slot, at, at, &mut f);
                elements = elements.saturating_sub(seen);
                buckets = if goes_on() { buckets - 1 } else { 0 };
                point = next;
            }
            self.step_out();
            if let Some(at) = point {
                return Ok(cursor_at(slot.index(), at));
            }
            (from, point) = (slot.index() + 1, Some(0));
            if elements == 0 || buckets == 0 {
                from = self.next_to_walk(physical, from, end).map_or(end, SlotId::index);
                return Ok(cursor_at(from, 0));
            }
        }
        Ok(cursor_at(end, 0))
    }

    fn next_to_walk(&mut self, physical: u16, from: usize, end: usize) -> Option<SlotId> {
        let next = if self.mode() == Mode::Growing {
            self.next_surveyed(physical, from)
        } else {
            self.ks.next_occupied(physical, from)
        };
        next.filter(|slot| slot.index() < end)
    }

    /// Shows the live entries of the bucket at a point, except those before point `from`. Returns
    /// how many, and the next point. The rule for due keys is applied to those that are due.
    fn visit_bucket(
        &mut self,
        db: DbIndex,
        slot: SlotId,
        point: u64,
        from: u64,
        f: &mut impl FnMut(Entry<'_>),
    ) -> (u64, Option<u64>) {
        let physical = self.ks.physical(db);
        let line = self.owned(slot);
        let Some(table) = line.table(physical).filter(|table| table.len() > 0) else {
            self.ks.mark_empty(physical, slot);
            return (0, None);
        };
        // A bucket that was merged since the last call begins before the cursor: its first part was
        // shown.
        let is_cut = from > table.bucket_start(point);
        let is_shown = |key: &[u8]| self.ks.hasher.hash(key).reverse_bits() < from;
        let mut seen = 0;
        let rule = self.due_rule(slot);
        let mut due: Vec<Vec<u8>> = Vec::new();
        table.fetch(&self.ks.mem, point);
        let next = table.visit(&self.ks.mem, point, |entry| {
            if rule != Due::Ignore && self.is_all_due(entry) {
                if rule == Due::Remove {
                    due.push(entry.key().to_vec());
                }
            } else if !(is_cut && is_shown(entry.key())) {
                seen += 1;
                f(Entry::new(entry));
            }
        });
        for key in due {
            let key = self.ks.key(&key);
            let found = self.find_live(db, &key);
            debug_assert!(found.is_none(), "it was due");
        }
        (seen, next)
    }

    /// A key of the database, chosen by `random`; `None` if it has none. The guard is as for
    /// [`Guard::scan`]. Slots with long holders are skipped if there are others.
    ///
    /// # Errors
    /// As for [`Guard::scan`].
    pub fn random_key(
        &mut self,
        db: DbIndex,
        mut random: impl FnMut() -> u64,
    ) -> Result<Option<Vec<u8>>, Parked> {
        if self.mode() == Mode::Growing {
            return Ok(self.random_surveyed_key(db, random));
        }
        let physical = self.ks.physical(db);
        let mut met = None;
        for _ in 0..RANDOM_TRIES_MAX {
            let start = random() as usize % SLOTS;
            let first = || self.ks.next_occupied(physical, 0);
            let Some(slot) = self.ks.next_occupied(physical, start).or_else(first) else {
                self.hold_at_passed_over();
                return Ok(None);
            };
            // Wait once for a held slot, then skip it.
            if met == Some(Parked::Slot(slot)) {
                continue;
            }
            match self.random_key_of(db, slot, random()) {
                Ok(None) => {}
                Ok(key) => return Ok(key),
                Err(parked) => met = Some(parked),
            }
        }
        // Only expired keys, or keys in few slots: take the first one that a walk finds.
        let mut first = None;
        let mut cursor = 0;
        loop {
            cursor = self.scan(db, cursor, 1, |entry| {
                first.get_or_insert_with(|| entry.key().to_vec());
            })?;
            if first.is_some() || cursor == 0 {
                return Ok(first);
            }
        }
    }

    /// As [`Guard::random_key`], in the slots that a transaction has surveyed: first in the one
    /// that was drawn, then in the others.
    fn random_surveyed_key(
        &mut self,
        db: DbIndex,
        mut random: impl FnMut() -> u64,
    ) -> Option<Vec<u8>> {
        let physical = self.ks.physical(db);
        let start = random() as usize % SLOTS;
        let mut next = self.next_drawn();
        let (mut at, mut is_around) = (start, false);
        self.hold_at_passed_over();
        loop {
            if let Some(slot) = next {
                let key = self.random_key_of(db, slot, random()).expect("it is held");
                if let Some(key) = key.or_else(|| self.first_key_of(db, slot)) {
                    return Some(key);
                }
            }
            let end = if is_around { start } else { SLOTS };
            next = self.next_alive(physical, at).filter(|slot| slot.index() < end);
            match next {
                Some(slot) => at = slot.index() + 1,
                None if is_around => return None,
                None => (at, is_around) = (0, true),
            }
        }
    }

    /// The first live key of a slot that is held.
    fn first_key_of(&mut self, db: DbIndex, slot: SlotId) -> Option<Vec<u8>> {
        let (mut first, mut point) = (None, Some(0));
        while first.is_none()
            && let Some(at) = point
        {
            let mut keep = |entry: Entry<'_>| _ = first.get_or_insert_with(|| entry.key().to_vec());
            point = self.visit_bucket(db, slot, at, 0, &mut keep).1;
        }
        first
    }

    fn random_key_of(
        &mut self,
        db: DbIndex,
        slot: SlotId,
        random: u64,
    ) -> Result<Option<Vec<u8>>, Parked> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut point = random;
        self.step_into(slot)?;
        // Neighbouring buckets until one has a live key; only a few, because the slot is locked.
        for _ in 0..32 {
            let mut keep = |entry: Entry<'_>| keys.push(entry.key().to_vec());
            let (seen, next) = self.visit_bucket(db, slot, point, 0, &mut keep);
            if seen > 0 {
                break;
            }
            let Some(next) = next else { break };
            point = next;
        }
        self.step_out();
        let pick = (random >> 32) as usize % keys.len().max(1);
        Ok((!keys.is_empty()).then(|| keys.swap_remove(pick)))
    }
}

/// The cursor of a point in a slot; 0 behind the last one.
pub(crate) fn cursor_at(slot: usize, point: u64) -> u64 {
    if slot < SLOTS { (slot as u64) << POINT_BITS | point >> (64 - POINT_BITS) } else { 0 }
}

/// The slot of a cursor.
pub(crate) fn slot_of(cursor: u64) -> usize {
    (cursor >> POINT_BITS) as usize
}
