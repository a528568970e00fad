//! Byte streams are exact and in order, however they are split, on real sockets and on the
//! simulated network.

use crate::common::{Calm, Client, Happened, Server, World, noise, read_some, send};
use base::Blob;
use base::out::BlobPart;
use base::prng::Prng;
use driver::sim::Ending;
use driver::{CloseReason, Driver, PUT_BACK_MAX, RECV_MAX, Segment};

crate::on_every_world!(
    echo_of_random_pieces,
    a_slow_reader_gets_twenty_megabytes,
    shared_values_keep_their_place_between_bytes,
    many_shared_values_are_sent_in_one_segment,
    single_bytes_are_received_in_order,
    half_close_is_answered,
    a_half_closed_connection_receives_its_backlog,
    reset_is_reported_once,
    kept_bytes_are_delivered_first,
    kept_bytes_are_redelivered_without_new_ones,
    redelivery_gives_one_piece_per_turn,
    pause_stops_events_and_resume_continues,
    the_disconnect_of_a_paused_peer_is_reported,
    a_paused_half_closed_peer_stays_connected,
    close_after_flush_sends_everything,
    release_closes_at_once,
    keeping_more_than_the_limit_closes_the_connection,
    one_turn_receives_a_bounded_amount,
    nothing_is_sent_to_a_reused_index,
);

fn echo_of_random_pieces<W: World>() {
    let mut server = Server::<W>::new();
    let mut prng = Prng::new(5);
    let mut peers: Vec<_> = (0..7).map(|i| (server.connect(), noise(i, 200_000))).collect();
    let mut written = vec![0; peers.len()];
    let mut echoed = vec![Vec::new(); peers.len()];
    while echoed.iter().map(Vec::len).sum::<usize>() < peers.len() * 200_000 {
        for (i, ((client, _), bytes)) in peers.iter_mut().enumerate() {
            let most = (bytes.len() - written[i]).min(1 + prng.below(30_000) as usize);
            written[i] += client.write(&bytes[written[i]..written[i] + most]);
            read_some(client, &mut echoed[i], 1 + prng.below(40_000) as usize);
        }
        for event in server.turn() {
            match event {
                Happened::Data(conn, bytes) => {
                    send(&mut server.driver, conn, &bytes);
                }
                Happened::Drained(_) => (),
                other => panic!("{other:?}"),
            }
        }
    }
    for (i, (_, bytes)) in peers.iter().enumerate() {
        assert!(echoed[i] == *bytes, "connection {i}");
    }
    let bytes = server.driver.stats().bytes_sent;
    assert_eq!(bytes, 7 * 200_000);
    assert_eq!(server.driver.stats().bytes_received, bytes);
}

fn a_slow_reader_gets_twenty_megabytes<W: World>() {
    const CHUNK: usize = 1 << 20;
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let expected = noise(3, 20 * CHUNK);
    for chunk in expected.chunks(CHUNK) {
        send(&mut server.driver, conn, chunk);
    }
    let left = server.driver.backlog(conn);
    assert!(left > 0 && left < expected.len(), "{left}");
    let mut got = Vec::new();
    let mut drained = false;
    while got.len() < expected.len() {
        read_some(&mut client, &mut got, 50_000);
        for event in server.turn() {
            assert_eq!(event, Happened::Drained(conn));
            assert_eq!(server.driver.backlog(conn), 0);
            assert!(!std::mem::replace(&mut drained, true), "once");
        }
    }
    assert!(drained && got == expected);
}

/// Sends `pieces`, the odd ones as shared values. Returns the backlog.
fn send_mixed<W: World>(server: &mut Server<W>, conn: driver::ConnId, pieces: &[Vec<u8>]) -> usize {
    let out = server.driver.io().1;
    for (i, piece) in pieces.iter().enumerate() {
        if i % 2 == 1 {
            out.blobs.push(BlobPart::whole(out.bytes.len(), Blob::new(piece.clone())));
        } else {
            out.bytes.extend_from_slice(piece);
        }
    }
    let (end, blob_end) = (out.bytes.len(), out.blobs.len());
    let left = server.driver.send(conn, Segment { start: 0, end, blob_start: 0, blob_end });
    server.driver.flush_output();
    left
}

fn drain<W: World>(server: &mut Server<W>, client: &mut W::C, count: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < count {
        read_some(client, &mut got, 64 << 10);
        for event in server.turn() {
            assert!(matches!(event, Happened::Drained(_)), "{event:?}");
        }
    }
    got
}

