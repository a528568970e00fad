//! What is recorded about the uses of keys (LRU and LFU), in 24 bits of an entry's header.
//!
//! ```text
//! times    23..0  second of the last use, modulo 2^24: 194 days
//! counts   23..8  minute of the last count, modulo 2^16: 45 days
//!           7..0  logarithmic counter
//! ```
//!
//! Counters follow redis.io's page on key eviction: a use adds one with the probability
//! `1 / (steps * log factor + 1)`, where `steps` counts from the value of a new key (this
//! reproduces the page's table of counts per factor). Each decay time without a use subtracts one.

use base::UnixMs;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Mutex, PoisonError};

const MASK: u32 = (1 << 24) - 1;
/// Of the word that a worker compares headers with: counts are kept, and no header equals it.
pub(crate) const COUNTING: u32 = 1 << 31;
/// A new key's counter: a key that was not used yet is not the first to go.
const COUNT_NEW: u32 = 5;

/// What is recorded about the uses of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uses {
    /// When each key was last used.
    #[default]
    Times,
    /// How often each key is used, approximately.
    Counts {
        /// How many more uses each step of a counter needs.
        log_factor: u32,
        /// Minutes after which a counter loses a step, 0 for never.
        decay_minutes: u32,
    },
}

impl Uses {
    /// What a worker compares with the header's bits, and what a new entry gets: the clock of the
    /// last uses, or [`COUNTING`] and a new key's count. A header takes only the lower 24 bits.
    pub(crate) fn word(self, now: UnixMs) -> u32 {
        match self {
            Uses::Times => second(now),
            Uses::Counts { .. } => COUNTING | minute(now) << 8 | COUNT_NEW,
        }
    }

    /// The bits after one more use; `draw` is random.
    #[cold]
    pub(crate) fn counted(self, bits: u32, now: UnixMs, draw: u64) -> u32 {
        let Uses::Counts { log_factor, .. } = self else { return second(now) };
        let count = self.count(bits, now).unwrap_or(0);
        let steps = u64::from(count.saturating_sub(COUNT_NEW)) * u64::from(log_factor) + 1;
        // The upper half of the draw as a fraction is below 1 / steps.
        let more = (draw >> 32) * steps < 1 << 32;
        minute(now) << 8 | (count + u32::from(more)).min(255)
    }

    fn count(self, bits: u32, now: UnixMs) -> Option<u32> {
        let Uses::Counts { decay_minutes, .. } = self else { return None };
        let minutes = minute(now).wrapping_sub(bits >> 8) & 0xFFFF;
        let lost = minutes.checked_div(decay_minutes).unwrap_or(0);
        Some((bits & 0xFF).saturating_sub(lost))
    }

    /// The counter that the bits stand for; `None` if times are kept.
    pub(crate) fn frequency(self, bits: u32, now: UnixMs) -> Option<u8> {
        self.count(bits, now).map(|count| count as u8)
    }

    /// Which of several keys goes first, by its counter: the higher, the sooner; `None` if times
    /// are kept.
    ///
    /// Here a counter goes on losing below zero: of keys that have lost all the one goes that was
    /// used longest ago. Of two with the same counter the one goes that has lost less: it is new,
    /// and the other was used more often.
    pub(crate) fn rarity(self, bits: u32, now: UnixMs) -> Option<u64> {
        /// More than any counter.
        const MOST: u64 = 1 << 8;
        let Uses::Counts { decay_minutes, .. } = self else { return None };
        let count = u64::from(bits & 0xFF);
        let idle = u64::from(minute(now).wrapping_sub(bits >> 8) & 0xFFFF);
        let lost = idle.checked_div(u64::from(decay_minutes)).unwrap_or(0);
        Some((MOST + lost - count) << 8 | (0xFF - count))
    }

    /// The bits of a key with this counter.
    pub(crate) fn with_frequency(count: u8, now: UnixMs) -> u32 {
        minute(now) << 8 | u32::from(count)
    }
}

/// The setting of what is recorded, for all workers.
#[derive(Debug, Default)]
pub(crate) struct UsesKept {
    uses: Mutex<Uses>,
    /// Raised with every change.
    version: AtomicU32,
}

