//! Finding a number among sorted ones that are probably spread evenly.

use base::prefetch::prefetch;

/// Numbers that are compared at once, without a branch: two lines of memory at most three.
pub const WINDOW: usize = 16;

/// Where numbers stand among sorted ones, if they are spread evenly between the first and the last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    low: u64,
    /// Places per unit.
    factor: f64,
}

impl Spread {
    /// That of these numbers, which are sorted.
    pub fn of(numbers: &[u64]) -> Self {
        let (Some(&low), Some(&high)) = (numbers.first(), numbers.last()) else {
            return Self::default();
        };
        Self { low, factor: numbers.len() as f64 / ((high - low) as f64 + 1.0) }
    }

    /// The probable place of a number, below `len` unless that is 0.
    #[inline]
    pub fn guess(&self, number: u64, len: usize) -> usize {
        let at = number.saturating_sub(self.low) as f64 * self.factor;
        (at as usize).min(len.saturating_sub(1))
    }
}

/// Prefetches the numbers around a guess: 128 bytes, which are in three lines.
#[inline]
pub fn prefetch_around<T>(items: &[T], guess: usize) {
    let at = items.as_ptr();
    prefetch(at.wrapping_add(guess.saturating_sub(WINDOW / 2)).addr());
    prefetch(at.wrapping_add(guess).addr());
    prefetch(at.wrapping_add(guess + WINDOW / 2 - 1).addr());
}

/// How many of these sorted numbers are below a limit. The nearer the guess, the fewer are read: a
/// window around it is counted, and what is on one side of it is searched only if the limit is
/// there.
#[inline]
pub fn first_not_below<T>(
    items: &[T],
    limit: u64,
    guess: usize,
    number: impl Fn(&T) -> u64,
) -> usize {
    let is_below = |item: &T| number(item) < limit;
    let from = guess.saturating_sub(WINDOW / 2).min(items.len().saturating_sub(WINDOW));
    let window = &items[from..items.len().min(from + WINDOW)];
    let below = window.iter().map(|item| usize::from(is_below(item))).sum::<usize>();
    if (below > 0 || from == 0) && (below < window.len() || from + below == items.len()) {
        return from + below;
    }
    search_beside(items, from, is_below)
}

/// The guess was not near. The number is mostly in the next window on that side, whose cache lines
/// are neighbours, so that one is tried first; then the rest is halved.
#[cold]
fn search_beside<T>(items: &[T], from: usize, is_below: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut high) = (0, items.len());
    if is_below(&items[from]) {
        low = from + WINDOW;
        let beside = low + WINDOW;
        if beside < high && !is_below(&items[beside]) {
            high = beside;
        }
    } else {
        high = from;
        let beside = from.saturating_sub(WINDOW);
        if is_below(&items[beside]) {
            low = beside;
        }
    }
    low + items[low..high].partition_point(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_found_from_every_guess() {
        for len in [0, 1, 2, 15, 16, 17, 40, 100_usize] {
            let numbers: Vec<u64> = (0..len as u64).map(|i| 10 + i / 3 * 4).collect();
            for limit in 8..10 + 2 * len as u64 {
                let right = numbers.iter().filter(|n| **n < limit).count();
                for guess in 0..len.max(1) {
                    assert_eq!(first_not_below(&numbers, limit, guess, |n| *n), right);
                }
                assert!(Spread::of(&numbers).guess(limit, len) < len.max(1));
            }
        }
    }

    #[test]
    fn guesses_are_near_for_evenly_spread_numbers() {
        let numbers: Vec<u64> = (0..64).map(|i| (i << 58) + 12_345).collect();
        let spread = Spread::of(&numbers);
        for (at, number) in numbers.iter().enumerate() {
            assert!(spread.guess(*number, 64).abs_diff(at) <= 1);
        }
        assert_eq!(spread.guess(u64::MAX, 64), 63);
        assert_eq!(spread.guess(0, 64), 0);
        assert_eq!(Spread::of(&[0, u64::MAX]).guess(u64::MAX, 2), 1);
    }
}
