//! What happens at each operation on files of an append-only file: the first start, a rewrite, a
//! restart, CONFIG SET appendonly. The machine crashes there, and each kind of change that is not
//! durable is kept or lost: the next server loads everything that was answered, and nothing twice.
#![cfg(sim)]

use base::sync::atomic::Ordering::Relaxed;
use base::sync::baton::{Rates, Status};
use client::Value;
use driver::sim::{DiskFaults, Fate, Faults, SimClient, Survival};
use sim::clients::{number, words};
use sim::host::{Host, server_addr};
use sim::journal::{Fsync, Journal};
use sim::judge::{ask, shared};
use sim::machine::Machine;
use sim::plan::{Counts, MS, Plan, Saves};
use sim::world::World;

/// What takes longer than this is stuck, simulated time.
const LONG_NS: u64 = 20_000 * MS;
const JOURNAL: Journal = Journal {
    fsync: Fsync::Always,
    rewrite_bytes: 64 << 20,
    timestamps: true,
    switches: false,
    history: "0",
};

/// A world in which nothing goes wrong by itself.
fn world() -> World {
    let mut plan = Plan::draw(1, 0);
    plan.faults = Faults::NONE;
    plan.disk = DiskFaults { in_order: true, ..DiskFaults::NONE };
    plan.rates = Rates::CALM;
    plan.counts = Counts::default();
    plan.workers = 2;
    plan.saves = Some(Saves { points: false, flushes: false, shutdowns: false, key_delay_us: 0 });
    plan.journal = Some(JOURNAL);
    World::new(plan)
}