impl UsesKept {
    pub fn set(&self, uses: Uses) {
        let mut kept = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if *kept != uses {
            *kept = uses;
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    pub fn get(&self) -> Uses {
        *self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes every Access adopt again what it reads when it goes inside: for the other state that
    /// hangs on the version, which is the snapshot.
    pub fn raise(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    #[inline]
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }
}

fn second(now: UnixMs) -> u32 {
    (now.0 / 1000) as u32 & MASK
}

fn minute(now: UnixMs) -> u32 {
    (now.0 / 60_000) as u32 & 0xFFFF
}

/// Seconds since the last use.
pub(crate) fn idle_seconds(bits: u32, now: UnixMs) -> u64 {
    u64::from(second(now).wrapping_sub(bits) & MASK)
}

/// The bits of a key that was used last so many seconds ago, or as long ago as they can tell.
pub(crate) fn idle_since(seconds: u64, now: UnixMs) -> u32 {
    second(now).wrapping_sub(seconds.min(u64::from(MASK)) as u32) & MASK
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;

    const NOW: UnixMs = UnixMs(1_700_000_000_000);

    fn after(log_factor: u32, uses: u32) -> u32 {
        let uses_kept = Uses::Counts { log_factor, decay_minutes: 1 };
        let mut prng = Prng::new(u64::from(uses));
        let runs = 40;
        let sum: u32 = (0..runs)
            .map(|_| {
                let new = uses_kept.word(NOW) & MASK;
                let bits = (0..uses).fold(new, |bits, _| uses_kept.counted(bits, NOW, prng.draw()));
                bits & 0xFF
            })
            .sum();
        sum / runs
    }

    /// The table on redis.io's page on key eviction. Its figures are from single runs.
    #[test]
    fn counters_grow_as_documented() {
        let table = [
            (0, [(100, 104), (1_000, 255)]),
            (1, [(100, 18), (1_000, 49)]),
            (10, [(100, 10), (1_000, 18)]),
            (100, [(100, 8), (1_000, 11)]),
        ];
        for (factor, row) in table {
            for (uses, documented) in row {
                let told = after(factor, uses);
                assert!(told.abs_diff(documented) <= 2, "factor {factor}, {uses} uses: {told}");
            }
        }
    }

    #[test]
    fn counters_decay_by_the_minute_unless_decay_is_0() {
        let kept = |decay_minutes| Uses::Counts { log_factor: 10, decay_minutes };
        let bits = Uses::with_frequency(100, NOW);
        let told = |uses: Uses, minutes: i64| {
            uses.frequency(bits, UnixMs(NOW.0 / 60_000 * 60_000 + minutes * 60_000))
        };
        assert_eq!(
            (told(kept(1), 0), told(kept(1), 7), told(kept(1), 500)),
            (Some(100), Some(93), Some(0))
        );
        assert_eq!((told(kept(5), 7), told(kept(0), 60_000)), (Some(99), Some(100)));
        assert_eq!(told(Uses::Times, 0), None);
    }

    #[test]
    fn the_order_follows_use_then_idle_time_then_proof() {
        let goes_before = |decay_minutes, first: (u8, i64), second: (u8, i64)| {
            let kept = Uses::Counts { log_factor: 10, decay_minutes };
            let rarity = |(count, idle): (u8, i64)| {
                let bits = Uses::with_frequency(count, UnixMs(NOW.0 - idle * 60_000));
                kept.rarity(bits, NOW).expect("counts are kept")
            };
            rarity(first) > rarity(second)
        };
        // Count, and minutes without a use.
        assert!(goes_before(1, (5, 0), (6, 0)) && goes_before(1, (6, 2), (5, 0)));
        assert!(goes_before(1, (5, 60), (9, 30)), "both have lost all");
        assert!(goes_before(1, (5, 0), (8, 3)), "the second was five and more once");
        assert!(goes_before(10, (5, 0), (8, 39)) && goes_before(10, (8, 40), (5, 0)));
        assert!(goes_before(0, (5, 0), (6, 60_000)), "nothing is lost");
        assert!(!goes_before(0, (5, 9), (5, 0)) && !goes_before(0, (5, 0), (5, 9)));
        assert_eq!(Uses::Times.rarity(0, NOW), None);
    }

    #[test]
    fn no_header_equals_the_counts_marker() {
        let counts = Uses::Counts { log_factor: 10, decay_minutes: 1 };
        assert!(counts.word(NOW) > MASK && Uses::Times.word(NOW) <= MASK);
        assert_eq!(counts.frequency(counts.word(NOW) & MASK, NOW), Some(5));
    }

    #[test]
    fn idle_times_wrap_around() {
        assert_eq!(idle_seconds(idle_since(1_000, NOW), NOW), 1_000);
        assert_eq!(idle_seconds(idle_since(u64::MAX, NOW), NOW), u64::from(MASK));
        assert_eq!(idle_seconds(second(NOW), UnixMs(NOW.0 + 999)), 0);
    }
}
