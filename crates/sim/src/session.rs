//! A client that speaks RESP: it connects, greets, sends what its family asks, gives each reply to
//! the family, and connects again when the connection has ended.

use crate::clients::model::Want;
use crate::closings::{self, Closing};
use crate::host::server_addr;
use crate::link::{Link, Turn, bytes_of_bulk};
use crate::world::{Phase, World};
use client::{Decoder, Error, Value, encode};
use driver::sim::Ending;
use std::collections::VecDeque;

/// How long until the next try to connect, at most.
const RECONNECT_NS_MAX: u64 = 20_000_000;

/// Somebody who does something in the world.
pub trait Actor {
    /// Does what is possible now. Returns when it wants to act again, unless bytes arrive before.
    fn turn(&mut self, world: &mut World) -> u64;
    /// True once it has left.
    fn has_left(&self) -> bool;
    /// What it waits for, for the trace of a run that does not end.
    fn state(&self) -> String;
    /// The server was killed: what it held is lost.
    fn on_restart(&mut self, world: &mut World);
    /// What must be true of the data at the end, once it has left.
    fn questions(&mut self) -> Vec<Question> {
        Vec::new()
    }
}

/// Something that is asked when all have left.
#[derive(Debug)]
pub struct Question {
    /// The command.
    pub args: Vec<Vec<u8>>,
    /// The reply that must come.
    pub want: Want,
}

/// A request and what its family knows of it.
pub struct Request<A> {
    /// The command.
    pub args: Vec<Vec<u8>>,
    /// What the family asks with it.
    pub ask: A,
    /// The reply may take so much longer, because the command says so; `u64::MAX`: for ever.
    pub wait_ns: u64,
}

impl<A> Request<A> {
    /// A request that is answered at once.
    pub fn new(args: Vec<Vec<u8>>, ask: A) -> Self {
        Self { args, ask, wait_ns: 0 }
    }

    /// The words of `text`, separated by spaces.
    pub fn words(text: &str, ask: A) -> Self {
        Self::new(text.split(' ').map(|word| word.as_bytes().to_vec()).collect(), ask)
    }
}

/// When a request was sent and when its reply was there, in ticks and nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The tick of the request.
    pub call: u64,
    /// The tick of the reply.
    pub ret: u64,
    /// The time of the request.
    pub call_ns: u64,
    /// The time of the reply.
    pub ret_ns: u64,
    /// The server had accepted the connection by this time ([`Link::accepted_ns`]).
    pub accepted_ns: u64,
}

/// What clients of one kind ask, and what must be answered.
pub trait Family {
    /// What it remembers of a request.
    type Ask;

    /// The next requests, sent together; empty: none now.
    fn next(&mut self, world: &mut World) -> Vec<Request<Self::Ask>>;
    /// The reply to a request. An error is reported here too.
    fn answered(&mut self, world: &mut World, ask: Self::Ask, reply: Value, span: Span);
    /// The connection ended without a reply. `until`: the tick after which the request can take no
    /// effect any more.
    fn lost(&mut self, world: &mut World, ask: Self::Ask, call: u64, until: u64);
    /// True if its next requests follow without a rest.
    fn is_urgent(&self) -> bool {
        false
    }
    /// The connection is over, with everything that belonged to it, for this reason. Called after
    /// [`Family::lost`] of each request.
    fn disconnected(&mut self, _why: Closing) {}
    /// The server was killed.
    fn on_restart(&mut self, _world: &mut World) {}
    /// What must be true of the data at the end.
    fn questions(&self) -> Vec<Question> {
        Vec::new()
    }
}

struct Pending<A> {
    /// `None`: a part of the greeting.
    ask: Option<A>,
    call: u64,
    call_ns: u64,
    wait_ns: u64,
    bytes: usize,
}

/// A client of a family.
pub struct Session<F: Family> {
    who: u32,
    family: F,
    link: Option<Link>,
    pending: VecDeque<Pending<F::Ask>>,
    /// It was greeted, and may make requests.
    is_ready: bool,
    /// The server still loads its data.
    is_refused: bool,
    /// It speaks RESP3.
    resp3: bool,
    /// Not before then it connects, or makes its next requests.
    not_before_ns: u64,
    has_left: bool,
    /// The incarnation of the server that it connected to.
    epoch: u32,
    /// Bytes of the last try to decode, which was too early.
    tried: usize,
    /// Bytes that the next reply has at least.
    needed: usize,
    /// Its address, as the server shows it.
    addr: String,
    questions: Vec<Question>,
}

impl<F: Family> Session<F> {
    /// The client with this number.
    pub fn new(world: &mut World, who: u32, family: F) -> Self {
        let not_before_ns = world.soon(world.plan.think_ns_max);
        let resp3 = world.plan.resp3 && who.is_multiple_of(2);
        let (pending, link) = (VecDeque::new(), None);
        Self {
            who,
            family,
            link,
            pending,
            is_ready: false,
            is_refused: false,
            resp3,
            not_before_ns,
            has_left: false,
            epoch: 0,
            tried: 0,
            needed: 0,
            addr: String::new(),
            questions: Vec::new(),
        }
    }

