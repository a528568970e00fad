//! Hashes compared with maps of the standard library.

use super::*;
use crate::log::Log;
use crate::packed::Elem;
use crate::packed::PACKED_MAX;
use proptest::prelude::*;
use std::collections::HashMap;

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (-99_999..99_999i64).prop_map(|n| n.to_string().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..3),
        proptest::collection::vec(any::<u8>(), 190..700),
    ]
}

type Model = HashMap<Vec<u8>, Option<i64>>;

fn name(field: u16) -> Vec<u8> {
    field.to_string().into_bytes()
}

/// Changes a field of the hash and of the model.
fn change(
    hash: &mut Hash,
    model: &mut Model,
    field: &[u8],
    what: u8,
    now: i64,
    log: &mut Log,
) -> Result<(), TestCaseError> {
    let is_there = model.contains_key(field);
    match what {
        0 => prop_assert_eq!(hash.remove(field, log), model.remove(field).is_some()),
        1 => {
            let is_new = model.insert(field.to_vec(), None).is_none();
            prop_assert_eq!(hash.set(field, b"n", log), is_new);
        }
        2 => {
            prop_assert_eq!(hash.set_keep(field, b"n", log), !is_there);
            model.entry(field.to_vec()).or_default();
        }
        3 if is_there => {
            hash.set_expiry(field, Some(now + 5), log);
            model.insert(field.to_vec(), Some(now + 5));
        }
        _ => drop(hash.expire_next(now, log)),
    }
    prop_assert_eq!(hash.len() as usize, model.len());
    Ok(())
}

/// The visible fields are those of the model, however they are read.
fn check_visible(hash: &Hash, model: &Model) -> Result<(), TestCaseError> {
    let mut seen: Vec<Vec<u8>> = hash.iter().map(|(field, _)| field.to_vec()).collect();
    for (rank, field) in seen.iter().enumerate() {
        prop_assert_eq!(hash.at(rank as u64).map(|(field, _)| field), Some(&field[..]));
        prop_assert_eq!(hash.expiry(field), model[field]);
        prop_assert!(hash.get(field).is_some());
    }
    prop_assert!(hash.at(hash.len()).is_none());
    seen.sort_unstable();
    let mut expected: Vec<Vec<u8>> = model.keys().cloned().collect();
    expected.sort_unstable();
    prop_assert_eq!(&seen, &expected);
    let scanned = hash.iter_from(0).filter(|(_, value)| value.is_some());
    let mut scanned: Vec<Vec<u8>> = scanned.map(|(field, _)| field.to_vec()).collect();
    scanned.sort_unstable();
    prop_assert_eq!(scanned, expected);
    let found = (0..300).filter(|field| hash.get(&name(*field)).is_some()).count();
    prop_assert_eq!(found, model.len());
    prop_assert_eq!(hash.expires(), model.values().any(Option::is_some));
    Ok(())
}

