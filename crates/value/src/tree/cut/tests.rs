//! Cuts compared with vectors. The counters of the tree are checked after each cut.

use crate::keyed::{Key, Keyed};
use crate::packed::Elem;
use crate::seq::{NewItem, Seq};
use proptest::prelude::*;

/// A share of all elements, as a fraction of 65536.
fn run(len: usize, from: u16, share: u16) -> (u64, u64) {
    let at = len * usize::from(from) / 65536;
    let count = (len - at) * usize::from(share) / 65536;
    (at as u64, count as u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_cut_removes_its_range_of_a_list(
        len in 1..60_000usize,
        cuts in proptest::collection::vec((any::<u16>(), any::<u16>(), any::<bool>()), 1..12),
    ) {
        let mut seq = Seq::new();
        let mut model: Vec<i64> = (0..len as i64).map(|n| n * 1_000_003).collect();
        for n in &model {
            seq.insert(seq.len(), NewItem::Near(Elem::Int(*n)));
        }
        seq.0.check();
        for (from, share, keep) in cuts {
            let (at, count) = run(model.len(), from, share);
            let was = (seq.clone(), model.len());
            if !keep {
                drop(was.0.clone());
            }
            seq.remove_range(at, count);
            model.drain(at as usize..(at + count) as usize);
            seq.0.check();
            prop_assert_eq!(was.0.len(), was.1 as u64);
            was.0.0.check();
            prop_assert_eq!(seq.is_same(&was.0), count == 0);
            drop(was);
            // The list stays usable at both ends and in the middle.
            for n in 0..40 {
                seq.insert(seq.len(), NewItem::Near(Elem::Int(n)));
                seq.insert(0, NewItem::Near(Elem::Int(-n)));
                model.push(n);
                model.insert(0, -n);
                let at = model.len() / 2;
                seq.remove(at as u64, |_| ());
                model.remove(at);
            }
            seq.0.check();
            let items: Vec<i64> =
                seq.iter().map(|i| String::from_utf8(i.to_vec()).expect("a number")
                    .parse().expect("a number")).collect();
            prop_assert_eq!(&items, &model);
        }
    }

    #[test]
    fn a_cut_removes_its_range_of_a_map(
        len in 1..40_000u32,
        cuts in proptest::collection::vec((any::<u16>(), any::<u16>()), 1..10),
        size in prop_oneof![3 => 0..20usize, 1 => 300..400usize],
    ) {
        let len = if size > 255 { len / 40 + 1 } else { len };
        let (mut map, value) = (Keyed::new(), vec![7; size]);
        // Many keys with one head, so that separators are long.
        let key = |n: u32| (n / 1000, format!("member:{:06}", n % 1000).into_bytes());
        for n in (0..len).rev() {
            let (head, tail) = key(n);
            map.insert(Key { head, tail: &tail }, &value, |_| ());
        }
        let mut model: Vec<u32> = (0..len).collect();
        for (from, share) in cuts {
            let was = map.clone();
            let (at, count) = run(model.len(), from, share);
            map.cut(at, count);
            let gone: Vec<u32> = model.drain(at as usize..(at + count) as usize).collect();
            map.0.check();
            was.0.check();
            let there: Vec<_> = map.iter().map(|i| (i.key.head, i.key.tail.to_vec())).collect();
            let expected: Vec<_> = model.iter().map(|n| key(*n)).collect();
            prop_assert_eq!(there, expected);
            // Every remaining key is found, and no other. Some removed keys are inserted again.
            for n in model.iter().step_by(37) {
                let (head, tail) = key(*n);
                prop_assert_eq!(map.get(Key { head, tail: &tail }).map(|v| v.bytes().len()), Some(size));
            }
            for n in gone.iter().step_by(501) {
                let (head, tail) = key(*n);
                let there = map.get(Key { head, tail: &tail }).is_some();
                prop_assert!(!there);
                map.insert(Key { head, tail: &tail }, &value, |_| ());
                let at = model.binary_search(n).expect_err("it was gone");
                model.insert(at, *n);
            }
            map.0.check();
        }
    }
}
