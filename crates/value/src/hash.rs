//! Big hashes.
//!
//! Fields that are due can be *hidden*, all at once and in O(log n): nobody sees them from then on,
//! and they are removed later, a few at a time. Ranks and lengths count what is seen.

mod hidden;

use crate::keyed::{Key, Keyed, Val};
use crate::log::{Log, Record};
use crate::packed::{Elem, Packed};
use base::Blob;
pub use hidden::Fields;

/// Fields in the order of their hash, with their values. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct Hash {
    fields: Keyed,
    due: Option<Box<Due>>,
}

/// When fields expire: only a hash that has such fields carries it.
#[derive(Clone, Debug, Default)]
struct Due {
    /// The time of a field, as eight bytes, in the order of the fields' hashes.
    fields: Keyed,
    /// The fields in the order of their times.
    times: Keyed,
    /// The fields that are due at this time are hidden.
    until: i64,
    /// So many: the first ones of `times`.
    hidden: u64,
}

const SET: u8 = 0;
const REMOVED: u8 = 1;
const DUE: u8 = 2;
const HIDDEN: u8 = 3;

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

    /// True if both are clones of one hash whose fields and values are unchanged since; when they
    /// expire is not looked at. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        self.fields.is_same(&other.fields) && self.hidden() == other.hidden()
    }

    pub(crate) fn warm(&self, keys: &[Key<'_>]) {
        self.fields.warm(keys);
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        let due = self.due.as_ref();
        self.fields.nodes() + due.map_or(0, |due| 1 + due.fields.nodes() + due.times.nodes())
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
    pub fn set(&mut self, field: &[u8], value: &[u8], log: &mut Log) -> bool {
        if self.due.is_some() {
            self.drop_hidden(field, log);
            self.set_expiry(field, None, log);
        }
        self.set_keep(field, value, log)
    }

    /// As [`Hash::set`], but when the field expires stays.
    #[inline]
    pub fn set_keep(&mut self, field: &[u8], value: &[u8], log: &mut Log) -> bool {
        if self.due.is_some() {
            self.drop_hidden(field, log);
        }
        self.fields.insert(Key::hashed(field), value, |old| logged(field, old, log))
    }

    /// As [`Hash::set`], of a value in its final buffer.
    pub fn set_blob(&mut self, field: &[u8], value: Blob, log: &mut Log) -> bool {
        if self.due.is_some() {
            self.drop_hidden(field, log);
            self.set_expiry(field, None, log);
        }
        self.fields.insert_blob(Key::hashed(field), value, |old| logged(field, old, log))
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
    pub fn set_expiry(&mut self, field: &[u8], at: Option<i64>, log: &mut Log) {
        let old = self.due.as_ref().and_then(|due| due.expiry(field));
        if old != at {
            if let Some(due) = &self.due
                && due.hidden == 1
                && old.is_some_and(|old| old <= due.until)
            {
                // The last hidden one may be: what is put back is not known to be hidden then.
                log.push(HIDDEN, &[&due.until.to_be_bytes(), &due.hidden.to_be_bytes()]);
            }
            let bytes = old.map(i64::to_be_bytes);
            log.push(DUE, &[field, bytes.as_ref().map_or(&[][..], |bytes| bytes)]);
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
    pub fn expire_next(&mut self, now: i64, log: &mut Log) -> bool {
        let first = self.due.as_ref().and_then(|due| due.first()).filter(|(at, _)| *at <= now);
        let field = first.map(|(_, field)| field.to_vec());
        field.is_some_and(|field| self.take(&field, log))
    }

    /// True if all fields were due by `now`. O(log n).
    pub fn is_over(&self, now: i64) -> bool {
        self.due.as_ref().is_some_and(|due| due.count(now) == self.fields.len())
    }

    /// Hides all fields that were due by `now`, for [`Hash::expire_next`] to remove them later; how
    /// many were seen until now. O(log n).
    pub fn hide(&mut self, now: i64, log: &mut Log) -> u64 {
        let Some(due) = self.due.as_deref_mut() else { return 0 };
        let (until, hidden) = (due.until, due.hidden);
        let count = due.count(now);
        if count <= hidden {
            return 0;
        }
        log.push(HIDDEN, &[&until.to_be_bytes(), &hidden.to_be_bytes()]);
        (due.until, due.hidden) = (now, count);
        count - hidden
    }

    /// True if [`Hash::hide`] would hide anything. O(log n).
    pub fn has_to_hide(&self, now: i64) -> bool {
        self.due.as_ref().is_some_and(|due| due.count(now) > due.hidden)
    }

    /// Shows again what is hidden. O(1).
    pub fn show(&mut self, log: &mut Log) {
        let Some(due) = self.due.as_deref_mut().filter(|due| due.hidden > 0) else { return };
        log.push(HIDDEN, &[&due.until.to_be_bytes(), &due.hidden.to_be_bytes()]);
        due.hidden = 0;
    }

    /// Removes a field; false if it was not there.
    pub fn remove(&mut self, field: &[u8], log: &mut Log) -> bool {
        let was_hidden = self.drop_hidden(field, log);
        !was_hidden && self.take(field, log)
    }

    /// Removes a field, hidden or not.
    fn take(&mut self, field: &[u8], log: &mut Log) -> bool {
        if self.due.is_some() {
            self.set_expiry(field, None, log);
        }
        let removed = |old: &[u8]| log.push(SET, &[field, old]);
        self.fields.remove(Key::hashed(field), removed).is_some()
    }

    /// The hash that a packed one becomes when it grows.
    pub fn of_packed(packed: &[u8]) -> Self {
        let (mut hash, mut log) = (Self::new(), Log::default());
        let (mut name, mut text) = (crate::IntText::default(), crate::IntText::default());
        for (field, value) in pairs(packed) {
            hash.set(field.bytes(&mut name), value.bytes(&mut text), &mut log);
            log.clear();
        }
        hash
    }

    pub(crate) fn undo(&mut self, record: &Record) {
        let number = |n: usize| record.parts[n].as_slice().try_into().expect("eight bytes");
        if record.op == HIDDEN {
            let due = self.due.as_deref_mut().expect("it hid fields");
            due.until = i64::from_be_bytes(number(0));
            due.hidden = u64::from_be_bytes(number(1));
        } else if record.op == DUE {
            let at = record.parts[1].as_slice().try_into().ok().map(i64::from_be_bytes);
            self.put_expiry(&record.parts[0], at);
        } else if record.op == SET {
            self.fields.insert(Key::hashed(&record.parts[0]), &record.parts[1], |_| ());
        } else {
            self.fields.remove(Key::hashed(&record.parts[0]), |_| ());
        }
    }
}

impl Due {
    /// The time of a field, hidden or not.
    fn expiry(&self, field: &[u8]) -> Option<i64> {
        let time = self.fields.get(Key::hashed(field))?;
        Some(i64::from_be_bytes(time.bytes().try_into().expect("a time has 8 bytes")))
    }

    /// Fields that were due by `now`.
    fn count(&self, now: i64) -> u64 {
        let Some(behind) = now.checked_add(1) else { return self.times.len() };
        self.times.rank(Key { head: head_of(behind), tail: &tail_of(behind, b"") }).0
    }

    /// The field that expires next, and when.
    fn first(&self) -> Option<(i64, &[u8])> {
        let key = self.times.iter().next()?.key;
        let (low, field) = key.tail.split_first_chunk().expect("the rest of a time");
        Some((i64::from(key.head) << 32 | i64::from(u32::from_be_bytes(*low)), field))
    }
}

/// A time is not negative: in the order of its bytes.
fn head_of(at: i64) -> u32 {
    (at >> 32) as u32
}

fn tail_of(at: i64, field: &[u8]) -> Vec<u8> {
    let mut tail = Vec::with_capacity(4 + field.len());
    tail.extend_from_slice(&(at as u32).to_be_bytes());
    tail.extend_from_slice(field);
    tail
}

/// Logs what undoes a write, and says whether the field is new.
fn logged(field: &[u8], old: Option<&[u8]>, log: &mut Log) -> bool {
    match old {
        Some(old) => log.push(SET, &[field, old]),
        None => log.push(REMOVED, &[field]),
    }
    old.is_none()
}

/// Where a field is in a packed hash: field, value, field, value and so on.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Where the field starts.
    pub start: usize,
    /// Where its value starts.
    pub at: usize,
    /// Where the next field starts.
    pub end: usize,
    /// The value.
    pub value: Elem<'a>,
}

/// Looks for a field in a packed hash; if it is not there, how many are. O(n).
#[inline]
pub fn find<'a>(packed: &'a [u8], field: Elem<'_>) -> Result<Found<'a>, u64> {
    let (mut start, mut fields) = (0, 0);
    while let Some((name, len)) = Elem::first(&packed[start..]) {
        let at = start + len;
        let (value, len) = Elem::first(&packed[at..]).expect("each field has a value");
        let end = at + len;
        if name == field {
            return Ok(Found { start, at, end, value });
        }
        start = end;
        fields += 1;
    }
    Err(fields)
}

/// The fields of a packed hash with their values, in the order in which they came.
pub fn pairs(packed: &[u8]) -> impl Iterator<Item = (Elem<'_>, Elem<'_>)> {
    let mut elements = Packed::new(packed).iter();
    std::iter::from_fn(move || elements.next().zip(elements.next()))
}

/// What setting a field did to a packed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was not there; so many were.
    New(u64),
    /// It was there.
    Replaced,
    /// Nothing: it has no room.
    Full,
}

/// Sets a field of a packed hash, which has at most `bytes_max` bytes then.
pub fn put(packed: &mut Vec<u8>, field: Elem<'_>, value: Elem<'_>, bytes_max: usize) -> Put {
    match find(packed, field) {
        Ok(Found { at, end, .. }) => {
            let (old, new) = (end - at, value.size());
            if packed.len() - old + new > bytes_max {
                return Put::Full;
            }
            let len = packed.len();
            value.push(packed);
            if old == new {
                packed.copy_within(len.., at);
                packed.truncate(len);
            } else {
                packed[at..].rotate_right(new);
                packed.drain(at + new..at + new + old);
            }
            Put::Replaced
        }
        Err(fields) => {
            if packed.len() + field.size() + value.size() > bytes_max {
                return Put::Full;
            }
            field.push(packed);
            value.push(packed);
            Put::New(fields)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    proptest! {
        #[test]
        fn fields_expire_in_order_and_come_back(
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

        /// What is hidden is not seen by anything, comes back with an undo, and goes for good a few
        /// at a time; what is set over it is new.
        #[test]
        fn hidden_fields_are_not_seen(
            len in 1..300_u16,
            times in proptest::collection::vec((0..300_u16, 1..100_i64), 1..400),
            until in prop::collection::vec(1..100_i64, 1..3),
            changes in proptest::collection::vec((0..300_u16, 0..5_u8), 0..30),
            is_earlier in any::<bool>(),
        ) {
            let name = |field: u16| field.to_string().into_bytes();
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
                // By a command that stands.
                log.clear();
                was = hash.iter().map(|(field, _)| field.to_vec()).collect();
            }
            let all = model.len();
            model.retain(|_, at| at.is_none_or(|at| at > now));
            prop_assert_eq!(hash.hidden() as usize, all - model.len());
            for (field, what) in changes {
                let field = name(field);
                let is_there = model.contains_key(&field);
                match what {
                    0 => prop_assert_eq!(hash.remove(&field, &mut log), model.remove(&field).is_some()),
                    1 => prop_assert_eq!(hash.set(&field, b"n", &mut log), model.insert(field, None).is_none()),
                    2 => {
                        prop_assert_eq!(hash.set_keep(&field, b"n", &mut log), !is_there);
                        model.entry(field).or_default();
                    }
                    3 if is_there => {
                        hash.set_expiry(&field, Some(now + 5), &mut log);
                        model.insert(field, Some(now + 5));
                    }
                    _ => drop(hash.expire_next(now, &mut log)),
                }
                prop_assert_eq!(hash.len() as usize, model.len());
            }
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
            let mut scanned: Vec<Vec<u8>> =
                hash.iter_from(0).filter(|(_, value)| value.is_some()).map(|(field, _)| field.to_vec()).collect();
            scanned.sort_unstable();
            prop_assert_eq!(scanned, expected);
            prop_assert_eq!((0..300).filter(|field| hash.get(&name(*field)).is_some()).count(), model.len());
            prop_assert_eq!(hash.expires(), model.values().any(Option::is_some));
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
        fn a_packed_hash_is_a_map(sets in proptest::collection::vec((0..12_u8, text()), 0..60)) {
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
                prop_assert_eq!(big.get(name).expect("it was set").bytes(), value);
            }
        }
    }
}
