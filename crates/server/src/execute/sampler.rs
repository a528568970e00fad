//! When a worker looks at its next command for the view of hot keys, and whose values are to be
//! looked at.

use crate::figures::hot_sessions::SAMPLE;
use base::DbIndex;
use command::CommandId;

/// Values that wait to be looked at.
const LOOKS_MAX: usize = 8;
/// A longer key's value is not looked at.
const LOOK_BYTES_MAX: usize = 512;

/// A key whose value is to be looked at.
pub(super) struct Look {
    pub(super) db: DbIndex,
    pub(super) id: CommandId,
    len: usize,
    key: [u8; LOOK_BYTES_MAX],
}

impl Look {
    /// The key.
    pub(super) fn key(&self) -> &[u8] {
        &self.key[..self.len]
    }
}

/// When a worker looks at its next command.
pub(crate) struct Sampler {
    /// Of the commands of windows, counted from the first of the next window.
    pub(super) next_framed: usize,
    /// Of the others.
    pub(super) next_alone: usize,
    /// One command in so many is looked at.
    pub(super) ratio: u32,
    /// Of the sessions of HOTKEYS that are followed.
    pub(super) version: u64,
    /// At most [`LOOKS_MAX`].
    pub(super) looks: Vec<Look>,
}

impl Sampler {
    pub(crate) fn new() -> Self {
        let next = SAMPLE as usize;
        let looks = Vec::with_capacity(LOOKS_MAX);
        Self { next_framed: next, next_alone: next, ratio: SAMPLE, version: 0, looks }
    }

    /// A window of `n` commands has ended.
    #[inline]
    pub(crate) fn pass(&mut self, n: usize) {
        self.next_framed = self.next_framed.saturating_sub(n);
    }

    /// True if this command of the window is to be looked at.
    pub(crate) fn is_next(&self, at: usize) -> bool {
        self.next_framed == at
    }

    pub(super) fn look_at(&mut self, db: DbIndex, id: CommandId, name: &[u8]) {
        if self.looks.len() < LOOKS_MAX && name.len() <= LOOK_BYTES_MAX {
            let mut key = [0; LOOK_BYTES_MAX];
            key[..name.len()].copy_from_slice(name);
            self.looks.push(Look { db, id, len: name.len(), key });
        }
    }
}
