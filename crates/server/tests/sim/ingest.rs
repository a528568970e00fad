//! Classic ingest on two real workers, a simulated network and a simulated clock: whatever happens
//! to the bytes in transit, every message is acknowledged once, in order, on time, and not before
//! its last byte was sent.

use crate::sim_world::{CUTTING, MS};
use base::prng::Prng;
use base::sync::Arc;
use driver::sim::{Ending, Faults, SimClient, SimDriver, SimNet};
use driver::{Driver, ListenAddr, ListenOptions, ListenerId, PeerAddr};
use ingest::{Order, Strategy, TICK_NS};
use server::boot;
use server::config::Config;
use server::ingest::ports::{IngestCounters, IngestPort, Terms};
use server::shared::Shared;
use server::worker::Worker;
use server::worker::message::Message;

const WORKERS: usize = 2;
const STEPS_MAX: u32 = 400_000;

/// A network with almost no delay, so that the clock advances in small steps.
const SWIFT: Faults = Faults { delay_ns_max: 100_000, ..Faults::NONE };

struct World {
    net: SimNet,
    shared: Arc<Shared>,
    workers: Vec<Worker<SimDriver<Message>>>,
    ports: Vec<PeerAddr>,
    prng: Prng,
    steps: u32,
}

struct Client {
    strategy: Strategy,
    conn: SimClient,
    unsent: Vec<u8>,
    written: usize,
    /// Where each message ends in the stream.
    ends: Vec<usize>,
    got: Vec<u8>,
    /// Messages acknowledged, and acknowledgements.
    acknowledged: usize,
    acks: usize,
    ack_times: Vec<u64>,
    reads: bool,
    /// Writes everything that is pending at once.
    whole: bool,
}

impl World {
    fn new(seed: u64, faults: Faults, config: Config) -> Self {
        Self::listening_on("127.0.0.1:0", seed, faults, config)
    }

    fn listening_on(host: &str, seed: u64, faults: Faults, config: Config) -> Self {
        let net = SimNet::new(seed, faults);
        let mut drivers: Vec<SimDriver<Message>> = (0..WORKERS).map(|_| net.driver()).collect();
        let at = ListenAddr::Tcp(host.parse().expect("an address"));
        let mut shared = boot::make_shared(config, &mut drivers[0], WORKERS, || (0, 0));
        let mut ports = Vec::new();
        for strategy in Strategy::ALL {
            let listener = drivers[0].listen(&at, &ListenOptions { backlog: 64 }).expect("free");
            let addr = drivers[0].listen_addr(listener).expect("just opened");
            let port =
                IngestPort::new(listener, addr.to_string(), Terms::classic(strategy), WORKERS);
            shared.ingest.open.push(port);
            ports.push(addr);
        }
        let senders: Vec<_> = drivers.iter().map(Driver::mailbox).collect();
        assert!(shared.mailboxes.set(senders).is_ok(), "set once");
        let shared = Arc::new(shared);
        let listeners: Vec<ListenerId> = shared.ingest.open.iter().map(|p| p.listener).collect();
        let workers = drivers.into_iter().enumerate().map(|(id, driver)| {
            let listeners = if id == 0 { listeners.clone() } else { Vec::new() };
            Worker::new(driver, shared.clone(), id, listeners)
        });
        let workers = workers.collect();
        Self { net, shared, workers, ports, prng: Prng::new(!seed), steps: 0 }
    }

    fn connect(&mut self, which: usize) -> Client {
        let before = self.shared.ingest.connections();
        let conn = self.net.connect(&self.ports[which]).expect("it listens and has room");
        while self.counters(|c| c.connections.get()) != before + 1 {
            self.turn();
        }
        Client {
            strategy: Strategy::ALL[which],
            conn,
            unsent: Vec::new(),
            written: 0,
            ends: Vec::new(),
            got: Vec::new(),
            acknowledged: 0,
            acks: 0,
            ack_times: Vec::new(),
            reads: true,
            whole: false,
        }
    }

    fn turn(&mut self) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "the story does not end");
        for worker in self.workers.iter_mut().filter(|w| !w.is_done()) {
            worker.turn();
        }
    }

    fn step(&mut self, clients: &mut [Client]) {
        for client in clients.iter_mut() {
            client.pump(&mut self.prng, self.net.now().0);
        }
        self.turn();
    }

    fn run_for(&mut self, clients: &mut [Client], ns: u64) {
        let end = self.net.now().plus(ns);
        while self.net.now() < end {
            self.step(clients);
        }
    }

    fn counters(&self, of: impl Fn(&IngestCounters) -> u64) -> u64 {
        self.shared.ingest.open.iter().flat_map(|p| &p.workers).map(|w| of(w)).sum()
    }
}

impl Client {
    fn say(&mut self, payload: usize) {
        let id = self.ends.len() as u64;
        let size = match self.strategy.order() {
            Order::Big => (payload as u32).to_be_bytes(),
            Order::Little => (payload as u32).to_le_bytes(),
        };
        self.unsent.extend([&id.to_le_bytes()[..], &size, &vec![0xaa; payload]].concat());
        self.ends.push(self.ends.last().unwrap_or(&0) + 12 + payload);
    }

