//! Messages become output. Each is written once for each protocol into the arena of the worker; the
//! segments of all subscribers refer to these bytes.

use crate::pubsub::inbox::{Inbox, Post, Published};
use crate::pubsub::local::{Local, Subscriber};
use crate::pubsub::names::Name;
use crate::pubsub::wire::write_message;
use crate::sessions::outbox::copy;
use crate::sessions::output::{ARENA_FLUSH_BYTES, Hold};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use command::ops::Subject;
use driver::{ConnId, Driver};
use resp::{OutBuf, OutPos, Proto};

/// Segments which are sent before further messages are written.
const SEGMENTS_FLUSH: usize = 4096;
/// Messages to so many subscribers, or of so many bytes, are sent in a turn of messages from
/// others; the rest in the next. Overshot by one message.
const SEGMENTS_PER_TURN: usize = 4096;
const BYTES_PER_TURN: usize = 1 << 20;

/// One pass over a message: those who subscribe to its channel, or to a pattern that matches.
#[derive(Clone, Copy)]
struct Pass<'a> {
    published: &'a Published,
    pattern: Option<&'a Name>,
}

impl<'a> Pass<'a> {
    /// Those of a post, in the order in which a session gets them.
    fn all(post: &'a Post) -> impl Iterator<Item = Self> {
        let published = &*post.published;
        let direct = post.is_direct.then_some(Self { published, pattern: None });
        let of_pattern = move |name| Self { published, pattern: Some(name) };
        direct.into_iter().chain(post.patterns.iter().map(of_pattern))
    }

    fn subject(self) -> Subject {
        if self.pattern.is_some() { Subject::Pattern } else { self.published.subject }
    }

    fn subscribers(self, local: &Local) -> &[Subscriber] {
        local.subscribers(self.subject(), self.pattern.unwrap_or(&self.published.channel))
    }

    /// Whether it reaches this subscription of a session of this worker.
    fn reaches(self, subscriber: Subscriber, worker: usize) -> bool {
        let Published { epoch, from, skips_publisher, .. } = *self.published;
        subscriber.since <= epoch && !(skips_publisher && from == (worker, subscriber.conn))
    }

