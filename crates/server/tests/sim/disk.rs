//! What a client sees when the disk of the append-only file fails: the table of
//! `docs/durability.md`, on a simulated disk. (A full disk, a read-only folder and one that is gone
//! are tested with real ones in `tests/tests/crash/disk.rs`, too.)

use crate::sim_world::{BREATH, PATIENCE, Reply, Sim};
use crate::waitaof::{begin, is_on_disk, synced, waited};
use driver::sim::DiskFaults;
use std::time::Instant;

const S: u64 = 1_000_000_000;
/// So many writes are in memory before the disk fails.
const WRITES: usize = 5;

/// A disk on which these operations always fail.
fn failing(what: &str) -> DiskFaults {
    match what {
        "write" => DiskFaults { write_error_one_in: 1, ..DiskFaults::NONE },
        "sync" => DiskFaults { sync_error_one_in: 1, ..DiskFaults::NONE },
        "room" => DiskFaults { capacity_bytes: 0, ..DiskFaults::NONE },
        other => panic!("{other}"),
    }
}

/// Begins with two clients and a key which is on the disk.
fn begin_two(seed: u64, fsync: &str) -> Sim {
    let mut sim = begin(seed, fsync);
    sim.connect(1);
    assert_eq!(sim.ask(0, &["SET", "durable", "<durable>"]), Reply::ok());
    assert_eq!(waited(&mut sim, "0"), synced(true));
    assert!(is_on_disk(&sim, "<durable>"));
    sim
}

fn info(sim: &mut Sim, client: usize, field: &str) -> String {
    let Reply::Bulk(text) = sim.ask(client, &["INFO", "persistence"]) else { panic!("a text") };
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{field} in {text}")).to_owned()
}

/// Steps until it holds. What waits for threads has real time as well.
fn until(sim: &mut Sim, what: &str, mut holds: impl FnMut(&mut Sim) -> bool) {
    let began = Instant::now();
    while !holds(sim) {
        assert!(began.elapsed() < PATIENCE, "{what}");
        sim.forget_steps();
        sim.run_for(S / 100);
        std::thread::sleep(BREATH);
    }
}

fn text(error: Reply) -> String {
    let Reply::Error(text) = error else { panic!("no error: {error:?}") };
    text
}

/// Writes are refused with the reason, reads of what is durable go on, and all of it ends by itself
/// when the disk works. Whatever was acknowledged is there behind a crash of the machine.
#[test]
fn a_disk_that_fails_refuses_writes_and_loses_nothing() {
    for (seed, what) in ["write", "sync", "room"].into_iter().enumerate() {
        for fsync in ["always", "everysec"] {
            let mut sim = begin_two(seed as u64, fsync);
            sim.net.disk().set_faults(failing(what));
            // These are in memory when the disk fails; with `always` their replies wait.
            // (A small one would find room in a block of the file.)
            let of = |n: usize| format!("<{what}:{fsync}:{n}>{}", "x".repeat(5_000));
            for n in 0..WRITES {
                sim.clients[0].say(&["SET", &format!("key:{n}"), &of(n)]);
            }
            until(&mut sim, "the disk fails", |sim| info(sim, 1, "aof_last_write_status") == "err");
            let refused = text(sim.ask(1, &["SET", "other", "1"]));
            let reason =
                if what == "room" { "No space left on device" } else { "Input/output error" };
            let misconf = "MISCONF Errors writing to the AOF file: ";
            assert!(refused.starts_with(misconf) && refused.contains(reason), "{what}: {refused}");
            let durable = Reply::Bulk("<durable>".into());
            assert_eq!(sim.ask(1, &["GET", "durable"]), durable, "{what} {fsync}");
            sim.forget_steps();
            sim.run_for(3 * S);
            sim.forget_steps();
            let read = sim.ask(1, &["GET", "key:0"]);
            match fsync {
                "always" => {
                    assert_eq!(sim.clients[0].take_reply(), None, "{what}: they wait");
                    assert_eq!(text(read), refused, "{what}: it is not on the disk");
                }
                _ => assert_eq!(read, Reply::Bulk(of(0)), "{what}"),
            }
            // The disk works again.
            sim.net.disk().set_faults(DiskFaults::NONE);
            // (The last of them may have come behind the failure.)
            let mut replies = Vec::new();
            for _ in 0..WRITES {
                replies.push(sim.reply(0));
                sim.forget_steps();
            }
            let kept = replies.iter().take_while(|reply| **reply == Reply::ok()).count();
            let is_refused = |reply: &Reply| *reply == Reply::Error(refused.clone());
            assert!(kept > 0 && replies[kept..].iter().all(is_refused), "{what}: {replies:?}");
            until(&mut sim, "writes are served", |sim| {
                sim.ask(1, &["SET", "other", "2"]) == Reply::ok()
            });
            assert_eq!(info(&mut sim, 1, "aof_last_write_status"), "ok", "{what} {fsync}");
            assert_eq!(waited(&mut sim, "0"), synced(true));
            sim.net.disk().crash();
            assert!((0..kept).all(|n| is_on_disk(&sim, &of(n))), "{what} {fsync}");
        }
    }
}

