//! Whole servers of several workers in a world of the baton. Each seed runs in a process of its own
//! (this program again), because a killed server is never freed.
#![cfg(sim)]

mod baton_messages;
#[allow(dead_code)] // some of it is for other tests
mod sim_world;

use base::MonoNs;
use base::prng::Prng;
use base::sync::baton::{Baton, Options, Rates, START_NS, Status, Summary};
use driver::PeerAddr;
use driver::sim::{DiskFaults, Ending, Faults, SimClient, SimNet};
use server::boot::simulated::{self, Server};
use server::config::{Bind, Config};
use sim_world::{CUTTING, Reply, encode, parse};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const WORKERS: usize = 3;
const SECOND: u64 = 1_000_000_000;
/// Simulated time after which a run that has not ended has failed.
const LIMIT_NS: u64 = 120 * SECOND;
const ROUNDS: usize = 60;
/// The clients' work takes at most 30 ms; who is not woken waits for timers of up to 100 ms.
const WORK_NS_MAX: u64 = 60_000_000;

/// A world with one server.
struct World {
    baton: Baton,
    net: SimNet,
    server: Server,
    prng: Prng,
}

/// A connection, and what it waits for.
struct Client {
    conn: SimClient,
    unsent: Vec<u8>,
    got: Vec<u8>,
}

fn config() -> Config {
    let mut config = Config::default();
    config.bind = vec![Bind { host: "127.0.0.1".into(), optional: false }];
    config
}

impl World {
    fn start(seed: u64, rates: Rates, faults: Faults) -> Self {
        Self::start_on(seed, rates, faults, None)
    }

    /// The same; this is the file that the server loads.
    fn start_on(seed: u64, rates: Rates, faults: Faults, file: Option<&[u8]>) -> Self {
        let trace = std::env::var_os("BATON_TRACE").map(|path| {
            let file = std::fs::File::create(path).expect("a file for the trace");
            Box::new(std::io::BufWriter::new(file)) as Box<dyn std::io::Write + Send>
        });
        let baton = Baton::start(Options { seed, rates, trace });
        let net = SimNet::new(seed, faults);
        let server = if let Some(file) = file {
            net.disk().install(Path::new("/data/dump.rdb"), file, 0o640).expect("room");
            net.disk().set_faults(DiskFaults { delay_ns_max: 500_000, ..DiskFaults::NONE });
            let mut config = config();
            config.dir = "/data".into();
            simulated::start(&baton, "server", (&net, &net.disk()), config, WORKERS)
        } else {
            simulated::start(&baton, "server", (&net, &net.disk()), config(), WORKERS)
        };
        Self { baton, net, server, prng: Prng::new(!seed) }
    }

    /// Connects as soon as the server listens.
    fn connect(&self) -> Client {
        let addr = PeerAddr::Tcp("127.0.0.1:6379".parse().expect("an address"));
        loop {
            if let Some(conn) = self.net.connect(&addr) {
                return Client { conn, unsent: Vec::new(), got: Vec::new() };
            }
            self.server.shared().expect("it starts");
            base::sync::thread::sleep(std::time::Duration::from_micros(100));
        }
    }

    /// Lets clients take their turns until `turn` says that all is done.
    fn run(&mut self, mut turn: impl FnMut(&mut Prng) -> bool) {
        loop {
            let moment = self.net.moment();
            if turn(&mut self.prng) {
                return;
            }
            let now = self.net.now();
            let late = now.0 > START_NS + LIMIT_NS;
            assert!(!late, "the run does not end\n{}", self.baton.report());
            self.net.wait(moment, Some(MonoNs(now.0 + SECOND)));
        }
    }

    /// Ends the server in order.
    fn shut_down(mut self) -> Summary {
        let mut client = self.connect();
        client.say(&["SHUTDOWN", "NOSAVE"]);
        self.run(|prng| client.pump(prng).is_some());
        while self.baton.status(self.server.group) == Status::Running {
            base::sync::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(self.baton.status(self.server.group), Status::Exited(0));
        self.baton.end()
    }
}

impl Client {
    fn say(&mut self, args: &[&str]) {
        self.unsent.extend(encode(args));
    }

