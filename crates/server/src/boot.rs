//! From the command line to running workers, and back to an orderly end.

use crate::config::Config;
use crate::ingest_ports::{IngestPort, IngestPorts};
use crate::message::Message;
use crate::shared::{Facts, Pause, Shared, WorkerCounters};
use crate::worker::Worker;
use crate::{log, process};
use base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use base::sync::{Arc, CachePadded, Mutex, OnceLock};
use driver::epoll::{EpollDriver, EpollOptions};
use driver::{Driver, ListenAddr, ListenOptions, ListenerId, MailboxSender};
use ingest::{Sink, Strategy};
use keyspace::{Keyspace, Options};
use observe::{CommandStats, Counter, ErrorStats, Slowlog};
use std::net::SocketAddr;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Tells parked sessions that the way is free: by a message to their worker.
struct WakeByMail(Vec<MailboxSender<Message>>);

impl keyspace::Waker for WakeByMail {
    fn wake(&self, worker: usize, token: u64) {
        self.0[worker].post(Message::Retry(driver::ConnId::from_token(token)));
    }
}

/// What the binary knows of its allocator.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Bytes allocated, and bytes resident.
    pub memory: fn() -> (u64, u64),
    /// Called in each worker's thread before it runs.
    pub worker_started: fn(usize),
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
            let why = crate::config::load::io_text(&e);
            format!(
                "logfile '{}': cannot be written: {why}; give another file with --logfile",
                file.display()
            )
        })?;
    }
    let daemon = if config.daemonize {
        Some(process::daemonize().map_err(|e| format!("cannot go into the background: {e}"))?)
    } else {
        None
    };
    log::start(config.loglevel, config.logfile.clone());
    let wanted = config.maxclients;
    config.maxclients = driver::raise_file_limit(wanted);
    if config.maxclients < wanted {
        log::warning(format_args!(
            "maxclients lowered from {wanted} to {}: the limit of open files allows no more (raise 'ulimit -n')",
            config.maxclients
        ));
    }
    let threads =
        if config.threads == 0 { driver::cpus_allowed() } else { config.threads as usize };
    let (mut drivers, senders) = make_drivers(&config, threads)?;
    let mut listeners = open_listeners(&mut drivers[0], &config)?;
    let ports = open_ingest(&mut drivers[0], &config, threads)?;
    listeners.extend(ports.iter().map(|port| port.listener));
    let pidfile = write_pidfile(&config)?;
    let supervised = config.supervised;
    let mut shared = make_shared(config, &mut drivers[0], threads, allocator.memory);
    shared.ingest.open = ports;
    let shared = Arc::new(shared);
    shared.keyspace.set_waker(Box::new(WakeByMail(senders.clone())));
    if shared.mailboxes.set(senders).is_err() {
        return Err("the mailboxes were set twice".into());
    }
    banner(&shared, threads);
    if let Some(daemon) = daemon {
        daemon.ready().map_err(|e| format!("cannot let go of the terminal: {e}"))?;
    }
    process::tell_ready(supervised);
    let died = run_workers(drivers, &shared, listeners, allocator)?;
    process::tell_stopping(supervised);
    drop(pidfile);
    log::notice(format_args!("SheafDB is now ready to exit, bye bye..."));
    if died { Err("a worker ended by a panic".into()) } else { Ok(()) }
}

/// Worker 0 runs on the main thread: a process of one thread pays for no reference count on its
/// descriptors in every system call. True if a worker ended by a panic.
fn run_workers(
    drivers: Vec<EpollDriver<Message>>,
    shared: &Arc<Shared>,
    listeners: Vec<ListenerId>,
    allocator: Allocator,
) -> Result<bool, String> {
    let reclaimer = Arc::clone(shared.keyspace.reclaimer());
    let freeing = driver::spawn_helper("reclaimer", move || reclaimer.serve())
        .map_err(|e| format!("cannot start the thread that frees memory: {e}"))?;
    let mut drivers = drivers.into_iter().enumerate();
    let first = drivers.next();
    let mut handles = Vec::new();
    for (id, driver) in drivers {
        let shared = shared.clone();
        let handle = driver::spawn_worker(id, move || {
            (allocator.worker_started)(id);
            Worker::new(driver, shared, id, Vec::new()).run();
        })
        .map_err(|e| format!("cannot start worker {id}: {e}"))?;
        handles.push(handle);
    }
    if let Some((id, driver)) = first {
        (allocator.worker_started)(id);
        Worker::new(driver, shared.clone(), id, listeners).run();
    }
    let died = handles.into_iter().any(|handle| handle.join().is_err());
    shared.keyspace.reclaimer().close();
    Ok(died | freeing.join().is_err())
}

/// A background server always has one; others if they are asked for.
fn write_pidfile(config: &Config) -> Result<Option<process::PidFile>, String> {
    let default = || config.daemonize.then(|| process::PIDFILE_DEFAULT.into());
    let Some(path) = config.pidfile.clone().or_else(default) else { return Ok(None) };
    process::PidFile::write(&path).map(Some).map_err(|e| {
        let why = crate::config::load::io_text(&e);
        format!(
            "pidfile '{}': cannot be written: {why}; give another file with --pidfile",
            path.display()
        )
    })
}

