//! What all workers share: the keyspace, the configuration, the mailboxes, and counters that each
//! worker writes on lines of its own.

use crate::boot::allocator::AllocatorTools;
use crate::figures::defrag::DefragCounters;
use crate::figures::hot_sessions::HotSessions;
use crate::figures::limits::MemoryLimits;
use crate::figures::totals::{IoTotals, Samples};
use crate::ingest::ports::IngestPorts;
use crate::persist::journal::status::JournalStatus;
use crate::persist::journal::stream::Stream;
use crate::persist::load::state::Load;
use crate::persist::save::status::Saves;
use crate::persist::save::threads::Walkers;
use crate::pubsub::PubSub;
use crate::sessions::card::Registry;
use crate::sessions::client_memory::ClientMemory;
use crate::sessions::monitors::Monitors;
use crate::sessions::output::Hold;
use crate::settings::rewriter::Rewriter;
use crate::tracking::ClientTracking;
use crate::worker::load::Loads;
use crate::worker::message::Message;
use base::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use base::sync::{Arc, CachePadded, Mutex, OnceLock};
use command::CommandId;
use config::{Config, Events};
use driver::{DriverStats, MailboxSender};
use keyspace::Keyspace;
use observe::hot::HotKeys;
use observe::{CommandStats, Counter, ErrorStats, HeatMap, ServiceTimes, Slowlog, Spikes};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Counters of one worker: written by it alone, read by INFO.
pub struct WorkerCounters {
    /// Per command: calls, time, refusals, failures.
    pub commands: CommandStats,
    /// Error replies by their first word.
    pub errors: ErrorStats,
    /// Times from the receive of a request to the send of its reply.
    pub service: ServiceTimes,
    /// The statistics epoch these counts belong to; those of an older one are forgotten already.
    pub epoch: AtomicU64,
    /// Commands executed.
    pub processed: Counter,
    /// Per database, by its number.
    pub databases: Box<[DatabaseCounters]>,
    /// Nanoseconds spent in the expiry sweep.
    pub expire_ns: Counter,
    /// The longest step of it, nanoseconds.
    pub expire_step_max_ns: Counter,
    /// Keys with an expiry that its last sample found past their time, and all that it found.
    pub stale: [Counter; 2],
    /// The longest turn, nanoseconds; published now and then.
    pub longest_turn_ns: Counter,
    /// Windows executed.
    pub windows: Counter,
    /// The keys that its commands use most.
    pub hot: HotKeys,
    /// Open connections.
    pub connections: AtomicU32,
    /// Clients that came from other workers.
    pub moved_clients: Counter,
    /// Bytes held for them.
    pub client_memory: ClientMemory,
    /// Bytes held for ingest connections.
    pub ingest_memory: ClientMemory,
    /// The driver's figures, published now and then.
    pub io: Mutex<DriverStats>,
    /// `processed` when they were published, so that the two can be compared; changed under their
    /// lock.
    pub published: Counter,
}

/// What a worker has done in one database.
#[derive(Debug, Default)]
pub struct DatabaseCounters {
    /// Commands executed.
    pub commands: Counter,
    /// Reads that found their key.
    pub hits: Counter,
    /// Reads that did not.
    pub misses: Counter,
}

impl WorkerCounters {
    /// Forgets everything; only its own worker may.
    pub fn reset(&self) {
        self.commands.reset();
        self.errors.reset();
        self.service.reset();
        let times = [&self.expire_ns, &self.expire_step_max_ns, &self.longest_turn_ns];
        let of_databases =
            self.databases.iter().flat_map(|db| [&db.commands, &db.hits, &db.misses]);
        for c in [&self.processed, &self.published, &self.windows, &self.moved_clients]
            .into_iter()
            .chain(times)
            .chain(of_databases)
        {
            c.set(0);
        }
    }
}

