//! Is a history linearizable? Each operation takes effect at one moment between its call and its
//! return; the checker (after Wing and Gong) looks for an order of such moments that explains every
//! reply.
//!
//! One key at a time: a history over many keys is linearizable if each key's part is. A key is a
//! number or absent, which covers registers and counters alike.

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
}

/// One operation of a history.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// The operation and its reply.
    pub did: Did,
    /// When it was sent.
    pub call: u64,
    /// When its reply arrived.
    pub ret: u64,
}

/// The value of a key; `None` if it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State(Option<i64>);

/// The state after `did`, if its reply is possible in `state`.
fn step(state: State, did: Did) -> Option<State> {
    match did {
        Did::Set(value) => Some(State(Some(value))),
        Did::Get(seen) => (seen == state.0).then_some(state),
        Did::Incr(result) => (state.0.unwrap_or(0) + 1 == result).then_some(State(Some(result))),
        Did::Del(was) => (was == state.0.is_some()).then_some(State(None)),
    }
}

/// True if some order within the calls and returns explains all replies of one key, absent at
/// first.
///
/// # Panics
/// If there are more than [`OPS_MAX`] operations.
pub fn is_linearizable(ops: &[Op]) -> bool {
    assert!(ops.len() <= OPS_MAX, "histories are bounded");
    let all = if ops.len() == OPS_MAX { u128::MAX } else { (1 << ops.len()) - 1 };
    let mut seen = HashSet::new();
    let mut todo = vec![(0u128, State(None))];
    while let Some((done, state)) = todo.pop() {
        if done == all {
            return true;
        }
        if !seen.insert((done, state)) {
            continue;
        }
        let open = || ops.iter().enumerate().filter(move |(i, _)| done >> i & 1 == 0);
        let first_return = open().map(|(_, op)| op.ret).min().unwrap_or(u64::MAX);
        for (i, op) in open().filter(|(_, op)| op.call <= first_return) {
            todo.extend(step(state, op.did).map(|next| (done | 1 << i, next)));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(ops: &[(Did, u64, u64)]) -> bool {
        let ops: Vec<Op> = ops.iter().map(|&(did, call, ret)| Op { did, call, ret }).collect();
        is_linearizable(&ops)
    }

    #[test]
    fn concurrent_operations_may_come_in_any_order() {
        use Did::{Del, Get, Incr, Set};
        assert!(history(&[(Set(1), 0, 9), (Get(None), 1, 2), (Get(Some(1)), 3, 4)]));
        assert!(history(&[(Incr(2), 0, 9), (Incr(1), 0, 9), (Incr(3), 0, 9)]));
        assert!(history(&[(Set(5), 0, 9), (Del(true), 0, 9), (Incr(6), 0, 9)]));
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
}
