//! *One event loop.* One thread polls all connections and executes what they bring. Its data needs
//! no lock, a poll that returns many events costs as much as one that returns one, and a second
//! core is of no use to it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::context::Context;
use super::table::OWNED;

/// Starts it.
pub fn start(context: &Arc<Context>) -> io::Result<JoinHandle<()>> {
    super::event_loops::start_loops(context, 1, OWNED)
}
