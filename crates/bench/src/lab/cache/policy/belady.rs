//! Belady's optimum: the key whose next read is furthest away goes first. No cache that inserts
//! what it misses has more hits, if all weights are equal. With different weights finding the
//! optimum is too hard; the same rule is then only near it.

use std::collections::BTreeSet;

use super::Policy;

/// The cache. It knows the trace.
pub struct Belady {
    capacity: u64,
    used: u64,
    /// When the key of each access is read next.
    next_uses: Vec<u32>,
    at: usize,
    /// Next read and key.
    order: BTreeSet<(u32, u32)>,
    /// Next read and weight of each key that is in.
    known: Vec<Option<(u32, u64)>>,
}

impl Belady {
    /// An empty one for this weight and so many keys, and for a trace whose accesses are repeated
    /// at these times.
    pub fn new(capacity: u64, keys: usize, next_uses: Vec<u32>) -> Self {
        let (order, known) = (BTreeSet::new(), vec![None; keys]);
        Self { capacity, used: 0, next_uses, at: 0, order, known }
    }
}

impl Policy for Belady {
    fn access(&mut self, key: u32, weight: u64) -> bool {
        let next = self.next_uses[self.at];
        self.at += 1;
        let known = self.known[key as usize];
        let weight = match known {
            Some((this, weight)) => {
                self.order.remove(&(this, key));
                weight
            }
            None if weight > self.capacity => return false,
            None => {
                while self.used + weight > self.capacity {
                    let Some((_, victim)) = self.order.pop_last() else { break };
                    let gone = self.known[victim as usize].take();
                    self.used -= gone.map_or(0, |(_, weight)| weight);
                }
                self.used += weight;
                weight
            }
        };
        self.known[key as usize] = Some((next, weight));
        self.order.insert((next, key));
        known.is_some()
    }
}
