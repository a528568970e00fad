//! The models whose threads wait for their connections. They differ in how many threads there are.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fd::OwnedFd;

use super::accept::accepted;
use super::blocking::{STACK_BYTES, converse, serve_each};
use super::commands::Local;
use super::context::Context;
use super::session::RespSession;
use super::table::{OWNED, SHARED, Table};

/// Threads of a pool unless asked otherwise.
const POOL_THREADS_DEFAULT: usize = 16;
/// Connections that wait for a thread of a pool; the others wait in the kernel's queue.
const POOL_WAITING_MAX: usize = 16 << 10;

/// *One connection after the other.* The thread that accepts serves what it accepted to its end,
/// and only then accepts the next: the second client connects (the kernel's queue takes it), sends,
/// and waits.
pub fn sequential(context: &Arc<Context>) {
    let table = Arc::new(Table::new(OWNED));
    for fd in accepted(context) {
        converse(context, fd, RespSession::new(Local::new(context, &table)));
    }
}

/// *A thread per connection.* The kernel's scheduler is the event loop: a thread sleeps in its read
/// until its client sends. Every request that finds its thread asleep costs a wake-up, and every
/// connection costs a stack.
pub fn per_connection(context: &Arc<Context>) {
    let table = Arc::new(Table::new(SHARED));
    serve_each(context, |fd| {
        converse(context, fd, RespSession::new(Local::new(context, &table)));
    });
}

/// *A fixed pool of threads.* Each of `--threads` takes a connection from the queue and serves it
/// to its end, so with as many connections as threads nobody else is served: a pool for connections
/// must be as large as the number of connections, and then it is a thread per connection.
pub fn pool(context: &Arc<Context>) {
    let table = Arc::new(Table::new(SHARED));
    let (queue, waiting) = sync_channel(POOL_WAITING_MAX);
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        for _ in 0..context.options.threads.unwrap_or(POOL_THREADS_DEFAULT) {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let spawned = thread.spawn_scoped(scope, || serve_queued(context, &table, &waiting));
            spawned.expect("a pool has all its threads or is none");
        }
        for fd in accepted(context) {
            queue.send(fd).expect("the receiver lives as long as this scope");
        }
        drop(queue);
    });
}

/// One thread of a pool.
fn serve_queued(context: &Arc<Context>, table: &Arc<Table>, waiting: &Mutex<Receiver<OwnedFd>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(fd) = next else { return };
        converse(context, fd, RespSession::new(Local::new(context, table)));
    }
}
