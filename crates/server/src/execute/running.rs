//! What lives for one command: which it is, where its reply begins, and what it has asked for.
//!
//! The short path sets the first two with [`Running::begin`]. The full path forgets the last
//! command with [`Running::reset`] and names the next with [`Running::begin_handler`] once that has
//! passed its gates: until then a panic is nobody's. EXEC names each command of its queue so.

use crate::settings::rewriter::Asked;
use base::MonoNs;
use command::CommandId;
use resp::OutPos;

/// The command that is executed, or was executed last.
#[derive(Default)]
pub struct Running {
    /// Its session's place and its row; none if it did not pass its gates.
    command: Option<(u32, CommandId)>,
    reply_from: OutPos,
    /// Time that was spent ahead of it.
    timed_ahead_ns: u64,
    /// When it began, and when its locks dropped; not that, if they dropped at its end.
    started: MonoNs,
    unlocked: Option<MonoNs>,
    /// The panic that is armed for its handler stands for an error (DEBUG FAIL-IN-COMMAND).
    pub fails: bool,
    /// What it has asked the writer of the configuration file for, if it is EXEC.
    pub rewrites: Option<Asked>,
}

impl Running {
    /// A command begins, with its reply here.
    #[inline]
    pub fn begin(&mut self, session: u32, id: CommandId, reply_from: OutPos) {
        self.command = Some((session, id));
        self.reply_from = reply_from;
    }

    /// A request begins whose command is not known to run.
    #[inline]
    pub fn reset(&mut self, reply_from: OutPos) {
        self.command = None;
        self.reply_from = reply_from;
    }

    /// The request's command, or the next one of a queue, runs.
    #[inline]
    pub fn begin_handler(&mut self, session: u32, id: CommandId) {
        self.command = Some((session, id));
    }

    /// A command that is timed by itself has begun.
    #[inline]
    pub fn time_from(&mut self, started: MonoNs) {
        self.started = started;
        self.unlocked = None;
    }

    /// Its locks have dropped, and it goes on. Returns for how long it held them.
    pub fn unlock(&mut self, now: MonoNs) -> u64 {
        self.unlocked = Some(now);
        now.since(self.started)
    }

    /// For how long it held its locks, if they dropped at its end, after `ns`.
    pub fn held_to_its_end(&self, ns: u64) -> Option<u64> {
        self.unlocked.is_none().then_some(ns)
    }

    /// The command.
    #[inline]
    pub fn id(&self) -> Option<CommandId> {
        self.command.map(|(_, id)| id)
    }

    /// The place of its session.
    #[inline]
    pub fn session(&self) -> Option<u32> {
        self.command.map(|(session, _)| session)
    }

    /// After a panic: the command, if it was this session's. What ran last may have been
    /// another's.
    pub fn take_of(&mut self, session: u32) -> Option<CommandId> {
        self.command.take().filter(|(of, _)| *of == session).map(|(_, id)| id)
    }

    /// Where its reply begins.
    #[inline]
    pub fn reply_from(&self) -> OutPos {
        self.reply_from
    }

    /// Work ahead of it took so long.
    pub fn set_time_ahead(&mut self, ns: u64) {
        self.timed_ahead_ns = ns;
    }

    /// Its reply begins here now.
    pub fn move_reply(&mut self, from: OutPos) {
        self.reply_from = from;
    }

    /// Time of work ahead of it, once.
    #[inline]
    pub fn take_time_ahead(&mut self) -> u64 {
        std::mem::take(&mut self.timed_ahead_ns)
    }
}