fn shared_values_keep_their_place_between_bytes<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let mut prng = Prng::new(8);
    for round in 0..20 {
        let pieces: Vec<Vec<u8>> = (0..prng.below(9))
            .map(|i| {
                let most = if i % 2 == 1 { 3 << 20 } else { 2000 };
                noise(round * 100 + i, prng.below(most) as usize)
            })
            .collect();
        let expected = pieces.concat();
        // A second segment behind the first, so that a backlog is also extended.
        let both = [expected.clone(), b"tail".to_vec()].concat();
        send_mixed(&mut server, conn, &pieces);
        send(&mut server.driver, conn, b"tail");
        assert!(drain(&mut server, &mut client, both.len()) == both, "round {round}");
    }
}

fn many_shared_values_are_sent_in_one_segment<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    // Several times as many runs as one call takes.
    let count = 5 * driver::reactor::PIECES_MAX as u64 + 3;
    let pieces: Vec<Vec<u8>> = (0..count).map(|i| noise(i, 100 + i as usize)).collect();
    send_mixed(&mut server, conn, &pieces);
    let expected = pieces.concat();
    assert!(drain(&mut server, &mut client, expected.len()) == expected);
}

fn single_bytes_are_received_in_order<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let bytes = noise(4, 300);
    let mut got = Vec::new();
    for byte in &bytes {
        client.put(&[*byte]);
        got.extend(server.receive(conn, 1));
        assert_eq!(send(&mut server.driver, conn, &[*byte]), 0);
    }
    assert_eq!(got, bytes);
    assert!(drain(&mut server, &mut client, bytes.len()) == bytes);
}

fn half_close_is_answered<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    client.put(b"question");
    client.shutdown_write();
    assert_eq!(server.receive(conn, 8), b"question");
    send(&mut server.driver, conn, b"answer");
    server.expect(&Happened::Closed(conn, CloseReason::Peer));
    server.driver.release(conn);
    assert_eq!(drain(&mut server, &mut client, 6), b"answer");
    while client.ending() != Some(Ending::Closed) {
        server.quiet(1);
    }
}

/// Regression: such a client received only what its socket took at once. The rest was dropped.
fn a_half_closed_connection_receives_its_backlog<W: World>() {
    for is_reset in [false, true] {
        let mut server = Server::<W>::new();
        let (mut client, conn) = server.connect();
        client.shutdown_write();
        server.expect(&Happened::Closed(conn, CloseReason::Peer));
        server.driver.keep_half_open(conn);
        server.rests(); // the end has been reported
        let bytes = noise(9, 8 << 20);
        assert!(send(&mut server.driver, conn, &bytes) > 0);
        server.driver.close_after_flush(conn);
        if is_reset {
            client.reset();
            server.expect(&Happened::Closed(conn, CloseReason::Error));
        } else {
            let (mut got, mut ends) = (Vec::new(), 0);
            while got.len() < bytes.len() || client.ending().is_none() {
                read_some(&mut client, &mut got, 64 << 10);
                for event in server.turn() {
                    assert_eq!(event, Happened::Closed(conn, CloseReason::Peer));
                    ends += 1;
                }
            }
            assert!(got == bytes && ends == 1);
        }
        server.driver.release(conn);
        server.quiet(3);
    }
}

fn reset_is_reported_once<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    client.reset();
    server.expect(&Happened::Closed(conn, CloseReason::Error));
    server.rests(); // although it is not released yet
    assert_eq!(send(&mut server.driver, conn, b"nobody there"), 0);
    server.driver.release(conn);
    server.quiet(3);
}

fn kept_bytes_are_delivered_first<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    // Keeps everything until there are 50,000 bytes: each event delivers the kept bytes and a few
    // new ones.
    let bytes = noise(6, 50_000);
    let (mut written, mut last) = (0, 0);
    while last < bytes.len() {
        written += client.write(&bytes[written..(written + 999).min(bytes.len())]);
        let events = server.turn_with(Driver::put_back);
        for event in events {
            let Happened::Data(from, got) = event else { panic!("{event:?}") };
            assert_eq!(from, conn);
            assert!(got.len() > last && got == bytes[..got.len()], "{last} {}", got.len());
            last = got.len();
        }
    }
}

