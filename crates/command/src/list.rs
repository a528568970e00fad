//! Commands on lists.
//!
//! A list of at most [`packed::PACKED_MAX`] bytes stands packed in its entry, a longer one is a tree
//! of pages. [`view::View`] reads both, [`edit::Edit`] changes both; what OBJECT ENCODING says of
//! them follows [`limit::Limit`] alone.

mod blocking;
mod create;
mod edit;
mod element;
mod end;
pub(crate) mod limit;
mod moves;
mod packed;
mod pop;
mod position;
mod pour;
mod push;
mod range;
mod remove;
mod removing;
mod search;
mod set;
mod stream;
mod view;

pub use blocking::{
    has_elements, take_first, take_last, take_move, take_movem, take_mpop, take_rpoplpush,
    wait_move, wait_movem, wait_mpop, wait_pop, wait_rpoplpush,
};
pub use moves::{lmove, lmovem, rpoplpush};
pub use pop::{lmpop, lmpop_keys, lpop, rpop};
pub use pour::pour;
pub use push::{lpush, lpushx, rpush, rpushx};
pub use range::{lindex, llen, lrange};
pub use remove::{lrem, ltrim};
pub use search::lpos;
pub use set::{linsert, lset};
<<<<<<< HEAD
=======

use keyspace::{Event, Key};
use resp::{Args, Reply};
use value::Kind;
use value::list::{FAR_MIN, Item, NewItem};
use value::packed::Elem;

use crate::ctx::Ctx;
use crate::error::Error;
use crate::events;
use crate::parse::is;
use edit::Edit;
use view::View;

/// Bytes of a list in its entry.
const PACKED_MAX: usize = 2048;
/// Bytes of listpack entries from which on a tree that has shrunk is packed again.
const PACKED_AGAIN: u64 = 512;
/// A longer element is sent by reference.
const COPIED_MAX: usize = 4096;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The left one.
    Front,
    /// The right one.
    Back,
}

impl End {
    /// What it is called that elements were added here.
    #[inline]
    fn pushed(self) -> Event {
        if self == Self::Front { events::LPUSH } else { events::RPUSH }
    }

    /// What it is called that elements were taken from here.
    #[inline]
    fn popped(self) -> Event {
        if self == Self::Front { events::LPOP } else { events::RPOP }
    }

    /// `LEFT` or `RIGHT`.
    fn parse(word: &[u8]) -> Result<Self, Error> {
        if is(word, "LEFT") {
            Ok(Self::Front)
        } else if is(word, "RIGHT") {
            Ok(Self::Back)
        } else {
            Err(Error::Syntax)
        }
    }
}

/// Argument `i` as an element; a long one that came in a buffer of its own is taken by reference.
#[inline]
fn element<'a>(args: &Args<'a>, i: usize) -> NewItem<'a> {
    match args.blob(i) {
        Some(blob) if blob.len() >= FAR_MIN => NewItem::Far(blob.clone()),
        _ => NewItem::of(args.get(i)),
    }
}

/// Replies an element, a long one by reference.
#[inline]
fn write(reply: &mut Reply<'_>, item: Item<'_>) {
    match item {
        Item::Near(Elem::Bytes(bytes)) => reply.bulk(bytes),
        Item::Near(Elem::Int(number)) => reply.bulk_int(number),
        Item::Far(blob) if blob.len() > COPIED_MAX => reply.bulk_blob(blob),
        Item::Far(blob) => reply.bulk(blob.as_slice()),
    }
}

/// Whether a stored element is this text.
#[inline]
fn equals(item: Item<'_>, text: Elem<'_>) -> bool {
    match (item, text) {
        (Item::Near(elem), text) => elem == text,
        (Item::Far(blob), Elem::Bytes(text)) => blob.as_slice() == text,
        (Item::Far(_), Elem::Int(_)) => false,
    }
}

/// The position that an index means, which counts from the end if negative.
fn position(index: i64, len: u64) -> Option<u64> {
    let at = if index < 0 { len.checked_sub(index.unsigned_abs())? } else { index as u64 };
    (at < len).then_some(at)
}

/// The positions between two indexes, both included: the first, and how many.
fn bounds(start: i64, stop: i64, len: u64) -> (u64, u64) {
    let len = len as i64;
    let from = if start < 0 { (start + len).max(0) } else { start };
    let to = if stop < 0 { stop + len } else { stop.min(len - 1) };
    if from > to { (0, 0) } else { (from as u64, (to - from) as u64 + 1) }
}

/// The list in argument `i`, to be read.
fn read<'b, 'a>(
    ctx: &'b mut Ctx<'a, '_>,
    i: usize,
) -> Result<(Option<View<'b>>, &'b mut Reply<'a>), Error> {
    let (entry, reply) = ctx.read_reply(i, Kind::List)?;
    Ok((entry.map(View::of), reply))
}

/// The list of a key, to be changed, which tells the event.
#[inline]
fn open<'b, 'a, 'g>(
    event: Event,
    ctx: &'b mut Ctx<'a, 'g>,
    key: &Key<'_>,
) -> Result<(Option<Edit<'b, 'g>>, &'b mut Reply<'a>), Error> {
    let edit = Edit::open(event, ctx.guard, ctx.db, key, ctx.settings, &mut ctx.tally.scratch)?;
    Ok((edit, &mut ctx.reply))
}

#[cfg(test)]
mod tests {
    use super::{bounds, position};

    #[test]
    fn indexes() {
        assert_eq!(position(0, 0), None);
        assert_eq!((position(2, 3), position(3, 3)), (Some(2), None));
        assert_eq!((position(-3, 3), position(-4, 3)), (Some(0), None));
        assert_eq!((position(i64::MIN, 3), position(i64::MAX, 3)), (None, None));
    }

    #[test]
    fn ranges() {
        assert_eq!(bounds(0, -1, 5), (0, 5));
        assert_eq!(bounds(-3, -2, 5), (2, 2));
        assert_eq!(bounds(-100, 100, 5), (0, 5));
        assert_eq!(bounds(3, 1, 5), (0, 0));
        assert_eq!(bounds(5, 9, 5), (0, 0));
        assert_eq!(bounds(0, -6, 5), (0, 0));
        assert_eq!(bounds(i64::MIN, i64::MAX, 5), (0, 5));
        assert_eq!(bounds(i64::MAX, i64::MIN, 5), (0, 0));
    }
}
>>>>>>> value
