//! The nets under handlers: a panic takes back what its command has changed, and costs one
//! connection. DEBUG PANIC-IN-COMMAND and FAIL-IN-COMMAND try them.

use crate::execute::gates::closed;
use crate::sessions::session::Suspended;
use crate::shared::{ArmedPanic, PanicAt, Shared};
use crate::worker::batch::After;
use crate::worker::core::Core;
use base::sync::atomic::Ordering::Relaxed;
use command::{CommandId, Error};
use driver::ConnId;
use keyspace::{Access, Guard};
use resp::OutBuf;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A handler panicked.
pub(crate) struct Panicked(pub Box<dyn std::any::Any + Send>);

impl Core {
    /// A request of this session panicked: its guard has put everything back. The connection ends,
    /// whether or not a handler was reached, because its client waits for a reply; nobody else
    /// notices.
    pub(super) fn after_panic(&mut self, access: &mut Access, out: &mut OutBuf, session: u32) {
        if access.holds_world() && self.tasks.sleeping.is_none() {
            access.open_world();
            self.enter(access);
        }
        self.key_events.set_runner(None);
        let running = self.running.take_of(session);
        if running.is_some() {
            self.turn.output.take_back(session, self.running.reply_from(), out);
        }
        let Some(conn) = self.sessions[session as usize].as_deref().map(|s| s.conn) else { return };
        self.close_after_panic(conn, running);
        self.turn.output.open(session, out);
        self.batch.after.push(After::Stop { conn, from: 0, to: 0 });
    }

    /// A command panicked, and what it had begun was undone: its session ends. Nobody serves it any
    /// more.
    #[cold]
    pub(crate) fn close_after_panic(&mut self, conn: ConnId, id: Option<CommandId>) {
        let Some(s) = self.session_mut(conn) else { return };
        crate::log::warning(format_args!(
            "Command '{}' of client id={} addr={} panicked; its changes were rolled back and the connection is closed",
            id.map_or("?", |id| id.spec().full_name),
            s.card.id,
            s.card.addr
        ));
        if let Suspended::Blocked(blocked) = &s.suspended {
            blocked.ticket.claim();
        }
        s.finish();
        self.turn.closing.push(conn);
    }

    /// Runs a part of a command that is not under its window's net: a step, serving somebody,
    /// removing what has moved away. A panic in it must leave no lock behind, so its guard is
    /// dropped inside or rolled back by the caller.
    pub(crate) fn catch<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> Result<R, Panicked> {
        catch_unwind(AssertUnwindSafe(|| run(self))).map_err(Panicked)
    }

    /// As [`Core::catch`], for a handler, which may be one that DEBUG FAIL-IN-COMMAND makes fail.
    pub(crate) fn catch_handler<R>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<R, Error>,
    ) -> Result<Result<R, Error>, Panicked> {
        let caught = self.catch(run);
        if std::mem::take(&mut self.running.fails) && caught.is_err() {
            return Ok(Err(Error::AskedFor));
        }
        caught
    }

    /// DEBUG PANIC-IN-COMMAND: the door panics at the armed change of this command.
    #[inline]
    pub(crate) fn arm(&mut self, guard: &mut Guard<'_>, id: Option<CommandId>) {
        if self.gates & closed::ARMED != 0
            && let Some(id) = id
            && let Some(changes) =
                self.disarm(|at| at == PanicAt::AnyCommand || at == PanicAt::Command(id))
        {
            guard.panic_after(changes);
        }
    }

    /// Takes the panic that is armed, if it is meant for here and for this run.
    #[cold]
    pub(crate) fn disarm(&mut self, is_here: impl FnOnce(PanicAt) -> bool) -> Option<u32> {
        let panic = self.shared.disarm(is_here)?;
        self.running.fails = panic.is_error;
        self.gates &= !closed::ARMED;
        Some(panic.after_changes)
    }
}

impl Shared {
    /// Takes the panic that is armed, if it is meant for here and for this run.
    pub(crate) fn disarm(&self, is_here: impl FnOnce(PanicAt) -> bool) -> Option<ArmedPanic> {
        let mut armed = self.panic_in.lock().expect("no panic while it is held");
        let panic = armed.as_mut().filter(|panic| is_here(panic.at))?;
        if panic.runs_left > 0 {
            panic.runs_left -= 1;
            return None;
        }
        self.armed.store(false, Relaxed);
        armed.take()
    }
}
