//! Calling a handler under locks that are held, whatever its kind, and ending what it did.

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::execute::outcome::{Called, Outcome};
use crate::execute::panics::Panicked;
use crate::execute::request::Command;
use crate::execute::steps::run_through;
use crate::execute::window::KeyRef;
use crate::worker::core::Core;
use command::spec::{CommandSpec, DataFn, Handler, LockClass};
use command::{CommandId, Ctx, Done, Error, Full, record};
use keyspace::Guard;
use resp::{Args, OutBuf, Proto, Reply};
use std::panic::resume_unwind;

impl Core {
    /// Calls a handler under locks already held; used by single commands and by EXEC.
    pub fn call(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        command: &Command<'_>,
    ) -> Called {
        let Command { caller, id, args, .. } = *command;
        let (from, mark) = (out.position(), guard.mark());
        let result = if self.gates & (closed::ARMED | closed::UNWRITTEN) == 0 {
            self.handle(guard, out, command)
        } else {
            let called = self.handle_armed(guard, out, command);
            self.look_at_read(guard, out, command, mark, called)
        };
        let runs_again = matches!(
            result,
            Ok(Called::Left(Done::Prepare(_) | Done::Park(_)) | Called::Over(Outcome::Retry))
        );
        if result.is_err() {
            guard.rollback_to(mark);
        } else if self.gates & closed::NUMBERED != 0 {
            record::leave(guard, mark, id.spec(), caller.db, args);
        }
        if self.has_monitors() && !runs_again {
            self.attach_command_line(guard, caller, id, args);
        }
        self.finish_command(guard, caller);
        if caller.listens {
            self.end_read(guard, command, runs_again);
        }
        result.unwrap_or_else(|e| {
            out.truncate(from);
            self.refuse(out, caller.proto, Some(id), &e, true);
            Outcome::Done.into()
        })
    }

    /// Calls the handler, whatever its kind.
    fn handle(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        command: &Command<'_>,
    ) -> Result<Called, Error> {
        let Command { caller, id, args, .. } = *command;
        let spec = id.spec();
        match spec.handler {
            Handler::Data(run) => self.call_data(guard, out, command, run).map(Called::Left),
            Handler::Blocking(wait, take) => self.call_blocking(guard, out, command, (wait, take)),
            Handler::Session(parse) => {
                caller.apply_to(guard);
                let op = parse(args);
                op.and_then(|op| self.session_op(guard, out, caller, args, op)).map(Called::Over)
            }
            Handler::Server(parse) => {
                caller.apply_to(guard);
                parse(args).and_then(|op| self.server_op(guard, out, caller, op))
            }
            Handler::Container => {
                Err(Error::unknown_subcommand(spec.name, args.get(args.len().min(2) - 1)))
            }
        }
    }

    /// Of all handlers, one may be made to panic or to fail.
    #[cold]
    fn handle_armed(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        command: &Command<'_>,
    ) -> Result<Called, Error> {
        let called = self.catch_handler(|core| core.handle(guard, out, command));
        called.unwrap_or_else(|Panicked(why)| resume_unwind(why))
    }

    /// A handler's context for a request of a caller, whose rules hold under these locks from here
    /// on.
    pub(crate) fn ctx<'a, 'g>(
        &'a mut self,
        guard: &'a mut Guard<'g>,
        out: &'a mut OutBuf,
        caller: &Caller,
        args: Args<'a>,
        key: KeyRef,
    ) -> Ctx<'a, 'g> {
        caller.apply_to(guard);
        let (settings, tally) = (&self.settings.command, &mut self.tally);
        let reply = caller.reply(out);
        Ctx::new(guard, reply, args, caller.db, self.turn.unix_ms(), settings, tally, key)
    }

    fn call_data(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        command: &Command<'_>,
        run: DataFn,
    ) -> Result<Done, Error> {
        let Command { caller, args, hashed, .. } = *command;
        self.arm(guard, self.running.id());
        let full = Full::new(self.take_prepared(caller), hashed.all)
            .in_subscribed_mode(caller.is_in_subscribed_mode);
        let mut ctx = self.ctx(guard, out, caller, args, hashed.first).with_full(&full);
        let mut result = run(&mut ctx);
        if !caller.may_suspend {
            result = run_through(&mut ctx, result, run);
        }
        self.store_prepared(caller, &result, full.into_prepared());
        result
    }

    /// Writes an error reply and counts it.
    pub fn refuse(
        &mut self,
        out: &mut OutBuf,
        proto: Proto,
        id: Option<CommandId>,
        e: &Error,
        executed: bool,
    ) {
        let text = e.text();
        let counters = &self.shared.workers[self.id];
        counters.errors.count(&text);
        if let Some(id) = id {
            if executed {
                counters.commands.failed(id.index());
            } else {
                counters.commands.rejected(id.index());
            }
        }
        Reply::new(out, proto).error_bytes(&text);
    }
}

/// A request that reads more than the slots that it locks.
pub(crate) fn reads_everything(spec: &CommandSpec, args: Args<'_>) -> bool {
    command::keys::lock_class(spec, args) == LockClass::Each || spec.walk.is_some()
}
