//! The models whose event loops execute what they read, and dealing connections out to loops.

use std::io;
use std::sync::Arc;
use std::thread;

use super::accept::accepted;
use super::commands::Local;
use super::context::Context;
use super::reactor::{Inbox, Mail, Reactor, Token};
use super::session::{RespSession, Session};
use super::table::{OWNED, SHARED, Table};

/// *One event loop.* One thread polls all connections and executes what they bring. Its data needs
/// no lock, a poll that returns many events costs as much as one that returns one, and a second
/// core is of no use to it.
pub fn one(context: &Arc<Context>) -> io::Result<impl FnOnce(&Arc<Context>) + Send + use<>> {
    loops(context, 1, OWNED)
}

/// *Several event loops.* The acceptor deals connections out to `--threads` event loops, which
/// share one table under its locks: the thread that reads a request executes it.
pub fn several(context: &Arc<Context>) -> io::Result<impl FnOnce(&Arc<Context>) + Send + use<>> {
    loops(context, context.loops(), SHARED)
}

fn loops(
    context: &Arc<Context>,
    loops: usize,
    shards: usize,
) -> io::Result<impl FnOnce(&Arc<Context>) + Send + use<>> {
    let table = Arc::new(Table::new(shards));
    let reactor = |_| {
        let executor = Local::new(context, &table);
        Reactor::new(context, move |_: &_, _| RespSession::new(executor.clone()))
    };
    let reactors = (0..loops).map(reactor).collect::<io::Result<Vec<_>>>()?;
    Ok(|context: &Arc<Context>| deal(context, reactors))
}

/// Runs event loops, each on a thread of its own, and deals the connections out to them in turn.
pub fn deal<S, F>(context: &Context, reactors: Vec<Reactor<S, F>>)
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
