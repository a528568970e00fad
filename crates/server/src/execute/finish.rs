//! The end of every change, whoever made it. A command's changes are committed or rolled back when
//! the command ends. Then, still under its locks, those who must know are informed: sessions which
//! watch its keys, clients in MONITOR, and clients which wait for what it has filled.
//!
//! The way of a change:
//!
//! ```text
//!   command        a caller's request has passed the gates      caller.rs, gates.rs, request.rs
//!      |
//!   locks          the slots of its keys: a guard               locks.rs, keyspace/access.rs
//!      |
//!   handler        parses, then changes data                    command/src/<family>
//!      |
//!   door           Guard::insert, remove, edit: each change     keyspace/change.rs
//!      |           is undoable and names its event
//!      |
//!      +-- Err, or a panic ----> rolled back                    keyspace/rollback.rs
//!      |
//!      +-- inside EXEC --------> stays in the undo log until
//!      |                         EXEC itself is finished
//!      v
//!   finish_noted                                             this file
//!      |                           (short path: finish_change, 2 and 4, or finish_recorded, 1 too)
//!      |
//!      +-- 1. number and record         Guard::finish: for the writer of the append-only file
//!      +-- 2. commit                    watchers are marked; the undo log is dropped
//!      +-- 3. notices                   lines for MONITOR, in the order of the changes
//!      +-- 4. serve                     clients which wait for keys that were filled, each
//!      |                                a change of its own, numbered and committed at once
//!      v
//!   guard drops, locks are released
//!      |
//!   outbox         the reply leaves when its hold is met        sessions/outbox.rs, release.rs
//! ```

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::pubsub::wire::Announcement;
use crate::sessions::output::Hold;
use crate::worker::core::Core;
use base::SeqNo;
use base::sync::Arc;
use command::CommandId;
use driver::ConnId;
use keyspace::{Guard, Numbers};
use resp::Args;

/// What a command leaves with its changes, to be published when they are committed.
pub(crate) enum Notice {
    /// A line for the clients in MONITOR.
    Monitor(Arc<[u8]>),
    /// A message for subscribers.
    Publish(Box<Announcement>),
}

impl Core {
    /// Commits what was changed under these locks since the last call, and serves those who wait
    /// for it. Returns the hold of the reply. Only for the short path, where no gate is closed:
    /// nobody is in MONITOR and no number is drawn. Everything else ends with
    /// [`Core::finish_noted`].
    #[inline]
    pub(crate) fn finish_change(&mut self, guard: &mut Guard<'_>) -> SeqNo {
        guard.commit();
        let hold = guard.seq();
        if guard.has_ready() {
            self.serve(guard);
        }
        hold
    }

    /// As [`Core::finish_change`], on the short path while changes draw numbers. The reply gets its
    /// hold, now or later; there is none while no reply waits for the disk.
    #[inline]
    pub(crate) fn finish_recorded(&mut self, guard: &mut Guard<'_>, has_replied: bool) {
        guard.finish();
        let hold = self.finish_change(guard);
        let own = guard.take_drawn();
        if own > SeqNo(0) {
            self.note_own(own);
        }
        let hold = if self.gates & closed::AWAITED == 0 { SeqNo(0) } else { hold };
        self.turn.output.hold(hold);
        if !has_replied {
            self.store_hold(hold);
        }
    }

    /// As [`Core::finish_change`], but first the changes draw their number, and the notes that were
    /// left with them are published.
    #[inline]
    pub(crate) fn finish_noted(&mut self, guard: &mut Guard<'_>) -> SeqNo {
        if self.gates & closed::NUMBERED == 0 {
            guard.commit();
        } else {
            self.finish_numbered(guard);
        }
        if guard.has_notes() {
            self.publish_notes(guard);
        }
        self.finish_change(guard)
    }

    #[cold]
    fn finish_numbered(&mut self, guard: &mut Guard<'_>) {
        guard.finish();
        if guard.seq() == Numbers::LATEST {
            // What was read without locks has its number when all changes that are under way have
            // theirs.
            self.publish_fence();
        }
    }

    /// Ends one command under its locks. Inside EXEC its changes are committed when EXEC ends.
    pub(crate) fn finish_command(&mut self, guard: &mut Guard<'_>, caller: &Caller) {
        if caller.is_in_exec() {
            if caller.commits_in_parts && guard.is_undo_large() {
                guard.commit_part();
            }
        } else {
            let hold = self.finish_noted(guard);
            self.turn.output.hold(hold);
            if self.gates & closed::NUMBERED != 0 {
                self.store_hold(hold);
                self.note_own(guard.take_drawn());
            }
        }
    }

    /// Stores the hold for a reply that the command sends later, in steps or after a wait: it shows
    /// what the command has read here.
    #[cold]
    fn store_hold(&mut self, hold: SeqNo) {
        if let Some(session) = self.running.session()
            && let Some(s) = self.sessions[session as usize].as_deref_mut()
        {
            s.seen = hold;
        }
    }

    /// The session of the running command has made the change with this number, if it is not 0.
    #[inline]
    pub(crate) fn note_own(&mut self, own: SeqNo) {
        if let Some(session) = self.running.session()
            && let Some(s) = self.sessions[session as usize].as_deref_mut()
        {
            s.wrote = s.wrote.max(own);
        }
    }

    /// Somebody has made a change for a session: it counts as written with all others so far.
    pub(crate) fn note_served(&mut self, conn: ConnId) {
        let numbers = self.shared.keyspace.numbers();
        if numbers.is_drawing() {
            let last = numbers.last();
            if let Some(s) = self.session_mut(conn) {
                s.wrote = last;
            }
        }
    }

    /// The hold of what others are sent under these locks. If the command has published a fence,
    /// they wait for that, too.
    pub(crate) fn hold_of_notices(&self, guard: &Guard<'_>) -> Hold {
        Hold { seq: guard.seq(), fence: self.turn.output.fence_so_far() }
    }

    #[cold]
    fn publish_notes(&mut self, guard: &mut Guard<'_>) {
        let hold = self.hold_of_notices(guard);
        while let Some(note) = guard.next_note() {
            match *note.downcast().expect("notes are left here") {
                Notice::Monitor(line) => self.shared.post_to_monitors(&line, hold),
                Notice::Publish(announcement) => self.publish_announcement(&announcement, hold),
            }
        }
    }

    /// Attaches the line for MONITOR to the changes of a command, to be sent when they commit.
    #[cold]
    pub(crate) fn attach_command_line(
        &mut self,
        guard: &mut Guard<'_>,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
    ) {
        if let Some(line) = self.monitor_line(caller, id, args) {
            guard.note(Box::new(Notice::Monitor(line)));
        }
    }
}
