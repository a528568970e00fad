//! Bulks: the caller receives a long run of bytes into memory of its own.

use crate::common::{Calm, Client, Happened, Server, World, noise};
use base::prng::Prng;
use driver::{BULK_LOW_WATER, BULKS_MAX, CloseReason, ConnId, Driver, RECV_MAX};

crate::on_every_world!(
    a_bulk_is_received_whole_and_nothing_behind_it,
    few_bytes_are_reported_when_the_sender_is_slow,
    bytes_are_reported_at_once_after_a_bulk,
    the_end_of_a_peer_within_a_bulk_is_reported,
    a_paused_bulk_waits,
    a_bulk_is_declined_while_input_is_kept,
);

/// Page and a half: shorter than what one receive brings, and no divisor of it.
const ROOM: usize = RECV_MAX / 2 * 3;

/// Receives what has arrived, into rooms of at most `ROOM` bytes, at most what is left of `len`.
fn receive<W: World>(server: &mut Server<W>, conn: ConnId, got: &mut Vec<u8>, len: usize) {
    while got.len() < len {
        let mut room = Vec::with_capacity(ROOM.min(len - got.len()));
        let capacity = room.capacity();
        let received = server.driver.receive(conn, &mut room);
        assert_eq!((received, capacity), (room.len(), room.capacity()), "it is not moved");
        got.extend_from_slice(&room);
        if received < capacity {
            return;
        }
    }
}

/// A connection which has sent the beginning of its request, and expects a bulk of `len` bytes.
fn begun<W: World>(len: usize) -> (Server<W>, W::C, ConnId) {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    assert_eq!(client.write(b"$"), 1);
    assert_eq!(server.receive(conn, 1), b"$");
    assert!(server.driver.begin_bulk(conn, len));
    (server, client, conn)
}

fn a_bulk_is_received_whole_and_nothing_behind_it<W: World>() {
    let mut server = Server::<W>::new();
    let mut prng = Prng::new(3);
    let (mut client, conn) = server.connect();
    for round in 0..3 {
        let len = (1 << 20) + prng.below(100_000) as usize;
        let (head, tail) = (noise(round, 20), noise(round + 9, 100_000));
        let bulk = noise(round + 5, len);
        let sent = [&head[..], &bulk, &tail].concat();
        let (mut written, mut begins, mut got, mut behind) = (0, false, Vec::new(), Vec::new());
        while behind.len() < tail.len() {
            // Everything follows the head at once: a part of it arrives with the head.
            written += client.write(&sent[written..]);
            for event in server.turn() {
                match event {
                    Happened::Data(_, bytes) if got.len() == head.len() + len => {
                        behind.extend(bytes);
                    }
                    Happened::Data(_, bytes) => got.extend(bytes),
                    Happened::Bulk(_, most) => {
                        assert!(begins && most >= RECV_MAX);
                        receive(&mut server, conn, &mut got, head.len() + len);
                    }
                    other => panic!("{other:?}"),
                }
            }
            if !begins && got.len() > head.len() {
                begins = server.driver.begin_bulk(conn, head.len() + len - got.len());
                assert!(begins);
            }
        }
        assert!(got == [&head[..], &bulk].concat() && behind == tail, "round {round}");
    }
}

fn few_bytes_are_reported_when_the_sender_is_slow<W: World>() {
    let (mut server, mut client, conn) = begun::<W>(1 << 20);
    let bytes = noise(1, 1000);
    client.put(&bytes);
    server.quiet(20);
    server.driver.hasten_bulk(conn);
    let mut got = Vec::new();
    while got.len() < 1000 {
        for event in server.turn() {
            assert!(matches!(event, Happened::Bulk(from, _) if from == conn), "{event:?}");
            receive(&mut server, conn, &mut got, 1 << 20);
        }
    }
    // From now on every byte is reported.
    client.put(&bytes[..1]);
    while got.len() < 1001 {
        server.turn().iter().for_each(|_| receive(&mut server, conn, &mut got, 1 << 20));
    }
    assert!(got == [&bytes[..], &bytes[..1]].concat());
    server.rests();
}

