//! Commands that go on in steps, with their locks dropped between them.

use super::Core;
use super::execute::Outcome;
use super::window::{Framed, NO_KEY, Window};
use crate::session::{Suspended, Task};
use command::spec::ResumableFn;
use command::{CommandId, Ctx, Error, Resumable};
use driver::ConnId;
use keyspace::{Access, Guard};
use resp::{Args, OutBuf, Reply};

impl Core {
    /// A command of the short path has left work: it is timed by itself from here on.
    #[cold]
    pub(super) fn go_on_framed(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        let (Some(session), Some(id)) = (self.sessions[c.session as usize].as_deref(), c.id) else {
            return;
        };
        let conn = session.conn;
        self.off_path.push(c.spans_from);
        let started = self.clock.now();
        let outcome = self.go_on(access, out, conn, id);
        self.timed_ns += self.clock.now().since(started);
        self.note_executed(conn, c.id, window.args(input, c), started, outcome);
        if outcome == Outcome::Waiting {
            self.stop_at(c.session, c.end as usize);
        }
    }

    /// Goes on with what a handler left ([`Ctx::resume`]), its locks dropped.
    #[cold]
    pub(super) fn go_on(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        conn: ConnId,
        id: CommandId,
    ) -> Outcome {
        let Some(rest) = self.tally.rest.take() else { return Outcome::Done };
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
        let mut ctx = Ctx::new(
            guard,
            Reply::new(out, s.proto),
            args,
            s.db,
            self.unix_ms,
            &self.settings.command,
            &mut self.tally,
            NO_KEY,
        );
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
        let mut ctx = Ctx::new(
            guard,
            Reply::new(out, s.proto),
            Args::default(),
            s.db,
            self.unix_ms,
            &self.settings.command,
            &mut self.tally,
            NO_KEY,
        );
        if self.in_exec {
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
