//! Turns: what one turn delivers at most, in which order, and when it begins.

use crate::common::{
    Calm, Client, Happened, OPTIONS, RealClient, Rough, Server, World, noise, read_some, send,
};
use base::MonoNs;
use driver::poller::EVENTS_MAX;
use driver::reactor::{ACCEPTS_MAX, ARENA_KEPT, FLUSH_MAX};
use driver::sim::{Faults, SimNet};
use driver::{AREA, ConnId, Driver, Event, RECV_MAX, Segment};
use std::time::{Duration, Instant};

crate::on_every_world!(
    messages_are_delivered_in_order_and_in_the_next_turn,
    a_full_area_is_announced_and_nothing_is_lost,
    a_turn_accepts_a_bounded_number,
    a_turn_ends_at_its_deadline,
    the_arena_releases_memory,
);

mod sleeping {
    use super::a_post_wakes_a_sleeping_worker;
    crate::on_real_worlds!(a_post_wakes_a_sleeping_worker);
}

fn messages_are_delivered_in_order_and_in_the_next_turn<W: World>() {
    let mut server = Server::<W>::new();
    let mailbox = server.driver.mailbox();
    (0..5).for_each(|m| mailbox.post(m));
    server.driver.wait(None);
    for m in 0..5 {
        assert!(matches!(server.driver.next(), Some(Event::Message(got)) if got == m));
        mailbox.post(100 + m);
    }
    assert!(server.driver.next().is_none(), "posted in this turn: for the next one");
    assert_eq!(server.turn(), (100..105).map(Happened::Message).collect::<Vec<_>>());
}

fn a_full_area_is_announced_and_nothing_is_lost<W: World>() {
    let mut server = Server::<W>::new();
    // More bytes than fit into the area without a rewind.
    let count = AREA / RECV_MAX + 4;
    let mut peers: Vec<_> = (0..count).map(|_| server.connect()).collect();
    let bytes: Vec<_> = (0..count).map(|i| noise(i as u64, 2 * RECV_MAX)).collect();
    let mut written = vec![0; count];
    let mut got = vec![Vec::new(); count];
    let mut full = 0;
    while got.iter().map(Vec::len).sum::<usize>() < count * 2 * RECV_MAX {
        for (i, (client, _)) in peers.iter_mut().enumerate() {
            written[i] += client.write(&bytes[i][written[i]..]);
        }
        server.patience.step();
        let until = server.driver.refresh_now().plus(2_000_000);
        server.driver.wait(Some(until));
        // Delivered bytes keep their place until the rewind.
        let mut delivered: Vec<(ConnId, usize, usize)> = Vec::new();
        let mut collect = |driver: &mut _, delivered: &mut Vec<(ConnId, usize, usize)>| {
            for (conn, start, end) in delivered.drain(..) {
                let i = peers.iter().position(|(_, c)| *c == conn).expect("a known connection");
                got[i].extend_from_slice(&area::<W>(driver)[start..end]);
            }
        };
        while let Some(event) = server.driver.next() {
            match event {
                Event::Data { conn, start, end } => {
                    assert!(end <= AREA);
                    if let Some((_, _, before)) = delivered.last() {
                        assert!(start >= *before, "no overlap");
                    }
                    delivered.push((conn, start, end));
                }
                Event::AreaFull => {
                    full += 1;
                    assert!(!delivered.is_empty(), "an empty area is not full");
                    collect(&mut server.driver, &mut delivered);
                    server.driver.rewind();
                }
                other => panic!("{other:?}"),
            }
        }
        collect(&mut server.driver, &mut delivered);
        server.driver.rewind();
    }
    assert!(got == bytes);
    // (The rough network's buffers are too small for that.)
    assert!(full > 0 || std::any::type_name::<W>().ends_with("Rough"), "the bound was met");
}

fn area<W: World>(driver: &mut driver::reactor::Reactor<W::P, u32>) -> &[u8] {
    driver.io().0
}

