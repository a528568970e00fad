//! HRANDFIELD.

use keyspace::Kind;
use resp::Proto;
use value::Big;
use value::hash::{Hash, pairs};

use super::view::View;
use crate::collection::{Choice, Show, Text, below, reply_some};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::{count, is};

/// `HRANDFIELD key [count [WITHVALUES]]`.
pub fn hrandfield(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if ctx.args.len() == 2 {
        return one(ctx);
    }
    let wanted = count(ctx.arg(2))?;
    let with_values = ctx.args.len() > 3;
    if ctx.args.len() > 4 || with_values && !is(ctx.arg(3), "WITHVALUES") {
        return Err(Error::Syntax);
    }
    if with_values && wanted.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(Error::OutOfRange);
    }
    let show = match (with_values, ctx.proto()) {
        (false, _) => Show::Names,
        (true, Proto::Resp2) => Show::Pairs,
        (true, Proto::Resp3) => Show::Arrays,
    };
    let keyspace = ctx.guard.keyspace();
    let entry = ctx.read_kind(1, Kind::Hash)?.filter(|_| wanted != 0);
    let Some(entry) = entry else {
        ctx.reply.array(0);
        return Ok(Done::Replied);
    };
    let captured = match View::of(entry) {
        View::Big(big, _) => keyspace.capture(big),
        View::Packed(packed) if wanted > 0 && wanted as u64 >= View::of(entry).len() => {
            let len = View::of(entry).len() as usize;
            let packed = packed.to_vec();
            ctx.reply.array(if show == Show::Pairs { 2 * len } else { len });
            for (field, value) in pairs(&packed) {
                show.write(&mut ctx.reply, Text::Elem(field), Text::Elem(value));
            }
            return Ok(Done::Replied);
        }
        View::Packed(packed) => keyspace.capture(&Big::Hash(Hash::of_packed(packed))),
    };
    let (choice, shown) = Choice::of(wanted, captured.len());
    ctx.reply.array(if show == Show::Pairs { 2 * shown } else { shown } as usize);
    reply_some(ctx, captured, show, choice)
}

fn one(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let entry = ctx.guard.look_up(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    let Some(entry) = entry else {
        ctx.reply.null();
        return Ok(Done::Replied);
    };
    if entry.kind() != Kind::Hash {
        return Err(Error::WrongType);
    }
    let view = View::of(entry);
    let rank = below(ctx.tally, view.len());
    match view {
        View::Packed(packed) => {
            let (field, _) = pairs(packed).nth(rank as usize).expect("a rank below the length");
            Text::Elem(field).write(&mut ctx.reply);
        }
        View::Big(_, hash) => {
            let (field, _) = hash.at(rank).expect("a rank below the length");
            ctx.reply.bulk(field);
        }
    }
    Ok(Done::Replied)
}
