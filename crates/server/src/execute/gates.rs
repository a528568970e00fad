//! The gates a command passes before it may touch data, in the order in which Redis checks them:
//! existence, arity, authentication, memory, loading, pause, transaction queue.

use crate::execute::caller::Caller;
use crate::sessions::session::{Session, gate};
use crate::worker::core::Core;
use base::sync::atomic::Ordering::Relaxed;
use command::error::{Arity, Subscribed};
use command::spec::{CommandSpec, Flags, Traits};
use command::{CommandId, Error};
use resp::Args;

/// Bits of [`Core::gates`]: conditions of the whole server that take commands off the short path.
pub mod closed {
    /// `maxmemory` is exceeded.
    pub const MEMORY: u32 = 1;
    /// CLIENT PAUSE is on.
    pub const PAUSE: u32 = 1 << 1;
    /// DEBUG PANIC-IN-COMMAND is armed.
    pub const ARMED: u32 = 1 << 2;
    /// Each command is recorded separately: its time (the slowlog threshold is finer than the batch
    /// clock) or its size.
    pub const CLOCK: u32 = 1 << 3;
    /// Some keys are closed to some uses: [`keyspace::Keyspace::may`] is asked before each lock.
    pub const RESTRICTED: u32 = 1 << 4;
    /// Some client monitors.
    pub const MONITOR: u32 = 1 << 5;
    /// Changes draw numbers, and leave records if there is an append-only file.
    pub const NUMBERED: u32 = 1 << 6;
    /// Background saves fail, and writes stop for that (`stop-writes-on-bgsave-error`).
    pub const UNSAVED: u32 = 1 << 7;
    /// A file is being loaded.
    pub const LOADING: u32 = 1 << 8;
    /// Writes wait for a save, or for a worker that is behind with events of keys.
    pub const HELD: u32 = 1 << 9;
    /// Replies to changes wait until these are durable.
    pub const AWAITED: u32 = 1 << 10;
    /// The append-only file cannot be written, or the disk does not answer. The latter refuses no
    /// writes.
    pub const UNWRITTEN: u32 = 1 << 11;
    /// The window writes to a database that is full (`db-limit`).
    pub const BUDGET: u32 = 1 << 12;
    /// Some commands wait.
    pub const WAITS: u32 = PAUSE | HELD;
}

/// What the gates decided.
pub enum Verdict {
    /// Execute it now.
    Pass(CommandId),
    /// Queue it for EXEC.
    Queue(CommandId),
    /// Wait until CLIENT PAUSE ends, or the save for which writes wait goes on.
    Wait,
    /// Wait until more watches and tickets of the client are released.
    WaitForReleases,
    /// Answer this error.
    Refuse(Option<CommandId>, Error),
    /// Close the connection without an answer.
    Close,
}

impl Core {
    /// Finds the command and passes it through the gates.
    pub fn gate(
        &self,
        session: &Session,
        caller: &Caller,
        id: Option<CommandId>,
        args: Args<'_>,
    ) -> Verdict {
        let Some(id) = id else {
            if is_http(args.get(0)) {
                return Verdict::Close;
            }
            return Verdict::Refuse(
                None,
                Error::unknown_command((0..args.len()).map(|at| args.start(at))),
            );
        };
        let id = match command::resolve(id, args) {
            Ok(id) => id,
            Err(e) => return Verdict::Refuse(None, e),
        };
        let spec = id.spec();
        if !spec.accepts(args.len()) {
            return Verdict::Refuse(Some(id), Arity { command: spec.full_name }.into());
        }
        if spec.traits.contains(Traits::DEBUG)
            && !self.settings.enable_debug_command.allows(session.is_local)
        {
            return Verdict::Refuse(Some(id), Error::DebugDisabled);
        }
        if !self.is_let_in(session) && !spec.flags.contains(Flags::NO_AUTH) {
            return Verdict::Refuse(Some(id), Error::NoAuth);
        }
        if caller.denies(spec) {
            return Verdict::Refuse(Some(id), Error::MonitorOnKeys);
        }
        if self.is_memory_full() && denied_by_memory(session, spec) {
            return Verdict::Refuse(Some(id), Error::OutOfMemory);
        }
        if let Some(why) = self.denied_by_budgets(session, spec, args) {
            return Verdict::Refuse(Some(id), why);
        }
        if self.gates & closed::UNSAVED != 0 && denied_unsaved(session, spec) {
            return Verdict::Refuse(Some(id), Error::MisconfiguredSave);
        }
        if self.gates & closed::UNWRITTEN != 0
            && denied_unsaved(session, spec)
            && let Some(why) = self.shared.journal.trouble()
        {
            return Verdict::Refuse(Some(id), misconfigured_journal(&why));
        }
        if let Some(why) = self.denied_by_state(session, caller, spec) {
            return Verdict::Refuse(Some(id), why);
        }
        if self.gates & closed::WAITS != 0 && self.held_by_pause(session, spec) {
            return Verdict::Wait;
        }
        if session.multi.is_some() {
            // EXEC does not wait, so a command that has to wait is not queued.
            if Caller::of_queue(session).denies(spec) {
                return Verdict::Refuse(Some(id), Error::NotInMulti);
            }
            if !spec.traits.contains(Traits::NOT_QUEUED) {
                return Verdict::Queue(id);
            }
        }
        if self.must_await_releases(session, spec, args.len()) {
            return Verdict::WaitForReleases;
        }
        Verdict::Pass(id)
    }

