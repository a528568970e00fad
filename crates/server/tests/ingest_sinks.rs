//! Classic ingest into lists and streams, on two workers and a simulated network: acknowledged
//! messages can be read, once and in order, and wake blocked clients. A message which cannot be
//! stored waits or ends its connection, and affects no other connection.

use crate::sim_world::{CUTTING, MS, Reply, Sim};
use driver::sim::{Ending, Faults, SimClient};
use ingest::{Order, Strategy};
use server::config::{Access, Config};
use server::ingest::ports::IngestCounters;

/// A connection that sends messages.
struct Producer {
    conn: SimClient,
    strategy: Strategy,
    name: char,
    said: u64,
    unsent: Vec<u8>,
    got: Vec<u8>,
    acknowledged: u64,
}

fn sim(seed: u64, faults: Faults, listen: &str) -> Sim {
    let mut config = Config::default();
    config.enable_debug_command = Access::Yes;
    Sim::with_ingest(seed, faults, config, listen)
}

fn counters(sim: &Sim, of: impl Fn(&IngestCounters) -> u64) -> u64 {
    sim.shared.ingest.open.iter().flat_map(|port| &port.workers).map(|w| of(w)).sum()
}

impl Producer {
    fn join(sim: &mut Sim, listener: usize, name: char) -> Self {
        let before = sim.shared.ingest.connections();
        let conn = sim.net.connect(&sim.ingest[listener]).expect("it listens and has room");
        sim.run_until(|sim| sim.shared.ingest.connections() > before);
        let server::ingest::ports::Protocol::Classic(strategy) =
            sim.shared.ingest.open[listener].terms.protocol
        else {
            panic!("a classic listener")
        };
        let (unsent, got) = (Vec::new(), Vec::new());
        Self { conn, strategy, name, said: 0, unsent, got, acknowledged: 0 }
    }

    /// The payload of a message: its producer, its number and padding.
    fn payload(&self, id: u64) -> String {
        format!("{}{id}{}", self.name, "-".repeat(id as usize * 7 % 50))
    }

    fn say(&mut self, count: u64) {
        for _ in 0..count {
            let payload = self.payload(self.said);
            let (id, size) = (self.said, payload.len() as u32);
            match self.strategy.order() {
                Order::Big => {
                    self.unsent.extend(id.to_be_bytes());
                    self.unsent.extend(size.to_be_bytes());
                }
                Order::Little => {
                    self.unsent.extend(id.to_le_bytes());
                    self.unsent.extend(size.to_le_bytes());
                }
            }
            self.unsent.extend(payload.as_bytes());
            self.said += 1;
        }
    }

    fn pump(&mut self, sim: &mut Sim) {
        let part = sim.prng.below(self.unsent.len() as u64 + 1) as usize;
        let part = if sim.prng.chance(1, 2) { part } else { part.min(9) };
        if part > 0 {
            let written = self.conn.write(&self.unsent[..part]);
            self.unsent.drain(..written);
        }
        let mut room = [0; 512];
        let read = self.conn.read(&mut room);
        self.got.extend(&room[..read]);
        let len = if self.strategy == Strategy::RequestReply { 8 } else { 12 };
        while self.got.len() >= len {
            let ack: Vec<u8> = self.got.drain(..len).collect();
            let id = *ack.first_chunk().expect("8 bytes");
            let id = match self.strategy.order() {
                Order::Big => u64::from_be_bytes(id),
                Order::Little => u64::from_le_bytes(id),
            };
            let skipped = ack[8..].first_chunk().map_or(0, |n| u32::from_le_bytes(*n));
            self.acknowledged += u64::from(skipped) + 1;
            assert_eq!(id + 1, self.acknowledged, "{}", self.strategy);
        }
    }

    fn is_done(&self) -> bool {
        self.acknowledged == self.said
    }
}

fn step(sim: &mut Sim, producers: &mut [Producer]) {
    for producer in producers {
        producer.pump(sim);
    }
    sim.step();
}

fn run(sim: &mut Sim, producers: &mut [Producer], done: impl Fn(&Sim, &[Producer]) -> bool) {
    while !done(sim, producers) {
        step(sim, producers);
    }
}

fn run_for(sim: &mut Sim, producers: &mut [Producer], ns: u64) {
    let end = sim.net.now().plus(ns);
    run(sim, producers, |sim, _| sim.net.now() >= end);
}

