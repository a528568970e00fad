//! Checks whether a history of transactions is strictly serializable. The method is that of
//! Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB
//! 2020), for append-only lists.
//!
//! Every appended element is unique, so a list that was read names the transactions that wrote it,
//! in their order. From that follow edges between transactions:
//!
//! | edge | from | to |
//! |---|---|---|
//! | ww | appended an element | appended the next one |
//! | wr | appended an element | read a list that ends in it |
//! | rw | read a list | appended the next element |
//! | rt | had its reply | was sent afterwards |
//!
//! A cycle is an anomaly, and its edges show which one. An element of a committed transaction that
//! no read contains comes after all reads of its list: a list never loses an element.

mod cycles;
#[cfg(test)]
mod serial;
mod versions;

pub use cycles::{Class, Edge};

/// A list.
pub type Key = usize;
/// An appended element; unique in a history.
pub type Element = u64;

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each variant says what its fields are
pub enum Op {
    /// Appended an element; with the list's length afterwards where the reply says it.
    Append { key: Key, element: Element, len: Option<usize> },
    /// Read the whole list.
    Read { key: Key, seen: Vec<Element> },
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its replies arrived.
    Committed,
    /// It was refused or discarded: no transaction may see it.
    Aborted,
    /// No reply arrived: it was executed completely or not at all.
    Unknown,
}

/// A transaction, or a single command.
#[derive(Clone, Debug)]
pub struct Txn {
    /// Its outcome.
    pub outcome: Outcome,
    /// When it was sent.
    pub call: u64,
    /// When its reply arrived.
    pub ret: u64,
    /// What it did, in order; the replies of a transaction that did not commit are not known.
    pub ops: Vec<Op>,
}

/// Why a history is not strictly serializable. Transactions are indices into the history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each variant says what its fields are
pub enum Anomaly {
    /// A read element was never appended to this list.
    Unwritten { key: Key, element: Element, reader: usize },
    /// A list contains an element twice.
    Duplicate { key: Key, element: Element, reader: usize },
    /// G1a: an element of an aborted transaction was read.
    AbortedRead { key: Key, element: Element, reader: usize },
    /// G1b: a list was read as it was in the middle of another transaction.
    IntermediateRead { key: Key, element: Element, reader: usize },
    /// A transaction did not see its own appends, or saw two states of one list.
    Internal { key: Key, txn: usize },
    /// Two reads of a list disagree in its order.
    Incompatible { key: Key, readers: (usize, usize) },
    /// The reply to an append gave a length that does not fit the element's place.
    WrongLen { key: Key, element: Element, txn: usize },
    /// Transactions that each come before the next, and the last before the first.
    Cycle { class: Class, realtime: bool, path: Vec<(usize, Edge)> },
}

/// All anomalies which are visible without the graph, and the strongest cycle.
pub fn check(history: &[Txn]) -> Vec<Anomaly> {
    let (versions, mut found) = versions::infer(history);
    found.extend(cycles::strongest(history, &versions));
    found
}

