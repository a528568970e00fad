//! What a session may still use of its worker's time, and what it has used too much: its debt.
//!
//! Only clock readings that exist anyway are charged (`worker/quotas.rs`). A session that is never
//! charged has its whole share.

use base::MonoNs;
use driver::ConnId;
use std::collections::VecDeque;

/// The time of a worker that a session may use while others wait, before they run: the length of a
/// step of a long command. A command is not interrupted, so a session may use more at once.
pub const SHARE_NS: u64 = 200_000;
/// The most that a session owes, whatever its command took: so it pays for 50 rounds at most.
pub const DEBT_MAX_NS: u64 = 50 * SHARE_NS;

/// A window of commands of the short path that takes less is not charged: 32 of them take about a
/// third of it. So a session may have 512 of them in a turn for 0.4 ms at most.
pub(crate) const NOTED_NS: u64 = 25_000;

const SHARE: i64 = SHARE_NS as i64;
const LEAST: i64 = -(DEBT_MAX_NS as i64);

/// What is left of a session's share.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Nanoseconds; what is below 0 is owed.
    left_ns: i64,
    /// The beginning of the turn in which it was charged last.
    turn: MonoNs,
    /// It was cut short and goes on with what it has left, not with a whole share.
    carries: bool,
    /// All that was ever charged, nanoseconds.
    charged_ns: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { left_ns: SHARE, turn: MonoNs(0), carries: false, charged_ns: 0 }
    }
}

impl Quota {
    /// Charges time that was used in the turn which began at `turn`. Who owes nothing has a whole
    /// share in each turn. True if nothing is left.
    #[inline]
    pub fn charge(&mut self, turn: MonoNs, ns: u64) -> bool {
        if self.turn != turn {
            self.turn = turn;
            if self.left_ns > 0 && !std::mem::take(&mut self.carries) {
                self.left_ns = SHARE;
            }
        }
        self.charged_ns = self.charged_ns.wrapping_add(ns);
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        self.left_ns = self.left_ns.saturating_sub(ns).max(LEAST);
        self.is_spent()
    }

    /// Its turn has come in a round of those who were cut short: it gets a share, and pays what it
    /// owes. True if something is left to go on with.
    pub fn pay(&mut self) -> bool {
        self.left_ns = (self.left_ns + SHARE).min(SHARE);
        self.carries = true;
        !self.is_spent()
    }

    /// True if nothing is left.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.left_ns <= 0
    }

    /// All that was ever charged, nanoseconds; it wraps.
    pub fn charged_ns(&self) -> u64 {
        self.charged_ns
    }

    /// It has its whole share again.
    pub fn restore(&mut self) {
        *self = Self { charged_ns: self.charged_ns, ..Self::default() };
    }

    /// What it owes, nanoseconds.
    pub fn debt_ns(&self) -> u64 {
        self.left_ns.min(0).unsigned_abs()
    }
}

/// The sessions of a worker whose share is used up.
#[derive(Default)]
pub struct Quotas {
    /// In the order in which they go on; each is suspended as `Suspended::Spent`.
    pub(crate) left: VecDeque<ConnId>,
    /// Who was added in this turn.
    pub(crate) added: usize,
    /// Who goes on in this turn.
    pub(crate) resumed: Option<ConnId>,
}

impl Quotas {
    /// True if nobody waits to go on.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// True if nobody waits to go on, and nobody went on in this turn.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.is_empty() & self.resumed.is_none()
    }

    /// A session is closed.
    pub fn remove(&mut self, conn: ConnId) {
        self.left.retain(|other| *other != conn);
    }

    pub(crate) fn add(&mut self, conn: ConnId) {
        self.left.push_back(conn);
        self.added += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    /// Uses its share in one turn after the other, with commands that take so long, until it has
    /// waited for so many rounds. Returns the time that it used.
    fn used(command_ns: u64, rounds: usize) -> u64 {
        let (mut quota, mut used) = (Quota::default(), 0);
        for turn in 1..=rounds {
            if turn > 1 && !quota.pay() {
                continue;
            }
            loop {
                used += command_ns;
                if quota.charge(MonoNs(turn as u64), command_ns) {
                    break;
                }
            }
        }
        used
    }

    #[test]
    fn each_round_gives_the_same_whatever_the_commands_cost() {
        for command_us in [1, 7, 100, 130, 199, 200, 201, 1_000, 1_999, 10_000] {
            let used = used(command_us * US, 2_000);
            let share = 2_000 * SHARE_NS;
            assert!(used.abs_diff(share) <= share / 50, "{command_us} us: {used}");
        }
    }

    #[test]
    fn a_debt_is_bounded() {
        let mut quota = Quota::default();
        assert!(quota.charge(MonoNs(1), u64::MAX));
        assert_eq!(quota.debt_ns(), DEBT_MAX_NS);
        assert!(quota.charge(MonoNs(1), 1));
        assert_eq!(quota.debt_ns(), DEBT_MAX_NS);
        let rounds = (1..1_000).find(|_| quota.pay()).expect("an end");
        assert_eq!(rounds, DEBT_MAX_NS / SHARE_NS + 1);
    }

    #[test]
    fn who_owes_nothing_has_a_whole_share_in_each_turn() {
        let mut quota = Quota::default();
        for turn in 1..100 {
            assert!(!quota.charge(MonoNs(turn), SHARE_NS - 1), "in turn {turn}");
        }
        assert!(quota.charge(MonoNs(99), 1));
        assert!(quota.charge(MonoNs(100), 1), "a debt is not forgotten with the turn");
        assert_eq!(quota.debt_ns(), 1);
        assert!(quota.pay());
        assert!(quota.charge(MonoNs(101), SHARE_NS - 1), "what it owed is missing");
    }
}
