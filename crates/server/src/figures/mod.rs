//! What the server knows about itself, as typed values. Each figure is gathered in one place; INFO,
//! `/metrics` and the live page print what they get from here.
//!
//! Gathering adds up counters which each worker writes on cache lines of its own. No worker waits
//! for a reader, except for the copy of a driver's figures, which it replaces ten times a second.

pub mod databases;
pub mod defrag;
pub mod hot;
pub mod hot_sessions;
pub mod ingest;
pub mod io;
pub mod limits;
pub mod pubsub;
pub mod rates;
pub mod saves;
pub mod service;
pub mod totals;
pub mod tracking;
pub mod used;

use crate::figures::databases::DatabaseUse;
use crate::figures::defrag::DefragFigures;
use crate::figures::ingest::IngestFigures;
use crate::figures::io::IoFigures;
use crate::figures::pubsub::PubSubFigures;
use crate::figures::rates::{Rates, totals};
use crate::figures::saves::SaveFigures;
use crate::figures::service::ServiceFigures;
use crate::figures::totals::IoTotals;
use crate::figures::tracking::TrackingFigures;
use crate::persist::load::state::Progress;
use crate::sessions::card::flag;
use crate::sessions::session::CLIENT_BYTES;
use crate::shared::Shared;
use base::sync::atomic::Ordering::Relaxed;
use base::{DbIndex, MonoNs, UnixMs};
use command::CommandId;
use observe::hot::View;
use observe::{CommandTotals, LatencyTotals, Longest};

/// Hot keys, slots and large values that the live page shows.
const HOT_SHOWN: usize = 10;

/// All figures of a moment.
pub struct Figures {
    /// When they were gathered.
    pub now: MonoNs,
    /// The same by the wall clock.
    pub unix_ms: UnixMs,
    /// From the configuration.
    pub settings: Settings,
    /// Connections.
    pub clients: Clients,
    /// Memory.
    pub memory: Memory,
    /// Counts of commands, keys and bytes.
    pub stats: Stats,
    /// Processor time.
    pub cpu: driver::ProcessTimes,
    /// Databases that hold keys, and how many there are.
    pub databases: Vec<Database>,
    /// Databases that hold keys, have a limit or were used.
    pub database_uses: Vec<DatabaseUse>,
    /// Commands that were called or refused.
    pub commands: Vec<Command>,
    /// Service times.
    pub service: ServiceFigures,
    /// Error replies by their first word.
    pub errors: Vec<(String, u64)>,
    /// The batches of all workers, and of each.
    pub io: IoFigures,
    /// The ingest listeners.
    pub ingest: IngestFigures,
    /// The keys and slots that were used most in the last one to two minutes.
    pub hot: View,
    /// Publish and subscribe.
    pub pubsub: PubSubFigures,
    /// Client-side caching.
    pub tracking: TrackingFigures,
    /// Times the listen queue was full.
    pub listen_overflows: u64,
    /// Saves.
    pub saves: SaveFigures,
    /// How far the file is loaded, while it is.
    pub loading: Option<Progress>,
}

/// Settings which figures are compared with.
pub struct Settings {
    /// Connections at most.
    pub maxclients: u32,
    /// Bytes of data at most; 0 = no limit.
    pub maxmemory: u64,
    /// Databases there are.
    pub databases: u16,
    /// Percentiles to show; none if latencies are not tracked.
    pub percentiles: Vec<f64>,
}

/// INFO clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clients {
    /// Open connections.
    pub connected: u64,
    /// Clients that wait in a blocking command.
    pub blocked: u64,
    /// Keys that they wait for.
    pub blocking_keys: u64,
    /// Those of these keys whose removal ends a wait.
    pub blocking_keys_ending: u64,
    /// Clients that watch keys.
    pub watching: u64,
    /// Keys that they watch; one that two clients watch counts twice.
    pub watched_keys: u64,
    /// Clients that wait until a time.
    pub in_timeout_table: u64,
    /// The longest input that waits to be executed, bytes.
    pub input_max: u64,
    /// The longest output that waits to be read, bytes.
    pub output_max: u64,
    /// Bytes held for all of them, and for those that are gone as far as it is not released yet.
    pub memory: u64,
}

