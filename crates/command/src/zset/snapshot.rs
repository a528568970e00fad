//! A sorted set that is read after its locks were dropped, and large replies from it.

use std::ops::Range;

use keyspace::{Captured, Entry, Keyspace};
use resp::Reply;
use value::zset::View;

use super::reply::write_scored;
use super::view::big_of;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::error::Error;

/// Members written in one step.
pub(super) const STEP_MEMBERS: u64 = 1_000;
/// Bytes of a reply after which a step ends.
pub(super) const STEP_BYTES: usize = 64 * 1024;

/// A sorted set as it was.
pub(super) enum ZsetSnapshot {
    /// A copy of the packed bytes.
    Small(Vec<u8>),
    /// A reference to the trees.
    Big(Captured),
}

impl ZsetSnapshot {
    /// Keeps what an entry holds. O(1) but for the bytes of a small one.
    pub fn new(keyspace: &Keyspace, entry: Entry<'_>) -> Self {
        match entry.big() {
            Some(big) => Self::Big(keyspace.capture(big)),
            None => Self::Small(entry.packed().expect("packed or big").to_vec()),
        }
    }

    /// To be read.
    pub fn view(&self) -> View<'_> {
        match self {
            Self::Small(bytes) => View::Small(bytes),
            Self::Big(big) => View::Big(big_of(big)),
        }
    }
}

/// Which members are replied, and how.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// Their ranks.
    pub ranks: Range<u64>,
    /// From the last to the first.
    pub rev: bool,
    /// With their scores.
    pub scores: bool,
    /// Each pair an array of its own in RESP2, too.
    pub nested: bool,
}

impl Shown {
    /// Members that are left.
    pub fn len(&self) -> u64 {
        self.ranks.end - self.ranks.start
    }

    /// Writes members until a step is full; true if none is left.
    pub fn write(&mut self, zset: View<'_>, reply: &mut Reply<'_>) -> bool {
        let full = reply.position().bytes + STEP_BYTES;
        let mut left = STEP_MEMBERS;
        let seen = zset.each(self.ranks.clone(), self.rev, |member, score| {
            if self.nested && reply.proto() == resp::Proto::Resp2 {
                reply.array(2);
            }
            write_scored(reply, member, score, self.scores);
            left -= 1;
            left > 0 && reply.position().bytes < full
        });
        if self.rev {
            self.ranks.end -= seen;
        } else {
            self.ranks.start += seen;
        }
        self.ranks.is_empty()
    }
}

/// Replies members in steps.
pub(super) struct MembersReply {
    pub zset: ZsetSnapshot,
    pub shown: Shown,
}

impl Resumable for MembersReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        Ok(Progress::complete_if(self.shown.write(self.zset.view(), &mut ctx.reply)))
    }
}
