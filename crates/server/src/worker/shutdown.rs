//! How far a worker has come with its end (`ending.rs`).
//!
//! ```text
//! begin          accepts and executes nothing more; what goes on in steps may end
//! is_still       changes nothing more: the append-only file has all that it will get
//! is_over        that is durable, or given up (`JournalStatus::end`); held replies have left
//! is_done        replies were taken, or there was a second for it
//! ```

use base::{MonoNs, SeqNo};
use driver::ListenerId;

/// How far a worker has come with ending.
pub struct Shutdown {
    /// What it accepts on until then.
    pub listeners: Vec<ListenerId>,
    /// Since when it accepts and executes nothing.
    pub since: Option<MonoNs>,
    /// It changes nothing any more, and counts among the workers which do not.
    pub is_still: bool,
    /// When a reply was held last that the append-only file may yet release.
    pub held_at: MonoNs,
    /// At worker 0: up to where the append-only file is durable, and since when.
    pub durable: Option<(SeqNo, MonoNs)>,
    /// There: all is written, and it was asked whether the file still has its name.
    pub has_looked: bool,
    /// The worker has ended.
    pub is_done: bool,
}

impl Shutdown {
    /// None is under way.
    pub fn new(listeners: Vec<ListenerId>) -> Self {
        Self {
            listeners,
            since: None,
            is_still: false,
            held_at: MonoNs(0),
            durable: None,
            has_looked: false,
            is_done: false,
        }
    }

    /// True once the worker executes nothing any more.
    pub fn has_begun(&self) -> bool {
        self.since.is_some()
    }
}
