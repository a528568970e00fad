//! Cutting a run of ranks out of a sorted set.

use super::big::Zset;
use crate::keyed::Key;
use std::ops::Range;

impl Zset {
    /// Removes the members of these ranks without logging: the caller has captured the set. The
    /// tree of scores is cut, O(log n); each member is removed from the index by itself.
    pub fn cut(&mut self, ranks: Range<u64>) {
        let was = self.clone();
        self.cut_order(ranks.clone());
        for scored in was.iter_from(ranks.start).take((ranks.end - ranks.start) as usize) {
            self.cut_member(scored.member);
        }
    }

    /// The first half of [`Zset::cut`]: removes the members from the order. The caller then removes
    /// each from the index, on a clone which is not read before that is done.
    pub fn cut_order(&mut self, ranks: Range<u64>) {
        self.order.cut(ranks.start, ranks.end - ranks.start);
    }

    /// The second half, for one member.
    pub fn cut_member(&mut self, member: &[u8]) {
        let gone = self.members.remove(Key::hashed(member), |_| ());
        debug_assert!(gone.is_some(), "what was in the order is in the index");
    }

    /// True if both are clones of one sorted set, unchanged since. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        self.order.is_same(&other.order) && self.members.is_same(&other.members)
    }
}
