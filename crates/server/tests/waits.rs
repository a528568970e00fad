//! A million blocked commands which time out leave no byte allocated, nor do those that CLIENT
//! UNBLOCK or a lost connection ends. An allocator which counts live bytes shows that tickets,
//! timers and the queues of keys are all released.
#![allow(unsafe_code)] // an allocator that counts

#[allow(dead_code)] // the other tests of the simulated world use the rest
mod sim_world;

use driver::sim::{Faults, SimClient};
use sim_world::{MS, Sim, encode};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes allocated at this moment.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// Blocks freed so far.
static FREED: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        FREED.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise is handed on; the block came from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as i64 - layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is handed on; the block came from the same allocator.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CLIENTS: usize = 500;
/// Blocked commands of one client in one pipeline.
const DEPTH: usize = 4;
const TIMEOUTS: usize = 1_000_000;
const UNBLOCKED: usize = 20_000;
const LOST: usize = 5_000;
/// Keys of one wait, and the maximum of blocks freed per turn while they are released. The bound
/// covers a part of the keys, not all of them.
const MANY_KEYS: usize = 200_000;
const FREED_PER_TURN_MAX: i64 = 20_000;
/// By how many bytes buffers differ after other requests. One ticket has more than 300 bytes.
const SLACK_BYTES: i64 = 16 * 1024;

/// Two workers, clients which block, and one client which does not.
struct World {
    sim: Sim,
    clients: Vec<SimClient>,
    ids: Vec<String>,
    round: usize,
}

impl World {
    fn new() -> Self {
        let mut sim = Sim::new(7, Faults::NONE, server::config::Config::default());
        sim.connect(1);
        let mut world = Self { sim, clients: Vec::new(), ids: Vec::new(), round: 0 };
        for _ in 0..CLIENTS {
            world.connect();
        }
        world
    }

    /// Allocates the wait table of every slot. It is allocated on first use and never freed, so it
    /// is part of the keyspace's own size.
    fn use_every_slot(&mut self) {
        const WATCHED: usize = 200;
        let client = self.sim.join();
        for round in 0..1000 {
            let names: Vec<String> =
                (0..WATCHED).map(|n| format!("w{}", round * WATCHED + n)).collect();
            let mut args = vec!["WATCH"];
            args.extend(names.iter().map(String::as_str));
            assert_eq!(self.line(&client, &encode(&args)), b"+OK\r\n");
            assert_eq!(self.line(&client, &encode(&["UNWATCH"])), b"+OK\r\n");
            self.sim.forget_steps();
        }
        client.reset();
        self.sim.run_until(|sim| sim.shared.registry.len() == CLIENTS + 1);
    }

    /// A request, and its reply of one line.
    fn line(&mut self, client: &SimClient, request: &[u8]) -> Vec<u8> {
        assert_eq!(client.write(request), request.len());
        let mut got = Vec::new();
        while !got.ends_with(b"\r\n") {
            self.sim.step();
            read(client, &mut got);
        }
        got
    }

    fn connect(&mut self) {
        let client = self.sim.join();
        let got = self.line(&client, &encode(&["CLIENT", "ID"]));
        self.ids.push(String::from_utf8_lossy(&got[1..got.len() - 2]).into_owned());
        self.clients.push(client);
    }

    /// A blocked command on one private key and some shared keys.
    fn request(&self, client: usize, n: usize, timeout: &str) -> Vec<u8> {
        let (own, shared) = (format!("own:{client}:{n}"), format!("shared:{}", self.round % 7));
        match n % 4 {
            0 => encode(&["BLPOP", &own, &shared, "another", timeout]),
            1 => encode(&["BZPOPMIN", &shared, &own, timeout]),
            2 => encode(&["BLMOVE", &own, &shared, "LEFT", "RIGHT", timeout]),
            _ => encode(&["BLMPOP", timeout, "2", &shared, &shared, "LEFT"]),
        }
    }

    /// Every client blocks several times, one after the other, until its timeout.
    fn time_out(&mut self) {
        for client in 0..CLIENTS {
            let requests: Vec<u8> =
                (0..DEPTH).flat_map(|n| self.request(client, n + self.round, "0.002")).collect();
            assert_eq!(self.clients[client].write(&requests), requests.len());
        }
        self.until_answered(DEPTH * b"*-1\r\n".len());
    }

    fn until_answered(&mut self, bytes: usize) {
        let mut left = vec![bytes; CLIENTS];
        let mut scratch = Vec::new();
        while left.iter().any(|left| *left > 0) {
            self.sim.step();
            for (client, left) in self.clients.iter().zip(&mut left).filter(|(_, left)| **left > 0)
            {
                scratch.clear();
                read(client, &mut scratch);
                assert!(scratch.iter().all(|byte| b"*-1\r\n".contains(byte)), "nulls of arrays");
                *left -= scratch.len();
            }
        }
        self.round += 1;
    }

    fn all_block(&mut self) {
        for client in 0..CLIENTS {
            let request = self.request(client, client, "0");
            assert_eq!(self.clients[client].write(&request), request.len());
        }
        let blocked = |sim: &Sim| sim.shared.blocked.load(Relaxed) == CLIENTS as u64;
        self.sim.run_until(blocked);
    }

