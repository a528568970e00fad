//! The end of a server whose disk is slow or hangs: replies that are held leave when what they show
//! is durable, on every worker, and the end does not wait for ever.

use crate::appending::{CLIENTS, S, begin, go_on, hang, is_on_disk, settle, wait};
use crate::producer::{hello, write_data};
use crate::sim_world::{Client, MS, Reply, Sim};
use driver::sim::{DiskFaults, Ending, SimClient};
use ingest::v2::{Hello, Level, Reader, ServerFrame, SinkKind, write_hello};
use std::path::Path;

/// Each client writes a text of its own.
fn write(sim: &mut Sim) -> Vec<String> {
    let texts: Vec<String> = (0..CLIENTS).map(|client| format!("<text of {client}>")).collect();
    for (client, text) in sim.clients.iter_mut().zip(&texts) {
        client.say(&["SET", text, "is written"]);
    }
    settle(sim);
    texts
}

/// A second, and what a second of turns may be longer, behind the last thing that it waited for.
fn ends_soon(sim: &mut Sim) {
    let until = sim.net.now().plus(2 * S);
    sim.forget_steps();
    sim.run_until(|sim| sim.has_ended() || sim.net.now() >= until);
    assert!(sim.has_ended(), "the server goes on");
}

fn replies(sim: &mut Sim) -> Vec<Option<Reply>> {
    (0..50).for_each(|_| sim.step()); // what is on its way arrives
    sim.clients.iter_mut().map(Client::take_reply).collect()
}

#[test]
fn without_a_hold_it_ends_at_once() {
    for fsync in ["always", "everysec", "no"] {
        let mut sim = begin(fsync, "");
        let texts = write(&mut sim);
        assert_eq!(replies(&mut sim), vec![Some(Reply::ok()); CLIENTS]);
        let before = sim.net.now();
        sim.shared.begin_shutdown();
        ends_soon(&mut sim);
        assert!(sim.net.now().since(before) < S / 2, "{fsync}");
        assert_eq!(sim.shared.journal.given_up(), None);
        sim.net.disk().crash();
        assert!(texts.iter().all(|text| is_on_disk(&sim, text)), "{fsync}");
    }
}

#[test]
fn replies_leave_on_every_worker_when_the_disk_is_slow() {
    for fsync in ["always", "everysec", "no"] {
        let mut sim = begin(fsync, "");
        hang(&sim);
        let texts = write(&mut sim);
        let is_held = fsync == "always";
        let reply = (!is_held).then(Reply::ok);
        assert_eq!(replies(&mut sim), vec![reply; CLIENTS], "{fsync}");
        sim.shared.begin_shutdown();
        wait(&mut sim, 3 * S);
        assert!(!sim.has_ended(), "{fsync}: what it has is not on the disk");
        if is_held {
            assert_eq!(replies(&mut sim), vec![None; CLIENTS], "a crash would undo it");
            assert!(sim.clients.iter().all(|c| c.ending.is_none()), "their replies will come");
        }
        go_on(&sim);
        ends_soon(&mut sim);
        if is_held {
            assert_eq!(replies(&mut sim), vec![Some(Reply::ok()); CLIENTS]);
        }
        assert!(sim.clients.iter().all(|c| c.ending == Some(Ending::Closed)), "in order");
        assert_eq!(sim.shared.journal.given_up(), None, "{fsync}");
        sim.net.disk().crash();
        assert!(texts.iter().all(|text| is_on_disk(&sim, text)), "{fsync}");
    }
}

