//! What worker 0 keeps while a file is loaded.

use crate::persist::load::pipe::Pipe;
use crate::persist::load::reading::Reading;
use base::MonoNs;
use base::sync::Arc;

/// How far loading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The file is opened, and its first bytes are read. If that fails, nothing has changed.
    Opening,
    /// It is a snapshot file, and World is awaited to remove what is there.
    Emptying,
    /// Its keys are built. If that fails, the server ends.
    Building,
}

/// Loading under way. Its threads end with it, also if its worker ends without a turn.
pub(crate) struct Loading {
    pub(crate) reading: Reading,
    pub(crate) pipe: Arc<Pipe>,
    /// The threads know that no more blocks come.
    pub(crate) is_read: bool,
    /// The number of this loading, in the tokens of its operations.
    pub(crate) number: u64,
    pub(crate) stage: Stage,
    pub(crate) began: MonoNs,
    /// When the log and a supervisor are told of progress next.
    pub(crate) report_at: MonoNs,
}

/// Bits of a token which number the reads of one loading: enough for 4 PiB.
const NUMBER_BITS: u32 = 32;

impl Loading {
    /// The token of an operation, by its number.
    pub(crate) fn token(&self, number: u64) -> u64 {
        (self.number & 0xff_ffff) << NUMBER_BITS | number
    }

    /// The number of an operation with this token, if it belongs to this loading and not to one
    /// which is over.
    pub(crate) fn number_of(&self, token: u64) -> Option<u64> {
        let number = token & ((1 << NUMBER_BITS) - 1);
        (token == self.token(number)).then_some(number)
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.pipe.cancel();
    }
}
