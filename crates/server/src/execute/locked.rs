//! A command under the locks of its class; or it parks, and is tried again when its way is free.

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::execute::locks::lock_keys;
use crate::execute::outcome::{Called, Outcome};
use crate::execute::request::Command;
use crate::execute::window::Hashed;
use crate::sessions::session::{Suspended, gate};
use crate::worker::batch::Batch;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use command::spec::{LockClass, Traits};
use command::{Done, Resumable};
use driver::ConnId;
use keyspace::{Access, Guard, Key, Parked};
use resp::OutBuf;
use std::mem::ManuallyDrop;

/// A command of at least this many keys, or of so many arguments for few keys, declares itself
/// long: others suspend instead of waiting for its slots.
const LONG_KEYS: usize = 1024;
const LONG_ARGS: usize = 2048;

impl Core {
    /// Calls a command's handler under its locks, and follows up on what it leaves.
    pub(super) fn dispatch(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        command: &Command<'_>,
    ) -> Outcome {
        // As on the short path: nothing is to be dropped of a command that has replied.
        let called = ManuallyDrop::new(self.call_locked(access, out, command));
        if matches!(*called, Called::Left(Done::Replied)) {
            return Outcome::Done;
        }
        match ManuallyDrop::into_inner(called) {
            Called::Over(outcome) => outcome,
            Called::Left(done) => {
                self.note_unlocked(command.id);
                self.follow_up(access, out, command.caller, command.id, done)
            }
        }
    }

    /// Takes the locks that the command's class asks for and calls its handler.
    fn call_locked(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        command: &Command<'_>,
    ) -> Called {
        if command.id.spec().traits.contains(Traits::RUNS_QUEUE) {
            return self.exec(access, out, command).into();
        }
        let class = self.lock_class(command);
        access.set_exempt_from_turns(command.caller.may_pass);
        match class {
            LockClass::None | LockClass::Each => {
                let mut guard = access.free(self.turn.unix_ms());
                self.call(&mut guard, out, command)
            }
            LockClass::Keys => self.call_on_keys(access, out, command, class),
            LockClass::Growing => {
                let called = self.call_on_keys(access, out, command, class);
                self.await_growers_turn(command.caller, &called);
                called
            }
            LockClass::World => self.call_in_world(access, out, command),
        }
    }

    /// What this request locks. A walk over few keys takes World, and so sees one moment.
    fn lock_class(&self, command: &Command<'_>) -> LockClass {
        let (spec, args) = (command.id.spec(), command.args);
        let class = command::keys::lock_class(spec, args);
        let begins_tracking =
            class == LockClass::None && command::keys::begins_tracking(spec, args);
        if begins_tracking && !self.shared.tracking.is_told() {
            return LockClass::World; // from here on every worker tells of every change
        }
        let keys = || self.shared.keyspace.db_len(command.caller.db);
        if class == LockClass::Each && command::keys::sees_one_moment(spec, args, keys) {
            return LockClass::World;
        }
        class
    }

    /// Under the slots of its keys.
    fn call_on_keys(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        command: &Command<'_>,
        class: LockClass,
    ) -> Called {
        let Command { caller, id, args, hashed } = *command;
        self.locking.collect(&self.shared.keyspace, caller.db, id, args, hashed.first);
        let is_long = self.locking.keys.len() >= LONG_KEYS || args.len() >= LONG_ARGS;
        if is_long && let Err(parked) = access.may_be_long() {
            return Called::Left(Done::Park(parked));
        }
        let (slots, now) = (&self.locking.slots, self.turn.unix_ms());
        let mut guard = match lock_keys(access, id.spec(), class, args, slots, now) {
            Ok(guard) => guard,
            Err(parked) => return Called::Left(Done::Park(parked)),
        };
        if is_long {
            guard.mark_long();
        }
        if is_long && let Some(work) = self.unshare_ahead(&guard, command) {
            return Called::Left(Done::Prepare(work));
        }
        let keys = std::mem::take(&mut self.locking.keys);
        let hashed = Hashed { first: keys.first().copied().unwrap_or(hashed.first), all: &keys };
        let called = self.call(&mut guard, out, &Command { hashed, ..*command });
        drop(guard);
        self.locking.keys = keys;
        called
    }