/// As long as something becomes durable now and then the end waits, however long all of it takes.
#[test]
fn it_ends_when_nothing_becomes_durable_for_a_minute() {
    let mut sim = begin("always", "");
    assert_eq!(sim.ask(0, &["SET", "before", "it"]), Reply::ok()); // then writes are durable ones
    hang(&sim);
    write(&mut sim);
    sim.clients[0].say(&["SET", "another", "behind it"]);
    settle(&mut sim);
    sim.shared.begin_shutdown();
    wait(&mut sim, 50 * S);
    // One write of several. (It may be looked first whether the file is there.)
    let is_answered = (0..5).any(|_| {
        sim.net.disk().stop_after(1);
        wait(&mut sim, S / 10);
        replies(&mut sim).contains(&Some(Reply::ok()))
    });
    assert!(is_answered, "what is durable is answered");
    wait(&mut sim, 50 * S);
    assert!(!sim.has_ended(), "a half is durable, and the other will be");
    wait(&mut sim, 9 * S);
    assert!(!sim.has_ended());
    wait(&mut sim, 3 * S);
    assert!(sim.has_ended(), "nobody knows whether this disk comes back");
    assert!(replies(&mut sim).contains(&None), "what is not durable is not answered");
    assert!(sim.clients.iter().all(|c| c.ending.is_some()));
    let why = sim.shared.journal.given_up().expect("it was");
    assert!(why.contains("bytes of the append-only file could not be written"), "{why}");
}

#[test]
fn it_waits_longer_if_it_is_told_to() {
    let mut sim = begin("everysec", "");
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "shutdown-timeout", "200"]), Reply::ok());
    hang(&sim);
    write(&mut sim);
    sim.shared.begin_shutdown();
    wait(&mut sim, 199 * S);
    assert!(!sim.has_ended());
    wait(&mut sim, 4 * S);
    assert!(sim.has_ended());
    assert!(sim.shared.journal.given_up().is_some());
}

/// QUIT waits for what it has written, but not for ever: a client which is gone would keep its
/// connection.
#[test]
fn quit_waits_for_shutdown_timeout() {
    let mut sim = begin("always", "");
    assert_eq!(sim.ask(2, &["CONFIG", "SET", "shutdown-timeout", "5"]), Reply::ok());
    hang(&sim);
    write(&mut sim);
    sim.clients[0].say(&["QUIT"]);
    wait(&mut sim, 3 * S);
    assert_eq!(sim.clients[0].ending, None);
    go_on(&sim);
    assert_eq!(sim.reply(0), Reply::ok(), "its write");
    assert_eq!(sim.reply(0), Reply::ok(), "its QUIT");
    sim.run_until(|sim| sim.clients[0].ending == Some(Ending::Closed));
    hang(&sim);
    sim.clients[1].say(&["SET", "another", "change"]);
    sim.clients[1].say(&["QUIT"]);
    sim.clients[2].say(&["SET", "a third", "change"]);
    wait(&mut sim, 4 * S + 900 * MS);
    assert_eq!(sim.clients[1].ending, None);
    wait(&mut sim, S);
    assert!(sim.clients[1].ending.is_some(), "a disk which does not answer keeps nobody here");
    assert_eq!(sim.clients[2].ending, None, "who has not left stays");
    go_on(&sim);
    assert_eq!((sim.reply(1), sim.reply(2)), (Reply::ok(), Reply::ok()), "those before the hang");
    assert_eq!(sim.clients[1].take_reply(), None, "nobody was told what was not durable");
    assert_eq!(sim.reply(2), Reply::ok());
}

/// Keys which are due do not make the journal go on behind the end of the commands.
#[test]
fn expiry_does_not_hold_up_the_end() {
    let mut sim = begin("always", "");
    for key in 0..3000 {
        sim.clients[0].say(&["SET", &format!("key:{key}"), "v", "PX", &(500 + key).to_string()]);
    }
    for _ in 0..3000 {
        assert_eq!(sim.reply(0), Reply::ok());
        sim.forget_steps();
    }
    sim.run_for(20 * MS);
    hang(&sim);
    sim.clients[1].say(&["SET", "text", "value"]);
    sim.run_until(|sim| sim.clients[1].has_said_all());
    sim.shared.begin_shutdown();
    sim.run_for(MS);
    let last = sim.shared.keyspace.numbers().last();
    wait(&mut sim, 3 * S);
    assert_eq!(sim.shared.keyspace.numbers().last(), last, "nothing is changed any more");
    go_on(&sim);
    ends_soon(&mut sim);
    assert_eq!(sim.reply(1), Reply::ok());
}