fn a_turn_accepts_a_bounded_number<W: World>() {
    let mut server = Server::<W>::new();
    let clients: Vec<_> =
        (0..ACCEPTS_MAX + 5).map(|_| server.world.connect(&server.addr)).collect();
    server.world.breathe();
    let mut turns = Vec::new();
    while turns.iter().sum::<usize>() < clients.len() {
        let events = server.turn();
        assert!(events.iter().all(|e| matches!(e, Happened::Accepted(_))));
        if !events.is_empty() {
            turns.push(events.len());
        }
    }
    assert_eq!(turns, [ACCEPTS_MAX, 5]);
}

fn a_turn_ends_at_its_deadline<W: World>() {
    let mut server = Server::<W>::new();
    let started = server.driver.refresh_now();
    let unix = server.driver.unix_ms();
    let until = started.plus(20_000_000);
    server.driver.wait(Some(until));
    assert!(server.driver.next().is_none());
    assert!(server.driver.now() >= until);
    assert!(server.driver.unix_ms().0 - unix.0 >= 19, "both clocks went on");
    // With a deadline in the past, wait returns at once.
    let passed = server.driver.refresh_now();
    server.driver.wait(Some(MonoNs(1)));
    assert!(server.driver.now().since(passed) < 20_000_000);
}

fn the_arena_releases_memory<W: World>() {
    let mut server = Server::<W>::new();
    let (mut client, conn) = server.connect();
    let bytes = noise(1, 3 * ARENA_KEPT);
    send(&mut server.driver, conn, &bytes);
    assert!(server.driver.io().1.bytes.capacity() <= ARENA_KEPT);
    assert!(server.driver.io().1.is_empty());
    let mut got = Vec::new();
    while got.len() < bytes.len() {
        read_some(&mut client, &mut got, 64 << 10);
        server.turn();
    }
    assert!(got == bytes);
}

#[test]
fn a_turn_polls_a_bounded_number_of_events() {
    let mut server = Server::<Calm>::new();
    let mut peers: Vec<_> = (0..EVENTS_MAX + 10).map(|_| server.connect()).collect();
    for (client, _) in &mut peers {
        client.put(b"x");
    }
    // The order is random: the remaining ones follow within a few turns.
    let first = server.turn().len();
    assert_eq!(first, EVENTS_MAX);
    assert_eq!(server.turn().len(), 10);
}

#[test]
fn a_backlog_is_sent_in_bounded_parts() {
    let net = SimNet::new(4, Faults { buffer_bytes: 64 << 20, ..Faults::NONE });
    let mut server = Server::<Calm>::new_in(Calm(net.clone()));
    let (client, conn) = server.connect();
    net.set_faults(Faults { buffer_bytes: 0, ..Faults::NONE });
    // Pieces of the size up to which a backlog joins them. One send takes 64 of them.
    let chunk = noise(2, driver::reactor::JOIN);
    let count = 3 * driver::reactor::PIECES_MAX;
    for _ in 0..count {
        send(&mut server.driver, conn, &chunk);
    }
    net.set_faults(Faults { buffer_bytes: 64 << 20, ..Faults::NONE });
    let before = server.driver.backlog(conn);
    assert_eq!(before, count * chunk.len());
    server.turn();
    let left = before - server.driver.backlog(conn);
    assert!(left >= FLUSH_MAX && left < FLUSH_MAX + chunk.len(), "{left}");
    drop(client);
}