    /// Every client blocks without a timeout. CLIENT UNBLOCK ends its wait.
    fn unblock(&mut self) {
        self.all_block();
        for id in self.ids.clone() {
            let reply = self.sim.ask(0, &["CLIENT", "UNBLOCK", &id]);
            assert_eq!(reply.integer(), 1);
        }
        self.until_answered(b"*-1\r\n".len());
    }

    /// Every client blocks without a timeout. Then its connection is reset.
    fn reset_while_blocked(&mut self) {
        self.all_block();
        self.reconnect();
    }

    /// Every client's connection is reset while the client is not blocked.
    fn reset_while_idle(&mut self) {
        self.reconnect();
    }

    fn reconnect(&mut self) {
        self.clients.drain(..).for_each(|client| client.reset());
        self.ids.clear();
        self.sim.run_until(|sim| sim.shared.registry.len() == 1);
        self.sim.run_for(MS);
        for _ in 0..CLIENTS {
            self.connect();
        }
    }

    /// One client waits for many keys and disconnects. Returns the maximum of blocks freed in one
    /// turn.
    fn reset_with_many_keys(&mut self) -> i64 {
        let names: Vec<String> = (0..MANY_KEYS).map(|n| format!("many:{n}")).collect();
        let words: Vec<&str> =
            ["BLPOP"].into_iter().chain(names.iter().map(String::as_str)).chain(["0"]).collect();
        let (request, client, mut sent) = (encode(&words), self.sim.join(), 0);
        while sent < request.len() {
            sent += client.write(&request[sent..]);
            self.sim.step();
        }
        self.sim.run_until(|sim| sim.shared.blocked.load(Relaxed) == 1);
        assert_eq!(self.sim.shared.keyspace.waited_keys(), MANY_KEYS as u64);
        client.reset();
        let mut most = 0;
        while self.sim.shared.keyspace.waited_keys() > 0 {
            most = most.max(self.freed_in_a_step());
        }
        (0..100).map(|_| self.freed_in_a_step()).fold(most, i64::max)
    }

    fn freed_in_a_step(&mut self) -> i64 {
        let before = FREED.load(Relaxed);
        self.sim.step();
        FREED.load(Relaxed) - before
    }

    /// Live bytes when no work is pending.
    fn live(&mut self) -> i64 {
        self.sim.clients[0].forget();
        self.sim.run_for(500 * MS);
        self.sim.forget_steps();
        assert_eq!(self.sim.shared.blocked.load(Relaxed), 0);
        assert_eq!(self.sim.shared.keyspace.waited_keys(), 0, "queues of keys");
        assert_eq!(self.sim.shared.keyspace.watched_slots(), 0, "queues in slots");
        LIVE.load(Relaxed)
    }
}

fn read(client: &SimClient, got: &mut Vec<u8>) {
    let mut room = [0; 512];
    let read = client.read(&mut room);
    got.extend_from_slice(&room[..read]);
}

#[test]
fn a_million_timeouts_leak_no_memory() {
    let mut world = World::new();
    world.use_every_slot();
    // Buffers, and the tables of a slot, grow to their final size.
    for _ in 0..15 {
        world.time_out();
    }
    world.unblock();
    for _ in 0..LOST / CLIENTS {
        world.reset_while_blocked();
    }
    world.sim.forget_steps();
    assert_no_leak(
        "timeouts",
        leaked_bytes(&mut world, "timeouts", TIMEOUTS / CLIENTS / DEPTH, World::time_out),
    );
    assert_no_leak(
        "CLIENT UNBLOCK",
        leaked_bytes(&mut world, "CLIENT UNBLOCK", UNBLOCKED / CLIENTS, World::unblock),
    );
    // The simulated network records every connection ever made, in vectors which double now and
    // then. So only a round in the middle is measured.
    let mut middle = |act: fn(&mut World)| {
        let one = |_| leaked_bytes(&mut world, "a round of lost connections", 1, act);
        let mut rounds: Vec<i64> = (0..LOST / CLIENTS).map(one).collect();
        rounds.sort_unstable();
        rounds[rounds.len() / 2]
    };
    let (idle, lost) = (middle(World::reset_while_idle), middle(World::reset_while_blocked));
    assert_no_leak("lost connections", lost - idle);
    let freed = world.reset_with_many_keys();
    println!("{freed} blocks freed in one turn at most");
    assert!(freed <= FREED_PER_TURN_MAX, "{freed} blocks freed in one turn");
}

/// Live bytes added by this many rounds.
fn leaked_bytes(world: &mut World, what: &str, rounds: usize, act: fn(&mut World)) -> i64 {
    let before = world.live();
    for round in 0..rounds {
        act(world);
        if round % 50 == 49 {
            world.sim.forget_steps();
        }
    }
    let more = world.live() - before;
    println!("{what}: {rounds} rounds of {CLIENTS}, {more} bytes more");
    more
}

fn assert_no_leak(what: &str, more: i64) {
    assert!(more <= SLACK_BYTES, "{more} bytes after {what}");
}
