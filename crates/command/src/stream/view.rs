//! The stream of a key, to be read or changed.

use keyspace::{Entry, EntryMut, Event, Kind};
use value::{Big, Stream};

use crate::ctx::Ctx;
use crate::error::Error;

pub(super) fn of_big(big: &Big) -> &Stream {
    match big {
        Big::Stream(stream) => stream,
        _ => unreachable!("a key of this kind holds a stream"),
    }
}

pub(super) fn of_big_mut(big: &mut Big) -> &mut Stream {
    match big {
        Big::Stream(stream) => stream,
        _ => unreachable!("a key of this kind holds a stream"),
    }
}

pub(super) fn of_entry(entry: Entry<'_>) -> &Stream {
    of_big(entry.big().expect("a stream stands outside its entry"))
}

/// The stream in argument `i`, to be changed, which tells the event.
pub(super) fn open<'b, 'g>(
    event: Event,
    ctx: &'b mut Ctx<'_, 'g>,
    i: usize,
) -> Result<Option<EntryMut<'b, 'g>>, Error> {
    ctx.entry_mut_kind(event, i, Kind::Stream)
}

/// Changes a stream in place. A clone is kept for the rollback.
pub(super) fn change<R>(entry: &mut EntryMut<'_, '_>, f: impl FnOnce(&mut Stream) -> R) -> R {
    entry.edit(|big, log| {
        log.capture(big);
        f(of_big_mut(big))
    })
}

/// As [`change`], for changes of groups alone: WATCH does not see them. With `wakes`, clients that
/// wait for the key are woken.
pub(super) fn change_groups<R>(
    entry: &mut EntryMut<'_, '_>,
    wakes: bool,
    f: impl FnOnce(&mut Stream) -> R,
) -> R {
    entry.edit_unwatched(wakes, |big, log| {
        log.capture(big);
        f(of_big_mut(big))
    })
}

/// The stream in an argument, which is there.
pub(super) fn stream_at<'b>(ctx: &'b mut Ctx<'_, '_>, at: usize) -> &'b Stream {
    let key = ctx.key(at);
    of_entry(ctx.guard.peek(ctx.db, &key).expect("the stream was found"))
}

/// The stream in argument `i`, if its slot is locked: a command that serves a waiting client has
/// locked only its own slots.
pub(super) fn peek<'b>(ctx: &'b mut Ctx<'_, '_>, i: usize) -> Result<Option<&'b Stream>, Error> {
    let key = ctx.key(i);
    if !ctx.guard.covers(key.slot) {
        return Ok(None);
    }
    Ok(ctx.peek_kind(&key, Kind::Stream)?.map(of_entry))
}
