//! SUBSCRIBE, UNSUBSCRIBE and their kin; the end of a client's subscriptions.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::pubsub::ahead::Ending;
use crate::pubsub::names::{Asked, Name};
use crate::pubsub::subscribers::Subscriber;
use crate::pubsub::subscriptions::{SUBJECTS, Subscribing, Subscriptions, What};
use crate::sessions::card::flag;
use crate::sessions::session::{Session, Suspended, Task, gate};
use crate::worker::core::Core;
use crate::worker::left::Left;
use base::sync::atomic::Ordering::Relaxed;
use command::ops::Subject;
use command::{Error, Progress};
use driver::ConnId;
use resp::{Args, OutBuf, Proto, Reply};

/// So many names are subscribed to, or left, at once. More are in steps of so many, inside EXEC at
/// once.
pub const SUBSCRIBED_TOGETHER: usize = 256;

impl Core {
    /// SUBSCRIBE, SSUBSCRIBE, PSUBSCRIBE.
    pub(crate) fn subscribe(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        args: Args<'_>,
        subject: Subject,
    ) -> Result<Outcome, Error> {
        if subject == Subject::Shard && !caller.may_suspend {
            return Err(Error::ShardSubscribeInMulti);
        }
        if args.len() > 1 + SUBSCRIBED_TOGETHER && caller.may_suspend {
            return Ok(self.begin_subscribing(caller, subject, What::Subscribe));
        }
        for at in 1..args.len() {
            self.subscribe_to(out, caller, subject, args.get(at));
        }
        Ok(Outcome::Done)
    }

    /// UNSUBSCRIBE, SUNSUBSCRIBE, PUNSUBSCRIBE.
    pub(crate) fn unsubscribe(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        args: Args<'_>,
        subject: Subject,
    ) -> Outcome {
        let count = caller.session(self).count_of(subject);
        if args.len() > 1 {
            if args.len() > 1 + SUBSCRIBED_TOGETHER && caller.may_suspend {
                return self.begin_subscribing(caller, subject, What::Unsubscribe);
            }
            for at in 1..args.len() {
                self.unsubscribe_from(out, caller, subject, args.get(at));
            }
        } else if count == 0 {
            let confirmed = caller.session(self).confirmed(subject);
            confirm(out, caller.proto, (subject, false), None, confirmed);
        } else if count > SUBSCRIBED_TOGETHER && caller.may_suspend {
            return self.begin_subscribing(caller, subject, What::UnsubscribeAll);
        } else {
            self.unsubscribe_from_any(out, caller, subject, count);
        }
        Outcome::Done
    }

    /// RESET of a session: its subscriptions end without confirmations. True if that goes on in
    /// steps, the last of which replies.
    pub(crate) fn reset_subscriptions(&mut self, caller: &Caller) -> bool {
        let conn = caller.conn();
        let Some(subscriptions) = &caller.session(self).subscriptions else { return false };
        if subscriptions.total() > SUBSCRIBED_TOGETHER {
            _ = self.begin_subscribing(caller, Subject::Channel, What::Reset);
            return true;
        }
        self.end_some(conn, SUBSCRIBED_TOGETHER);
        false
    }

    fn begin_subscribing(&mut self, caller: &Caller, subject: Subject, what: What) -> Outcome {
        let id = self.running.id();
        let work = Subscribing { subject, what, next: 1, id };
        self.suspend(caller, Suspended::Task(Task::Subscribing(work)));
        Outcome::Waiting
    }

