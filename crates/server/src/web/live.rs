//! The figures which the live page fetches each second: counts since the start, and current states.
//! The page computes differences itself, so that the server keeps nothing for a visitor.

use crate::figures::databases::{DATABASES_SHOWN_MAX, DatabaseUse};
use crate::figures::ingest::ListenerFigures;
use crate::figures::io::WorkerFigures;
use crate::figures::{Command, Figures};
use crate::persist::journal::status::JournalStatus;
use crate::persist::load::state::Progress;
use crate::shared::Shared;
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;
use command::REDIS_VERSION;
use driver::stats::Pow2;
use observe::LatencyTotals;
use observe::hot::{Name, Value, View};
use serde::Serialize;

/// Entries of the slow log that are shown.
const SLOW_SHOWN: usize = 12;
/// Bytes of one argument that are shown.
const ARG_SHOWN: usize = 64;
/// Arguments that are shown.
const ARGS_SHOWN: usize = 8;

#[derive(Serialize)]
struct Live<'a> {
    server: Server<'a>,
    /// Moment of the figures, nanoseconds of the server's monotonic clock.
    now_ns: u64,
    unix_ms: i64,
    cpu_s: f64,
    clients: Clients,
    memory: Memory,
    counts: Counts,
    keys: Keys,
    /// Those that have keys or a limit, or were used.
    databases: Vec<Database>,
    saves: Saves,
    /// The append-only file, while there is one.
    journal: Option<Journal>,
    expire_lag_ms: u64,
    batches: Batches,
    workers: Vec<Worker>,
    /// Execution times of all commands: `[largest nanoseconds, count]` of the buckets that hold
    /// something.
    latency: Vec<(u64, u64)>,
    /// Service times of all requests, in the same form.
    service: Vec<(u64, u64)>,
    commands: Vec<Top>,
    slow: Vec<Slow>,
    hot: Hot,
    /// The arguments of slow commands are left out, and the names of keys.
    slow_arguments_hidden: bool,
    ingest: Vec<Ingest<'a>>,
    /// The file that is loaded, while it is.
    loading: Option<Loading>,
}

#[derive(Serialize)]
struct Loading {
    bytes: u64,
    total_bytes: u64,
    keys: u64,
    seconds_left: u64,
}

#[derive(Serialize)]
struct Server<'a> {
    version: &'static str,
    redis_version: &'static str,
    run_id: &'a str,
    io_backend: &'static str,
    port: u16,
    uptime_s: i64,
}

#[derive(Serialize)]
struct Clients {
    connected: u64,
    max: u32,
    blocked: u64,
}

#[derive(Serialize)]
struct Memory {
    used: u64,
    rss: u64,
    peak: u64,
    dataset: u64,
    max: u64,
    system: u64,
}

#[derive(Serialize)]
struct Counts {
    commands: u64,
    bytes_in: u64,
    bytes_out: u64,
    hits: u64,
    misses: u64,
    expired: u64,
    errors: u64,
    connections: u64,
    rejected: u64,
}

#[derive(Serialize)]
struct Keys {
    all: u64,
    expiring: u64,
    databases: usize,
}

#[derive(Serialize)]
struct Database {
    db: u32,
    keys: u64,
    bytes: u64,
    /// 0: none.
    limit: u64,
    policy: &'static str,
    commands: u64,
    hits: u64,
    misses: u64,
    evicted: u64,
}

#[derive(Serialize)]
struct Saves {
    /// Changes which no snapshot file holds.
    changes: u64,
    /// The last save, or the start.
    last_unix_s: i64,
    /// The last background save has failed.
    failed: bool,
    /// A save is under way.
    running: bool,
    /// Its keys so far, and all.
    keys: u64,
    keys_total: u64,
    /// Its bytes so far.
    bytes: u64,
    /// What is captured for it.
    captured: u64,
    /// It is a backup by schedule.
    backs_up: bool,
    /// When the last backup was made, and when the next one is due; 0: none.
    backup_unix_s: i64,
    next_backup_unix_s: i64,
    /// The last backup has failed.
    backup_failed: bool,
}

#[derive(Serialize)]
struct Journal {
    /// Bytes of its files, and of its base.
    bytes: u64,
    base_bytes: u64,
    /// Bytes which are not durable.
    lag_bytes: u64,
    /// How long the last sync took; 0 if there was none.
    sync_ns: u64,
    /// How long ago it ended.
    sync_age_ms: Option<u64>,
    /// It is being rewritten.
    rewriting: bool,
    /// Why it cannot be written.
    trouble: Option<String>,
}

#[derive(Serialize)]
struct Batches {
    /// Polls that brought at least one event.
    polls: u64,
    events: u64,
    receives: u64,
    sends: u64,
    windows: u64,
    commands: u64,
    /// Counts of events per poll: 1, 2-3, 4-7, ...
    events_per_poll: Vec<u64>,
}

#[derive(Serialize)]
struct Worker {
    connections: u64,
    commands: u64,
    lock_waits: u64,
}

