//! WATCH and UNWATCH.

use crate::execute::caller::Caller;
use crate::sessions::session::{Session, Suspended, Task, Watching};
use crate::worker::core::Core;
use command::transactions::WATCHED_TOGETHER;
use command::{Error, Progress};
use keyspace::{Access, Guard, Intent};
use resp::{Args, OutBuf, OwnedRequest};

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
        (1..args.len()).for_each(|i| add_watch(s, guard, args.get(i)));
        s.publish_watched();
        guard.forget_seen(); // its reply shows nothing
        Ok(())
    }

    /// WATCH of many keys, none of which is locked.
    pub(crate) fn begin_watching(&mut self, caller: &Caller, args: Args<'_>) -> Result<(), Error> {
        if caller.session(self).multi.is_some() {
            return Err(Error::WatchInMulti);
        }
        let work = Box::new(Watching { request: OwnedRequest::new(args), next: 1 });
        self.suspend(caller, Suspended::Task(Task::Watching(work, self.running.id())));
        Ok(())
    }

    /// A step of it; the last one replies.
    pub(crate) fn go_on_watching(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        work: &mut Watching,
    ) -> Progress {
        let args = work.request.args();
        let end = args.len().min(work.next + WATCHED_TOGETHER);
        let mut guard = access.free(self.turn.unix_ms());
        caller.apply_to(&mut guard);
        let s = caller.session(self);
        let mut progress = if end < args.len() { Progress::More } else { Progress::Complete };
        while work.next < end {
            let bytes = args.get(work.next);
            let slot = guard.keyspace().key(bytes).slot;
            let visited = guard.visit(slot, Intent::Read, |guard| add_watch(s, guard, bytes));
            if let Err(parked) = visited {
                progress = Progress::Park(parked);
                break;
            }
            work.next += 1;
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
fn add_watch(s: &mut Session, guard: &mut Guard<'_>, bytes: &[u8]) {
    if let Some(cell) = s.watched.add(s.db, bytes) {
        let key = guard.keyspace().key(bytes);
        guard.watch(s.db, &key, &cell);
    }
}
