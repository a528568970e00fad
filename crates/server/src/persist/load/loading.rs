//! What worker 0 keeps while a file is loaded.

use crate::persist::load::fault::LoadError;
use crate::persist::load::parts::Parts;
use crate::persist::load::pipe::Pipe;
use crate::persist::load::reading::Reading;
use crate::persist::load::replay::dispatch::Replayed;
use crate::persist::load::replay::lanes::Lanes;
use base::MonoNs;
use base::sync::Arc;
use rdb::file::Summary;
use std::path::PathBuf;

/// How far loading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The files of an append-only file are searched. If that fails, nothing has changed.
    Finding,
    /// The file is opened, and its first bytes are read. If that fails, nothing has changed, unless
    /// it belongs to an append-only file.
    Opening,
    /// It can be loaded, and World is awaited to remove what is there.
    Emptying,
    /// Its keys are built, or its commands run. If that fails, the server ends.
    Building,
    /// Behind the last file of an append-only file: see [`crate::persist::load::mending`].
    Mending,
}

/// Loading under way. Its threads end with it, also if its worker ends without a turn.
pub(crate) struct Loading {
    /// The file at hand.
    pub(crate) path: PathBuf,
    pub(crate) reading: Reading,
    pub(crate) feed: Feed,
    /// The threads know that no more blocks come.
    pub(crate) is_read: bool,
    /// The number of this loading, or of the file at hand, in the tokens of its operations.
    pub(crate) number: u64,
    pub(crate) stage: Stage,
    pub(crate) began: MonoNs,
    /// When the log and a supervisor are told of progress next.
    pub(crate) report_at: MonoNs,
    /// Of an append-only file: its files.
    pub(crate) parts: Option<Box<Parts>>,
}

/// The threads that load a file, and what stands before them.
pub(crate) enum Feed {
    /// None: it is not known yet what the file is, or the next one is awaited.
    None,
    /// They build the keys of a snapshot.
    Snapshot(Arc<Pipe>),
    /// They run commands.
    Commands(Arc<Lanes>),
}

/// How a file ended that was loaded.
pub(crate) enum End {
    Snapshot(Summary),
    Commands(Replayed),
}

impl Feed {
    pub(crate) fn add(&self, block: Vec<u8>) {
        match self {
            Self::None => unreachable!("the first block says what follows"),
            Self::Snapshot(pipe) => pipe.add(block),
            Self::Commands(lanes) => lanes.add(block),
        }
    }

    pub(crate) fn end_of_file(&self) {
        match self {
            Self::None => {}
            Self::Snapshot(pipe) => pipe.end_of_file(),
            Self::Commands(lanes) => lanes.end_of_file(),
        }
    }

    /// Blocks which no thread has taken yet.
    pub(crate) fn queued(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Snapshot(pipe) => pipe.queued(),
            Self::Commands(lanes) => lanes.queued(),
        }
    }

    /// Ends the threads with an error; gives it back if there are none.
    pub(crate) fn fail(&self, error: LoadError) -> Result<(), LoadError> {
        match self {
            Self::None => return Err(error),
            Self::Snapshot(pipe) => pipe.fail(error),
            Self::Commands(lanes) => lanes.fail(error),
        }
        Ok(())
    }

    /// How it ended, once all threads have.
    pub(crate) fn end(&self) -> Option<Result<End, LoadError>> {
        match self {
            Self::None => None,
            Self::Snapshot(pipe) => pipe.end().map(|end| end.map(End::Snapshot)),
            Self::Commands(lanes) => lanes.end().map(|end| end.map(End::Commands)),
        }
    }

    fn cancel(&self) {
        match self {
            Self::None => {}
            Self::Snapshot(pipe) => pipe.cancel(),
            Self::Commands(lanes) => lanes.cancel(),
        }
    }
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
        self.feed.cancel();
    }
}
