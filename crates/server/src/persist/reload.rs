//! DEBUG RELOAD: the data is saved, removed, and loaded from the file, by the code which does that
//! at any other time.
//!
//! ```text
//! DEBUG RELOAD          World: writes wait from here on
//!   save                as SAVE
//!   Load::plan          commands are refused; the fence says so
//!   worker 0            opens the file; under World removes what is there; writes wait no more
//!   loader threads      as at the start
//!   Message::Reloaded   the client is answered
//! ```
//!
//! No acknowledged write is lost between the moment of the file and its loading: writes wait until
//! World is taken for the second time, and whoever enters behind that has followed the fence.

use crate::execute::caller::Caller;
use crate::execute::outcome::{Called, Outcome};
use crate::persist::load::state::{Plan, Reload};
use crate::persist::save::status::Why;
use crate::sessions::session::Suspended;
use crate::worker::core::Core;
use crate::worker::message::Message;
use command::{Done, Error};
use driver::ConnId;
use keyspace::{Guard, Intent};
use std::path::PathBuf;

/// What is loaded leaves no records.
const NOT_RECORDED: &str =
    "ERR DEBUG RELOAD is not possible while changes are appended to a file (appendonly yes)";

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
        if caller.is_in_exec() {
            return Err(Error::NotInMulti);
        }
        if self.shared.load.is_on() {
            return Err(Error::Loading);
        }
        if self.shared.journal.is_on() {
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
