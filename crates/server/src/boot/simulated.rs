//! A whole server in a world of the baton: the workers and helper threads of `serve`, on the
//! simulated network, in a group of its own.
//!
//! Not simulated, and so not to be used in a world: the admin port, the pid file and the
//! supervisor, which belong to the process; MIGRATE, whose thread uses real sockets; DEBUG commands
//! which print on standard output. Included configuration files are on the disk of the machine.

use super::allocator::{Allocator, AllocatorTools};
use super::{check_end, listen, open_or_load, run_workers, share};
use crate::log;
use crate::shared::Shared;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::baton::{Baton, Group};
use base::sync::outside::Mutex;
use config::Config;
use driver::sim::{SimDisk, SimDriver, SimNet};

/// A simulated server.
#[derive(Clone)]
pub struct Server {
    /// What dies with it.
    pub group: Group,
    start: Arc<Mutex<Start>>,
}

/// How its start went.
enum Start {
    UnderWay,
    Running(Arc<Shared>),
    Failed(String),
}

impl Server {
    /// What its workers share, once it listens; the error is one line for the user. The world may
    /// read it, and must not wait for its locks: a killed worker may have them.
    pub fn shared(&self) -> Result<Option<Arc<Shared>>, String> {
        match &*self.start.lock().expect("nobody panics with it") {
            Start::UnderWay => Ok(None),
            Start::Running(shared) => Ok(Some(shared.clone())),
            Start::Failed(why) => Err(why.clone()),
        }
    }
}

/// Starts a server with so many workers in a new group, on a machine with this disk. It runs, like
/// every thread, when the baton is handed to it; it listens where its configuration says.
pub fn start(
    world: &Baton,
    name: &str,
    (net, disk): (&SimNet, &SimDisk),
    config: Config,
    workers: usize,
) -> Server {
    let group = world.group(name);
    let start = Arc::new(Mutex::new(Start::UnderWay));
    let server = Server { group, start: start.clone() };
    let (net, disk) = (net.clone(), disk.clone());
    let run = move || {
        if let Err(why) = serve(config, (&net, &disk), workers, &start) {
            log::warning(format_args!("{why}"));
            set(&start, Start::Failed(why));
            base::sync::exit(1);
        }
    };
    world.spawn(group, "worker-0", run).expect("the system has room for a thread");
    server
}

/// Replaces the state. The old one is freed without the lock, which is not simulated: at a switch
/// point of its drop the world may run, and would wait for the lock for ever.
fn set(start: &Mutex<Start>, state: Start) {
    let old = std::mem::replace(&mut *start.lock().expect("nobody panics with it"), state);
    drop(old);
}

/// As `serve` of a real server, without what belongs to the process.
fn serve(
    config: Config,
    (net, disk): (&SimNet, &SimDisk),
    workers: usize,
    start: &Mutex<Start>,
) -> Result<(), String> {
    let allocator =
        Allocator { memory: || (0, 0), tools: AllocatorTools::default(), worker_started: |_| () };
    let mut drivers: Vec<SimDriver<Message>> = (0..workers).map(|_| net.driver_on(disk)).collect();
    let listening = listen(&config, &mut drivers[0], workers)?;
    let (shared, listeners) = share(config, "simulated", &mut drivers, listening, allocator)?;
    open_or_load(&shared, |file| disk.contents(file).is_ok())?;
    set(start, Start::Running(shared.clone()));
    run_workers(drivers, &shared, listeners, allocator)?;
    check_end(&shared)
}
