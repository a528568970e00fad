//! Fences at a worker: adopting the changes of other workers, and publishing the changes of its own
//! sessions.

use crate::sessions::session::Suspended;
use crate::shared::Shared;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::Ordering::Acquire;

impl Core {
    /// Adopts what other workers have published since the last call, and acknowledges it: from here
    /// on this worker executes nothing by the old rules. Called at the start of each section that
    /// executes commands; only between two commands, and never within EXEC.
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
            self.refresh_settings(&shared);
        }
        self.refresh_gates();
        self.stop_condemned();
        self.versions.fence = latest;
        shared.keyspace.fences().pass(self.id, latest, |w| shared.post(w, Message::Released));
    }

    /// Takes over the configuration.
    pub(crate) fn refresh_settings(&mut self, shared: &Shared) {
        let was_tracking = self.settings.latency_tracking;
        self.settings.refresh(shared);
        self.timers.is_busy |=
            self.id == 0 && shared.tracking.is_over(self.settings.tracking_keys_max);
        if self.settings.latency_tracking != was_tracking {
            self.forget_unanswered();
        }
    }

    /// Publishes a change of the rules by which commands are executed. Only the reply that is being
    /// written waits until no worker executes by the old rules.
    pub(crate) fn publish_fence(&mut self) {
        self.publish_fence_as(false);
    }

    /// The same, but the reply also waits for idle workers: `to_all` if they keep something for
    /// their sessions that others see, such as subscriptions.
    pub(crate) fn publish_fence_as(&mut self, to_all: bool) {
        let shared = &self.shared;
        let ask = |worker| shared.post(worker, Message::Fence);
        let wake = |worker| shared.post(worker, Message::Released);
        let no = if to_all {
            shared.keyspace.publish_fence_to_all(self.id, ask, wake)
        } else {
            shared.keyspace.publish_fence(self.id, ask, wake)
        };
        self.turn.output.fence(no);
        self.refresh_gates();
    }

    /// This worker ends: no fence waits for it from here on.
    pub(crate) fn retire(&self) {
        let shared = &self.shared;
        shared.keyspace.fences().retire(self.id, |w| shared.post(w, Message::Released));
    }

    /// Stops the sessions that CLIENT KILL has chosen: they execute nothing more, and their tickets
    /// are claimed so that they are not served. [`Message::Kill`] closes their connections.
    pub(crate) fn stop_condemned(&mut self) {
        if !self.shared.registry.has_condemned() {
            return;
        }
        for card in self.shared.registry.take_condemned(self.id) {
            // (One that has not arrived yet is closed when it does: `Worker::on_moved`.)
            let conn = card.place().conn;
            let Some(session) = self.session_mut(conn).filter(|s| s.card.id == card.id) else {
                continue;
            };
            if let Suspended::Blocked(blocked) = &session.suspended {
                blocked.ticket.claim();
            }
            session.finish();
            self.end_subscriptions(conn);
        }
    }
}
