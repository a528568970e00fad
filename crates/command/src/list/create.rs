//! A list under a key that does not exist.

use base::DbIndex;
use keyspace::{Event, Guard, Key};
use value::list::{List, NewItem};
use value::packed::Packed;
use value::{Big, Encoding, Kind};

use super::end::End;
use super::limit::{Limit, called};
use super::packed::{coming, compose, compose_back};
use crate::ctx::Settings;

/// Creates a list of at least one element under a key that does not exist.
#[allow(clippy::too_many_arguments)]
pub(crate) fn create<'t>(
    event: Event,
    guard: &mut Guard<'_>,
    db: DbIndex,
    key: &Key<'_>,
    settings: &Settings,
    scratch: &mut Vec<u8>,
    end: End,
    texts: impl DoubleEndedIterator<Item = NewItem<'t>> + Clone,
) -> u64 {
    let limit = Limit::of(settings);
    let (count, bytes) = coming(texts.clone());
    let called = called(limit.takes_packed(b"", count, bytes));
    if compose(scratch, b"", end, texts.clone()) {
        guard.insert_packed(event, db, key, Kind::List, called, scratch, None);
        return Packed::new(scratch).count() as u64;
    }
    let mut list = List::new();
    match end {
        End::Front => texts.rev().for_each(|new| list.build(new)),
        End::Back => texts.for_each(|new| list.build(new)),
    }
    let len = list.len();
    guard.insert_big(event, db, key, called, Big::List(list), None);
    len
}

/// As [`create`] with elements at the back, for an iterator of one direction.
pub(crate) fn create_of<'t>(
    event: Event,
    guard: &mut Guard<'_>,
    db: DbIndex,
    key: &Key<'_>,
    settings: &Settings,
    scratch: &mut Vec<u8>,
    texts: impl Iterator<Item = NewItem<'t>> + Clone,
) {
    let (limit, was) = (Limit::of(settings), Encoding::Listpack);
    if compose_back(scratch, b"", texts.clone()) {
        let called = limit.packed(scratch, was, true);
        return guard.insert_packed(event, db, key, Kind::List, called, scratch, None);
    }
    let mut list = List::new();
    texts.for_each(|new| list.build(new));
    let called = limit.big(&mut list, was, true);
    guard.insert_big(event, db, key, called, Big::List(list), None);
}
