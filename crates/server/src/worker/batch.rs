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
    /// Messages were published, or wait to be written.
    Deliver,
}

/// A window's execution under way.
#[derive(Default)]
pub struct Batch {
    /// The World gate is closed, or was closed meanwhile: the remaining commands park.
    pub is_behind_gate: bool,
    /// Changes leave records.
    pub is_numbered: bool,
    /// Its commands run in several databases, and are counted one by one for these.
    pub is_mixed: bool,
    /// From this command on none is executed as usual: for one of the reasons above, or because it
    /// is sampled for the view of hot keys.
    unusual_from: usize,
    /// Up to here the members of its commands are prefetched.
    warmed: usize,
    /// The lower of `unusual_from` and `warmed`: all that is asked before a command.
    attention_from: usize,
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
        self.set_warmed(if has_members { 0 } else { usize::MAX });
    }

    /// The members of the commands before this one are prefetched.
    #[inline]
    pub fn set_warmed(&mut self, warmed: usize) {
        self.warmed = warmed;
        self.attention_from = self.unusual_from.min(warmed);
    }

    /// Commands before this one are executed as usual.
    #[inline]
    pub fn set_unusual_from(&mut self, from: usize) {
        self.unusual_from = from;
        self.attention_from = self.warmed.min(from);
    }

    /// True if this command may be cold or unusual ([`Batch::is_cold`], [`Batch::is_unusual`]).
    #[inline(always)]
    pub fn needs_attention(&self, at: usize) -> bool {
        at >= self.attention_from
    }

    /// True if the members of this command are not prefetched.
    pub fn is_cold(&self, at: usize) -> bool {
        at >= self.warmed
    }

    /// True if this command is not executed as usual.
    pub fn is_unusual(&self, at: usize) -> bool {
        at >= self.unusual_from
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
        self.is_mixed = false;
        self.off_path.clear();
        self.counted = Counted::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_cold_or_unusual_needs_attention() {
        let mut batch = Batch::default();
        batch.set_unusual_from(5);
        batch.begin(false);
        assert!(!batch.needs_attention(4) && batch.needs_attention(5) && !batch.is_cold(5));
        batch.begin(true);
        assert!(batch.needs_attention(0) && batch.is_cold(0) && !batch.is_unusual(4));
        batch.set_warmed(9);
        assert!(!batch.needs_attention(4) && batch.needs_attention(5));
        batch.set_unusual_from(12);
        assert!(!batch.needs_attention(8) && batch.needs_attention(9) && !batch.is_unusual(9));
    }
}