fn kept_bytes_are_redelivered_without_new_ones<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    client.put(b"abcdef");
    let mut got = Vec::new();
    // Each turn consumes one byte, keeps the rest and requests its redelivery.
    while got.len() < 6 {
        server.turn_with(|driver, conn, start, end| {
            got.push(driver.io().0[start]);
            driver.put_back(conn, start + 1, end);
            driver.redeliver(conn);
        });
    }
    assert_eq!(got, b"abcdef");
    server.quiet(2); // nothing is kept, so no event follows
    client.put(b"g");
    assert_eq!(server.receive(conn, 1), b"g");
}

fn redelivery_gives_one_piece_per_turn<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    client.put(b"xyz");
    client.put(b"more");
    let mut kept_turns = 0;
    for _ in 0..50 {
        let events = server.turn_with(|driver, conn, start, end| {
            driver.put_back(conn, start, end);
            driver.redeliver(conn);
        });
        assert!(events.len() <= 1, "one piece per connection and turn: {events:?}");
        kept_turns += events.len();
    }
    assert!(kept_turns > 10, "{kept_turns}");
    server.driver.release(conn);
}

#[test]
fn kept_and_new_bytes_are_not_delivered_in_one_turn_after_redeliver() {
    let mut server = Server::<Calm>::new();
    let (mut client, conn) = server.connect();
    client.put(b"kept");
    server.turn_with(|driver, conn, start, end| {
        driver.put_back(conn, start, end);
        driver.redeliver(conn);
    });
    client.put(b"new");
    assert_eq!(server.turn(), [Happened::Data(conn, b"kept".to_vec())]);
    assert_eq!(server.turn(), [Happened::Data(conn, b"new".to_vec())]);
}

#[test]
fn redelivery_waits_for_the_next_turn_even_if_bytes_are_ready() {
    let mut server = Server::<Calm>::new();
    let (mut first, a) = server.connect();
    let (mut second, b) = server.connect();
    let mut seen = 0;
    // The network's order is random: in some rounds `first` comes first.
    for _ in 0..50 {
        second.put(b"kept");
        server.turn_with(Driver::put_back);
        first.put(b"x");
        second.put(b"new");
        let events = server.turn_with(|driver, conn, _, _| {
            if conn == a {
                driver.redeliver(b);
            }
        });
        if events.len() == 1 {
            seen += 1;
            assert_eq!(server.turn(), [Happened::Data(b, b"kept".to_vec())]);
            assert_eq!(server.turn(), [Happened::Data(b, b"new".to_vec())]);
        } else {
            assert_eq!(events[0], Happened::Data(b, b"keptnew".to_vec()));
            server.quiet(1);
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn kept_bytes_are_redelivered_in_request_order() {
    let mut server = Server::<Calm>::new();
    let mut peers: Vec<_> = (0..9).map(|_| server.connect()).collect();
    for (client, _) in &mut peers {
        client.put(b"x");
    }
    let order = server.turn_with(|driver, conn, start, end| {
        driver.put_back(conn, start, end);
        driver.redeliver(conn);
    });
    assert_eq!(order.len(), 9);
    assert_eq!(server.turn(), order);
}

fn pause_stops_events_and_resume_continues<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    client.put(b"one");
    assert_eq!(server.receive(conn, 3), b"one");
    server.driver.pause(conn);
    client.put(b"two");
    server.quiet(20);
    server.driver.resume(conn);
    assert_eq!(server.receive(conn, 3), b"two");
    // Kept bytes are delivered without new ones.
    client.put(b"three");
    let mut got = Vec::new();
    while got.len() < 5 {
        for event in server.turn_with(|driver, conn, start, end| {
            driver.put_back(conn, start, end);
        }) {
            let Happened::Data(_, bytes) = event else { panic!("{event:?}") };
            got = bytes;
        }
    }
    server.driver.pause(conn);
    server.driver.redeliver(conn);
    server.quiet(5);
    server.driver.resume(conn);
    assert_eq!(server.receive(conn, 5), b"three");
}

fn the_disconnect_of_a_paused_peer_is_reported<W: World>() {
    let mut server = Server::<W>::new();
    let (client, conn) = server.connect();
    server.driver.pause(conn);
    server.quiet(2);
    drop(client);
    server.expect(&Happened::Hangup(conn, false));
    server.rests();
    server.driver.release(conn);
    // With unread bytes, and with kept bytes.
    let (mut client, conn) = server.connect();
    server.driver.pause(conn);
    server.quiet(2);
    client.put(b"unread");
    drop(client);
    server.expect(&Happened::Hangup(conn, true));
    server.rests();
    server.driver.release(conn);
    let (mut client, conn) = server.connect();
    client.put(b"kept");
    let mut got = 0;
    while got < 4 {
        for event in server.turn_with(driver::Driver::put_back) {
            let Happened::Data(_, bytes) = event else { panic!("{event:?}") };
            got = bytes.len();
        }
    }
    server.driver.pause(conn);
    drop(client);
    server.expect(&Happened::Hangup(conn, true));
    server.rests();
    server.driver.release(conn);
    let (mut client, conn) = server.connect();
    server.driver.pause(conn);
    client.reset();
    server.expect(&Happened::Closed(conn, CloseReason::Error));
}

fn a_paused_half_closed_peer_stays_connected<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    server.driver.pause(conn);
    server.quiet(2);
    client.put(b"question");
    client.shutdown_write();
    server.expect(&Happened::Hangup(conn, true));
    server.rests();
    server.driver.resume(conn);
    let mut got = Vec::new();
    loop {
        let mut ended = false;
        for event in server.turn() {
            match event {
                Happened::Data(_, bytes) => got.extend(bytes),
                Happened::Closed(_, CloseReason::Peer) => ended = true,
                other => panic!("{other:?}"),
            }
        }
        if ended {
            break;
        }
    }
    assert_eq!(got, b"question");
}

fn close_after_flush_sends_everything<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let bytes = noise(7, 8 << 20);
    assert!(send(&mut server.driver, conn, &bytes) > 0);
    server.driver.close_after_flush(conn);
    client.put(b"this is not read any more");
    let mut got = Vec::new();
    let mut closed = false;
    while got.len() < bytes.len() || client.ending().is_none() {
        read_some(&mut client, &mut got, 64 << 10);
        for event in server.turn() {
            assert_eq!(event, Happened::Closed(conn, CloseReason::Peer));
            assert!(!std::mem::replace(&mut closed, true), "once");
        }
    }
    assert!(closed && got == bytes);
    // The client saw the end although the connection is not released yet.
    assert_eq!(client.ending(), Some(Ending::Closed));
    server.driver.release(conn);
}