    fn connect(&mut self, world: &mut World) {
        self.epoch = world.epoch;
        self.link = Link::open(world, self.who, &server_addr());
        let Some(link) = &self.link else {
            self.not_before_ns = world.soon(RECONNECT_NS_MAX);
            return;
        };
        self.addr = link.addr().to_string();
        world.connected.insert(self.who, (link.addr(), None));
        if self.resp3 {
            self.send(world, &[b"HELLO".to_vec(), b"3".to_vec()], None, 0);
        }
        if world.plan.kills {
            self.send(world, &[b"CLIENT".to_vec(), b"ID".to_vec()], None, 0);
        }
        // A server that loads what was saved refuses requests; then it is tried again later.
        (self.is_ready, self.is_refused) = (world.plan.saves.is_none(), false);
        if !self.is_ready {
            self.send(world, &[b"PING".to_vec()], None, 0);
        }
    }

    fn send(&mut self, world: &mut World, args: &[Vec<u8>], ask: Option<F::Ask>, wait_ns: u64) {
        let Some(link) = &mut self.link else { return };
        let words: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let bytes = encode(&words);
        world.note(self.who, format_args!("> {}", Shown(args)));
        let (call, call_ns) = (world.tick(), world.now());
        if world.plan.counts.monitors > 0 {
            world.books.monitored.sent(&self.addr, args, call);
        }
        self.pending.push_back(Pending { ask, call, call_ns, wait_ns, bytes: bytes.len() });
        if self.pending.len() == 1 {
            link.moved_ns = link.moved_ns.max(call_ns);
        }
        link.queue(&bytes);
    }

    /// The next whole reply.
    fn reply(&mut self, world: &mut World) -> Option<Value> {
        let link = self.link.as_mut()?;
        if link.got.len() < self.needed.max(1) || link.got.len() == self.tried {
            return None;
        }
        let mut decoder = Decoder::new(&link.got[..]);
        match decoder.read() {
            Ok(value) => {
                let rest = decoder.source().len() + decoder.buffered().len();
                link.got.drain(..link.got.len() - rest);
                (self.tried, self.needed) = (0, 0);
                Some(value)
            }
            Err(Error::Closed) => {
                self.tried = link.got.len();
                self.needed = bytes_of_bulk(&link.got).unwrap_or(0);
                None
            }
            Err(other) => {
                world.fail(format!("c{}: {other}", self.who));
                None
            }
        }
    }

    fn take_replies(&mut self, world: &mut World) {
        while let Some(value) = self.reply(world) {
            world.note(self.who, format_args!("< {value:?}"));
            if matches!(value, Value::Push(_)) {
                continue;
            }
            let Some(pending) = self.pending.pop_front() else {
                world.fail(format!("c{}: a reply to no request: {value:?}", self.who));
                return;
            };
            let (ret, ret_ns) = (world.tick(), world.now());
            if world.plan.counts.monitors > 0 {
                world.books.monitored.answered(&self.addr, ret, &value);
            }
            let accepted_ns = self.link.as_ref().map_or(0, |link| link.accepted_ns);
            let Pending { call, call_ns, .. } = pending;
            let span = Span { call, ret, call_ns, ret_ns, accepted_ns };
            if world.plan.journal_may_fail() && is_refused(&value) {
                // It has taken no effect, and another connection may be luckier.
                *world.tally.entry("writes refused").or_default() += 1;
                self.is_refused = true;
                return;
            }
            match pending.ask {
                Some(ask) => self.family.answered(world, ask, value, span),
                None => self.greeted(world, &value),
            }
        }
    }

    fn greeted(&mut self, world: &mut World, value: &Value) {
        match value {
            Value::Map(_) => {}
            Value::Simple(text) if text == b"PONG" => self.is_ready = true,
            refused if refused.is_error() && !self.is_ready => {
                let is_loading = refused.as_str().is_some_and(|e| e.starts_with("LOADING "));
                if !is_loading {
                    world.fail(format!("c{}: greeted with {refused:?}", self.who));
                }
                *world.tally.entry("LOADING").or_default() += 1;
                self.is_refused = true;
            }
            Value::Integer(id) => {
                if let Some((_, known)) = world.connected.get_mut(&self.who) {
                    *known = Some(*id);
                }
            }
            other => world.fail(format!("c{}: greeted with {other:?}", self.who)),
        }
    }

