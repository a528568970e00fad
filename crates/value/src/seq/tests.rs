//! A sequence compared with a deque.
// A method path is not general enough over lifetimes.
#![allow(clippy::redundant_closure_for_method_calls)]

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Op {
    PushFront(Vec<u8>),
    PushBack(Vec<u8>),
    PopFront(usize),
    PopBack(usize),
    Insert(usize, Vec<u8>),
    Remove(usize),
    Set(usize, Vec<u8>),
    RemoveRange(usize, usize),
    Clone,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => proptest::collection::vec(any::<u8>(), 0..30),
        4 => any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        1 => (150..1200usize).prop_map(|n| vec![b'x'; n]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => text().prop_map(Op::PushFront),
        6 => text().prop_map(Op::PushBack),
        2 => (1..20usize).prop_map(Op::PopFront),
        2 => (1..20usize).prop_map(Op::PopBack),
        4 => (any::<usize>(), text()).prop_map(|(n, t)| Op::Insert(n, t)),
        2 => any::<usize>().prop_map(Op::Remove),
        2 => (any::<usize>(), text()).prop_map(|(n, t)| Op::Set(n, t)),
        1 => (any::<usize>(), 0..200usize).prop_map(|(n, c)| Op::RemoveRange(n, c)),
        1 => Just(Op::Clone),
    ]
}

fn check(seq: &Seq, model: &VecDeque<Vec<u8>>) {
    assert_eq!(seq.len(), model.len() as u64);
    assert!(seq.iter().map(Item::to_vec).eq(model.iter().cloned()));
    assert!(seq.iter_back_from(seq.len()).map(Item::to_vec).eq(model.iter().rev().cloned()));
    let middle = model.len() / 2;
    assert!(seq.iter_from(middle as u64).map(Item::to_vec).eq(model.iter().skip(middle).cloned()));
    for (n, text) in model.iter().enumerate().step_by(7) {
        assert_eq!(seq.get(n as u64).map(Item::to_vec).as_ref(), Some(text));
    }
    assert!(seq.get(seq.len()).is_none());
    let mut walk = seq.0.walk(Way::Rank(0));
    let mut sum = crate::tree::Leaf::memory(walk.leaf());
    while walk.forward() {
        sum += crate::tree::Leaf::memory(walk.leaf());
    }
    assert!(seq.memory() >= sum);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn it_behaves_like_a_deque_and_clones_do_not_change(ops in proptest::collection::vec(op(), 1..700)) {
        let (mut seq, mut model) = (Seq::new(), VecDeque::new());
        let mut kept: Vec<(Seq, VecDeque<Vec<u8>>)> = Vec::new();
        for op in ops {
            let len = model.len();
            match op {
                Op::PushFront(t) => { seq.insert(0, NewItem::of(&t)); model.push_front(t); }
                Op::PushBack(t) => { seq.insert(seq.len(), NewItem::of(&t)); model.push_back(t); }
                Op::PopFront(n) => for _ in 0..n.min(len) {
                    prop_assert_eq!(Some(seq.remove(0, |i| i.to_vec())), model.pop_front());
                },
                Op::PopBack(n) => for _ in 0..n.min(len) {
                    prop_assert_eq!(Some(seq.remove(seq.len() - 1, |i| i.to_vec())), model.pop_back());
                },
                Op::Insert(n, t) => {
                    let at = n % (len + 1);
                    seq.insert(at as u64, NewItem::of(&t));
                    model.insert(at, t);
                }
                Op::Remove(n) if len > 0 => {
                    let at = n % len;
                    prop_assert_eq!(Some(seq.remove(at as u64, |i| i.to_vec())), model.remove(at));
                }
                Op::Set(n, t) if len > 0 => {
                    let at = n % len;
                    let old = seq.set(at as u64, NewItem::of(&t), |i| i.to_vec());
                    prop_assert_eq!(old, std::mem::replace(&mut model[at], t));
                }
                Op::RemoveRange(n, c) if len > 0 => {
                    let at = n % len;
                    let count = c.min(len - at);
                    seq.remove_range(at as u64, count as u64);
                    model.drain(at..at + count);
                }
                Op::Clone if kept.len() < 4 => kept.push((seq.clone(), model.clone())),
                _ => {}
            }
        }
        kept.push((seq, model));
        for (seq, model) in &kept {
            check(seq, model);
        }
    }
}

#[test]
fn a_queue_fills_and_frees_its_pages() {
    let mut seq = Seq::new();
    for n in 0..200_000 {
        seq.insert(seq.len(), NewItem::of(format!("e{n:07}").as_bytes()));
    }
    let each = seq.memory() as f64 / 200_000.0;
    assert!(each < 9.9, "{each} bytes for 8");
    for _ in 0..100_000 {
        seq.remove(0, |_| ());
        seq.remove(seq.len() - 1, |_| ());
    }
    assert_eq!((seq.len(), seq.nodes()), (0, 1));
    assert!(seq.memory() < 1000, "{}", seq.memory());
    for n in 0..200_000 {
        seq.insert(0, NewItem::of(format!("e{n:07}").as_bytes()));
    }
    let each = seq.memory() as f64 / 200_000.0;
    assert!(each < 9.9, "{each} bytes for 8");
}
