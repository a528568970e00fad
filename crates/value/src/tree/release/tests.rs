//! Trees that are given up from their beginning beside changes of a clone, against vectors.

use crate::keyed::{Key, Keyed};
use crate::packed::Elem;
use crate::seq::{Item, NewItem, Seq};
use base::shared::take_copied;
use proptest::prelude::*;

fn map_of(len: u32) -> Keyed {
    let mut map = Keyed::new();
    for n in 0..len {
        insert(&mut map, n, 1);
    }
    map
}

fn insert(map: &mut Keyed, n: u32, value: u8) {
    map.insert(Key { head: n, tail: b"a member of some length" }, &[value; 40], |_| ());
}

/// The keys and values from a rank on.
fn rest_of(map: &Keyed, rank: u64) -> Vec<(u32, u8)> {
    map.from_rank(rank).map(|item| (item.key.head, item.value.bytes()[0])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 24 }))]

    /// What is not given up stays; the other clone is not touched; and what is freed had been
    /// copied. A copy has less room to spare than the original, so it may be a third smaller.
    #[test]
    fn the_rest_of_a_map_is_read(
        len in prop_oneof![0..200_u32, 0..60_000_u32],
        steps in prop::collection::vec((any::<u16>(), any::<u16>(), any::<bool>()), 1..40),
    ) {
        let mut live = map_of(len);
        let mut model: Vec<(u32, u8)> = (0..len).map(|n| (n, 1)).collect();
        let (mut old, expected) = (live.clone(), model.clone());
        let (mut position, mut freed, mut copied) = (0, 0, 0);
        _ = take_copied();
        for (seed, step, inserts) in steps {
            for n in 0..20 {
                let n = (u64::from(seed) * 65_537 * (n + 1) % u64::from(len + 9)) as u32;
                if inserts {
                    insert(&mut live, n, 2);
                    if n < len { model[n as usize].1 = 2 }
                } else if n < len {
                    insert(&mut live, n, 3);
                    model[n as usize].1 = 3;
                }
            }
            copied += take_copied() as usize;
            position += u64::from(len) * u64::from(step) / 65_536 / 8;
            position = position.min(u64::from(len));
            freed += old.release_before(position);
            prop_assert_eq!(take_copied(), 0, "no writer has copied");
            prop_assert_eq!(old.len(), u64::from(len));
            prop_assert!(rest_of(&old, position) == expected[position as usize..]);
            live.0.check();
            let there = rest_of(&live, 0);
            prop_assert!(there.iter().filter(|(n, _)| *n < len).eq(&model));
            prop_assert!(freed <= copied * 3 / 2, "{freed} of {copied}");
        }
        old.release_before(u64::from(len));
        for n in (0..len).step_by(97) {
            insert(&mut live, n, 9);
        }
        prop_assert_eq!(take_copied(), 0, "nothing is shared any more");
        live.0.check();
    }

    #[test]
    fn the_rest_of_a_list_is_read(
        len in 0..90_000_i64,
        steps in prop::collection::vec((any::<u16>(), any::<u16>()), 1..30),
    ) {
        let mut live = Seq::new();
        let model: Vec<i64> = (0..len).map(|n| n * 1_000_003).collect();
        for n in &model {
            live.insert(live.len(), NewItem::Near(Elem::Int(*n)));
        }
        let (mut old, mut position) = (live.clone(), 0);
        for (at, step) in steps {
            if !live.is_empty() {
                live.remove(live.len() * u64::from(at) / 65_536, |_| ());
                live.insert(0, NewItem::Near(Elem::Int(-1)));
            }
            position = (position + len as u64 * u64::from(step) / 65_536 / 8).min(len as u64);
            old.release_before(position);
            let rest = old.iter_from(position).map(Item::to_vec);
            let expected = model[position as usize..].iter().map(|n| n.to_string().into_bytes());
            prop_assert!(rest.eq(expected));
            live.0.check();
        }
        drop(old);
        live.0.check();
    }
}

/// A writer changes in place what is given up, and copies the rest.
#[test]
fn what_is_given_up_is_not_copied_again() {
    given_up(|live| insert(live, 59_999, 2)); // the root is copied
    given_up(|_| ());
}

fn given_up(first: impl FnOnce(&mut Keyed)) {
    let mut live = map_of(60_000);
    let mut old = live.clone();
    first(&mut live);
    old.release_before(40_000);
    _ = take_copied();
    for n in (0..30_000).step_by(11) {
        insert(&mut live, n, 3);
    }
    let copied = take_copied();
    assert!(copied < 16_384, "{copied}: a root and a node above leaves at most");
    insert(&mut live, 41_000, 3);
    assert!(take_copied() > 0);
    assert!(rest_of(&old, 40_000).iter().take(19_999).all(|(_, value)| *value == 1));
    live.0.check();
}
