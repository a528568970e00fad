//! DEBUG RELOAD: the data is saved, removed, and loaded from the file, by the code which does that
//! at any other time. DEBUG LOADAOF: the same with the append-only file.
//!
//! ```text
//! DEBUG RELOAD          World: writes wait from here on
//!   save                as SAVE
//!   Load::plan          commands are refused; the fence says so
//!   worker 0            opens the file; under World removes what is there; writes wait no more
//!   loader threads      as at the start
//!   Message::Reloaded   the client is answered
//!
//! DEBUG LOADAOF         World: writes wait from here on
//!   worker 0            writes and syncs what is recorded; under World, when nothing is left:
//!   Load::plan          as above, with the folder's files
//! ```
//!
//! No acknowledged write is lost between the moment of the file and its loading: writes wait until
//! World is taken for the second time, and whoever enters behind that has followed the fence.
//!
//! While changes are recorded, both lead to the data which the append-only file has. So neither the
//! removal nor what is loaded leaves records (`Access::set_exempt_from_records`), the numbers of
//! slots stay, and a server which is killed meanwhile starts with the same data. If loading fails
//! behind the removal, the server ends, as at the start: it appends nothing to a file whose data it
//! does not have.

use crate::execute::caller::Caller;
use crate::execute::gates::misconfigured_journal;
use crate::execute::outcome::{Called, Outcome};
use crate::persist::load::folder::Place;
use crate::persist::load::state::{Plan, Reload};
use crate::persist::save::status::Why;
use crate::sessions::session::Suspended;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::retry::Work;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::{Done, Error};
use driver::{ConnId, Driver};
use keyspace::{Guard, Intent};
use std::path::PathBuf;

/// What is loaded leaves no records, so it must be what the append-only file has.
const NOT_RECORDED: &str = "ERR DEBUG RELOAD NOSAVE is not possible while changes are appended to \
                            a file (appendonly yes)";

impl Core {
    /// DEBUG RELOAD. The caller holds World.
    ///
    /// # Errors
    /// While a file is loaded or saved, and inside EXEC, which cannot wait.
    pub(crate) fn debug_reload(
        &mut self,
        guard: &Guard<'_>,
        caller: &Caller,
        saves: bool,
        flushes: bool,
    ) -> Result<Called, Error> {
        self.may_reload(caller)?;
        if self.shared.journal.is_on() && !saves {
            return Err(Error::made(NOT_RECORDED));
        }
        // A key that MIGRATE is about to remove would be in the file.
        if let Err(parked) = guard.keyspace().may_everything(Intent::Write) {
            return Ok(Called::Left(Done::Park(parked)));
        }
        if saves {
            self.want_save(Why::Reload { flushes }, Some(caller.conn()))?;
            self.shared.saves.set_reloading(true);
            self.publish_fence();
        } else if self.shared.saves.state().is_busy() {
            return Err(Error::SaveUnderWay);
        } else {
            let file = {
                let config =
                    self.shared.config.lock().expect("no panic while the configuration is held");
                config.dir.join(&config.dbfilename)
            };
            self.plan_reload(file, flushes, caller.conn());
        }
        self.suspend(caller, Suspended::Saving(self.clock.now()));
        Ok(Outcome::Waiting.into())
    }

    /// DEBUG LOADAOF. The caller holds World.
    ///
    /// # Errors
    /// As [`Core::debug_reload`], and while the file is rewritten: what is read would be removed.
    pub(crate) fn debug_load_aof(
        &mut self,
        guard: &Guard<'_>,
        caller: &Caller,
    ) -> Result<Called, Error> {
        self.may_reload(caller)?;
        let status = &self.shared.journal;
        if status.is_rewriting.load(Relaxed) || status.is_scheduled.load(Relaxed) {
            return Err(Error::RewriteUnderWay);
        }
        if self.shared.saves.state().is_busy() {
            return Err(Error::SaveUnderWay);
        }
        if let Err(parked) = guard.keyspace().may_everything(Intent::Write) {
            return Ok(Called::Left(Done::Park(parked)));
        }
        self.shared.saves.set_reloading(true);
        self.publish_fence();
        self.shared.post(0, Message::LoadAppendOnly(self.id, caller.conn()));
        self.suspend(caller, Suspended::Saving(self.clock.now()));
        Ok(Outcome::Waiting.into())
    }

