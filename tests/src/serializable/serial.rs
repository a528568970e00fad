//! Random serial histories, which must pass, and the same with one mistake, which must not.

use super::{Anomaly, Element, Key, Op, Outcome, Txn, check};
use crate::rng::Rng;

const CLIENTS: usize = 4;
const KEYS: usize = 4;
const TXNS: usize = 60;

/// Random transactions of several clients, each carried out at one moment between its call and its
/// return; at last one reads everything.
fn history(rng: &mut Rng) -> Vec<Txn> {
    let mut lists: Vec<Vec<Element>> = vec![Vec::new(); KEYS];
    let (mut free_at, mut element) = ([0_u64; CLIENTS], 0);
    let mut history = Vec::new();
    for turn in 0..TXNS {
        let (client, now) = (rng.below(CLIENTS), 100 * (turn as u64 + 1));
        // A client which waits for a reply sends nothing.
        let Some(idle @ 1..) = now.checked_sub(free_at[client]) else { continue };
        let call = now - rng.below(idle as usize) as u64;
        let ret = now + 1 + rng.below(400) as u64;
        free_at[client] = ret;
        let outcome = match rng.below(10) {
            0 => Outcome::Aborted,
            1 => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let carried_out =
            outcome == Outcome::Committed || outcome == Outcome::Unknown && rng.chance(50);
        let mut ops = Vec::new();
        for _ in 0..=rng.below(4) {
            let key = rng.below(KEYS);
            let list = &mut lists[key];
            if rng.chance(50) {
                element += 1;
                if carried_out {
                    list.push(element);
                }
                let len = (outcome == Outcome::Committed).then_some(list.len());
                ops.push(Op::Append { key, element, len });
            } else if outcome == Outcome::Committed {
                ops.push(Op::Read { key, seen: list.clone() });
            }
        }
        history.push(Txn { outcome, call, ret, ops });
    }
    let ops = lists.into_iter().enumerate().map(|(key, seen)| Op::Read { key, seen }).collect();
    let end = 1000 * TXNS as u64;
    history.push(Txn { outcome: Outcome::Committed, call: end, ret: end + 1, ops });
    history
}

#[test]
fn serial_histories_pass() {
    for seed in 0..300 {
        let history = history(&mut Rng::new(seed));
        assert_eq!(check(&history), [], "seed {seed}: {history:#?}");
    }
}

/// All reads of the last transaction.
fn last_reads(history: &mut [Txn]) -> impl Iterator<Item = (Key, &mut Vec<Element>)> {
    history.last_mut().expect("it reads all").ops.iter_mut().map(|op| match op {
        Op::Read { key, seen } => (*key, seen),
        Op::Append { .. } => panic!("it only reads"),
    })
}

/// A list that at the end has so many elements.
fn list_of(history: &mut [Txn], rng: &mut Rng, len_min: usize) -> Option<Key> {
    let long: Vec<Key> =
        last_reads(history).filter(|(_, seen)| seen.len() >= len_min).map(|(key, _)| key).collect();
    (!long.is_empty()).then(|| long[rng.below(long.len())])
}

/// Changes what every transaction has seen of a list.
fn change_reads(history: &mut [Txn], list: Key, mut change: impl FnMut(&mut Vec<Element>)) {
    for op in history.iter_mut().flat_map(|txn| &mut txn.ops) {
        match op {
            Op::Read { key, seen } if *key == list => change(seen),
            // Otherwise the lengths alone would reveal the change.
            Op::Append { key, len, .. } if *key == list => *len = None,
            _ => {}
        }
    }
}

/// A mistake that no serial execution makes; false if this history has no place for it.
type Mistake = fn(&mut Vec<Txn>, &mut Rng) -> bool;

const MISTAKES: &[(&str, Mistake)] = &[
    ("an element that nobody appended", |history, rng| {
        let list = rng.below(KEYS);
        last_reads(history)
            .filter(|(key, _)| *key == list)
            .for_each(|(_, seen)| seen.push(999_999));
        true
    }),
    ("an element twice", |history, rng| {
        let Some(list) = list_of(history, rng, 1) else { return false };
        last_reads(history)
            .filter(|(key, _)| *key == list)
            .for_each(|(_, seen)| seen.push(seen[0]));
        true
    }),
    ("a stale read", |history, rng| {
        let Some(list) = list_of(history, rng, 1) else { return false };
        // Not of a transaction without a reply: it may take effect later.
        let last =
            last_reads(history).find(|(key, _)| *key == list).and_then(|(_, seen)| seen.pop());
        let wrote = |txn: &Txn| txn.ops.iter().any(|op| appends(op, last));
        history.iter().any(|txn| txn.outcome == Outcome::Committed && wrote(txn))
    }),
    ("a lost append", |history, rng| {
        let Some(list) = list_of(history, rng, 2) else { return false };
        let committed: Vec<Element> = history
            .iter()
            .filter(|txn| txn.outcome == Outcome::Committed)
            .flat_map(|txn| &txn.ops)
            .filter_map(|op| match op {
                Op::Append { key, element, .. } if *key == list => Some(*element),
                _ => None,
            })
            .collect();
        if committed.is_empty() {
            return false;
        }
        let lost = rng.pick(&committed);
        change_reads(history, list, |seen| seen.retain(|element| *element != lost));
        true
    }),
    ("an order that one read has otherwise", |history, rng| {
        let Some(list) = list_of(history, rng, 3) else { return false };
        let mut others = history
            .iter()
            .flat_map(|txn| &txn.ops)
            .filter(|op| matches!(op, Op::Read { key, seen } if *key == list && seen.len() >= 2));
        if others.nth(1).is_none() {
            return false;
        }
        last_reads(history).filter(|(key, _)| *key == list).for_each(|(_, seen)| seen.swap(0, 1));
        true
    }),
    ("an order against real time", |history, rng| {
        let Some(list) = list_of(history, rng, 2) else { return false };
        let seen = last_reads(history).find(|(key, _)| *key == list).map(|(_, seen)| seen.clone());
        let seen = seen.expect("every list is read");
        let (first, last) = (seen[0], seen[seen.len() - 1]);
        let by = |element| {
            let wrote = |txn: &&Txn| txn.ops.iter().any(|op| appends(op, Some(element)));
            history.iter().find(wrote).expect("it was appended")
        };
        let ok = by(first).outcome == Outcome::Committed && by(first).ret < by(last).call;
        change_reads(history, list, |seen| {
            for element in seen {
                *element = match *element {
                    of if of == first => last,
                    of if of == last => first,
                    of => of,
                };
            }
        });
        ok
    }),
    ("a transaction that is said to be aborted", |history, rng| {
        let Some(list) = list_of(history, rng, 1) else { return false };
        let first = last_reads(history).find(|(key, _)| *key == list).map(|(_, seen)| seen[0]);
        let wrote = |txn: &&mut Txn| txn.ops.iter().any(|op| appends(op, first));
        let txn = history.iter_mut().find(wrote).expect("it was appended");
        txn.outcome = Outcome::Aborted;
        txn.ops.retain(|op| matches!(op, Op::Append { .. }));
        true
    }),
    ("a wrong length", |history, rng| {
        let lens: Vec<&mut usize> = history
            .iter_mut()
            .flat_map(|txn| &mut txn.ops)
            .filter_map(|op| if let Op::Append { len, .. } = op { len.as_mut() } else { None })
            .collect();
        let chosen = rng.below(lens.len());
        let len = lens.into_iter().nth(chosen).expect("below their number");
        *len -= 1;
        true
    }),
];

fn appends(op: &Op, wanted: Option<Element>) -> bool {
    matches!(op, Op::Append { element, .. } if Some(*element) == wanted)
}

#[test]
fn one_mistake_is_found() {
    for (name, mistake) in MISTAKES {
        let mut made = 0;
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut history = history(&mut rng);
            if mistake(&mut history, &mut rng) {
                made += 1;
                let found: Vec<Anomaly> = check(&history);
                assert!(!found.is_empty(), "{name}, seed {seed}: {history:#?}");
            }
        }
        assert!(made > 100, "{name}: only {made} histories had a place for it");
    }
}
