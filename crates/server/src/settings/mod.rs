//! The configuration at run time: a worker's copy as plain numbers, renewed when it changes (here),
//! CONFIG SET (`live`) and CONFIG REWRITE (`rewrite`).

pub mod live;
pub(crate) mod rewrite;
pub mod rewriter;
pub(crate) mod rewriting;

use crate::execute::sizes::LARGE_REPLY_MIN;
use crate::sessions::quota::NOTED_NS;
use crate::shared::Shared;
use base::{DbIndex, MonoNs};
use command::Settings;
use config::value::BufferLimit;
use config::{Config, DbLimit, MaxmemoryPolicy, WorkerCopy};
use resp::Limits;
use std::ops::Deref;

/// Slow-log thresholds at or above this are served by the clock that a batch shares; below it,
/// every command is timed by itself.
const SHARED_CLOCK_US: i64 = 1_000;
/// What takes less is not looked at when the longest runs and holds of each command are kept.
pub(crate) const LONG_RUN_NS: u64 = 100_000;

/// What a worker looks up per command or per turn: its copy of the settings, to which this derefs,
/// and what is computed from them once.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    copy: WorkerCopy,
    /// `maxmemory` in bytes; 0 for none.
    pub memory_limit: u64,
    /// `db-limit`, by database.
    pub budgets: Vec<Budget>,
    /// There is a `maxmemory` or a `db-limit`: all that is asked for each window without one.
    pub limits_memory: bool,
    /// What handlers read.
    pub command: Settings,
    /// Framing limits of authenticated and unauthenticated sessions.
    limits: [Limits; 2],
    /// `client-output-buffer-limit normal`.
    pub output_limits: OutputLimits,
    /// `latency-monitor-threshold`, nanoseconds; `u64::MAX` for never.
    spike_ns: u64,
    /// What takes less is neither a spike nor a long run, nor charged.
    noted_ns: u64,
    /// `ingest-idle-timeout`, nanoseconds; `None` for never.
    pub ingest_idle_ns: Option<u64>,
    /// `ingest-producer-timeout`, nanoseconds; `None` for never.
    pub ingest_forget_ns: Option<u64>,
}

/// What one database may take (`db-limit`).
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The database.
    pub db: DbIndex,
    /// Its limit, bytes.
    pub bytes: u64,
    /// Which of its keys go at the limit.
    pub policy: MaxmemoryPolicy,
    /// The limit is exceeded, and this worker has found no key that may be evicted.
    pub is_out_of_room: bool,
}

/// The budgets of a configuration, by database.
pub fn budgets(config: &Config) -> Vec<Budget> {
    if config.db_limits.is_empty() {
        return Vec::new();
    }
    let whole = config.db_limits_whole(driver::allowed_memory_bytes);
    let budget = |limit: &DbLimit| Budget {
        db: DbIndex::new(limit.db),
        bytes: limit.memory.of(|| whole),
        policy: limit.policy,
        is_out_of_room: false,
    };
    config.db_limits.iter().map(budget).collect()
}

impl Deref for WorkerSettings {
    type Target = WorkerCopy;

    #[inline]
    fn deref(&self) -> &WorkerCopy {
        &self.copy
    }
}

/// `client-output-buffer-limit` of one class.
#[derive(Clone, Copy, Debug)]
pub struct OutputBounds {
    /// Closed at once above this, bytes; 0 for none.
    pub hard: u64,
    /// Closed after `soft_s` seconds above this; 0 for none.
    pub soft: u64,
    /// Seconds.
    pub soft_s: u64,
}

/// Those of each class of clients.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimits {
    /// Clients without subscriptions.
    pub normal: OutputBounds,
    /// Clients with subscriptions.
    pub pubsub: OutputBounds,
}

