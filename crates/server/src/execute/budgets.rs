//! Budgets of databases (`db-limit`): room is made in a database that is above its limit before
//! commands that may take memory there, by the policy of its budget and at the cost of its own
//! keys.
//!
//! | commands that may take memory in a database | what happens |
//! |---|---|
//! | below its limit, or without one | they run |
//! | above, and its policy evicts | its keys are evicted first, as for `maxmemory` |
//! | above, and no key of it may go | OOM; commands on other databases run |
//!
//! A window names its databases by what was read at framing. Where that does not decide (SELECT,
//! EXEC, COPY, MOVE), room is made in every database that has a budget. Who is refused is decided
//! at the gate, by the database in which the command runs then.

use crate::execute::eviction::eviction;
use crate::execute::gates::closed;
use crate::execute::window::Window;
use crate::sessions::session::Session;
use crate::worker::core::Core;
use base::DbIndex;
use command::error::DatabaseFull;
use command::spec::{CommandSpec, Flags, Traits};
use command::{Error, Handler, SessionOp};
use keyspace::Access;
use resp::Args;

/// Databases in which commands may take memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affected {
    /// None.
    Nothing,
    /// This one.
    One(DbIndex),
    /// Any.
    All,
}

impl Affected {
    /// Where a window may take memory.
    pub(super) fn by(window: &Window) -> Self {
        let (mut affected, mut is_moved) = (Self::Nothing, false);
        for c in &window.commands {
            let Some(spec) = c.id.map(command::CommandId::spec) else { continue };
            is_moved |= matches!(spec.handler, Handler::Session(_));
            if spec.traits.contains(Traits::RUNS_QUEUE) || spec.into.is_some() {
                return Self::All;
            }
            if spec.flags.contains(Flags::DENYOOM) {
                affected = if is_moved { Self::All } else { affected.and(c.db) };
            }
            if affected == Self::All {
                break;
            }
        }
        affected
    }

    fn and(self, db: DbIndex) -> Self {
        match self {
            Self::Nothing => Self::One(db),
            Self::One(one) if one == db => self,
            _ => Self::All,
        }
    }
}

/// Whether a command may add to the database that it names, or to its caller's.
fn takes_memory(spec: &CommandSpec) -> bool {
    spec.flags.contains(Flags::DENYOOM) || spec.into.is_some()
}

/// Why commands which may take memory in a full database are refused.
fn database_full(db: DbIndex) -> Error {
    DatabaseFull { db: db.index() as u32 }.into()
}

/// The database that a command of a queue selects for those behind it.
fn selected(spec: &CommandSpec, args: Args<'_>) -> Option<DbIndex> {
    let Handler::Session(parse) = spec.handler else { return None };
    match parse(args) {
        Ok(SessionOp::Select(db)) => u16::try_from(db).ok().map(DbIndex::new),
        _ => None,
    }
}

impl Core {
    /// Whether a database has a limit.
    #[inline]
    pub(crate) fn has_budgets(&self) -> bool {
        !self.settings.budgets.is_empty()
    }