/// INFO memory and MEMORY STATS, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// In use: what the allocator has allocated, and the tables of the keyspace.
    pub used: u64,
    /// Resident in the process.
    pub rss: u64,
    /// The highest `used` that was ever gathered.
    pub peak: u64,
    /// In use after boot.
    pub startup: u64,
    /// Of keys and values, without those that are captured for a save.
    pub dataset: u64,
    /// Of keys and values that are captured for a save: `maxmemory` does not count them.
    pub captured: u64,
    /// Of what is on its way to the append-only file.
    pub journal: u64,
    /// Of all that `maxmemory` does not count: `captured`, `journal`, and what a save holds itself.
    pub not_counted: u64,
    /// In use for anything else.
    pub overhead: u64,
    /// Pages of the tables.
    pub buckets: u64,
    /// Given out by the process's allocator, and places of entries.
    pub allocated: u64,
    /// In pages of either in which something is given out.
    pub active: u64,
    /// In pages of either that the system has given.
    pub resident: u64,
    /// Of the machine.
    pub system: u64,
    /// `maxmemory`.
    pub max: u64,
    /// Of clients.
    pub clients: u64,
    /// Of producers of ingest protocol 2 that are remembered.
    pub producers: u64,
    /// Of the slow log, and of those of large requests and replies.
    pub logs: u64,
    /// Values that wait to be freed.
    pub lazyfree_pending: u64,
    /// Values that were freed in the background.
    pub lazyfreed: u64,
}

/// INFO stats.
pub struct Stats {
    /// Connections accepted.
    pub connections_received: u64,
    /// Connections refused because of `maxclients`.
    pub connections_rejected: u64,
    /// Commands executed.
    pub commands: u64,
    /// Per second, now.
    pub rates: Rates,
    /// The workers' turns since the last CONFIG RESETSTAT.
    pub turns: Turns,
    /// Microseconds of commands.
    pub command_us: u64,
    /// Bytes and calls since the last CONFIG RESETSTAT.
    pub io: IoTotals,
    /// Keys expired.
    pub expired: u64,
    /// Fields of hashes expired.
    pub expired_fields: u64,
    /// Keys evicted.
    pub evicted: u64,
    /// Clients evicted.
    pub evicted_clients: u64,
    /// Clients that have moved from one worker to another.
    pub moved_clients: u64,
    /// Milliseconds for which `maxmemory` has been exceeded now.
    pub exceeded_ms: u64,
    /// The same, in all.
    pub exceeded_total_ms: u64,
    /// Defragmentation.
    pub defrag: DefragFigures,
    /// Of the keys that expire, how many are past their time and still there, in percent: by
    /// samples.
    pub stale_percent: f64,
    /// Milliseconds spent on it.
    pub expire_ms: u64,
    /// How late the last key was that expired by the clock, milliseconds.
    pub expire_lag_ms: u64,
    /// How late the latest was.
    pub expire_lag_max_ms: u64,
    /// The longest step, microseconds.
    pub expire_step_max_us: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Error replies.
    pub error_replies: u64,
}

/// What the workers' loops did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// How many there were.
    pub count: u64,
    /// Microseconds outside of the poll.
    pub duration_us: u64,
}

/// One database with keys.
pub struct Database {
    /// Its number.
    pub db: DbIndex,
    /// Its keys.
    pub keys: u64,
    /// Those that expire.
    pub expires: u64,
    /// Hashes with a field that expires.
    pub with_fields_that_expire: u64,
    /// How long those have left on average, milliseconds.
    pub average_ttl_ms: u64,
}

/// One command that was called or refused.
pub struct Command {
    /// Which.
    pub id: CommandId,
    /// Its counts.
    pub totals: CommandTotals,
    /// How long its calls took; nothing if latencies are not tracked.
    pub latency: LatencyTotals,
}

impl Figures {
    /// Everything. Grows with workers, commands and connections, not with keys.
    pub fn gather(shared: &Shared, now: MonoNs, unix_ms: UnixMs) -> Self {
        let settings = Settings::gather(shared);
        let tracked = !settings.percentiles.is_empty();
        let commands = commands(shared).map(|(id, totals)| Command {
            id,
            totals,
            latency: if tracked { latency_of(shared, id) } else { LatencyTotals::default() },
        });
        Figures {
            now,
            unix_ms,
            clients: Clients::gather(shared),
            pubsub: PubSubFigures::gather(shared),
            tracking: TrackingFigures::gather(shared),
            memory: Memory::gather(shared),
            stats: Stats::gather(shared, now, unix_ms),
            cpu: driver::process_times(),
            databases: databases(shared, settings.databases, unix_ms).collect(),
            database_uses: DatabaseUse::gather(shared, now),
            commands: commands.collect(),
            service: ServiceFigures::gather(shared),
            errors: errors(shared),
            io: IoFigures::gather(shared),
            ingest: IngestFigures::gather(shared),
            hot: hot::always(shared, unix_ms.0, HOT_SHOWN),
            listen_overflows: shared.listen_overflows.load(Relaxed),
            saves: SaveFigures::gather(shared, now, unix_ms),
            loading: shared.load.progress(now),
            settings,
        }
    }
}

