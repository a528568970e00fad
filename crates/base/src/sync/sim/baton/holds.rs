//! When threads were held: so that a test can tell a stall from a wait for a held thread.

use super::Group;

/// A hold: from its beginning to its end, of a thread of this group.
#[derive(Clone, Copy, Debug)]
struct Hold {
    from_ns: u64,
    to_ns: u64,
    group: Group,
}

/// All holds of a world, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Holds {
    all: Vec<Hold>,
    /// The longest one.
    ns_max: u64,
}

impl Holds {
    pub fn add(&mut self, group: Group, from_ns: u64, to_ns: u64) {
        self.all.push(Hold { from_ns, to_ns, group });
        self.ns_max = self.ns_max.max(to_ns - from_ns);
    }

    /// A group has ended: its threads are held no longer.
    pub fn end(&mut self, group: Group, now_ns: u64) {
        let recent = self.first_since(now_ns);
        for hold in self.all[recent..].iter_mut().filter(|hold| hold.group == group) {
            hold.to_ns = hold.to_ns.min(now_ns);
        }
    }

    /// The first hold which may have lasted until `from_ns`, or began later.
    fn first_since(&self, from_ns: u64) -> usize {
        self.all.partition_point(|hold| hold.from_ns + self.ns_max < from_ns)
    }

    /// The time between two times at which at least one thread was held.
    pub fn total_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let (mut total, mut counted_to) = (0, from_ns);
        for hold in &self.all[self.first_since(from_ns)..] {
            let (from, to) = (hold.from_ns.max(counted_to), hold.to_ns.min(to_ns));
            if to > from {
                total += to - from;
                counted_to = to;
            }
        }
        total
    }

    /// When the first hold began that lasted until `from_ns` or longer; `from_ns` if none did.
    pub fn beginning_ns(&self, from_ns: u64) -> u64 {
        let candidates = self.all[self.first_since(from_ns)..].iter();
        let lasting = candidates.filter(|hold| hold.to_ns >= from_ns).map(|hold| hold.from_ns);
        lasting.min().unwrap_or(from_ns).min(from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_holds_count_once_and_a_dead_group_is_not_held() {
        let mut holds = Holds::default();
        let (a, b) = (Group(1), Group(2));
        holds.add(a, 100, 200);
        holds.add(b, 150, 300);
        holds.add(a, 400, 500);
        assert_eq!(holds.total_ns(0, 1_000), 300);
        assert_eq!(holds.total_ns(250, 450), 100);
        assert_eq!(holds.total_ns(300, 400), 0);
        assert_eq!(holds.beginning_ns(250), 150);
        assert_eq!(holds.beginning_ns(350), 350);
        holds.end(a, 420);
        assert_eq!(holds.total_ns(0, 1_000), 220);
        assert_eq!(holds.total_ns(160, 1_000), 160, "those of others last");
    }
}