/// CLIENT PAUSE: which commands wait, and until when.
#[derive(Debug, Default)]
pub struct Pause {
    /// End of the pause in Unix milliseconds, 0 for none.
    pub until_ms: AtomicI64,
    /// All commands, not only those that write.
    pub all: AtomicBool,
    /// Serialises changes: of two pauses the longer one counts.
    pub changing: Mutex<()>,
}

/// Where DEBUG PANIC-IN-COMMAND makes a thread panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicAt {
    /// In the next command, whatever it is.
    AnyCommand,
    /// In the next run of this command: for its client, for one that waits, or in one of its steps.
    Command(CommandId),
    /// In the next removal of keys that are due.
    Sweep,
    /// In the next save: in its thread, when an entry is written. Entries are the changes.
    Saver,
    /// Outside of every net that catches panics: the process ends.
    Turn,
}

/// A panic that DEBUG PANIC-IN-COMMAND asked for.
#[derive(Clone, Copy, Debug)]
pub struct ArmedPanic {
    /// Where.
    pub at: PanicAt,
    /// After so many changes; 0 before the first.
    pub after_changes: u32,
    /// So many runs go through before.
    pub runs_left: u32,
    /// The command fails with an error instead (DEBUG FAIL-IN-COMMAND).
    pub is_error: bool,
}

/// The one structure that every worker holds.
pub struct Shared {
    /// The data.
    pub keyspace: Arc<Keyspace>,
    /// The configuration; changed by CONFIG SET.
    pub config: Mutex<Config>,
    /// Writes the configuration file (CONFIG REWRITE).
    pub rewriter: Rewriter,
    /// What is known about saves of the data.
    pub saves: Saves,
    /// The threads that save.
    pub walkers: Walkers,
    /// The append-only file.
    pub journal: JournalStatus,
    /// Workers which execute nothing any more, because the server ends.
    pub stopped_workers: AtomicUsize,
    /// The file that is loaded at the start.
    pub load: Load,
    /// Raised with every change of `config`; workers compare it when they follow a fence.
    pub config_version: AtomicU64,
    /// Replies leave up to this sequence number: all of them, unless they wait for the append-only
    /// file (`appendfsync always`), or DEBUG SAFE-UP-TO plays that.
    pub safe_seq: AtomicU64,
    /// One mailbox per worker, set at boot.
    pub mailboxes: OnceLock<Vec<MailboxSender<Message>>>,
    /// One set of counters per worker.
    pub workers: Vec<CachePadded<WorkerCounters>>,
    /// How busy each worker is, for clients that move.
    pub loads: Loads,
    /// The ingest listeners and their figures.
    pub ingest: IngestPorts,
    /// Connected clients.
    pub registry: Registry,
    /// Clients that MONITOR.
    pub monitors: Monitors,
    /// Who subscribes to what, and messages on their way.
    pub pubsub: PubSub,
    /// Who tracks which keys.
    pub tracking: ClientTracking,
    /// `notify-keyspace-events`, while what workers tell of is selected.
    pub events: Mutex<Events>,
    /// The next CLIENT ID.
    pub next_client_id: AtomicU64,
    /// Connections accepted since the start.
    pub connections_received: AtomicU64,
    /// Connections refused because of `maxclients`.
    pub connections_rejected: AtomicU64,
    /// Slow commands, newest first.
    pub slowlog: Slowlog,
    /// Commands by the size of their request, newest first.
    pub large_requests: Slowlog,
    /// Commands by the size of their reply, newest first.
    pub large_replies: Slowlog,
    /// The session of HOTKEYS.
    pub hot: HotSessions,
    /// Latency spikes.
    pub spikes: Spikes,
    /// Service times of the last 24 hours; CONFIG RESETSTAT keeps them.
    pub heat: HeatMap,
    /// Raised by CONFIG RESETSTAT; every worker then forgets its counts.
    pub stats_epoch: AtomicU64,
    /// Samples for the rates of INFO.
    pub samples: Mutex<Samples>,
    /// Tickets of blocking commands so far.
    pub next_ticket: AtomicU64,
    /// Clients that wait in a blocking command.
    pub blocked: Arc<AtomicU64>,
    /// MIGRATEs under way.
    pub migrations: AtomicUsize,
    /// CLIENT PAUSE.
    pub pause: Pause,
    /// The stream of replication.
    pub stream: Stream,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// DEBUG PAUSE-CRON: expiry, idle clients and published figures stand still.
    pub cron_paused: AtomicBool,
    /// How often DEBUG HOLD was told to end.
    pub ended_holds: AtomicU32,
    /// One-shot panic for tests (DEBUG PANIC-IN-COMMAND).
    pub panic_in: Mutex<Option<ArmedPanic>>,
    /// `panic_in` is set.
    pub armed: AtomicBool,
    /// Totals at the last CONFIG RESETSTAT, for counts that are not forgotten but subtracted.
    pub stats_base: Mutex<StatsBase>,
    /// A shutdown is under way.
    pub shutting_down: AtomicBool,
    /// Listen-queue overflows, published by the acceptor.
    pub listen_overflows: AtomicU64,
    /// What is known of `maxmemory` and `maxmemory-clients`.
    pub limits: MemoryLimits,
    /// Defragmentation, and memory that is being returned.
    pub defrag: DefragCounters,
    /// Highest memory use seen, bytes.
    pub memory_peak: AtomicU64,
    /// Memory use after boot, bytes.
    pub memory_startup: AtomicU64,
    /// Facts that never change after boot.
    pub facts: Facts,
}