/// Names are lost and contents kept, the other way round, and drawn. (A world has room for so many
/// servers, because those which were killed are never freed.)
fn fates() -> [Fate; 3] {
    let fate = |names, contents, done| Fate {
        names: Some(names),
        contents: Some(contents),
        in_flight: Some(done),
    };
    let (all, none) = (Survival::All, Survival::None);
    let mixed = Fate { names: Some(Survival::Mixed), ..Fate::default() };
    [fate(none, all, false), fate(all, none, true), mixed]
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

/// Begins the next server.
fn begin(world: &mut World) {
    world.epoch += 1;
    let machine = (&world.net, &world.machine);
    world.host = Some(Host::start(&world.baton, machine, (&world.plan, 0), world.epoch));
}

/// Starts the next server, and connects to it when it has loaded.
fn start(world: &mut World, why: &str) -> SimClient {
    begin(world);
    until(world, why, World::is_served);
    world.net.connect(&server_addr()).expect("it listens")
}

fn kill(world: &World) {
    let group = world.host.as_ref().expect("there is one").group();
    if world.baton.status(group) == Status::Running {
        world.baton.kill(group);
    }
    until(world, "it does not die", |w| w.baton.status(group) != Status::Running);
}

/// Counts up, and waits for the replies.
fn count(world: &mut World, conn: &SimClient, times: i64) {
    for _ in 0..times {
        let reply = ask(world, conn, &words("INCR n")).expect("it is answered");
        assert!(!reply.is_error(), "{reply:?}");
    }
}

fn send(conn: &SimClient, command: &str) {
    let parts: Vec<Vec<u8>> = words(command);
    let bytes = client::encode(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert_eq!(conn.write(&bytes), bytes.len());
}

/// What is under way when the disk stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    First,
    Rewrite,
    Restart,
    SwitchOn,
}

/// No rewrite is under way, and changes are appended.
fn is_appending(world: &World) -> bool {
    shared(world).is_ok_and(|shared| {
        let journal = &shared.journal;
        let is_busy = journal.is_rewriting.load(Relaxed) || journal.is_scheduled.load(Relaxed);
        journal.is_on() && !is_busy
    })
}

/// A story, and the bound of the history which is kept meanwhile.
type Told = (Story, &'static str);

/// The machine crashes behind so many operations of a story. True if the story has ended before.
fn crash(world: &mut World, (story, history): Told, operations: u64, fate: Fate) -> bool {
    let disk = DiskFaults { in_order: true, ..DiskFaults::NONE };
    world.machine = Machine::new(7 + operations, disk);
    let journal = Journal { history, ..JOURNAL };
    world.plan.journal = (story != Story::SwitchOn).then_some(journal);
    let why = format!("{story:?}, {history}, {operations} operations, {fate:?}");
    let stop = |w: &World| w.machine.disk.stop_after(operations);
    let stopped = |w: &World| w.machine.disk.has_stopped();
    let (mut least, mut most) = (0, 0);
    if story != Story::First {
        let conn = start(world, &why);
        count(world, &conn, 3);
        (least, most) = (3, 3);
        match story {
            Story::Restart => kill(world),
            Story::Rewrite | Story::SwitchOn => {
                let is_rewrite = story == Story::Rewrite;
                let command = if is_rewrite { "BGREWRITEAOF" } else { "CONFIG SET appendonly yes" };
                let other = world.net.connect(&server_addr()).expect("it listens");
                stop(world);
                send(&conn, command);
                for _ in 0..2 {
                    send(&other, "INCR n");
                }
                most = 5;
                let mut replies = 0;
                until(world, &why, |w| {
                    stopped(w) || is_appending(w) && conn.read(&mut [0; 64]) > 0
                });
                let mut room = [0; 64];
                let got = other.read(&mut room);
                replies += String::from_utf8_lossy(&room[..got]).matches(':').count() as i64;
                if is_rewrite {
                    least += replies;
                } else if stopped(world) {
                    least = 0; // nothing was promised yet
                }
            }
            Story::First => {}
        }
    }
    if matches!(story, Story::First | Story::Restart) {
        stop(world);
        begin(world);
        until(world, &why, |w| stopped(w) || w.is_served());
    }
    let has_ended = !stopped(world);
    world.machine.disk.crash_with(fate);
    kill(world);
    kept(world, &why);
    world.plan.journal = Some(journal);
    let conn = start(world, &why);
    let found = ask(world, &conn, &words("GET n")).expect("it is answered");
    let found = if found == Value::Null { 0 } else { number(&found).expect("a number") };
    assert!((least..=most).contains(&found), "{found} of {least} to {most}: {why}");
    if operations.is_multiple_of(4) {
        go_on(world, &conn, (found, history == "1gb"), &why);
    }
    kill(world);
    has_ended
}

/// The generations of kept history, whose files are all there.
fn kept(world: &World, why: &str) -> usize {
    world.machine.check_history().unwrap_or_else(|e| panic!("{e}: {why}"))
}

/// What the crash has left is not in the way of what follows.
fn go_on(world: &mut World, conn: &SimClient, (found, keeps): (i64, bool), why: &str) {
    count(world, conn, 2);
    ask(world, conn, &words("BGREWRITEAOF")).expect("it is answered");
    until(world, why, is_appending);
    assert_eq!(kept(world, why) > 0, keeps, "{why}");
    count(world, conn, 1);
    kill(world);
    world.machine.disk.crash();
    let conn = start(world, why);
    let after = ask(world, &conn, &words("GET n")).expect("it is answered");
    assert_eq!(number(&after), Some(found + 3), "{why}");
}

#[test]
fn a_crash_at_each_operation_loses_nothing_that_was_answered() {
    let mut world = world();
    until(&world, "the first server does not start", World::is_served);
    kill(&world);
    for (story, history, least) in [
        (Story::First, "0", 20),
        (Story::Rewrite, "0", 15),
        (Story::Rewrite, "1gb", 40),
        (Story::Rewrite, "1", 50),
        (Story::Restart, "0", 12),
        (Story::SwitchOn, "0", 20),
    ] {
        // With history, what is lost is drawn.
        let from = if history == "0" { 0 } else { fates().len() - 1 };
        let mut most = 0;
        for fate in &fates()[from..] {
            for operations in 0.. {
                if crash(&mut world, (story, history), operations, *fate) {
                    most = most.max(operations);
                    break;
                }
            }
        }
        println!("{story:?}, {history}: {most} operations");
        assert!(most >= least, "{story:?}, {history}: {most} operations");
    }
}

/// Ends the server in order. Returns how that went.
fn end(world: &World) -> Status {
    let host = world.host.as_ref().expect("there is one");
    assert!(host.begin_end());
    let until = world.now() + 10 * LONG_NS;
    while host.status(&world.baton) == Status::Running {
        assert!(world.now() < until, "it does not end");
        world.net.wait(world.net.moment(), Some(base::MonoNs(world.now() + MS)));
    }
    host.status(&world.baton)
}

/// A server which could not write what it has says so when it ends, and with its status.
#[test]
fn an_end_without_the_disk_is_no_success() {
    let mut world = world();
    until(&world, "the first server does not start", World::is_served);
    assert_eq!(end(&world), Status::Exited(0), "there is nothing to write");
    for (appendfsync, hangs) in [
        (Fsync::Always, false),
        (Fsync::Always, true),
        (Fsync::EverySecond, false),
        (Fsync::EverySecond, true),
        (Fsync::No, true),
    ] {
        world.plan.journal = Some(Journal { fsync: appendfsync, ..JOURNAL });
        let conn = start(&mut world, "the next one");
        count(&mut world, &conn, 1);
        if hangs {
            world.machine.disk.stop_after(0);
        }
        send(&conn, "INCR n");
        let soon = world.now() + 50 * MS;
        until(&world, "time passes", |world| world.now() >= soon);
        let code = i32::from(hangs);
        assert_eq!(end(&world), Status::Exited(code), "{appendfsync:?}, hangs: {hangs}");
        let why = world.host.as_ref().expect("it was there").shared().err().unwrap_or_default();
        assert_eq!(why.contains("of the append-only file could not be written"), hangs, "{why}");
        world.machine.disk.stop_after(u64::MAX);
        world.machine.disk.crash();
    }
}
