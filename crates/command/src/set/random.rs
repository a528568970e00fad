//! SPOP and SRANDMEMBER.

use keyspace::{EntryMut, Kind};
use resp::{Args, Reply};
use value::packed::Packed;
use value::set::Set;
use value::{Big, IntText};

use super::change::set_mut;
use super::pop::Popping;
use super::view::View;
use crate::collection::{Choice, Show, Text, below, distinct, reply_some, set_packed_or_remove};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{count, integer};
use crate::prepare::{self, Found, Preparation, Sources};
use crate::record;
use crate::tally::Tally;

/// `SRANDMEMBER key [count]`.
pub fn srandmember(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if ctx.args.len() == 2 {
        return one(ctx);
    }
    if ctx.args.len() > 3 {
        return Err(Error::Syntax);
    }
    let wanted = count(ctx.arg(2))?;
    let keyspace = ctx.guard.keyspace();
    let entry = ctx.read_kind(1, Kind::Set)?.filter(|_| wanted != 0);
    let Some(entry) = entry else {
        ctx.reply.array(0);
        return Ok(Done::Replied);
    };
    let captured = match View::of(entry) {
        View::Big(big, _) => keyspace.capture(big),
        View::Packed(packed, _) if wanted > 0 && wanted as u64 >= View::of(entry).len() => {
            let packed = packed.to_vec();
            let members = Packed::new(&packed);
            ctx.reply.array(members.count());
            members.iter().for_each(|member| Text::Elem(member).write(&mut ctx.reply));
            return Ok(Done::Replied);
        }
        View::Packed(packed, _) => keyspace.capture(&Big::Set(Set::of_packed(packed))),
    };
    let (choice, shown) = Choice::of(wanted, captured.len());
    ctx.reply.array(shown as usize);
    reply_some(ctx, captured, Show::Names, choice)
}

fn one(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let entry = ctx.guard.look_up(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    let Some(entry) = entry else {
        ctx.reply.null();
        return Ok(Done::Replied);
    };
    if entry.kind() != Kind::Set {
        return Err(Error::WrongType);
    }
    let view = View::of(entry);
    let rank = below(ctx.tally, view.len());
    match view {
        View::Packed(packed, _) => {
            let member = Packed::new(packed).iter().nth(rank as usize);
            Text::Elem(member.expect("a rank below the length")).write(&mut ctx.reply);
        }
        View::Big(_, set) => ctx.reply.bulk(set.at(rank).expect("a rank below the length")),
    }
    Ok(Done::Replied)
}

/// `SPOP key [count]`.
pub fn spop(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let wanted = pop_count(ctx.args)?;
    let tries = match prepare::found::<Popping>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let key = ctx.key(1);
    let keyspace = ctx.guard.keyspace();
    if let Some(wanted) = wanted.filter(|wanted| *wanted > ctx.settings.at_once_elements) {
        let entry = ctx.peek_kind(&key, Kind::Set)?;
        let big = entry.and_then(|entry| entry.big()).filter(|big| wanted < big.len());
        if let Some(big) = big.map(|big| keyspace.capture(big)) {
            let sources = Sources::of(ctx, 1..2, tries);
            return prepare::begin(ctx, Popping::new(keyspace, &big, sources, wanted));
        }
    }
    let (before, is_recording) = (ctx.guard.counted(), ctx.guard.is_recording());
    let entry = ctx.guard.entry_mut(events::SPOP, ctx.db, &key);
    if entry.as_ref().is_some_and(|entry| entry.kind() != Kind::Set) {
        return Err(Error::WrongType);
    }
    let Some(entry) = entry.filter(|_| wanted != Some(0)) else {
        match wanted {
            None => ctx.reply.null(),
            Some(_) => ctx.reply.set(0),
        }
        return Ok(Done::Replied);
    };
    let len = View::of(entry.entry()).len();
    let popped = wanted.unwrap_or(1).min(len);
    if wanted.is_some() {
        ctx.reply.set(popped as usize);
    }
    if let Some(big) = entry.entry().big().filter(|_| popped == len) {
        let captured = keyspace.capture(big);
        entry.remove();
        record::removal(ctx, key.bytes);
        ctx.guard.count_as(before, popped);
        return reply_some(ctx, captured, Show::Names, Choice::All);
    }
    let mut gone = is_recording.then(Vec::new);
    if entry.entry().packed().is_some() {
        let ranks = distinct(ctx.tally, len, popped);
        pop_packed(entry, ctx.tally, &mut ctx.reply, ranks, &mut gone);
    } else {
        pop_big(entry, ctx.tally, &mut ctx.reply, popped, &mut gone);
    }
    match gone {
        None => {}
        Some(_) if popped == len => record::removal(ctx, key.bytes),
        Some(gone) => record::in_parts(ctx, &[b"SREM", key.bytes], gone.iter().map(|one| &**one)),
    }
    ctx.guard.count_as(before, popped);
    Ok(Done::Replied)
}

/// How many members SPOP is to pop; `None` without a count.
fn pop_count(args: Args<'_>) -> Result<Option<u64>, Error> {
    match args.len() {
        2 => Ok(None),
        3 => {
            let wanted = integer(args.get(2)).map_err(|_| Error::NotPositive)?;
            Ok(Some(u64::try_from(wanted).map_err(|_| Error::NotPositive)?))
        }
        _ => Err(Error::Syntax),
    }
}

/// Members that went, for the record.
type Gone = Option<Vec<Box<[u8]>>>;

/// Replies the members of these ranks of a packed set and removes them.
fn pop_packed(
    entry: EntryMut<'_, '_>,
    tally: &mut Tally,
    reply: &mut Reply<'_>,
    mut ranks: Vec<u64>,
    gone: &mut Gone,
) {
    let packed = entry.entry().packed().expect("the caller has checked it");
    ranks.sort_unstable();
    let mut ranks = ranks.into_iter().peekable();
    let mut remaining = std::mem::take(&mut tally.scratch);
    remaining.clear();
    for (rank, member) in (0..).zip(Packed::new(packed)) {
        if ranks.next_if_eq(&rank).is_some() {
            Text::Elem(member).write(reply);
            if let Some(gone) = gone {
                gone.push(member.bytes(&mut IntText::default()).into());
            }
        } else {
            member.push(&mut remaining);
        }
    }
    set_packed_or_remove(entry, &remaining);
    remaining.clear();
    tally.scratch = remaining;
}

/// Replies members of a big set, drawn at random, and removes them; not all.
fn pop_big(
    mut entry: EntryMut<'_, '_>,
    tally: &mut Tally,
    reply: &mut Reply<'_>,
    popped: u64,
    gone: &mut Gone,
) {
    entry.edit(|big, log| {
        let set = set_mut(big);
        for _ in 0..popped {
            let rank = below(tally, set.len());
            let member = set.at(rank).expect("a rank below the length").to_vec();
            reply.bulk(&member);
            set.remove(&member, log);
            if let Some(gone) = gone {
                gone.push(member.into());
            }
        }
    });
}
