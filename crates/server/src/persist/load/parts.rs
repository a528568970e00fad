//! What worker 0 keeps while the files of an append-only file are loaded.

use crate::persist::load::finding::Finding;
use crate::persist::load::folder::Found;
use crate::persist::load::mending::Mending;
use journal::{Numbering, Position};
use std::path::PathBuf;

/// The files of an append-only file, and how far they are loaded.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) finding: Option<Finding>,
    pub(crate) mending: Option<Mending>,
    pub(crate) found: Found,
    /// The file at hand.
    pub(crate) at: usize,
    /// Where its commands begin.
    pub(crate) from: u64,
    /// The numbers of the records which are loaded.
    pub(crate) numbering: Numbering,
    /// Where the stream of replication is behind them, if the files say it.
    pub(crate) position: Option<Position>,
    /// What is left of the last file, if its end is cut off.
    pub(crate) cut: Option<u64>,
}

impl Parts {
    /// The search begins.
    pub(crate) fn of(finding: Finding) -> Self {
        Self { finding: Some(finding), ..Self::default() }
    }

    /// True at the last file.
    pub(crate) fn is_last(&self) -> bool {
        self.at + 1 == self.found.parts.len()
    }

    /// What `sheafdb check-aof` is to look at.
    pub(crate) fn to_check(&self) -> PathBuf {
        let place = &self.found.place;
        if self.found.is_old { place.old_file() } else { place.manifest() }
    }
}