impl Settings {
    fn gather(shared: &Shared) -> Self {
        let config = shared.config.lock().expect("no panic while the configuration is held");
        let percentiles =
            if config.latency_tracking { config.latency_percentiles.clone() } else { Vec::new() };
        Settings {
            maxclients: config.maxclients,
            maxmemory: config.maxmemory.of(driver::allowed_memory_bytes),
            databases: config.command.databases,
            percentiles,
        }
    }
}

impl Clients {
    /// The current figures.
    pub fn gather(shared: &Shared) -> Self {
        let mut sum = Clients {
            connected: shared.connections(),
            blocked: shared.blocked.load(Relaxed),
            blocking_keys: shared.keyspace.waited_keys(),
            blocking_keys_ending: shared.keyspace.waited_keys_ending(),
            memory: shared.client_memory(),
            ..Clients::default()
        };
        for card in shared.registry.all() {
            let input = card.input_bytes.load(Relaxed) + card.argv_bytes.load(Relaxed);
            sum.input_max = sum.input_max.max(input);
            sum.output_max = sum.output_max.max(card.output_bytes.load(Relaxed));
            sum.in_timeout_table += u64::from(card.has_flag(flag::TIMED));
            sum.memory += CLIENT_BYTES;
            let watched = card.watching.load(Relaxed);
            sum.watching += u64::from(watched > 0);
            sum.watched_keys += u64::from(watched);
        }
        sum
    }
}

impl Memory {
    /// The current figures; the peak is raised to them.
    pub fn gather(shared: &Shared) -> Self {
        let (allocated, resident) = (shared.facts.allocator)();
        let captured = shared.keyspace.captured_entry_bytes();
        let journal = shared.journal.memory.load(Relaxed);
        let data = shared.keyspace.memory();
        let dataset = data.entries.saturating_sub(captured);
        let pages = shared.keyspace.entry_pages();
        let active = (shared.facts.tools.active)().max(allocated);
        let (resident, active) = (resident.max(allocated) + pages.resident, active + pages.active);
        let allocated = allocated + data.places;
        let used = allocated + data.buckets;
        let config = shared.config.lock().expect("no panic while the configuration is held");
        let max = config.maxmemory.of(driver::allowed_memory_bytes);
        drop(config);
        let reclaimer = shared.keyspace.reclaimer();
        let lazyfreed_base =
            shared.stats_base.lock().expect("no panic while the base is held").lazyfreed;
        Memory {
            used,
            rss: driver::resident_bytes(),
            peak: shared.memory_peak.fetch_max(used, Relaxed).max(used),
            startup: shared.memory_startup.load(Relaxed),
            dataset,
            captured,
            journal,
            not_counted: captured + journal + shared.memory_of_saves(),
            overhead: used.saturating_sub(dataset),
            buckets: data.buckets,
            allocated,
            active,
            resident,
            system: driver::physical_memory_bytes(),
            max,
            clients: Clients::gather(shared).memory,
            producers: shared.ingest.producers.bytes() as u64,
            logs: shared.logs().map(|log| log.bytes() as u64).sum(),
            lazyfree_pending: reclaimer.pending(),
            lazyfreed: reclaimer.freed().saturating_sub(lazyfreed_base),
        }
    }

    /// What came after boot.
    pub fn net(&self) -> u64 {
        self.used.saturating_sub(self.startup)
    }
}