    /// A step of a command with many names.
    pub(crate) fn go_on_subscribing(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        work: &mut Subscribing,
    ) -> Progress {
        let (conn, subject) = (caller.conn(), work.subject);
        match work.what {
            What::Reset => {
                self.end_some(conn, SUBSCRIBED_TOGETHER);
                let is_over = caller.session(self).subscriptions.is_none();
                if is_over {
                    Reply::new(out, Proto::Resp2).simple("RESET");
                }
                return Progress::complete_if(is_over);
            }
            What::UnsubscribeAll => {
                self.unsubscribe_from_any(out, caller, subject, SUBSCRIBED_TOGETHER);
                return Progress::complete_if(caller.session(self).count_of(subject) == 0);
            }
            What::Subscribe | What::Unsubscribe => {}
        }
        // Its arguments are out of the session while names are added to that.
        let long = caller.session(self).long.take().expect("a command between its steps has them");
        let args = long.request.args();
        let end = args.len().min(work.next + SUBSCRIBED_TOGETHER);
        for at in work.next..end {
            if work.what == What::Subscribe {
                self.subscribe_to(out, caller, subject, args.get(at));
            } else {
                self.unsubscribe_from(out, caller, subject, args.get(at));
            }
        }
        work.next = end;
        let is_over = end == args.len();
        caller.session(self).long = Some(long);
        Progress::complete_if(is_over)
    }

    fn asked<'a>(&self, text: &'a [u8]) -> Asked<'a> {
        Asked { hash: self.shared.keyspace.key(text).hash, text }
    }

    /// Subscribes to one name, and confirms it.
    fn subscribe_to(&mut self, out: &mut OutBuf, caller: &Caller, subject: Subject, text: &[u8]) {
        let (conn, asked) = (caller.conn(), self.asked(text));
        let s = caller.session(self);
        if s.subscriptions.as_ref().and_then(|all| all.get(subject, asked)).is_none() {
            let (name, since) = self.shared.pubsub.join(self.id, subject, asked);
            self.pubsub.join(subject, &name, Subscriber { conn, since });
            let s = caller.session(self);
            let is_first = s.subscriptions.is_none();
            let share = s.requests_held.another();
            let all = s.subscriptions.get_or_insert_with(|| Box::new(Subscriptions::new(share)));
            all.add(subject, name);
            s.publish_subscriptions();
            if is_first {
                s.set_gate(gate::SUBSCRIBED, true);
                s.card.set_flag(flag::PUBSUB, true);
                self.shared.pubsub.totals.clients.fetch_add(1, Relaxed);
            }
        }
        let confirmed = caller.session(self).confirmed(subject);
        confirm(out, caller.proto, (subject, true), Some(text), confirmed);
    }

    /// Unsubscribes from one name, and confirms it.
    fn unsubscribe_from(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        subject: Subject,
        text: &[u8],
    ) {
        let asked = self.asked(text);
        let subscriptions = &caller.session(self).subscriptions;
        if let Some(name) = subscriptions.as_ref().and_then(|all| all.get(subject, asked)) {
            self.leave(out, caller, subject, &name);
        }
        let confirmed = caller.session(self).confirmed(subject);
        confirm(out, caller.proto, (subject, false), Some(text), confirmed);
    }

    /// Unsubscribes from up to so many names of a kind, and confirms each.
    fn unsubscribe_from_any(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        subject: Subject,
        most: usize,
    ) {
        for _ in 0..most {
            let subscriptions = &caller.session(self).subscriptions;
            let first = subscriptions.as_ref().and_then(|all| all.first(subject));
            let Some(name) = first else { return };
            self.leave(out, caller, subject, &name);
            let confirmed = caller.session(self).confirmed(subject);
            confirm(out, caller.proto, (subject, false), Some(name.text()), confirmed);
        }
    }

    /// Ends a subscription. Every message that counted it is delivered first.
    fn leave(&mut self, out: &mut OutBuf, caller: &Caller, subject: Subject, name: &Name) {
        let until = self.shared.pubsub.leave(self.id, subject, name);
        let ending = Ending { subject, name, until };
        self.deliver_last(out, caller.conn(), !caller.may_suspend, &ending);
        self.forget(caller.conn(), subject, name);
    }

    /// Ends a subscription at this worker.
    fn forget(&mut self, conn: ConnId, subject: Subject, name: &Name) {
        self.pubsub.leave(subject, name, conn);
        let Some(s) = self.session_mut(conn) else { return };
        let Some(all) = &mut s.subscriptions else { return };
        all.remove(subject, name);
        if all.total() > 0 {
            s.publish_subscriptions();
        } else {
            s.subscriptions = None;
            s.end_subscribed();
            self.shared.pubsub.totals.clients.fetch_sub(1, Relaxed);
        }
    }

    /// Ends up to so many subscriptions of a session, without a word.
    fn end_some(&mut self, conn: ConnId, most: usize) {
        for _ in 0..most {
            let all = self.session_mut(conn).and_then(|s| s.subscriptions.as_ref());
            let first = |subject: &Subject| all.and_then(|all| all.first(*subject));
            let Some((subject, name)) =
                SUBJECTS.iter().find_map(|subject| Some((*subject, first(subject)?)))
            else {
                return;
            };
            self.shared.pubsub.leave(self.id, subject, &name);
            self.forget(conn, subject, &name);
        }
    }

    /// The session executes nothing more, or is gone: nobody counts it as a receiver from here on.
    /// What it subscribes to is released in steps if it is much.
    pub(crate) fn end_subscriptions(&mut self, conn: ConnId) {
        self.end_tracking(conn);
        let Some(s) = self.session_mut(conn) else { return };
        let Some(mut subscriptions) = s.subscriptions.take() else { return };
        s.end_subscribed();
        self.shared.pubsub.totals.clients.fetch_sub(1, Relaxed);
        if subscriptions.total() > SUBSCRIBED_TOGETHER {
            return self.queue_release(conn, Left::Subscriptions(subscriptions));
        }
        self.release_some_subscriptions(conn, &mut subscriptions, SUBSCRIBED_TOGETHER);
    }

    /// Ends up to so many subscriptions of a session that is gone.
    pub(crate) fn release_some_subscriptions(
        &mut self,
        conn: ConnId,
        subscriptions: &mut Subscriptions,
        most: usize,
    ) {
        for _ in 0..most {
            let first = |subject: &Subject| Some((*subject, subscriptions.first(*subject)?));
            let Some((subject, name)) = SUBJECTS.iter().find_map(first) else { return };
            self.shared.pubsub.leave(self.id, subject, &name);
            self.pubsub.leave(subject, &name, conn);
            subscriptions.remove(subject, &name);
        }
    }
}

