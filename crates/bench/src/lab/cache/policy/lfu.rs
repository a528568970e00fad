//! Exact LFU without aging: the key with the fewest reads since it came goes first, of several the
//! one that was read the longest time ago.

use std::collections::BTreeSet;

use super::Policy;

/// The cache.
pub struct Lfu {
    capacity: u64,
    used: u64,
    clock: u64,
    /// Reads, time of the last one, key.
    order: BTreeSet<(u64, u64, u32)>,
    /// Reads, time and weight of each key that is in.
    known: Vec<Option<(u64, u64, u64)>>,
}

impl Lfu {
    /// An empty one for this weight and so many keys.
    pub fn new(capacity: u64, keys: usize) -> Self {
        let (order, known) = (BTreeSet::new(), vec![None; keys]);
        Self { capacity, used: 0, clock: 0, order, known }
    }
}

impl Policy for Lfu {
    fn access(&mut self, key: u32, weight: u64) -> bool {
        self.clock += 1;
        let known = self.known[key as usize];
        let (reads, weight) = match known {
            Some((reads, time, weight)) => {
                self.order.remove(&(reads, time, key));
                (reads, weight)
            }
            None if weight > self.capacity => return false,
            None => {
                while self.used + weight > self.capacity {
                    let Some((_, _, victim)) = self.order.pop_first() else { break };
                    let gone = self.known[victim as usize].take();
                    self.used -= gone.map_or(0, |(_, _, weight)| weight);
                }
                self.used += weight;
                (0, weight)
            }
        };
        self.known[key as usize] = Some((reads + 1, self.clock, weight));
        self.order.insert((reads + 1, self.clock, key));
        known.is_some()
    }
}