/// A client whose socket takes everything does not get all of a long reply in one turn.
#[test]
fn a_long_value_is_sent_in_bounded_parts() {
    let net = SimNet::new(4, Faults { buffer_bytes: 64 << 20, ..Faults::NONE });
    let mut server = Server::<Calm>::new_in(Calm(net.clone()));
    let (_client, conn) = server.connect();
    let value = base::Blob::from(&noise(2, 10 * FLUSH_MAX)[..]);
    let out = server.driver.io().1;
    let (at, blob_start) = (out.bytes.len(), out.blobs.len());
    out.blobs.push(base::out::BlobPart::whole(at, value.clone()));
    let segment = Segment { start: at, end: at, blob_start, blob_end: blob_start + 1 };
    let mut left = server.driver.send(conn, segment);
    server.driver.flush_output();
    let mut before = value.len();
    for _ in 0..10 {
        let sent = before - left;
        let page = base::blob::PAGE_BYTES;
        assert!(left == 0 || (sent >= FLUSH_MAX && sent < FLUSH_MAX + page), "{sent}");
        server.turn();
        (before, left) = (left, server.driver.backlog(conn));
    }
    assert_eq!(left, 0);
}

fn a_post_wakes_a_sleeping_worker<W: World<C = RealClient>>() {
    let mut server = Server::<W>::new();
    let mailbox = server.driver.mailbox();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        mailbox.post(7);
    });
    let started = Instant::now();
    server.driver.wait(None);
    assert!(matches!(server.driver.next(), Some(Event::Message(7))));
    assert!(started.elapsed() >= Duration::from_millis(25));
    assert!(server.driver.stats().sleeps > 0);
    other.join().expect("it only posts");
    // The wake is consumed: the next wait sleeps.
    let until = server.driver.refresh_now().plus(10_000_000);
    server.driver.wait(Some(until));
    assert!(server.driver.now() >= until);
}

#[test]
fn workers_of_one_simulated_world_share_its_clock() {
    let net = SimNet::new(3, Faults::NONE);
    let mut first = net.driver::<u32>();
    let mut second = net.driver::<u32>();
    let start = first.refresh_now();
    // The clock waits for the second worker.
    first.wait(Some(start.plus(1000)));
    assert_eq!(first.now(), start);
    second.wait(Some(start.plus(500)));
    assert_eq!(second.now(), start.plus(500));
    second.wait(Some(start.plus(5000)));
    assert_eq!(second.now(), start.plus(1000), "now it is the first one's turn");
    first.wait(Some(start.plus(9000)));
    assert_eq!(first.now(), start.plus(5000));
    // A pending message stops the clock until it is read.
    first.wait(None);
    first.mailbox().post(1);
    second.wait(Some(start.plus(7000)));
    assert_eq!(second.refresh_now(), start.plus(5000));
    first.wait(Some(start.plus(99_000)));
    assert!(matches!(first.next(), Some(Event::Message(1))));
    assert_eq!(first.now(), start.plus(5000));
    // A worker which has ended does not delay the others.
    drop(first);
    second.wait(Some(start.plus(20_000)));
    assert_eq!(second.now(), start.plus(20_000));
    assert!(net.is_at_rest());
}

#[test]
fn a_connection_is_moved_to_another_worker() {
    let net = SimNet::new(3, Faults::ROUGH);
    let mut server = Server::<Rough>::new_in(Rough(net.clone()));
    let mut other = net.driver::<u32>();
    let mut client = server.world.connect(&server.addr);
    let (socket, peer) = loop {
        server.driver.wait(None);
        if let Some(Event::Accepted { socket, peer, .. }) = server.driver.next() {
            break (socket, peer);
        }
    };
    assert_eq!(peer, client.addr());
    let conn = other.adopt(socket, &OPTIONS);
    assert_eq!(other.local_addr(conn), server.addr);
    client.put(b"hello");
    let mut got = Vec::new();
    while got.len() < 5 {
        server.driver.wait(None);
        assert!(server.driver.next().is_none());
        other.wait(None);
        while let Some(event) = other.next() {
            let Event::Data { conn: from, start, end } = event else { panic!("{event:?}") };
            assert_eq!(from, conn);
            got.extend_from_slice(&other.io().0[start..end]);
        }
    }
    assert_eq!(got, b"hello");
}
