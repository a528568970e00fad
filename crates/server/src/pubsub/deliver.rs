//! Messages become output, in bounded steps. Each is written once for each protocol into the arena
//! of the worker; the segments of all receivers refer to these bytes.

use crate::pubsub::inbox::{Inbox, Post, Published, To, What};
use crate::pubsub::local::Local;
use crate::pubsub::names::Name;
use crate::pubsub::queue::Queue;
use crate::pubsub::subscribers::Subscriber;
use crate::pubsub::wire::write_message;
use crate::sessions::output::{ARENA_FLUSH_BYTES, Hold};
use crate::sessions::session::Session;
use crate::tracking::deliver::Way;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use command::ops::Subject;
use driver::{ConnId, Driver};
use resp::{OutBuf, Proto};
use std::ops::Range;

/// Delivery takes about so much of a turn, the sends at its end included; overshot by one message
/// to one client. The rest is delivered in the next turns.
pub(super) const TURN_NS: u64 = 1_500_000;
/// What a send takes, about.
pub(super) const SEND_NS: u64 = 4_500;
/// How many bytes are sent in a nanosecond, about.
const BYTES_PER_NS: u64 = 4;
/// What it takes to find the receivers of a message, about.
const FIND_NS: u64 = 200;
/// What it takes to look at one of them, about.
const LOOK_NS: u64 = 10;

/// One pass over a message: those who subscribe to its channel or to a pattern that matches, or
/// who are listed.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    /// The message.
    pub published: &'a Arc<Published>,
    /// Who receives it.
    to: Receivers<'a>,
}

