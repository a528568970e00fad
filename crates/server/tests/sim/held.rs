//! Memory which the server holds for its clients, on the simulated network: it is counted while it
//! is held, bounded by `maxmemory`, and released however a connection ends.

use crate::sim_world::{CUTTING, MS, Reply, Sim, encode};
use base::sync::atomic::Ordering::Relaxed;
use driver::sim::Faults;
use server::config::{Access, Config, MemoryShare};

const LIMIT_BYTES: u64 = 4 << 20;

fn sim(seed: u64, faults: Faults, maxmemory: u64) -> Sim {
    let mut config = Config::default();
    config.enable_debug_command = Access::Yes;
    config.maxmemory = MemoryShare::Bytes(maxmemory);
    Sim::new(seed, faults, config)
}

fn is_refused(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with("OOM "))
}

/// A field of this client's line in CLIENT LIST, which another client reads.
fn field(sim: &mut Sim, asking: usize, id: &str, name: &str) -> u64 {
    let Reply::Bulk(line) = sim.ask(asking, &["CLIENT", "LIST", "ID", id]) else {
        panic!("a line")
    };
    let value = line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("{name} in {line}"))
}

fn shown_in_info(sim: &mut Sim, asking: usize) -> u64 {
    let Reply::Bulk(info) = sim.ask(asking, &["INFO", "memory"]) else { panic!("a text") };
    let line = info.lines().find_map(|line| line.strip_prefix("mem_clients_normal:"));
    line.and_then(|n| n.trim().parse().ok()).expect("a number")
}

/// The memory of watches is counted, and WATCH is refused at `maxmemory`.
#[test]
fn watches_are_counted_and_refused_at_maxmemory() {
    let mut sim = sim(1, Faults::NONE, LIMIT_BYTES);
    sim.connect(2);
    let id = sim.ask(0, &["CLIENT", "ID"]).integer().to_string();
    let before = shown_in_info(&mut sim, 1);
    let name = |n: usize| format!("{n}{}", "k".repeat(1000));
    let most = LIMIT_BYTES as usize / 1000;
    let may_write = |sim: &mut Sim| !is_refused(&sim.ask(1, &["SET", "k", "v"]));
    let mut watches = (0..most).map(|n| (sim.ask(0, &["WATCH", &name(n)]), may_write(&mut sim)));
    let watched = watches.by_ref().take_while(|(_, may_write)| *may_write).count();
    assert!(is_refused(&watches.next().expect("more").0), "nobody may watch");
    drop(watches);
    assert!(watched < most && watched > most / 4, "{watched} of {most}");
    let bytes = watched as u64 * 1000;
    assert!(shown_in_info(&mut sim, 1) >= before + bytes);
    assert!(field(&mut sim, 1, &id, "tot-mem") >= bytes);
    assert_eq!(sim.ask(1, &["GET", "k"]), Reply::Bulk("v".into()), "reads go on");
    assert_eq!(sim.ask(0, &["UNWATCH"]), Reply::ok());
    sim.run_until(|sim| sim.shared.keyspace.watched_slots() == 0);
    assert_eq!(sim.ask(1, &["SET", "k", "v"]), Reply::ok());
    assert!(shown_in_info(&mut sim, 1) < before + 1000);
    assert!(field(&mut sim, 1, &id, "tot-mem") < bytes);
    // EXEC releases them, too.
    assert_eq!(sim.ask(0, &["WATCH", &name(0)]), Reply::ok());
    assert_eq!(sim.ask(0, &["MULTI"]), Reply::ok());
    assert_eq!(sim.ask(0, &["EXEC"]), Reply::Array(Vec::new()));
    assert!(shown_in_info(&mut sim, 1) < before + 1000);
    sim.end();
}