    /// Before a window is executed.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room_for(&mut self, access: &mut Access, window: &Window) {
        if self.has_limit() && window.takes_memory() {
            if self.needs_room() {
                self.make_room(access);
            } else if self.may_be_full() && self.is_above_limit() {
                self.gates |= closed::MEMORY;
            }
        }
        if self.has_budgets() {
            self.make_room_in_databases(access, Affected::by(window));
        }
    }

    /// Evicts keys of the affected databases that are above their limits. Afterwards the gate is
    /// closed if one of them is full: its commands leave the short path and are refused by
    /// [`Self::denied_by_budgets`].
    #[cold]
    pub(crate) fn make_room_in_databases(&mut self, access: &mut Access, affected: Affected) {
        let mut is_full = false;
        for at in 0..self.settings.budgets.len() {
            // (To make room may take over changed settings.)
            let Some(db) = self.settings.budgets.get(at).map(|budget| budget.db) else { break };
            let is_affected = match affected {
                Affected::Nothing => false,
                Affected::One(one) => one == db,
                Affected::All => true,
            };
            if is_affected {
                self.make_room_in(access, db);
                is_full |= self.is_database_full(db);
            }
        }
        if is_full {
            self.gates |= closed::BUDGET;
        } else {
            self.gates &= !closed::BUDGET;
        }
    }

    /// By how much a database is above its limit, bytes.
    fn excess_of(&self, db: DbIndex) -> u64 {
        self.settings.budget_of(db).map_or(0, |at| {
            let budget = &self.settings.budgets[at];
            self.shared.keyspace.db_bytes(db).saturating_sub(budget.bytes)
        })
    }

    /// Evicts keys of a database that is above its limit, if its policy evicts. True if some went.
    fn make_room_in(&mut self, access: &mut Access, db: DbIndex) -> bool {
        let evicts = |core: &Self| {
            let budget = core.settings.budget_of(db).map(|at| core.settings.budgets[at]);
            budget.map(|budget| budget.policy).filter(|policy| policy.evicts)
        };
        if self.excess_of(db) == 0 {
            self.set_out_of_room(db, false);
            return false;
        }
        if evicts(self).is_none() {
            return false;
        }
        let made = self.evict_inside(access, |core, access| {
            let Some(policy) = evicts(core) else { return false };
            let how = eviction(Some(db), policy, core.settings.maxmemory_samples);
            core.evict_while(access, how, |core| core.excess_of(db))
        });
        let Some(has_made) = made else { return false };
        self.set_out_of_room(db, !has_made);
        has_made
    }

    /// Notes whether a key of the database was found which may go.
    fn set_out_of_room(&mut self, db: DbIndex, is_out_of_room: bool) {
        if let Some(at) = self.settings.budget_of(db) {
            self.settings.budgets[at].is_out_of_room = is_out_of_room;
        }
    }

    /// True if a database is full.
    pub(crate) fn is_any_database_full(&self) -> bool {
        self.settings.budgets.iter().any(|budget| self.is_database_full(budget.db))
    }

    /// Limits that were lowered are followed although nobody writes. True if there is more to be
    /// evicted. Called by housekeeping.
    pub(super) fn follow_budgets(&mut self, access: &mut Access) -> bool {
        let mut has_more = false;
        for at in 0..self.settings.budgets.len() {
            let Some(db) = self.settings.budgets.get(at).map(|budget| budget.db) else { break };
            has_more |= self.make_room_in(access, db) && self.excess_of(db) > 0;
        }
        has_more
    }

    /// True while commands that may take memory in a database are refused: it is above its limit,
    /// and no key of it goes.
    pub(crate) fn is_database_full(&self, db: DbIndex) -> bool {
        self.settings.budget_of(db).is_some_and(|at| {
            let budget = &self.settings.budgets[at];
            let may_be_full = budget.is_out_of_room || !budget.policy.evicts;
            may_be_full && self.excess_of(db) > 0
        })
    }

    /// Why a command is refused that may take memory in a full database, if it is.
    #[inline]
    pub(super) fn denied_by_budgets(
        &self,
        session: &Session,
        spec: &'static CommandSpec,
        args: Args<'_>,
    ) -> Option<Error> {
        let is_asked = self.has_budgets();
        is_asked.then(|| self.denied_by_budget(session, spec, args))?.map(database_full)
    }

    /// The full database in which a command may take memory. EXEC is denied if any queued command
    /// would be; each counts for the database that is selected then.
    #[cold]
    fn denied_by_budget(
        &self,
        session: &Session,
        spec: &'static CommandSpec,
        args: Args<'_>,
    ) -> Option<DbIndex> {
        let denied = |db: DbIndex, spec: &CommandSpec, args: Args<'_>| {
            let into = spec.into.and_then(|into| into(args)).unwrap_or(db);
            // (MOVE within a database fails anyway.)
            (takes_memory(spec) && self.is_database_full(into)).then_some(into)
        };
        match &session.multi {
            None => denied(session.db, spec, args),
            Some(multi) if spec.traits.contains(Traits::RUNS_QUEUE) => {
                let mut db = session.db;
                multi.queue.iter().find_map(|(id, request)| {
                    let (spec, args) = (id.spec(), request.args());
                    db = selected(spec, args).unwrap_or(db);
                    denied(db, spec, args)
                })
            }
            // What is queued is judged when it runs.
            Some(_) => None,
        }
    }

    /// A command which has waited is judged again when it is served: there was no limit, or room,
    /// when it began to wait.
    pub(super) fn refuse_if_full(&self, spec: &CommandSpec, db: DbIndex) -> Result<(), Error> {
        if !spec.flags.contains(Flags::DENYOOM) {
            return Ok(());
        }
        if self.is_memory_full() {
            return Err(Error::OutOfMemory);
        }
        if self.has_budgets() && self.is_database_full(db) {
            return Err(database_full(db));
        }
        Ok(())
    }
}
