//! Is a history linearizable? Each operation takes effect at one moment between its call and its
//! return; the checker (after Wing and Gong) looks for an order of such moments that explains every
//! reply.
//!
//! One key at a time: a history over many keys is linearizable if each key's part is. A key is a
//! number or absent, which covers registers and counters alike.
//!
//! The operations of one session take effect in their order, and if one without a reply took
//! effect, then those before it did. So a state of the search is how far each session has come.

use std::collections::HashSet;

/// Longest history that is checked.
pub const OPS_MAX: usize = 128;

/// An operation on a key and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// SET, answered OK.
    Set(i64),
    /// GET and what it saw.
    Get(Option<i64>),
    /// INCR and its result.
    Incr(i64),
    /// DEL, and whether the key existed.
    Del(bool),
    /// SET whose reply never came: it took effect, or never will.
    LostSet(i64),
    /// INCR whose reply never came.
    LostIncr,
    /// DEL whose reply never came.
    LostDel,
}

impl Did {
    /// True if no reply came.
    fn is_lost(self) -> bool {
        matches!(self, Self::LostSet(_) | Self::LostIncr | Self::LostDel)
    }
}

/// One operation of a history.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// The operation and its reply.
    pub did: Did,
    /// When it was sent.
    pub call: u64,
    /// When its reply arrived. Of one without a reply: when it can no longer take effect, or
    /// `u64::MAX`.
    pub ret: u64,
    /// The session that sent it, whose operations are listed in its order.
    pub by: u64,
}

/// The value of a key; `None` if it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State(Option<i64>);

/// The state after `did`, if its reply is possible in `state`.
fn step(state: State, did: Did) -> Option<State> {
    match did {
        Did::Set(value) | Did::LostSet(value) => Some(State(Some(value))),
        Did::Get(seen) => (seen == state.0).then_some(state),
        Did::Incr(result) => (state.0.unwrap_or(0) + 1 == result).then_some(State(Some(result))),
        Did::Del(was) => (was == state.0.is_some()).then_some(State(None)),
        Did::LostIncr => Some(State(Some(state.0.unwrap_or(0) + 1))),
        Did::LostDel => Some(State(None)),
    }
}

/// True if some order within the calls and returns explains all replies of one key, absent at
/// first.
///
/// # Panics
/// If there are more than [`OPS_MAX`] operations.
pub fn is_linearizable(ops: &[Op]) -> bool {
    verdict(ops, usize::MAX).unwrap_or_default()
}

/// As [`is_linearizable`], but `None` if the answer is not found among so many states. Their number
/// grows with the product of the lost operations of each session.
///
/// # Panics
/// If there are more than [`OPS_MAX`] operations.
pub fn verdict(ops: &[Op], states_max: usize) -> Option<bool> {
    assert!(ops.len() <= OPS_MAX, "histories are bounded");
    let answered = mask(ops, |op| !op.did.is_lost());
    // What its session sent before it.
    let earlier: Vec<u128> =
        ops.iter().enumerate().map(|(i, op)| mask(&ops[..i], |other| other.by == op.by)).collect();
    let mut seen = HashSet::new();
    let mut todo = vec![(0u128, State(None))];
    while let Some((done, state)) = todo.pop() {
        if done & answered == answered {
            return Some(true);
        }
        if seen.len() == states_max {
            return None;
        }
        if !seen.insert((done, state)) {
            continue;
        }
        let open = || ops.iter().enumerate().filter(move |(i, _)| done >> i & 1 == 0);
        let first_return = open().filter(|(_, op)| !op.did.is_lost()).map(|(_, op)| op.ret).min();
        let first_return = first_return.unwrap_or(u64::MAX);
        // Those that were answered are tried first: most lost ones never took effect.
        for lost in [true, false] {
            let now = |i: usize, op: &Op| {
                op.call <= first_return && op.did.is_lost() == lost && earlier[i] & !done == 0
            };
            for (i, op) in open().filter(|(i, op)| now(*i, op)) {
                let Some(next) = step(state, op.did) else { continue };
                // What could take effect only before this one was sent never did.
                let too_late = mask(ops, |other| other.did.is_lost() && other.ret < op.call);
                todo.push((done | 1 << i | too_late, next));
            }
        }
    }
    Some(false)
}

