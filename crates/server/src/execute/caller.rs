//! The caller of a command: on whose behalf it runs, and what follows from that for how it runs.
//!
//! | origin | may suspend | what is due | MONITOR shows it | its changes are finished by |
//! |---|---|---|---|---|
//! | session | yes | is removed (is ignored for an import source) | yes | itself |
//! | queue of a transaction | no | is removed | yes | EXEC |
//! | step of a long command | between its steps | is removed | no: its command was shown | itself |
//! | waiter that is served | no | is removed | no: its command was shown | itself |
//! | ingest | no | is removed | yes | itself |
//! | MIGRATE's removal | no | is ignored | no: MIGRATE was shown | itself |
//!
//! A caller is made for one command and does not change. SELECT, HELLO and RESET change the
//! session; the caller of the next command is made from that, so what they change holds from there
//! on, inside EXEC, too.

use crate::sessions::session::{Session, gate};
use crate::worker::core::Core;
use base::DbIndex;
use command::spec::{CommandSpec, Flags, Traits};
use driver::ConnId;
use keyspace::{Due, Guard};
use resp::{OutBuf, Proto, Reply};

/// What a client that monitors may not do, as in Redis.
const TOUCHES_KEYS: Flags = Flags::of(&[Flags::WRITE, Flags::READONLY]);

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A session of this worker has sent it.
    Session(ConnId),
    /// A session of this worker has queued it, and its EXEC runs it.
    Queue(ConnId),
    /// It is a step of what a session of this worker has begun.
    Step(ConnId),
    /// A session waits with it for its keys; its reply is posted to the worker of that session.
    Waiter {
        /// The session's worker.
        worker: usize,
        /// Its connection there.
        conn: ConnId,
    },
    /// Messages of an ingest connection.
    Ingest,
    /// The target of a MIGRATE has taken the keys.
    Migrate,
}

/// On whose behalf a command runs.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Where the command comes from.
    pub origin: Origin,
    /// Protocol of its reply.
    pub proto: Proto,
    /// Its (logical) database.
    pub db: DbIndex,
    /// It may be answered later. If not, all that it can need is locked, and it ends under these
    /// locks.
    pub may_suspend: bool,
    /// It may be long though others wait for a turn.
    pub may_pass: bool,
    /// What it reads does not count as used (CLIENT NO-TOUCH).
    pub no_touch: bool,
    /// What becomes of a key that is due.
    pub due: Due,
    /// In import mode it sees what is due (CLIENT IMPORT-SOURCE).
    pub is_import_source: bool,
    /// Commands with one of these flags are refused.
    pub denied: Flags,
    /// It speaks RESP2 and has subscriptions: it may send few commands.
    pub is_in_subscribed_mode: bool,
    /// It is told of messages or keys, in its order with its replies.
    pub listens: bool,
    /// Clients in MONITOR are shown it.
    pub is_monitored: bool,
    /// Of a queue: once too much is kept to undo its commands, those that have ended stand.
    pub commits_in_parts: bool,
}

impl Caller {
    /// A session: of the command that it has sent last.
    #[inline]
    pub fn of_session(s: &Session) -> Self {
        let is_monitor = s.gates & gate::MONITOR != 0;
        Self {
            origin: Origin::Session(s.conn),
            proto: s.proto,
            db: s.db,
            may_suspend: true,
            may_pass: s.gates & gate::TURN != 0,
            no_touch: s.gates & gate::NO_TOUCH != 0,
            due: Due::Remove,
            is_import_source: s.gates & gate::IMPORT_SOURCE != 0,
            denied: if is_monitor { TOUCHES_KEYS } else { Flags::NONE },
            is_in_subscribed_mode: s.gates & gate::SUBSCRIBED != 0 && s.proto == Proto::Resp2,
            listens: s.gates & gate::LISTENS != 0,
            is_monitored: true,
            commits_in_parts: false,
        }
    }

    /// The queue of a session's transaction: of the command in it that is next.
    #[inline]
    pub fn of_queue(s: &Session) -> Self {
        let origin = Origin::Queue(s.conn);
        let denied = Flags::NO_MULTI;
        Self { origin, may_suspend: false, denied, ..Self::of_session(s) }
    }

