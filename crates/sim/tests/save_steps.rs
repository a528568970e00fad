//! What happens at each operation on files of a save.
//!
//! The machine crashes, and each kind of change that is not durable is kept or lost: the next
//! server has the old data or the new data, whole, and the new data once the save was acknowledged.
//! Or the disk hangs, and clients go on meanwhile.
#![cfg(sim)]

use base::sync::Arc;
use base::sync::baton::{Rates, Status};
use client::Value;
use driver::sim::{DiskFaults, Fate, Faults, SimClient, Survival};
use server::shared::Shared;
use sim::clients::words;
use sim::host::{Host, server_addr};
use sim::judge::ask;
use sim::machine::{DATA_FILE, DATA_FOLDER, Machine};
use sim::plan::{Counts, MS, Plan, Saves};
use sim::world::World;
use std::path::Path;

/// Keys of the large part of the data, and bytes of each: a file of several writes.
const BIG: &str = "DEBUG POPULATE 12 big 210000";
/// What takes longer than this is stuck, simulated time.
const LONG_NS: u64 = 20_000 * MS;

/// A world in which nothing goes wrong by itself.
fn world() -> World {
    let mut plan = Plan::draw(1, 0);
    plan.faults = Faults::NONE;
    plan.disk = DiskFaults::NONE;
    plan.rates = Rates::CALM;
    plan.counts = Counts::default();
    plan.workers = 2;
    plan.saves = Some(Saves { points: false, flushes: false, shutdowns: true, key_delay_us: 0 });
    World::new(plan)
}

/// Every kind of change that is not durable is kept or lost; or torn, too.
fn fates(is_torn: bool) -> Vec<Fate> {
    let all = [Survival::All, Survival::None, Survival::Mixed];
    let all = &all[..if is_torn { 3 } else { 2 }];
    let kinds = all.iter().flat_map(|names| all.iter().map(|contents| (*names, *contents)));
    let fate = |((names, contents), done)| Fate {
        names: Some(names),
        contents: Some(contents),
        in_flight: Some(done),
    };
    kinds.flat_map(|kind| [(kind, true), (kind, false)]).map(fate).collect()
}

fn until(world: &World, what: &str, is: impl Fn(&World) -> bool) {
    let end = world.now() + LONG_NS;
    while !is(world) {
        assert!(world.now() < end, "{what}");
        if let Some(Err(why)) = world.host.as_ref().map(Host::shared) {
            panic!("{what}: {why}");
        }
        world.net.wait(world.net.moment(), Some(base::MonoNs(world.now() + MS / 10)));
    }
}

/// Starts the next server and connects to it when it has loaded.
fn start(world: &mut World) -> SimClient {
    world.epoch += 1;
    let machine = (&world.net, &world.machine);
    world.host = Some(Host::start(&world.baton, machine, (&world.plan, 0), world.epoch));
    until(world, "it does not load", World::is_served);
    world.net.connect(&server_addr()).expect("it listens")
}

/// The processes of the server are gone.
fn kill(world: &World) {
    let group = world.host.as_ref().expect("there is one").group();
    if world.baton.status(group) == Status::Running {
        world.baton.kill(group);
    }
    until(world, "it does not die", |w| w.baton.status(group) != Status::Running);
}

fn shared(world: &World) -> Arc<Shared> {
    let shared = world.host.as_ref().and_then(|host| host.shared().ok().flatten());
    shared.expect("it has started")
}

/// Sends a command without waiting for its reply.
fn send(conn: &SimClient, command: &str) {
    let parts: Vec<Vec<u8>> = words(command);
    let bytes = client::encode(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert_eq!(conn.write(&bytes), bytes.len());
}

/// There is a reply, which is taken, or the connection is closed.
fn is_answered(conn: &SimClient) -> bool {
    conn.ending().is_some() || conn.read(&mut [0; 64]) > 0
}

#[track_caller]
fn ask_ok(world: &mut World, conn: &SimClient, command: &str) {
    assert_eq!(ask(world, conn, &words(command)), Ok(Value::ok()), "{command}");
}

/// Changes values of several types and encodings, in place and by new entries.
const CHANGES: [&str; 6] = [
    "SET text {}",
    "HSET hash field {}",
    "ZADD zset {} member",
    "RPUSH list {}",
    "XADD s {}-1 f v",
    "SADD set {}",
];
/// What shows them: the number of the last change, or how many there were.
const READS: [&str; 6] =
    ["GET text", "HGET hash field", "ZSCORE zset member", "LLEN list", "XLEN s", "SCARD set"];

fn change(world: &mut World, conn: &SimClient, number: u32) {
    for text in CHANGES {
        let reply = ask(world, conn, &words(&text.replace("{}", &number.to_string())));
        assert!(!reply.expect("it is answered").is_error(), "{text}");
    }
}

/// The number of the last change which the data shows: 1 or 2, and the same everywhere.
fn read(world: &mut World, conn: &SimClient, why: &str) -> i64 {
    let seen: Vec<Option<i64>> = READS
        .iter()
        .map(|text| sim::clients::number(&ask(world, conn, &words(text)).expect("it is answered")))
        .collect();
    assert!(
        seen.iter().all(|one| *one == seen[0]),
        "neither the old nor the new data: {seen:?}; {why}"
    );
    let size = ask(world, conn, &words("DBSIZE")).expect("it is answered");
    assert_eq!(size, Value::Integer(READS.len() as i64 + 12), "{why}");
    seen[0].filter(|n| (1..=2).contains(n)).unwrap_or_else(|| panic!("{seen:?}; {why}"))
}

/// How a command that saves ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The disk stopped before.
    Stopped,
    /// Its file is acknowledged.
    Saved,
}