    /// What is copied ahead of a command with many members, unless that was done, or it may not
    /// wait ([`command::unshare`]).
    #[cold]
    #[inline(never)]
    fn unshare_ahead(
        &mut self,
        guard: &Guard<'_>,
        command: &Command<'_>,
    ) -> Option<Box<dyn Resumable>> {
        let Command { caller, id, args, .. } = *command;
        if !caller.may_suspend || caller.session(self).prepared.is_some() {
            return None;
        }
        let key = self.locking.keys.first()?;
        let key = Key { bytes: args.get(key.arg as usize), hash: key.hash, slot: key.slot };
        command::unshare::ahead(guard, caller.db, &key, args, id.spec())
    }

    /// Alone in the keyspace. DEBUG SLEEP stays so until its time is over.
    fn call_in_world(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        command: &Command<'_>,
    ) -> Called {
        let Command { caller, id, args, .. } = *command;
        let may_run = |core: &mut Self| core.may_run_in_world(caller, id.spec(), args);
        let called = if let Err(parked) = self.try_world(access, may_run) {
            Called::Left(Done::Park(parked))
        } else {
            let mut guard = access.world(self.turn.unix_ms());
            let called = self.call(&mut guard, out, command);
            drop(guard);
            if self.tasks.sleeping.is_none() {
                access.open_world();
            }
            called
        };
        self.enter(access);
        called
    }

    /// Closes World for a command that may run in it; the caller opens it and enters again, which
    /// it does as well if this fails.
    pub(super) fn try_world(
        &mut self,
        access: &mut Access,
        may_run: impl FnOnce(&mut Self) -> Result<(), Parked>,
    ) -> Result<(), Parked> {
        access.step_beside();
        access.try_world()?;
        may_run(self).inspect_err(|_| access.open_world())
    }

    /// A grower that has come upon a long holder waits for its turn.
    #[cold]
    pub(super) fn await_growers_turn(&mut self, caller: &Caller, called: &Called) {
        if matches!(called, Called::Left(Done::Park(Parked::Slot(_)))) {
            let keyspace = Arc::clone(&self.shared.keyspace);
            caller.session(self).await_turn(&keyspace);
        }
    }

    /// Enters the section if the gate is open. Also called behind a command under World: if the
    /// gate is closed then, the remaining commands of the window park, because each of them checks
    /// it. Nothing becomes restricted while anybody is inside, so this is where to check whether
    /// the short path is closed.
    #[inline]
    pub(super) fn enter(&mut self, access: &mut Access) {
        self.batch.is_behind_gate = !access.enter_or_stay_beside();
        self.follow();
        if self.shared.keyspace.is_restricted() != (self.gates & closed::RESTRICTED != 0) {
            self.refresh_gates();
        }
        self.batch.is_numbered = self.gates & closed::NUMBERED != 0;
        self.find_unusual();
    }

    /// Finds from where on the window's commands are not executed as usual.
    #[inline]
    pub(super) fn find_unusual(&mut self) {
        let Batch { is_behind_gate, is_numbered, is_mixed, .. } = self.batch;
        let are_all = is_behind_gate | is_numbered | is_mixed;
        self.batch.set_unusual_from(if are_all { 0 } else { self.sampler.next_framed });
    }

    /// Suspends a session until its way is free.
    pub fn park(&mut self, access: &mut Access, caller: &Caller, at: Parked) {
        let keyspace = Arc::clone(&self.shared.keyspace);
        let s = caller.session(self);
        match at {
            Parked::Section(_) => s.await_turn(&keyspace),
            Parked::Turn => s.set_gate(gate::TURN, true),
            Parked::Freeze => s.set_gate(gate::MAY_FREEZE, true),
            // That may take very long; it comes back later.
            Parked::Frozen(_) => s.end_turn(),
            Parked::Thaw => s.turn = None,
            Parked::Slot(_) | Parked::Gate | Parked::Growth => {}
        }
        s.suspend(Suspended::Parked(at));
        self.retry_when_free(access, at, caller.conn());
    }

    /// The connection hears of it when the way is free: at once if it is free already.
    pub(crate) fn retry_when_free(&self, access: &mut Access, at: Parked, conn: ConnId) {
        if !access.park(at, conn.token()) {
            self.shared.post(self.id, Message::Retry(conn));
        }
    }
}