/// What was found, with the transactions of each cycle.
pub fn explain(history: &[Txn], found: &[Anomaly]) -> String {
    let mut lines = Vec::new();
    for anomaly in found {
        lines.push(format!("{anomaly:?}"));
        if let Anomaly::Cycle { path, .. } = anomaly {
            let shown =
                |(txn, edge): &(usize, Edge)| format!("  {txn}: {:?} {edge:?}", history[*txn]);
            lines.extend(path.iter().map(shown));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Op::{Append, Read};

    fn a(key: Key, element: Element) -> Op {
        Append { key, element, len: None }
    }

    fn r(key: Key, seen: &[Element]) -> Op {
        Read { key, seen: seen.to_vec() }
    }

    /// Transactions that are all concurrent.
    fn concurrent(txns: &[&[Op]]) -> Vec<Txn> {
        txns.iter()
            .map(|ops| Txn { outcome: Outcome::Committed, call: 0, ret: 9, ops: ops.to_vec() })
            .collect()
    }

    /// Each is sent after the reply of the one before it.
    fn in_turn(txns: &[&[Op]]) -> Vec<Txn> {
        let mut history = concurrent(txns);
        for (turn, txn) in history.iter_mut().enumerate() {
            (txn.call, txn.ret) = (2 * turn as u64, 2 * turn as u64 + 1);
        }
        history
    }

    /// The class of the only anomaly, and whether it needs real time.
    fn cycle(history: &[Txn]) -> (Class, bool) {
        match &check(history)[..] {
            [Anomaly::Cycle { class, realtime, path }] => {
                assert!(path.len() > 1, "{path:?}");
                (*class, *realtime)
            }
            other => panic!("one cycle is expected: {other:?}"),
        }
    }

    fn only(history: &[Txn]) -> Anomaly {
        let found = check(history);
        found.into_iter().next().expect("an anomaly")
    }

    #[test]
    fn clean_histories_pass() {
        assert_eq!(check(&[]), []);
        let x = in_turn(&[&[a(0, 1), a(0, 2)], &[r(0, &[1, 2]), a(0, 3), r(0, &[1, 2, 3])]]);
        assert_eq!(check(&x), []);
        // Concurrent ones may come in any order.
        let x = [r(0, &[]), r(1, &[7]), a(0, 1)];
        let x = concurrent(&[&x, &[a(1, 7)], &[r(0, &[1]), r(1, &[7])], &[r(1, &[])]]);
        assert_eq!(check(&x), []);
        // No transaction has read them.
        assert_eq!(check(&concurrent(&[&[a(0, 1), a(1, 2)], &[a(1, 3), a(0, 4)]])), []);
    }

    #[test]
    fn g0_writes_that_interleave() {
        let x: [&[Op]; 3] =
            [&[a(0, 1), a(1, 2)], &[a(0, 3), a(1, 4)], &[r(0, &[1, 3]), r(1, &[4, 2])]];
        assert_eq!(cycle(&concurrent(&x)), (Class::G0, false));
    }

    #[test]
    fn g1a_an_aborted_element_is_read() {
        let mut x = concurrent(&[&[a(0, 1)], &[r(0, &[1])]]);
        x[0].outcome = Outcome::Aborted;
        assert_eq!(check(&x), [Anomaly::AbortedRead { key: 0, element: 1, reader: 1 }]);
    }

    #[test]
    fn g1b_the_middle_of_a_transaction_is_read() {
        let x = concurrent(&[&[a(0, 1), a(0, 2)], &[r(0, &[1])], &[r(0, &[1, 2])]]);
        assert_eq!(only(&x), Anomaly::IntermediateRead { key: 0, element: 1, reader: 1 });
    }

    #[test]
    fn g1c_circular_information_flow() {
        let x = concurrent(&[&[a(0, 1), r(1, &[2])], &[a(1, 2), r(0, &[1])]]);
        assert_eq!(cycle(&x), (Class::G1c, false));
    }

    #[test]
    fn g_single_half_of_a_transaction_is_seen() {
        let torn: [&[Op]; 3] = [&[a(0, 1), a(1, 2)], &[r(0, &[1]), r(1, &[])], &[r(1, &[2])]];
        assert_eq!(cycle(&concurrent(&torn)), (Class::GSingle, false));
        // Also if no transaction ever reads the other half.
        assert_eq!(cycle(&concurrent(&torn[..2])), (Class::GSingle, false));
        // A lost update.
        let lost: [&[Op]; 3] = [&[r(0, &[]), a(0, 1)], &[r(0, &[]), a(0, 2)], &[r(0, &[1, 2])]];
        assert_eq!(cycle(&concurrent(&lost)), (Class::GSingle, false));
    }

    #[test]
    fn g2_write_skew() {
        let skew: [&[Op]; 3] =
            [&[r(0, &[]), a(1, 1)], &[r(1, &[]), a(0, 2)], &[r(0, &[2]), r(1, &[1])]];
        assert_eq!(cycle(&concurrent(&skew)), (Class::G2, false));
    }

    #[test]
    fn violations_of_real_time_order_are_found() {
        // Each of these would be valid if the transactions were concurrent.
        let order: [&[Op]; 3] = [&[a(0, 1)], &[a(0, 2)], &[r(0, &[2, 1])]];
        assert_eq!(check(&concurrent(&order)), []);
        assert_eq!(cycle(&in_turn(&order)), (Class::G0, true));
        let stale: [&[Op]; 3] = [&[a(0, 1)], &[r(0, &[])], &[r(0, &[1])]];
        assert_eq!(check(&concurrent(&stale)), []);
        assert_eq!(cycle(&in_turn(&stale)), (Class::GSingle, true));
        let early: [&[Op]; 2] = [&[r(0, &[1])], &[a(0, 1)]];
        assert_eq!(cycle(&in_turn(&early)), (Class::G1c, true));
        let lost: [&[Op]; 2] = [&[a(0, 1)], &[r(0, &[])]];
        assert_eq!(cycle(&in_turn(&lost)), (Class::GSingle, true));
        // A read goes back in time, and each writer is concurrent with both readers.
        let long_fork: [&[Op]; 4] =
            [&[a(0, 1)], &[a(1, 2)], &[r(0, &[1]), r(1, &[])], &[r(0, &[]), r(1, &[2])]];
        assert_eq!(cycle(&concurrent(&long_fork)), (Class::G2, false));
    }

    #[test]
    fn impossible_reads_are_found() {
        let x = concurrent(&[&[a(0, 1)], &[r(0, &[5])]]);
        assert_eq!(only(&x), Anomaly::Unwritten { key: 0, element: 5, reader: 1 });
        let x = concurrent(&[&[a(1, 1)], &[r(0, &[1])]]);
        assert_eq!(only(&x), Anomaly::Unwritten { key: 0, element: 1, reader: 1 });
        let x = concurrent(&[&[a(0, 1)], &[r(0, &[1, 1])]]);
        assert_eq!(only(&x), Anomaly::Duplicate { key: 0, element: 1, reader: 1 });
        let x = concurrent(&[&[a(0, 1)], &[a(0, 2)], &[r(0, &[1, 2])], &[r(0, &[2])]]);
        assert_eq!(only(&x), Anomaly::Incompatible { key: 0, readers: (2, 3) });
    }

    #[test]
    fn a_transaction_sees_itself_and_one_state() {
        for wrong in [
            &[a(0, 1), r(0, &[])][..],
            &[r(0, &[1]), a(0, 1)],
            &[r(0, &[]), r(0, &[8])],
            &[a(0, 1), r(0, &[1, 8])],
            &[a(0, 1), a(0, 2), r(0, &[2, 1])],
        ] {
            let found = check(&concurrent(&[wrong, &[a(0, 8)]]));
            assert!(found.contains(&Anomaly::Internal { key: 0, txn: 0 }), "{wrong:?}: {found:?}");
        }
    }

    #[test]
    fn lengths_fit_the_order() {
        let at = |element, len| [Append { key: 0, element, len: Some(len) }];
        let x = concurrent(&[&at(1, 1), &at(2, 2), &[r(0, &[1, 2])]]);
        assert_eq!(check(&x), []);
        let x = concurrent(&[&at(1, 1), &at(2, 1), &[r(0, &[1, 2])]]);
        assert_eq!(only(&x), Anomaly::WrongLen { key: 0, element: 2, txn: 1 });
        let x = concurrent(&[&at(1, 1), &at(2, 1), &[r(0, &[1])]]);
        assert_eq!(only(&x), Anomaly::WrongLen { key: 0, element: 2, txn: 1 });
    }

    #[test]
    fn a_transaction_without_a_reply_is_atomic() {
        let both = |reads: &[Op]| {
            let mut x = in_turn(&[&[a(0, 1), a(1, 2)], reads]);
            (x[0].outcome, x[0].ret) = (Outcome::Unknown, u64::MAX);
            x
        };
        assert_eq!(check(&both(&[r(0, &[1]), r(1, &[2])])), []);
        assert_eq!(check(&both(&[r(0, &[]), r(1, &[])])), []);
        assert_eq!(cycle(&both(&[r(0, &[1]), r(1, &[])])), (Class::GSingle, false));
    }
}
