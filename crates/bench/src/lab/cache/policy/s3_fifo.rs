//! S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak: "FIFO queues are all you need for cache eviction",
//! SOSP 2023), from the paper's description.
//!
//! ```text
//! small   a tenth of the cache. New keys enter here
//! main    the rest
//! ghost   keys that left `small`, without values, as many as fit into `main`. One of these that
//!         comes back enters `main`
//! ```
//!
//! A hit adds one to a counter of two bits and moves nothing. A key at the end of `small` goes to
//! `main` if it was read more than once meanwhile, else out. A key at the end of `main` goes back
//! to its front with one less on the counter, or out at zero.

use super::Policy;
use super::list::List;

/// A counter has two bits.
const COUNT_MAX: u8 = 3;
/// `small` gets one part of so many.
const SMALL_PARTS: u64 = 10;

/// The cache.
pub struct S3Fifo {
    capacity: u64,
    small: List,
    main: List,
    ghost: List,
    counts: Vec<u8>,
}

impl S3Fifo {
    /// An empty one for this weight and so many keys.
    pub fn new(capacity: u64, keys: usize) -> Self {
        let (small, main, ghost) = (List::new(keys), List::new(keys), List::new(keys));
        Self { capacity, small, main, ghost, counts: vec![0; keys] }
    }

    fn small_max(&self) -> u64 {
        (self.capacity / SMALL_PARTS).max(1)
    }

    fn evict(&mut self) {
        let is_small_full = self.small.weight() >= self.small_max();
        if is_small_full || self.main.back().is_none() {
            self.evict_from_small();
        } else {
            self.evict_from_main();
        }
    }

    fn evict_from_small(&mut self) {
        while let Some((key, weight)) = self.small.pop() {
            if self.counts[key as usize] <= 1 {
                self.remember(key, weight);
                return;
            }
            self.counts[key as usize] = 0;
            self.main.push(key, weight);
            if self.main.weight() > self.capacity - self.small_max() {
                self.evict_from_main();
                return;
            }
        }
    }

    fn evict_from_main(&mut self) {
        while let Some((key, weight)) = self.main.pop() {
            let count = &mut self.counts[key as usize];
            if *count == 0 {
                return;
            }
            *count -= 1;
            self.main.push(key, weight);
        }
    }

    fn remember(&mut self, key: u32, weight: u64) {
        self.ghost.push(key, weight);
        while self.ghost.weight() > self.capacity - self.small_max() {
            self.ghost.pop();
        }
    }
}

impl Policy for S3Fifo {
    fn access(&mut self, key: u32, weight: u64) -> bool {
        if self.small.contains(key) || self.main.contains(key) {
            let count = &mut self.counts[key as usize];
            *count = (*count + 1).min(COUNT_MAX);
            return true;
        }
        if weight <= self.capacity {
            while self.small.weight() + self.main.weight() + weight > self.capacity {
                self.evict();
            }
            self.counts[key as usize] = 0;
            let was_here = self.ghost.remove(key).is_some();
            let queue = if was_here { &mut self.main } else { &mut self.small };
            queue.push(key, weight);
        }
        false
    }
}
