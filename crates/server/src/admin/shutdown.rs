//! SHUTDOWN.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::log;
use crate::worker::core::Core;
use base::DbIndex;
use command::Error;
use command::ops::ShutdownOp;

impl Core {
    /// Ends the server; there is no reply on success, the connection just closes. SAVE promises
    /// what this version cannot keep: with data it is refused, unless FORCE says to end whatever
    /// fails.
    pub(crate) fn shutdown_op(
        &mut self,
        caller: &Caller,
        op: ShutdownOp,
    ) -> Result<Outcome, Error> {
        match op {
            ShutdownOp::Abort => Err(Error::NoShutdown),
            ShutdownOp::End { save: Some(true), force: false, .. } if self.has_data() => {
                Err(Error::NoPersistence)
            }
            ShutdownOp::End { save, .. } => {
                if save == Some(true) && self.has_data() {
                    log::warning(format_args!(
                        "SHUTDOWN SAVE FORCE: this version cannot save to disk, all data is lost"
                    ));
                }
                log::notice(format_args!("User requested shutdown..."));
                self.finish(caller);
                self.shared.begin_shutdown();
                Ok(Outcome::Done)
            }
        }
    }

    fn has_data(&self) -> bool {
        let databases = (0..self.settings.command.databases).map(DbIndex::new);
        databases.into_iter().any(|db| self.shared.keyspace.db_len(db) > 0)
    }
}