    /// The same, with what the row of the command says that runs the queue.
    #[must_use]
    pub fn run_by(self, runner: &CommandSpec) -> Self {
        Self { commits_in_parts: runner.traits.contains(Traits::COMMITS_IN_PARTS), ..self }
    }

    /// A long command of a session that goes on.
    pub fn of_step(s: &Session) -> Self {
        Self { origin: Origin::Step(s.conn), is_monitored: false, ..Self::of_session(s) }
    }

    /// The same session, which waits from here on with its command at this worker.
    #[must_use]
    pub fn waiting(self, worker: usize) -> Self {
        let origin = Origin::Waiter { worker, conn: self.conn() };
        Self { origin, may_suspend: false, is_monitored: false, listens: false, ..self }
    }

    /// Messages of an ingest connection on their way into this database.
    pub fn of_ingest(db: DbIndex) -> Self {
        Self { is_monitored: true, ..Self::without_client(Origin::Ingest, db, Due::Remove) }
    }

    /// The removal of keys that the target of a MIGRATE has taken, whatever became of them here.
    pub fn of_migrate(db: DbIndex) -> Self {
        Self::without_client(Origin::Migrate, db, Due::Ignore)
    }

    /// Without a client of its own.
    fn without_client(origin: Origin, db: DbIndex, due: Due) -> Self {
        Self {
            origin,
            proto: Proto::Resp2,
            db,
            may_suspend: false,
            may_pass: false,
            no_touch: false,
            due,
            is_import_source: false,
            denied: Flags::NONE,
            is_in_subscribed_mode: false,
            listens: false,
            is_monitored: false,
            commits_in_parts: false,
        }
    }

    /// The connection of its session at the worker of that.
    ///
    /// # Panics
    /// If it is no session's.
    #[inline]
    pub fn conn(&self) -> ConnId {
        match self.origin {
            Origin::Session(conn)
            | Origin::Queue(conn)
            | Origin::Step(conn)
            | Origin::Waiter { conn, .. } => conn,
            Origin::Ingest | Origin::Migrate => unreachable!("no session's"),
        }
    }

    /// The worker and the connection that a waiter's reply is posted to.
    ///
    /// # Panics
    /// If it is no waiter.
    pub fn waits_at(&self) -> (usize, ConnId) {
        match self.origin {
            Origin::Waiter { worker, conn } => (worker, conn),
            _ => unreachable!("no waiter"),
        }
    }

    /// Its session, which is there as long as its command is under way.
    ///
    /// # Panics
    /// If it is no session's of this worker.
    #[inline]
    pub fn session<'c>(&self, core: &'c mut Core) -> &'c mut Session {
        let is_ours = !matches!(self.origin, Origin::Waiter { worker, .. } if worker != core.id);
        assert!(is_ours, "connections are counted by each worker");
        core.session_mut(self.conn()).expect("its command is under way")
    }

    /// True if EXEC finishes what it changes.
    #[inline]
    pub fn is_in_exec(&self) -> bool {
        matches!(self.origin, Origin::Queue(_))
    }

    /// True if the command is none for this caller.
    #[inline]
    pub fn denies(&self, spec: &CommandSpec) -> bool {
        let suspends = spec.traits.contains(Traits::AWAITS_SERVER);
        spec.flags.intersects(self.denied) || (suspends && !self.may_suspend)
    }

    /// Sets how keys are seen and used under these locks from here on: as this caller may.
    #[inline]
    pub fn apply_to(&self, guard: &mut Guard<'_>) {
        let sees_due = self.is_import_source && guard.keyspace().is_importing();
        guard.set_due(if sees_due { Due::Ignore } else { self.due });
        guard.set_no_touch(self.no_touch);
    }

    /// Where its reply is written.
    #[inline]
    pub fn reply<'a>(&self, out: &'a mut OutBuf) -> Reply<'a> {
        Reply::new(out, self.proto)
    }
}
