//! Operations on the whole keyspace, carried out while this worker holds World.

use crate::session::{Suspended, Task};
use crate::worker::{Called, Core, Outcome};
use base::DbIndex;
use command::Error;
use command::ops::{FlushMode, ServerOp};
use driver::ConnId;
use keyspace::Guard;
use resp::{OutBuf, Reply};

impl Core {
    /// Carries out an operation on the server.
    pub(crate) fn server_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        op: ServerOp,
    ) -> Result<Called, Error> {
        // These show what all sessions have done.
        if matches!(op, ServerOp::Info(_) | ServerOp::CommandLog(..) | ServerOp::Memory(_)) {
            guard.see_all();
        }
        let outcome = match op {
            ServerOp::FlushAll(mode) => {
                let keys = guard.flush_all();
                self.free_flushed(out, conn, keys, mode)
            }
            ServerOp::FlushDb(mode) => {
                let Some(db) = self.session_mut(conn).map(|s| s.db) else {
                    return Ok(Outcome::Done.into());
                };
                let keys = guard.flush_db(db);
                self.free_flushed(out, conn, keys, mode)
            }
            ServerOp::SwapDb(a, b) => self.swap_db(guard, out, conn, a, b)?,
            ServerOp::Config(op) => self.config_op(guard, out, conn, op)?,
            ServerOp::Debug(op) => return self.debug_op(guard, out, conn, op),
            ServerOp::Info(sections) => self.info_op(out, conn, &sections),
            ServerOp::Migrate(op) => self.migrate(guard, out, conn, *op)?,
            ServerOp::Shutdown(op) => self.shutdown_op(out, conn, op)?,
            ServerOp::CommandLog(kind, op) => self.log_op(out, conn, kind, op),
            ServerOp::Latency(op) => self.latency_op(out, conn, op)?,
            ServerOp::Memory(op) => self.memory_op(out, conn, op),
        };
        Ok(outcome.into())
    }

    /// The data is out of sight already; it is freed in steps, before the reply if that was asked for.
    fn free_flushed(
        &mut self,
        out: &mut OutBuf,
        conn: ConnId,
        keys: u64,
        mode: FlushMode,
    ) -> Outcome {
        let lazy = match mode {
            FlushMode::Async => true,
            FlushMode::Sync => false,
            FlushMode::Default => self.settings.lazy_user_flush,
        };
        let in_multi = self.in_exec;
        let Some(s) = self.session_mut(conn) else { return Outcome::Done };
        let proto = s.proto;
        self.reclaiming |= keys > 0;
        if lazy || in_multi || keys == 0 {
            Reply::new(out, proto).ok();
            return Outcome::Done;
        }
        self.suspend(conn, Suspended::Task(Task::Reclaim));
        Outcome::Waiting
    }

    fn swap_db(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        a: i32,
        b: i32,
    ) -> Result<Outcome, Error> {
        let databases = self.settings.command.databases;
        let index = |n: i32| {
            u16::try_from(n).ok().filter(|d| *d < databases).map(DbIndex::new).ok_or(Error::DbRange)
        };
        let (a, b) = (index(a)?, index(b)?);
        guard.swap_db(a, b);
        if let Some(proto) = self.session_mut(conn).map(|s| s.proto) {
            Reply::new(out, proto).ok();
        }
        Ok(Outcome::Done)
    }
}
