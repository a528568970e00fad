//! State of one turn of a worker's loop: the time that its commands see, and the replies which are
//! sent when it ends.
//!
//! [`Turn::begin`] sets the time, right after the driver has waited. The worker's flush
//! empties the output, several times a turn if there is much. A session that is to be closed may
//! stay listed for the next turn, if its replies may not leave yet.

use crate::sessions::output::Output;
use base::{MonoNs, UnixMs};
use driver::ConnId;

/// A turn under way.
pub struct Turn {
    now: MonoNs,
    unix_ms: UnixMs,
    /// Receptions of input.
    inputs: u32,
    /// CLIENT PAUSE was changed in this turn.
    has_pause_changed: bool,
    /// Replies of this turn.
    pub output: Output,
    /// Sessions to close once their replies have left.
    pub closing: Vec<ConnId>,
}

impl Turn {
    /// The turn before the first one.
    pub fn new(now: MonoNs, unix_ms: UnixMs) -> Self {
        let (output, closing) = (Output::default(), Vec::new());
        Self { now, unix_ms, inputs: 0, has_pause_changed: false, output, closing }
    }

    /// A turn begins at this time.
    pub fn begin(&mut self, now: MonoNs, unix_ms: UnixMs) {
        self.now = now;
        self.unix_ms = unix_ms;
        self.inputs = 0;
    }

    /// A connection has sent something.
    #[inline]
    pub fn note_input(&mut self) {
        self.inputs += 1;
    }

    /// How many connections have sent something.
    #[inline]
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Monotonic time at which it began.
    #[inline]
    pub fn now(&self) -> MonoNs {
        self.now
    }

    /// Wall clock at which it began.
    #[inline]
    pub fn unix_ms(&self) -> UnixMs {
        self.unix_ms
    }

    /// CLIENT PAUSE was changed: sessions which may run again are woken at the end of the turn.
    pub fn mark_pause_changed(&mut self) {
        self.has_pause_changed = true;
    }

    /// True once after [`Turn::mark_pause_changed`].
    pub fn take_pause_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_pause_changed)
    }
}