/// The highest number that a producer was told.
fn acked(sim: &mut Sim, conn: &SimClient, reader: &mut Reader, ns: u64) -> u64 {
    let (mut acked, end) = (0, sim.net.now().plus(ns));
    sim.forget_steps();
    while sim.net.now() < end && !sim.has_ended() {
        sim.step();
        let mut room = [0; 512];
        let read = conn.read(&mut room);
        let mut rest = &room[..read];
        while let Some(frame) = reader.next(&mut rest) {
            match frame.expect("the server speaks the protocol") {
                ServerFrame::Ack(ack) => acked = acked.max(ack.id),
                ServerFrame::Error { id, .. } => acked = acked.max(id),
                ServerFrame::Welcome(_) | ServerFrame::Credit(_) => {}
            }
        }
    }
    acked
}

/// A producer is told that its messages are fsynced, too.
#[test]
fn producers_get_their_acknowledgements() {
    let mut sim = begin("everysec", "h:0 protocol=2");
    let (conn, mut reader) = (sim.join_ingest(0), Reader::new());
    let hello = Hello { level: Level::Fsynced, ..hello("p", SinkKind::List, "list") };
    let mut bytes = Vec::new();
    write_hello(&mut bytes, &hello);
    write_data(&mut bytes, 1..=3);
    assert_eq!(conn.write(&bytes), bytes.len());
    assert_eq!(acked(&mut sim, &conn, &mut reader, 3 * S), 3);
    hang(&sim);
    bytes.clear();
    write_data(&mut bytes, 4..=9);
    assert_eq!(conn.write(&bytes), bytes.len());
    assert_eq!(acked(&mut sim, &conn, &mut reader, 2 * S), 0);
    sim.shared.begin_shutdown();
    assert_eq!(acked(&mut sim, &conn, &mut reader, 5 * S), 0, "they are not on the disk");
    assert_eq!(conn.ending(), None);
    go_on(&sim);
    assert_eq!(acked(&mut sim, &conn, &mut reader, S / 2), 9);
}

/// As in Redis: what is in memory is nowhere else until the first base is complete.
#[test]
fn a_server_without_its_first_base_does_not_end() {
    let mut sim = begin("everysec", "");
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "appendonly", "no"]), Reply::ok());
    wait(&mut sim, 2 * S);
    sim.net.disk().set_faults(DiskFaults { capacity_bytes: 0, ..DiskFaults::NONE });
    assert_eq!(sim.ask(0, &["SET", "key", "value"]), Reply::ok());
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "appendonly", "yes"]), Reply::ok());
    wait(&mut sim, S);
    let refused = Reply::Error("ERR Errors trying to SHUTDOWN. Check logs.".into());
    for words in [&["SHUTDOWN"][..], &["SHUTDOWN", "NOSAVE"], &["SHUTDOWN", "NOW"]] {
        assert_eq!(sim.ask(0, words), refused, "{words:?}");
    }
    assert_eq!(sim.ask(0, &["GET", "key"]), Reply::Bulk("value".into()));
    sim.clients[0].say(&["SHUTDOWN", "FORCE"]);
    ends_soon(&mut sim);
}

/// Regression: a file that was removed in the second before the end was not missed.
#[test]
fn the_end_looks_once_more_for_the_file() {
    for removes in [false, true] {
        let mut sim = begin("everysec", "");
        write(&mut sim);
        if removes {
            let segment = Path::new("/data/appendonlydir/appendonly.aof.1.incr.aof");
            assert!(sim.net.disk().contents(segment).is_ok());
            sim.net.disk().install(segment, b"", 0o644).expect("room"); // another one
        }
        sim.shared.begin_shutdown();
        ends_soon(&mut sim);
        let why = sim.shared.journal.given_up();
        assert_eq!(why.is_some_and(|why| why.contains("gone, with all data")), removes);
    }
}
