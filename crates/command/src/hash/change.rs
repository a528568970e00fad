//! Setting and removing fields: HSET, HMSET, HSETNX, HDEL.

use keyspace::{Encoding, EntryMut, Event, Kind};
use resp::Args;
use value::hash::{Hash, Put, find, put};
use value::packed::{Elem, PACKED_MAX};
use value::{Big, Log};

use super::form::{encoding, packed_max};
use super::view::View;
use crate::collection::remove_named;
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::{Arity, Error};
use crate::events;

/// A field's new value: an argument, or a text of our own.
#[derive(Clone, Copy)]
pub(super) enum New<'a> {
    Arg(Args<'a>, usize),
    Text(&'a [u8]),
}

impl<'a> New<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            New::Arg(args, i) => args.get(i),
            New::Text(text) => text,
        }
    }

    #[inline]
    fn set(self, hash: &mut Hash, field: &[u8], keep: bool, log: &mut Log) -> bool {
        match self {
            _ if keep => hash.set_keep(field, self.bytes(), log),
            New::Arg(args, i) => match args.blob(i) {
                Some(blob) => hash.set_blob(field, blob.clone(), log),
                None => hash.set(field, args.get(i), log),
            },
            New::Text(text) => hash.set(field, text, log),
        }
    }
}

/// `HSET key field value [field value ...]`.
pub fn hset(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let added = set_args(ctx, "hset")?;
    ctx.reply.integer(added);
    Ok(Done::Replied)
}

/// `HMSET key field value [field value ...]`.
pub fn hmset(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    set_args(ctx, "hmset")?;
    ctx.reply.ok();
    Ok(Done::Replied)
}

fn set_args(ctx: &mut Ctx<'_, '_>, command: &'static str) -> Result<i64, Error> {
    if !ctx.args.len().is_multiple_of(2) {
        return Err(Arity { command }.into());
    }
    let (args, before) = (ctx.args, ctx.guard.counted());
    let pairs = (2..args.len()).step_by(2);
    let count = pairs.len() as u64;
    let pairs = pairs.map(move |i| (args.get(i), New::Arg(args, i + 1)));
    let added = set_pairs(events::HSET, ctx, pairs, false)?;
    ctx.guard.count_as(before, count);
    Ok(added)
}

/// `HSETNX key field value`.
pub fn hsetnx(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (key, field) = (ctx.key(1), ctx.arg(2));
    let entry = ctx.peek_kind(&key, Kind::Hash)?;
    let absent = entry.is_none_or(|entry| View::of(entry).get(field).is_none());
    if absent {
        set_pairs(events::HSET, ctx, std::iter::once((field, New::Arg(ctx.args, 3))), false)?;
    }
    ctx.reply.integer(absent.into());
    Ok(Done::Replied)
}

/// Sets fields of the hash in the first argument's key, which is made if need be; when they expire
/// goes unless it is to `keep`. How many are new.
#[inline]
pub(super) fn set_pairs<'b>(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    pairs: impl Iterator<Item = (&'b [u8], New<'b>)> + Clone,
    keep: bool,
) -> Result<i64, Error> {
    let key = ctx.key(1);
    let mut entry = ctx.guard.entry_mut(event, ctx.db, &key);
    if entry.as_ref().is_some_and(|entry| entry.kind() != Kind::Hash) {
        return Err(Error::WrongType);
    }
    if let Some(entry) = &mut entry
        && entry.entry().packed().is_none()
    {
        return Ok(set_in_big(entry, ctx.settings, pairs, keep));
    }
    let mut packed = std::mem::take(&mut ctx.tally.scratch);
    packed.clear();
    let mut was = Encoding::Listpack;
    if let Some(entry) = &entry {
        packed.extend_from_slice(entry.entry().packed().expect("it is not big"));
        was = entry.entry().encoding();
    }
    let Packing { mut added, encoding, is_full } =
        set_in_packed(&mut packed, ctx.settings, was, pairs.clone());
    if is_full {
        // The pairs that fitted are in it; setting them once more changes nothing.
        let (mut hash, mut log) = (Hash::of_packed(&packed), Log::default());
        for (field, new) in pairs {
            added += i64::from(new.set(&mut hash, field, keep, &mut log));
            log.clear();
        }
        // Its order is not that of a listpack.
        let encoding = Encoding::Hashtable;
        match entry {
            Some(mut entry) => entry.set_big(encoding, Big::Hash(hash)),
            None => ctx.guard.insert_big(event, ctx.db, &key, encoding, Big::Hash(hash), None),
        }
    } else {
        match entry {
            Some(mut entry) => entry.set_packed(encoding, &packed),
            None => {
                ctx.guard.insert_packed(event, ctx.db, &key, Kind::Hash, encoding, &packed, None);
            }
        }
    }
    packed.clear();
    ctx.tally.scratch = packed;
    Ok(added)
}

