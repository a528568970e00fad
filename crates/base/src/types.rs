//! Numbers with types: an index, a count, a time and a sequence number are never the same integer.

/// Number of hash slots of the keyspace, as in Redis Cluster; fewer under shuttle, whose models
/// make a keyspace for each of their runs.
pub const SLOTS: usize = if cfg!(shuttle) { 64 } else { 16_384 };

/// A hash slot, `0..SLOTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SlotId(u32); // as wide as a register half: a copy of what was just stored needs no merge

impl SlotId {
    /// The slot with this number; only the low 14 bits count.
    #[inline(always)]
    pub const fn new(n: u16) -> Self {
        Self(n as u32 & (SLOTS as u32 - 1))
    }

    /// Its number, always below [`SLOTS`].
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0 & (SLOTS as u32 - 1)) as usize
    }

    /// All slots, ascending.
    pub fn all() -> impl DoubleEndedIterator<Item = SlotId> {
        (0..SLOTS as u32).map(SlotId)
    }
}

/// A logical or physical database number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DbIndex(pub u32); // as wide as `SlotId`, for the same reason

impl DbIndex {
    /// The database with this number.
    #[inline(always)]
    pub const fn new(n: u16) -> Self {
        Self(n as u32)
    }

    /// As an index into a table of databases.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Wall-clock time in milliseconds since the Unix epoch. Negative times are possible: a client may
/// ask for an expiry in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMs(pub i64);

/// Monotonic time in nanoseconds since an arbitrary start; never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MonoNs(pub u64);

impl MonoNs {
    /// Nanoseconds from `earlier` to `self`, 0 if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: MonoNs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The point `ns` nanoseconds later.
    #[inline]
    #[must_use]
    pub const fn plus(self, ns: u64) -> MonoNs {
        MonoNs(self.0.saturating_add(ns))
    }
}

/// A journal sequence number. 0 is "nothing".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SeqNo(pub u64);

/// The number of a fence: a change to what commands may do. 0 is "nothing".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FenceNo(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_ids_wrap_into_their_range() {
        assert_eq!(SlotId::new(16_384).index(), 0);
        assert_eq!(SlotId::new(u16::MAX).index(), SLOTS - 1);
        assert_eq!(SlotId::all().count(), SLOTS);
        assert!(SlotId::all().enumerate().all(|(index, slot)| slot.index() == index));
        assert_eq!(DbIndex(15).index(), 15);
    }

    #[test]
    fn monotonic_time_arithmetic_saturates() {
        assert_eq!(MonoNs(7).since(MonoNs(4)), 3);
        assert_eq!(MonoNs(4).since(MonoNs(7)), 0);
        assert_eq!(MonoNs(4).plus(3), MonoNs(7));
        assert_eq!(MonoNs(4).plus(u64::MAX), MonoNs(u64::MAX));
    }
}