/// Totals that INFO counts from.
#[derive(Clone, Debug, Default)]
pub struct StatsBase {
    /// Sums over the drivers.
    pub io: IoTotals,
    /// Keys expired.
    pub expired: u64,
    /// Fields of hashes expired.
    pub expired_fields: u64,
    /// Keys evicted.
    pub evicted: u64,
    /// Keys evicted of each database.
    pub evicted_from: Vec<u64>,
    /// Clients evicted.
    pub evicted_clients: u64,
    /// Milliseconds for which `maxmemory` was exceeded.
    pub exceeded_ms: u64,
    /// Values freed in the background.
    pub lazyfreed: u64,
    /// When that was, Unix milliseconds; 0 if it never was.
    pub since_ms: i64,
}

/// What is fixed at boot.
#[derive(Clone, Debug)]
pub struct Facts {
    /// 40 hexadecimal digits, new at each start.
    pub run_id: String,
    /// Start, Unix milliseconds.
    pub started_ms: i64,
    /// Name of the I/O back end.
    pub io_backend: &'static str,
    /// Path of the binary.
    pub executable: String,
    /// Absolute path of the configuration file, empty without one.
    pub config_file: String,
    /// Address clients reach, for the banner and INFO.
    pub port: u16,
    /// Reads memory in use by the allocator, bytes: (allocated, resident).
    pub allocator: fn() -> (u64, u64),
    /// What else it can do.
    pub tools: AllocatorTools,
}

impl Shared {
    /// The slow log, and those of large requests and replies.
    pub fn logs(&self) -> impl Iterator<Item = &Slowlog> {
        [&self.slowlog, &self.large_requests, &self.large_replies].into_iter()
    }

    /// When the server makes backups of itself.
    pub fn backup_schedule(&self) -> Option<config::schedule::Schedule> {
        self.config.lock().expect("no panic while the configuration is held").backup_schedule
    }

    /// Ends the threads that save or load, and waits for them. The workers have ended, and do not
    /// start others.
    pub fn end_threads(&self) {
        self.walkers.end();
        self.load.join();
    }

    /// Sends a message to one worker; never blocks.
    pub fn post(&self, worker: usize, message: Message) {
        if let Some(boxes) = self.mailboxes.get() {
            boxes[worker].post(message);
        }
    }