/// The arguments of blocked commands are counted, and blocking commands are refused at `maxmemory`.
#[test]
fn arguments_of_blocked_commands_are_counted_and_refused_at_maxmemory() {
    let mut sim = sim(2, Faults::NONE, LIMIT_BYTES);
    sim.connect(5);
    let id = sim.ask(0, &["CLIENT", "ID"]).integer().to_string();
    let before = shown_in_info(&mut sim, 4);
    let large = "k".repeat(LIMIT_BYTES as usize / 2);
    sim.clients[0].say(&["BLPOP", &large, "0"]);
    let blocked = |count| move |sim: &Sim| sim.shared.blocked.load(Relaxed) == count;
    sim.run_until(blocked(1));
    let bytes = large.len() as u64;
    assert!(field(&mut sim, 4, &id, "argv-mem") >= bytes);
    assert!(field(&mut sim, 4, &id, "tot-mem") >= bytes);
    assert!(shown_in_info(&mut sim, 4) >= before + bytes);
    // Memory is full: a large blocking command is refused. A small one may free memory, so it
    // blocks.
    assert!(is_refused(&sim.ask(4, &["SET", "k", "v"])));
    assert!(is_refused(&sim.ask(1, &["BLPOP", &large, "0"])));
    assert_eq!(sim.ask(1, &["BLPOP", "small", "0.001"]), Reply::NullArray);
    sim.clients[2].say(&["BLPOP", "small", "0"]);
    sim.run_until(blocked(2));
    // The wait ends by a disconnect, by its timeout, or by an element.
    sim.clients[0].close();
    sim.run_until(|sim| sim.shared.client_memory() < 10_000);
    assert_eq!(sim.ask(1, &["BLPOP", &large, "0.001"]), Reply::NullArray);
    sim.clients[3].say(&["BLPOP", &large, "0"]);
    sim.run_until(blocked(2));
    assert!(is_refused(&sim.ask(4, &["RPUSH", "small", "x"])));
    assert_eq!(sim.ask(4, &["CLIENT", "UNBLOCK", "4"]), Reply::Integer(1));
    assert_eq!(sim.reply(3), Reply::NullArray);
    sim.run_until(|sim| sim.shared.client_memory() < 10_000);
    assert_eq!(sim.ask(4, &["RPUSH", "small", "x"]), Reply::Integer(1));
    sim.reply(2);
    assert!(shown_in_info(&mut sim, 4) < before + 1000);
    sim.end();
}

/// Blank lines and other input which is no request count only while they are received.
#[test]
fn input_which_is_no_request_counts_only_while_it_is_received() {
    let mut sim = sim(4, Faults::NONE, 0);
    sim.connect(2);
    let blank = [&b" ".repeat(60_000)[..], b"\r\n"].concat();
    sim.clients[0].say_bytes(&blank[..50_000]);
    sim.run_until(|sim| sim.clients[0].has_said_all() && sim.shared.client_memory() >= 50_000);
    sim.clients[0].say_bytes(&blank[50_000..]);
    sim.run_until(|sim| sim.clients[0].has_said_all());
    sim.run_for(MS);
    assert_eq!(sim.shared.client_memory(), 0);
    assert_eq!(sim.ask(0, &["PING"]), Reply::Simple("PONG".into()));
    sim.clients[0].say_bytes(b"*3\r\n$3\r\nSET\r\n$70000\r\n");
    sim.clients[0].say_bytes(&b"x".repeat(70_000));
    sim.run_until(|sim| sim.clients[0].has_said_all() && sim.shared.client_memory() >= 70_000);
    sim.clients[0].say_bytes(b"\r\n:7\r\n");
    sim.run_until(|sim| sim.clients[0].ending.is_some());
    assert_eq!(sim.shared.client_memory(), 0);
    sim.end();
}

