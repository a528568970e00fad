//! Connections that move from one driver to another while bytes are in flight: none is lost,
//! repeated or reordered, in either direction.

use crate::common::{Client, Happened, Server, World, noise, read_some, send};
use base::prng::Prng;
use driver::poller::Poller;
use driver::reactor::Reactor;
use driver::{CloseReason, ConnId, Driver};

crate::on_every_world!(
    input_across_moves_keeps_its_order,
    output_across_moves_keeps_its_order,
    a_paused_connection_moves_with_what_it_was_sent,
    an_end_is_reported_where_the_connection_is,
    who_has_something_under_way_stays,
    a_connection_that_nobody_takes_in_is_closed,
    an_index_that_was_left_is_reused,
);

/// Two drivers, and one connection that is at either of them.
struct Pair<W: World> {
    /// Its driver is the one that the connection is at.
    here: Server<W>,
    there: Reactor<W::P, u32>,
    conn: ConnId,
    moves: u32,
}

impl<W: World> Pair<W> {
    fn new() -> (W::C, Self) {
        let mut here = Server::<W>::new();
        let there = here.world.driver();
        let (client, conn) = here.connect();
        (client, Self { here, there, conn, moves: 0 })
    }

    /// Moves it, if it may. It stays the connection of `here`.
    fn go(&mut self) -> bool {
        let Some(moving) = self.here.driver.detach(self.conn) else { return false };
        self.conn = self.there.attach(moving);
        std::mem::swap(&mut self.here.driver, &mut self.there);
        self.moves += 1;
        true
    }

    /// Moves it. It must be able to, now or in a moment.
    fn must_go(&mut self) {
        while !self.go() {
            assert_eq!(self.turn(), []);
        }
    }

    /// A turn of its driver. In a simulated network, where time goes on when all are asleep, the
    /// other driver has one before.
    fn turn(&mut self) -> Vec<Happened> {
        if !W::P::SLEEPS {
            self.turn_there();
        }
        self.here.turn()
    }

    fn expect(&mut self, expected: &Happened) {
        loop {
            match self.turn().as_slice() {
                [] => self.here.world.breathe(),
                [one] if one == expected => return,
                other => panic!("{other:?} instead of {expected:?}"),
            }
        }
    }

    fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut got = Vec::new();
        while got.len() < count {
            for event in self.turn() {
                match event {
                    Happened::Data(from, bytes) if from == self.conn => got.extend(bytes),
                    other => panic!("{other:?}"),
                }
            }
        }
        got
    }

    /// A turn of the other driver, to which nothing happens.
    fn turn_there(&mut self) {
        std::mem::swap(&mut self.here.driver, &mut self.there);
        let happened = self.here.turn();
        std::mem::swap(&mut self.here.driver, &mut self.there);
        assert_eq!(happened, [], "at the driver that it left");
    }
}

/// Parts of the input are put back at random, as a session does that stops or has no whole request.
fn input_across_moves_keeps_its_order<W: World>() {
    let (mut client, mut pair) = Pair::<W>::new();
    let mut prng = Prng::new(7);
    let sent = noise(1, 3 << 20);
    let (mut written, mut got, mut rounds) = (0, Vec::new(), 0);
    while got.len() < sent.len() {
        rounds += 1;
        let most = [1, 300, 5_000, 200_000][prng.below(4) as usize];
        let end = sent.len().min(written + most);
        written += client.write(&sent[written..end]);
        let percent = if written < sent.len() { prng.below(100) as usize } else { 0 };
        let mut kept = 0;
        if !W::P::SLEEPS {
            pair.turn_there();
        }
        let happened = pair.here.turn_with(|driver, conn, start, end| {
            kept = ((end - start) * percent / 100).min(30_000);
            driver.put_back(conn, end - kept, end);
        });
        for event in happened {
            let Happened::Data(conn, bytes) = event else { panic!("{event:?}") };
            assert_eq!(conn, pair.conn);
            got.extend_from_slice(&bytes[..bytes.len() - kept]);
        }
        if kept > 0 && prng.chance(1, 2) {
            pair.here.driver.redeliver(pair.conn);
        }
        if prng.chance(1, 3) && !pair.go() {
            pair.here.driver.redeliver(pair.conn);
        }
        if prng.chance(1, 8) {
            pair.turn_there();
        }
        assert!(sent.starts_with(&got), "after {} moves", pair.moves);
    }
    assert!(pair.moves > 5, "{} moves in {rounds} rounds", pair.moves);
}

