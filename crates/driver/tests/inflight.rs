//! Operations in flight in the kernel while other things happen: sends of one turn, receives of
//! more connections than there are buffers, connections which are closed meanwhile.

use crate::common::{Client, Happened, RealClient, Server, World, noise, read_some};
use driver::patience::EAGER_READS;
use driver::uring::{BUFFER_BYTES, BUFFERS};
use driver::{ConnId, Driver, PeerAddr, RECV_MAX, Segment};
use std::io::Read;
use std::net::TcpStream;

crate::on_every_world!(
    two_segments_of_one_turn_stay_in_order,
    a_short_send_is_reported_once,
    send_now_keeps_the_order_behind_pending_bytes,
    an_index_is_reused_while_its_receive_is_in_flight,
);

mod many {
    use super::{
        a_connection_with_kept_input_does_not_use_up_the_buffers,
        an_endless_sender_does_not_delay_other_connections,
        more_connections_than_buffers_are_all_received,
        segments_of_one_turn_stay_in_order_while_the_peer_reads,
    };
    crate::on_real_worlds!(
        more_connections_than_buffers_are_all_received,
        a_connection_with_kept_input_does_not_use_up_the_buffers,
        an_endless_sender_does_not_delay_other_connections,
        segments_of_one_turn_stay_in_order_while_the_peer_reads,
    );
}

/// Writes bytes to the arena. The segment is not sent yet.
fn put<W: World>(server: &mut Server<W>, bytes: &[u8]) -> Segment {
    let out = server.driver.io().1;
    let start = out.bytes.len();
    out.bytes.extend_from_slice(bytes);
    let blobs = out.blobs.len();
    Segment { start, end: out.bytes.len(), blob_start: blobs, blob_end: blobs }
}

fn drained<W: World>(server: &mut Server<W>, client: &mut W::C, count: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < count {
        read_some(client, &mut got, 64 << 10);
        for event in server.turn() {
            assert!(matches!(event, Happened::Drained(_)), "{event:?}");
        }
    }
    got
}

/// The first send is short: the second may only be sent after the rest of the first.
fn two_segments_of_one_turn_stay_in_order<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let (mut other, beside) = server.connect();
    for round in 0..6 {
        let (a, b, c) = (noise(round, 6 << 20), noise(round + 100, 3000), noise(round + 200, 70));
        let first = put(&mut server, &a);
        let between = put(&mut server, b"beside");
        let second = put(&mut server, &b);
        let third = put(&mut server, &c);
        for (conn, segment) in [(conn, first), (beside, between), (conn, second), (conn, third)] {
            server.driver.send(conn, segment);
        }
        server.driver.flush_output();
        let expected = [a, b, c].concat();
        assert!(drained(&mut server, &mut client, expected.len()) == expected, "round {round}");
        assert_eq!(drained(&mut server, &mut other, 6), b"beside");
    }
}

/// Either `send` returns the backlog or `next_backlogged` reports it, and the size is right.
fn a_short_send_is_reported_once<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let (_other, small) = server.connect();
    let bytes = noise(1, 8 << 20);
    let large = put(&mut server, &bytes);
    let little = put(&mut server, b"fits");
    let mut told = [server.driver.send(conn, large), server.driver.send(small, little)];
    server.driver.flush_output();
    while let Some((id, waits)) = server.driver.next_backlogged() {
        let at = usize::from(id != conn);
        assert_eq!(std::mem::replace(&mut told[at], waits), 0, "told twice");
    }
    assert_eq!(told, [server.driver.backlog(conn), 0]);
    assert!(told[0] > 0 && told[0] < bytes.len(), "{told:?}");
    assert!(drained(&mut server, &mut client, bytes.len()) == bytes);
    assert_eq!(server.driver.next_backlogged(), None);
}

fn send_now_keeps_the_order_behind_pending_bytes<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let first = put(&mut server, b"first ");
    server.driver.send(conn, first);
    let second = put(&mut server, b"second");
    server.driver.send_now(conn, second);
    // The caller may reuse the bytes.
    server.driver.io().1.bytes[second.start..].fill(b'?');
    server.driver.flush_output();
    assert_eq!(drained(&mut server, &mut client, 12), b"first second");
}

/// A connection is released while its receive is in flight and bytes arrive. Its descriptor and its
/// index are reused by the next connection, which receives only its own bytes.
fn an_index_is_reused_while_its_receive_is_in_flight<W: World>() {
    let mut server = Server::<W>::new();
    let mut before: Option<ConnId> = None;
    for round in 0..60u64 {
        let (mut client, conn) = server.connect();
        if let Some(before) = before {
            assert_eq!(conn.index, before.index);
            assert_ne!(conn.generation, before.generation);
        }
        let mine = noise(round, 500);
        client.put(&mine);
        assert!(server.receive(conn, mine.len()) == mine, "round {round}");
        client.put(b"nobody reads this");
        if round % 3 == 0 {
            server.driver.pause(conn);
            server.driver.resume(conn);
        }
        server.driver.release(conn);
        before = Some(conn);
    }
}