/// An argument of which a part has arrived: what is received counts, also that of a slow sender,
/// whose bytes are few, and it is released.
#[test]
fn a_part_of_a_long_argument_counts() {
    const LEN: usize = 1_500_000;
    let mut sim = sim(5, Faults::NONE, 0);
    sim.connect(2);
    let request = encode(&["SET", "k", &"x".repeat(LEN)]);
    let mut sent = 0;
    for part in [200_000, 10_000, 700_000, 5000, 100_000] {
        sim.clients[0].say_bytes(&request[sent..sent + part]);
        sent += part;
        sim.run_until(|sim| sim.shared.client_memory() + 100 >= sent as u64);
        assert!(sim.shared.client_memory() < 2 * sent as u64 + 10_000, "not what is announced");
    }
    sim.clients[0].say_bytes(&request[sent..]);
    sim.clients[0].say(&["STRLEN", "k"]);
    assert_eq!(sim.reply(0), Reply::ok());
    assert_eq!(sim.reply(0), Reply::Integer(LEN as i64));
    assert_eq!(sim.shared.client_memory(), 0);
    sim.clients[1].say_bytes(&request[..900_000]);
    sim.run_until(|sim| sim.shared.client_memory() > 800_000);
    sim.clients[1].close();
    sim.run_until(|sim| sim.shared.client_memory() == 0);
    sim.end();
}

/// A client which sends a long argument slowly is not idle: `timeout` does not close it.
#[test]
fn a_slow_sender_of_a_long_argument_is_not_idle() {
    let mut config = Config::default();
    config.timeout_s = 1;
    let mut sim = Sim::new(6, Faults::NONE, config);
    sim.connect(1);
    let request = encode(&["SET", "k", &"x".repeat(400_000)]);
    let (first, rest) = request.split_at(100_000);
    sim.clients[0].say_bytes(first);
    for part in rest.chunks(30_000) {
        sim.run_for(700 * MS);
        sim.clients[0].say_bytes(part);
    }
    assert_eq!(sim.reply(0), Reply::ok());
    sim.end();
}

/// Arguments of many lengths around that which is received in place, with requests behind them, on
/// a network that cuts everything.
#[test]
fn long_arguments_arrive_exactly() {
    for (seed, faults) in [(7, Faults::NONE), (8, Faults::ROUGH), (9, CUTTING)] {
        let mut sim = sim(seed, faults, 0);
        sim.connect(2);
        for round in 0..6 {
            let len = 150_000 + sim.prng.below(150_000) as usize;
            let text = |at: usize| char::from(b'a' + ((at * 7 + at / 1000 + round) % 26) as u8);
            let value: String = (0..len).map(text).collect();
            sim.clients[0].say(&["SET", "k", &value]);
            sim.clients[0].say(&["GET", "k"]);
            assert_eq!(sim.reply(0), Reply::ok());
            assert!(sim.reply(0) == Reply::Bulk(value), "{len} bytes, seed {seed}");
        }
        sim.end();
    }
}

