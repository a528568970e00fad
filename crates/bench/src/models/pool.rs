//! *A fixed pool of threads.* Each of `--threads` takes a connection from the queue and serves it
//! to its end, so with as many connections as threads nobody else is served: a pool for connections
//! must be as large as the number of connections, and then it is a thread per connection.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::fd::OwnedFd;

use super::blocking::{STACK_BYTES, converse};
use super::context::Context;
use super::executor::Local;
use super::listen::accepted;
use super::session::RespSession;
use super::table::{SHARED, Table};

/// Threads unless asked otherwise.
pub const THREADS_DEFAULT: usize = 16;
/// Connections that wait for a thread; the others wait in the kernel's queue.
pub const WAITING_MAX: usize = 16 << 10;

/// Starts it.
pub fn start(context: Arc<Context>) -> io::Result<JoinHandle<()>> {
    let threads = context.options.threads.unwrap_or(THREADS_DEFAULT);
    super::spawn("acceptor", move || {
        let table = Arc::new(Table::new(SHARED));
        let (queue, waiting) = sync_channel(WAITING_MAX);
        let waiting = Mutex::new(waiting);
        thread::scope(|scope| {
            for _ in 0..threads {
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                let spawned = thread.spawn_scoped(scope, || serve(&context, &table, &waiting));
                spawned.expect("a pool has all its threads or is none");
            }
            for fd in accepted(&context) {
                queue.send(fd).expect("the receiver lives as long as this scope");
            }
            drop(queue);
        });
    })
}

/// One thread of the pool.
fn serve(context: &Arc<Context>, table: &Arc<Table>, waiting: &Mutex<Receiver<OwnedFd>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(fd) = next else { return };
        converse(context, fd, RespSession::new(Local::new(context, table)));
    }
}