    /// Writes and reads what the network takes and has, in parts; returns how the connection ended.
    fn pump(&mut self, prng: &mut Prng) -> Option<Ending> {
        let part = 1 + prng.below(40) as usize;
        while !self.unsent.is_empty() {
            let written = self.conn.write(&self.unsent[..part.min(self.unsent.len())]);
            if written == 0 {
                break;
            }
            self.unsent.drain(..written);
        }
        let mut room = [0; 4096];
        loop {
            match self.conn.read(&mut room) {
                0 => return self.conn.ending(),
                read => self.got.extend(&room[..read]),
            }
        }
    }

    fn take_reply(&mut self) -> Option<Reply> {
        let (reply, len) = parse(&self.got)?;
        self.got.drain(..len);
        Some(reply)
    }
}

/// What a client does in round `n` of its own; its request and the test of the reply.
fn request(client: usize, n: usize) -> Vec<String> {
    let words: &[&str] = match (client, n % 4) {
        (_, 0) => &["SET", "key", "value"],
        (_, 1) => &["GET", "key"],
        (_, 2) => &["INCR", "counter"],
        (0 | 1, _) => &["RPUSH", "list", "value"],
        (_, _) => &["BLPOP", "list", "0"],
    };
    let own = |word: &&str| match *word {
        "key" => format!("key:{client}"),
        "value" => format!("{client}.{}", n - n % 4),
        word => word.to_owned(),
    };
    words.iter().map(own).collect()
}

/// Four clients write and read keys of their own, count together, push and pop.
fn clients_at_work(seed: u64) -> Summary {
    const CLIENTS: usize = 4;
    let mut world = World::start(seed, Rates::ROUGH, CUTTING);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| world.connect()).collect();
    let mut rounds = [0; CLIENTS];
    let (mut counts, mut popped) = (BTreeSet::new(), BTreeSet::new());
    let mut asked = [false; CLIENTS];
    world.run(|prng| {
        for (i, client) in clients.iter_mut().enumerate() {
            if rounds[i] == ROUNDS {
                continue;
            }
            if !std::mem::replace(&mut asked[i], true) {
                let words = request(i, rounds[i]);
                client.say(&words.iter().map(String::as_str).collect::<Vec<_>>());
            }
            assert_eq!(client.pump(prng), None, "nobody closes");
            let Some(reply) = client.take_reply() else { continue };
            let value = format!("{i}.{}", rounds[i] - rounds[i] % 4);
            match (rounds[i] % 4, reply) {
                (0, reply) => assert_eq!(reply, Reply::ok()),
                (1, reply) => assert_eq!(reply, Reply::Bulk(value)),
                (2, reply) => assert!(counts.insert(reply.integer()), "counted twice"),
                (_, Reply::Array(pair)) => {
                    let [Reply::Bulk(_), Reply::Bulk(element)] = &pair[..] else {
                        panic!("{pair:?}")
                    };
                    assert!(popped.insert(element.clone()), "{element} was popped twice");
                }
                (_, reply) => assert!((1..).contains(&reply.integer())),
            }
            (rounds[i], asked[i]) = (rounds[i] + 1, false);
        }
        rounds == [ROUNDS; CLIENTS]
    });
    let most = (CLIENTS * ROUNDS / 4) as i64;
    assert_eq!(counts, (1..=most).collect());
    assert_eq!(popped.len(), 2 * ROUNDS / 4);
    let took_ns = world.net.now().0 - START_NS;
    assert!(took_ns < WORK_NS_MAX, "{took_ns} ns: something waited for a timer of the server");
    world.shut_down()
}