    fn may_reload(&self, caller: &Caller) -> Result<(), Error> {
        if caller.is_in_exec() {
            return Err(Error::NotInMulti);
        }
        if self.shared.load.is_on() {
            return Err(Error::Loading);
        }
        if self.shared.saves.is_reloading() {
            let is_saving = self.shared.saves.state().is_busy();
            return Err(if is_saving { Error::SaveUnderWay } else { Error::Loading });
        }
        Ok(())
    }

    /// The file is there, and is loaded next.
    pub(crate) fn plan_reload(&mut self, path: PathBuf, flushes: bool, conn: ConnId) {
        let reload = Some(Reload { flushes, asker: (self.id, conn) });
        self.shared.load.plan(Plan { path, place: None, reload });
        self.publish_fence();
        self.shared.post(0, Message::Load);
    }

    /// Writes wait no more, or are refused from here on because the file is loaded.
    pub(crate) fn release_reload(&mut self) {
        self.shared.saves.set_reloading(false);
        self.publish_fence(); // wakes those who wait
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Loads the append-only file for DEBUG LOADAOF, as soon as everything is in it. Called when
    /// the writer has made a step, and now and then.
    pub(crate) fn load_append_only(&mut self) {
        if self.core.tasks.aof_asker.is_some() {
            self.try_load_append_only();
        }
    }

    #[cold]
    fn try_load_append_only(&mut self) {
        let now = self.core.turn.now();
        if self.core.tasks.retries.next(Work::Load, true, now).is_some_and(|at| at > now) {
            return;
        }
        if self.is_shutting_down() {
            self.core.tasks.aof_asker = None;
            return;
        }
        if let Some(error) = self.refuses_append_only() {
            let Some(asker) = self.core.tasks.aof_asker.take() else { return };
            self.core.release_reload();
            return self.end_reload(Reload { flushes: true, asker }, Some(error));
        }
        // Tested before, so that nobody is stopped in vain.
        if !self.is_journal_flushed() || self.access.try_world().is_err() {
            return self.core.tasks.retries.postpone(Work::Load, now);
        }
        // Reads may have removed what was due.
        if !self.is_journal_flushed() {
            self.access.open_world();
            return self.core.tasks.retries.postpone(Work::Load, now);
        }
        let shared = Arc::clone(&self.core.shared);
        let place = {
            let config = shared.config.lock().expect("no panic while the configuration is held");
            Place::of(&config)
        };
        let reload = self.core.tasks.aof_asker.take();
        let reload = reload.map(|asker| Reload { flushes: true, asker });
        shared.load.plan(Plan { path: place.manifest(), place: Some(place), reload });
        self.core.publish_fence();
        self.access.open_world();
        self.begin_loading();
    }

    /// Why the append-only file cannot be loaded now.
    fn refuses_append_only(&self) -> Option<Error> {
        let tasks = &self.core.tasks;
        let Some(journal) = &tasks.journal else {
            // One that has not begun has nothing of what is in memory.
            let is_beginning = tasks.is_finding_journal() || self.core.is_appendonly();
            return is_beginning.then_some(Error::RewriteUnderWay);
        };
        if !journal.writer.is_complete() || journal.writer.is_rewriting() {
            return Some(Error::RewriteUnderWay);
        }
        journal.writer.trouble()?;
        self.core.shared.journal.trouble().map(|why| misconfigured_journal(&why))
    }

    /// Everything that was recorded is in the files.
    fn is_journal_flushed(&self) -> bool {
        let recorded = self.core.shared.keyspace.journal();
        self.core.tasks.journal.as_ref().is_none_or(|journal| journal.is_flushed(recorded))
    }
}
