//! Starts the server (drivers, listeners, shared state, threads) and ends it in order.

pub mod allocator;
pub mod io_backend;
pub mod process;
#[cfg(sim)]
pub mod simulated;
pub(crate) mod vital;

use crate::boot::allocator::{Allocator, AllocatorTools};
use crate::boot::io_backend::Drivers;
use crate::boot::vital::run_or_exit;
use crate::figures::defrag::DefragCounters;
use crate::figures::hot_sessions::HotSessions;
use crate::figures::limits::MemoryLimits;
use crate::ingest::ports::{IngestPort, IngestPorts, Terms};
use crate::persist::journal::status::JournalStatus;
use crate::persist::journal::stream::Stream;
use crate::persist::load::folder::Place;
use crate::persist::load::state::{self, Listener, Load, News, Plan};
use crate::persist::save::status::Saves;
use crate::persist::save::threads::Walkers;
use crate::pubsub::PubSub;
use crate::sessions::client_memory::ClientMemory;
use crate::sessions::monitors::Monitors;
use crate::shared::{DatabaseCounters, Facts, Pause, Shared, VERSION, WorkerCounters};
use crate::tracking::ClientTracking;
use crate::web::AdminPort;
use crate::worker::Worker;
use crate::worker::load::Loads;
use crate::worker::message::Message;
use crate::{log, web};
use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use base::sync::{Arc, CachePadded, Mutex, OnceLock};
use config::table::{APPENDDIRNAME, APPENDFILENAME};
use config::{Config, Supervised};
use driver::poller::Poller;
use driver::reactor::Reactor;
use driver::{Driver, ListenAddr, ListenOptions, ListenerId, MailboxSender};
use ingest::Strategy;
use journal::ReplId;
use keyspace::{Keyspace, Options};
use observe::hot::HotKeys;
use observe::{CommandStats, Counter, ErrorStats, HeatMap, ServiceTimes, Slowlog, Spikes};
use std::ffi::OsStr;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Wakes a parked session with a message to its worker.
struct WakeByMail(Vec<MailboxSender<Message>>);

impl keyspace::Waker for WakeByMail {
    fn wake(&self, worker: usize, token: u64) {
        self.0[worker].post(Message::Retry(driver::ConnId::from_token(token)));
    }
}

/// Runs the server until it is told to end. The error is one line for the user.
pub fn run(config: Config, allocator: Allocator) -> Result<(), String> {
    let mut config = config;
    process::enter_dir(&config.dir).map_err(|e| e.to_string())?;
    if let Ok(dir) = std::env::current_dir() {
        config.set_dir(dir);
    }
    if let Some(file) = &config.logfile {
        log::check_file(file).map_err(|e| {
            let why = config::load::io_text(&e);
            format!(
                "logfile '{}': cannot be written: {why}; give another file with --logfile",
                file.display()
            )
        })?;
    }
    let daemon = if config.daemonize {
        Some(process::daemonize().map_err(|e| format!("cannot run in the background: {e}"))?)
    } else {
        None
    };
    log::start(&config);
    warn_about_ignored(&config);
    let wanted = config.maxclients;
    config.maxclients = driver::raise_file_limit(wanted);
    if config.maxclients < wanted {
        log::warning(format_args!(
            "maxclients lowered from {wanted} to {}: the limit on open files allows no more (raise it with 'ulimit -n')",
            config.maxclients
        ));
    }
    let threads =
        if config.threads == 0 { driver::cpus_allowed() } else { config.threads as usize };
    match io_backend::open(&config, threads)? {
        Drivers::IoUring(drivers) => serve(config, "io_uring", drivers, daemon, allocator),
        Drivers::Epoll(drivers) => serve(config, "epoll", drivers, daemon, allocator),
    }
}

/// Warns about an append-only file which is not loaded, and about settings which have no effect.
fn warn_about_ignored(config: &Config) {
    let names = [APPENDDIRNAME, APPENDFILENAME];
    for name in names.into_iter().filter(|_| !config.appendonly) {
        let file = config.dir.join(OsStr::from_bytes(config.text(name)));
        if file != config.dir && file.exists() {
            let file = file.display();
            log::warning(format_args!("{file} is not loaded: appendonly is no"));
        }
    }
    let inert: Vec<&str> = config.without_effect().collect();
    if !inert.is_empty() {
        let names = inert.join(", ");
        log::notice(format_args!(
            "Settings without effect in this version (docs/config.md says why): {names}"
        ));
    }
}