/// Brings a client into a random state. Its requests are not always executed or answered.
fn enter_random_state(sim: &mut Sim, client: usize) {
    let eight = sim.prng.below(8);
    let name = format!("k{}", sim.prng.below(6));
    let long = "x".repeat(100 + sim.prng.below(90_000) as usize);
    let many: Vec<String> = (0..=sim.prng.below(3000)).map(|n| format!("m{n}")).collect();
    let c = &mut sim.clients[client];
    let request = |first: &str, last: &[&str]| -> Vec<u8> {
        let words: Vec<&str> = [first]
            .into_iter()
            .chain(many.iter().map(String::as_str))
            .chain(last.iter().copied())
            .collect();
        encode(&words)
    };
    match eight {
        // An incomplete request, a malformed one, many blank bytes.
        0 => c.say_bytes(format!("*2\r\n$3\r\nGET\r\n$90000\r\n{long}").as_bytes()),
        1 => {
            c.say_bytes(b"*3\r\n$3\r\nSET\r\n$90000\r\n");
            c.say_bytes(&b"x".repeat(90_000));
            c.say_bytes(b"\r\n:7\r\n");
        }
        2 => {
            c.say_bytes(&b" ".repeat(60_000));
            c.say_bytes(b"\r\nPING\r\n");
        }
        // A transaction queue, watches, a blocked command.
        3 => {
            c.say(&["MULTI"]);
            c.say(&["SET", &name, &long]);
            c.say_bytes(&request("DEL", &[]));
        }
        4 => c.say_bytes(&request("WATCH", &[])),
        5 => {
            c.say_bytes(&request("BLPOP", &["0"]));
            c.say(&["SET", &name, &long]);
        }
        // A part of an argument which is received in place.
        6 => {
            c.say_bytes(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1200000\r\n");
            c.say_bytes(&b"x".repeat(400_000));
        }
        // Replies which the client does not read at once. Some are held until their number is safe.
        _ => {
            c.say(&["SET", &name, &long]);
            (0..8).for_each(|_| c.say(&["GET", &name]));
        }
    }
}

/// Ends a client in a random way.
fn disconnect_randomly(sim: &mut Sim, client: usize, ids: &[String], control: usize) {
    match sim.prng.below(5) {
        0 => sim.clients[client].close(),
        1 => sim.clients[client].reset(),
        2 => sim.clients[client].stop_sending(),
        3 => sim.clients[client].say(&["QUIT"]),
        _ => {
            sim.ask(control, &["CLIENT", "KILL", "ID", &ids[client]]);
        }
    }
}

/// Memory of a client is released however its connection ends: also if the client only shuts down
/// sending, or if its request fails while it is received.
#[test]
fn memory_of_a_client_is_released_however_it_disconnects() {
    const CLIENTS: usize = 12;
    for seed in 0..30 {
        let mut sim = sim(seed, if seed % 3 == 0 { Faults::NONE } else { CUTTING }, 0);
        sim.connect(CLIENTS + 1);
        let ids: Vec<String> = (0..CLIENTS)
            .map(|client| sim.ask(client, &["CLIENT", "ID"]).integer().to_string())
            .collect();
        if seed % 2 == 0 {
            sim.ask(CLIENTS, &["DEBUG", "SAFE-UP-TO", "3"]);
        }
        for client in 0..CLIENTS {
            enter_random_state(&mut sim, client);
            sim.run_for(MS / 10);
        }
        sim.run_for(20 * MS);
        for client in 0..CLIENTS {
            disconnect_randomly(&mut sim, client, &ids, CLIENTS);
        }
        sim.run_for(20 * MS);
        if seed % 2 == 0 {
            sim.ask(CLIENTS, &["DEBUG", "SAFE-UP-TO", "ALL"]);
        }
        sim.run_for(20 * MS);
        sim.end();
    }
}

/// A half-closed connection receives all replies which were held for it, not only those that fit
/// into its socket's buffer at that moment.
#[test]
fn a_half_closed_connection_receives_all_held_replies() {
    let mut sim = sim(3, CUTTING, 0);
    sim.connect(2);
    let value = "x".repeat(20_000);
    assert_eq!(sim.ask(1, &["DEBUG", "SAFE-UP-TO", "0"]), Reply::Integer(0));
    sim.clients[0].say(&["SET", "k", &value]);
    (0..5).for_each(|_| sim.clients[0].say(&["GET", "k"]));
    sim.run_until(|sim| sim.clients[0].has_said_all() && sim.shared.client_memory() > 100_000);
    sim.run_for(20 * MS);
    sim.clients[0].stop_sending();
    sim.run_for(20 * MS);
    assert_eq!(sim.shared.registry.len(), 2, "it waits for what is held");
    assert!(sim.shared.client_memory() > 100_000, "which counts");
    sim.ask(1, &["DEBUG", "SAFE-UP-TO", "ALL"]);
    assert_eq!(sim.reply(0), Reply::ok());
    (0..5).for_each(|_| assert_eq!(sim.reply(0), Reply::Bulk(value.clone())));
    sim.run_until(|sim| sim.clients[0].ending.is_some());
    assert_eq!(sim.clients[0].ending, Some(driver::sim::Ending::Closed));
    sim.run_until(|sim| sim.shared.registry.len() == 1);
    assert!(sim.shared.client_memory() < 10_000);
    sim.end();
}
