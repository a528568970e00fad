//! WAITAOF on a simulated disk whose machine crashes: what it has said 1 of is on the disk. And
//! what LATENCY says of a slow one.

use crate::sim_world::{BREATH, PATIENCE, Reply, Sim};
use driver::sim::{DiskFaults, Faults};
use server::config::Config;
use std::path::Path;
use std::time::Instant;

const FOLDER: &str = "/data/appendonlydir";
/// Writes of one world.
const WRITES: u64 = 12;

/// A server without an append-only file, with one client.
fn without_file(seed: u64) -> Sim {
    let mut config = Config::default();
    config.dir = "/data".into();
    config.rdb_compression = false;
    config.save_points = Vec::new();
    config.enable_debug_command = server::config::Access::Yes;
    let mut sim = Sim::new(seed, Faults::NONE, config);
    sim.net.disk().install_folder(Path::new("/data")).expect("room");
    sim.connect(1);
    sim
}

/// A server which has just begun its append-only file, with one client.
pub fn begin(seed: u64, fsync: &str) -> Sim {
    let mut sim = without_file(seed);
    let set = ["CONFIG", "SET", "appendonly", "yes", "appendfsync", fsync];
    assert_eq!(sim.ask(0, &set), Reply::ok());
    assert_eq!(waited(&mut sim, "0"), synced(true), "the first base is complete");
    sim
}

pub fn synced(yes: bool) -> Reply {
    Reply::Array(vec![Reply::Integer(i64::from(yes)), Reply::Integer(0)])
}

/// What WAITAOF answers. The thread that writes a base is real, and needs time of its own.
pub fn waited(sim: &mut Sim, timeout_ms: &str) -> Reply {
    sim.clients[0].say(&["WAITAOF", "1", "0", timeout_ms]);
    let began = Instant::now();
    loop {
        if let Some(reply) = sim.clients[0].take_reply() {
            return reply;
        }
        assert!(began.elapsed() < PATIENCE, "it does not end");
        sim.step();
        sim.forget_steps();
        std::thread::sleep(BREATH);
    }
}