proptest! {
    #[test]
    fn fields_expire_in_order_and_are_restored_by_undo(
        times in proptest::collection::vec((0..30_u8, prop::option::of(1..i64::MAX)), 1..80),
        until in 1..i64::MAX,
    ) {
        let (mut hash, mut log, mut model) = (Hash::new(), Log::default(), HashMap::new());
        for field in 0..30_u8 {
            hash.set(&[field], b"v", &mut log);
        }
        log.clear();
        for (field, at) in times {
            hash.set_expiry(&[field], at, &mut log);
            model.remove(&field);
            model.extend(at.map(|at| (field, at)));
        }
        prop_assert_eq!(hash.next_due(), model.values().min().copied());
        log.clear();
        let was = hash.clone();
        let mut expired = 0;
        prop_assert_eq!(hash.is_over(until), model.len() == 30 && model.values().all(|at| *at <= until));
        while hash.expire_next(until, &mut log) {
            expired += 1;
        }
        prop_assert_eq!(expired, model.values().filter(|at| **at <= until).count());
        prop_assert_eq!(hash.len(), 30 - expired as u64);
        let mut big = crate::Big::Hash(hash);
        while !log.is_empty() {
            big.undo(&mut log);
        }
        let crate::Big::Hash(hash) = big else { unreachable!("it is a hash") };
        for field in 0..30_u8 {
            prop_assert_eq!(hash.expiry(&[field]), model.get(&field).copied());
            prop_assert!(hash.get(&[field]).is_some());
        }
        prop_assert_eq!(hash.next_due(), was.next_due());
        prop_assert_eq!(hash.due.is_some(), !model.is_empty());
    }

    /// No function shows a hidden field. An undo restores it, it is removed a few at a time, and a
    /// field which is set in its place is new.
    #[test]
    fn hidden_fields_are_invisible(
        len in 1..300_u16,
        times in proptest::collection::vec((0..300_u16, 1..100_i64), 1..400),
        until in prop::collection::vec(1..100_i64, 1..3),
        changes in proptest::collection::vec((0..300_u16, 0..5_u8), 0..30),
        is_earlier in any::<bool>(),
    ) {
        let (mut hash, mut log, mut model) = (Hash::new(), Log::default(), HashMap::new());
        for field in 0..len {
            hash.set(&name(field), b"v", &mut log);
            model.insert(name(field), None);
        }
        for (field, at) in times {
            hash.set_expiry(&name(field % len), Some(at), &mut log);
            model.insert(name(field % len), Some(at));
        }
        log.clear();
        let now = *until.iter().max().expect("one");
        let mut was: Vec<Vec<u8>> = hash.iter().map(|(field, _)| field.to_vec()).collect();
        for until in until {
            hash.hide(until, &mut log);
        }
        if is_earlier {
            // A command which has been committed hid them.
            log.clear();
            was = hash.iter().map(|(field, _)| field.to_vec()).collect();
        }
        let all = model.len();
        model.retain(|_, at| at.is_none_or(|at| at > now));
        prop_assert_eq!(hash.hidden() as usize, all - model.len());
        for (field, what) in changes {
            change(&mut hash, &mut model, &name(field), what, now, &mut log)?;
        }
        check_visible(&hash, &model)?;
        let mut big = crate::Big::Hash(hash.clone());
        while !log.is_empty() {
            big.undo(&mut log);
        }
        let crate::Big::Hash(before) = big else { unreachable!("it is a hash") };
        prop_assert!(before.iter().map(|(field, _)| field).eq(was.iter().map(|field| &field[..])));
        while hash.expire_next(now, &mut log) {}
        prop_assert_eq!((hash.hidden(), hash.len() as usize), (0, model.len()));
        prop_assert_eq!(hash.next_due(), model.values().copied().flatten().min());
    }

    #[test]
    fn a_packed_hash_behaves_like_a_map(sets in proptest::collection::vec((0..12_u8, text()), 0..60)) {
        let (mut packed, mut model) = (Vec::new(), HashMap::new());
        for (name, value) in sets {
            let (name, fields) = (vec![name], model.len() as u64);
            let known = model.contains_key(&name);
            match put(&mut packed, Elem::of(&name), Elem::of(&value), PACKED_MAX) {
                Put::New(before) => prop_assert!(!known && before == fields),
                Put::Replaced => prop_assert!(known),
                Put::Full => {
                    prop_assert!(packed.len() + value.len() + 8 > PACKED_MAX / 2);
                    continue;
                }
            }
            model.insert(name, value);
            prop_assert!(packed.len() <= PACKED_MAX);
            prop_assert_eq!(pairs(&packed).count(), model.len());
            for (name, value) in &model {
                let found = find(&packed, Elem::of(name)).expect("it was set");
                prop_assert_eq!(&found.value.to_vec(), value);
            }
        }
        let big = Hash::of_packed(&packed);
        prop_assert_eq!(big.len(), model.len() as u64);
        for (name, value) in &model {
            prop_assert_eq!(&*big.get(name).expect("it was set").bytes(), value);
        }
    }
}
