//! *One thread owns the data.* Requests reach it as messages, and its replies go back as messages.
//! With `--front threads` each connection has a thread that asks and waits, request by request;
//! with `--front loops` the connections are on `--threads` event loops, which do not wait. However
//! many threads stand in front, one executes, and two wake-ups are paid per request or, in a loop,
//! per batch.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use resp::{Args, OutBuf, OwnedRequest, Proto};

use super::blocking::{converse, serve_each};
use super::commands::execute;
use super::context::{Context, Serve};
use super::event_loops::deal;
use super::options::Front;
use super::reactor::{Inbox, Mail, Reactor, Token};
use super::session::{Executor, RespSession, Step};
use super::table::{OWNED, Table};

/// Name of the thread that owns the data.
const WRITER: &str = "writer";

/// Makes it ready to run.
pub fn prepare(context: &Arc<Context>) -> io::Result<Serve> {
    // Bounded by its senders: a thread asks once at a time, a loop `DEFERRED_MAX` times per
    // connection.
    let (to_writer, requests) = channel();
    if context.options.front == Front::Threads {
        return Ok(Box::new(|context| {
            beside_writer(context, requests, || {
                // The writer ends with the last sender, and that with the last connection.
                let to_writer = to_writer;
                serve_each(context, |fd| {
                    converse(context, fd, RespSession::new(Asking::new(to_writer.clone())));
                });
            });
        }));
    }
    let reactors = (0..context.loops())
        .map(|_| reactor(context, &to_writer))
        .collect::<io::Result<Vec<_>>>()?;
    Ok(Box::new(|context| beside_writer(context, requests, || deal(context, reactors))))
}

/// Runs `front` beside the thread that owns the table; that one ends with the last sender.
fn beside_writer(context: &Context, requests: Receiver<Message>, front: impl FnOnce()) {
    thread::scope(|scope| {
        let writer = thread::Builder::new().name(WRITER.to_owned());
        let writer = writer.spawn_scoped(scope, move || own(context, requests));
        writer.expect("without its writer there is no model");
        front();
    });
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

fn own(context: &Context, requests: Receiver<Message>) {
    let table = Table::new(OWNED);
    for Message { request, proto, answer } in requests {
        let mut bytes = OutBuf::new();
        execute(request.args(), proto, &table, Some(context), &mut bytes);
        match answer {
            // The thread that asked may have ended meanwhile.
            Answer::Thread(asker) => drop(asker.send(bytes)),
            Answer::Loop(inbox, to) => inbox.post(Mail::Reply { to, bytes }),
        }
    }
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
