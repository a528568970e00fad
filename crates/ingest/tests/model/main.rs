//! Random producers, a random server and a random network between them: connections break at any
//! byte, are resumed and taken over, and the sink accepts only parts of what it is offered.
//! Acknowledged messages are in the key, in order and once. Acknowledgements are never ahead,
//! credit never decreases, and in the end every message is stored.

mod ends;

use base::MonoNs;
use base::prng::Prng;
use ends::{
    ClientEnd, Connection, End, LIMITS, MESSAGES, Owned, Producer, READ_BYTES, ServerEnd, WINDOW,
    payload,
};
use ingest::v2::{self, Acking, Acks, Fault, Held, Hello, Intake, Reader, ServerFrame, Welcome};
use ingest::{Layout, Messages};
use std::collections::VecDeque;

struct World {
    prng: Prng,
    now: MonoNs,
    producers: Vec<Producer>,
    connections: Vec<Connection>,
    /// No further faults.
    calm: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let producers = (0..3)
            .map(|_| Producer {
                base: if prng.chance(3, 4) { 1 } else { u64::MAX - MESSAGES + 1 },
                held: Held::default(),
                kept: 0,
                safe: None,
                known: false,
                acking: Acking::ALL[prng.below(3) as usize],
                ack_messages: if prng.chance(1, 2) { 0 } else { 1 + prng.below(20) as u32 },
                ack_micros: if prng.chance(1, 2) { 0 } else { 1 + prng.below(1000) as u32 },
            })
            .collect();
        Self { prng, now: MonoNs(1), producers, connections: Vec::new(), calm: false }
    }

    fn step(&mut self) {
        self.now = self.now.plus(self.prng.below(100_000));
        for at in 0..self.producers.len() {
            let connected = self.connections.iter().any(|c| c.producer == at && c.client.is_some());
            // Sometimes a producer reconnects while its previous connection is still open.
            let again = !self.calm && self.prng.chance(1, 60);
            if !self.producers[at].is_done() && (!connected || again) {
                self.connect(at);
            }
        }
        for at in 0..self.connections.len() {
            self.send(at);
            if self.prng.chance(2, 3) {
                self.read(at);
            }
            self.answer(at);
            if !self.calm && self.prng.chance(1, 40) {
                self.cut(at);
            }
        }
        let fetched = self.now;
        self.now = self.now.plus(self.prng.below(50_000));
        for connection in &mut self.connections {
            let Some(acks) = connection.server.as_mut().and_then(|s| s.acks.as_mut()) else {
                continue;
            };
            let mut out = Vec::new();
            let due = acks.due().is_some_and(|due| due <= fetched);
            assert_eq!(acks.tick(fetched, &mut out), u64::from(due));
            assert!(acks.due().is_none_or(|due| due > fetched));
            connection.down.extend(out);
        }
        self.connections.retain(|c| c.client.is_some() || c.server.is_some());
    }

    fn connect(&mut self, at: usize) {
        let producer = &self.producers[at];
        let mut hello = Vec::new();
        let name = [b'p', at as u8];
        v2::write_hello(
            &mut hello,
            &Hello {
                acking: producer.acking,
                ack_messages: producer.ack_messages,
                ack_micros: producer.ack_micros,
                resume: producer.known,
                producer: &name,
                ..Hello::default()
            },
        );
        // The producer abandons its older connection.
        for old in self.connections.iter_mut().filter(|c| c.producer == at) {
            old.client = None;
        }
        self.connections.push(Connection {
            producer: at,
            up: hello.into(),
            down: VecDeque::new(),
            server: Some(ServerEnd {
                intake: Intake::new(LIMITS),
                acks: None,
                offered: None,
                unread: Vec::new(),
                granted: 0,
                ack_messages: producer.ack_messages,
            }),
            client: Some(ClientEnd {
                reader: Reader::new(),
                next: None,
                limit: 0,
                sent_bytes: 0,
                sent: 0,
                covered: 0,
                acked: 0,
                said_bye: false,
            }),
        });
    }

    /// The producer sends a random amount within its credit.
    fn send(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let producer = &self.producers[connection.producer];
        let Some(client) = &mut connection.client else { return };
        let Some(next) = client.next else { return };
        if client.said_bye || self.prng.chance(1, 2) {
            return;
        }
        // There may be no number after the last one.
        let left = if (1..=producer.end()).contains(&next) { producer.end() - next + 1 } else { 0 };
        let mut messages = Vec::new();
        let most = left.min(1 + self.prng.below(8));
        let mut count = 0;
        while count < most {
            let payload = payload(connection.producer, next + count);
            if messages.len() + 4 + payload.len() + 8 > LIMITS.max_frame as usize {
                break;
            }
            v2::write_message(&mut messages, &payload);
            count += 1;
        }
        let bytes = (v2::DATA_HEADER_BYTES + messages.len()) as u64;
        let mut out = Vec::new();
        if count > 0 && client.sent_bytes + bytes <= client.limit {
            v2::write_data_header(&mut out, next, messages.len());
            out.extend(messages);
            client.sent_bytes += bytes;
            client.sent += count;
            client.next = Some(next.wrapping_add(count));
        } else if left == 0 && self.prng.chance(1, 4) {
            v2::write_bye(&mut out);
            client.said_bye = true;
        } else if self.prng.chance(1, 4) {
            v2::write_flush(&mut out);
        }
        connection.up.extend(out);
    }

    /// The server reads once, or offers the sink again what it has not accepted.
    fn read(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(server) = &mut connection.server else {
            connection.up.clear();
            return;
        };
        let mut block = std::mem::take(&mut server.unread);
        if server.offered.is_none() && block.is_empty() {
            let len = (1 + self.prng.below(READ_BYTES as u64) as usize).min(connection.up.len());
            block = connection.up.drain(..len).collect();
        }
        let mut out = Vec::new();
        let mut end = None;
        if let Some((first, bytes)) = server.offered.take() {
            end = self.offer(at, first, &bytes);
        }
        let mut input = &block[..];
        while end.is_none() && self.connections[at].is_taking() {
            // The event borrows from the intake, which belongs to the world: the intake is moved
            // out while the event is handled.
            let Some(mut server) = self.connections[at].server.take() else { break };
            let event = server.intake.next(&mut input).map(Owned::from);
            self.connections[at].server = Some(server);
            let Some(event) = event else { break };
            end = self.take(at, event, &mut out);
        }
        let now = self.now;
        if let Some(server) = &mut self.connections[at].server {
            server.unread = input.to_vec();
            if let Some(acks) = &mut server.acks {
                acks.read_done(now, &mut out);
                let bound = server.ack_messages;
                assert!(bound == 0 || acks.waiting() < u64::from(bound));
                let limit = server.intake.received() + WINDOW;
                if server.offered.is_none() && limit - server.granted >= WINDOW / 2 {
                    server.granted = limit;
                    server.intake.grant(limit);
                    v2::write_credit(&mut out, limit);
                }
            }
        }
        self.connections[at].down.extend(out);
        if let Some(end) = end {
            self.close(at, end);
        }
    }

    /// Handles one event. Returns the connection's end, if it is one.
    fn take(&mut self, at: usize, event: Owned, out: &mut Vec<u8>) -> Option<End> {
        let producer = self.connections[at].producer;
        match event {
            Owned::Fault(fault) => return Some(End::Fault(fault)),
            Owned::Bye => return Some(End::Bye),
            Owned::Flush => {
                let server = self.connections[at].server.as_mut()?;
                server.acks.as_mut()?.flush(out, true);
            }
            Owned::Messages(first, bytes) => return self.offer(at, first, &bytes),
            Owned::Hello { acking, ack_messages, ack_micros, resume } => {
                assert!(!resume || self.producers[producer].known);
                for old in 0..self.connections.len() {
                    let other = &self.connections[old];
                    let greeted = other.server.as_ref().is_some_and(|s| s.acks.is_some());
                    if old != at && other.producer == producer && greeted {
                        self.close(old, End::Fault(Fault::TakenOver));
                    }
                }
                let last_id = self.producers[producer].held.last_id();
                let server = self.connections[at].server.as_mut()?;
                server.acks = Some(Acks::new(acking, ack_messages, ack_micros, last_id));
                server.granted = WINDOW;
                server.intake.grant(WINDOW);
                let welcome = Welcome { acking, last_id, credit: WINDOW, ..Welcome::default() };
                v2::write_welcome(out, &welcome);
            }
        }
        None
    }

    /// Offers messages to the sink, which accepts some of the new ones.
    fn offer(&mut self, at: usize, first: u64, bytes: &[u8]) -> Option<End> {
        let index = self.connections[at].producer;
        let producer = &mut self.producers[index];
        let server = self.connections[at].server.as_mut()?;
        let mut messages = Messages::new(bytes, Layout::Numbered(first));
        let count = messages.clone().count() as u64;
        let duplicates = match producer.held.admit(first, count) {
            Ok(admit) => admit.duplicates,
            Err(fault) => return Some(End::Fault(fault)),
        };
        let new = count - duplicates;
        let taken =
            if self.calm || self.prng.chance(3, 4) { new } else { self.prng.below(new + 1) };
        for (n, (id, bytes)) in messages.by_ref().take((duplicates + taken) as usize).enumerate() {
            assert_eq!(bytes, payload(index, id), "the payload of {id}");
            if n as u64 >= duplicates {
                assert_eq!(id, producer.base + producer.kept, "in order and once");
                producer.kept += 1;
                producer.held.hold(id);
            }
        }
        let acks = server.acks.as_mut().expect("it was greeted");
        acks.add_taken(producer.held.last_id(), duplicates + taken, self.now);
        if taken < new {
            server.offered = Some((first + duplicates + taken, messages.remaining().to_vec()));
        }
        None
    }

    /// The server closes. What it sent before is delivered.
    fn close(&mut self, at: usize, end: End) {
        let connection = &mut self.connections[at];
        let held = self.producers[connection.producer].held.last_id();
        let Some(mut server) = connection.server.take() else { return };
        let mut out = Vec::new();
        if let Some(acks) = &mut server.acks {
            acks.flush(&mut out, false);
        }
        if let End::Fault(fault) = end {
            assert_eq!(fault, Fault::TakenOver, "nobody here does anything else wrong");
            v2::write_error(&mut out, fault.code(), held, fault.text().as_bytes());
        }
        connection.down.extend(out);
    }

    /// A part of what the server sent is delivered to the producer.
    fn answer(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let producer = &mut self.producers[connection.producer];
        let len = self.prng.below(connection.down.len() as u64 + 1) as usize;
        let block: Vec<u8> = connection.down.drain(..len).collect();
        let Some(mut client) = connection.client.take() else { return };
        let mut input = &block[..];
        let mut open = true;
        loop {
            let frame = match client.reader.next(&mut input) {
                None => break,
                Some(frame) => frame.expect("the server sends nothing wrong"),
            };
            match frame {
                ServerFrame::Welcome(welcome) => {
                    assert_eq!(client.next, None, "one Welcome");
                    producer.known = true;
                    let from = match producer.safe {
                        None if welcome.last_id == 0 => producer.base,
                        safe => {
                            assert!(safe.is_none_or(|safe| safe <= welcome.last_id));
                            producer.safe = Some(welcome.last_id);
                            // Some producers ignore it, and send unacknowledged messages again.
                            let again = self.prng.below(4).min(welcome.last_id - producer.base);
                            welcome.last_id.wrapping_add(1).wrapping_sub(again)
                        }
                    };
                    client.acked = welcome.last_id;
                    client.next = Some(from);
                    client.limit = welcome.credit;
                }
                ServerFrame::Credit(limit) => {
                    assert!(limit > client.limit, "credit never falls");
                    client.limit = limit;
                }
                ServerFrame::Ack(ack) => {
                    client.check(&ack, producer);
                    producer.safe = producer.safe.max((ack.id > 0).then_some(ack.id));
                }
                ServerFrame::Error { code, id, .. } => {
                    assert_eq!(code, Fault::TakenOver.code());
                    assert!(id <= producer.held.last_id());
                    open = false;
                }
            }
        }
        let ended = connection.server.is_none() && connection.down.is_empty();
        if ended && client.said_bye && open {
            assert_eq!(client.covered, client.sent, "Bye is answered for all");
        }
        if open && !ended {
            connection.client = Some(client);
        }
    }

    /// The connection breaks: a part of the data in flight is delivered.
    fn cut(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let len = self.prng.below(connection.up.len() as u64 + 1) as usize;
        connection.up.truncate(len);
        connection.client = None;
        while self.connections[at].server.is_some() {
            let server = self.connections[at].server.as_ref().expect("it is there");
            if self.connections[at].up.is_empty() || server.offered.is_some() {
                break;
            }
            self.read(at);
        }
        self.connections[at].server = None;
    }
}

#[test]
fn each_message_is_stored_once_and_then_acknowledged() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        for _ in 0..1500 {
            world.step();
        }
        world.calm = true;
        let mut steps = 0;
        while !world.producers.iter().all(Producer::is_done) {
            world.step();
            steps += 1;
            assert!(steps < 20_000, "seed {seed}: it stands still");
        }
        assert!(world.producers.iter().all(|p| p.kept == MESSAGES), "seed {seed}");
    }
}