type Drivers = (Vec<EpollDriver<Message>>, Vec<MailboxSender<Message>>);

fn make_drivers(config: &Config, threads: usize) -> Result<Drivers, String> {
    let mut drivers = Vec::new();
    let mut senders = Vec::new();
    for id in 0..threads {
        let options =
            EpollOptions { busy_poll_us: config.busy_poll_us, workers: threads, signals: id == 0 };
        let driver =
            EpollDriver::new(&options).map_err(|e| format!("cannot start an event loop: {e}"))?;
        senders.push(driver.mailbox());
        drivers.push(driver);
    }
    Ok((drivers, senders))
}

fn open_listeners(
    driver: &mut EpollDriver<Message>,
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
fn open_ingest(
    driver: &mut EpollDriver<Message>,
    config: &Config,
    threads: usize,
) -> Result<Vec<IngestPort>, String> {
    let options = ListenOptions { backlog: config.tcp_backlog };
    let mut ports = Vec::new();
    let mut open = |addr: SocketAddr, strategy, sink| match driver.listen(&addr.into(), &options) {
        Ok(id) => {
            let addr = driver.listen_addr(id).map_or(addr.to_string(), |a| a.to_string());
            ports.push(IngestPort::new(id, addr, strategy, sink, threads));
            Ok(())
        }
        Err(e) => Err(format!("cannot listen on {addr} for {strategy}: {e}")),
    };
    if config.ingest_classic && config.bind.is_empty() {
        return Err("ingest-classic: 'bind' names no address; give one or use ingest-listen".into());
    }
    for bind in config.bind.iter().filter(|_| config.ingest_classic) {
        for (port, strategy) in (config.ingest_classic_port..).zip(Strategy::ALL) {
            let wrong =
                |why| format!("ingest-classic: {why}; choose other ports with ingest-classic-port");
            let opened = match bind.address(port) {
                Ok(addr) => open(addr, strategy, Sink::Null),
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
        open(addr, listen.strategy, listen.sink).map_err(wrong)?;
    }
    Ok(ports)
}

/// 40 random hexadecimal digits.
fn run_id<D: Driver<Message = Message>>(driver: &mut D) -> String {
    let [a, b, c] = [driver.random(), driver.random(), driver.random()];
    format!("{a:016x}{b:016x}{:08x}", c as u32)
}

/// What all workers share, before the first of them runs; its mailboxes are not set yet.
pub fn make_shared<D: Driver<Message = Message>>(
    config: Config,
    driver: &mut D,
    threads: usize,
    allocator: fn() -> (u64, u64),
) -> Shared {
    let keyspace = Arc::new(Keyspace::new(&Options {
        databases: config.databases as u16,
        hash_seed: driver.random(),
        workers: threads,
    }));
    let facts = Facts {
        run_id: run_id(driver),
        started_ms: driver.unix_ms().0,
        io_backend: "epoll",
        executable: std::env::current_exe()
            .map_or_else(|_| "sheafdb".into(), |p| p.display().to_string()),
        config_file: config.file.as_ref().map(|p| p.display().to_string()).unwrap_or_default(),
        port: config.port,
        allocator,
    };
    let slowlog = Slowlog::new(config.slowlog_max_len as usize);
    Shared {
        keyspace,
        config: Mutex::new(config),
        config_version: AtomicU64::new(1),
        mailboxes: OnceLock::new(),
        workers: (0..threads)
            .map(|_| CachePadded(WorkerCounters::new(command::all().len())))
            .collect(),
        ingest: IngestPorts::new(threads),
        registry: crate::client_card::Registry::default(),
        next_client_id: AtomicU64::new(1),
        next_ticket: AtomicU64::new(1),
        blocked: AtomicU64::new(0),
        connections_received: AtomicU64::new(0),
        connections_rejected: AtomicU64::new(0),
        slowlog,
        stats_epoch: AtomicU64::new(0),
        samples: Mutex::default(),
        pause: Pause::default(),
        active_expire: AtomicBool::new(true),
        panic_in: Mutex::default(),
        armed: AtomicBool::new(false),
        stats_base: Mutex::default(),
        shutting_down: AtomicBool::new(false),
        listen_overflows: AtomicU64::new(0),
        memory_peak: AtomicU64::new(0),
        memory_startup: AtomicU64::new(allocator().0),
        facts,
    }
}

fn banner(shared: &Shared, threads: usize) {
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
    println!(
        "SheafDB {VERSION}  {}  {threads} thread{}, I/O by {}\n\
         in memory only: data is lost at exit\n\
         connect with: {connect}",
        places.join(", "),
        if threads == 1 { "" } else { "s" },
        shared.facts.io_backend,
    );
    log::notice(format_args!("Ready to accept connections"));
}

impl WorkerCounters {
    /// Counters at zero for a table of `commands` commands.
    pub fn new(commands: usize) -> Self {
        Self {
            commands: CommandStats::new(commands),
            errors: ErrorStats::default(),
            epoch: AtomicU64::new(0),
            processed: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            expire_ns: Counter::default(),
            expire_step_max_ns: Counter::default(),
            windows: Counter::default(),
            connections: AtomicU32::new(0),
            io: Mutex::default(),
        }
    }
}