/// Entry numbers (for a stream) and payloads of one key.
fn read(sim: &mut Sim, client: usize, key: &str) -> Vec<(Option<u64>, String)> {
    let text = |reply: &Reply| match reply {
        Reply::Bulk(text) => text.clone(),
        other => panic!("{other:?} is no text"),
    };
    let listed = |reply| match reply {
        Reply::Array(members) => members,
        other => panic!("{other:?} is no array"),
    };
    if sim.ask(client, &["TYPE", key]) == Reply::Simple("list".into()) {
        let elements = listed(sim.ask(client, &["LRANGE", key, "0", "-1"]));
        return elements.iter().map(|element| (None, text(element))).collect();
    }
    let entries = listed(sim.ask(client, &["XRANGE", key, "-", "+"]));
    let entry = |entry| {
        let fields = listed(listed(entry).remove(1));
        let [id, number, data, payload] = &fields[..] else { panic!("{fields:?}") };
        assert_eq!((text(id), text(data)), ("id".into(), "data".into()));
        (Some(text(number).parse().expect("a number")), text(payload))
    };
    entries.into_iter().map(entry).collect()
}

/// Fails unless each producer's messages are stored once and in order, up to the last acknowledged
/// one.
fn check(all: &[(Option<u64>, String)], producers: &[&Producer]) {
    for producer in producers {
        let own: Vec<_> = all.iter().filter(|(_, text)| text.starts_with(producer.name)).collect();
        assert!(own.len() as u64 >= producer.acknowledged, "{} is missing", producer.name);
        for (id, (number, text)) in (0..).zip(own) {
            assert_eq!(*text, producer.payload(id), "{}", producer.strategy);
            assert!(number.is_none_or(|number| number == id), "{number:?} for {id}");
        }
    }
}

#[test]
fn acknowledged_messages_are_stored_on_a_faulty_network() {
    for seed in 0..20 {
        let listen: Vec<String> = Strategy::ALL
            .iter()
            .zip(["stream:s", "list:l", "stream:s db=3", "stream:t maxlen=~100000", "list:l"])
            .map(|(strategy, sink)| format!("h:0 strategy={strategy} sink={sink}"))
            .collect();
        let mut sim = sim(seed, CUTTING, &listen.join(" "));
        sim.connect(1);
        let mut producers: Vec<Producer> =
            (0..10).map(|n| Producer::join(&mut sim, n % 5, (b'a' + n as u8).into())).collect();
        for producer in &mut producers {
            producer.say(60);
        }
        let place = |n: usize| [("0", "s"), ("0", "l"), ("3", "s"), ("0", "t"), ("0", "l")][n % 5];
        let mut looked = 0;
        while !producers.iter().all(Producer::is_done) {
            step(&mut sim, &mut producers);
            let acknowledged: u64 = producers.iter().map(|p| p.acknowledged).sum();
            if acknowledged >= looked + 100 {
                looked = acknowledged;
                sim.forget_steps(); // reading takes many steps
                for n in 0..5 {
                    let (db, key) = place(n);
                    sim.ask(0, &["SELECT", db]);
                    let all = read(&mut sim, 0, key);
                    check(&all, &[&producers[n], &producers[n + 5]]);
                }
            }
        }
        for n in 0..5 {
            let (db, key) = place(n);
            sim.ask(0, &["SELECT", db]);
            let all = read(&mut sim, 0, key);
            let wanted = if key == "l" { 240 } else { 120 };
            assert_eq!(all.len(), wanted, "seed {seed}: {key}");
            check(&all, &[&producers[n], &producers[n + 5]]);
        }
        assert_eq!(counters(&sim, |c| c.messages.get()), 600);
        assert_eq!(counters(&sim, |c| c.errors.get()), 0);
    }
}

#[test]
fn blocked_clients_are_served_as_after_xadd_and_rpush() {
    let mut sim = sim(
        5,
        CUTTING,
        "h:0 strategy=sync sink=stream:s h:0 strategy=sync sink=list:l h:0 strategy=sync sink=list:m",
    );
    sim.connect(6);
    assert_eq!(sim.ask(0, &["XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"]), Reply::ok());
    sim.clients[1].say(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]);
    sim.clients[2].say(&["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"]);
    sim.clients[3].say(&["BLPOP", "l", "0"]);
    sim.clients[4].say(&["BLMOVE", "m", "further", "LEFT", "RIGHT", "0"]);
    sim.clients[5].say(&["BLPOP", "further", "0"]);
    sim.run_until(|sim| sim.shared.blocked.load(std::sync::atomic::Ordering::Relaxed) == 5);
    let mut producers: Vec<Producer> =
        (0..3).map(|n| Producer::join(&mut sim, n, ['a', 'b', 'c'][n])).collect();
    for producer in &mut producers {
        producer.say(3);
    }
    run(&mut sim, &mut producers, |_, all| all.iter().all(Producer::is_done));
    let bulk = |text: String| Reply::Bulk(text);
    for client in [1, 2] {
        let Reply::Array(streams) = sim.reply(client) else { panic!("entries") };
        assert!(format!("{streams:?}").contains(&producers[0].payload(0)), "{streams:?}");
    }
    let popped = |key: &str, text: String| Reply::Array(vec![bulk(key.into()), bulk(text)]);
    assert_eq!(sim.reply(3), popped("l", producers[1].payload(0)));
    assert_eq!(sim.reply(4), bulk(producers[2].payload(0)));
    assert_eq!(sim.reply(5), popped("further", producers[2].payload(0)));
    assert_eq!(sim.ask(0, &["LLEN", "l"]), Reply::Integer(2));
    assert_eq!(sim.ask(0, &["LLEN", "m"]), Reply::Integer(2));
    assert_eq!(sim.ask(0, &["XLEN", "s"]), Reply::Integer(3));
}

