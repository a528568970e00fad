//! An ordered map compared with the one of the standard library.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Model = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

fn check(map: &Keyed, model: &Model) {
    assert_eq!(map.len(), model.len() as u64);
    let all: Vec<_> = map.iter().map(|i| (i.key.head, i.key.tail.to_vec())).collect();
    let expected: Vec<_> = model.keys().cloned().collect();
    assert_eq!(all, expected);
    assert!(map.iter().map(|i| i.value.bytes()).eq(model.values().map(|v| &v[..])));
    let back: Vec<_> =
        map.before_rank(map.len()).map(|i| (i.key.head, i.key.tail.to_vec())).collect();
    assert!(back.iter().rev().eq(&expected));
}

/// Memory as a walk over all pages computes it.
fn walked(map: &Keyed) -> usize {
    let mut walk = map.0.walk(Way::Rank(0));
    let mut sum = crate::tree::Leaf::memory(walk.leaf());
    while walk.forward() {
        sum += crate::tree::Leaf::memory(walk.leaf());
    }
    sum
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, Vec<u8>, usize),
    Remove(usize),
    RemoveKey(u32, Vec<u8>),
    Clone,
}

fn op() -> impl Strategy<Value = Op> {
    let tail = || proptest::collection::vec(0..3u8, 0..12);
    let size = prop_oneof![8 => 0..40usize, 2 => 100..260usize, 1 => 200..3000usize];
    prop_oneof![
        8 => (0..6u32, tail(), size).prop_map(|(h, t, v)| Op::Insert(h, t, v)),
        3 => any::<usize>().prop_map(Op::Remove),
        1 => (0..6u32, tail()).prop_map(|(h, t)| Op::RemoveKey(h, t)),
        1 => Just(Op::Clone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn it_behaves_like_a_sorted_map_and_clones_do_not_change(ops in proptest::collection::vec(op(), 1..900)) {
        let (mut map, mut model) = (Keyed::new(), Model::new());
        let mut kept: Vec<(Keyed, Model)> = Vec::new();
        for (n, op) in ops.into_iter().enumerate() {
            match op {
                Op::Insert(head, tail, size) => {
                    let value = vec![n as u8; size];
                    let key = Key { head, tail: &tail };
                    let old = map.insert(key, &value, |old| old.map(|old| old.bytes().into_owned()));
                    prop_assert_eq!(old, model.insert((head, tail), value));
                }
                Op::Remove(nth) if !model.is_empty() => {
                    let (head, tail) = model.keys().nth(nth % model.len()).cloned().expect("one");
                    let old = map.remove(Key { head, tail: &tail }, |old| old.bytes().into_owned());
                    prop_assert_eq!(old, model.remove(&(head, tail)));
                }
                Op::RemoveKey(head, tail) => {
                    let old = map.remove(Key { head, tail: &tail }, |old| old.bytes().into_owned());
                    prop_assert_eq!(old, model.remove(&(head, tail)));
                }
                Op::Clone if kept.len() < 4 => kept.push((map.clone(), model.clone())),
                _ => {}
            }
        }
        kept.push((map, model));
        for (map, model) in &kept {
            check(map, model);
            for (rank, ((head, tail), value)) in model.iter().enumerate() {
                let key = Key { head: *head, tail };
                prop_assert_eq!(map.get(key).map(|v| v.bytes().to_vec()), Some(value.clone()));
                prop_assert_eq!(map.rank(key), (rank as u64, true));
                prop_assert_eq!(map.at(rank as u64).map(|i| i.key), Some(key));
            }
            prop_assert!(map.at(model.len() as u64).is_none());
            prop_assert!(map.memory() >= walked(map));
        }
    }
}

#[test]
fn a_large_map_grows_and_is_emptied() {
    let mut map = Keyed::new();
    let member = |n: u32| format!("member:{n}").into_bytes();
    for n in 0..100_000 {
        assert!(map.insert(Key::hashed(&member(n)), &n.to_le_bytes(), |old| old.is_none()));
    }
    let kept = map.clone();
    for n in 0..100_000 {
        let text = member(n);
        let key = Key::hashed(&text);
        assert_eq!(map.get(key).map(Val::short), Some(&n.to_le_bytes()[..]));
        let (rank, found) = map.rank(key);
        assert!(found);
        assert_eq!(map.at(rank).map(|i| i.key), Some(key));
    }
    let nodes = map.nodes();
    for n in 0..100_000 {
        assert!(map.remove(Key::hashed(&member(n)), |_| ()).is_some());
    }
    assert_eq!((map.len(), map.nodes()), (0, 1));
    let leaf = size_of::<Page>() + 8; // plus its element count
    assert_eq!(map.memory(), walked(&map) + leaf, "what came and went left no trace in the sum");
    assert!(map.memory() < 400, "{}", map.memory());
    assert_eq!((kept.len(), kept.iter().count(), kept.nodes()), (100_000, 100_000, nodes));
}

#[test]
fn keys_inserted_in_order_fill_their_pages() {
    let mut map = Keyed::new();
    for n in 0..100_000u32 {
        map.insert(Key { head: n, tail: b"12345678" }, b"", |_| ());
    }
    let each = map.memory() as f64 / 100_000.0;
    assert!(each < 18.5, "{each} bytes for 16");
}

/// Like the score tree of a sorted set whose members change their scores all the time.
#[test]
fn replaced_entries_of_one_size_reuse_memory() {
    let mut map = Keyed::new();
    let mut draws = base::prng::Prng::new(5);
    let mut heads: Vec<u32> = (0..20_000).map(|_| draws.draw() as u32).collect();
    let tail = |n: usize| (n as u64).to_be_bytes();
    for (n, head) in heads.iter().enumerate() {
        map.insert(Key { head: *head, tail: &tail(n) }, b"12345678", |_| ());
    }
    let mut move_all = |map: &mut Keyed| {
        for _ in 0..100_000 {
            let n = draws.below(20_000) as usize;
            assert!(map.remove(Key { head: heads[n], tail: &tail(n) }, |_| ()).is_some());
            heads[n] = draws.draw() as u32;
            assert!(
                map.insert(Key { head: heads[n], tail: &tail(n) }, b"12345678", |o| o.is_none())
            );
        }
    };
    move_all(&mut map);
    let memory = map.memory();
    move_all(&mut map);
    assert!(map.memory() < memory + memory / 20, "{memory} bytes became {}", map.memory());
    assert!(map.memory() < 20_000 * 36, "{} bytes", map.memory());
    assert_eq!((map.len(), map.iter().count()), (20_000, 20_000));
    assert!(map.iter().zip(map.iter().skip(1)).all(|(a, b)| a.key < b.key));
}
