//! A number that one thread writes and every thread may read.

use base::sync::atomic::{AtomicU64, Ordering};

/// A counter with a single writer. Adding is a load and a store, not a locked instruction, so two
/// writers would lose counts. Readers see a recent value.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Wraps at 2^64. Only the one writer may call it.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Subtracts `n`. Only the one writer may call it.
    #[inline]
    pub fn subtract(&self, n: u64) {
        self.add(n.wrapping_neg());
    }

    /// Replaces the value.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// Raises the value to `n` if it is lower. Only the one writer may call it.
    #[inline]
    pub fn raise(&self, n: u64) {
        if n > self.get() {
            self.set(n);
        }
    }

    /// A recent value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::sync::{Arc, thread};

    #[test]
    fn a_counter_adds_subtracts_and_raises() {
        let c = Counter::default();
        c.add(5);
        c.subtract(2);
        c.raise(2);
        assert_eq!(c.get(), 3);
        c.raise(9);
        assert_eq!(c.get(), 9);
        c.set(u64::MAX);
        c.add(2);
        assert_eq!(c.get(), 1);
    }

    #[test]
    fn a_reader_sees_growing_values_and_the_last_one_after_a_join() {
        const ADDS: u64 = 100_000;
        let counter = Arc::new(Counter::default());
        let writer = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || (0..ADDS).for_each(|_| counter.add(1)))
        };
        let mut last = 0;
        while last < ADDS && !writer.is_finished() {
            let now = counter.get();
            assert!(now >= last);
            last = now;
        }
        writer.join().expect("the writer does not panic");
        assert_eq!(counter.get(), ADDS);
    }
}
