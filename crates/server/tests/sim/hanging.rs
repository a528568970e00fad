//! Reads with `appendfsync always` on a disk which does not answer: what is not durable is not
//! shown, and nobody waits for it longer than `disk-wait-ms`. Writes wait as long as it takes.

use crate::appending::{S, begin, go_on, hang, is_on_disk, settle, wait};
use crate::sim_world::{Reply, Sim, encode};
use base::DbIndex;

const REFUSED: &str = "MISCONF Errors writing to the AOF file: the disk does not answer";

/// An idle world makes steps of up to 100 ms: of these some seconds.
fn take(sim: &mut Sim, client: usize) -> Option<Reply> {
    settle(sim);
    sim.clients[client].take_reply()
}

fn refused() -> Reply {
    Reply::Error(REFUSED.into())
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

/// A write is under way, and the hang was noticed. In a minute it is over `disk-wait-ms`.
fn begin_hanging() -> Sim {
    let mut sim = begin("always", "");
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "disk-wait-ms", "60000"]), Reply::ok());
    assert_eq!(sim.ask(1, &["SET", "durable", "value"]), Reply::ok());
    assert_eq!(sim.ask(1, &["SET", "key", "old"]), Reply::ok());
    assert_eq!(sim.ask(2, &["GET", "key"]), bulk("old"));
    hang(&sim);
    sim.clients[0].say(&["SET", "key", "new"]);
    settle(&mut sim);
    wait(&mut sim, 10 * S);
    sim
}

#[test]
fn reads_of_what_is_not_durable_are_refused_and_writes_wait() {
    let mut sim = begin_hanging();
    sim.clients[1].say(&["GET", "key"]);
    sim.clients[3].say(&["MULTI"]);
    sim.clients[3].say(&["GET", "key"]);
    sim.clients[3].say(&["EXEC"]);
    assert_eq!(sim.reply(3), Reply::ok());
    assert_eq!(sim.reply(3), Reply::Simple("QUEUED".into()));
    assert_eq!((take(&mut sim, 1), take(&mut sim, 3)), (None, None), "it may yet be written");
    assert_eq!(sim.ask(2, &["GET", "durable"]), bulk("value"), "all others go on");
    wait(&mut sim, 60 * S);
    assert_eq!(take(&mut sim, 1), Some(refused()));
    assert!(matches!(take(&mut sim, 3), Some(Reply::Error(why)) if why.contains(REFUSED)));
    assert_eq!(sim.ask(1, &["GET", "key"]), refused(), "from now on at once");
    assert_eq!(sim.ask(2, &["GET", "durable"]), bulk("value"));
    assert!(matches!(sim.ask(2, &["INFO", "persistence"]), Reply::Bulk(_)));
    assert_eq!(sim.ask(2, &["PING"]), Reply::Simple("PONG".into()), "no write is refused");
    sim.clients[3].say(&["SET", "other", "value"]);
    assert_eq!((take(&mut sim, 0), take(&mut sim, 3)), (None, None), "writes wait");
    assert_eq!(sim.ask(1, &["GET", "other"]), refused());
    wait(&mut sim, 300 * S);
    assert_eq!((take(&mut sim, 0), take(&mut sim, 3)), (None, None), "as long as it takes");
    go_on(&sim);
    assert_eq!((sim.reply(0), sim.reply(3)), (Reply::ok(), Reply::ok()));
    assert_eq!(sim.ask(1, &["GET", "key"]), bulk("new"));
    assert_eq!(sim.ask(2, &["GET", "other"]), bulk("value"));
    sim.end();
}

#[test]
fn a_disk_which_comes_back_in_time_refuses_nobody() {
    let mut sim = begin_hanging();
    sim.clients[1].say(&["GET", "key"]);
    assert_eq!(take(&mut sim, 1), None);
    wait(&mut sim, 20 * S);
    go_on(&sim);
    assert_eq!((sim.reply(0), sim.reply(1)), (Reply::ok(), bulk("new")));
    sim.end();
}

