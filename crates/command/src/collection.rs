//! What the commands on collections share: texts on their way out, large replies in steps, random
//! draws of ranks.

use std::collections::HashSet;
use std::ops::Range;

use base::Blob;
use keyspace::{Captured, EntryMut, Event, Key, Kind};
use resp::Reply;
use std::borrow::Cow;
use value::keyed::Val;
use value::packed::Elem;
use value::{Big, IntText, Log};

use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::tally::Tally;

/// Elements that a handler replies at once; more are replied in steps of as many.
pub const STEP_ELEMENTS: u64 = 1000;
/// Bytes of a reply that end a step.
const STEP_BYTES: usize = 64 * 1024;
/// A value of so many bytes is sent by reference.
pub const REFERENCE_MIN: usize = 16 * 1024;

/// An element wherever it is stored.
#[derive(Clone, Copy)]
pub enum Text<'a> {
    /// In a packed collection.
    Elem(Elem<'a>),
    /// In a page, or by itself.
    Val(Val<'a>),
}

impl<'a> Text<'a> {
    /// An element of these bytes.
    pub fn bytes_of(bytes: &'a [u8]) -> Self {
        Text::Val(Val::Bytes(bytes))
    }

    /// Its text; a number is written into `scratch` first.
    pub fn bytes<'b>(self, scratch: &'b mut IntText) -> Cow<'b, [u8]>
    where
        'a: 'b,
    {
        match self {
            Text::Elem(elem) => Cow::Borrowed(elem.bytes(scratch)),
            Text::Val(val) => val.bytes(),
        }
    }

    /// Length of its text.
    pub fn len(self) -> usize {
        match self {
            Text::Elem(elem) => elem.len(),
            Text::Val(val) => val.len(),
        }
    }

    /// Replies it, a long one by reference.
    #[inline]
    pub fn write(self, reply: &mut Reply<'_>) {
        match self {
            Text::Elem(Elem::Int(number)) => reply.bulk_int(number),
            Text::Elem(Elem::Bytes(bytes)) | Text::Val(Val::Bytes(bytes)) => reply.bulk(bytes),
            Text::Val(Val::Blob(blob)) => write_blob(reply, blob),
        }
    }
}

fn write_blob(reply: &mut Reply<'_>, blob: &Blob) {
    match blob.contiguous() {
        Some(bytes) if bytes.len() < REFERENCE_MIN => reply.bulk(bytes),
        _ => reply.bulk_blob(blob),
    }
}

/// Removes elements by their names from the hash or set in a key, and the key with the last one;
/// how many were there. `in_big` takes one out of a tree and says whether it was there, `in_packed`
/// finds the bytes of one.
#[inline]
#[allow(clippy::too_many_arguments)]
pub fn remove_named<'b>(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    kind: Kind,
    names: impl Iterator<Item = &'b [u8]>,
    in_big: impl Fn(&mut Big, &[u8], &mut Log) -> bool,
    in_packed: impl Fn(&[u8], Elem<'_>) -> Option<Range<usize>>,
) -> Result<i64, Error> {
    let Some(mut entry) = ctx.guard.entry_mut(event, ctx.db, key) else { return Ok(0) };
    if entry.kind() != kind {
        return Err(Error::WrongType);
    }
    let Some(packed) = entry.entry().packed() else {
        let (removed, left) = entry.edit(|big, log| {
            let removed = names.filter(|name| in_big(big, name, log)).count();
            (removed, big.len())
        });
        if left == 0 {
            entry.remove();
        }
        return Ok(removed as i64);
    };
    let mut rest = std::mem::take(&mut ctx.tally.scratch);
    rest.clear();
    rest.extend_from_slice(packed);
    let mut removed = 0;
    for name in names {
        if let Some(range) = in_packed(&rest, Elem::of(name)) {
            rest.drain(range);
            removed += 1;
        }
    }
    if removed > 0 {
        set_packed_or_remove(entry, &rest);
    }
    rest.clear();
    ctx.tally.scratch = rest;
    Ok(removed)
}

/// What is left of a packed collection; nothing is no key.
pub fn set_packed_or_remove(mut entry: EntryMut<'_, '_>, rest: &[u8]) {
    if rest.is_empty() {
        entry.remove();
    } else {
        let encoding = entry.entry().encoding();
        entry.set_packed(encoding, rest);
    }
}

/// What is shown of an element of a hash; a set has members only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Fields or members.
    Names,
    /// Values.
    Values,
    /// Field, value, field, value.
    Pairs,
    /// Pairs, each an array of its own.
    Arrays,
}

impl Show {
    /// Replies an element; a member is its own value.
    #[inline]
    pub fn write(self, reply: &mut Reply<'_>, name: Text<'_>, value: Text<'_>) {
        if self == Show::Arrays {
            reply.array(2);
        }
        if self != Show::Values {
            name.write(reply);
        }
        if self != Show::Names {
            value.write(reply);
        }
    }
}

