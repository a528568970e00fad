//! Operations on the whole keyspace, carried out while this worker holds World.

use crate::admin::info::counts_keys;
use crate::execute::caller::Caller;
use crate::execute::outcome::{Called, Outcome};
use crate::sessions::session::{BlockedMark, Suspended, Task};
use crate::worker::core::Core;
use base::DbIndex;
use command::Error;
use command::ops::{FlushMode, ServerOp};
use keyspace::Guard;
use resp::OutBuf;

impl Core {
    /// Carries out an operation on the server.
    pub(crate) fn server_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        op: ServerOp,
    ) -> Result<Called, Error> {
        // These show what all sessions have done. While the disk fails or hangs they are needed at
        // once. (INFO without the number of keys is always: nobody may have noticed a hang yet.)
        let shows_all = match &op {
            ServerOp::CommandLog(..) | ServerOp::Memory(_) | ServerOp::HotKeys(_) => true,
            ServerOp::Info(sections) => counts_keys(sections),
            _ => false,
        };
        if shows_all && !self.shared.journal.is_unwritten() {
            guard.hold_at_latest();
        }
        let outcome = match op {
            ServerOp::FlushAll(mode) => {
                let keys = guard.flush_all();
                self.save_flushed();
                self.free_flushed(out, caller, keys, mode)
            }
            ServerOp::FlushDb(mode) => {
                let keys = guard.flush_db(caller.db);
                self.free_flushed(out, caller, keys, mode)
            }
            ServerOp::PubSub(op) => return Ok(self.pubsub_op(out, caller, op)),
            ServerOp::SwapDb(a, b) => self.swap_db(guard, out, caller, a, b)?,
            ServerOp::Config(op) => self.config_op(guard, out, caller, op)?,
            ServerOp::Debug(op) => return self.debug_op(guard, out, caller, op),
            ServerOp::Info(sections) => self.info_op(out, caller, &sections),
            ServerOp::Migrate(op) => self.migrate(guard, out, caller, *op)?,
            ServerOp::LastSave => {
                let seconds = self.shared.saves.state().last_save_s;
                caller.reply(out).integer(seconds);
                Outcome::Done
            }
            ServerOp::RewriteAppendOnly => self.rewrite_op(out, caller)?,
            ServerOp::Save(mode) => self.save_op(out, caller, mode)?,
            ServerOp::Shutdown(op) => self.shutdown_op(out, caller, op)?,
            ServerOp::CommandLog(kind, op) => self.log_op(out, caller, kind, op),
            ServerOp::HotKeys(op) => self.hotkeys_op(out, caller, op)?,
            ServerOp::Latency(op) => self.latency_op(out, caller, op)?,
            ServerOp::Memory(op) => self.memory_op(out, caller, op),
        };
        Ok(outcome.into())
    }

    /// The data is out of sight already; it is freed in steps, before the reply if that was asked
    /// for: the client is blocked until then, as in Redis 8, and others are served between the
    /// steps.
    fn free_flushed(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        keys: u64,
        mode: FlushMode,
    ) -> Outcome {
        let lazy = match mode {
            FlushMode::Async => true,
            FlushMode::Sync => false,
            FlushMode::Default => self.settings.lazy_user_flush,
        };
        // Slots without keys may have had a table.
        self.tasks.is_reclaiming = true;
        if lazy {
            self.shared.keyspace.reclaimer().count_freed(keys);
        }
        if lazy || !caller.may_suspend || keys == 0 {
            caller.reply(out).ok();
            return Outcome::Done;
        }
        let mark = BlockedMark::new(&self.shared.blocked.clone(), &caller.session(self).card);
        self.suspend(caller, Suspended::Task(Task::Reclaim(mark)));
        Outcome::Waiting
    }

    fn swap_db(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        a: i32,
        b: i32,
    ) -> Result<Outcome, Error> {
        let databases = self.settings.command.databases;
        let index = |n: i32| {
            u16::try_from(n).ok().filter(|d| *d < databases).map(DbIndex::new).ok_or(Error::DbRange)
        };
        let (a, b) = (index(a)?, index(b)?);
        guard.swap_db(a, b);
        caller.reply(out).ok();
        Ok(Outcome::Done)
    }
}