fn more_connections_than_buffers_are_all_received<W: World<C = RealClient>>() {
    let mut server = Server::<W>::new();
    let count = 2 * BUFFERS + 30;
    let mut peers: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for round in 0..3u64 {
        for (i, (client, _)) in peers.iter_mut().enumerate() {
            client.put(&noise(round * 10_000 + i as u64, 300));
        }
        let mut got = vec![Vec::new(); count];
        while got.iter().map(Vec::len).sum::<usize>() < count * 300 {
            for event in server.turn() {
                let Happened::Data(conn, bytes) = event else { panic!("{event:?}") };
                let i = peers.iter().position(|(_, c)| *c == conn).expect("a known connection");
                got[i].extend(bytes);
            }
        }
        for (i, got) in got.iter().enumerate() {
            assert!(*got == noise(round * 10_000 + i as u64, 300), "connection {i}");
        }
    }
}

/// The connection's kept input is delivered first, so its new bytes stay in the driver's buffers.
/// Other connections are received nevertheless.
fn a_connection_with_kept_input_does_not_use_up_the_buffers<W: World<C = RealClient>>() {
    let mut server = Server::<W>::new();
    // Enough connections to fill every buffer.
    let count = 4 * BUFFERS * BUFFER_BYTES / (2 * RECV_MAX);
    let mut stuck: Vec<_> = (0..count).map(|_| server.connect()).collect();
    let mut written = vec![0; count];
    let bytes = noise(5, 4 * RECV_MAX);
    let mut paused = Vec::new();
    for _ in 0..30 {
        for (i, (client, _)) in stuck.iter_mut().enumerate() {
            written[i] += client.write(&bytes[written[i]..]);
        }
        server.turn_with(|driver, conn, start, end| {
            driver.put_back(conn, start, end);
            driver.pause(conn);
            paused.push(conn);
        });
    }
    assert_eq!(paused.len(), count, "each was delivered once");
    let (mut client, conn) = server.connect();
    for round in 0..20 {
        client.put(&noise(round, 200));
        assert!(server.receive(conn, 200) == noise(round, 200));
    }
    // Their bytes are not lost.
    server.driver.resume(stuck[0].1);
    let mut got = server.receive(stuck[0].1, written[0]);
    while written[0] < bytes.len() {
        let n = stuck[0].0.write(&bytes[written[0]..]);
        written[0] += n;
        got.extend(server.receive(stuck[0].1, n));
    }
    assert!(got == bytes);
}

fn an_endless_sender_does_not_delay_other_connections<W: World<C = RealClient>>() {
    let mut server = Server::<W>::new();
    let (mut loud, endless) = server.connect();
    let (mut client, conn) = server.connect();
    let bytes = vec![b'x'; 1 << 20];
    // Fewer reads than the policy needs to delay them: a delay is bounded by time, not by turns.
    for round in 0..u64::from(EAGER_READS) - 1 {
        client.put(&noise(round, 100));
        let mut heard_after = 0;
        let mut got = Vec::new();
        while got.len() < 100 {
            loud.write(&bytes);
            heard_after += 1;
            for event in server.turn() {
                match event {
                    Happened::Data(from, bytes) if from == conn => got.extend(bytes),
                    Happened::Data(from, bytes) => {
                        assert!(from == endless && bytes.len() <= RECV_MAX);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(heard_after <= 5, "{heard_after} turns");
        assert!(got == noise(round, 100));
    }
}

/// After a short first send the reader makes room. A later send would find that room and overtake.
fn segments_of_one_turn_stay_in_order_while_the_peer_reads<W: World<C = RealClient>>() {
    let mut server = Server::<W>::new();
    let PeerAddr::Tcp(addr) = server.addr else { panic!("it is TCP") };
    let mut stream = TcpStream::connect(addr).expect("it listens");
    let conn = loop {
        if let [Happened::Accepted(conn)] = server.turn()[..] {
            break conn;
        }
    };
    let rounds = 60;
    // A large segment, then small ones which would fit into any free room.
    let pieces: Vec<Vec<u8>> =
        (0..40).map(|i| noise(i, if i == 0 { 4 << 20 } else { 20_000 })).collect();
    let expected = pieces.concat();
    let whole = expected.clone();
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; whole.len()];
        for round in 0..rounds {
            stream.read_exact(&mut got).expect("all of it comes");
            assert!(got == whole, "round {round}");
        }
    });
    for _ in 0..rounds {
        let segments: Vec<Segment> = pieces
            .iter()
            .map(|piece| {
                let segment = put(&mut server, piece);
                server.driver.io().1.bytes.push(b'?'); // so that they cannot be joined
                segment
            })
            .collect();
        for segment in segments {
            server.driver.send(conn, segment);
        }
        server.driver.flush_output();
        while server.driver.backlog(conn) > 0 && !reader.is_finished() {
            server.turn();
        }
    }
    reader.join().expect("every byte in its place");
}