#[test]
fn messages_wait_while_memory_is_full_and_are_stored_later() {
    for seed in 0..10 {
        let mut sim =
            sim(seed, CUTTING, "h:0 strategy=async sink=stream:s h:0 strategy=sync sink=list:l");
        sim.connect(1);
        let mut producers: Vec<Producer> =
            (0..4).map(|n| Producer::join(&mut sim, n % 2, (b'a' + n as u8).into())).collect();
        for producer in &mut producers {
            producer.say(200);
        }
        run(&mut sim, &mut producers, |_, all| all.iter().all(|p| p.acknowledged > 20));
        assert_eq!(sim.ask(0, &["CONFIG", "SET", "maxmemory", "1"]), Reply::ok());
        run_for(&mut sim, &mut producers, 30 * MS);
        let sizes = |sim: &mut Sim| (sim.ask(0, &["XLEN", "s"]), sim.ask(0, &["LLEN", "l"]));
        let (before, acks) =
            (sizes(&mut sim), producers.iter().map(|p| p.acknowledged).sum::<u64>());
        let bytes = counters(&sim, |c| c.bytes.get());
        // Far longer than the idle timeout, which must not run while the server delays the client.
        run_for(&mut sim, &mut producers, 8_000 * MS);
        assert_eq!(sizes(&mut sim), before, "seed {seed}");
        assert_eq!(producers.iter().map(|p| p.acknowledged).sum::<u64>(), acks);
        assert_eq!(counters(&sim, |c| c.bytes.get()), bytes, "nothing more is read");
        assert_eq!(sim.shared.ingest.connections(), 4);
        assert_eq!(sim.ask(0, &["PING"]), Reply::Simple("PONG".into()));
        assert_eq!(sim.ask(0, &["CONFIG", "SET", "maxmemory", "0"]), Reply::ok());
        run(&mut sim, &mut producers, |_, all| all.iter().all(Producer::is_done));
        for (key, first) in [("s", 0), ("l", 1)] {
            let all = read(&mut sim, 0, key);
            assert_eq!(all.len(), 400);
            check(&all, &[&producers[first], &producers[first + 2]]);
        }
        assert_eq!(counters(&sim, |c| c.errors.get()), 0);
    }
}

#[test]
fn a_held_keyspace_and_a_client_pause_delay_messages() {
    for (seed, hold) in
        [(1, &["DEBUG", "SLEEP", "0.5"][..]), (2, &["CLIENT", "PAUSE", "500", "WRITE"])]
    {
        let mut sim = sim(
            seed,
            CUTTING,
            "h:0 strategy=sync sink=stream:s h:0 strategy=request-reply sink=list:l",
        );
        sim.connect(2);
        let mut producers: Vec<Producer> =
            (0..4).map(|n| Producer::join(&mut sim, n % 2, (b'a' + n as u8).into())).collect();
        for producer in &mut producers {
            producer.say(100);
        }
        run(&mut sim, &mut producers, |_, all| all.iter().all(|p| p.acknowledged > 10));
        let began = sim.net.now();
        sim.clients[1].say(hold);
        run_for(&mut sim, &mut producers, 50 * MS);
        let acks: u64 = producers.iter().map(|p| p.acknowledged).sum();
        run_for(&mut sim, &mut producers, 300 * MS);
        assert_eq!(producers.iter().map(|p| p.acknowledged).sum::<u64>(), acks, "{hold:?}");
        run(&mut sim, &mut producers, |_, all| all.iter().all(Producer::is_done));
        let took = sim.net.now().since(began);
        assert!((500 * MS..700 * MS).contains(&took), "{hold:?}: {took} ns");
        for (key, first) in [("s", 0), ("l", 1)] {
            let all = read(&mut sim, 0, key);
            check(&all, &[&producers[first], &producers[first + 2]]);
            assert_eq!(all.len(), 200);
        }
    }
}

