//! Servers with an append-only file on a disk which can be made to hang.

use crate::sim_world::{BREATH, MS, PATIENCE, Reply, Sim};
use driver::sim::Faults;
use server::config::Config;
use std::path::Path;
use std::time::Instant;

const FOLDER: &str = "/data/appendonlydir";
pub const S: u64 = 1_000 * MS;
/// Enough that every worker of the world has some.
pub const CLIENTS: usize = 4;

/// A server which appends, with clients on all workers.
pub fn begin(fsync: &str, listen: &str) -> Sim {
    let mut config = Config::default();
    config.dir = "/data".into();
    config.save_points = Vec::new();
    let mut sim = Sim::with_ingest(1, Faults::NONE, config, listen);
    sim.net.disk().install_folder(Path::new("/data")).expect("room");
    sim.connect(CLIENTS);
    let set = ["CONFIG", "SET", "appendonly", "yes", "appendfsync", fsync];
    assert_eq!(sim.ask(0, &set), Reply::ok());
    // (The thread that writes the base is real.)
    let began = Instant::now();
    loop {
        let waited = sim.ask(0, &["WAITAOF", "1", "0", "1"]);
        if waited == Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "it does not end");
        sim.forget_steps();
        std::thread::sleep(BREATH);
    }
    wait(&mut sim, 2 * S); // what follows the first base is done
    sim
}

/// From now on no operation completes.
pub fn hang(sim: &Sim) {
    sim.net.disk().stop_after(0);
}

pub fn go_on(sim: &Sim) {
    sim.net.disk().stop_after(u64::MAX);
}

/// Lets virtual time pass, however many steps that takes.
pub fn wait(sim: &mut Sim, ns: u64) {
    let end = sim.net.now().plus(ns);
    while sim.net.now() < end && !sim.has_ended() {
        sim.step();
        sim.forget_steps();
    }
}

/// What was said is executed, and answered if it can be.
pub fn settle(sim: &mut Sim) {
    sim.run_until(|sim| sim.clients.iter().all(|c| c.has_said_all() || c.ending.is_some()));
    (0..50).for_each(|_| sim.step());
}

/// How often a text stands in the files.
pub fn on_disk(sim: &Sim, text: &str) -> usize {
    let names = sim.net.disk().names(Path::new(FOLDER)).expect("a folder");
    let times = names.iter().map(|name| {
        let bytes = sim.net.disk().contents(&Path::new(FOLDER).join(name)).expect("a file");
        bytes.windows(text.len()).filter(|part| *part == text.as_bytes()).count()
    });
    times.sum()
}

pub fn is_on_disk(sim: &Sim, text: &str) -> bool {
    on_disk(sim, text) > 0
}
