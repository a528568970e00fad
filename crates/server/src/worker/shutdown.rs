//! The end of a worker.

use base::MonoNs;
use driver::ListenerId;

/// How far a worker has come with ending.
pub struct Shutdown {
    /// What it accepts on until then.
    pub listeners: Vec<ListenerId>,
    /// Since when it accepts and executes nothing.
    pub since: Option<MonoNs>,
    /// The worker has ended.
    pub is_done: bool,
}

impl Shutdown {
    /// None is under way.
    pub fn new(listeners: Vec<ListenerId>) -> Self {
        Self { listeners, since: None, is_done: false }
    }

    /// True once the worker executes nothing any more.
    pub fn has_begun(&self) -> bool {
        self.since.is_some()
    }
}
