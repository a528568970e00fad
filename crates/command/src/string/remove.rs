//! Removing a key if its string is, or is not, a given one: DELIFEQ, DELEX.

use keyspace::Event;
use resp::Args;

use super::judging::{Ahead, Command, judge};
use super::options::Condition;
use super::set::holds;
use super::text::ArgText;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Arity, Error};
use crate::record;
use crate::spec::KeyFlags;

/// `DELIFEQ key text`.
pub fn delifeq(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    remove_if(ctx, Condition::Equal(ArgText::of(&ctx.args, 2)), delifeq)
}

/// What DELEX does to its key: with a condition it looks at what was there.
pub fn delex_key_flags(args: Args<'_>) -> KeyFlags {
    let how = if args.len() > 2 { KeyFlags::RW } else { KeyFlags::RM };
    KeyFlags::of(&[how, KeyFlags::DELETE])
}

/// `DELEX key [IFEQ text | IFNE text | IFDEQ digest | IFDNE digest]`; without a condition, a key of
/// any type.
pub fn delex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let condition = match ctx.args.len() {
        2 => Condition::Always,
        4 => {
            let condition = Condition::comparison(ctx.args.start(2), ArgText::of(&ctx.args, 3));
            condition.ok_or(Error::ConditionWanted)?
        }
        _ => return Err(Arity { command: "delex" }.into()),
    };
    remove_if(ctx, condition, delex).map_err(|error| match error {
        Error::WrongType => Error::ConditionOnString,
        other => other,
    })
}

/// Removes the key in the first argument if the condition holds, and replies whether it is gone
/// for that; `command` is what calls this.
fn remove_if(
    ctx: &mut Ctx<'_, '_>,
    condition: Condition<'_>,
    command: Command,
) -> Result<Done, Error> {
    let judged = match judge(ctx, condition, command)? {
        Ahead::Done(done) => return Ok(done),
        Ahead::Holds(holds) => Some(holds),
        Ahead::Unknown => None,
    };
    let key = ctx.key(1);
    let removed = match ctx.guard.entry_mut(Event::DEL, ctx.db, &key) {
        Some(entry) => {
            let holds = judged.map_or_else(|| holds(condition, Some(entry.entry())), Ok)?;
            if holds {
                entry.remove();
            }
            holds
        }
        None => false,
    };
    if removed {
        record::removal(ctx, key.bytes);
    }
    ctx.reply.integer(i64::from(removed));
    Ok(Done::Replied)
}
