//! Commands that go on in steps, with their locks dropped between them.

use super::Core;
use super::execute::Outcome;
use super::window::{Framed, NO_KEY, Window};
use crate::session::{Suspended, Task};
use command::spec::ResumableFn;
use command::{CommandId, Ctx, Error, Resumable};
use driver::ConnId;
use keyspace::{Access, Guard};
use resp::{Args, OutBuf};

impl Core {
    /// A command of the short path has left work, or all of it: it is timed by itself from here on.
    #[cold]
    pub(super) fn go_on_framed(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        if std::mem::take(&mut self.tally.again) {
            self.tally.rest = None;
            return self.run_off_path(access, window, c, input, out);
        }
        let (Some(session), Some(id)) = (self.sessions[c.session as usize].as_deref(), c.id) else {
            return;
        };
        let conn = session.conn;
        self.off_path.push(c.spans_from);
        let started = self.clock.now();
        let outcome = self.go_on(access, out, conn, id);
        if outcome == Outcome::Retry {
            return self.stop_at(c.session, c.start as usize);
        }
        self.timed_ns += self.clock.now().since(started);
        let sizes = self.sizes(u64::from(c.end - c.start), out);
        self.note_executed(conn, c.id, window.args(input, c), started, outcome, sizes);
        if outcome == Outcome::Waiting {
            self.stop_at(c.session, c.end as usize);
        }
    }

    /// Lets work be done ahead of a command, which is tried again then.
    #[cold]
    fn do_ahead(&mut self, conn: ConnId, work: Box<dyn Resumable>) -> Outcome {
        self.suspend(conn, Suspended::Task(Task::Preparing(work)));
        Outcome::Retry
    }

    /// Goes on with what a handler left ([`command::Ctx::resume`]), its locks dropped.
    #[cold]
    pub(super) fn go_on(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        conn: ConnId,
        id: CommandId,
    ) -> Outcome {
        let Some(rest) = self.tally.rest.take() else { return Outcome::Done };
        if std::mem::take(&mut self.tally.prepares) {
            return self.do_ahead(conn, rest);
        }
        let mut guard = access.free(self.unix_ms);
        let result = self.begin_task(&mut guard, out, conn, id, rest);
        guard.commit();
        result.unwrap_or_else(|e| {
            self.refuse(out, conn.index, Some(id), &e, true);
            Outcome::Done
        })
    }

    /// Starts a handler that goes on in steps; inside EXEC it runs through.
    pub(super) fn call_resumable(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        id: CommandId,
        args: Args<'_>,
        begin: ResumableFn,
    ) -> Result<Outcome, Error> {
        let Some(s) = self.sessions[conn.index as usize].as_deref() else {
            return Ok(Outcome::Done);
        };
        let of = (s.proto, s.db);
        let mut ctx = self.ctx(guard, out, of, args, NO_KEY);
        let work = begin(&mut ctx)?;
        self.begin_task(guard, out, conn, id, work)
    }

    /// Runs the first step; a session with more to do executes nothing else until the last one.
    pub fn begin_task(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        id: CommandId,
        mut work: Box<dyn Resumable>,
    ) -> Result<Outcome, Error> {
        let Some(s) = self.sessions[conn.index as usize].as_deref() else {
            return Ok(Outcome::Done);
        };
        let (of, in_exec) = ((s.proto, s.db), self.in_exec);
        let mut ctx = self.ctx(guard, out, of, Args::default(), NO_KEY);
        if in_exec {
            while !work.step(&mut ctx)? {}
            return Ok(Outcome::Done);
        }
        if work.step(&mut ctx)? {
            return Ok(Outcome::Done);
        }
        self.suspend(conn, Suspended::Task(Task::Resumable(work, id)));
        Ok(Outcome::Waiting)
    }
}

/// Does what a handler has left, under the locks that it has; then the command runs again if that was done ahead of it.
pub(super) fn run_through<T>(
    ctx: &mut Ctx<'_, '_>,
    mut result: Result<T, Error>,
    mut again: impl FnMut(&mut Ctx<'_, '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    while let Some(mut rest) = ctx.tally.rest.take() {
        ctx.guard.mark_long();
        while !rest.step(ctx)? {}
        if std::mem::take(&mut ctx.tally.prepares) {
            ctx.tally.prepared = Some(rest);
            result = again(ctx);
        }
    }
    ctx.tally.prepared = None;
    result
}