    fn write(self, out: &mut OutBuf, proto: Proto) {
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

    /// The next message that waits; `None` only if there was none when all were taken last.
    fn next_post(&mut self) -> Option<Post> {
        self.pubsub.queue.pop_front()
    }

    fn take_posts(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.pubsub.inbox(self.id).take(&mut self.pubsub.queue);
    }

    /// A message is delivered: publishers that wait for room go on.
    fn end_post(&self, post: &Post) {
        for (worker, conn) in self.inbox().delivered(post) {
            self.shared.post(worker, Message::Retry(conn));
        }
    }

    /// Delivers all messages that wait. `defers` is a session whose reply is not written yet: its
    /// own messages, and what comes behind the first of them, follow it.
    pub(crate) fn deliver_all(&mut self, out: &mut OutBuf, defers: Option<ConnId>) {
        self.take_posts();
        while let Some(post) = self.next_post() {
            Pass::all(&post).for_each(|pass| self.deliver_pass(out, pass, defers));
            self.end_post(&post);
        }
    }

    /// Delivers messages until enough is in the arena. Returns how many segments and bytes that
    /// were, and whether there is more.
    fn deliver_some(&mut self, out: &mut OutBuf) -> (usize, usize, bool) {
        let (segments, bytes) = (self.turn.output.segments.len(), out.bytes.len());
        let (mut count, mut len) = (0, 0);
        self.take_posts();
        while count < SEGMENTS_FLUSH
            && len < ARENA_FLUSH_BYTES
            && let Some(post) = self.next_post()
        {
            Pass::all(&post).for_each(|pass| self.deliver_pass(out, pass, None));
            self.end_post(&post);
            count = self.turn.output.segments.len() - segments;
            len = out.bytes.len() - bytes;
        }
        (count, len, !self.pubsub.queue.is_empty())
    }

    /// Writes a message once for each protocol that its subscribers speak, and lets their output
    /// refer to it. Where a reply is under way, it waits.
    fn deliver_pass(&mut self, out: &mut OutBuf, pass: Pass<'_>, defers: Option<ConnId>) {
        let mut receivers = std::mem::take(&mut self.pubsub.receivers);
        let Self { pubsub, sessions, turn, id, .. } = self;
        let mut waiting = Vec::new();
        for subscriber in pass.subscribers(pubsub) {
            let conn = subscriber.conn;
            let session = sessions.get(conn.index as usize).and_then(|s| s.as_deref());
            let Some(s) = session.filter(|s| s.conn == conn && !s.close_after_reply) else {
                continue;
            };
            if !pass.reaches(*subscriber, *id) {
                continue;
            }
            let is_deferred = defers == Some(conn) && pass.published.from == (*id, conn);
            if is_deferred || s.pushes.is_some() || s.is_streaming() {
                waiting.push(conn);
            } else {
                receivers[s.proto as usize].push(conn.index);
            }
        }
        for (proto, sessions) in [Proto::Resp2, Proto::Resp3].into_iter().zip(&mut receivers) {
            if !sessions.is_empty() {
                turn.output.close(out);
                let from = out.position();
                pass.write(out, proto);
                turn.output.share(sessions, (from, out.position()), pass.published.hold);
                sessions.clear();
            }
        }
        self.pubsub.receivers = receivers;
        for conn in waiting {
            self.queue_message(conn, pass);
        }
    }

    /// Moves all messages that wait into the sessions of their subscribers, because replies are
    /// being written.
    pub(crate) fn deliver_to_queues(&mut self) {
        self.take_posts();
        while let Some(post) = self.next_post() {
            for pass in Pass::all(&post) {
                for subscriber in pass.subscribers(&self.pubsub).to_vec() {
                    if pass.reaches(subscriber, self.id) {
                        self.queue_message(subscriber.conn, pass);
                    }
                }
            }
            self.end_post(&post);
        }
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

    /// Before a request of a session with subscriptions runs: what was published so far is written.
    #[cold]
    pub(crate) fn deliver_before(&mut self, out: &mut OutBuf, conn: ConnId) {
        self.write_pushes(out, conn);
        if self.has_posts() {
            self.deliver_all(out, None);
        }
    }

    /// A request of a session with subscriptions has written its reply, from `mark` on. What was
    /// published before a change which the reply may show stands before it. Returns where the reply
    /// begins now.
    #[cold]
    pub(crate) fn deliver_behind(
        &mut self,
        out: &mut OutBuf,
        conn: ConnId,
        mark: OutPos,
    ) -> OutPos {
        if !self.has_posts() {
            return mark;
        }
        let (hold, reply) = (self.turn.output.hold_so_far(), copy(mark, out.position(), out));
        out.truncate(mark);
        self.deliver_all(out, Some(conn));
        self.turn.output.open(conn.index, out);
        let mark = out.position();
        out.append(reply);
        self.turn.output.hold_at(hold);
        self.running.move_reply(mark);
        mark
    }

    /// Tells other workers of the messages that were appended to their inboxes.
    fn tell_touched(&mut self) {
        for worker in std::mem::take(&mut self.pubsub.touched) {
            if worker != self.id && self.shared.pubsub.inbox(worker).announce() {
                self.shared.post(worker, Message::Published);
            }
        }
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Tells the others of what was published here, and delivers what waits for subscribers of this
    /// worker.
    pub(crate) fn deliver(&mut self) {
        self.core.pubsub.is_scheduled = false;
        self.core.tell_touched();
        let (mut segments, mut bytes) = (0, 0);
        loop {
            let (_, out) = self.driver.io();
            let (count, len, has_more) = self.core.deliver_some(out);
            self.write_queued();
            if !has_more {
                return;
            }
            self.run_window(); // sending may end a connection, so its commands run first
            self.flush();
            (segments, bytes) = (segments + count, bytes + len);
            if segments >= SEGMENTS_PER_TURN || bytes >= BYTES_PER_TURN {
                return self.core.shared.post(self.core.id, Message::Published);
            }
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