/// Whether a text is in one of the files.
pub fn is_on_disk(sim: &Sim, text: &str) -> bool {
    let names = sim.net.disk().names(Path::new(FOLDER)).expect("a folder");
    names.iter().any(|name| {
        let bytes = sim.net.disk().contents(&Path::new(FOLDER).join(name)).expect("a file");
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[test]
fn what_was_synced_survives_a_crash() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..90 {
        let fsync = ["everysec", "no", "always"][seed as usize % 3];
        let mut sim = begin(seed, fsync);
        let faults = [DiskFaults::NONE, DiskFaults::ROUGH, DiskFaults::HARSH];
        sim.net.disk().set_faults(faults[seed as usize / 3 % 3]);
        let writes = 1 + sim.prng.below(WRITES);
        let mut last = None;
        for write in 0..writes {
            let text = format!("<{seed}:{write}>");
            sim.clients[0].say(&["SET", "key", &text]);
            if sim.prng.chance(1, 6) {
                sim.clients[0].say(&["BGREWRITEAOF"]);
            } else {
                sim.clients[0].say(&["PING"]);
            }
            let timeout_ms = [1, 30, 400, 1500][sim.prng.below(4) as usize].to_string();
            let (is_written, is_synced) = waited_behind(&mut sim, &timeout_ms);
            (yes, no) = (yes + u32::from(is_synced), no + u32::from(!is_synced));
            if is_written && is_synced {
                last = Some(text);
            } else if is_written {
                last = None;
            }
        }
        sim.net.disk().crash();
        if let Some(text) = last {
            assert!(is_on_disk(&sim, &text), "seed {seed}, {fsync}: {text} is lost");
        }
    }
    println!("{yes} times 1, {no} times 0");
    assert!(yes > 40 && no > 40, "{yes} {no}");
}

/// While the first base is written no reply waits for the disk. INFO calls the file complete when
/// it also has what was acknowledged meanwhile.
#[test]
fn a_complete_file_has_what_was_acknowledged_while_it_began() {
    for seed in 0..60 {
        let mut sim = without_file(seed);
        sim.net.disk().set_faults([DiskFaults::ROUGH, DiskFaults::HARSH][seed as usize % 2]);
        let set = ["CONFIG", "SET", "appendonly", "yes", "appendfsync", "always"];
        assert_eq!(sim.ask(0, &set), Reply::ok());
        let began = Instant::now();
        let mut write = 0;
        let last = loop {
            write += 1;
            let text = format!("<{seed}:{write}>");
            let reply = sim.ask(0, &["SET", "key", &text]);
            let Reply::Bulk(info) = sim.ask(0, &["INFO", "persistence"]) else { panic!("text") };
            let is_complete = ["enabled:1", "rewrite_in_progress:0", "rewrite_scheduled:0"];
            if reply == Reply::ok() && is_complete.iter().all(|part| info.contains(part)) {
                break text;
            }
            assert!(began.elapsed() < PATIENCE, "it does not begin");
            sim.forget_steps();
            std::thread::sleep(BREATH);
        };
        sim.net.disk().crash();
        assert!(is_on_disk(&sim, &last), "seed {seed}: {last} is lost");
    }
}

/// Whether SET was executed, by the replies to it, one more and WAITAOF, and whether it is synced.
fn waited_behind(sim: &mut Sim, timeout_ms: &str) -> (bool, bool) {
    sim.clients[0].say(&["WAITAOF", "1", "0", timeout_ms]);
    let (began, mut replies) = (Instant::now(), Vec::new());
    while replies.len() < 3 {
        if let Some(reply) = sim.clients[0].take_reply() {
            replies.push(reply);
            continue;
        }
        assert!(began.elapsed() < PATIENCE, "it does not end");
        sim.step();
        sim.forget_steps();
        std::thread::sleep(BREATH);
    }
    (replies[0] == Reply::ok(), replies[2] == synced(true))
}

/// The events of which LATENCY LATEST has spikes, and the longest of each in milliseconds.
fn spikes(sim: &mut Sim) -> Vec<(String, i64)> {
    let Reply::Array(events) = sim.ask(0, &["LATENCY", "LATEST"]) else { panic!("no list") };
    let event = |event| match event {
        Reply::Array(parts) => match parts.as_slice() {
            [Reply::Bulk(name), _, _, longest] => (name.clone(), longest.integer()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    events.into_iter().map(event).filter(|(name, _)| name.starts_with("aof-")).collect()
}

#[test]
fn latency_has_the_operations_on_the_file_that_took_long() {
    let slow = DiskFaults {
        slow_one_in: 1,
        slow_ns_max: 50_000_000,
        delay_ns_max: 1_000,
        ..DiskFaults::NONE
    };
    for (fsync, expected) in [
        // Write and sync are one operation.
        ("always", &["aof-fsync-always", "aof-rename"][..]),
        ("everysec", &["aof-write", "aof-rename"]),
    ] {
        let mut sim = begin(7, fsync);
        sim.net.disk().set_faults(slow);
        sim.ask(0, &["SET", "key", "value"]);
        sim.run_for(200_000_000);
        assert_eq!(spikes(&mut sim), [], "nothing is watched");
        assert_eq!(sim.ask(0, &["CONFIG", "SET", "latency-monitor-threshold", "5"]), Reply::ok());
        for write in 0..60 {
            sim.ask(0, &["SET", "key", &write.to_string()]);
            sim.run_for(20_000_000);
            sim.forget_steps();
        }
        sim.ask(0, &["BGREWRITEAOF"]);
        sim.ask(0, &["SET", "key", "behind"]);
        assert_eq!(waited(&mut sim, "0"), synced(true));
        let began = Instant::now();
        loop {
            let Reply::Bulk(info) = sim.ask(0, &["INFO", "persistence"]) else { panic!("text") };
            if info.contains("aof_rewrite_in_progress:0") {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            sim.forget_steps();
            std::thread::sleep(BREATH);
        }
        let found = spikes(&mut sim);
        for event in expected {
            let longest = found.iter().find(|(name, _)| name == event).map(|(_, ms)| *ms);
            assert!(
                longest.is_some_and(|ms| (5..=60).contains(&ms)),
                "{fsync}: {event}: {found:?}"
            );
        }
        let has_sync = found.iter().any(|(name, _)| name == "aof-fsync-always");
        assert_eq!(has_sync, fsync == "always", "{found:?}");
    }
}