/// Runs the server on the opened drivers, one per worker.
fn serve<P>(
    config: Config,
    io_backend: &'static str,
    mut drivers: Vec<Reactor<P, Message>>,
    daemon: Option<process::Daemon>,
    allocator: Allocator,
) -> Result<(), String>
where
    P: Poller + Send + 'static,
    P::Stream: Send,
    P::Listener: Send,
{
    let threads = drivers.len();
    let listening = listen(&config, &mut drivers[0], threads)?;
    let admin = web::open(&config)?;
    let pidfile = write_pidfile(&config)?;
    let supervised = config.supervised;
    let (shared, listeners) = share(config, io_backend, &mut drivers, listening, allocator)?;
    banner(&shared, threads, admin.as_ref());
    if let Some(admin) = admin {
        let served = admin.serve(shared.clone());
        served.map_err(|e| format!("cannot start the thread of the admin port: {e}"))?;
    }
    remove_leftovers(&shared);
    shared.load.set_listener(starter(supervised, daemon));
    open_or_load(&shared, |file| file.symlink_metadata().is_ok())?;
    run_workers(drivers, &shared, listeners, allocator)?;
    // The system takes the memory at once; to free millions of entries first takes seconds.
    std::mem::forget(Arc::clone(&shared.keyspace));
    process::notify_stopping(supervised);
    drop(pidfile);
    check_end(&shared)?;
    if shared.saves.was_cut_short.load(Relaxed) {
        return Err("a second SIGINT has ended the server at once".into());
    }
    log::notice(format_args!("SheafDB is now ready to exit, bye bye..."));
    Ok(())
}

/// Removes temporary files of servers which were killed while they saved.
fn remove_leftovers(shared: &Shared) {
    let folders = {
        let config = shared.config.lock().expect("no panic while the configuration is held");
        [config.dir.clone(), config.dir.join(&config.appenddirname)]
    };
    for folder in folders {
        for path in process::remove_leftovers(&folder, std::process::id()) {
            log::notice(format_args!("Removed {}, left by a save that was killed", path.display()));
        }
    }
}

/// Tells a supervisor, and the process that waits for the background one, how the start goes.
fn starter(supervised: Supervised, mut daemon: Option<process::Daemon>) -> Listener {
    let mut has_loaded = false;
    Box::new(move |news| {
        match news {
            News::Loading(progress) => {
                has_loaded = true;
                process::notify_loading(supervised, progress);
            }
            News::Ready => {
                if let Some(daemon) = daemon.take() {
                    let detached = daemon.ready();
                    detached.map_err(|e| format!("cannot detach from the terminal: {e}"))?;
                }
                process::notify_ready(supervised);
                if has_loaded {
                    process::notify_loaded(supervised);
                }
            }
        }
        Ok(())
    })
}

/// Plans to load the append-only file, or else the snapshot file if there is one; otherwise the
/// server is ready at once.
fn open_or_load(shared: &Shared, exists: impl FnOnce(&Path) -> bool) -> Result<(), String> {
    let (place, file) = {
        let config = shared.config.lock().expect("no panic while the configuration is held");
        let place = config.appendonly.then(|| Place::of(&config));
        (place, state::file_of(&config.dir, &config.dbfilename))
    };
    if let Some(place) = place {
        shared.load.plan(Plan::of_append_only(place));
        return Ok(());
    }
    if let Some(file) = file.filter(|file| exists(file)) {
        shared.load.plan(Plan::of_snapshot(file));
        return Ok(());
    }
    shared.load.become_ready()?;
    log::notice(format_args!("Ready to accept connections"));
    Ok(())
}

/// The listeners of worker 0, and those of them which are ingest listeners.
struct Listening {
    all: Vec<ListenerId>,
    ingest: Vec<IngestPort>,
}

fn listen<P: Poller>(
    config: &Config,
    driver: &mut Reactor<P, Message>,
    threads: usize,
) -> Result<Listening, String> {
    value::set_secret(driver.secret());
    let mut all = open_listeners(driver, config)?;
    let ingest = open_ingest(driver, config, threads)?;
    all.extend(ingest.iter().map(|port| port.listener));
    Ok(Listening { all, ingest })
}