#[derive(Serialize)]
struct Top {
    name: &'static str,
    calls: u64,
    ns: u64,
    failed: u64,
    rejected: u64,
    /// Microseconds, since the start.
    p50: f64,
    p99: f64,
}

/// What sampled commands used in the last one to two minutes.
#[derive(Serialize)]
struct Hot {
    /// Commands, about.
    commands: u64,
    /// How often keys and slots were used, about.
    keys: Vec<(String, u64)>,
    slots: Vec<(String, u64)>,
    largest: Vec<Large>,
}

#[derive(Serialize)]
struct Large {
    name: String,
    db: u32,
    bytes: u64,
    command: &'static str,
}

#[derive(Serialize)]
struct Slow {
    id: u64,
    unix_s: i64,
    us: u64,
    /// Microseconds that it waited beside.
    waited_us: u64,
    client: String,
    name: String,
    args: Vec<String>,
    /// Arguments that are not shown.
    more: usize,
}

#[derive(Serialize)]
struct Ingest<'a> {
    strategy: String,
    address: &'a str,
    connections: u64,
    messages: u64,
    bytes: u64,
    acks: u64,
    errors: u64,
}

/// The answer; with the arguments of slow commands or without.
pub(crate) fn json(
    f: &Figures,
    shared: &Shared,
    hides_arguments: bool,
) -> Result<String, serde_json::Error> {
    let mut latency = LatencyTotals::default();
    f.commands.iter().for_each(|c| latency.merge(&c.latency));
    let args_shown = if hides_arguments { 0 } else { ARGS_SHOWN };
    let newest = shared.slowlog.newest(SLOW_SHOWN).into_iter();
    serde_json::to_string(&Live {
        server: server(f, shared),
        now_ns: f.now.0,
        unix_ms: f.unix_ms.0,
        cpu_s: f.cpu.user_s + f.cpu.system_s,
        clients: clients(f),
        memory: memory(f),
        counts: counts(f),
        keys: keys(f),
        databases: f.database_uses.iter().take(DATABASES_SHOWN_MAX).map(database).collect(),
        saves: saves(f),
        journal: shared.journal.is_on().then(|| journal(f, &shared.journal)),
        expire_lag_ms: f.stats.expire_lag_ms,
        batches: batches(f),
        workers: f.io.each.iter().map(worker).collect(),
        latency: latency.occupied().collect(),
        service: f.service.times.occupied().collect(),
        commands: f.commands.iter().map(top).collect(),
        slow: newest.map(|entry| slow(entry, args_shown)).collect(),
        hot: hot(&f.hot, hides_arguments),
        slow_arguments_hidden: hides_arguments,
        ingest: shared.ingest.open.iter().zip(&f.ingest.each).map(ingest).collect(),
        loading: f.loading.as_ref().map(loading),
    })
}

fn server<'a>(f: &Figures, shared: &'a Shared) -> Server<'a> {
    Server {
        version: crate::shared::VERSION,
        redis_version: REDIS_VERSION,
        run_id: &shared.facts.run_id,
        io_backend: shared.facts.io_backend,
        port: shared.facts.port,
        uptime_s: shared.uptime_s(f.unix_ms),
    }
}

fn loading(p: &Progress) -> Loading {
    Loading {
        bytes: p.bytes,
        total_bytes: p.total_bytes,
        keys: p.keys,
        seconds_left: p.seconds_left,
    }
}

fn clients(f: &Figures) -> Clients {
    Clients {
        connected: f.clients.connected,
        max: f.settings.maxclients,
        blocked: f.clients.blocked,
    }
}

fn memory(f: &Figures) -> Memory {
    let memory = &f.memory;
    Memory {
        used: memory.used,
        rss: memory.rss,
        peak: memory.peak,
        dataset: memory.dataset,
        max: memory.max,
        system: memory.system,
    }
}

fn counts(f: &Figures) -> Counts {
    let stats = &f.stats;
    Counts {
        commands: stats.commands,
        bytes_in: stats.io.bytes_in,
        bytes_out: stats.io.bytes_out,
        hits: stats.hits,
        misses: stats.misses,
        expired: stats.expired,
        errors: stats.error_replies,
        connections: stats.connections_received,
        rejected: stats.connections_rejected,
    }
}

fn keys(f: &Figures) -> Keys {
    Keys {
        all: f.databases.iter().map(|d| d.keys).sum(),
        expiring: f.databases.iter().map(|d| d.expires).sum(),
        databases: f.databases.len(),
    }
}

fn database(f: &DatabaseUse) -> Database {
    let DatabaseUse { keys, bytes, commands, hits, misses, evicted, .. } = *f;
    let (limit, policy) = f.limit.unwrap_or((0, ""));
    Database { db: f.db.0, keys, bytes, limit, policy, commands, hits, misses, evicted }
}

