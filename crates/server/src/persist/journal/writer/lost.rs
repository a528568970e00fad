//! The segment, or its folder, is not there any more: an open file goes on without a name, and
//! whoever starts the server again finds nothing of it.
//!
//! - `look`, `on_look`: once a second, whether the path of the segment names the open file.
//! - `lose`: it does not, or a step finds no folder. Writes are refused, and nothing counts as
//!   durable which did not before.
//! - `abandon`: once nothing is in flight, the segment is closed, and the folder is made again.
//! - `needs_base`: a rewrite is wanted. What is recorded before its cut is in memory, so its base
//!   has it, and it is dropped; what follows goes to a new segment.
//! - `find_again`: the base has taken over, and everything is durable.

use super::{Lost, Trouble, Writer};
use crate::persist::journal::pieces::Pieces;
use crate::persist::journal::steps::is_gone;
use crate::persist::load::kept::Kept;
use base::{MonoNs, SeqNo};
use driver::{FileError, FileOp, FileValue};
use rustix::io::Errno;

/// What has failed, to follow "cannot".
const FIND: &str = "find the append-only file in its folder";

impl Writer {
    /// Asks whether the segment still has its name, unless that is being asked.
    pub(crate) fn look(&mut self) -> Option<FileOp> {
        let segment = self.segment.filter(|_| self.looking.is_none())?;
        self.looking = Some(segment.file);
        Some(FileOp::Status { path: self.segment_path.clone() })
    }

    /// That is being asked.
    pub(crate) fn is_looking(&self) -> bool {
        self.looking.is_some()
    }

    /// The answer.
    pub(crate) fn on_look(&mut self, outcome: Result<FileValue, FileError>, now: MonoNs) {
        let asked = self.looking.take();
        let Some(segment) = self.segment.filter(|segment| asked == Some(segment.file)) else {
            return; // another one was begun
        };
        match outcome.map_err(|error| error.errno) {
            Ok(FileValue::Status { inode, .. }) if inode == segment.inode => {}
            Ok(_) => self.lose(FIND, Errno::NOENT, now),
            Err(errno) if is_gone(errno) => self.lose(FIND, errno, now),
            // It cannot be told. A disk that fails refuses writes as well.
            Err(_) => {}
        }
    }

    /// Nothing can be found in the folder any more. What follows waits until `at`.
    pub(super) fn lose(&mut self, what: &'static str, errno: Errno, at: MonoNs) {
        let (durable, synced, trouble) = (self.durable(), self.synced(), Trouble { what, errno });
        self.lost = Some(Lost { durable, synced, trouble, is_abandoned: false, at });
    }

    /// The folder was not there, and was made.
    pub(super) fn on_new_folder(&mut self, now: MonoNs) {
        self.history = Kept::default();
        let is_unknown = match self.lost {
            Some(lost) => lost.is_abandoned && self.rewrite.is_some(),
            None => self.is_complete,
        };
        if is_unknown {
            self.lose(FIND, Errno::NOENT, now); // a base is gone as well
        }
    }

    /// The files are gone, and no new base holds everything yet.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// When what was lost can be given up, if that is still to be.
    pub(super) fn abandons_at(&self) -> Option<MonoNs> {
        self.lost.filter(|lost| !lost.is_abandoned).map(|lost| lost.at)
    }

    /// Gives up what was lost, once nothing is in flight. False if that is still to be.
    pub(super) fn abandon(&mut self, now: MonoNs) -> bool {
        let Some(at) = self.abandons_at() else { return true };
        if now < at || self.is_in_flight() {
            return false;
        }
        let open = [self.takeover.give_up(), self.steps.give_up()];
        let segment = self.segment.take();
        self.before_bytes += segment.map_or(0, |segment| segment.end);
        for file in open.into_iter().flatten().chain(segment.map(|segment| segment.file)) {
            self.steps.close(file);
        }
        // Those that were not removed are, when the next base takes over.
        self.manifest.history.append(&mut self.removed);
        // A save needs it for the base.
        self.steps.create_folder(&self.folder);
        // Its base may be gone, too.
        self.rewrite = None;
        self.pieces = Pieces::default();
        self.gathered.clear();
        (self.is_dirty, self.trouble, self.takeover_trouble) = (false, None, None);
        self.lost.as_mut().expect("it was just looked at").is_abandoned = true;
        true
    }

    /// A rewrite must make a new base, because the old files were lost.
    pub(crate) fn needs_base(&self, now: MonoNs) -> bool {
        let is_abandoned = self.lost.is_some_and(|lost| lost.is_abandoned);
        is_abandoned
            && !self.is_rewriting()
            && self.steps.is_empty()
            && self.pause.is_over_soon(now)
    }

    /// A base has taken over. What was lost before it was begun is there again.
    pub(super) fn find_again(&mut self) {
        self.lost = self.lost.filter(|lost| !lost.is_abandoned);
    }

    /// Everything up to this number is durable.
    pub(crate) fn durable(&self) -> SeqNo {
        self.lost.map_or(self.durable, |lost| lost.durable)
    }

    /// Everything up to this number was synced, with or without the promise of `appendfsync`.
    pub(crate) fn synced(&self) -> SeqNo {
        self.lost.map_or(self.synced, |lost| lost.synced)
    }

    /// Why nothing can be written, if that is so.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble.or(self.lost.map(|lost| lost.trouble))
    }

    /// Why a complete base cannot take over. Nothing is lost by that: the files of before stay, and
    /// are written.
    pub(crate) fn takeover_trouble(&self) -> Option<Trouble> {
        self.takeover_trouble
    }
}