/// The bits of the operations which are `wanted`.
fn mask(ops: &[Op], wanted: impl Fn(&Op) -> bool) -> u128 {
    let chosen = ops.iter().enumerate().filter(|(_, op)| wanted(op));
    chosen.fold(0, |bits, (i, _)| bits | 1 << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(ops: &[(Did, u64, u64)]) -> bool {
        let sessions = ops.iter().zip(0..);
        sessions_history(
            &sessions.map(|(&(did, call, ret), by)| (did, call, ret, by)).collect::<Vec<_>>(),
        )
    }

    fn sessions_history(ops: &[(Did, u64, u64, u64)]) -> bool {
        let op = |&(did, call, ret, by)| Op { did, call, ret, by };
        is_linearizable(&ops.iter().map(op).collect::<Vec<_>>())
    }

    #[test]
    fn concurrent_operations_may_come_in_any_order() {
        use Did::{Del, Get, Incr, Set};
        assert!(history(&[(Set(1), 0, 9), (Get(None), 1, 2), (Get(Some(1)), 3, 4)]));
        assert!(history(&[(Incr(2), 0, 9), (Incr(1), 0, 9), (Incr(3), 0, 9)]));
        assert!(history(&[(Set(5), 0, 9), (Del(true), 0, 9), (Incr(6), 0, 9)]));
    }

    #[test]
    fn what_was_never_answered_took_effect_or_not() {
        use Did::{Del, Get, Incr, LostDel, LostIncr, LostSet};
        const NEVER: u64 = u64::MAX;
        assert!(history(&[(LostSet(1), 0, NEVER), (Get(None), 1, 2), (Get(Some(1)), 3, 4)]));
        assert!(history(&[(LostIncr, 0, NEVER), (Incr(1), 1, 2), (Get(Some(1)), 3, 4)]));
        assert!(history(&[(LostIncr, 0, NEVER), (Incr(2), 1, 2), (LostDel, 1, NEVER)]));
        assert!(!history(&[(LostIncr, 0, NEVER), (Incr(3), 1, 2)]), "it counts once");
        assert!(!history(&[(LostIncr, 5, NEVER), (Incr(2), 1, 2)]), "not before it was sent");
        assert!(!history(&[(LostSet(1), 0, NEVER), (Del(true), 1, 2), (Get(Some(1)), 3, 4)]));
        let late = |get| history(&[(LostSet(1), 0, 5), (Get(None), 6, 7), (Get(get), 8, 9)]);
        assert!(late(None) && !late(Some(1)), "it takes no effect after its end");
    }

    #[test]
    fn impossible_histories_are_rejected() {
        use Did::{Del, Get, Incr, Set};
        let stale = [(Set(1), 0, 1), (Set(2), 2, 3), (Get(Some(1)), 4, 5)];
        assert!(!history(&stale), "a stale read after a finished write");
        let back = [(Set(1), 0, 9), (Get(Some(1)), 1, 2), (Get(None), 3, 4)];
        assert!(!history(&back), "a read that goes back in time");
        assert!(!history(&[(Incr(1), 0, 9), (Incr(1), 0, 9)]), "a lost update");
        assert!(!history(&[(Set(1), 0, 1), (Del(true), 2, 9), (Del(true), 2, 9)]), "deleted twice");
    }

    #[test]
    fn a_session_keeps_its_order() {
        use Did::{Get, Incr, LostIncr, LostSet, Set};
        const NEVER: u64 = u64::MAX;
        let pipelined = |one, two| sessions_history(&[(one, 0, 8, 1), (two, 0, 9, 1)]);
        assert!(pipelined(Incr(1), Incr(2)) && !pipelined(Incr(2), Incr(1)));
        let lost = |by, seen| {
            sessions_history(&[
                (Set(1), 0, 1, 0),
                (LostSet(5), 2, NEVER, 1),
                (LostIncr, 2, NEVER, by),
                (Get(Some(seen)), 3, 4, 0),
            ])
        };
        assert!(lost(1, 6) && lost(1, 5) && lost(1, 1));
        assert!(lost(2, 2) && !lost(1, 2), "the second one did not take effect alone");
    }

    #[test]
    fn many_lost_operations_have_an_answer() {
        use Did::{Get, LostDel, LostIncr, LostSet};
        let mut ops = Vec::new();
        for by in 0..4 {
            let set = LostSet(1000 * by as i64);
            ops.extend([LostIncr, set, LostDel, LostIncr].map(|did| Op {
                did,
                call: by,
                ret: u64::MAX,
                by,
            }));
        }
        ops.push(Op { did: Get(Some(7777)), call: 90, ret: 91, by: 100 });
        assert_eq!(verdict(&ops, 20_000), Some(false), "nobody wrote 7777");
    }
}