    fn pump(&mut self, prng: &mut Prng, now: u64) {
        let part = prng.below(self.unsent.len() as u64 + 1) as usize;
        let part = if prng.chance(1, 2) { part } else { part.min(9) };
        let part = if self.whole { self.unsent.len() } else { part };
        if part > 0 {
            let written = self.conn.write(&self.unsent[..part]);
            self.unsent.drain(..written);
            self.written += written;
        }
        if !self.reads {
            return;
        }
        let mut room = [0; 512];
        let most = 1 + prng.below(room.len() as u64) as usize;
        let read = self.conn.read(&mut room[..most]);
        self.got.extend(&room[..read]);
        self.check(now);
    }

    /// Checks that every acknowledgement follows the previous one and covers whole messages only.
    fn check(&mut self, now: u64) {
        let len = if self.strategy == Strategy::RequestReply { 8 } else { 12 };
        while self.got.len() >= len {
            let ack: Vec<u8> = self.got.drain(..len).collect();
            let id = u64::from_le_bytes(*ack.first_chunk().expect("8 bytes"));
            let skipped = ack[8..].first_chunk().map_or(0, |n| u32::from_le_bytes(*n));
            self.acknowledged += skipped as usize + 1;
            assert_eq!(id + 1, self.acknowledged as u64, "{}", self.strategy);
            assert!(self.ends[id as usize] <= self.written, "{}: not whole", self.strategy);
            self.acks += 1;
            self.ack_times.push(now);
        }
    }

    fn is_done(&self) -> bool {
        self.acknowledged == self.ends.len()
    }
}

#[test]
fn every_message_is_acknowledged_on_a_faulty_network() {
    for seed in 0..60 {
        let mut world = World::new(seed, CUTTING, Config::default());
        let mut prng = Prng::new(seed);
        let mut clients: Vec<Client> = (0..10).map(|n| world.connect(n % 5)).collect();
        for client in &mut clients {
            for _ in 0..60 {
                let size = if prng.chance(1, 20) { 2_000 } else { 12 };
                client.say(prng.below(size) as usize);
            }
        }
        while !clients.iter().all(Client::is_done) {
            world.step(&mut clients);
        }
        assert_eq!(world.counters(|c| c.messages.get()), 600, "seed {seed}");
        let acks: usize = clients.iter().map(|c| c.acks).sum();
        assert_eq!(world.counters(|c| c.acks.get()), acks as u64, "seed {seed}");
        let bytes: usize = clients.iter().map(|c| c.written).sum();
        assert_eq!(world.counters(|c| c.bytes.get()), bytes as u64, "seed {seed}");
        let each: Vec<u32> = (0..WORKERS).map(|w| world.shared.ingest.of_worker(w)).collect();
        assert_eq!(each, [5, 5], "connections are distributed");
        drop(clients);
        while world.shared.ingest.connections() > 0 {
            world.turn();
        }
        assert_eq!(world.counters(|c| c.connections.get() + c.errors.get()), 0, "seed {seed}");
    }
}

#[test]
fn timed_acknowledgements_are_sent_at_their_ticks() {
    for (which, strategy) in Strategy::ALL.into_iter().enumerate() {
        let mut world = World::new(1, SWIFT, Config::default());
        let mut clients = [world.connect(which), world.connect(0)];
        for client in &mut clients {
            client.whole = true;
        }
        let born = world.net.now().0;
        let mut sent = born;
        while clients[0].ends.len() < 40 || !clients[0].is_done() {
            if world.net.now().0 >= born + clients[0].ends.len() as u64 * MS
                && clients[0].ends.len() < 40
            {
                clients[0].say(5);
                sent = world.net.now().0;
            }
            // The size of a time step follows from the messages sent.
            if clients[1].unsent.is_empty() {
                clients[1].say(0);
            }
            world.step(&mut clients);
        }
        let c = &clients[0];
        let last = c.ack_times[c.acks - 1];
        match strategy {
            Strategy::Throttled | Strategy::HeadRest => {
                assert!((8..=9).contains(&c.acks), "{strategy}: {} acks in 40 ms", c.acks);
                for time in &c.ack_times {
                    // The connection is slightly older than the test assumes, and bytes take time
                    // to arrive.
                    let late = (time - born + MS / 5) % TICK_NS;
                    assert!(late < MS, "{strategy}: {late} ns after the tick");
                }
            }
            Strategy::Async => {
                assert_eq!(c.acks, 2, "the 22nd block does not wait");
                let waited = last - sent;
                assert!((TICK_NS..TICK_NS + MS).contains(&waited), "{waited} ns");
            }
            Strategy::RequestReply | Strategy::Sync => assert_eq!(c.acks, 40),
        }
    }
}

