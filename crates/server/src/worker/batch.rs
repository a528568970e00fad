//! State of the execution of a window: its progress, and what its commands ask of the driver.
//!
//! [`Batch::begin`] is called before the first command, [`Batch::end`] when the window's statistics
//! are written. A request which runs alone uses only what it asks of the driver. The worker takes
//! `after` when the driver's buffers are free again.

use crate::execute::window::{Counted, Framed};
use driver::ConnId;

/// What the execution of a window asks of the driver, done when the window is through.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// Put input back and stop receiving: the session is suspended or finished.
    Stop {
        /// The session's connection.
        conn: ConnId,
        /// First byte to keep.
        from: usize,
        /// One past the last.
        to: usize,
    },
}

/// A window's execution under way.
#[derive(Default)]
pub struct Batch {
    /// The World gate is closed, or was closed meanwhile: the remaining commands park.
    pub is_behind_gate: bool,
    /// It has a command that is looked at for the view of hot keys.
    pub has_sample: bool,
    /// One of these, or of the next two: commands are not executed as usual.
    pub is_unusual: bool,
    /// Changes leave records.
    pub is_numbered: bool,
    /// Its commands run in several databases, and are counted one by one for these.
    pub is_mixed: bool,
    /// Up to here the members of its commands are prefetched.
    pub warmed: usize,
    /// Time of its commands that were timed by themselves.
    pub timed_ns: u64,
    /// First spans of its commands that did not take the short path.
    pub off_path: Vec<u32>,
    /// Up to here its commands of the short path are counted for their clients.
    pub counted: Counted,
    /// What the driver is to do.
    pub after: Vec<After>,
}

impl Batch {
    /// A window begins. Without members of collections there is nothing to warm.
    #[inline]
    pub fn begin(&mut self, has_members: bool) {
        self.warmed = if has_members { 0 } else { usize::MAX };
    }

    /// True if this command takes the short path, so far.
    #[inline]
    pub fn is_on_short_path(&self, c: &Framed) -> bool {
        !self.off_path.contains(&c.spans_from)
    }

    /// The window is executed and counted.
    #[inline]
    pub fn end(&mut self) {
        self.timed_ns = 0;
        self.has_sample = false;
        self.is_mixed = false;
        self.off_path.clear();
        self.counted = Counted::default();
    }
}