/// What the workers share, complete, and the listeners of worker 0.
fn share<P: Poller>(
    config: Config,
    io_backend: &'static str,
    drivers: &mut [Reactor<P, Message>],
    listening: Listening,
    allocator: Allocator,
) -> Result<(Arc<Shared>, Vec<ListenerId>), String> {
    let threads = drivers.len();
    let senders: Vec<_> = drivers.iter().map(Driver::mailbox).collect();
    let mut shared = make_shared(config, &mut drivers[0], threads, allocator.memory);
    shared.ingest.open = listening.ingest;
    shared.facts.tools = allocator.tools;
    shared.facts.io_backend = io_backend;
    let shared = Arc::new(shared);
    shared.keyspace.set_waker(Box::new(WakeByMail(senders.clone())));
    let writer = senders[0].clone();
    shared.keyspace.journal().set_waker(Box::new(move || writer.post(Message::Journal)));
    if shared.mailboxes.set(senders).is_err() {
        return Err("the mailboxes were set twice".into());
    }
    Ok((shared, listening.all))
}

/// Worker 0 runs on the main thread: a process of one thread pays for no reference count on its
/// descriptors in every system call.
fn run_workers<P>(
    drivers: Vec<Reactor<P, Message>>,
    shared: &Arc<Shared>,
    listeners: Vec<ListenerId>,
    allocator: Allocator,
) -> Result<(), String>
where
    P: Poller + Send + 'static,
    P::Stream: Send,
    P::Listener: Send,
{
    let reclaimer = Arc::clone(shared.keyspace.reclaimer());
    let freeing = driver::spawn_helper("reclaimer", move || {
        run_or_exit(format_args!("the thread that frees memory"), || reclaimer.serve());
    })
    .map_err(|e| format!("cannot start the thread that frees memory: {e}"))?;
    let mut drivers = drivers.into_iter().enumerate();
    let first = drivers.next();
    let mut handles = Vec::new();
    for (id, driver) in drivers {
        let shared = shared.clone();
        let handle = driver::spawn_worker(id, move || {
            (allocator.worker_started)(id);
            run_worker(id, Worker::new(driver, shared, id, Vec::new()));
        })
        .map_err(|e| format!("cannot start worker {id}: {e}"))?;
        handles.push(handle);
    }
    if let Some((id, driver)) = first {
        (allocator.worker_started)(id);
        run_worker(id, Worker::new(driver, shared.clone(), id, listeners));
    }
    for handle in handles {
        handle.join().expect("a worker's panic ends the process");
    }
    shared.end_threads();
    shared.keyspace.reclaimer().close();
    freeing.join().expect("a panic of this thread ends the process");
    Ok(())
}

/// Whether the workers have ended well; the error is for the user.
fn check_end(shared: &Shared) -> Result<(), String> {
    shared.load.failure().or_else(|| shared.journal.given_up()).map_or(Ok(()), Err)
}

/// Runs a worker to its end.
fn run_worker<D: Driver<Message = Message>>(id: usize, worker: Worker<D>) {
    run_or_exit(format_args!("worker {id}"), || worker.run());
}

/// A background server always has one; others if they are asked for.
fn write_pidfile(config: &Config) -> Result<Option<process::PidFile>, String> {
    let default = || config.daemonize.then(|| process::PIDFILE_DEFAULT.into());
    let Some(path) = config.pidfile.clone().or_else(default) else { return Ok(None) };
    process::PidFile::write(&path).map(Some).map_err(|e| {
        let why = config::load::io_text(&e);
        format!(
            "pidfile '{}': cannot be written: {why}; give another file with --pidfile",
            path.display()
        )
    })
}

fn open_listeners<P: Poller>(
    driver: &mut Reactor<P, Message>,
    config: &Config,
) -> Result<Vec<ListenerId>, String> {
    let options = ListenOptions { backlog: config.tcp_backlog };
    let mut listeners = Vec::new();
    if config.port != 0 {
        for bind in &config.bind {
            let addr = match bind.address(config.port) {
                Ok(addr) => addr,
                Err(_) if bind.optional => continue,
                Err(e) => return Err(format!("cannot listen on {}: {e}", bind.host)),
            };
            match driver.listen(&ListenAddr::Tcp(addr), &options) {
                Ok(id) => listeners.push(id),
                Err(e) if bind.optional => {
                    log::verbose(format_args!("Not listening on {addr}: {e}"));
                }
                Err(e) => return Err(format!("cannot listen on {addr}: {e}")),
            }
        }
    }
    if let Some(path) = &config.unixsocket {
        let addr = ListenAddr::Unix {
            path: path.clone(),
            permissions: (config.unixsocketperm != 0).then_some(config.unixsocketperm),
        };
        let id = driver
            .listen(&addr, &options)
            .map_err(|e| format!("cannot listen on unix socket {}: {e}", path.display()))?;
        listeners.push(id);
    }
    if listeners.is_empty() {
        return Err("nothing to listen on: 'port' is 0 and 'unixsocket' is not set".into());
    }
    Ok(listeners)
}

