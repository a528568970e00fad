//! *One thread owns the data.* Requests reach it as messages, and its replies go back as messages.
//! With `--front threads` each connection has a thread that asks and waits, request by request;
//! with `--front loops` the connections are on `--threads` event loops, which do not wait. However
//! many threads stand in front, one executes, and two wake-ups are paid per request or, in a loop,
//! per batch.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle, Scope};

use clap::ValueEnum;
use resp::{Args, OutBuf, OwnedRequest, Proto};

use super::blocking::{STACK_BYTES, converse};
use super::commands::execute;
use super::context::Context;
use super::event_loops;
use super::listen::accepted;
use super::reactor::{Inbox, Mail, Reactor, Token};
use super::session::{Executor, RespSession, Step};
use super::table::{OWNED, Table};

/// Name of the thread that owns the data.
const WRITER: &str = "writer";

/// Who reads the connections of a single writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Front {
    /// A thread for each connection.
    Threads,
    /// Event loops.
    Loops,
}

/// Starts it.
pub fn start(context: &Arc<Context>) -> io::Result<JoinHandle<()>> {
    // Bounded by its senders: a thread asks once at a time, a loop `DEFERRED_MAX` times per
    // connection.
    let (to_writer, requests) = channel();
    let shared = Arc::clone(context);
    let writer = move || {
        let table = Table::new(OWNED);
        own(&table, &shared, &requests);
    };
    match context.options.front {
        Front::Threads => {
            let context = Arc::clone(context);
            super::spawn("acceptor", move || threads(&context, to_writer, writer))
        }
        Front::Loops => {
            let reactors = (0..context.loops())
                .map(|_| reactor(context, &to_writer))
                .collect::<io::Result<Vec<_>>>()?;
            drop(to_writer);
            let context = Arc::clone(context);
            super::spawn("acceptor", move || {
                thread::scope(|scope| {
                    spawn_writer(scope, writer);
                    event_loops::run(&context, reactors);
                });
            })
        }
    }
}

/// A request and where its reply goes.
struct Message {
    request: OwnedRequest,
    proto: Proto,
    answer: Answer,
}

enum Answer {
    Thread(Sender<OutBuf>),
    Loop(Arc<Inbox>, Token),
}

fn spawn_writer<'s>(scope: &'s Scope<'s, '_>, writer: impl FnOnce() + Send + 's) {
    let spawned = thread::Builder::new().name(WRITER.to_owned()).spawn_scoped(scope, writer);
    spawned.expect("without its writer there is no model");
}

/// The one who owns the table: executes until nobody can ask any more.
fn own(table: &Table, context: &Context, requests: &Receiver<Message>) {
    for Message { request, proto, answer } in requests {
        let mut bytes = OutBuf::new();
        execute(request.args(), proto, table, context, &mut bytes);
        match answer {
            // Whoever asked may have ended meanwhile.
            Answer::Thread(asker) => drop(asker.send(bytes)),
            Answer::Loop(inbox, to) => inbox.post(Mail::Reply { to, bytes }),
        }
    }
}

/// The writer, and a thread per connection in front of it.
fn threads(context: &Context, to_writer: Sender<Message>, writer: impl FnOnce() + Send) {
    thread::scope(|scope| {
        spawn_writer(scope, writer);
        for fd in accepted(context) {
            let session = RespSession::new(Asking::new(to_writer.clone()));
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            // If there is no further thread, the connection is closed: it went with the closure.
            let _ = thread.spawn_scoped(scope, move || converse(context, fd, session));
        }
        drop(to_writer);
    });
}

/// Asks the writer and waits.
struct Asking {
    to_writer: Sender<Message>,
    to_me: Sender<OutBuf>,
    answers: Receiver<OutBuf>,
}

impl Asking {
    fn new(to_writer: Sender<Message>) -> Self {
        let (to_me, answers) = channel();
        Self { to_writer, to_me, answers }
    }
}

impl Executor for Asking {
    fn execute(&mut self, args: Args<'_>, proto: Proto, out: &mut OutBuf) -> Step {
        let request = OwnedRequest::new(args);
        let answer = Answer::Thread(self.to_me.clone());
        if self.to_writer.send(Message { request, proto, answer }).is_err() {
            return Step::End;
        }
        let Ok(reply) = self.answers.recv() else { return Step::End };
        out.bytes.extend_from_slice(&reply.bytes);
        Step::Replied
    }
}

/// An event loop in front of the writer.
fn reactor(
    context: &Arc<Context>,
    to_writer: &Sender<Message>,
) -> io::Result<Reactor<RespSession<Posting>, impl Open + use<>>> {
    let to_writer = to_writer.clone();
    Reactor::new(context, move |inbox: &Arc<Inbox>, token| {
        let (to_writer, inbox) = (to_writer.clone(), Arc::clone(inbox));
        RespSession::new(Posting { to_writer, inbox, token })
    })
}

/// What opens the conversations of such a loop.
trait Open: FnMut(&Arc<Inbox>, Token) -> RespSession<Posting> + Send {}
impl<F: FnMut(&Arc<Inbox>, Token) -> RespSession<Posting> + Send> Open for F {}

/// Asks the writer and goes on.
struct Posting {
    to_writer: Sender<Message>,
    inbox: Arc<Inbox>,
    token: Token,
}

impl Executor for Posting {
    fn execute(&mut self, args: Args<'_>, proto: Proto, _: &mut OutBuf) -> Step {
        let request = OwnedRequest::new(args);
        let answer = Answer::Loop(Arc::clone(&self.inbox), self.token);
        match self.to_writer.send(Message { request, proto, answer }) {
            Ok(()) => Step::Deferred,
            Err(_) => Step::End,
        }
    }
}
