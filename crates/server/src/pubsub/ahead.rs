//! What waits for one client is written before its next reply, or before a subscription of it ends.
//! Messages stay in the queue for the others, who receive them in their turn.

use crate::pubsub::deliver::Pass;
use crate::pubsub::inbox::{Post, Published};
use crate::pubsub::names::Name;
use crate::pubsub::wire::Told;
use crate::sessions::outbox::copy;
use crate::tracking::deliver::Way;
use crate::worker::core::Core;
use base::sync::Arc;
use command::ops::Subject;
use driver::ConnId;
use resp::{OutBuf, OutPos, Proto};

/// A subscription that is about to end, and no more counted.
pub(crate) struct Ending<'a> {
    /// To what kind.
    pub subject: Subject,
    /// To what.
    pub name: &'a Name,
    /// The last epoch of messages that counted it.
    pub until: u64,
}

impl Ending<'_> {
    /// True if it had ended when this message was published: other clients of the worker receive
    /// it, and the publisher has not counted this one.
    fn is_before(&self, pass: Pass<'_>) -> bool {
        pass.published.epoch > self.until && pass.name() == Some((self.subject, self.name))
    }
}

impl Core {
    /// Before a request of a session that listens runs: what was published so far is written.
    #[cold]
    pub(crate) fn deliver_before(&mut self, out: &mut OutBuf, conn: ConnId) {
        self.key_events.set_runner(Some(conn));
        self.deliver_waiting(out, conn);
        self.pubsub.cut = self.pubsub.queue.last_number();
    }

    /// A request of a session that listens has read what it shows, and gives up its locks: no later
    /// message may stand before its reply.
    #[cold]
    pub(crate) fn note_cut(&mut self) {
        self.take_posts();
        self.pubsub.cut = self.pubsub.queue.last_number();
    }

    /// What was published so far is written, for a session that listens.
    pub(crate) fn deliver_waiting(&mut self, out: &mut OutBuf, conn: ConnId) {
        self.write_pushes(out, conn);
        if self.has_posts() {
            let told = self.messages_ahead(conn, None, None);
            self.write_told(out, conn, told);
            self.write_pushes(out, conn); // that a redirection is broken
        }
    }

    /// A request of a session that listens has written its reply, from `mark` on. What was
    /// published before a change which the reply may show stands before it, in the protocol of the
    /// request; what the request itself has published follows it. Returns where the reply begins
    /// now.
    #[cold]
    pub(crate) fn deliver_behind(
        &mut self,
        out: &mut OutBuf,
        (conn, proto): (ConnId, Proto),
        mark: OutPos,
    ) -> OutPos {
        if !self.has_posts() {
            return mark;
        }
        let told = self.messages_ahead(conn, Some(proto), None);
        if told.is_empty() {
            return mark;
        }
        let (hold, reply) = (self.turn.output.hold_so_far(), copy(mark, out.position(), out));
        out.truncate(mark);
        self.write_told(out, conn, told);
        self.turn.output.close(out);
        self.turn.output.open(conn.index, out);
        let mark = out.position();
        out.append(reply);
        self.turn.output.hold_at(hold);
        self.running.move_reply(mark);
        mark
    }

    /// A subscription is about to end, and no message counts it from here on. Those that did are
    /// written, or follow the reply of EXEC; those that have come since are not.
    pub(crate) fn deliver_last(
        &mut self,
        out: &mut OutBuf,
        conn: ConnId,
        is_in_exec: bool,
        ending: &Ending<'_>,
    ) {
        if !self.has_posts() {
            return;
        }
        let told = self.messages_ahead(conn, None, Some(ending));
        if is_in_exec {
            for (bytes, hold) in told {
                self.queue_push(conn, bytes, hold);
            }
        } else {
            self.write_pushes(out, conn);
            self.write_told(out, conn, told);
        }
    }

    /// All messages that wait for a session, which counts as told of them. Behind a request, which
    /// was in this protocol, only those that came before it gave up its locks, and ahead of the
    /// first that the session has published itself, to whomever. The work grows with the messages
    /// that wait at this worker and that the session was not told of.
    fn messages_ahead(
        &mut self,
        conn: ConnId,
        behind: Option<Proto>,
        ending: Option<&Ending<'_>>,
    ) -> Vec<Told> {
        self.take_posts();
        let Self { pubsub, sessions, id, .. } = self;
        let session = sessions.get(conn.index as usize).and_then(|s| s.as_deref());
        let Some(session) = session.filter(|s| s.conn == conn && !s.close_after_reply) else {
            return Vec::new();
        };
        let (proto, told_to) = (session.proto, session.told_to);
        if behind.is_some_and(|behind| behind != proto) {
            return Vec::new(); // they follow the reply of HELLO or RESET
        }
        let (mut told, mut number_told) = (Vec::new(), pubsub.queue.last_number());
        let mut redirected = Vec::new();
        for (number, post) in pubsub.queue.behind(told_to, conn) {
            let way = |pass: Pass<'_>| {
                let has_ended = ending.is_some_and(|ending| ending.is_before(pass));
                let subscriber = pass.subscriber(pubsub, conn).filter(|_| !has_ended);
                subscriber.map_or(Way::Nowhere, |found| pass.way_to(session, found, *id))
            };
            let is_later = number > pubsub.cut || post.published.from == (*id, conn);
            if behind.is_some() && is_later {
                number_told = number - 1;
                break;
            }
            let mut bytes = OutBuf::new();
            for pass in Pass::all(post) {
                match way(pass) {
                    Way::Nowhere => {}
                    Way::Here => pass.write(&mut bytes, proto),
                    Way::Redirected => redirected.push(post.published.clone()),
                }
            }
            if !bytes.is_empty() {
                told.push((bytes, post.published.hold));
            }
        }
        if let Some(session) = self.session_mut(conn) {
            session.told_to = number_told.max(told_to);
        }
        for published in redirected {
            self.redirect(conn, &published);
        }
        told
    }

    /// Of the messages that wait for a session, and of which it was not told, those that go to
    /// another one instead.
    pub(crate) fn waiting_elsewhere(&mut self, conn: ConnId) -> Vec<Arc<Published>> {
        self.take_posts();
        let Self { pubsub, sessions, id, .. } = self;
        let session = sessions.get(conn.index as usize).and_then(|s| s.as_deref());
        let Some(session) = session.filter(|s| s.conn == conn) else { return Vec::new() };
        let waiting = pubsub.queue.behind(session.told_to, conn);
        let goes = |post: &&Post| {
            Pass::all(post).any(|pass| {
                let found = pass.subscriber(pubsub, conn);
                found.is_some_and(|found| pass.way_to(session, found, *id) == Way::Redirected)
            })
        };
        waiting.map(|(_, post)| post).filter(goes).map(|post| post.published.clone()).collect()
    }

    fn write_told(&mut self, out: &mut OutBuf, conn: ConnId, told: Vec<Told>) {
        for (bytes, hold) in told {
            self.turn.output.open(conn.index, out);
            out.append(bytes);
            self.turn.output.hold_at(hold);
        }
    }
}