#[test]
fn who_wants_to_wait_does() {
    let mut sim = begin("always", "");
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "disk-wait-ms", "0"]), Reply::ok());
    hang(&sim);
    sim.clients[0].say(&["SET", "key", "new"]);
    settle(&mut sim);
    sim.clients[1].say(&["GET", "key"]);
    settle(&mut sim);
    wait(&mut sim, 300 * S);
    assert_eq!(take(&mut sim, 1), None);
    go_on(&sim);
    assert_eq!((sim.reply(0), sim.reply(1)), (Reply::ok(), bulk("new")));
    sim.end();
}

/// Without the promise nothing waits for the disk; with `everysec` for three seconds.
#[test]
fn other_settings_go_on() {
    for (fsync, rounds) in [("everysec", 2), ("no", 6)] {
        let mut sim = begin(fsync, "");
        hang(&sim);
        for round in 0..rounds {
            let text = round.to_string();
            assert_eq!(sim.ask(0, &["SET", "key", &text]), Reply::ok(), "{fsync}");
            assert_eq!(sim.ask(1, &["GET", "key"]), bulk(&text), "{fsync}");
            wait(&mut sim, S);
        }
        if fsync == "everysec" {
            // What a crash can lose is bounded.
            wait(&mut sim, 3 * S);
            sim.clients[0].say(&["SET", "key", "late"]);
            wait(&mut sim, S);
            assert_eq!(sim.ask(1, &["GET", "key"]), bulk("1"), "reads go on");
            assert_eq!(take(&mut sim, 0), None, "the write waits");
            go_on(&sim);
            assert_eq!(sim.reply(0), Reply::ok());
        }
        go_on(&sim);
        sim.end();
    }
}

/// Behind CONFIG SET appendfsync always no reply shows what is not durable, in the same packet
/// already.
#[test]
fn replies_are_held_from_the_next_command_on() {
    for worker in 0..2 {
        let mut sim = begin("everysec", "");
        hang(&sim);
        let always = encode(&["CONFIG", "SET", "appendfsync", "always"]);
        let packet = [always, encode(&["SET", "key", "new"])].concat();
        let joined = [sim.join(), sim.join()]; // one for each worker
        assert_eq!(joined[worker].write(&packet), packet.len());
        let (mut room, mut got) = ([0; 100], Vec::new());
        let mut read = |got: &mut Vec<u8>| {
            let count = joined[worker].read(&mut room);
            got.extend_from_slice(&room[..count]);
        };
        for _ in 0..40 {
            sim.step();
            read(&mut got);
            assert!(got.len() <= b"+OK\r\n".len(), "SET is answered before it is durable");
        }
        assert!(!is_on_disk(&sim, "new"));
        go_on(&sim);
        while got != b"+OK\r\n+OK\r\n" {
            sim.step();
            read(&mut got);
        }
        assert!(is_on_disk(&sim, "new"));
        // It ends as it began.
        assert_eq!(sim.ask(0, &["CONFIG", "SET", "appendfsync", "no"]), Reply::ok());
        hang(&sim);
        assert_eq!(sim.ask(1, &["SET", "key", "last"]), Reply::ok());
        go_on(&sim);
        drop(joined);
        sim.end();
    }
}

/// A reply that is made in steps shows what was read when they began.
#[test]
fn a_digest_in_steps_waits_for_what_it_shows() {
    let mut sim = begin("always", "");
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "disk-wait-ms", "0"]), Reply::ok());
    hang(&sim);
    sim.clients[0].say(&["SET", "long", &"x".repeat(3 << 20)]);
    sim.run_until(|sim| sim.shared.keyspace.db_len(DbIndex::new(0)) == 1);
    sim.clients[1].say(&["DIGEST", "long"]); // on the short path: the hang was not noticed yet
    for _ in 0..40 {
        sim.step();
        assert_eq!(sim.clients[1].take_reply(), None);
    }
    go_on(&sim);
    assert_eq!(sim.reply(0), Reply::ok());
    assert!(matches!(sim.reply(1), Reply::Bulk(digest) if digest.len() == 16));
    sim.end();
}
