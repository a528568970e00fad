//! Messages that become elements: one RPUSH of all of them.

use base::DbIndex;
use keyspace::{Guard, Key};
use value::list::NewItem;

use super::create::create_of;
use super::edit::Edit;
use crate::ctx::Settings;
use crate::error::Error;
use crate::events;
use crate::tally::Tally;

/// Appends payloads to the list of a key, which is made if it does not exist. The caller has locked
/// the slots that serving waiting clients needs ([`keyspace::Access::lock_to_fill`]).
///
/// # Errors
/// [`Error::WrongType`], with nothing changed.
pub fn pour<'m>(
    guard: &mut Guard<'_>,
    (db, key): (DbIndex, &Key<'_>),
    settings: &Settings,
    tally: &mut Tally,
    payloads: impl Iterator<Item = &'m [u8]> + Clone,
) -> Result<(), Error> {
    let elements = payloads.clone().map(NewItem::of);
    if elements.clone().next().is_none() {
        return Ok(());
    }
    match Edit::open(events::RPUSH, guard, db, key, settings, &mut tally.scratch)? {
        Some(mut edit) => edit.extend(elements),
        None => create_of(events::RPUSH, guard, db, key, settings, &mut tally.scratch, elements),
    }
    if guard.is_recording() {
        let words = 2 + payloads.clone().count();
        guard.record_with(db, words, |record| {
            record.word(b"RPUSH");
            record.word(key.bytes);
            payloads.for_each(|payload| record.word(payload));
        });
    }
    Ok(())
}
