//! Every type: undo, and the order of sorted sets.

use super::*;
use crate::hash::Hash;
use crate::list::List;
use crate::seq::NewItem;
use crate::set::Set;
use crate::string::IntText;
use crate::zset::Zset;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn members() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..400u32).prop_map(|n| format!("m{n}").into_bytes()),
        (60..300usize).prop_map(|n| vec![b'm'; n]),
        (1000..1100usize).prop_map(|n| vec![b'm'; n]),
    ]
}

fn contents(big: &Big) -> Vec<Vec<u8>> {
    let mut scratch = IntText::default();
    match big {
        Big::List(list) => list.iter().map(|i| i.bytes(&mut scratch).to_vec()).collect(),
        Big::Set(set) => set.iter().map(<[u8]>::to_vec).collect(),
        Big::Hash(hash) => hash.iter().map(|(f, v)| [f, b"=", &*v.bytes()].concat()).collect(),
        Big::Zset(zset) => {
            zset.iter().map(|s| [s.member, &s.score.to_le_bytes()].concat()).collect()
        }
        Big::Stream(_) => unreachable!("it has tests of its own"),
    }
}

fn empty(kind: u8) -> Big {
    match kind {
        0 => Big::List(List::new()),
        1 => Big::Set(Set::new()),
        2 => Big::Zset(Zset::new()),
        _ => Big::Hash(Hash::new()),
    }
}

fn score(n: i32) -> f64 {
    match n {
        0 => -0.0,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        n => f64::from(n - 50) / 4.0,
    }
}

fn change(big: &mut Big, member: &[u8], n: i32, log: &mut Log) {
    if n % 61 == 0 {
        log.capture(big);
    }
    match big {
        Big::List(list) => {
            let at = |len: u64| n as u64 % len.max(1);
            match n % 4 {
                0 if !list.is_empty() => list.remove(at(list.len()), log, |_| ()),
                1 if !list.is_empty() => list.set(at(list.len()), NewItem::of(member), log),
                2 => list.push_front(member, log),
                _ => list.insert(at(list.len() + 1), member, log),
            }
        }
        Big::Set(set) if n % 3 == 0 => drop(set.remove(member, log)),
        Big::Set(set) => drop(set.add(member, log)),
        Big::Zset(zset) if n % 3 == 0 => drop(zset.remove(member, log)),
        Big::Zset(zset) => drop(zset.set(member, score(n), log)),
        Big::Hash(hash) if n % 3 == 0 => drop(hash.remove(member, log)),
        Big::Hash(hash) => drop(hash.set(member, &vec![b'v'; n as usize * 3], log)),
        Big::Stream(_) => unreachable!("it has tests of its own"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn undo_restores_every_type(
        kind in 0..4u8,
        before in proptest::collection::vec((members(), 1..100i32), 0..300),
        command in proptest::collection::vec((members(), 0..100i32), 0..300),
    ) {
        let (mut big, mut log) = (empty(kind), Log::default());
        for (member, n) in &before {
            change(&mut big, member, *n, &mut log);
        }
        log.clear();
        let (was, memory) = (contents(&big), big.len());
        // A lookup, of present and absent members, changes nothing and never fails.
        let members: Vec<_> =
            command.iter().map(|(member, n)| (&member[..], Some(score(*n)))).collect();
        members.chunks(crate::keyed::WARM_MAX + 3).for_each(|members| big.warm(members));
        for (member, n) in &command {
            change(&mut big, member, *n, &mut log);
        }
        while !log.is_empty() {
            big.undo(&mut log);
        }
        prop_assert_eq!(contents(&big), was);
        prop_assert_eq!(big.len(), memory);
    }

    #[test]
    fn a_sorted_set_is_ordered_and_ranked(
        adds in proptest::collection::vec((members(), 0..100i32), 0..500),
        asked in 0..100i32,
    ) {
        let (mut zset, mut log) = (Zset::new(), Log::default());
        let mut model: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
        for (member, n) in adds {
            let old = zset.set(&member, score(n), &mut log);
            prop_assert_eq!(old.map(f64::to_bits), model.insert(member, score(n)).map(f64::to_bits));
        }
        let mut sorted: Vec<_> = model.into_iter().collect();
        sorted.sort_by(|a, b| a.1.partial_cmp(&b.1).expect("numbers").then(a.0.cmp(&b.0)));
        let all: Vec<_> = zset.iter().map(|s| (s.member.to_vec(), s.score.to_bits())).collect();
        let expected: Vec<_> = sorted.iter().map(|(m, s)| (m.clone(), s.to_bits())).collect();
        prop_assert_eq!(&all, &expected);
        for (n, (member, _)) in sorted.iter().enumerate() {
            prop_assert_eq!(zset.rank(member), Some(n as u64));
        }
        let asked = score(asked);
        let below = sorted.iter().filter(|(_, s)| *s < asked).count() as u64;
        let up_to = sorted.iter().filter(|(_, s)| *s <= asked).count() as u64;
        prop_assert_eq!((zset.rank_of(asked, b""), zset.rank_above(asked)), (below, up_to));
    }
}
