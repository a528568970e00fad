//! *One connection after the other.* The thread that accepts serves what it accepted to its end,
//! and only then accepts the next: the second client connects (the kernel's queue takes it), sends,
//! and waits.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::blocking::converse;
use super::context::Context;
use super::executor::Local;
use super::listen::accepted;
use super::session::RespSession;
use super::table::{OWNED, Table};

/// Starts it.
pub fn start(context: Arc<Context>) -> io::Result<JoinHandle<()>> {
    super::spawn("sequential", move || {
        let table = Arc::new(Table::new(OWNED));
        for fd in accepted(&context) {
            converse(&context, fd, RespSession::new(Local::new(&context, &table)));
        }
    })
}
