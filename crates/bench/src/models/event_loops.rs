//! *Several event loops.* The acceptor deals connections out to `--threads` event loops, which
//! share one table under its locks: the thread that reads a request executes it.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::context::Context;
use super::executor::Local;
use super::listen::accepted;
use super::reactor::{Inbox, Mail, Reactor, Token};
use super::session::{RespSession, Session};
use super::table::{SHARED, Table};

/// Starts it.
pub fn start(context: &Arc<Context>) -> io::Result<JoinHandle<()>> {
    start_loops(context, context.loops(), SHARED)
}

/// Starts so many loops on a table with so many shards.
pub fn start_loops(
    context: &Arc<Context>,
    loops: usize,
    shards: usize,
) -> io::Result<JoinHandle<()>> {
    let table = Arc::new(Table::new(shards));
    let reactors = (0..loops)
        .map(|_| {
            let executor = Local::new(context, &table);
            Reactor::new(context, move |_: &_, _| RespSession::new(executor.clone()))
        })
        .collect::<io::Result<Vec<_>>>()?;
    let context = Arc::clone(context);
    super::spawn("acceptor", move || run(&context, reactors))
}

/// Runs event loops, each on a thread of its own, and deals the connections out to them in turn.
pub fn run<S, F>(context: &Context, reactors: Vec<Reactor<S, F>>)
where
    S: Session + Send,
    F: FnMut(&Arc<Inbox>, Token) -> S + Send,
{
    let inboxes: Vec<Arc<Inbox>> = reactors.iter().map(Reactor::inbox).collect();
    thread::scope(|scope| {
        for reactor in reactors {
            scope.spawn(|| reactor.run());
        }
        for (fd, inbox) in accepted(context).zip(inboxes.iter().cycle()) {
            inbox.post(Mail::Connection(fd));
        }
    });
}
