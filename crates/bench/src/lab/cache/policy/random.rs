//! Any key goes.

use base::prng::Prng;

use super::Policy;

/// The cache.
pub struct Random {
    capacity: u64,
    used: u64,
    inside: Vec<(u32, u64)>,
    /// Where each key is in `inside`.
    places: Vec<Option<usize>>,
    prng: Prng,
}

impl Random {
    /// An empty one for this weight and so many keys.
    pub fn new(capacity: u64, keys: usize) -> Self {
        let (inside, places, prng) = (Vec::new(), vec![None; keys], Prng::new(1));
        Self { capacity, used: 0, inside, places, prng }
    }

    fn evict(&mut self) {
        let at = self.prng.below(self.inside.len() as u64) as usize;
        let (victim, weight) = self.inside.swap_remove(at);
        self.places[victim as usize] = None;
        if let Some((moved, _)) = self.inside.get(at) {
            self.places[*moved as usize] = Some(at);
        }
        self.used -= weight;
    }
}

impl Policy for Random {
    fn access(&mut self, key: u32, weight: u64) -> bool {
        if self.places[key as usize].is_some() {
            return true;
        }
        if weight <= self.capacity {
            while self.used + weight > self.capacity {
                self.evict();
            }
            self.places[key as usize] = Some(self.inside.len());
            self.inside.push((key, weight));
            self.used += weight;
        }
        false
    }
}