/// Who receives a message in one pass.
#[derive(Clone, Copy)]
enum Receivers<'a> {
    /// Those who subscribe to its channel.
    OfChannel,
    /// Those who subscribe to a pattern.
    OfPattern(&'a Name),
    /// These.
    Listed(&'a [Subscriber]),
}

impl<'a> Pass<'a> {
    /// Those of a post, in the order in which a session gets them.
    pub fn all(post: &'a Post) -> impl Iterator<Item = Self> {
        let (is_direct, patterns, list): (_, &[Name], _) = match &post.to {
            To::Subscribers { is_direct, patterns } => (*is_direct, patterns, None),
            To::Listed(list) => (false, &[], Some(&**list)),
        };
        let direct = is_direct.then_some(Receivers::OfChannel);
        let first = direct.or(list.map(Receivers::Listed));
        let all = first.into_iter().chain(patterns.iter().map(Receivers::OfPattern));
        all.map(|to| Self { published: &post.published, to })
    }

    /// What its receivers subscribe to, if they subscribe.
    pub(super) fn name(self) -> Option<(Subject, &'a Name)> {
        match (self.to, &self.published.what) {
            (Receivers::OfPattern(pattern), _) => Some((Subject::Pattern, pattern)),
            (_, What::Message { subject, channel, .. }) => Some((*subject, channel)),
            (_, What::Touched(_)) => None,
        }
    }

    /// Who subscribes or is listed, of those with tokens in a range.
    fn subscribers(self, local: &'a Local, tokens: Range<u64>) -> &'a [Subscriber] {
        let list = match self.to {
            Receivers::Listed(list) => list,
            _ => self.name().map_or(&[][..], |(subject, name)| local.subscribers(subject, name)),
        };
        let below = |token: u64| list.partition_point(|s| s.conn.token() < token);
        &list[below(tokens.start)..below(tokens.end)]
    }

    /// One of them.
    pub fn subscriber(self, local: &'a Local, conn: ConnId) -> Option<Subscriber> {
        let token = conn.token();
        self.subscribers(local, token..token.saturating_add(1)).first().copied()
    }

    /// How it reaches this subscriber, whose session of this worker this is.
    pub fn way_to(self, s: &Session, subscriber: Subscriber, worker: usize) -> Way {
        let published = &**self.published;
        if let What::Touched(touched) = &published.what {
            return touched.way_to(s, published.from, worker);
        }
        let is_new = subscriber.since <= published.epoch;
        let has_it = published.skips_publisher && published.from == (worker, subscriber.conn);
        if is_new && !has_it { Way::Here } else { Way::Nowhere }
    }

    /// Appends the message as these receivers get it.
    pub fn write(self, out: &mut OutBuf, proto: Proto) {
        match &self.published.what {
            What::Message { subject, channel, text } => {
                let of = match self.to {
                    Receivers::OfPattern(pattern) => (Subject::Pattern, Some(pattern.text())),
                    _ => (*subject, None),
                };
                write_message(out, proto, of, channel.text(), text);
            }
            What::Touched(touched) => touched.write(out, proto),
        }
    }
}

impl Core {
    fn inbox(&self) -> &Inbox {
        self.shared.pubsub.inbox(self.id)
    }

    /// True if messages wait for subscribers of this worker.
    #[inline]
    pub(crate) fn has_posts(&self) -> bool {
        self.pubsub.has_posts(self.inbox())
    }

    /// Moves what is in the inbox into the queue.
    pub(super) fn take_posts(&mut self) {
        let shared = Arc::clone(&self.shared);
        self.pubsub.queue.take_from(shared.pubsub.inbox(self.id));
    }

    /// A turn begins.
    #[inline]
    pub(crate) fn begin_deliveries(&mut self) {
        self.pubsub.budget_ns = TURN_NS;
    }

    /// A message is delivered: publishers that wait for room go on.
    fn end_post(&self, post: &Post) {
        for (worker, conn) in self.inbox().delivered(post) {
            self.shared.post(worker, Message::Retry(conn));
        }
    }

    /// Delivers messages until enough is in the arena, or the part of this turn is used up. Returns
    /// whether there is more.
    fn deliver_some(&mut self, out: &mut OutBuf) -> bool {
        self.take_posts();
        let full = out.bytes.len() + ARENA_FLUSH_BYTES;
        let mut queue = std::mem::take(&mut self.pubsub.queue);
        while !queue.is_empty() && out.bytes.len() < full && self.pubsub.budget_ns > 0 {
            self.deliver_run(out, &mut queue);
        }
        self.pubsub.queue = queue;
        self.has_posts() // one client may be told instead of another, at this worker
    }

    /// Delivers the first messages to as many of their receivers as this turn allows, at least one.
    fn deliver_run(&mut self, out: &mut OutBuf, queue: &mut Queue) {
        let (run, first, from) = queue.begin();
        if let To::Listed(list) = &run[0].to {
            self.look_for_strays(&run, list);
        }
        let to = self.chunk_end(&run, from);
        self.spend(FIND_NS * run.len() as u64); // also if all receivers are gone
        // By protocol, so that what one client gets is one range of bytes.
        for proto in self.protocols_of(run[0], from..to) {
            for (number, post) in (first..).zip(&run) {
                for pass in Pass::all(post) {
                    let ns = self.deliver_pass(out, pass, proto, (number, from..to));
                    self.spend(ns);
                }
            }
        }
        if to == u64::MAX {
            queue.end().for_each(|post| self.end_post(&post));
        } else {
            queue.serve(to);
        }
    }

    fn spend(&mut self, ns: u64) {
        self.pubsub.budget_ns = self.pubsub.budget_ns.saturating_sub(ns);
    }

    /// Messages for the client of a redirection which is not here go after it.
    fn look_for_strays(&mut self, run: &[&Post], list: &[Subscriber]) {
        let [only] = list else { return };
        if self.session_mut(only.conn).is_none() {
            for post in run {
                self.note_stray(&post.published);
            }
        }
    }

    /// The token before which the receivers of a run get it in this step; the greatest token if all
    /// do.
    fn chunk_end(&self, run: &[&Post], from: u64) -> u64 {
        let bytes: usize = run.iter().map(|post| post.published.what.len()).sum();
        let of_pass = SEND_NS + bytes as u64 / BYTES_PER_NS;
        let most = self.pubsub.budget_ns / (of_pass * run[0].passes().max(1) as u64);
        let end = |pass: Pass<'_>| {
            let list = pass.subscribers(&self.pubsub, from..u64::MAX);
            list.get(most.max(1) as usize).map(|subscriber| subscriber.conn.token())
        };
        Pass::all(run[0]).filter_map(end).min().unwrap_or(u64::MAX)
    }

    /// The protocols that these receivers speak.
    fn protocols_of(&self, post: &Post, tokens: Range<u64>) -> impl Iterator<Item = Proto> + use<> {
        let mut spoken = [false; 2];
        for pass in Pass::all(post) {
            for subscriber in pass.subscribers(&self.pubsub, tokens.clone()) {
                let session = self.sessions.get(subscriber.conn.index as usize);
                if let Some(s) = session.and_then(|s| s.as_deref()) {
                    spoken[s.proto as usize] = true;
                }
            }
        }
        [Proto::Resp2, Proto::Resp3].into_iter().filter(move |proto| spoken[*proto as usize])
    }

    /// Writes a message for its receivers that speak this protocol, once, and lets their output
    /// refer to it. Where a reply is under way, it waits. Returns about what this takes,
    /// nanoseconds.
    fn deliver_pass(
        &mut self,
        out: &mut OutBuf,
        pass: Pass<'_>,
        proto: Proto,
        (number, tokens): (u64, Range<u64>),
    ) -> u64 {
        let mut receivers = std::mem::take(&mut self.pubsub.receivers);
        let Self { pubsub, sessions, turn, id, .. } = self;
        let (mut waiting, mut redirected) = (Vec::new(), Vec::new());
        let subscribers = pass.subscribers(pubsub, tokens);
        let looked = subscribers.len() as u64;
        for subscriber in subscribers {
            let conn = subscriber.conn;
            let session = sessions.get(conn.index as usize).and_then(|s| s.as_deref());
            let speaks = |s: &&Session| s.conn == conn && s.proto == proto && !s.close_after_reply;
            let Some(s) = session.filter(speaks) else { continue };
            if s.told_to >= number {
                continue;
            }
            match pass.way_to(s, *subscriber, *id) {
                Way::Nowhere => {}
                Way::Redirected => redirected.push(conn),
                Way::Here if s.pushes.is_some() || s.is_streaming() => waiting.push(conn),
                Way::Here => receivers.push(conn.index),
            }
        }
        let count = waiting.len() + receivers.len();
        let segments = turn.output.segments.len();
        if !receivers.is_empty() {
            turn.output.close(out);
            let from = out.position();
            pass.write(out, proto);
            turn.output.share(&receivers, (from, out.position()), pass.published.hold);
            receivers.clear();
        }
        let sends = turn.output.segments.len() - segments + waiting.len() + redirected.len();
        self.pubsub.receivers = receivers;
        for conn in waiting {
            self.queue_message(conn, pass);
        }
        for conn in redirected {
            self.redirect(conn, pass.published);
        }
        let bytes = (count * pass.published.what.len()) as u64;
        FIND_NS + looked * LOOK_NS + sends as u64 * SEND_NS + bytes / BYTES_PER_NS
    }

    fn queue_message(&mut self, conn: ConnId, pass: Pass<'_>) {
        let session = self.session_mut(conn).filter(|s| !s.close_after_reply);
        let Some(proto) = session.map(|s| s.proto) else { return };
        let mut bytes = OutBuf::new();
        pass.write(&mut bytes, proto);
        self.queue_push(conn, bytes, pass.published.hold);
    }

    /// Bytes which are no reply wait in their session until [`Core::write_pushes`].
    pub(crate) fn queue_push(&mut self, conn: ConnId, bytes: OutBuf, hold: Hold) {
        let Some(s) = self.session_mut(conn) else { return };
        let is_first = s.pushes.is_none();
        s.pushes.get_or_insert_default().push(bytes, hold);
        if is_first {
            self.pubsub.queued.push(conn);
            self.schedule_delivery();
        }
    }

    /// Writes what waits in a session, unless a reply of it is being written in steps.
    pub(crate) fn write_pushes(&mut self, out: &mut OutBuf, conn: ConnId) {
        let Some(session) = self.session_mut(conn).filter(|s| !s.is_streaming()) else { return };
        let Some(pushes) = session.pushes.take() else { return };
        self.turn.output.open(conn.index, out);
        for (chunk, hold, _) in pushes.chunks {
            out.append(chunk);
            self.turn.output.hold_at(hold);
        }
    }

    /// Tells other workers of the messages that were appended to their inboxes.
    pub(crate) fn tell_touched(&mut self) {
        for worker in std::mem::take(&mut self.pubsub.touched) {
            if worker != self.id {
                self.shared.announce(worker);
            }
        }
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Delivers what is due, before the turn sends: once for all its windows, so that the messages
    /// of a long pipeline leave together.
    #[inline]
    pub(crate) fn deliver_due(&mut self) {
        if self.core.pubsub.is_due {
            self.deliver();
        }
    }

    #[cold]
    fn deliver(&mut self) {
        self.core.pubsub.is_scheduled = false;
        self.core.pubsub.is_due = false;
        self.core.send_strays();
        self.core.tell_touched();
        loop {
            let (_, out) = self.driver.io();
            let has_more = self.core.deliver_some(out);
            self.write_queued();
            if !has_more {
                return self.core.tell_touched();
            }
            if self.core.pubsub.budget_ns == 0 {
                self.core.tell_touched();
                return self.core.shared.announce(self.core.id); // it goes on in the next turn
            }
            self.run_window(); // sending may end a connection, so its commands run first
            self.flush();
        }
    }

    /// Writes what waits in sessions, but behind the replies that are written in steps.
    fn write_queued(&mut self) {
        for conn in std::mem::take(&mut self.core.pubsub.queued) {
            if self.core.session_mut(conn).is_some_and(|s| s.is_streaming()) {
                self.on_unsent(conn); // it counts against its limit
            } else {
                self.release_pushes(conn);
            }
        }
    }
}