fn saves(f: &Figures) -> Saves {
    let s = &f.saves;
    Saves {
        changes: s.changes,
        last_unix_s: s.last_s,
        failed: s.has_failed,
        running: s.current_s.is_some(),
        keys: s.keys.0,
        keys_total: s.keys.1,
        bytes: s.bytes,
        captured: s.captured.0,
        backs_up: s.backs_up,
        backup_unix_s: s.backups.last.map_or(0, |last| last.moment_s),
        next_backup_unix_s: s.next_backup_s.unwrap_or(0),
        backup_failed: s.backups.has_failed,
    }
}

fn journal(f: &Figures, status: &JournalStatus) -> Journal {
    let synced_at = status.synced_at.load(Relaxed);
    Journal {
        bytes: status.size.load(Relaxed),
        base_bytes: status.base_size.load(Relaxed),
        lag_bytes: status.backlog.load(Relaxed),
        sync_ns: status.last_sync_ns.load(Relaxed),
        sync_age_ms: (synced_at > 0).then(|| f.now.since(MonoNs(synced_at)) / 1_000_000),
        rewriting: status.is_rewriting.load(Relaxed),
        trouble: status.trouble(),
    }
}

fn batches(f: &Figures) -> Batches {
    let total = &f.io.total;
    Batches {
        polls: total.io.events_per_poll.counts[1..].iter().sum(),
        events: total.io.events,
        receives: total.io.receives,
        sends: total.io.sends,
        windows: total.windows,
        commands: total.published,
        events_per_poll: sizes(&total.io.events_per_poll),
    }
}

/// The buckets from one event on, without the empty ones at the end.
fn sizes(h: &Pow2) -> Vec<u64> {
    let last = h.counts.iter().rposition(|n| *n > 0).unwrap_or(0);
    h.counts[1..=last.max(1)].to_vec()
}

fn worker(w: &WorkerFigures) -> Worker {
    Worker { connections: w.connections, commands: w.commands, lock_waits: w.locks.waits }
}

fn top(c: &Command) -> Top {
    let us = |percent| c.latency.percentile(percent) as f64 / 1000.0;
    Top {
        name: c.id.spec().full_name,
        calls: c.totals.calls,
        ns: c.totals.ns,
        failed: c.totals.failed,
        rejected: c.totals.rejected,
        p50: us(50.0),
        p99: us(99.0),
    }
}

fn hot(view: &View, hides_names: bool) -> Hot {
    let text = |name: &Name| if hides_names { String::new() } else { shown(&name.shown()) };
    let named = |list: &[(Name, u64)]| list.iter().map(|(name, n)| (text(name), *n)).collect();
    let large =
        |v: &Value| Large { name: text(&v.name), db: v.db, bytes: v.bytes, command: v.command };
    Hot {
        commands: view.commands,
        keys: named(&view.by_uses),
        slots: view.by_slot.iter().map(|(slot, n)| (shown(&slot.shown()), *n)).collect(),
        largest: view.largest.iter().map(large).collect(),
    }
}

/// The beginning of an argument, without control characters.
fn shown(arg: &[u8]) -> String {
    let cut = &arg[..arg.len().min(ARG_SHOWN)];
    let dots = if cut.len() < arg.len() { "..." } else { "" };
    let text = String::from_utf8_lossy(cut).replace(char::is_control, " ");
    format!("{text}{dots}")
}

fn slow(entry: observe::Entry, args_shown: usize) -> Slow {
    Slow {
        id: entry.id,
        unix_s: entry.unix_s,
        us: entry.value,
        waited_us: entry.waited_us,
        client: entry.client,
        name: String::from_utf8_lossy(&entry.name).into_owned(),
        more: entry.args.len().saturating_sub(args_shown),
        args: entry.args.iter().take(args_shown).map(|arg| shown(arg)).collect(),
    }
}

fn ingest<'a>((port, f): (&'a crate::ingest::ports::IngestPort, &ListenerFigures)) -> Ingest<'a> {
    Ingest {
        strategy: port.terms.protocol.to_string(),
        address: &port.addr,
        connections: f.connections,
        messages: f.messages,
        bytes: f.bytes,
        acks: f.acks,
        errors: f.errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_histogram_runs_from_one_event_to_the_largest() {
        let mut h = Pow2::default();
        assert_eq!(sizes(&h), [0]);
        for events in [0, 0, 1, 2, 3, 9] {
            h.record(events);
        }
        assert_eq!(sizes(&h), [1, 2, 0, 1]);
    }

    #[test]
    fn a_slow_log_entry_is_truncated_and_escapes_control_characters() {
        let args = (0..10).map(|n| if n == 1 { vec![b'x'; 100] } else { b"a\r\n".to_vec() });
        let entry = observe::Entry {
            id: 7,
            unix_s: 1,
            value: 2,
            waited_us: 3,
            args: args.collect(),
            client: "c".into(),
            name: b"n".to_vec(),
        };
        let shown = slow(entry, ARGS_SHOWN);
        assert_eq!((shown.args.len(), shown.more), (ARGS_SHOWN, 2));
        assert_eq!(shown.args[1], format!("{}...", "x".repeat(ARG_SHOWN)));
        assert!(!shown.args[0].contains(['\r', '\n']), "{:?}", shown.args[0]);
    }
}