/// The old data is saved and changed; then `command` saves the new data, and the machine crashes
/// behind so many operations on files.
fn crash(world: &mut World, command: &str, operations: u64, fate: Fate) -> (End, i64) {
    world.machine = Machine::new(7 + operations, DiskFaults::NONE);
    let conn = start(world);
    change(world, &conn, 1);
    for text in [BIG, "CONFIG SET rdbcompression no", "SAVE"] {
        ask_ok(world, &conn, text);
    }
    change(world, &conn, 2);
    world.machine.disk.stop_after(operations);
    send(&conn, command);
    let is_saved = |w: &World| {
        if command == "BGSAVE" {
            let shared = shared(w);
            let state = shared.saves.state();
            return state.saves == 2 && !state.is_saving();
        }
        is_answered(&conn)
    };
    until(world, "neither saved nor stopped", |w| w.machine.disk.has_stopped() || is_saved(w));
    let end = if world.machine.disk.has_stopped() { End::Stopped } else { End::Saved };
    world.machine.disk.crash_with(fate);
    kill(world);
    let conn = start(world);
    let why = format!("{command}, {operations} operations, {end:?}, {fate:?}");
    let found = read(world, &conn, &why);
    // The next save is not in the way of what the crash has left.
    assert_eq!(ask(world, &conn, &words("SAVE")), Ok(Value::ok()), "{why}");
    let names = world.machine.disk.names(Path::new(DATA_FOLDER)).expect("a folder");
    assert_eq!(names, ["dump.rdb"], "{why}");
    assert!(world.machine.disk.contents(Path::new(DATA_FILE)).is_ok());
    kill(world);
    (end, found)
}

#[test]
fn a_crash_at_each_operation_of_a_save_leaves_the_old_data_or_the_new() {
    let mut world = world();
    until(&world, "the first server does not start", World::is_served);
    kill(&world);
    for command in ["SAVE", "BGSAVE", "SHUTDOWN SAVE"] {
        let (mut old, mut new, mut most) = (0, 0, 0);
        for fate in fates(command == "SAVE") {
            for operations in 0.. {
                let (end, found) = crash(&mut world, command, operations, fate);
                if end == End::Saved {
                    assert_eq!(found, 2, "{command} was acknowledged: {operations}, {fate:?}");
                    most = most.max(operations);
                    break;
                }
                let count = if found == 1 { &mut old } else { &mut new };
                *count += 1;
            }
        }
        println!("{command}: {most} operations; the old data {old} times, the new {new} times");
        // Remove what is left, create, three writes, sync, close, rename, sync the folder.
        assert!(most >= 9 && old > 60 && new > 12, "{command}: {most}, {old} old, {new} new");
    }
}

/// The server and its clients, on a disk that will stop behind so many operations: two connections,
/// and data of which number 1 is saved as `other.rdb`, and number 2 is in memory.
fn with_two_numbers(world: &mut World, operations: u64) -> [SimClient; 2] {
    world.machine = Machine::new(7 + operations, DiskFaults::NONE);
    let conn = start(world);
    change(world, &conn, 1);
    for text in [BIG, "CONFIG SET rdbcompression no", "CONFIG SET dbfilename other.rdb", "SAVE"] {
        ask_ok(world, &conn, text);
    }
    ask_ok(world, &conn, "CONFIG SET dbfilename dump.rdb");
    change(world, &conn, 2);
    world.machine.disk.stop_after(operations);
    [conn, world.net.connect(&server_addr()).expect("it listens")]
}

/// The disk goes on.
fn go_on(world: &World) {
    world.machine.disk.stop_after(u64::MAX);
}

