//! Exact LRU: the key that was read the longest time ago goes first.

use super::Policy;
use super::list::List;

/// The cache.
pub struct Lru {
    capacity: u64,
    list: List,
    /// When each key was read last, to tell how old a key is that goes.
    last: Vec<u64>,
    clock: u64,
    ages: u64,
    evicted: u64,
}

impl Lru {
    /// An empty one for this weight and so many keys.
    pub fn new(capacity: u64, keys: usize) -> Self {
        let (list, last) = (List::new(keys), vec![0; keys]);
        Self { capacity, list, last, clock: 0, ages: 0, evicted: 0 }
    }

    /// How many accesses ago the keys that went were read last, on average.
    pub fn mean_age(&self) -> Option<f64> {
        (self.evicted > 0).then(|| self.ages as f64 / self.evicted as f64)
    }

    /// Whether it holds a key.
    #[cfg(test)]
    pub fn holds(&self, key: u32) -> bool {
        self.list.contains(key)
    }
}

impl Policy for Lru {
    fn access(&mut self, key: u32, weight: u64) -> bool {
        self.clock += 1;
        let is_hit = self.list.touch(key);
        if !is_hit && weight <= self.capacity {
            while self.list.weight() + weight > self.capacity {
                let Some((victim, _)) = self.list.pop() else { break };
                self.ages += self.clock - self.last[victim as usize];
                self.evicted += 1;
            }
            self.list.push(key, weight);
        }
        self.last[key as usize] = self.clock;
        is_hit
    }
}
