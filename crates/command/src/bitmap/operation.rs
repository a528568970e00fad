//! Several strings combined: BITOP.

use base::Blob;
use keyspace::Event;
use std::borrow::Cow;
use value::Str;
use value::bitmap::{Operation, combine};

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;
use crate::string::text::{LONG_BYTES, insert_raw, lookup};

/// The text of a key that is combined: a big one by reference.
enum Operand {
    Big(Blob),
    Small(Vec<u8>),
}

impl Operand {
    fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Operand::Big(blob) => blob.to_slice(),
            Operand::Small(bytes) => Cow::Borrowed(bytes),
        }
    }
}

/// `BITOP <AND | OR | XOR | NOT> destkey key ...`: replies the length of the result; an empty one
/// is no key.
pub fn bitop(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let operation = parse(ctx.arg(1))?;
    if operation == Operation::Not && ctx.args.len() != 4 {
        return Err(Error::BitopNot);
    }
    let mut sources = Vec::with_capacity(ctx.args.len() - 3);
    for i in 3..ctx.args.len() {
        let key = ctx.key(i);
        sources.push(match lookup(ctx.guard, ctx.tally, ctx.db, &key)? {
            None => Operand::Small(Vec::new()),
            Some(Str::Blob(blob)) => Operand::Big(blob.clone()),
            Some(text) => Operand::Small(text.to_vec()),
        });
    }
    let sources: Vec<Cow<'_, [u8]>> = sources.iter().map(Operand::bytes).collect();
    let sources: Vec<&[u8]> = sources.iter().map(|source| &**source).collect();
    if sources.iter().map(|source| source.len()).sum::<usize>() >= LONG_BYTES
        && let Err(parked) = ctx.guard.try_mark_long()
    {
        return Ok(Done::Park(parked));
    }
    let result = combine(operation, &sources);
    let (key, len) = (ctx.key(2), result.len());
    if result.is_empty() {
        ctx.guard.remove(Event::DEL, ctx.db, &key);
    } else {
        insert_raw(events::SET, ctx.guard, ctx.db, &key, result);
    }
    ctx.reply.integer(len as i64);
    Ok(Done::Replied)
}

fn parse(arg: &[u8]) -> Result<Operation, Error> {
    const NAMES: [(&str, Operation); 4] = [
        ("AND", Operation::And),
        ("OR", Operation::Or),
        ("XOR", Operation::Xor),
        ("NOT", Operation::Not),
    ];
    let named = NAMES.into_iter().find(|(name, _)| is(arg, name));
    named.map(|(_, operation)| operation).ok_or(Error::Syntax)
}