#[test]
fn only_idle_connections_are_closed_by_the_idle_timeout() {
    for seed in 100..120 {
        let mut world = World::new(seed, CUTTING, Config::default());
        let mut quiet: Vec<Client> = (0..5).map(|n| world.connect(n)).collect();
        let mut halves: Vec<Client> = (0..5).map(|n| world.connect(n)).collect();
        let mut busy: Vec<Client> = (0..5).map(|n| world.connect(n)).collect();
        for client in quiet.iter_mut().chain(&mut halves) {
            client.say(5);
        }
        for client in &mut halves {
            client.unsent.extend([1; 11]);
        }
        for second in 0..8 {
            for client in &mut busy {
                client.say(3);
            }
            let end = world.net.now().plus(1_000 * MS);
            while world.net.now() < end {
                world.step(&mut quiet);
                world.step(&mut halves);
                world.step(&mut busy);
            }
            let open = if second < 4 { 15 } else { 5 };
            let now = world.shared.ingest.connections();
            assert!(now == open || second == 4, "seed {seed}: {now} after {second} s");
        }
        for client in quiet.iter().chain(&halves) {
            assert!(client.acknowledged == 1, "{}", client.strategy);
            assert_eq!(client.conn.ending(), Some(Ending::Closed), "{}", client.strategy);
        }
        assert!(busy.iter().all(Client::is_done));
        assert_eq!(world.counters(|c| c.errors.get()), 5, "half a message is an error");
    }
}

#[test]
fn a_shutdown_acknowledges_what_was_received() {
    for seed in 200..240 {
        let mut world = World::new(seed, Faults::NONE, Config::default());
        let mut clients: Vec<Client> = (0..10).map(|n| world.connect(n % 5)).collect();
        for client in &mut clients {
            (0..3).for_each(|_| client.say(5));
            let all = std::mem::take(&mut client.unsent);
            client.written = client.conn.write(&all);
        }
        while world.counters(|c| c.messages.get()) < 30 {
            world.turn();
        }
        let began = world.net.now();
        world.shared.begin_shutdown();
        while !world.workers.iter().all(Worker::is_done) {
            world.step(&mut clients);
        }
        let now = world.net.now().0;
        assert!(world.net.now().since(began) < TICK_NS, "it waits for no timer");
        for client in &mut clients {
            for _ in 0..20 {
                client.pump(&mut world.prng, now);
            }
            assert!(client.is_done(), "seed {seed}: {}", client.strategy);
            assert_eq!(client.conn.ending(), Some(Ending::Closed));
        }
    }
}

#[test]
fn a_client_which_reads_no_acknowledgements_is_paused_then_closed() {
    let mut world = World::new(7, CUTTING, Config::default());
    let mut clients: Vec<Client> = vec![world.connect(0), world.connect(0)];
    clients[0].reads = false;
    for client in &mut clients {
        (0..3_000).for_each(|_| client.say(0));
    }
    while !clients[1].is_done() {
        world.step(&mut clients);
    }
    world.run_for(&mut clients, 1_000 * MS);
    assert!(!clients[0].unsent.is_empty(), "it was stopped");
    // At most what the network buffers, plus one read.
    assert!(clients[0].written < 6_000, "{}", clients[0].written);
    world.run_for(&mut clients, 6_000 * MS);
    assert_eq!(world.shared.ingest.connections(), 0);
    assert_eq!(world.counters(|c| c.errors.get()), 1);
}

#[test]
fn a_half_closed_client_receives_its_last_acknowledgement() {
    for (seed, which) in (300..340).zip((0..5).cycle()) {
        let mut world = World::new(seed, CUTTING, Config::default());
        let mut clients = [world.connect(which)];
        (0..20).for_each(|_| clients[0].say(5));
        while !clients[0].unsent.is_empty() {
            world.step(&mut clients);
        }
        clients[0].conn.shutdown_write();
        while clients[0].conn.ending().is_none() {
            world.step(&mut clients);
        }
        assert!(clients[0].is_done(), "seed {seed}: {}", clients[0].strategy);
        assert_eq!(world.counters(|c| c.errors.get()), 0);
    }
}

/// The classic protocols have no authentication. A password must not open their listeners to other
/// hosts.
#[test]
fn a_password_does_not_disable_protected_mode_of_classic_listeners() {
    for (password, protected_mode, is_let_in) in
        [("", true, false), ("secret", true, false), ("secret", false, true)]
    {
        let mut config = Config::default();
        config.protected_mode = protected_mode;
        config.password = server::config::Secret::from(password.as_bytes());
        let mut world = World::listening_on("10.0.0.1:0", 1, SWIFT, config);
        let _stranger = world.net.connect(&world.ports[3]).expect("it listens and has room");
        while world.counters(|c| c.errors.get() + c.total_connections.get()) == 0 {
            world.turn();
        }
        let served = world.counters(|c| c.total_connections.get()) == 1;
        assert_eq!(served, is_let_in, "{password:?} {protected_mode}");
    }
}
