//! PUBLISH and SPUBLISH.

use crate::execute::caller::Caller;
use crate::execute::finish::Notice;
use crate::execute::gates::closed;
use crate::execute::outcome::Outcome;
use crate::pubsub::inbox::Text;
use crate::pubsub::names::{Asked, Name};
use crate::pubsub::patterns::is_match;
use crate::pubsub::registry::ToPublish;
use crate::pubsub::wire::{Announcement, write_message};
use crate::sessions::output::Hold;
use crate::sessions::session::Suspended;
use crate::worker::batch::After;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::SeqNo;
use base::sync::Arc;
use command::ops::Subject;
use keyspace::{Guard, Parked};
use resp::{Args, OutBuf};

/// The message of a request.
fn text_of(args: Args<'_>) -> Text {
    match args.blob(2) {
        Some(blob) => Text::Long(blob.clone()),
        None => Text::Short(args.get(2).into()),
    }
}

impl Core {
    /// PUBLISH and SPUBLISH. The reply is the number of those who receive the message. What EXEC
    /// publishes leaves when its changes are committed.
    pub(crate) fn publish(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        args: Args<'_>,
        subject: Subject,
    ) -> Outcome {
        if self.shared.pubsub.is_idle(subject) {
            caller.reply(out).integer(0);
            return Outcome::Done;
        }
        let text = args.get(1);
        let channel = Asked { hash: self.shared.keyspace.key(text).hash, text };
        if caller.is_in_exec() {
            let count = self.publish_later(guard, caller, args, (subject, channel));
            caller.reply(out).integer(count as i64);
            return Outcome::Done;
        }
        let hold = self.hold_of_publisher(caller);
        let message = ToPublish {
            subject,
            channel,
            text: &|| text_of(args),
            epoch: None,
            hold,
            from: (self.id, caller.conn()),
            skips_publisher: false,
            cannot_wait: false,
        };
        match self.publish_message(&message) {
            Ok(count) => {
                caller.reply(out).integer(count as i64);
                Outcome::Done
            }
            Err(full) => {
                self.await_room(caller, full);
                Outcome::Retry
            }
        }
    }

    /// True if nobody would receive a message to this channel. False if that takes more than one
    /// lookup, as while there are patterns.
    pub(crate) fn has_no_receivers(&self, subject: Subject, text: &[u8]) -> bool {
        let pubsub = &self.shared.pubsub;
        let asked = || Asked { hash: self.shared.keyspace.key(text).hash, text };
        pubsub.is_idle(subject)
            || pubsub.is_without_patterns(subject) && pubsub.count(subject, asked()) == 0
    }

    /// Appends a message to inboxes, and notes which workers are to be told.
    fn publish_message(&mut self, message: &ToPublish<'_>) -> Result<u64, usize> {
        let shared = Arc::clone(&self.shared);
        let published = shared.pubsub.publish(message, |worker| self.pubsub.touch(worker))?;
        if published > 0 {
            self.schedule_delivery();
        }
        Ok(published)
    }

    /// Messages are delivered, and other workers told of theirs, behind this window. (Whoever adds
    /// to a queue or an inbox outside of a window has been told of messages before, or announces
    /// them: what is left undone here is done by the delivery that follows.)
    pub(crate) fn schedule_delivery(&mut self) {
        if !std::mem::replace(&mut self.pubsub.is_scheduled, true) {
            self.batch.after.push(After::Deliver);
        }
    }

    /// What the publisher has made and seen: nobody is told of it before it is safe.
    fn hold_of_publisher(&mut self, caller: &Caller) -> Hold {
        if self.gates & closed::AWAITED == 0 {
            return Hold::NONE;
        }
        let s = caller.session(self);
        Hold { seq: s.wrote.max(s.seen), ..Hold::NONE }
    }

    /// The publisher tries again when the inbox of this worker has room.
    fn await_room(&mut self, caller: &Caller, full: usize) {
        let (conn, shared) = (caller.conn(), Arc::clone(&self.shared));
        caller.session(self).suspend(Suspended::Parked(Parked::Gate));
        self.schedule_delivery(); // it may wait for this worker
        if !shared.pubsub.inbox(full).wait(self.id, conn) {
            shared.post(self.id, Message::Retry(conn));
        }
    }

    /// Inside EXEC. The publisher, if it subscribes, gets the message behind the reply of EXEC even
    /// if a later command of it unsubscribes.
    fn publish_later(
        &mut self,
        guard: &mut Guard<'_>,
        caller: &Caller,
        args: Args<'_>,
        (subject, channel): (Subject, Asked<'_>),
    ) -> u64 {
        let (count, epoch) = self.shared.pubsub.receivers(subject, channel);
        if count == 0 {
            return 0;
        }
        self.push_to_publisher(caller, args, subject, channel);
        guard.note(Box::new(Notice::Publish(Box::new(Announcement {
            subject,
            channel: channel.to_name(),
            args: resp::OwnedRequest::new(args),
            epoch,
            conn: caller.conn(),
        }))));
        count
    }

    fn push_to_publisher(
        &mut self,
        caller: &Caller,
        args: Args<'_>,
        subject: Subject,
        channel: Asked<'_>,
    ) {
        let (conn, proto) = (caller.conn(), caller.proto);
        let Some(all) = &caller.session(self).subscriptions else { return };
        let (mut bytes, text) = (OutBuf::new(), text_of(args));
        if all.get(subject, channel).is_some() {
            write_message(&mut bytes, proto, (subject, None), channel.text, &text);
        }
        if subject == Subject::Channel {
            let matching = |name: &&Name| is_match(name.text(), channel.text);
            for pattern in all.patterns().filter(matching) {
                let from = (Subject::Pattern, Some(pattern.text()));
                write_message(&mut bytes, proto, from, channel.text, &text);
            }
        }
        if !bytes.is_empty() {
            self.queue_push(conn, bytes, Hold::NONE);
            self.schedule_delivery();
        }
    }

    /// EXEC has committed: what it has published is sent.
    pub(crate) fn publish_announcement(&mut self, announcement: &Announcement, hold: Hold) {
        let awaits = self.gates & closed::AWAITED != 0;
        let hold = Hold { seq: if awaits { hold.seq } else { SeqNo(0) }, ..hold };
        let Announcement { subject, channel, args, epoch, conn } = announcement;
        let asked =
            Asked { hash: self.shared.keyspace.key(channel.text()).hash, text: channel.text() };
        let message = ToPublish {
            subject: *subject,
            channel: asked,
            text: &|| text_of(args.args()),
            epoch: Some(*epoch),
            hold,
            from: (self.id, *conn),
            skips_publisher: true,
            cannot_wait: true,
        };
        self.publish_message(&message).expect("it does not wait for room");
    }
}
