//! *A thread per connection.* The kernel's scheduler is the event loop: a thread sleeps in its read
//! until its client sends. Every request that finds its thread asleep costs a wake-up, and every
//! connection costs a stack.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::blocking::{STACK_BYTES, converse};
use super::context::Context;
use super::executor::Local;
use super::listen::accepted;
use super::session::RespSession;
use super::table::{SHARED, Table};

/// Starts it.
pub fn start(context: Arc<Context>) -> io::Result<JoinHandle<()>> {
    super::spawn("acceptor", move || {
        let table = Arc::new(Table::new(SHARED));
        thread::scope(|scope| {
            for fd in accepted(&context) {
                let session = RespSession::new(Local::new(&context, &table));
                let context = &*context;
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                // If there is no further thread, the connection is closed: it went with the
                // closure.
                let _ = thread.spawn_scoped(scope, move || converse(context, fd, session));
            }
        });
    })
}
