//! The group and the consumer that a command names.

use keyspace::{EntryMut, Event, Kind};
use value::Stream;
use value::stream::ConsumerId;

use super::view::{of_entry, open, peek};
use crate::ctx::Ctx;
use crate::error::{Error, NoKeyOrGroup, NoKeyOrGroupRead};
use crate::events;

/// The count of deliveries of an entry that is not to be delivered again.
pub(super) const COUNT_FATAL: u64 = i64::MAX as u64;

/// The stream in argument 1 and the place of the group in argument 2, both of which must be there.
pub(super) fn existing_group<'b, 'g>(
    ctx: &'b mut Ctx<'_, 'g>,
) -> Result<(EntryMut<'b, 'g>, usize), Error> {
    let key = ctx.key(1);
    let args = ctx.args;
    let entry = ctx.peek_kind(&key, Kind::Stream)?;
    let found = entry.and_then(|entry| of_entry(entry).find_group(args.get(2)));
    let missing = || NoKeyOrGroup { key: ctx.arg(1).into(), group: ctx.arg(2).into() };
    let at = found.ok_or_else(missing)?;
    Ok((open(Event::SILENT, ctx, 1)?.expect("it was there"), at))
}

/// The consumer of a name, made if it is not there; it is seen now.
pub(super) fn consumer(stream: &mut Stream, at: usize, name: &[u8], now: i64) -> ConsumerId {
    stream.edit_group(at, |group| match group.find(name) {
        Some(consumer) => {
            let active = group.consumer(consumer).active_ms;
            group.set_times(consumer, now, active);
            consumer
        }
        None => group.add_consumer(name, now, -1),
    })
}

/// The event of a consumer that was not there.
pub(super) fn new_consumer(was: &Stream, group: usize, name: &[u8]) -> Vec<Event> {
    let is_new = was.group(group).find(name).is_none();
    is_new.then_some(events::XGROUP_CREATECONSUMER).into_iter().collect()
}

/// The place of the command's group in the stream of argument `i`, which must be there, and whether
/// anything is new for it.
pub(super) fn group_at(
    ctx: &mut Ctx<'_, '_>,
    i: usize,
    name: &[u8],
) -> Result<(usize, bool), Error> {
    let args = ctx.args;
    let found = peek(ctx, i)?.and_then(|stream| {
        let at = stream.find_group(name)?;
        Some((at, stream.top_id() > Some(stream.group(at).last)))
    });
    let missing = || NoKeyOrGroupRead { key: args.get(i).into(), group: name.into() };
    found.ok_or_else(|| missing().into())
}

/// A count of deliveries with so many more; it ends where XNACK FATAL puts it.
pub(super) fn more(count: u64, by: u64) -> u64 {
    count.saturating_add(by).min(COUNT_FATAL)
}
