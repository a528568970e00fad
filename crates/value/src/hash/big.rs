//! Big hashes: a tree of fields, and the times at which they expire.

use super::due::{Due, head_of, tail_of};
use super::small::pairs;
use crate::keyed::{Key, Keyed, Val};
use crate::records::{Record, Records};
use crate::string::IntText;
use base::Blob;

/// Fields in the order of their hash, with their values. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct Hash {
    pub(super) fields: Keyed,
    pub(super) due: Option<Box<Due>>,
}

// Operations of undo records: each is the inverse of the change that is logged, with its parts.

/// Field, value.
const SET: u8 = 0;
/// Field.
const REMOVE: u8 = 1;
/// Field, time (empty for none).
const EXPIRE: u8 = 2;
/// Until when fields are hidden, and how many are.
const HIDE: u8 = 3;

impl Hash {
    /// An empty hash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fields.
    #[inline]
    pub fn len(&self) -> u64 {
        self.fields.len() - self.hidden()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        let due = self.due.as_ref();
        self.fields.memory()
            + due.map_or(0, |due| size_of::<Due>() + due.fields.memory() + due.times.memory())
    }

    /// True if both are clones of one hash whose fields and values are unchanged since. Expiry
    /// times are not compared. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        self.fields.is_same(&other.fields) && self.hidden() == other.hidden()
    }

    /// As [`crate::Big::is_shared`].
    pub(crate) fn is_shared(&self, key: Key<'_>) -> bool {
        self.fields.is_shared(key)
    }

    /// As [`crate::Big::unshare`].
    pub(crate) fn unshare(&mut self, key: Key<'_>) {
        self.fields.unshare(key);
    }

    /// Prefetches what commands on these fields will read.
    pub(crate) fn warm(&self, keys: &[Key<'_>]) {
        self.fields.warm(keys);
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        let due = self.due.as_ref();
        self.fields.nodes() + due.map_or(0, |due| 1 + due.fields.nodes() + due.times.nodes())
    }

    /// As [`crate::Big::release_if_shared`].
    pub(crate) fn release_if_shared(&mut self) -> bool {
        self.due.is_none() && self.fields.release_if_shared()
    }

    /// As [`crate::Big::release_before`]. While fields are hidden a rank is no place among all
    /// fields, and nothing is given up.
    pub(crate) fn release_before(&mut self, rank: u64) -> usize {
        if self.hidden() == 0 { self.fields.release_before(rank) } else { 0 }
    }

    /// The value of a field. O(log n), as all below.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Val<'_>> {
        if self.hidden() > 0 && self.hides(field) {
            return None;
        }
        self.fields.get(Key::hashed(field))
    }

    /// Sets a field, which does not expire then; true if it was not there.
    #[inline]
    pub fn set(&mut self, field: &[u8], value: &[u8], log: &mut Records) -> bool {
        if self.due.is_some() {
            self.remove_hidden(field, log);
            self.set_expiry(field, None, log);
        }
        self.set_keep(field, value, log)
    }

    /// As [`Hash::set`], but when the field expires stays.
    #[inline]
    pub fn set_keep(&mut self, field: &[u8], value: &[u8], log: &mut Records) -> bool {
        if self.due.is_some() {
            self.remove_hidden(field, log);
        }
        self.fields.insert(Key::hashed(field), value, |old| log_write(field, old, log))
    }

    /// As [`Hash::set`], of a value in its final buffer.
    pub fn set_blob(&mut self, field: &[u8], value: Blob, log: &mut Records) -> bool {
        if self.due.is_some() {
            self.remove_hidden(field, log);
            self.set_expiry(field, None, log);
        }
        self.fields.insert_blob(Key::hashed(field), value, |old| log_write(field, old, log))
    }

    /// When a field expires, in milliseconds since the epoch.
    pub fn expiry(&self, field: &[u8]) -> Option<i64> {
        let due = self.due.as_ref()?;
        due.expiry(field).filter(|at| due.hidden == 0 || *at > due.until)
    }

    /// True if some fields have a time.
    pub fn expires(&self) -> bool {
        self.due.as_ref().is_some_and(|due| due.times.len() > due.hidden)
    }

    /// Changes when a field expires, which is there.
    pub fn set_expiry(&mut self, field: &[u8], at: Option<i64>, log: &mut Records) {
        let old = self.due.as_ref().and_then(|due| due.expiry(field));
        if old != at {
            if let Some(due) = &self.due
                && due.hidden == 1
                && old.is_some_and(|old| old <= due.until)
            {
                // Without a hidden field the undo could not know that this one was hidden.
                log.push(HIDE, &[&due.until.to_be_bytes(), &due.hidden.to_be_bytes()]);
            }
            let bytes = old.map(i64::to_be_bytes);
            log.push(EXPIRE, &[field, bytes.as_ref().map_or(&[][..], |bytes| bytes)]);
            self.put_expiry(field, at);
        }
    }

    fn put_expiry(&mut self, field: &[u8], at: Option<i64>) {
        let due = self.due.get_or_insert_default();
        if let Some(old) = due.expiry(field) {
            due.times.remove(Key { head: head_of(old), tail: &tail_of(old, field) }, |_| ());
            due.fields.remove(Key::hashed(field), |_| ());
            due.hidden -= u64::from(due.hidden > 0 && old <= due.until);
        }
        if let Some(at) = at {
            due.times.insert(Key { head: head_of(at), tail: &tail_of(at, field) }, b"", |_| ());
            due.fields.insert(Key::hashed(field), &at.to_be_bytes(), |_| ());
            due.hidden += u64::from(due.hidden > 0 && at <= due.until);
        }
        if due.fields.is_empty() {
            self.due = None;
        }
    }

    /// When the next field expires, a hidden one too.
    #[inline]
    pub fn next_due(&self) -> Option<i64> {
        self.due.as_ref().and_then(|due| Some(due.first()?.0))
    }

    /// Removes the next field if it was due by `now`, a hidden one too; false if none was.
    pub fn expire_next(&mut self, now: i64, log: &mut Records) -> bool {
        let first = self.due.as_ref().and_then(|due| due.first()).filter(|(at, _)| *at <= now);
        let field = first.map(|(_, field)| field.to_vec());
        field.is_some_and(|field| self.remove_any(&field, log))
    }

    /// True if all fields were due by `now`. O(log n).
    pub fn is_over(&self, now: i64) -> bool {
        self.due.as_ref().is_some_and(|due| due.count(now) == self.fields.len())
    }

    /// Hides all fields that were due by `now`, for [`Hash::expire_next`] to remove them later; how
    /// many were seen until now. O(log n).
    pub fn hide(&mut self, now: i64, log: &mut Records) -> u64 {
        let Some(due) = self.due.as_deref_mut() else { return 0 };
        let (until, hidden) = (due.until, due.hidden);
        let count = due.count(now);
        if count <= hidden {
            return 0;
        }
        log.push(HIDE, &[&until.to_be_bytes(), &hidden.to_be_bytes()]);
        (due.until, due.hidden) = (now, count);
        count - hidden
    }

    /// True if [`Hash::hide`] would hide anything. O(log n).
    pub fn has_to_hide(&self, now: i64) -> bool {
        self.due.as_ref().is_some_and(|due| due.count(now) > due.hidden)
    }

    /// The fields that [`Hash::hide`] would hide.
    pub fn to_hide(&self, now: i64) -> impl Iterator<Item = &[u8]> {
        let due = self.due.as_deref();
        let times = due.map(|due| {
            let count = due.count(now).saturating_sub(due.hidden);
            due.times.from_rank(due.hidden).take(count as usize)
        });
        times.into_iter().flatten().map(|item| &item.key.tail[4..])
    }

    /// The fields that are hidden, with their values and times.
    pub fn hidden_fields(&self) -> impl Iterator<Item = (&[u8], Val<'_>, i64)> {
        let due = self.due.as_deref().into_iter();
        due.flat_map(|due| {
            due.times.iter().take(due.hidden as usize).map(|item| {
                let field = &item.key.tail[4..];
                let value = self.fields.get(Key::hashed(field)).expect("a hidden field is there");
                (field, value, due.expiry(field).expect("it is hidden because of its time"))
            })
        })
    }

    /// Shows again what is hidden. O(1).
    pub fn unhide(&mut self, log: &mut Records) {
        let Some(due) = self.due.as_deref_mut().filter(|due| due.hidden > 0) else { return };
        log.push(HIDE, &[&due.until.to_be_bytes(), &due.hidden.to_be_bytes()]);
        due.hidden = 0;
    }

    /// Removes a field; false if it was not there.
    pub fn remove(&mut self, field: &[u8], log: &mut Records) -> bool {
        let was_hidden = self.remove_hidden(field, log);
        !was_hidden && self.remove_any(field, log)
    }

    /// Removes a field, hidden or not.
    pub(super) fn remove_any(&mut self, field: &[u8], log: &mut Records) -> bool {
        if self.due.is_some() {
            self.set_expiry(field, None, log);
        }
        self.fields.remove(Key::hashed(field), |old| log_old(field, old, log)).is_some()
    }

    /// The hash that a packed one becomes when it grows.
    pub fn of_packed(packed: &[u8]) -> Self {
        let (mut hash, mut log) = (Self::new(), Records::default());
        let (mut name, mut text) = (IntText::default(), IntText::default());
        for (field, value) in pairs(packed) {
            hash.set(field.bytes(&mut name), value.bytes(&mut text), &mut log);
            log.clear();
        }
        hash
    }

    /// Applies a record of the undo log.
    pub(crate) fn undo(&mut self, record: Record) {
        let number = |n: usize| record.parts[n].as_slice().try_into().expect("eight bytes");
        if record.op == HIDE {
            let due = self.due.as_deref_mut().expect("it hid fields");
            due.until = i64::from_be_bytes(number(0));
            due.hidden = u64::from_be_bytes(number(1));
        } else if record.op == EXPIRE {
            let at = record.parts[1].as_slice().try_into().ok().map(i64::from_be_bytes);
            self.put_expiry(&record.parts[0], at);
        } else if record.op == SET {
            let key = Key::hashed(&record.parts[0]);
            match record.blob {
                Some(blob) => self.fields.insert_blob(key, blob, |_| ()),
                None => self.fields.insert(key, &record.parts[1], |_| ()),
            }
        } else {
            self.fields.remove(Key::hashed(&record.parts[0]), |_| ());
        }
    }
}

/// Logs the inverse of a write; returns true if the field is new.
fn log_write(field: &[u8], old: Option<Val<'_>>, log: &mut Records) -> bool {
    match old {
        Some(old) => log_old(field, old, log),
        None => log.push(REMOVE, &[field]),
    }
    old.is_none()
}

/// Logs the value of a field which is removed or replaced: one outside its page by reference.
fn log_old(field: &[u8], old: Val<'_>, log: &mut Records) {
    match old {
        Val::Bytes(old) => log.push(SET, &[field, old]),
        Val::Blob(old) => log.push_blob(SET, &[field], old.clone()),
    }
}
