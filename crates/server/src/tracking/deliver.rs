//! What a client is sent when a key has changed, and which of those that the message is for are
//! sent it.

use crate::pubsub::inbox::{Post, Published, To, What};
use crate::sessions::card::flag;
use crate::sessions::output::Hold;
use crate::sessions::session::{Session, gate};
use crate::tracking::listed::listed;
use crate::tracking::state::Mode;
use crate::tracking::touched::{Target, Touched, Wanted};
use crate::worker::core::Core;
use base::sync::Arc;
use driver::ConnId;
use resp::{OutBuf, Proto, Reply};

/// The channel of clients that are told in the second protocol.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// How a message reaches one of those whom it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Not at all.
    Nowhere,
    /// It is written for it.
    Here,
    /// It is written for another client instead.
    Redirected,
}

impl Touched {
    /// Whether a session of this worker is told.
    pub fn way_to(&self, s: &Session, from: (usize, ConnId), worker: usize) -> Way {
        let is_heard = s.proto == Proto::Resp3 || s.gates & gate::SUBSCRIBED != 0;
        if let Some(Target(card)) = &self.target {
            return if card.id == s.card.id && is_heard { Way::Here } else { Way::Nowhere };
        }
        let Some(tracking) = &s.tracking else { return Way::Nowhere };
        let is_broadcast = tracking.mode == Mode::Broadcast;
        let is_wanted = match self.wanted {
            Wanted::Read => !is_broadcast,
            Wanted::Prefix => is_broadcast,
            Wanted::Always => true,
        };
        let is_own = tracking.no_loop && self.is_made && from == (worker, s.conn);
        if !is_wanted || is_own {
            return Way::Nowhere;
        }
        match &tracking.redirect {
            Some(target) if target.id != s.card.id => Way::Redirected,
            Some(_) if is_heard => Way::Here,
            None if s.proto == Proto::Resp3 => Way::Here,
            _ => Way::Nowhere,
        }
    }

    /// Appends the message.
    pub fn write(&self, out: &mut OutBuf, proto: Proto) {
        let mut reply = Reply::new(out, proto);
        if proto == Proto::Resp3 {
            reply.push(2);
            reply.bulk(b"invalidate");
        } else {
            reply.push(3);
            reply.bulk(b"message");
            reply.bulk(CHANNEL);
        }
        match &self.key {
            Some(key) => {
                reply.array(1);
                reply.bulk(key.text());
            }
            None => reply.null(),
        }
    }
}

impl Core {
    /// What one of this worker's clients was to be told goes to the client that it has named, or it
    /// is told that this one is gone.
    pub(crate) fn redirect(&mut self, conn: ConnId, published: &Published) {
        let What::Touched(touched) = &published.what else { return };
        let Some(session) = self.session_mut(conn) else { return };
        let Some(tracking) = &mut session.tracking else { return };
        let Some(target) = tracking.redirect.clone() else { return };
        if !target.has_flag(flag::GONE) {
            let target = Some(Target(target));
            let touched = Touched { target, ..touched.clone() };
            return self.send_to_target(touched, published.hold, published.from);
        }
        tracking.is_broken = true;
        session.card.set_flag(flag::BROKEN_REDIRECTION, true);
        if session.proto == Proto::Resp3 {
            let mut bytes = OutBuf::new();
            let mut reply = Reply::new(&mut bytes, Proto::Resp3);
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(target.id as i64);
            self.queue_push(conn, bytes, Hold::NONE);
        }
    }

    /// A session ends, or tracks no more: what waits for it here goes to the client that it has
    /// named.
    pub(crate) fn redirect_waiting(&mut self, conn: ConnId) {
        let session = self.session_mut(conn);
        let tracking = session.and_then(|s| s.tracking.as_ref());
        if tracking.is_none_or(|tracking| tracking.redirect.is_none()) || !self.has_posts() {
            return;
        }
        for published in self.waiting_elsewhere(conn) {
            self.redirect(conn, &published);
        }
    }

    fn send_to_target(&mut self, touched: Touched, hold: Hold, from: (usize, ConnId)) {
        let Some(Target(card)) = &touched.target else { return };
        let place = card.place();
        let published = Arc::new(Published {
            held: self.shared.pubsub.hold_bytes(self.id, touched.bytes()),
            what: What::Touched(touched),
            epoch: u64::MAX,
            hold,
            from,
            skips_publisher: false,
        });
        let post = Post { published, to: To::Listed(listed([place.conn])) };
        self.shared.pubsub.inbox(place.worker).push(post);
        self.pubsub.touch(place.worker);
        self.schedule_delivery();
    }

    /// A message for the client of a redirection which is not at this connection: if it is on its
    /// way to another worker, or to this one, the message is sent after it, in another turn.
    pub(crate) fn note_stray(&mut self, published: &Arc<Published>) {
        if let What::Touched(Touched { target: Some(Target(card)), .. }) = &published.what
            && !card.has_flag(flag::GONE)
        {
            self.pubsub.strays.push(published.clone());
            self.shared.announce(self.id);
        }
    }

    /// Sends messages after the clients that they are for.
    pub(crate) fn send_strays(&mut self) {
        for published in std::mem::take(&mut self.pubsub.strays) {
            if let What::Touched(touched) = &published.what {
                self.send_to_target(touched.clone(), published.hold, published.from);
            }
        }
    }
}
