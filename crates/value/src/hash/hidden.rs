//! Reading a hash with hidden fields: the visible ones, in an order of their own.
//!
//! As long as fields are hidden, ranks count first the other fields that expire, in the order of
//! their times, and then those that do not, in the order of their hashes. So a rank is found in
//! O(log^2 n), however many fields are hidden.

use super::big::Hash;
use super::due::Due;
use crate::keyed::{Iter, Key, Val};
use crate::records::Records;

/// Hidden fields that an iterator passes one by one; then it searches for the next visible field.
const PASSED_MAX: u32 = 32;
/// The highest [`Hash::cost`], less 2.
const COST_MAX: u64 = 64;

impl Hash {
    /// Hidden fields. O(1).
    #[inline]
    pub fn hidden(&self) -> u64 {
        self.due.as_ref().map_or(0, |due| due.hidden)
    }

    /// The cost of reading an element, relative to a hash without hidden fields: at least 1.
    pub fn cost(&self) -> u64 {
        let hidden = self.hidden();
        if hidden == 0 { 1 } else { 2 + (hidden / self.len().max(1)).min(COST_MAX) }
    }

    /// Whether this field is a hidden one.
    #[cold]
    pub(super) fn hides(&self, field: &[u8]) -> bool {
        let Some(due) = &self.due else { return false };
        due.hidden > 0 && due.expiry(field).is_some_and(|at| at <= due.until)
    }

    /// Removes a field if it is a hidden one.
    pub(super) fn remove_hidden(&mut self, field: &[u8], log: &mut Records) -> bool {
        self.hidden() > 0 && self.hides(field) && self.remove_any(field, log)
    }

    /// The field at a rank.
    pub fn at(&self, rank: u64) -> Option<(&[u8], Val<'_>)> {
        self.iter_at(rank).next()
    }

    /// All fields.
    pub fn iter(&self) -> Fields<'_> {
        self.iter_at(0)
    }

    /// The fields whose hash is at least this, in hash order. Hidden ones are included, without a
    /// value.
    pub fn iter_from(&self, hash: u32) -> impl Iterator<Item = (&[u8], Option<Val<'_>>)> {
        let fields = self.fields.from_key(Key { head: hash, tail: b"" });
        let hides = self.hidden() > 0;
        fields.map(move |item| {
            let is_hidden = hides && self.hides(item.key.tail);
            (item.key.tail, (!is_hidden).then_some(item.value))
        })
    }

    /// The fields from this rank on. To begin is O(log n), or O(log^2 n) if some are hidden.
    #[inline]
    pub fn iter_at(&self, rank: u64) -> Fields<'_> {
        match &self.due {
            Some(due) if due.hidden > 0 => self.visible_at(due, rank),
            _ => Fields { fields: self.fields.from_rank(rank), hiding: None },
        }
    }

    #[cold]
    fn visible_at<'a>(&'a self, due: &'a Due, rank: u64) -> Fields<'a> {
        let later = due.times.len() - due.hidden;
        let place = rank.checked_sub(later).map_or(0, |nth| self.nth_lasting(due, nth));
        let mut expiring = match self.fields.at(place) {
            Some(item) => due.fields.from_key(item.key),
            None => due.fields.from_rank(due.fields.len()),
        };
        let hiding = Hiding {
            hash: self,
            due,
            times: (rank < later).then(|| due.times.from_rank(due.hidden + rank)),
            next: expiring.next().map(|item| item.key),
            expiring,
            rank,
            passed: 0,
        };
        Fields { fields: self.fields.from_rank(place), hiding: Some(Box::new(hiding)) }
    }

    /// The place in hash order of the `nth` field that does not expire, counted from 0.
    fn nth_lasting(&self, due: &Due, nth: u64) -> u64 {
        let (mut low, mut high) = (nth, self.fields.len());
        while low < high {
            let middle = low.midpoint(high);
            let item = self.fields.at(middle).expect("a place among the fields");
            let (before, is_one) = due.fields.rank(item.key);
            // Fields that do not expire, up to this one.
            if middle + 1 - before - u64::from(is_one) > nth {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// Fields of a hash with their values.
#[derive(Clone)]
pub struct Fields<'a> {
    fields: Iter<'a>,
    hiding: Option<Box<Hiding<'a>>>,
}

/// What is needed to pass the hidden ones.
#[derive(Clone)]
struct Hiding<'a> {
    hash: &'a Hash,
    due: &'a Due,
    /// Visible fields that expire: the first ranks.
    times: Option<Iter<'a>>,
    /// The next field that expires, hidden or not, in hash order; and those behind it.
    next: Option<Key<'a>>,
    expiring: Iter<'a>,
    /// The rank of the next visible field.
    rank: u64,
    /// Hidden fields that were passed since the last visible one.
    passed: u32,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Val<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.hiding.is_some() {
            return self.next_visible();
        }
        self.fields.next().map(|item| (item.key.tail, item.value))
    }
}

impl<'a> Fields<'a> {
    #[cold]
    fn next_visible(&mut self) -> Option<(&'a [u8], Val<'a>)> {
        let hiding = self.hiding.as_deref_mut().expect("some are hidden");
        if let Some(item) = hiding.times.as_mut().and_then(Iterator::next) {
            hiding.rank += 1;
            let field = &item.key.tail[4..];
            let value = hiding.hash.fields.get(Key::hashed(field));
            return Some((field, value.expect("a field that expires is there")));
        }
        hiding.times = None;
        loop {
            let item = self.fields.next()?;
            while hiding.next.is_some_and(|key| key < item.key) {
                hiding.next = hiding.expiring.next().map(|item| item.key);
            }
            if hiding.next != Some(item.key) {
                (hiding.rank, hiding.passed) = (hiding.rank + 1, 0);
                return Some((item.key.tail, item.value));
            }
            hiding.passed += 1;
            if hiding.passed > PASSED_MAX {
                *self = hiding.hash.visible_at(hiding.due, hiding.rank);
                return self.next();
            }
        }
    }
}