    /// The connection is over: what was not answered never will be.
    fn end(&mut self, world: &mut World, by_peer: Option<Ending>) {
        let Some(link) = self.link.take() else { return };
        (self.tried, self.needed) = (0, 0);
        let gone = world.connected.remove(&self.who).map(|(addr, _)| addr);
        world.last_left_ns = world.now();
        let mut why = Closing::Client;
        if let Some(ending) = by_peer {
            world.note(self.who, format_args!("connection over: {ending:?}"));
            match closings::reason(world, &link, self.epoch) {
                Some(reason) => why = reason,
                None => world.fail(format!(
                    "c{}: the server closed a connection without a reason",
                    self.who
                )),
            }
        }
        let until = gone.and_then(|addr| world.books.killed.get(&addr.to_string()).copied());
        for pending in std::mem::take(&mut self.pending) {
            if let Some(ask) = pending.ask {
                self.family.lost(world, ask, pending.call, until.unwrap_or(u64::MAX));
            }
        }
        self.family.disconnected(why);
        self.not_before_ns = world.soon(RECONNECT_NS_MAX);
    }

    /// A reply that takes longer than it may is a stall.
    fn check_patience(&mut self, world: &mut World) -> u64 {
        let (Some(link), Some(first)) = (&self.link, self.pending.front()) else { return u64::MAX };
        if first.wait_ns == u64::MAX {
            return u64::MAX;
        }
        let since = link.moved_ns.max(first.call_ns);
        let bytes = self.pending.iter().map(|pending| pending.bytes).sum();
        let patience_ns = world.plan.patience_ns(bytes) + first.wait_ns;
        if let Some(left_ns) = world.patience_left_ns(since, patience_ns) {
            return world.now() + left_ns + 1;
        }
        let waited = (world.now() - since) / 1_000_000;
        world.fail(format!("c{}: a stall: no reply for {waited} ms", self.who));
        u64::MAX
    }

    /// Makes the next requests, or leaves.
    fn send_next(&mut self, world: &mut World) {
        let (now, depth) = (world.now(), self.pending.len() as u64);
        if world.phase == Phase::Ending {
            let waits_for_ever = |p: &Pending<F::Ask>| p.wait_ns == u64::MAX;
            if self.pending.iter().all(waits_for_ever) {
                // What it knows of a server that has died is true no longer.
                if self.epoch == world.epoch && world.is_living() {
                    self.questions = self.family.questions();
                }
                self.end(world, None);
                self.has_left = true;
            }
            return;
        }
        let is_rushed = self.family.is_urgent() || now == world.rush_ns;
        let is_resting = now < self.not_before_ns && !is_rushed;
        let is_cut = self.link.as_ref().is_none_or(|link| link.was_cut);
        if is_cut || is_resting || !self.is_ready {
            return;
        }
        if depth >= world.plan.depth_max || self.pending.iter().any(|p| p.wait_ns > 0) {
            return;
        }
        for request in self.family.next(world) {
            *world.tally.entry("requests").or_default() += 1;
            self.send(world, &request.args, Some(request.ask), request.wait_ns);
        }
        self.not_before_ns = world.soon(world.plan.think_ns_max);
    }
}

/// The append-only file cannot be written, so the request was refused.
fn is_refused(reply: &Value) -> bool {
    let text = reply.as_str().filter(|_| reply.is_error()).unwrap_or_default();
    text.starts_with("MISCONF Errors writing to the AOF file") || text.starts_with("EXECABORT")
}

impl<F: Family> Actor for Session<F> {
    fn turn(&mut self, world: &mut World) -> u64 {
        if self.has_left {
            return u64::MAX;
        }
        if self.link.is_none() {
            if world.phase == Phase::Ending {
                self.has_left = true;
                return u64::MAX;
            }
            if world.now() < self.not_before_ns {
                return self.not_before_ns;
            }
            self.connect(world);
        }
        let Some(link) = &mut self.link else { return self.not_before_ns };
        let turn = link.turn(world);
        self.take_replies(world);
        if self.is_refused {
            self.end(world, None);
            return self.not_before_ns;
        }
        match turn {
            Turn::Ended(by_peer) => {
                self.end(world, by_peer);
                self.not_before_ns
            }
            Turn::Busy => {
                self.send_next(world);
                world.now()
            }
            Turn::Idle(until) => {
                let patience = self.check_patience(world);
                let sent = self.pending.len();
                self.send_next(world);
                if self.pending.len() > sent {
                    return world.now();
                }
                let until = until.min(patience);
                if self.not_before_ns > world.now() { until.min(self.not_before_ns) } else { until }
            }
        }
    }

    fn has_left(&self) -> bool {
        self.has_left
    }

    fn state(&self) -> String {
        let unsent = self.link.as_ref().is_some_and(Link::has_unsent);
        format!("c{}: {} requests under way, unsent: {unsent}", self.who, self.pending.len())
    }

    fn on_restart(&mut self, world: &mut World) {
        self.questions.clear();
        self.family.on_restart(world);
    }

    fn questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }
}

/// A command as people write it, shortened.
struct Shown<'a>(&'a [Vec<u8>]);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, arg) in self.0.iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            write!(f, "{space}{}", arg[..arg.len().min(40)].escape_ascii())?;
            if arg.len() > 40 {
                write!(f, "..({})", arg.len())?;
            }
        }
        Ok(())
    }
}
