//! Adding and removing members: SADD, SREM, SMOVE.

use keyspace::{Encoding, Event, Key, Kind};
use value::packed::Elem;
use value::set::{Set, find, insert_at};
use value::{Big, Log};

use super::form::{Form, packed_max, tree_encoding};
use super::view::View;
use crate::collection::remove_named;
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::Error;
use crate::events;

/// `SADD key member [member ...]`.
pub fn sadd(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (key, args, before) = (ctx.key(1), ctx.args, ctx.guard.counted());
    let added = add(events::SADD, ctx, &key, (2..args.len()).map(move |i| args.get(i)))?;
    ctx.guard.count_as(before, added as u64);
    ctx.reply.integer(added);
    Ok(Done::Replied)
}

/// Adds members to the set in a key, which is made if need be; how many are new.
#[inline]
pub(super) fn add<'b>(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    members: impl Iterator<Item = &'b [u8]> + Clone,
) -> Result<i64, Error> {
    let settings = ctx.settings;
    let mut entry = ctx.guard.entry_mut(event, ctx.db, key);
    if entry.as_ref().is_some_and(|entry| entry.kind() != Kind::Set) {
        return Err(Error::WrongType);
    }
    let mut form = entry.as_ref().map_or(Form::NEW, |e| Form { encoding: e.entry().encoding() });
    let (first, count) = (members.clone().next().unwrap_or_default(), members.size_hint().0);
    form.expect(settings, entry.is_none(), first, count as u64);
    if let Some(entry) = &mut entry
        && entry.entry().packed().is_none()
    {
        let added = entry.edit(|big, log| add_big(set_mut(big), log, members, settings, &mut form));
        entry.set_encoding(form.encoding);
        return Ok(added);
    }
    let mut packed = std::mem::take(&mut ctx.tally.scratch);
    packed.clear();
    if let Some(entry) = &entry {
        packed.extend_from_slice(entry.entry().packed().expect("it is not big"));
    }
    let (mut added, is_full) = add_packed(&mut packed, members.clone(), settings, &mut form);
    if is_full {
        let (mut set, mut log) = (Set::of_packed(&packed), Log::default());
        added += add_big(&mut set, &mut log, members, settings, &mut form);
        match entry {
            Some(mut entry) => entry.set_big(form.encoding, Big::Set(set)),
            None => ctx.guard.insert_big(event, ctx.db, key, form.encoding, Big::Set(set), None),
        }
    } else if added > 0 {
        match entry {
            Some(mut entry) => entry.set_packed(form.encoding, &packed),
            None => {
                ctx.guard.insert_packed(
                    event,
                    ctx.db,
                    key,
                    Kind::Set,
                    form.encoding,
                    &packed,
                    None,
                );
            }
        }
    } else if let Some(mut entry) = entry {
        entry.set_encoding(form.encoding);
    }
    packed.clear();
    ctx.tally.scratch = packed;
    Ok(added)
}

/// Adds members to a packed set until one does not fit; how many are new, and whether that was so.
#[inline]
fn add_packed<'b>(
    packed: &mut Vec<u8>,
    members: impl Iterator<Item = &'b [u8]>,
    settings: &Settings,
    form: &mut Form,
) -> (i64, bool) {
    let mut added = 0;
    for member in members {
        let elem = Elem::of(member);
        let Err((at, count)) = find(packed, elem, form.encoding == Encoding::Intset) else {
            continue;
        };
        let mut grown = *form;
        grown.add(settings, elem, count + 1);
        if packed.len() + elem.size() > packed_max(grown.encoding) {
            return (added, true);
        }
        *form = grown;
        let at = if form.encoding == Encoding::Intset { at } else { packed.len() };
        insert_at(packed, at, elem);
        added += 1;
    }
    (added, false)
}

fn add_big<'b>(
    set: &mut Set,
    log: &mut Log,
    members: impl Iterator<Item = &'b [u8]>,
    settings: &Settings,
    form: &mut Form,
) -> i64 {
    let mut added = 0;
    for member in members {
        if set.add(member, log) {
            added += 1;
            if form.encoding != Encoding::Hashtable {
                form.add(settings, Elem::of(member), set.len());
            }
        }
    }
    form.encoding = tree_encoding(form.encoding);
    added
}

/// `SREM key member [member ...]`.
pub fn srem(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (key, args, before) = (ctx.key(1), ctx.args, ctx.guard.counted());
    let removed = remove(events::SREM, ctx, &key, (2..args.len()).map(move |i| args.get(i)))?;
    ctx.guard.count_as(before, removed as u64);
    ctx.reply.integer(removed);
    Ok(Done::Replied)
}

/// Removes members of the set in a key, and the key with the last one; how many were there.
pub(super) fn remove<'b>(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    members: impl Iterator<Item = &'b [u8]>,
) -> Result<i64, Error> {
    let in_big = |big: &mut Big, member: &[u8], log: &mut Log| set_mut(big).remove(member, log);
    let in_packed = |packed: &[u8], member: Elem<'_>| {
        find(packed, member, false).ok().map(|(from, to)| from..to)
    };
    remove_named(event, ctx, key, Kind::Set, members, in_big, in_packed)
}

/// `SMOVE source destination member`.
pub fn smove(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (from, to, member) = (ctx.key(1), ctx.key(2), ctx.arg(3));
    let source = ctx.peek_kind(&from, Kind::Set);
    let is_member = match source? {
        None => {
            ctx.reply.integer(0);
            return Ok(Done::Replied);
        }
        Some(entry) => View::of(entry).contains(member),
    };
    ctx.peek_kind(&to, Kind::Set)?;
    if is_member && from.bytes != to.bytes {
        remove(events::SREM, ctx, &from, std::iter::once(member))?;
        add(events::SADD, ctx, &to, std::iter::once(member))?;
    }
    ctx.reply.integer(is_member.into());
    Ok(Done::Replied)
}

/// The set outside an entry that holds one.
pub(super) fn set_mut(big: &mut Big) -> &mut Set {
    match big {
        Big::Set(set) => set,
        _ => unreachable!("the entry holds a set"),
    }
}
