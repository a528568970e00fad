//! Replies of many elements, in steps over a list as it was.

use keyspace::{Captured, Keyspace};
use resp::Reply;
use value::Big;
use value::list::Item;

use super::element::{COPIED_MAX, write};
use super::end::End;
use super::view::of_big;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::error::Error;

/// Elements that are written at once, while the list is locked.
pub(super) const AT_ONCE_MAX: u64 = 1000;
/// Bytes of elements that are written at once.
pub(super) const AT_ONCE_BYTES_MAX: u64 = 64 * 1024;
/// Elements that one step writes, at most.
pub(super) const STEP_MAX: u64 = 2000;
/// Bytes that one step copies, but for the last element.
pub(super) const STEP_BYTES_MAX: usize = 128 * 1024;

/// The elements of a list from a position on, in one direction.
pub(super) struct Stream {
    list: Captured,
    /// Towards which end.
    towards: End,
    /// Position of the next element; of the one behind it, on the way to the front.
    at: u64,
    left: u64,
}

impl Stream {
    /// `count` elements of a list as it is now.
    pub fn new(keyspace: &Keyspace, list: &Big, towards: End, at: u64, count: u64) -> Self {
        Self { list: keyspace.capture(list), towards, at, left: count }
    }
}

impl Resumable for Stream {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let list = of_big(&self.list);
        let max = self.left.min(STEP_MAX);
        let written = match self.towards {
            End::Back => some(&mut ctx.reply, list.iter_from(self.at), max, STEP_BYTES_MAX),
            End::Front => some(&mut ctx.reply, list.iter_back_from(self.at), max, STEP_BYTES_MAX),
        };
        self.left -= written;
        match self.towards {
            End::Back => self.at += written,
            End::Front => self.at -= written,
        }
        Ok(Progress::complete_if(self.left == 0))
    }
}

/// Writes elements, at most so many and about so many bytes; how many it were.
pub(super) fn some<'a>(
    reply: &mut Reply<'_>,
    items: impl Iterator<Item = Item<'a>>,
    max: u64,
    bytes_max: usize,
) -> u64 {
    let (mut written, mut bytes) = (0, 0);
    for item in items.take(usize::try_from(max).unwrap_or(usize::MAX)) {
        write(reply, item);
        written += 1;
        bytes += item.len().min(COPIED_MAX);
        if bytes >= bytes_max {
            break;
        }
    }
    written
}