impl Session {
    /// How many subscriptions of a kind it has.
    fn count_of(&self, subject: Subject) -> usize {
        self.subscriptions.as_ref().map_or(0, |all| all.count(subject))
    }

    /// The number in a confirmation.
    fn confirmed(&self, subject: Subject) -> usize {
        self.subscriptions.as_ref().map_or(0, |all| all.confirmed(subject))
    }

    /// It has none any more.
    fn end_subscribed(&mut self) {
        self.set_gate(gate::SUBSCRIBED, false);
        self.card.set_flag(flag::PUBSUB, false);
        self.publish_subscriptions();
    }

    /// Publishes on the card how many it has.
    fn publish_subscriptions(&self) {
        for subject in SUBJECTS {
            let count = self.count_of(subject) as u32;
            self.card.subscriptions[subject as usize].store(count, Relaxed);
        }
        let bytes = self.subscriptions.as_ref().map_or(0, |all| all.bytes());
        self.card.subscription_bytes.store(bytes, Relaxed);
    }
}

/// Confirms a subscription or its end: the name, or nil if there was none to end, and how many are
/// left.
fn confirm(
    out: &mut OutBuf,
    proto: Proto,
    (subject, is_on): (Subject, bool),
    name: Option<&[u8]>,
    count: usize,
) {
    let word: &[u8] = match (subject, is_on) {
        (Subject::Channel, true) => b"subscribe",
        (Subject::Channel, false) => b"unsubscribe",
        (Subject::Shard, true) => b"ssubscribe",
        (Subject::Shard, false) => b"sunsubscribe",
        (Subject::Pattern, true) => b"psubscribe",
        (Subject::Pattern, false) => b"punsubscribe",
    };
    let mut reply = Reply::new(out, proto);
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}
