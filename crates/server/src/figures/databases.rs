//! What is known of each database: its content, its budget, and what is done with it.
//!
//! Keys and bytes belong to the content, which SWAPDB exchanges. The limit, hits, misses, evicted
//! keys and commands belong to the number.

use crate::settings::budgets;
use crate::shared::Shared;
use base::{DbIndex, MonoNs};

/// Databases that `/metrics` and the live page show at most: those with the lowest numbers.
pub const DATABASES_SHOWN_MAX: usize = 256;

/// One database that has keys, a limit, or was used.
pub struct DatabaseUse {
    /// Its number.
    pub db: DbIndex,
    /// Its keys.
    pub keys: u64,
    /// Those that expire.
    pub expires: u64,
    /// What entries, their values and the buckets of its tables take.
    pub bytes: u64,
    /// Its limit, bytes, and its policy; none if it has no `db-limit`.
    pub limit: Option<(u64, &'static str)>,
    /// Commands since CONFIG RESETSTAT.
    pub commands: u64,
    /// Reads that found their key, likewise.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Keys evicted.
    pub evicted: u64,
    /// Commands per second.
    pub ops: f64,
}

impl DatabaseUse {
    /// All of them, by number. Grows with the number of databases and workers.
    pub fn gather(shared: &Shared, now: MonoNs) -> Vec<Self> {
        let limits: Vec<_> = {
            let config = shared.config.lock().expect("no panic while the configuration is held");
            let limits = budgets(&config).into_iter().zip(&config.db_limits);
            limits.map(|(budget, limit)| (budget, limit.policy_name)).collect()
        };
        let mut limits = limits.into_iter().peekable();
        let base = {
            let base = shared.stats_base.lock().expect("no panic while the base is held");
            base.evicted_from.clone()
        };
        let ks = &shared.keyspace;
        let mut all = Vec::new();
        for db in (0..ks.databases()).map(DbIndex::new) {
            let limit = limits.next_if(|(budget, _)| budget.db == db);
            let commands = shared.commands_of(db);
            let keys = ks.db_len(db);
            if keys == 0 && commands == 0 && limit.is_none() {
                continue;
            }
            let evicted_before = base.get(db.index()).copied().unwrap_or(0);
            all.push(Self {
                db,
                keys,
                expires: ks.db_expires(db),
                bytes: ks.db_bytes(db),
                limit: limit.map(|(budget, policy)| (budget.bytes, policy)),
                commands,
                hits: shared.sum(|w| w.databases[db.index()].hits.get()),
                misses: shared.sum(|w| w.databases[db.index()].misses.get()),
                evicted: ks.db_evicted(db).saturating_sub(evicted_before),
                ops: 0.0,
            });
        }
        shared.rate_databases(now, &mut all);
        all
    }
}

impl Shared {
    /// Commands in a database since the last CONFIG RESETSTAT.
    pub(super) fn commands_of(&self, db: DbIndex) -> u64 {
        self.sum(|w| w.databases[db.index()].commands.get())
    }
}