fn bytes_are_reported_at_once_after_a_bulk<W: World>() {
    for slow in [false, true] {
        let (mut server, mut client, conn) = begun::<W>(3000);
        if slow {
            server.driver.hasten_bulk(conn);
        }
        client.put(&noise(2, 3000));
        let mut got = Vec::new();
        while got.len() < 3000 {
            server.turn().iter().for_each(|_| receive(&mut server, conn, &mut got, 3000));
        }
        assert_eq!(server.driver.receive(conn, &mut Vec::with_capacity(1)), 0, "it is over");
        for byte in [b'a', b'b'] {
            client.put(&[byte]);
            assert_eq!(server.receive(conn, 1), [byte]);
        }
        server.rests();
    }
}

fn the_end_of_a_peer_within_a_bulk_is_reported<W: World>() {
    let (mut server, mut client, conn) = begun::<W>(4 << 20);
    client.put(&noise(4, 100));
    server.quiet(5);
    drop(client);
    let mut got = Vec::new();
    let closed = loop {
        let happened = server.turn();
        for event in &happened {
            if matches!(event, Happened::Bulk(..)) {
                receive(&mut server, conn, &mut got, 4 << 20);
            }
        }
        if let Some(Happened::Closed(_, why)) = happened.last() {
            break *why;
        }
        server.world.breathe();
    };
    assert!(closed == CloseReason::Peer && got == noise(4, 100));
    assert_eq!(server.driver.receive(conn, &mut Vec::with_capacity(1)), 0, "it is gone");
    server.driver.release(conn);
    server.rests();
}

fn a_paused_bulk_waits<W: World>() {
    let (mut server, mut client, conn) = begun::<W>(100);
    server.driver.pause(conn);
    client.put(&[7; 100]);
    server.quiet(10);
    server.driver.resume(conn);
    let mut got = Vec::new();
    while got.len() < 100 {
        server.turn().iter().for_each(|_| receive(&mut server, conn, &mut got, 100));
    }
    assert_eq!(got, [7; 100]);
}

fn a_bulk_is_declined_while_input_is_kept<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    client.put(b"abc");
    let mut got = 0;
    while got < 3 {
        server.turn_with(|driver, conn, start, end| {
            got = end - start;
            driver.put_back(conn, start, end);
        });
    }
    assert!(!server.driver.begin_bulk(conn, 10), "bytes that were put back come first");
    let (_client, other) = server.connect();
    server.driver.pause(other);
    assert!(!server.driver.begin_bulk(other, 10), "nothing is received from it");
    assert!(!server.driver.begin_bulk(ConnId { index: 900, generation: 1 }, 10), "nobody");
}

/// What is received in one turn is bounded, however many connections have bulks.
#[test]
fn ready_bulks_share_a_turn() {
    let mut server = Server::<Calm>::new();
    let mut peers: Vec<_> = (0..80).map(|_| server.connect()).collect();
    for (client, conn) in &mut peers {
        assert_eq!(client.write(b"$"), 1);
        assert_eq!(server.receive(*conn, 1), b"$");
        assert!(server.driver.begin_bulk(*conn, 2 * BULK_LOW_WATER));
    }
    for (client, _) in &mut peers {
        client.write(&vec![1; 2 * BULK_LOW_WATER]); // as many as the network takes
    }
    let mut at_once = 0;
    for _ in 0..100 {
        let happened = server.turn();
        at_once = at_once.max(happened.len());
        for event in &happened {
            let Happened::Bulk(_, most) = event else { panic!("{event:?}") };
            assert_eq!(*most, RECV_MAX.max(BULKS_MAX / happened.len()));
        }
    }
    assert_eq!(at_once, peers.len());
}
