//! Simulated machines which stop in the middle of something: their threads end with them, and their
//! memory is free. The test runs itself in a process of its own, because it counts threads.

use crate::sim_world::{PATIENCE, Reply, Sim};
use base::sync::Arc;
use driver::sim::Faults;
use server::config::{Access, Config};
use server::persist::load::state::Plan;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Machines that stop in each of the places.
const MACHINES: u64 = 8;
const FILE: &str = "/data/dump.rdb";
/// Set in the process that has no other test.
const ALONE: &str = "STOPPED_ALONE";

/// A machine, and who else uses its keyspace.
type Stopped = (Sim, Option<keyspace::Access>);

/// The threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux has it").count()
}

fn config() -> Config {
    let mut config = Config::default();
    config.dir = "/data".into();
    config.rdb_compression = false;
    config.enable_debug_command = Access::Yes;
    config
}

/// A machine whose thread waits until something is written: the disk hangs.
fn stopped_in_a_save(seed: u64) -> Stopped {
    let mut sim = Sim::new(seed, Faults::NONE, config());
    sim.net.disk().install_folder(Path::new("/data")).expect("room");
    sim.connect(1);
    assert_eq!(sim.ask(0, &["DEBUG", "POPULATE", "700", "key", "9000"]), Reply::ok());
    sim.net.disk().stop_after(seed % 3); // before all buffers are written
    sim.ask(0, &["BGSAVE"]);
    (sim, None)
}

/// A machine whose thread waits for the moment that it is to save: somebody is inside a section, so
/// World cannot be taken.
fn stopped_before_a_save(seed: u64) -> Stopped {
    let mut other = None;
    let mut sim = Sim::prepared(seed, Faults::NONE, config(), "", |_, shared| {
        let mut first = keyspace::Access::new(shared.keyspace.clone(), 0);
        other = first.further().ok();
    });
    assert!(other.as_mut().is_some_and(keyspace::Access::enter));
    sim.connect(1);
    sim.clients[0].say(&["BGSAVE"]);
    (sim, other)
}

/// A machine whose threads wait for a file, or for the next part of it.
fn stopped_while_it_loads(seed: u64) -> Stopped {
    let sim = Sim::prepared(seed, Faults::NONE, config(), "", |net, shared| {
        let mut bytes = b"REDIS0010\xfe\x00\x00\x04long\x80\x01\x00\x00\x00".to_vec();
        bytes.resize(16 << 20, b'x');
        net.disk().install(Path::new(FILE), &bytes, 0o640).expect("room");
        net.disk().stop_after(seed);
        shared.load.plan(Plan::of_snapshot(FILE.into()));
    });
    (sim, None)
}

/// Earlier each of them left its threads blocked for ever, and with them all its memory.
#[test]
fn a_machine_that_stops_leaves_nothing() {
    if std::env::var_os(ALONE).is_none() {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child.args(["--exact", "stopped::a_machine_that_stops_leaves_nothing"]);
        let output = child.args(["--nocapture"]).env(ALONE, "1").output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stdout);
        let passed = output.status.success() && told.contains("1 passed");
        assert!(passed, "{told}{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let before = threads();
    for seed in 0..MACHINES {
        for stopped in [stopped_in_a_save, stopped_before_a_save, stopped_while_it_loads] {
            let (mut sim, _other) = stopped(seed);
            sim.run_until(|_| threads() > before);
            let shared = Arc::downgrade(&sim.shared);
            drop(sim);
            // The threads own it, too.
            assert!(shared.upgrade().is_none(), "a thread of machine {seed} has not ended");
            // They have been joined; the system may still be about to forget them.
            let began = Instant::now();
            while threads() > before {
                assert!(began.elapsed() < PATIENCE, "machine {seed} has left threads");
                std::thread::yield_now();
            }
        }
    }
}
