//! WATCH and UNWATCH.

use crate::execute::caller::Caller;
use crate::sessions::session::{Session, Suspended, Task};
use crate::sessions::watches::Watches;
use crate::worker::core::Core;
use base::DbIndex;
use command::transactions::WATCHED_TOGETHER;
use command::{Error, Progress};
use keyspace::{Access, Guard, Intent};
use resp::{Args, OutBuf};

impl Core {
    /// Ends the session's watches. Their cells are removed from the slots later, when no lock is
    /// held; until then they are marked, but never read.
    pub(crate) fn unwatch_soon(&mut self, caller: &Caller) {
        let s = caller.session(self);
        let watched = s.watched.take();
        s.publish_watched();
        self.release_watches(caller.conn(), watched);
    }

    /// WATCH. The slots of its keys are locked.
    pub(crate) fn watch(
        &mut self,
        guard: &mut Guard<'_>,
        caller: &Caller,
        args: Args<'_>,
    ) -> Result<(), Error> {
        let s = caller.session(self);
        if s.multi.is_some() {
            return Err(Error::WatchInMulti);
        }
        (1..args.len()).for_each(|i| add_watch(&mut s.watched, s.db, guard, args.get(i)));
        s.publish_watched();
        guard.forget_seen(); // its reply shows nothing
        Ok(())
    }

    /// WATCH of many keys, none of which is locked. What it names is kept for the slow log.
    pub(crate) fn begin_watching(&mut self, caller: &Caller) -> Result<(), Error> {
        if caller.session(self).multi.is_some() {
            return Err(Error::WatchInMulti);
        }
        self.suspend(caller, Suspended::Task(Task::Watching(1, self.running.id())));
        Ok(())
    }

    /// A step of it, from argument `next` on; the last one replies.
    pub(crate) fn go_on_watching(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        next: &mut usize,
    ) -> Progress {
        let mut guard = access.free(self.turn.unix_ms());
        caller.apply_to(&mut guard);
        let s = caller.session(self);
        let Session { long: Some(long), watched, db, .. } = s else {
            unreachable!("a command between its steps has its request");
        };
        let args = long.request.args();
        let end = args.len().min(*next + WATCHED_TOGETHER);
        let mut progress = if end < args.len() { Progress::More } else { Progress::Complete };
        while *next < end {
            let bytes = args.get(*next);
            let slot = guard.keyspace().key(bytes).slot;
            let add = |guard: &mut Guard<'_>| add_watch(watched, *db, guard, bytes);
            if let Err(parked) = guard.visit(slot, Intent::Read, add) {
                progress = Progress::Park(parked);
                break;
            }
            *next += 1;
        }
        s.publish_watched();
        guard.forget_seen();
        if progress == Progress::Complete {
            caller.reply(out).ok();
        }
        progress
    }
}

/// Watches a key, whose slot is locked, unless the session does already.
fn add_watch(watched: &mut Watches, db: DbIndex, guard: &mut Guard<'_>, bytes: &[u8]) {
    if let Some(cell) = watched.add(db, bytes) {
        let key = guard.keyspace().key(bytes);
        guard.watch(db, &key, &cell);
    }
}
