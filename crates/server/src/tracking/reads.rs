//! What a client that tracks has read is remembered.

use crate::execute::blocked::request_of;
use crate::execute::request::Command;
use crate::pubsub::inbox::NOBODY;
use crate::pubsub::names::Asked;
use crate::sessions::session::{Session, gate};
use crate::tracking::state::Mode;
use crate::worker::core::Core;
use command::spec::Flags;
use driver::ConnId;
use keyspace::{Event, Guard, Ticket};

/// So many keys are forgotten in one step.
const FORGOTTEN_TOGETHER: usize = 1024;

impl Core {
    /// A command of a client that listens has run, whether it has failed or not, and gives up its
    /// locks. If its client tracks what it reads, its keys are remembered; inside EXEC when its
    /// changes are committed, in their order: a key that it changes first and then reads is
    /// remembered.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_read(
        &mut self,
        guard: &mut Guard<'_>,
        command: &Command<'_>,
        runs_again: bool,
    ) {
        let Command { caller, id, args, hashed } = *command;
        if self.has_posts() {
            self.note_cut();
        }
        let (spec, worker, conn) = (id.spec(), self.id, caller.conn());
        let is_read = spec.flags.contains(Flags::READONLY) && !runs_again;
        if !is_read || !caller.session(self).tracks_reads() {
            return;
        }
        let shared = self.shared.clone();
        // Keys that were locked are hashed; those of EXEC, and of World, are not.
        for key in hashed.all {
            let asked = Asked { hash: key.hash, text: args.get(key.arg as usize) };
            shared.remember_read(asked, worker, conn);
        }
        let mut added = hashed.all.len();
        if hashed.all.is_empty() {
            _ = command::keys::for_each(spec, args, |key| {
                added += 1;
                let text = args.get(key.arg);
                let key = shared.keyspace.key(text);
                if caller.is_in_exec() {
                    guard.notify(Event::READ, base::DbIndex(0), &key);
                } else {
                    shared.remember_read(Asked { hash: key.hash, text }, worker, conn);
                }
            });
        }
        self.forget_reads(added + 1, (worker, conn));
    }

    /// A client that tracks what it reads has got what it has waited for. The keys may have changed
    /// since, with nobody to be told: it is told behind the reply that they have.
    pub(crate) fn tell_late_reads(&mut self, ticket: &Ticket, conn: ConnId) {
        let request = request_of(ticket);
        let args = request.words.args();
        let Some(id) = command::lookup(args.get(0)) else { return };
        let (shared, worker) = (self.shared.clone(), self.id);
        let session = self.session_mut(conn);
        let Some(tracking) = session.and_then(|s| s.tracking.as_deref()) else { return };
        if !id.spec().flags.contains(Flags::READONLY) {
            return;
        }
        let reads = tracking.mode != Mode::Broadcast;
        let is_told =
            |key: &[u8]| reads || tracking.prefixes().any(|prefix| key.starts_with(prefix));
        _ = command::keys::for_each(id.spec(), args, |key| {
            let text = args.get(key.arg);
            if is_told(text) {
                let asked = Asked { hash: shared.keyspace.key(text).hash, text };
                shared.tell_late_reader(asked, worker, conn);
            }
        });
    }

    /// While more keys are remembered than may be, forgets some. Returns whether there are still
    /// too many.
    pub(crate) fn forget_reads(&self, most: usize, by: (usize, ConnId)) -> bool {
        let (shared, bound) = (&self.shared, self.settings.tracking_keys_max);
        let is_over = || shared.tracking.is_over(bound);
        let has_forgotten = (0..most).all(|_| is_over() && shared.forget_read(by));
        has_forgotten && is_over()
    }

    /// Keys that have become too many by a change of the settings are forgotten in steps.
    pub(crate) fn tend_reads(&mut self) {
        if self.id != 0 || !self.shared.tracking.is_over(self.settings.tracking_keys_max) {
            return;
        }
        self.timers.is_busy = true;
        // (While a worker is behind, it goes on with the next housekeeping.)
        if !self.shared.are_events_behind() && self.forget_reads(FORGOTTEN_TOGETHER, (0, NOBODY)) {
            self.timers.housekeeping_at = self.turn.now();
        }
    }
}

impl Session {
    /// True if the client is told of the keys that its next command reads.
    pub fn tracks_reads(&self) -> bool {
        let is_caching = self.gates & gate::CACHING != 0;
        self.tracking.as_ref().is_some_and(|tracking| match tracking.mode {
            Mode::Reads => true,
            Mode::OptIn => is_caching,
            Mode::OptOut => !is_caching,
            Mode::Broadcast => false,
        })
    }
}