    /// True if the session has authenticated or need not. (The password may have been removed.)
    pub(crate) fn is_let_in(&self, session: &Session) -> bool {
        session.authenticated || !self.settings.needs_password()
    }

    /// What a client with subscriptions may not send, and nobody while a file is loaded.
    fn denied_by_state(
        &self,
        session: &Session,
        caller: &Caller,
        spec: &CommandSpec,
    ) -> Option<Error> {
        if caller.is_in_subscribed_mode && !spec.traits.contains(Traits::WHILE_SUBSCRIBED) {
            return Some(Subscribed { command: spec.full_name }.into());
        }
        let is_loading = self.gates & closed::LOADING != 0;
        (is_loading && self.denied_by_loading(session, spec)).then_some(Error::Loading)
    }

    /// EXEC is denied if any queued command is: it was queued before loading began.
    fn denied_by_loading(&self, session: &Session, spec: &CommandSpec) -> bool {
        any_of(session, spec, |spec| !spec.flags.contains(Flags::LOADING))
            && self.shared.load.is_on()
    }

    fn held_by_pause(&self, session: &Session, spec: &CommandSpec) -> bool {
        if self.are_writes_held_back() && any_of(session, spec, CommandSpec::may_change) {
            return true;
        }
        let is_tracker = session.gates & gate::TRACKING != 0;
        if (self.shared.are_misses_behind() || is_tracker && self.shared.are_events_behind())
            && any_of(session, spec, |spec| spec.flags.contains(Flags::READONLY))
        {
            return true;
        }
        let pause = &self.shared.pause;
        if pause.until_ms.load(Relaxed) <= self.turn.unix_ms().0 {
            return false;
        }
        if pause.all.load(Relaxed) {
            return true;
        }
        any_of(session, spec, CommandSpec::may_change)
    }
}

/// Whether `holds` is true of the command or, if it runs the queue, of any queued command.
fn any_of(session: &Session, spec: &CommandSpec, holds: impl Fn(&CommandSpec) -> bool) -> bool {
    let queue = session.multi.as_ref().filter(|_| spec.traits.contains(Traits::RUNS_QUEUE));
    holds(spec) || queue.is_some_and(|multi| multi.queue.iter().any(|(id, _)| holds(id.spec())))
}

/// EXEC is denied if any queued command would be.
fn denied_by_memory(session: &Session, spec: &CommandSpec) -> bool {
    // A queue takes memory, too, and so do watches.
    let is_queued = session.multi.is_some() && !spec.traits.contains(Traits::ENDS_MULTI);
    is_queued
        || spec.traits.contains(Traits::WATCHES)
        || any_of(session, spec, |spec| spec.flags.contains(Flags::DENYOOM))
}

/// Writes are denied, and as in Redis also PING, which tells who watches the server.
fn denied_unsaved(session: &Session, spec: &CommandSpec) -> bool {
    spec.traits.contains(Traits::TELLS_SAVE_ERRORS)
        || any_of(session, spec, |spec| spec.flags.contains(Flags::WRITE))
}

/// The append-only file cannot be written, for this reason.
pub(crate) fn misconfigured_journal(why: &str) -> Error {
    Error::made(format!("MISCONF Errors writing to the AOF file: {why}"))
}

/// True for the first word of an HTTP request: a web page may make a browser send one here.
fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}

impl Session {
    /// Records that a command of the open transaction was refused.
    pub fn fail_transaction(&mut self) {
        if let Some(multi) = &mut self.multi {
            multi.failed = true;
        }
    }

    /// True if the session may take the short path.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.gates & !gate::STOPPED == 0
    }
}