/// Short writes, slow operations and a disk that hangs refuse nobody: with `always` a write waits,
/// with `everysec` it is answered, and reads of other keys go on.
#[test]
fn a_disk_that_is_slow_refuses_nobody() {
    let short = DiskFaults { short_write_one_in: 1, ..DiskFaults::NONE };
    let slow = DiskFaults { slow_one_in: 1, slow_ns_max: 20 * S, ..DiskFaults::NONE };
    for (seed, (what, faults)) in [("short", short), ("slow", slow)].into_iter().enumerate() {
        for fsync in ["always", "everysec"] {
            let mut sim = begin_two(40 + seed as u64, fsync);
            sim.net.disk().set_faults(faults);
            let value = format!("<{what}:{fsync}>{}", "x".repeat(9_000));
            sim.clients[0].say(&["SET", "key", &value]);
            assert_eq!(sim.ask(1, &["GET", "durable"]), Reply::Bulk("<durable>".into()));
            if fsync == "everysec" {
                assert_eq!(sim.reply(0), Reply::ok(), "{what}");
            }
            assert_eq!(info(&mut sim, 1, "aof_last_write_status"), "ok", "{what} {fsync}");
            if fsync == "always" {
                let mut reply = None;
                until(&mut sim, "it is answered", |sim| {
                    reply = sim.clients[0].take_reply();
                    reply.is_some()
                });
                assert_eq!(reply, Some(Reply::ok()), "{what}");
            } else {
                assert_eq!(waited(&mut sim, "0"), synced(true), "{what}");
            }
            sim.net.disk().crash();
            assert!(is_on_disk(&sim, &value), "{what} {fsync}");
        }
    }
}

/// A base that finds no room is a failed rewrite, and nothing else.
#[test]
fn a_base_that_cannot_be_written_leaves_the_old_files() {
    let mut sim = begin_two(80, "everysec");
    let value = "y".repeat(400_000);
    assert_eq!(sim.ask(0, &["SET", "large", &value]), Reply::ok());
    assert_eq!(waited(&mut sim, "0"), synced(true));
    sim.forget_steps();
    // Room for segments and manifests, and not for the base.
    let used = sim.net.disk().used_bytes();
    let capacity_bytes = used + 100_000;
    sim.net.disk().set_faults(DiskFaults { capacity_bytes, ..DiskFaults::NONE });
    let started = "Background append only file rewriting started";
    assert_eq!(sim.ask(0, &["BGREWRITEAOF"]), Reply::Simple(started.into()));
    until(&mut sim, "the rewrite has failed", |sim| {
        info(sim, 1, "aof_last_bgrewrite_status") == "err"
    });
    // By the client that waits: WAITAOF is about its own writes.
    assert_eq!(sim.ask(0, &["SET", "behind", "<behind>"]), Reply::ok());
    assert_eq!(info(&mut sim, 1, "aof_last_write_status"), "ok");
    assert_eq!(waited(&mut sim, "0"), synced(true));
    sim.net.disk().crash();
    assert!(is_on_disk(&sim, "<behind>") && is_on_disk(&sim, &value), "all is in the old files");
}

/// Regression: a first base that failed was written again every five seconds.
#[test]
fn first_bases_that_fail_have_a_growing_pause() {
    let mut sim = begin_two(70, "everysec");
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "appendonly", "no"]), Reply::ok());
    sim.run_for(S);
    sim.net.disk().set_faults(failing("room"));
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "appendonly", "yes"]), Reply::ok());
    let failures = |sim: &mut Sim| -> u64 {
        info(sim, 0, "aof_rewrites_consecutive_failures").parse().expect("a number")
    };
    until(&mut sim, "the first fails", |sim| failures(sim) > 0);
    for _ in 0..300 {
        sim.forget_steps();
        sim.run_for(S);
        std::thread::sleep(BREATH); // the thread that writes the base is real
    }
    let count = failures(&mut sim);
    assert!(count <= 7, "{count}: at 0, 5, 15, 35, 75, 155 s");
    sim.net.disk().set_faults(DiskFaults::NONE);
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "appendonly", "no"]), Reply::ok());
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "appendonly", "yes"]), Reply::ok());
    let complete = |sim: &mut Sim| waited(sim, "1000") == synced(true);
    until(&mut sim, "it begins at once when it is asked for", complete);
}
