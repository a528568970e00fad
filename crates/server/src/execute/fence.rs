//! Fences at a worker: taking over what others changed, and publishing what a session of its own
//! changes.

use crate::sessions::session::Suspended;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::Ordering::Acquire;

impl Core {
    /// Takes over what others have changed since. Only between two commands, and never within EXEC:
    /// this says that nothing is executed by the old rules any more. Whoever enters a section to
    /// execute commands calls it there.
    #[inline]
    pub(crate) fn follow(&mut self) {
        if self.shared.keyspace.fences().latest() != self.versions.fence {
            self.apply_changes();
        }
    }

    #[cold]
    fn apply_changes(&mut self) {
        let shared = Arc::clone(&self.shared);
        let latest = shared.keyspace.fences().latest();
        let version = shared.config_version.load(Acquire);
        if version != self.versions.config {
            self.versions.config = version;
            self.settings.refresh(&shared);
        }
        self.refresh_gates();
        self.stop_condemned();
        self.versions.fence = latest;
        shared.keyspace.fences().pass(self.id, latest, |w| shared.post(w, Message::Released));
    }

    /// What fences commands was changed: the reply that is being written waits until no worker
    /// executes by the old rules. Nobody else waits.
    pub(crate) fn publish_fence(&mut self) {
        let shared = &self.shared;
        let ask = |worker| shared.post(worker, Message::Fence);
        let wake = |worker| shared.post(worker, Message::Released);
        let no = shared.keyspace.publish_fence(self.id, ask, wake);
        self.turn.output.fence(no);
        self.refresh_gates();
    }

    /// This worker ends: no fence waits for it.
    pub(crate) fn retire(&self) {
        let shared = &self.shared;
        shared.keyspace.fences().retire(self.id, |w| shared.post(w, Message::Released));
    }

    /// Sessions that CLIENT KILL has chosen execute nothing more, and nobody serves them. Their
    /// connections are closed with the message that follows.
    pub(crate) fn stop_condemned(&mut self) {
        if !self.shared.registry.has_condemned() {
            return;
        }
        for card in self.shared.registry.take_condemned(self.id) {
            let Some(session) = self.session_mut(card.conn).filter(|s| s.card.id == card.id) else {
                continue;
            };
            if let Suspended::Blocked(blocked) = &session.suspended {
                blocked.ticket.claim();
            }
            session.finish();
        }
    }
}