/// The classic five on every address of `bind`, then those of `ingest-listen`.
fn open_ingest<P: Poller>(
    driver: &mut Reactor<P, Message>,
    config: &Config,
    threads: usize,
) -> Result<Vec<IngestPort>, String> {
    let options = ListenOptions { backlog: config.tcp_backlog };
    let mut ports = Vec::new();
    let mut open = |addr: SocketAddr, terms: Terms| match driver.listen(&addr.into(), &options) {
        Ok(id) => {
            let addr = driver.listen_addr(id).map_or(addr.to_string(), |a| a.to_string());
            ports.push(IngestPort::new(id, addr, terms, threads));
            Ok(())
        }
        Err(e) => Err(format!("cannot listen on {addr} for {}: {e}", terms.protocol)),
    };
    if config.ingest_classic && config.bind.is_empty() {
        return Err("ingest-classic: 'bind' names no address; give one or use ingest-listen".into());
    }
    for bind in config.bind.iter().filter(|_| config.ingest_classic) {
        for (port, strategy) in (config.ingest_classic_port..).zip(Strategy::ALL) {
            let wrong =
                |why| format!("ingest-classic: {why}; choose other ports with ingest-classic-port");
            let opened = match bind.address(port) {
                Ok(addr) => open(addr, Terms::classic(strategy)),
                Err(e) => Err(format!("cannot listen on {}: {e}", bind.host)),
            };
            match opened {
                Err(why) if bind.optional => log::verbose(format_args!("ingest-classic: {why}")),
                other => other.map_err(wrong)?,
            }
        }
    }
    for listen in &config.ingest_listen {
        let wrong = |why| format!("ingest-listen: {why}; give another address");
        let addr = listen.bind.address(listen.port);
        let addr =
            addr.map_err(|e| wrong(format!("cannot listen on {}: {e}", listen.bind.host)))?;
        if listen
            .terms
            .sink
            .as_ref()
            .is_some_and(|sink| sink.db >= u32::from(config.command.databases))
        {
            return Err(format!(
                "ingest-listen: {listen}: there is no such database; use a lower db=N or raise 'databases'"
            ));
        }
        open(addr, listen.terms.clone()).map_err(wrong)?;
    }
    Ok(ports)
}

/// 40 random hexadecimal digits: the id of a run, or of a history of changes.
pub fn random_id(mut draw: impl FnMut() -> u64) -> String {
    let [a, b, c] = [draw(), draw(), draw()];
    format!("{a:016x}{b:016x}{:08x}", c as u32)
}

/// A random id of the stream of replication.
pub(crate) fn replication_id(draw: impl FnMut() -> u64) -> ReplId {
    ReplId::parse(random_id(draw).as_bytes()).expect("40 digits")
}

