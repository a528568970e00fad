//! W-TinyLFU (Einziger, Friedman, Manes: "TinyLFU: A Highly Efficient Cache Admission Policy",
//! 2017), from the paper's description.
//!
//! ```text
//! window      a hundredth of the cache, LRU. New keys enter here
//! probation   a fifth of the rest. The window's last key enters here, if it was read more often
//!             lately than the last key of probation, which then goes; else it goes itself
//! protected   the others. A hit in probation moves a key here; what does not fit any more goes
//!             back to the front of probation
//! ```
//!
//! The paper has entries of equal weight. With others a key is compared with each that would have
//! to go for it, one after the other.

use super::Policy;
use super::list::List;
use super::sketch::Sketch;

/// The window gets one part of so many.
const WINDOW_PARTS: u64 = 100;
/// Of the rest, probation gets one part of so many.
const PROBATION_PARTS: u64 = 5;

/// The cache.
pub struct WTinyLfu {
    window_max: u64,
    main_max: u64,
    protected_max: u64,
    window: List,
    probation: List,
    protected: List,
    sketch: Sketch,
}

impl WTinyLfu {
    /// An empty one for this weight, which is about so many entries, and so many keys.
    pub fn new(capacity: u64, entries: u64, keys: usize) -> Self {
        let window_max = (capacity / WINDOW_PARTS).max(1);
        let main_max = capacity - window_max.min(capacity);
        Self {
            window_max,
            main_max,
            protected_max: main_max - main_max / PROBATION_PARTS,
            window: List::new(keys),
            probation: List::new(keys),
            protected: List::new(keys),
            sketch: Sketch::new(entries),
        }
    }

    fn hit(&mut self, key: u32) -> bool {
        if self.window.touch(key) || self.protected.touch(key) {
            return true;
        }
        let Some(weight) = self.probation.remove(key) else { return false };
        self.protected.push(key, weight);
        while self.protected.weight() > self.protected_max {
            let Some((key, weight)) = self.protected.pop() else { break };
            self.probation.push(key, weight);
        }
        true
    }

    /// Offers a key to the part behind the window.
    fn offer(&mut self, key: u32, weight: u64) {
        let reads = self.sketch.estimate(key);
        if weight > self.main_max {
            return;
        }
        while self.probation.weight() + self.protected.weight() + weight > self.main_max {
            let from_probation = self.probation.back();
            let Some((victim, _)) = from_probation.or(self.protected.back()) else { return };
            if self.sketch.estimate(victim) >= reads {
                return;
            }
            let list =
                if from_probation.is_some() { &mut self.probation } else { &mut self.protected };
            list.remove(victim);
        }
        self.probation.push(key, weight);
    }
}

impl Policy for WTinyLfu {
    fn access(&mut self, key: u32, weight: u64) -> bool {
        self.sketch.count(key);
        if self.hit(key) {
            return true;
        }
        self.window.push(key, weight);
        while self.window.weight() > self.window_max {
            let Some((key, weight)) = self.window.pop() else { break };
            self.offer(key, weight);
        }
        false
    }
}
