//! Commands on streams.
//!
//! A stream is always a tree of pages outside its entry, and stays there when its last entry goes.

mod add;
mod ahead;
mod claim;
mod delete;
mod deliver;
mod describe;
mod group;
mod info;
mod nack;
mod pending;
mod pour;
mod radix;
mod range;
mod read;
mod reply;
mod trim;

pub use add::{xadd, xsetid};
pub use claim::{xautoclaim, xclaim};
pub use delete::{xack, xackdel, xdel, xdelex};
pub use deliver::take_group;
pub use group::{
    xgroup_create, xgroup_createconsumer, xgroup_delconsumer, xgroup_destroy, xgroup_setid,
};
pub use info::{xinfo_consumers, xinfo_groups, xinfo_stream};
pub use nack::xnack;
pub use pending::xpending;
pub use pour::{Bound, Message, pour};
pub use range::{xlen, xrange, xrevrange};
pub use read::{is_ready, take, wait_xread, wait_xreadgroup};
pub use trim::xtrim;

use keyspace::{Entry, EntryMut, Event, Kind};
use value::{Big, Stream, StreamId};

use crate::ctx::Ctx;
use crate::error::Error;

/// The longest text that can be an id, bytes.
const ID_TEXT_MAX: usize = 127;

fn of_big(big: &Big) -> &Stream {
    match big {
        Big::Stream(stream) => stream,
        _ => unreachable!("a key of this kind holds a stream"),
    }
}

fn of_big_mut(big: &mut Big) -> &mut Stream {
    match big {
        Big::Stream(stream) => stream,
        _ => unreachable!("a key of this kind holds a stream"),
    }
}

fn of_entry(entry: Entry<'_>) -> &Stream {
    of_big(entry.big().expect("a stream stands outside its entry"))
}

/// The stream in argument `i`, to be changed, which tells the event.
fn open<'b, 'g>(
    event: Event,
    ctx: &'b mut Ctx<'_, 'g>,
    i: usize,
) -> Result<Option<EntryMut<'b, 'g>>, Error> {
    ctx.entry_mut_kind(event, i, Kind::Stream)
}

/// Changes a stream in place, with a clone of what it was kept for the way back.
fn change<R>(entry: &mut EntryMut<'_, '_>, f: impl FnOnce(&mut Stream) -> R) -> R {
    entry.edit(|big, log| {
        log.capture(big);
        f(of_big_mut(big))
    })
}

/// As [`change`], of what concerns groups alone: who watches the key is not told. With `wakes`, who
/// waits for it is.
fn change_groups<R>(
    entry: &mut EntryMut<'_, '_>,
    wakes: bool,
    f: impl FnOnce(&mut Stream) -> R,
) -> R {
    entry.edit_unwatched(wakes, |big, log| {
        log.capture(big);
        f(of_big_mut(big))
    })
}

/// A number of an id: as `strtoull` reads it, blanks, a plus and zeros before it included
/// (recorded).
fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// An id as it is written out: `ms-seq`, or `ms` alone with this number.
fn strict_id(text: &[u8], seq: u64) -> Result<StreamId, Error> {
    let parse = || {
        if text.len() > ID_TEXT_MAX {
            return None;
        }
        match text.iter().position(|byte| *byte == b'-') {
            None => Some(StreamId::new(number(text)?, seq)),
            Some(at) => Some(StreamId::new(number(&text[..at])?, number(&text[at + 1..])?)),
        }
    };
    parse().ok_or(Error::StreamId)
}

/// An id, or `-` for the lowest and `+` for the highest.
fn id(text: &[u8], seq: u64) -> Result<StreamId, Error> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        text => strict_id(text, seq),
    }
}

/// The lower end of a range, which is included: an id, `-`, or `(` and an id that is not.
fn range_start(text: &[u8]) -> Result<StreamId, Error> {
    match text.strip_prefix(b"(") {
        None => id(text, 0),
        Some(text) => strict_id(text, 0)?.next().ok_or(Error::StreamRangeStart),
    }
}

/// The upper end of a range, likewise.
fn range_end(text: &[u8]) -> Result<StreamId, Error> {
    match text.strip_prefix(b"(") {
        None => id(text, u64::MAX),
        Some(text) => strict_id(text, u64::MAX)?.before().ok_or(Error::StreamRangeEnd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        for (text, expected) in [("7", (7, 3)), ("007-+01", (7, 1)), (" 8-2", (8, 2))] {
            let id = strict_id(text.as_bytes(), 3).expect(text);
            assert_eq!((id.ms, id.seq), expected, "{text}");
        }
        for wrong in ["", "-", "7-", "-1", "x", "7-x", "1-2-3", "18446744073709551616", "1 "] {
            assert!(strict_id(wrong.as_bytes(), 0).is_err(), "{wrong}");
        }
        assert_eq!(range_start(b"(5").expect("an id"), StreamId::new(5, 1));
        assert_eq!(range_end(b"(5-0").expect("an id"), StreamId::new(4, u64::MAX));
    }
}