/// The server dies in the middle of something; its clients are told, and a new one takes its place.
fn a_server_dies(seed: u64) -> Summary {
    let mut world = World::start(seed, Rates::ROUGH, CUTTING);
    let mut clients: Vec<Client> = (0..3).map(|_| world.connect()).collect();
    let points = 500 + world.prng.below(20_000);
    world.baton.kill_after(world.server.group, points);
    let mut endings = [None; 3];
    let mut replies = 0;
    world.run(|prng| {
        for (client, ending) in clients.iter_mut().zip(&mut endings).filter(|(_, e)| e.is_none()) {
            if client.unsent.is_empty() {
                client.say(&["INCR", "counter"]);
            }
            *ending = client.pump(prng);
            while client.take_reply().is_some() {
                replies += 1;
            }
        }
        endings.iter().all(Option::is_some)
    });
    assert_eq!(world.baton.status(world.server.group), Status::Killed);
    drop(clients);
    let machine = (&world.net, &world.net.disk());
    world.server = simulated::start(&world.baton, "second", machine, config(), WORKERS);
    let mut client = world.connect();
    let reply = ask(&mut world, &mut client, &["INCR", "counter"]);
    assert_eq!(reply, Reply::Integer(1), "nothing is kept in memory only");
    drop(client);
    world.shut_down()
}

/// One request, and its reply.
fn ask(world: &mut World, client: &mut Client, words: &[&str]) -> Reply {
    client.say(words);
    let mut reply = None;
    world.run(|prng| {
        assert_eq!(client.pump(prng), None, "nobody closes");
        reply = client.take_reply();
        reply.is_some()
    });
    reply.expect("it has come")
}

/// A server of three workers loads a file with three threads. A client sees nothing of it, and then
/// everything; with an odd seed it ends the server instead, whatever the threads do then.
fn a_file_is_loaded(seed: u64) -> Summary {
    const KEYS: u32 = 900;
    let mut file = b"REDIS0010\xfe\x00".to_vec();
    for n in 0..KEYS {
        file.extend(format!("\0\x08{n:08}").bytes());
        file.extend((0x4000_u16 + 2000).to_be_bytes()); // a length of 14 bits
        file.extend(std::iter::repeat_n(b'a' + (n % 26) as u8, 2000));
    }
    file.extend(b"\xff\0\0\0\0\0\0\0\0");
    let mut world = World::start_on(seed, Rates::ROUGH, CUTTING, Some(&file));
    if seed % 2 == 1 {
        let after = world.prng.below(20_000_000);
        base::sync::thread::sleep(std::time::Duration::from_nanos(after));
        return world.shut_down();
    }
    let mut client = world.connect();
    loop {
        match ask(&mut world, &mut client, &["DBSIZE"]) {
            Reply::Error(why) => assert!(why.starts_with("LOADING "), "{why}"),
            all => {
                assert_eq!(all, Reply::Integer(KEYS.into()));
                break;
            }
        }
    }
    for n in [0, 1, KEYS - 1] {
        let expected = char::from(b'a' + (n % 26) as u8).to_string().repeat(2000);
        let reply = ask(&mut world, &mut client, &["GET", &format!("{n:08}")]);
        assert_eq!(reply, Reply::Bulk(expected));
    }
    drop(client);
    world.shut_down()
}

/// Four clients set and get for a simulated second.
fn a_second(seed: u64) -> Summary {
    let mut world = World::start(seed, Rates::ROUGH, CUTTING);
    let mut clients: Vec<Client> = (0..4).map(|_| world.connect()).collect();
    let mut replies = [0; 4];
    let end = world.net.now().plus(SECOND);
    let net = world.net.clone();
    world.run(|prng| {
        for (client, replies) in clients.iter_mut().zip(&mut replies) {
            if client.unsent.is_empty() && client.got.is_empty() {
                client.say(&["SET", "key", "value"]);
                client.say(&["GET", "key"]);
            }
            assert_eq!(client.pump(prng), None, "nobody closes");
            while client.take_reply().is_some() {
                *replies += 1;
            }
        }
        net.now() >= end
    });
    let replies: u32 = replies.iter().sum();
    assert!(replies > 1_000, "{replies} replies");
    eprintln!("{replies} replies");
    world.baton.end()
}

