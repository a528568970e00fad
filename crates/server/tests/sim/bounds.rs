//! Records of changes in memory are bounded: writers wait while the disk does not take them, and
//! everybody else goes on.

use crate::appending::{S, begin, go_on, hang, on_disk, wait};
use crate::sim_world::{Reply, Sim};
use base::sync::atomic::Ordering::Relaxed;
use driver::sim::DiskFaults;

const BOUND: u64 = 1 << 20;
/// Of three writers. The fourth client reads.
const WRITES: usize = 30;
const VALUE_BYTES: usize = 100_000;
const READER: usize = 3;

fn name(write: usize) -> String {
    format!("<write {write:02}>")
}

/// The writers write in a row, without waiting for replies.
fn write(sim: &mut Sim) {
    for at in 0..WRITES {
        let value = char::from(b'a' + (at % 26) as u8).to_string().repeat(VALUE_BYTES);
        sim.clients[at % READER].say(&["SET", &name(at), &value]);
    }
}

fn backlog(sim: &Sim) -> u64 {
    sim.shared.journal.backlog.load(Relaxed)
}

fn delayed(sim: &Sim) -> u64 {
    sim.shared.journal.held.load(Relaxed)
}

#[test]
fn writers_wait_at_the_bound_and_nothing_is_lost() {
    for fsync in ["always", "everysec", "no"] {
        let mut sim = begin(fsync, "");
        assert_eq!(sim.ask(READER, &["SET", "known", "value"]), Reply::ok());
        wait(&mut sim, 2 * S);
        sim.shared.journal.bound_backlog(BOUND as usize);
        hang(&sim);
        write(&mut sim);
        wait(&mut sim, 5 * S);
        let held = backlog(&sim);
        assert!((BOUND..(WRITES * VALUE_BYTES) as u64 - BOUND).contains(&held), "{fsync}: {held}");
        assert_eq!(delayed(&sim), 1, "{fsync}");
        wait(&mut sim, 20 * S);
        assert_eq!(backlog(&sim), held, "{fsync}: nobody writes");
        assert_eq!(sim.ask(READER, &["GET", "known"]), Reply::Bulk("value".into()), "{fsync}");
        if fsync != "always" {
            let Reply::Bulk(info) = sim.ask(READER, &["INFO", "persistence"]) else {
                panic!("a text")
            };
            assert!(info.contains("\naof_delayed_fsync:1\r"), "{info}");
        }
        go_on(&sim);
        for at in 0..WRITES {
            assert_eq!(sim.reply(at % READER), Reply::ok(), "{fsync}");
        }
        assert!(delayed(&sim) >= 1);
        sim.shared.begin_shutdown();
        wait(&mut sim, 5 * S);
        assert!(sim.has_ended());
        sim.net.disk().crash();
        for at in 0..WRITES {
            assert_eq!(on_disk(&sim, &name(at)), 1, "{fsync}: {}", name(at));
        }
    }
}

/// Below the bound nobody waits, and nothing is counted.
#[test]
fn below_the_bound_nobody_waits() {
    let mut sim = begin("everysec", "");
    hang(&sim);
    write(&mut sim);
    for at in 0..WRITES {
        assert_eq!(sim.reply(at % READER), Reply::ok());
    }
    assert!(backlog(&sim) > BOUND);
    assert_eq!(delayed(&sim), 0);
}

/// Whoever gives the file up need not wait for it.
#[test]
fn without_the_file_writers_go_on() {
    let mut sim = begin("everysec", "");
    sim.shared.journal.bound_backlog(BOUND as usize);
    hang(&sim);
    write(&mut sim);
    wait(&mut sim, 5 * S);
    assert_eq!(delayed(&sim), 1);
    sim.net.disk().set_faults(DiskFaults { write_error_one_in: 1, ..DiskFaults::NONE });
    go_on(&sim);
    wait(&mut sim, S);
    assert_eq!(sim.ask(READER, &["CONFIG", "SET", "appendonly", "no"]), Reply::ok());
    wait(&mut sim, 3 * S);
    assert_eq!(sim.ask(READER, &["SET", "key", "value"]), Reply::ok());
}