#[test]
fn a_key_of_another_type_ends_the_connection() {
    let mut sim =
        sim(3, CUTTING, "h:0 strategy=sync sink=stream:s h:0 strategy=throttled sink=list:l");
    sim.connect(1);
    let mut producers: Vec<Producer> =
        (0..2).map(|n| Producer::join(&mut sim, n, ['a', 'b'][n])).collect();
    for producer in &mut producers {
        producer.say(300);
    }
    run(&mut sim, &mut producers, |_, all| all.iter().all(|p| p.acknowledged > 20));
    let (mut taken, keys) = (Vec::new(), ["s", "l"]);
    for key in keys {
        // The entries present when the type changes.
        sim.clients[0].say(&["MULTI"]);
        sim.clients[0].say(if key == "s" { &["XLEN", "s"] } else { &["LLEN", "l"] });
        sim.clients[0].say(&["SET", key, "other"]);
        sim.clients[0].say(&["EXEC"]);
        let replies: Vec<Reply> = (0..4).map(|_| sim.reply(0)).collect();
        let Reply::Array(results) = &replies[3] else { panic!("{replies:?}") };
        taken.push(results[0].integer() as u64);
    }
    for producer in &mut producers {
        producer.say(50);
    }
    run(&mut sim, &mut producers, |_, all| all.iter().all(|p| p.conn.ending().is_some()));
    for (producer, taken) in producers.iter().zip(taken) {
        assert_eq!(producer.conn.ending(), Some(Ending::Closed));
        assert_eq!(producer.acknowledged, taken, "what was kept, and nothing else");
    }
    assert_eq!(counters(&sim, |c| c.errors.get()), 2);
    assert_eq!(sim.ask(0, &["GET", "s"]), Reply::Bulk("other".into()));
}

#[test]
fn a_message_dirties_watches_and_is_sent_to_monitors() {
    let mut sim = sim(4, CUTTING, "h:0 strategy=sync sink=stream:s");
    sim.connect(2);
    assert_eq!(sim.ask(0, &["WATCH", "s"]), Reply::ok());
    assert_eq!(sim.ask(1, &["MONITOR"]), Reply::ok());
    let mut producers = [Producer::join(&mut sim, 0, 'a')];
    producers[0].say(1);
    run(&mut sim, &mut producers, |_, all| all[0].is_done());
    let Reply::Simple(line) = sim.reply(1) else { panic!("a line") };
    assert!(line.ends_with("[0 ingest] \"INGEST\" \"stream:s\" \"1\""), "{line}");
    assert_eq!(sim.ask(0, &["MULTI"]), Reply::ok());
    assert_eq!(sim.ask(0, &["PING"]), Reply::Simple("QUEUED".into()));
    assert_eq!(sim.ask(0, &["EXEC"]), Reply::NullArray);
}

#[test]
fn a_panic_is_rolled_back_and_closes_only_its_connection() {
    for (seed, command, key) in [(1, "xadd", "s"), (2, "rpush", "l")] {
        let mut sim =
            sim(seed, CUTTING, "h:0 strategy=sync sink=stream:s h:0 strategy=sync sink=list:l");
        sim.connect(1);
        let which = usize::from(key == "l");
        let mut producers: Vec<Producer> =
            (0..2).map(|n| Producer::join(&mut sim, which, ['a', 'b'][n])).collect();
        producers[0].say(40);
        run(&mut sim, &mut producers, |_, all| all[0].is_done());
        assert_eq!(sim.ask(0, &["DEBUG", "PANIC-IN-COMMAND", command, "1"]), Reply::ok());
        producers[0].say(40);
        run(&mut sim, &mut producers, |_, all| all[0].conn.ending().is_some());
        assert_eq!(counters(&sim, |c| c.errors.get()), 1);
        producers[1].say(40);
        run(&mut sim, &mut producers, |_, all| all[1].is_done());
        let all = read(&mut sim, 0, key);
        check(&all, &[&producers[0], &producers[1]]);
        assert_eq!(all.len() as u64, producers[0].acknowledged + 40, "all or nothing of a block");
    }
}

#[test]
fn a_listener_enforces_its_own_limits() {
    let mut sim = sim(6, CUTTING, "h:0 strategy=sync sink=list:l max-connections=2 max-message=10");
    sim.connect(1);
    let mut producers: Vec<Producer> =
        (0..2).map(|n| Producer::join(&mut sim, 0, ['a', 'b'][n])).collect();
    let third = sim.net.connect(&sim.ingest[0]).expect("the kernel takes it");
    sim.run_until(|_| third.ending().is_some());
    assert_eq!(counters(&sim, |c| c.errors.get()), 1);
    producers[0].say(3); // the second payload has 9 bytes, the third 16
    run(&mut sim, &mut producers, |_, all| all[0].conn.ending().is_some());
    assert_eq!((producers[0].acknowledged, counters(&sim, |c| c.errors.get())), (2, 2));
    assert_eq!(sim.ask(0, &["LLEN", "l"]), Reply::Integer(2));
    let left = producers.remove(0);
    drop(left);
    let again = Producer::join(&mut sim, 0, 'c');
    assert_eq!(again.conn.ending(), None);
}