    /// Sends a message to all workers but `except`.
    pub fn post_others(&self, except: usize, make: impl Fn() -> Message) {
        for worker in (0..self.workers.len()).filter(|&w| w != except) {
            self.post(worker, make());
        }
    }

    /// Sends a command's line to the workers that have sessions in MONITOR.
    pub fn post_to_monitors(&self, line: &Arc<[u8]>, hold: Hold) {
        self.monitors.publish(line, hold, |worker, message| self.post(worker, message));
    }

    /// Changes the configuration, or not if `change` fails. Workers take it over with the next
    /// fence, which the caller publishes.
    pub fn change_config<E>(
        &self,
        change: impl FnOnce(&mut Config) -> Result<(), E>,
    ) -> Result<(), E> {
        change(&mut self.config.lock().expect("no panic while the configuration is held"))?;
        self.config_version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Holds replies although worker 0 does not know of it yet, which then publishes the number up
    /// to which they may leave. Called with the configuration locked.
    pub fn hold_replies(&self) {
        let (free, none) = (u64::MAX, 0);
        if !self.journal.is_complete.load(Ordering::SeqCst) {
            return; // there is nothing to wait for yet, or nothing at all
        }
        _ = self.safe_seq.compare_exchange(free, none, Ordering::SeqCst, Ordering::Relaxed);
        if !self.journal.is_complete.load(Ordering::SeqCst) {
            // Its end came between the two: it releases them behind that flag.
            _ = self.safe_seq.compare_exchange(none, free, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    /// True while replies wait until what they show is durable.
    pub fn are_replies_held(&self) -> bool {
        self.safe_seq.load(Ordering::Relaxed) != u64::MAX
    }

    /// Open connections of all workers.
    pub fn connections(&self) -> u64 {
        self.workers.iter().map(|w| u64::from(w.connections.load(Ordering::Relaxed))).sum()
    }

    /// Open connections of every kind: what `maxclients` bounds.
    pub fn sockets(&self) -> u64 {
        self.connections() + self.ingest.connections()
    }

    /// The worker with the fewest of them.
    pub fn least_loaded(&self) -> usize {
        let load = |w: &usize| {
            self.workers[*w].connections.load(Ordering::Relaxed) + self.ingest.of_worker(*w)
        };
        (0..self.workers.len()).min_by_key(load).unwrap_or(0)
    }

    /// A sum over all workers' counters since the last CONFIG RESETSTAT.
    pub fn sum(&self, of: impl Fn(&WorkerCounters) -> u64) -> u64 {
        self.counting().map(of).sum()
    }

    /// The counters of the workers that have executed the last CONFIG RESETSTAT; what the others
    /// hold is from before it, and they will forget it at their next turn.
    pub fn counting(&self) -> impl Iterator<Item = &WorkerCounters> {
        let epoch = self.stats_epoch.load(Ordering::Acquire);
        self.workers.iter().map(|w| &**w).filter(move |w| w.epoch.load(Ordering::Acquire) == epoch)
    }

    /// Seconds since the start.
    pub fn uptime_s(&self, now: base::UnixMs) -> i64 {
        (now.0 - self.facts.started_ms).max(0) / 1000
    }

    /// Bytes held for clients, beside those that each of them takes anyway.
    pub fn client_memory(&self) -> u64 {
        let sessions: u64 = self.workers.iter().map(|w| w.client_memory.bytes()).sum();
        sessions + self.ingest_memory()
    }

    /// Those of them that are held for ingest connections.
    pub fn ingest_memory(&self) -> u64 {
        self.workers.iter().map(|w| w.ingest_memory.bytes()).sum()
    }

    /// Starts the shutdown: every worker flushes what it executed and ends.
    pub fn begin_shutdown(&self) {
        self.shutting_down.store(true, Ordering::SeqCst); // (see `worker/moving.rs`)
        for worker in 0..self.workers.len() {
            self.post(worker, Message::Shutdown);
        }
    }
}