/// The price of the baton: loads with and without it, and hand-overs between two threads.
fn prices(seed: u64) -> Summary {
    use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
    const LOADS: u32 = 50_000_000;
    let number = base::sync::Arc::new(AtomicU64::new(1));
    let loads = |count: u32| {
        let since = std::time::Instant::now();
        let sum: u64 = (0..count).map(|_| number.load(Relaxed)).sum();
        assert_eq!(sum, u64::from(count));
        since.elapsed().as_secs_f64() * 1e9 / f64::from(count)
    };
    let outside_ns = loads(LOADS);
    let baton = Baton::start(Options { seed, rates: Rates::CALM, trace: None });
    let inside_ns = loads(LOADS);
    baton.set_rates(Rates { switch_one_in: 1, ..Rates::CALM });
    let since = std::time::Instant::now();
    let threads = [0, 1].map(|_| {
        let number = number.clone();
        base::sync::thread::spawn(move || {
            (0..200_000).for_each(|_| assert!(number.load(Relaxed) > 0));
        })
    });
    for thread in threads {
        thread.join().expect("it only loads");
    }
    let summary = baton.end();
    let hand_over_ns = since.elapsed().as_secs_f64() * 1e9 / summary.hand_overs as f64;
    eprintln!(
        "a load {outside_ns:.2} ns outside a world, {inside_ns:.2} ns as a switch point; \
         a hand-over {hand_over_ns:.0} ns"
    );
    summary
}

/// Not a test by itself: what the others run in a process of its own, as `STORY SEED` says.
#[test]
fn one_run() {
    let Ok(run) = std::env::var("BATON_RUN") else { return };
    let (story, seed) = run.split_once(' ').expect("a story and a seed");
    let seed = seed.parse().expect("a number");
    let since = std::time::Instant::now();
    let summary = match story {
        "clients" => clients_at_work(seed),
        "dies" => a_server_dies(seed),
        "load" => a_file_is_loaded(seed),
        "second" => a_second(seed),
        "subscribe" => baton_messages::subscribers_come_and_go(seed),
        "caches" => baton_messages::caches_are_told(seed),
        "killed" => baton_messages::subscribers_are_killed(seed),
        "prices" => prices(seed),
        other => panic!("no story {other}"),
    };
    println!("RESULT {summary:?}");
    eprintln!("{:?} of real time", since.elapsed());
}

/// The line which a run of this seed prints at its end.
fn result_of(story: &str, seed: u64) -> String {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "one_run", "--nocapture"]).env("BATON_RUN", format!("{story} {seed}"));
    let output = command.output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    let result = told.lines().find_map(|line| line.split_once("RESULT ")).map(|(_, text)| text);
    let failure = || format!("{told}\n{}", String::from_utf8_lossy(&output.stderr));
    result.unwrap_or_else(|| panic!("{story} with seed {seed}: {}", failure())).to_owned()
}

#[test]
fn clients_are_served_as_the_seed_decides() {
    let results: Vec<String> = (0..60).map(|seed| result_of("clients", seed)).collect();
    let distinct: BTreeSet<&String> = results.iter().collect();
    assert_eq!(distinct.len(), results.len(), "each seed is another run");
    for seed in 0..5 {
        assert_eq!(result_of("clients", seed), results[seed as usize], "the same run again");
    }
}

#[test]
fn a_simulated_second_passes() {
    assert_eq!(result_of("second", 1), result_of("second", 1));
}

#[test]
fn a_file_is_loaded_or_the_server_ends_meanwhile() {
    for seed in 0..20 {
        let result = result_of("load", seed);
        if seed < 4 {
            assert_eq!(result_of("load", seed), result, "the same run again");
        }
    }
}

#[test]
fn a_server_dies_and_another_takes_its_place() {
    for seed in 0..20 {
        let result = result_of("dies", seed);
        if seed < 5 {
            assert_eq!(result_of("dies", seed), result, "the same run again");
        }
    }
}

/// Runs a story with so many seeds.
fn all_pass(story: &str, seeds: u64) {
    (0..seeds).for_each(|seed| drop(result_of(story, seed)));
}

#[test]
fn messages_reach_exactly_those_who_subscribe() {
    all_pass("subscribe", 250);
}

#[test]
fn caches_hold_no_stale_value() {
    all_pass("caches", 250);
}

#[test]
fn a_killed_subscriber_costs_no_other_a_message() {
    all_pass("killed", 250);
}