/// What all workers share, before the first of them runs; its mailboxes are not set yet.
pub fn make_shared<D: Driver<Message = Message>>(
    config: Config,
    driver: &mut D,
    threads: usize,
    allocator: fn() -> (u64, u64),
) -> Shared {
    let (databases, hash_secret) = (config.command.databases, driver.secret());
    let keyspace = Arc::new(Keyspace::new(&Options { databases, hash_secret, workers: threads }));
    let facts = facts(&config, driver, allocator);
    crate::settings::live::set_uses(&keyspace, &config);
    keyspace.set_importing(config.import_mode);
    let slowlog = Slowlog::new(config.slowlog_len_max);
    let large_requests = Slowlog::new(config.large_requests_len_max);
    let large_replies = Slowlog::new(config.large_replies_len_max);
    let events = config.notify_keyspace_events;
    let shared = Shared {
        keyspace,
        config: Mutex::new(config),
        rewriter: crate::settings::rewriter::Rewriter::default(),
        journal: JournalStatus::new(),
        stopped_workers: AtomicUsize::new(0),
        saves: Saves::new(driver.refresh_now(), driver.unix_ms().0 / 1000),
        walkers: Walkers::default(),
        load: Load::default(),
        config_version: AtomicU64::new(1),
        safe_seq: AtomicU64::new(u64::MAX),
        mailboxes: OnceLock::new(),
        workers: (0..threads)
            .map(|_| CachePadded(WorkerCounters::new(command::all().len(), databases)))
            .collect(),
        loads: Loads::new(threads),
        ingest: IngestPorts::new(threads),
        registry: crate::sessions::card::Registry::default(),
        monitors: Monitors::new(threads),
        pubsub: PubSub::new(threads),
        tracking: ClientTracking::default(),
        events: Mutex::default(),
        next_client_id: AtomicU64::new(1),
        next_ticket: AtomicU64::new(1),
        blocked: Arc::default(),
        connections_received: AtomicU64::new(0),
        connections_rejected: AtomicU64::new(0),
        slowlog,
        large_requests,
        large_replies,
        hot: HotSessions::default(),
        spikes: Spikes::default(),
        heat: HeatMap::default(),
        stats_epoch: AtomicU64::new(0),
        samples: Mutex::default(),
        migrations: AtomicUsize::new(0),
        pause: Pause::default(),
        stream: Stream::new(replication_id(|| driver.random())),
        active_expire: AtomicBool::new(true),
        cron_paused: AtomicBool::new(false),
        panic_in: Mutex::default(),
        ended_holds: AtomicU32::new(0),
        armed: AtomicBool::new(false),
        stats_base: Mutex::default(),
        shutting_down: AtomicBool::new(false),
        listen_overflows: AtomicU64::new(0),
        limits: MemoryLimits::new(allocator().0),
        defrag: DefragCounters::default(),
        memory_peak: AtomicU64::new(0),
        memory_startup: AtomicU64::new(allocator().0),
        facts,
    };
    shared.publish_events(events);
    shared
}

/// What does not change behind the start.
fn facts<D: Driver<Message = Message>>(
    config: &Config,
    driver: &mut D,
    allocator: fn() -> (u64, u64),
) -> Facts {
    Facts {
        run_id: random_id(|| driver.random()),
        started_ms: driver.unix_ms().0,
        io_backend: "epoll",
        executable: std::env::current_exe()
            .map_or_else(|_| "sheafdb".into(), |p| p.display().to_string()),
        config_file: config.file.as_ref().map(|p| p.display().to_string()).unwrap_or_default(),
        port: config.port,
        allocator,
        tools: AllocatorTools::default(),
    }
}

fn banner(shared: &Shared, threads: usize, admin: Option<&AdminPort>) {
    let config = shared.config.lock().expect("no panic while the configuration is held");
    let mut places: Vec<String> = Vec::new();
    if config.port != 0 {
        places.extend(config.bind.iter().map(|b| {
            b.address(config.port).map_or_else(|_| b.host.clone(), |a: SocketAddr| a.to_string())
        }));
    }
    if let Some(path) = &config.unixsocket {
        places.push(path.display().to_string());
    }
    let connect = if config.port != 0 {
        format!("redis-cli -p {}", config.port)
    } else {
        format!("redis-cli -s {}", places[0])
    };
    let page = admin.map_or_else(String::new, |admin| {
        let token = if config.admin_token.is_empty() { "" } else { "?token=..." };
        let what = if admin.serves_page(&config) { "live page and metrics" } else { "metrics" };
        format!("\n{what}: {}{token}", admin.url())
    });
    // Nobody may read it.
    let _ = writeln!(
        std::io::stdout(),
        "SheafDB {VERSION}  {}  {threads} thread{}, I/O by {}\n\
         connect with: {connect}{page}",
        places.join(", "),
        if threads == 1 { "" } else { "s" },
        shared.facts.io_backend,
    );
}

impl WorkerCounters {
    /// Counters at zero for a table of `commands` commands and so many databases.
    pub fn new(commands: usize, databases: u16) -> Self {
        Self {
            commands: CommandStats::new(commands),
            errors: ErrorStats::default(),
            service: ServiceTimes::default(),
            epoch: AtomicU64::new(0),
            processed: Counter::default(),
            databases: (0..databases).map(|_| DatabaseCounters::default()).collect(),
            expire_ns: Counter::default(),
            expire_step_max_ns: Counter::default(),
            longest_turn_ns: Counter::default(),
            stale: Default::default(),
            windows: Counter::default(),
            hot: HotKeys::new(0),
            connections: AtomicU32::new(0),
            moved_clients: Counter::default(),
            client_memory: ClientMemory::default(),
            ingest_memory: ClientMemory::default(),
            io: Mutex::default(),
            published: Counter::default(),
        }
    }
}