impl OutputBounds {
    /// True if a client with so much unsent output must be closed; keeps the time of the soft
    /// limit.
    pub fn exceeded(&self, bytes: u64, since: &mut Option<MonoNs>, now: MonoNs) -> bool {
        if self.hard > 0 && bytes > self.hard {
            return true;
        }
        if self.soft == 0 || bytes <= self.soft {
            *since = None;
            return false;
        }
        let first = *since.get_or_insert(now);
        now.since(first) > self.soft_s * 1_000_000_000
    }
}

impl From<BufferLimit> for OutputBounds {
    fn from(l: BufferLimit) -> Self {
        Self { hard: l.hard_bytes, soft: l.soft_bytes, soft_s: l.soft_seconds }
    }
}

impl WorkerSettings {
    /// The settings as they are now.
    pub fn new(shared: &Shared) -> Self {
        let c = shared.config.lock().expect("no panic while the configuration is held");
        let ns = |seconds: u32| (seconds > 0).then(|| u64::from(seconds) * 1_000_000_000);
        let spike_ns = match c.latency_monitor_ms {
            0 => u64::MAX,
            ms => ms.saturating_mul(1_000_000),
        };
        let bulk_len_max = c.command.bulk_len_max;
        let memory_limit = c.maxmemory.of(driver::allowed_memory_bytes);
        let budgets = budgets(&c);
        Self {
            copy: WorkerCopy::of(&c),
            memory_limit,
            limits_memory: memory_limit > 0 || !budgets.is_empty(),
            budgets,
            command: c.command.clone(),
            limits: [Limits::new(bulk_len_max, false), Limits::new(bulk_len_max, true)],
            output_limits: OutputLimits {
                normal: c.output_limits[0].into(),
                pubsub: c.output_limits[2].into(),
            },
            spike_ns,
            noted_ns: spike_ns.min(LONG_RUN_NS).min(NOTED_NS),
            ingest_idle_ns: ns(c.ingest_idle_timeout_s),
            ingest_forget_ns: ns(c.ingest_producer_timeout_s),
        }
    }

    /// Takes over a changed configuration.
    pub fn refresh(&mut self, shared: &Shared) {
        let before = std::mem::replace(self, Self::new(shared)).budgets;
        for budget in &mut self.budgets {
            // What was found out stays true, whatever else is set.
            let same = before.iter().find(|b| b.db == budget.db && b.policy == budget.policy);
            budget.is_out_of_room = same.is_some_and(|same| same.is_out_of_room);
        }
    }

    /// Where the budget of a database stands in `budgets`.
    pub fn budget_of(&self, db: DbIndex) -> Option<usize> {
        self.budgets.binary_search_by_key(&db.index(), |budget| budget.db.index()).ok()
    }

    /// Framing limits.
    #[inline]
    pub fn limits(&self, authenticated: bool) -> Limits {
        self.limits[usize::from(authenticated)]
    }

    /// True if new sessions must authenticate.
    pub fn needs_password(&self) -> bool {
        !self.password.is_empty()
    }

    /// True if only local clients may connect, because there is no password.
    pub fn is_protected(&self) -> bool {
        self.protected_mode && self.password.is_empty()
    }

    /// True if the logs need more about every command than the short path records: its own time,
    /// or sizes that are common there.
    pub fn records_every_command(&self) -> bool {
        (0..SHARED_CLOCK_US).contains(&self.slower_than_us)
            || (0..driver::AREA as i64).contains(&self.request_larger_than)
            || (0..LARGE_REPLY_MIN as i64).contains(&self.reply_larger_than)
    }

    /// `latency-monitor-threshold`, milliseconds; 0 for off.
    pub fn spike_threshold_ms(&self) -> u64 {
        if self.spike_ns == u64::MAX { 0 } else { self.spike_ns / 1_000_000 }
    }

    /// True if a window that took so long is charged; it may also be a spike, or a long run.
    #[inline]
    pub(crate) fn is_noted(&self, ns: u64) -> bool {
        ns >= self.noted_ns
    }

    /// True if something that took so long is a spike for LATENCY.
    #[inline]
    pub fn is_spike(&self, ns: u64) -> bool {
        ns >= self.spike_ns
    }
}