impl Stats {
    /// The current figures.
    pub fn gather(shared: &Shared, now: MonoNs, unix_ms: UnixMs) -> Self {
        // The base first: what is added up after it is not less.
        let base = shared.stats_base.lock().expect("no panic while the base is held").clone();
        let io = totals(shared);
        let rates = shared.rates(now, &io);
        let expiry = shared.keyspace.expiry();
        let exceeded = shared.limits.exceeded.ms(now);
        let step = shared.workers.iter().map(|w| w.expire_step_max_ns.get()).max();
        Stats {
            connections_received: shared.connections_received.load(Relaxed),
            connections_rejected: shared.connections_rejected.load(Relaxed),
            commands: shared.sum(|w| w.processed.get()),
            rates,
            turns: Turns::gather(shared, &io.since(&base.io), unix_ms, base.since_ms),
            command_us: commands(shared).map(|(_, totals)| totals.us()).sum(),
            io: io.since(&base.io),
            expired: expiry.expired.saturating_sub(base.expired),
            expired_fields: expiry.expired_fields.saturating_sub(base.expired_fields),
            evicted: shared.keyspace.evicted().saturating_sub(base.evicted),
            evicted_clients: shared
                .limits
                .evicted_clients
                .load(Relaxed)
                .saturating_sub(base.evicted_clients),
            moved_clients: shared.sum(|w| w.moved_clients.get()),
            exceeded_ms: exceeded.0,
            exceeded_total_ms: exceeded.1.saturating_sub(base.exceeded_ms),
            defrag: shared.defrag.figures(now),
            stale_percent: stale_percent(shared),
            expire_ms: shared.sum(|w| w.expire_ns.get()) / 1_000_000,
            expire_lag_ms: expiry.lag_last_ms,
            expire_lag_max_ms: expiry.lag_max_ms,
            expire_step_max_us: step.unwrap_or(0) / 1000,
            hits: shared.sum(|w| w.databases.iter().map(|db| db.hits.get()).sum()),
            misses: shared.sum(|w| w.databases.iter().map(|db| db.misses.get()).sum()),
            error_replies: shared.sum(|w| w.errors.all()),
        }
    }
}

impl Turns {
    /// Since a moment, or since the start if that was later.
    fn gather(shared: &Shared, io: &IoTotals, now: UnixMs, since_ms: i64) -> Self {
        let ms = (now.0 - since_ms.max(shared.facts.started_ms)).max(0) as u64;
        let all_us = ms * 1000 * shared.workers.len() as u64;
        Self { count: io.polls, duration_us: all_us.saturating_sub(io.poll_ns / 1000) }
    }
}

/// What the workers' last samples found past its time, in percent.
fn stale_percent(shared: &Shared) -> f64 {
    let [due, seen] = [0, 1].map(|at: usize| shared.sum(|w| w.stale[at].get()));
    if seen == 0 { 0.0 } else { due as f64 * 100.0 / seen as f64 }
}

/// The databases that hold keys, of the first `count`.
pub fn databases(
    shared: &Shared,
    count: u16,
    unix_ms: UnixMs,
) -> impl Iterator<Item = Database> + '_ {
    let ks = &shared.keyspace;
    (0..count).map(DbIndex::new).filter_map(move |db| {
        let keys = ks.db_len(db);
        (keys > 0).then(|| Database {
            db,
            keys,
            expires: ks.db_expires(db),
            with_fields_that_expire: ks.db_with_fields_that_expire(db),
            average_ttl_ms: ks.average_ttl_ms(db, unix_ms),
        })
    })
}

/// The commands that were called or refused, in the order of the table.
pub fn commands(shared: &Shared) -> impl Iterator<Item = (CommandId, CommandTotals)> + '_ {
    command::all().map(|id| (id, totals_of(shared, id))).filter(|(_, totals)| !totals.is_empty())
}

/// One command's counters, summed over the workers.
fn totals_of(shared: &Shared, id: CommandId) -> CommandTotals {
    let mut sum = CommandTotals::default();
    for w in shared.counting() {
        w.commands.add_to(id.index(), &mut sum);
    }
    sum
}

/// The commands that ran or held their locks for long, and how long.
pub fn longest(shared: &Shared) -> impl Iterator<Item = (CommandId, Longest)> + '_ {
    let of = |id: CommandId| {
        let mut longest = Longest::default();
        shared.counting().for_each(|w| w.commands.add_longest_to(id.index(), &mut longest));
        longest
    };
    command::all().map(move |id| (id, of(id))).filter(|(_, l)| *l != Longest::default())
}

/// The longest turn of any worker, nanoseconds.
pub fn longest_turn_ns(shared: &Shared) -> u64 {
    shared.counting().map(|w| w.longest_turn_ns.get()).max().unwrap_or_default()
}

/// One command's latencies, of all workers.
pub fn latency_of(shared: &Shared, id: CommandId) -> LatencyTotals {
    let mut h = LatencyTotals::default();
    shared.counting().for_each(|w| w.commands.add_latency_to(id.index(), &mut h));
    h
}

/// Error replies by their first word, of all workers.
pub fn errors(shared: &Shared) -> Vec<(String, u64)> {
    let all = observe::ErrorStats::default();
    shared.counting().for_each(|w| w.errors.add_to(&all));
    all.by_name()
}

/// Name, release and machine of the operating system.
pub fn os_name() -> String {
    let os = rustix::system::uname();
    let words = [os.sysname(), os.release(), os.machine()];
    words.map(|word| word.to_string_lossy().into_owned()).join(" ")
}