/// Number 1 is there, and SHUTDOWN begins; number 2 follows SHUTDOWN ABORT. The save before the end
/// may be at its rename then, and cannot be stopped: the server must not end behind it because of
/// the second SHUTDOWN.
#[test]
fn a_shutdown_behind_abort_saves_what_came_between() {
    let mut world = world();
    until(&world, "the first server does not start", World::is_served);
    kill(&world);
    for operations in 0.. {
        world.machine = Machine::new(7 + operations, DiskFaults::NONE);
        let conn = start(&mut world);
        let other = world.net.connect(&server_addr()).expect("it listens");
        change(&mut world, &conn, 1);
        for text in [BIG, "CONFIG SET rdbcompression no"] {
            ask_ok(&mut world, &conn, text);
        }
        world.machine.disk.stop_after(operations);
        send(&conn, "SHUTDOWN SAVE");
        let has_stopped = |w: &World| w.machine.disk.has_stopped();
        until(&world, "neither saved nor stopped", |w| has_stopped(w) || is_answered(&conn));
        if !has_stopped(&world) {
            // Remove what is left, create, three writes, sync, close, rename, sync the folder.
            assert!(operations >= 9, "{operations}");
            return kill(&world);
        }
        ask_ok(&mut world, &other, "SHUTDOWN ABORT");
        change(&mut world, &other, 2);
        send(&other, "SHUTDOWN SAVE");
        until(&world, "no second end", |w| shared(w).saves.is_final());
        go_on(&world);
        let group = world.host.as_ref().expect("there is one").group();
        until(&world, "it does not end", |w| w.baton.status(group) != Status::Running);
        let conn = start(&mut world);
        assert_eq!(read(&mut world, &conn, "behind ABORT"), 2, "{operations} operations");
        kill(&world);
    }
}

/// DEBUG RELOAD loads the file which it wrote, also if new saves go to another one by now.
#[test]
fn a_reload_loads_its_own_file() {
    let mut world = world();
    until(&world, "the first server does not start", World::is_served);
    kill(&world);
    for operations in 0.. {
        let [conn, other] = with_two_numbers(&mut world, operations);
        send(&conn, "DEBUG RELOAD");
        until(&world, "it does not stop", |w| w.machine.disk.has_stopped());
        let is_loading = shared(&world).load.is_on();
        if !is_loading {
            ask_ok(&mut world, &other, "CONFIG SET dbfilename other.rdb");
        }
        go_on(&world);
        let why = format!("{operations} operations");
        until(&world, "no reply", |_| is_answered(&conn));
        assert_eq!(read(&mut world, &other, &why), 2, "{why}");
        kill(&world);
        if is_loading {
            assert!(operations >= 9, "{why}");
            return;
        }
    }
}

/// Figures of INFO: of saves, and of backups.
fn saving(world: &mut World, conn: &SimClient) -> [i64; 4] {
    let reply = ask(world, conn, &words("INFO persistence")).expect("it is answered");
    let text = reply.as_str().expect("a text").to_owned();
    let names = ["rdb_bgsave_in_progress", "rdb_current_bgsave_time_sec", "rdb_saves"];
    [names[0], names[1], names[2], "backup_in_progress"].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
    })
}

/// A backup by schedule is no save for clients: theirs wait for it.
#[test]
fn saves_begin_behind_a_backup() {
    let mut world = world();
    until(&world, "the first server does not start", World::is_served);
    kill(&world);
    for command in ["SAVE", "BGSAVE", "BGSAVE SCHEDULE"] {
        let [conn, other] = with_two_numbers(&mut world, 3);
        ask_ok(&mut world, &conn, "CONFIG SET backup-schedule 1s");
        until(&world, "no backup", |w| w.machine.disk.has_stopped());
        assert_eq!(saving(&mut world, &other), [0, -1, 1, 1], "{command}");
        // Writes do not wait for a backup: so a reload, for which they wait, does not either.
        let busy = Value::Error(b"ERR Background save already in progress".to_vec());
        assert_eq!(ask(&mut world, &other, &words("DEBUG RELOAD")), Ok(busy.clone()));
        if command == "SAVE" {
            send(&conn, command);
            until(&world, "it is not wanted", |w| shared(w).saves.state().is_saving());
        } else {
            let scheduled = Value::Simple(b"Background saving scheduled".to_vec());
            assert_eq!(ask(&mut world, &conn, &words(command)), Ok(scheduled));
        }
        assert_eq!(saving(&mut world, &other), [1, -1, 2, 1], "{command}");
        assert_eq!(ask(&mut world, &other, &words("SAVE")), Ok(busy), "{command}");
        let schedule = [b"CONFIG".to_vec(), b"SET".to_vec(), b"backup-schedule".to_vec(), vec![]];
        assert_eq!(ask(&mut world, &other, &schedule), Ok(Value::ok()));
        go_on(&world);
        if command == "SAVE" {
            until(&world, "no reply", |_| is_answered(&conn));
        }
        until(&world, "it is not saved", |w| !shared(w).saves.state().is_saving());
        assert_eq!(saving(&mut world, &other), [0, -1, 2, 0], "{command}");
        assert_eq!(shared(&world).saves.state().backups.made, 1, "{command}");
        kill(&world);
        let conn = start(&mut world);
        assert_eq!(read(&mut world, &conn, command), 2);
        kill(&world);
    }
}