fn release_closes_at_once<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    server.driver.release(conn);
    server.driver.release(conn); // already released
    while client.ending().is_none() {
        server.quiet(1);
        server.world.breathe();
    }
}

fn keeping_more_than_the_limit_closes_the_connection<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let bytes = noise(9, PUT_BACK_MAX + RECV_MAX);
    let (mut written, mut most) = (0, 0);
    let closed = loop {
        written += client.write(&bytes[written..]);
        let events = server.turn_with(|driver, conn, start, end| {
            driver.put_back(conn, start, end);
            most = most.max(end - start);
        });
        if let Some(event) = events.into_iter().find(|e| !matches!(e, Happened::Data(..))) {
            break event;
        }
    };
    assert_eq!(closed, Happened::Closed(conn, CloseReason::Error));
    assert!(most > PUT_BACK_MAX && most <= PUT_BACK_MAX + RECV_MAX, "{most}");
}

fn one_turn_receives_a_bounded_amount<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, _) = server.connect();
    let bytes = noise(10, 4 * RECV_MAX);
    let (mut written, mut got, mut full) = (0, Vec::new(), 0);
    while got.len() < bytes.len() {
        loop {
            let n = client.write(&bytes[written..]);
            written += n;
            if n == 0 {
                break;
            }
        }
        let events = server.turn();
        assert!(events.len() <= 1, "{}", events.len());
        for event in events {
            let Happened::Data(_, some) = event else { panic!("{event:?}") };
            assert!(some.len() <= RECV_MAX);
            full += u32::from(some.len() == RECV_MAX);
            got.extend(some);
        }
    }
    assert!(got == bytes);
    // (The rough network's buffer is smaller than the bound.)
    assert!(full > 0 || std::any::type_name::<W>().ends_with("Rough"), "the bound was met");
}

fn nothing_is_sent_to_a_reused_index<W: World>() {
    let mut server = Server::<W>::new();
    let (first, old) = server.connect();
    drop(first);
    server.expect(&Happened::Closed(old, CloseReason::Peer));
    server.driver.release(old);
    let (mut second, new) = server.connect();
    assert_eq!(old.index, new.index);
    assert_eq!(send(&mut server.driver, old, b"for the first"), 0);
    server.driver.close_after_flush(old);
    server.driver.pause(old);
    server.driver.release(old);
    send(&mut server.driver, new, b"for the second");
    assert_eq!(drain(&mut server, &mut second, 14), b"for the second");
    second.put(b"works");
    assert_eq!(server.receive(new, 5), b"works");
}
