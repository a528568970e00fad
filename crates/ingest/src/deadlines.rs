//! Deadlines of many connections: a heap with at most one entry for each place.
//!
//! An entry may be earlier than the deadline of its connection, never later: the caller that takes
//! it checks, and arms again. So a deadline that moves with every block costs nothing, and a place
//! that is reused still has one entry.

use base::MonoNs;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The deadlines, the next one first.
#[derive(Debug, Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(MonoNs, u32)>>,
    /// Places that have an entry.
    armed: Vec<bool>,
}

impl Deadlines {
    /// Adds an entry for `place` at `due`, unless it has one already, which must not be later.
    /// O(log n).
    #[inline]
    pub fn arm(&mut self, place: u32, due: MonoNs) {
        let at = place as usize;
        if at >= self.armed.len() {
            self.armed.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.armed[at], true) {
            self.heap.push(Reverse((due, place)));
        }
    }

    /// The first deadline.
    #[inline]
    pub fn next(&self) -> Option<MonoNs> {
        self.heap.peek().map(|Reverse((due, _))| *due)
    }

    /// Removes an entry that is due by `now` and returns its place. O(log n).
    pub fn take(&mut self, now: MonoNs) -> Option<u32> {
        let Reverse((_, place)) = *self.heap.peek().filter(|Reverse((due, _))| *due <= now)?;
        self.heap.pop();
        self.armed[place as usize] = false;
        Some(place)
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.armed.fill(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_taken_in_order_and_once_per_connection() {
        let mut deadlines = Deadlines::default();
        for (place, due) in [(3, 30), (1, 10), (3, 40), (2, 20)] {
            deadlines.arm(place, MonoNs(due));
        }
        assert_eq!(deadlines.next(), Some(MonoNs(10)));
        assert_eq!(deadlines.take(MonoNs(9)), None);
        let taken: Vec<u32> = std::iter::from_fn(|| deadlines.take(MonoNs(30))).collect();
        assert_eq!(taken, [1, 2, 3]);
        assert_eq!(deadlines.next(), None);
        deadlines.arm(3, MonoNs(50));
        assert_eq!(deadlines.next(), Some(MonoNs(50)));
        deadlines.clear();
        deadlines.arm(3, MonoNs(60));
        assert_eq!(deadlines.take(MonoNs(60)), Some(3));
    }
}
