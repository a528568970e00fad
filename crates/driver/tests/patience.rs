//! Reads that are delayed so that bytes gather: no bytes are lost, and no other connection waits.

mod common;

use common::{Calm, Client, Happened, Server, World, noise};
use driver::patience::{EAGER_READS, WAIT_NS};
use driver::{CloseReason, ConnId, Driver};

on_every_world!(what_gathers_comes_whole_and_in_order);

/// Small writes without an end, until reads have waited.
fn what_gathers_comes_whole_and_in_order<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let (mut written, mut got) = (0, Vec::new());
    let bytes = noise(3, 16 << 20);
    while server.driver.stats().receives_held < 24 && written + 1000 < bytes.len() {
        written += client.write(&bytes[written..written + 100]);
        for event in server.turn() {
            match event {
                Happened::Data(from, bytes) if from == conn => got.extend(bytes),
                other => panic!("{other:?}"),
            }
        }
    }
    got.extend(server.receive(conn, written - got.len()));
    assert!(got == bytes[..written]);
    server.rests();
}

/// A connection whose next read waits, on a network whose time goes on only while everybody sleeps.
fn waiting() -> (Server<Calm>, driver::sim::SimClient, ConnId) {
    let mut server = Server::<Calm>::new();
    let (mut client, conn) = server.connect();
    for i in 0..2 * u32::from(EAGER_READS) {
        client.put(&i.to_le_bytes());
        server.expect(&Happened::Data(conn, i.to_le_bytes().to_vec()));
    }
    assert_eq!(server.driver.stats().receives_held, 1);
    (server, client, conn)
}

#[test]
fn a_read_waits_for_so_long_and_brings_all_that_came() {
    let (mut server, mut client, conn) = waiting();
    let since = server.driver.now();
    client.put(b"ab");
    server.driver.wait(Some(since.plus(WAIT_NS / 2)));
    assert!(server.driver.next().is_none());
    client.put(b"cd");
    server.expect(&Happened::Data(conn, b"abcd".to_vec()));
    assert_eq!(server.driver.now().since(since), WAIT_NS);
}

#[test]
fn others_are_heard_meanwhile() {
    let (mut server, mut client, conn) = waiting();
    let since = server.driver.now();
    client.put(b"ab");
    let (mut other, beside) = server.connect();
    other.put(b"x");
    assert_eq!(server.turn(), [Happened::Data(beside, b"x".to_vec())]);
    assert!(server.driver.now().since(since) < WAIT_NS, "at once");
    server.expect(&Happened::Data(conn, b"ab".to_vec()));
}

#[test]
fn an_end_comes_behind_what_has_gathered() {
    let (mut server, mut client, conn) = waiting();
    client.put(b"ab");
    client.shutdown_write();
    server.expect(&Happened::Data(conn, b"ab".to_vec()));
    server.expect(&Happened::Closed(conn, CloseReason::Peer));
    server.driver.release(conn);
    server.rests();
}

#[test]
fn a_reset_is_noticed_at_once() {
    let (mut server, client, conn) = waiting();
    let since = server.driver.now();
    client.reset();
    server.expect(&Happened::Closed(conn, CloseReason::Error));
    assert_eq!(server.driver.now(), since);
    server.driver.release(conn);
    // Another connection reuses its place; its reads are not delayed.
    let (mut next, conn) = server.connect();
    next.put(b"x");
    server.expect(&Happened::Data(conn, b"x".to_vec()));
    assert_eq!(server.driver.now(), since);
    server.rests();
}

#[test]
fn a_pause_that_is_longer_holds() {
    let (mut server, mut client, conn) = waiting();
    server.driver.pause(conn);
    client.put(b"ab");
    server.quiet(3);
    server.driver.resume(conn);
    server.expect(&Happened::Data(conn, b"ab".to_vec()));
}
