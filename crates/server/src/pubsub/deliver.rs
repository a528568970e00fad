//! Messages become output, in bounded steps. Each is written once for each protocol into the arena
//! of the worker; the segments of all receivers refer to these bytes.

use crate::pubsub::inbox::{Inbox, Post, Published};
use crate::pubsub::local::{Local, Subscriber};
use crate::pubsub::names::Name;
use crate::pubsub::queue::Queue;
use crate::pubsub::wire::write_message;
use crate::sessions::output::{ARENA_FLUSH_BYTES, Hold};
use crate::sessions::session::Session;
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

/// One pass over a message: those who subscribe to its channel, or to a pattern that matches.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    /// The message.
    pub published: &'a Published,
    /// The pattern; none for those who subscribe to the channel.
    pub pattern: Option<&'a Name>,
}

impl<'a> Pass<'a> {
    /// Those of a post, in the order in which a session gets them.
    pub fn all(post: &'a Post) -> impl Iterator<Item = Self> {
        let published = &*post.published;
        let direct = post.is_direct.then_some(Self { published, pattern: None });
        let of_pattern = move |name| Self { published, pattern: Some(name) };
        direct.into_iter().chain(post.patterns.iter().map(of_pattern))
    }

    /// What its receivers subscribe to.
    pub fn subject(self) -> Subject {
        if self.pattern.is_some() { Subject::Pattern } else { self.published.subject }
    }

    /// Who subscribes, of those with tokens in a range.
    fn subscribers(self, local: &Local, tokens: Range<u64>) -> &[Subscriber] {
        let name = self.pattern.unwrap_or(&self.published.channel);
        let list = local.subscribers(self.subject(), name);
        let below = |token: u64| list.partition_point(|s| s.conn.token() < token);
        &list[below(tokens.start)..below(tokens.end)]
    }

    /// Whether it reaches this subscription of a session of this worker.
    pub fn reaches(self, subscriber: Subscriber, worker: usize) -> bool {
        let Published { epoch, from, skips_publisher, .. } = *self.published;
        subscriber.since <= epoch && !(skips_publisher && from == (worker, subscriber.conn))
    }

    /// Appends the message as these receivers get it.
    pub fn write(self, out: &mut OutBuf, proto: Proto) {
        let Published { channel, text, .. } = self.published;
        let pattern = self.pattern.map(Name::text);
        write_message(out, proto, (self.subject(), pattern), channel.text(), text);
    }
}

impl Core {
    fn inbox(&self) -> &Inbox {
        self.shared.pubsub.inbox(self.id)
    }

    /// True if messages wait for subscribers of this worker.
    #[inline]
    pub(crate) fn has_posts(&self) -> bool {
        self.inbox().has_posts() || !self.pubsub.queue.is_empty()
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
        !self.pubsub.queue.is_empty()
    }

    /// Delivers the first messages to as many of their receivers as this turn allows, at least one.
    fn deliver_run(&mut self, out: &mut OutBuf, queue: &mut Queue) {
        let (run, first, from) = queue.begin();
        let to = self.chunk_end(&run, from);
        // By protocol, so that what one client gets is one range of bytes.
        for proto in self.protocols_of(run[0], from..to) {
            for (number, post) in (first..).zip(&run) {
                for pass in Pass::all(post) {
                    let ns = self.deliver_pass(out, pass, proto, (number, from..to));
                    self.pubsub.budget_ns = self.pubsub.budget_ns.saturating_sub(ns);
                }
            }
        }
        if to == u64::MAX {
            queue.end().for_each(|post| self.end_post(&post));
        } else {
            queue.serve(to);
        }
    }

    /// The token before which the receivers of a run get it in this step; the greatest token if all
    /// do.
    fn chunk_end(&self, run: &[&Post], from: u64) -> u64 {
        let bytes: usize = run.iter().map(|post| post.published.text.len()).sum();
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
        let mut waiting = Vec::new();
        for subscriber in pass.subscribers(pubsub, tokens) {
            let conn = subscriber.conn;
            let session = sessions.get(conn.index as usize).and_then(|s| s.as_deref());
            let speaks = |s: &&Session| s.conn == conn && s.proto == proto && !s.close_after_reply;
            let Some(s) = session.filter(speaks) else { continue };
            if s.told_to >= number || !pass.reaches(*subscriber, *id) {
                continue;
            }
            if s.pushes.is_some() || s.is_streaming() {
                waiting.push(conn);
            } else {
                receivers.push(conn.index);
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
        let sends = turn.output.segments.len() - segments + waiting.len();
        self.pubsub.receivers = receivers;
        for conn in waiting {
            self.queue_message(conn, pass);
        }
        let bytes = (count * pass.published.text.len()) as u64;
        FIND_NS + sends as u64 * SEND_NS + bytes / BYTES_PER_NS
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
        self.core.tell_touched();
        loop {
            let (_, out) = self.driver.io();
            let has_more = self.core.deliver_some(out);
            self.write_queued();
            if !has_more {
                return;
            }
            if self.core.pubsub.budget_ns == 0 {
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