fn output_across_moves_keeps_its_order<W: World>() {
    let (mut client, mut pair) = Pair::<W>::new();
    let mut prng = Prng::new(8);
    let bytes = noise(2, 6 << 20);
    let (mut at, mut got) = (0, Vec::new());
    while got.len() < bytes.len() {
        if pair.here.driver.backlog(pair.conn) == 0 && at < bytes.len() {
            let end = bytes.len().min(at + 1 + prng.below(300_000) as usize);
            send(&mut pair.here.driver, pair.conn, &bytes[at..end]);
            at = end;
        }
        read_some(&mut client, &mut got, 1 + prng.below(60_000) as usize);
        for event in pair.turn() {
            assert_eq!(event, Happened::Drained(pair.conn));
        }
        while pair.here.driver.next_backlogged().is_some() {}
        let backlog = pair.here.driver.backlog(pair.conn);
        assert!(!(pair.go() && backlog > 0), "it left with {backlog} bytes to be sent");
    }
    assert!(got == bytes && pair.moves > 5, "{} moves", pair.moves);
}

fn a_paused_connection_moves_with_what_it_was_sent<W: World>() {
    let (mut client, mut pair) = Pair::<W>::new();
    client.put(b"first ");
    assert_eq!(pair.receive(6), b"first ");
    for round in 0..20_u8 {
        pair.here.driver.pause(pair.conn);
        if round % 2 == 0 {
            assert_eq!(pair.turn(), []);
        }
        client.put(&[round, 1, 2]);
        if round % 3 == 0 {
            assert_eq!(pair.turn(), []);
        }
        pair.must_go();
        assert_eq!(pair.receive(3), [round, 1, 2], "it is not paused there");
    }
}

fn an_end_is_reported_where_the_connection_is<W: World>() {
    for is_reset in [false, true] {
        let (mut client, mut pair) = Pair::<W>::new();
        client.put(b"last words");
        pair.must_go();
        if is_reset {
            assert_eq!(pair.receive(10), b"last words");
            pair.must_go();
            client.reset();
            pair.expect(&Happened::Closed(pair.conn, CloseReason::Error));
        } else {
            client.shutdown_write();
            pair.must_go();
            assert_eq!(pair.receive(10), b"last words");
            pair.expect(&Happened::Closed(pair.conn, CloseReason::Peer));
        }
        assert!(pair.here.driver.detach(pair.conn).is_none(), "its end is reported");
        pair.here.driver.release(pair.conn);
        pair.turn_there();
    }
}

fn who_has_something_under_way_stays<W: World>() {
    let (mut client, mut pair) = Pair::<W>::new();
    let bytes = noise(3, 8 << 20);
    let left = send(&mut pair.here.driver, pair.conn, &bytes);
    assert!(left > 0 && !pair.go(), "it has a backlog");
    let mut got = Vec::new();
    while got.len() < bytes.len() {
        read_some(&mut client, &mut got, 64 << 10);
        for event in pair.turn() {
            assert_eq!(event, Happened::Drained(pair.conn));
        }
    }
    assert!(got == bytes);
    pair.must_go();
    assert!(pair.here.driver.begin_bulk(pair.conn, 4));
    assert!(!pair.go(), "it has a bulk");
    client.put(b"bulkmore");
    let mut room = Vec::with_capacity(4);
    while room.len() < 4 {
        for event in pair.turn() {
            assert!(matches!(event, Happened::Bulk(..)), "{event:?}");
            let missing = 4 - room.len();
            let mut part = Vec::with_capacity(missing);
            pair.here.driver.receive(pair.conn, &mut part);
            room.extend(part);
        }
    }
    assert_eq!(room, b"bulk");
    assert_eq!(pair.receive(4), b"more");
    pair.must_go();
    pair.here.driver.close_after_flush(pair.conn);
    assert!(!pair.go(), "it is being closed");
}

fn a_connection_that_nobody_takes_in_is_closed<W: World>() {
    let (mut client, mut pair) = Pair::<W>::new();
    let moving = loop {
        if let Some(moving) = pair.here.driver.detach(pair.conn) {
            break moving;
        }
        assert_eq!(pair.turn(), []);
    };
    assert_eq!(client.ending(), None);
    drop(moving);
    while client.ending().is_none() {
        assert_eq!(pair.turn(), []);
        pair.here.world.breathe();
    }
}

/// What the driver still knows of a connection that left is not taken for one of its successor.
fn an_index_that_was_left_is_reused<W: World>() {
    let (mut client, mut pair) = Pair::<W>::new();
    for round in 0..30_u8 {
        let left = pair.conn;
        pair.here.driver.pause(left);
        pair.here.driver.resume(left);
        pair.here.driver.redeliver(left);
        client.put(&[round]);
        pair.must_go();
        let moved = pair.conn;
        assert_eq!(pair.receive(1), [round]);
        // Where it was:
        std::mem::swap(&mut pair.here.driver, &mut pair.there);
        if round % 2 == 0 {
            let mut next = pair.here.world.connect(&pair.here.addr);
            pair.conn = loop {
                if let [Happened::Accepted(conn)] = pair.turn()[..] {
                    break conn;
                }
            };
            assert_eq!(pair.conn.index, left.index);
            next.put(b"mine");
            assert_eq!(pair.receive(4), b"mine");
            pair.here.driver.release(pair.conn);
            pair.conn = moved;
        }
        std::mem::swap(&mut pair.here.driver, &mut pair.there);
        pair.must_go();
    }
}
