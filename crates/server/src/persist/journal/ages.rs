//! Since when the oldest bytes wait which are in memory and not durable, to a tenth of a second.

use base::MonoNs;
use std::collections::VecDeque;

/// Bytes which came so close together have one age, that of the first.
const GRAIN_NS: u64 = 100_000_000;

/// When bytes came, oldest first: those up to a total, not before a time.
#[derive(Debug, Default)]
pub(super) struct Ages {
    marks: VecDeque<(u64, MonoNs)>,
    /// Bytes which have become durable.
    durable: u64,
}

impl Ages {
    /// So many more are durable.
    pub fn end(&mut self, bytes: usize) {
        self.durable += bytes as u64;
    }

    /// So many are left. Call it whenever some may have come. Without `is_timed` nobody counts:
    /// they are as if they came now.
    pub fn look(&mut self, left: usize, now: MonoNs, is_timed: bool) {
        if left == 0 || !is_timed {
            self.marks.clear();
        }
        while self.marks.front().is_some_and(|(end, _)| *end <= self.durable) {
            self.marks.pop_front();
        }
        let total = self.durable + left as u64;
        match self.marks.back_mut() {
            _ if left == 0 => {}
            Some((end, since)) if now.since(*since) < GRAIN_NS => *end = total,
            Some((end, _)) if *end >= total => {}
            _ => self.marks.push_back((total, now)),
        }
    }

    /// Since when the oldest of them wait.
    pub fn oldest(&self) -> Option<MonoNs> {
        self.marks.front().map(|(_, since)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Regression: a disk on which a write takes long had only young bytes, behind each sync.
    #[test]
    fn the_oldest_is_what_no_sync_has_covered() {
        let mut ages = Ages::default();
        for second in 1..=10 {
            // 100 bytes come each second, and 40 become durable.
            ages.look(60 * (second as usize - 1) + 100, MonoNs(second * S), true);
            ages.end(40);
        }
        ages.look(600, MonoNs(10 * S), true);
        assert_eq!(ages.oldest(), Some(MonoNs(5 * S)), "400 of 1000 are durable");
        ages.end(600);
        ages.look(0, MonoNs(11 * S), true);
        assert_eq!(ages.oldest(), None);
        ages.look(10, MonoNs(12 * S), false);
        ages.look(10, MonoNs(20 * S), false);
        ages.look(10, MonoNs(21 * S), true);
        assert_eq!(ages.oldest(), Some(MonoNs(20 * S)), "nobody counted before");
    }
}