/// The elements of a big set or hash from a rank on; false if `f` ended it.
pub fn walk(big: &Big, from: u64, mut f: impl FnMut(Text<'_>, Text<'_>) -> bool) {
    match big {
        Big::Hash(hash) => {
            let _ =
                hash.iter_at(from).all(|(name, value)| f(Text::bytes_of(name), Text::Val(value)));
        }
        Big::Set(set) => {
            let _ = set.iter_at(from).all(|name| f(Text::bytes_of(name), Text::bytes_of(name)));
        }
        Big::List(_) | Big::Zset(_) | Big::Stream(_) => unreachable!("a set or a hash"),
    }
}

/// Replies the element of a rank.
fn write_at(reply: &mut Reply<'_>, big: &Big, rank: u64, show: Show) {
    walk(big, rank, |name, value| {
        show.write(reply, name, value);
        false
    });
}

/// All elements of a value as it was, or some of them, after the reply's header.
pub struct Stream {
    pub value: Captured,
    pub show: Show,
    /// The next rank.
    pub rank: u64,
    pub choice: Choice,
}

/// Which elements a [`Stream`] replies.
#[derive(Clone, Copy)]
pub enum Choice {
    /// All.
    All,
    /// This many different ones, each combination equally likely.
    Distinct(u64),
    /// This many draws, each of any element.
    Draws(u64),
}

impl Choice {
    /// The choice that a client's count means for `len` elements, and how many are replied. A
    /// negative count means draws.
    pub fn of(wanted: i64, len: u64) -> (Self, u64) {
        let count = wanted.unsigned_abs();
        match wanted {
            ..0 => (Choice::Draws(count), count),
            _ if count >= len => (Choice::All, len),
            _ => (Choice::Distinct(count), count),
        }
    }
}

impl Resumable for Stream {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let Ctx { reply, tally, .. } = ctx;
        let len = self.value.len();
        let (start, mut seen) = (reply.position(), 0);
        let cost = if let Big::Hash(hash) = &*self.value { hash.cost() } else { 1 };
        let mut full = |reply: &Reply<'_>| {
            seen += cost;
            seen >= STEP_ELEMENTS || reply.written_since(start) >= STEP_BYTES
        };
        match &mut self.choice {
            Choice::All => {
                let (show, rank) = (self.show, &mut self.rank);
                walk(&self.value, *rank, |name, value| {
                    show.write(reply, name, value);
                    *rank += 1;
                    !full(reply)
                });
                Ok(Progress::complete_if(self.rank >= len))
            }
            Choice::Draws(left) => {
                while *left > 0 {
                    write_at(reply, &self.value, below(tally, len), self.show);
                    *left -= 1;
                    if full(reply) {
                        break;
                    }
                }
                Ok(Progress::complete_if(*left == 0))
            }
            Choice::Distinct(left) => {
                let (show, rank) = (self.show, &mut self.rank);
                walk(&self.value, *rank, |name, value| {
                    // As likely as there are more to take among those that are left.
                    if below(tally, len - *rank) < *left {
                        show.write(reply, name, value);
                        *left -= 1;
                    }
                    *rank += 1;
                    *left > 0 && !full(reply)
                });
                Ok(Progress::complete_if(*left == 0))
            }
        }
    }
}

/// A random number below a bound that is not 0.
#[inline]
pub fn below(tally: &mut Tally, bound: u64) -> u64 {
    ((u128::from(tally.draw()) * u128::from(bound)) >> 64) as u64
}

/// Different ranks below `len`, each choice of `count` as likely as any other: `count` is at most
/// `len`. O(count).
pub fn distinct(tally: &mut Tally, len: u64, count: u64) -> Vec<u64> {
    let mut taken = HashSet::with_capacity(count as usize);
    let mut ranks = Vec::with_capacity(count as usize);
    for last in len - count..len {
        let rank = below(tally, last + 1);
        let rank = if taken.insert(rank) { rank } else { last };
        taken.insert(rank);
        ranks.push(rank);
    }
    ranks
}

/// Replies a part of a captured value: a small part at once, a large one in steps.
pub fn reply_some(
    ctx: &mut Ctx<'_, '_>,
    value: Captured,
    show: Show,
    choice: Choice,
) -> Result<Done, Error> {
    match choice {
        Choice::Distinct(count) if count <= STEP_ELEMENTS => {
            for rank in distinct(ctx.tally, value.len(), count) {
                write_at(&mut ctx.reply, &value, rank, show);
            }
            Ok(Done::Replied)
        }
        _ => Done::begin(Stream { value, show, rank: 0, choice }, ctx),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ranks_are_distinct_and_uniform() {
        let mut tally = Tally::default();
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            let ranks = distinct(&mut tally, 10, 3);
            assert_eq!(ranks.iter().collect::<HashSet<_>>().len(), 3);
            for rank in ranks {
                counts[rank as usize] += 1;
            }
        }
        assert!(counts.iter().all(|n| (2700..3300).contains(n)), "{counts:?}");
    }
}
