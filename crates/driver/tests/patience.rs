//! Reads which are delayed so that bytes accumulate: no bytes are lost, and other connections do
//! not wait.

use crate::common::{Calm, Client, Happened, Server, World, noise};
use driver::patience::{EAGER_READS, WAIT_NS};
use driver::{CloseReason, ConnId, Driver};

crate::on_every_world!(accumulated_bytes_are_received_in_order);

/// Small writes without end, until reads are delayed.
fn accumulated_bytes_are_received_in_order<W: World>() {
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

/// A connection whose next read is delayed, on a network whose time advances only while all workers
/// sleep.
fn delayed_connection() -> (Server<Calm>, driver::sim::SimClient, ConnId) {
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
fn a_delayed_read_returns_all_accumulated_bytes() {
    let (mut server, mut client, conn) = delayed_connection();
    let since = server.driver.now();
    client.put(b"ab");
    server.driver.wait(Some(since.plus(WAIT_NS / 2)));
    assert!(server.driver.next().is_none());
    client.put(b"cd");
    server.expect(&Happened::Data(conn, b"abcd".to_vec()));
    assert_eq!(server.driver.now().since(since), WAIT_NS);
}

#[test]
fn other_connections_are_received_during_a_delay() {
    let (mut server, mut client, conn) = delayed_connection();
    let since = server.driver.now();
    client.put(b"ab");
    let (mut other, beside) = server.connect();
    other.put(b"x");
    assert_eq!(server.turn(), [Happened::Data(beside, b"x".to_vec())]);
    assert!(server.driver.now().since(since) < WAIT_NS, "at once");
    server.expect(&Happened::Data(conn, b"ab".to_vec()));
}

#[test]
fn the_end_is_reported_after_accumulated_bytes() {
    let (mut server, mut client, conn) = delayed_connection();
    client.put(b"ab");
    client.shutdown_write();
    server.expect(&Happened::Data(conn, b"ab".to_vec()));
    server.expect(&Happened::Closed(conn, CloseReason::Peer));
    server.driver.release(conn);
    server.rests();
}

#[test]
fn a_reset_during_a_delay_is_reported_at_once() {
    let (mut server, client, conn) = delayed_connection();
    let since = server.driver.now();
    client.reset();
    server.expect(&Happened::Closed(conn, CloseReason::Error));
    assert_eq!(server.driver.now(), since);
    server.driver.release(conn);
    // Another connection reuses its index. Its reads are not delayed.
    let (mut next, conn) = server.connect();
    next.put(b"x");
    server.expect(&Happened::Data(conn, b"x".to_vec()));
    assert_eq!(server.driver.now(), since);
    server.rests();
}

#[test]
fn a_pause_longer_than_the_delay_is_kept() {
    let (mut server, mut client, conn) = delayed_connection();
    server.driver.pause(conn);
    client.put(b"ab");
    server.quiet(3);
    server.driver.resume(conn);
    server.expect(&Happened::Data(conn, b"ab".to_vec()));
}
