//! Saves on a simulated disk whose machine crashes or which fails: the file is the old one or the
//! new one at every moment, and the new one after the reply.

use crate::sim_world::{BREATH, PATIENCE, Reply, Sim};
use base::crc64::crc64;
use driver::sim::{DiskFaults, Faults};
use server::config::{Access, Config};
use std::path::Path;
use std::time::Instant;

const FOLDER: &str = "/data";
const FILE: &str = "/data/dump.rdb";
const OLD: &[u8] = b"the old file, which no save has written";
/// Keys, and bytes of each value: a file of several buffers, with syncs between them.
const KEYS: usize = 700;
const VALUE_BYTES: usize = 9_000;
/// Crashes for each seed.
const CRASHES: u32 = 30;
/// Steps after the reply in which the machine may still crash.
const STEPS_AFTER: u32 = 3;

/// A server with data and the old file, and a client which asks for a save.
fn begin(seed: u64, disk: DiskFaults, command: &str) -> Sim {
    let mut config = Config::default();
    config.dir = FOLDER.into();
    config.rdb_compression = false;
    config.save_points = Vec::new(); // while a disk hangs, one would fall due
    config.enable_debug_command = Access::Yes;
    let mut sim = Sim::new(seed, Faults::NONE, config);
    sim.net.disk().install_folder(Path::new(FOLDER)).expect("room");
    sim.net.disk().install(Path::new(FILE), OLD, 0o640).expect("room");
    sim.net.disk().set_faults(disk);
    sim.connect(1);
    let populate = ["DEBUG", "POPULATE", &KEYS.to_string(), "key", &VALUE_BYTES.to_string()];
    assert_eq!(sim.ask(0, &populate), Reply::ok());
    sim.clients[0].say(&[command]);
    sim.forget_steps();
    sim
}

/// Runs until the reply, or for so many steps. Returns the reply, and how many steps there were.
/// The thread that walks is real, and needs time of its own: on a busy machine, many steps.
fn run(sim: &mut Sim, steps: u32) -> (Option<Reply>, u32) {
    let (mut reply, mut taken) = (None, 0);
    let began = Instant::now();
    while taken < steps && reply.is_none() {
        assert!(began.elapsed() < PATIENCE, "it does not end");
        sim.step();
        sim.forget_steps();
        taken += 1;
        std::thread::sleep(BREATH);
        reply = sim.clients[0].take_reply();
    }
    (reply, taken)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Old,
    New,
    Neither,
}

/// What is at the file's name. A new file is whole if its checksum is right.
fn left(sim: &Sim) -> Left {
    let bytes = sim.net.disk().contents(Path::new(FILE)).expect("the file is always there");
    let Some((body, sum)) = bytes.split_last_chunk::<8>() else { return Left::Neither };
    let is_whole = bytes.starts_with(b"REDIS0010")
        && body.len() > KEYS * VALUE_BYTES
        && crc64(0, body) == u64::from_le_bytes(*sum);
    match (bytes == OLD, is_whole) {
        (true, _) => Left::Old,
        (_, true) => Left::New,
        _ => Left::Neither,
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_old_file_or_the_new_one() {
    let (mut old, mut new, mut replied) = (0, 0, 0);
    for seed in 0..12 {
        let disk = if seed % 2 == 0 { DiskFaults::NONE } else { DiskFaults::ROUGH };
        let mut whole = begin(seed, disk, "SAVE");
        let (reply, taken) = run(&mut whole, u32::MAX);
        assert_eq!(reply, Some(Reply::ok()), "seed {seed}");
        assert_eq!(left(&whole), Left::New);
        let names = whole.net.disk().names(Path::new(FOLDER)).expect("a folder");
        assert_eq!(names, ["dump.rdb"], "no temporary file stays");
        let last = taken + STEPS_AFTER;
        for crash in 0..=CRASHES {
            let mut sim = begin(seed, disk, "SAVE");
            // The last crash is behind the reply, however long the thread that walks takes.
            let steps = if crash == CRASHES { u32::MAX } else { last * crash / CRASHES };
            let (reply, _) = run(&mut sim, steps);
            for _ in 0..if reply.is_some() { crash % STEPS_AFTER } else { 0 } {
                sim.step();
            }
            sim.net.disk().crash();
            let left = left(&sim);
            let why = format!("seed {seed}, step {steps} of {last}, {reply:?}");
            assert_ne!(left, Left::Neither, "{why}");
            assert!(left == Left::New || reply.is_none(), "the old file after the reply: {why}");
            let count = if left == Left::Old { &mut old } else { &mut new };
            (*count, replied) = (*count + 1, replied + u32::from(reply.is_some()));
        }
    }
    println!("{old} crashes left the old file, {new} the new one, {replied} after the reply");
    assert!(old >= 12 && new >= replied && replied >= 12, "{old} {new} {replied}");
}

/// On a disk that fails a save may be refused. Then the old file is there, and a later save works.
#[test]
fn a_failing_disk_never_leaves_half_a_file() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 100..160 {
        let mut sim = begin(seed, DiskFaults::HARSH, "SAVE");
        let reply = run(&mut sim, u32::MAX).0.expect("it is answered");
        let found = left(&sim);
        if reply == Reply::ok() {
            accepted += 1;
            sim.net.disk().crash();
            assert_eq!(left(&sim), Left::New, "seed {seed}");
            continue;
        }
        assert_eq!(reply, Reply::Error("ERR".into()), "seed {seed}");
        refused += 1;
        // A folder which could not be synced may have the new name already.
        assert_ne!(found, Left::Neither, "seed {seed}");
        sim.net.disk().set_faults(DiskFaults::NONE);
        assert_eq!(sim.ask(0, &["BGSAVE"]), Reply::Simple("Background saving started".into()));
        let mut status = String::from("rdb_bgsave_in_progress:1");
        let began = Instant::now();
        while status.contains("rdb_bgsave_in_progress:1") {
            assert!(began.elapsed() < PATIENCE, "it does not end");
            let Reply::Bulk(text) = sim.ask(0, &["INFO", "persistence"]) else { panic!("text") };
            status = text;
            sim.forget_steps();
            std::thread::sleep(BREATH);
        }
        assert!(status.contains("rdb_last_bgsave_status:ok"), "seed {seed}: {status}");
        assert_eq!(left(&sim), Left::New, "seed {seed}");
    }
    println!("{accepted} saves accepted, {refused} refused");
    assert!(accepted > 3 && refused > 3, "{accepted} {refused}");
}