/// Sets fields of a hash that is not packed; how many are new.
#[inline]
fn set_in_big<'b>(
    entry: &mut EntryMut<'_, '_>,
    settings: &Settings,
    pairs: impl Iterator<Item = (&'b [u8], New<'b>)>,
    keep: bool,
) -> i64 {
    let (mut added, mut longest) = (0, 0);
    let fields = entry.edit(|big, log| {
        let hash = hash_mut(big);
        for (field, new) in pairs {
            longest = longest.max(field.len()).max(new.bytes().len());
            added += i64::from(new.set(hash, field, keep, log));
        }
        hash.len()
    });
    let was = entry.entry().encoding();
    if was != Encoding::Hashtable {
        entry.set_encoding(encoding(settings, was, fields, longest));
    }
    added
}

/// What became of a packed hash whose fields were set.
struct Packing {
    /// Fields that are new.
    added: i64,
    /// What the hash is called from then on.
    encoding: Encoding,
    /// Not all fit: those that did are set.
    is_full: bool,
}

/// Sets fields of a packed hash.
#[inline]
fn set_in_packed<'b>(
    packed: &mut Vec<u8>,
    settings: &Settings,
    was: Encoding,
    pairs: impl Iterator<Item = (&'b [u8], New<'b>)>,
) -> Packing {
    // As Redis 7.2: where all that come would be too many, were they new, it is a hashtable.
    let expected = pairs.size_hint().0 as u64;
    let (mut added, mut longest, mut fields) = (0, 0, 0);
    let mut is_full = false;
    for (field, new) in pairs {
        let value = new.bytes();
        longest = longest.max(field.len()).max(value.len());
        let bytes_max = packed_max(settings, was, expected, longest);
        match put(packed, Elem::of(field), Elem::of(value), bytes_max) {
            Put::New(before) => {
                added += 1;
                fields = before + 1;
            }
            Put::Replaced => {}
            Put::Full => {
                is_full = true;
                break;
            }
        }
    }
    let encoding = encoding(settings, was, fields.max(expected), longest);
    is_full |= encoding != Encoding::Listpack && packed.len() > PACKED_MAX;
    Packing { added, encoding, is_full }
}

/// `HDEL key field [field ...]`.
pub fn hdel(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (args, before) = (ctx.args, ctx.guard.counted());
    let removed = remove_fields(events::HDEL, ctx, (2..args.len()).map(move |i| args.get(i)))?;
    ctx.guard.count_as(before, removed as u64);
    ctx.reply.integer(removed);
    Ok(Done::Replied)
}

/// Removes fields of the hash in the first argument's key, and the key with the last one; how many
/// were there.
pub(super) fn remove_fields<'b>(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    fields: impl Iterator<Item = &'b [u8]>,
) -> Result<i64, Error> {
    let key = ctx.key(1);
    let in_big = |big: &mut Big, field: &[u8], log: &mut Log| hash_mut(big).remove(field, log);
    let in_packed = |packed: &[u8], field: Elem<'_>| {
        find(packed, field).ok().map(|found| found.start..found.end)
    };
    remove_named(event, ctx, &key, Kind::Hash, fields, in_big, in_packed)
}

/// The hash outside an entry that holds one.
pub(super) fn hash_mut(big: &mut Big) -> &mut Hash {
    match big {
        Big::Hash(hash) => hash,
        _ => unreachable!("the entry holds a hash"),
    }
}
