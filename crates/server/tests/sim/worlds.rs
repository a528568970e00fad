//! Two real workers on a simulated network and clock: whatever happens to the bytes in transit,
//! every client receives its own replies, and shared keys stay consistent.

use crate::sim_world::script::Script;
use crate::sim_world::{CUTTING, MS, Reply, Sim};
use base::DbIndex;
use base::prng::Prng;
use base::sync::atomic::Ordering::Relaxed;
use driver::sim::{Ending, Faults};
use server::config::{Access, Config};

/// Clients with scripts and keys of their own. Those of `broken` are reset at a random moment.
/// Returns the hash of all replies.
fn private_keys(seed: u64, clients: usize, requests: usize, broken: usize) -> u64 {
    let sim = Sim::new(seed, CUTTING, Config::default());
    private_keys_in(sim, seed, clients, requests, broken)
}

/// The same in a world that has no clients yet.
pub fn private_keys_in(
    mut sim: Sim,
    seed: u64,
    clients: usize,
    requests: usize,
    broken: usize,
) -> u64 {
    sim.connect(clients);
    let mut prng = Prng::new(seed);
    let scripts: Vec<Script> =
        (0..clients).map(|owner| Script::new(owner, &mut prng, requests)).collect();
    for (i, (client, script)) in sim.clients.iter_mut().zip(&scripts).enumerate() {
        if i < broken {
            client.say(&["WATCH", "w1", "w2"]); // left behind by the reset
        }
        client.say_bytes(&script.requests);
    }
    let mut resets: Vec<u64> = (0..broken).map(|_| prng.below(400)).collect();
    let done =
        |sim: &Sim| (broken..clients).all(|i| sim.clients[i].got.len() >= scripts[i].replies.len());
    while !done(&sim) || resets.iter().any(|left| *left > 0) {
        sim.step();
        for (i, left) in resets.iter_mut().enumerate().filter(|(_, left)| **left > 0) {
            *left -= 1;
            if *left == 0 {
                sim.clients[i].reset();
            }
        }
        for (client, script) in sim.clients.iter().zip(&scripts).skip(broken) {
            let (got, expected) = (&client.got, &script.replies);
            if !expected.starts_with(got) {
                let same = got.iter().zip(expected).take_while(|(a, b)| a == b).count();
                let near = |bytes: &[u8]| {
                    let end = bytes.len().min(same + 80);
                    bytes[same.saturating_sub(40)..end].escape_ascii().to_string()
                };
                panic!("seed {seed}: {} instead of {}", near(got), near(expected));
            }
        }
    }
    sim.end()
}

#[test]
fn clients_with_private_keys_receive_their_own_replies() {
    for seed in 0..400 {
        private_keys(seed, 4, 60, 0);
    }
}

#[test]
fn a_reset_connection_releases_its_resources() {
    for seed in 1000..1200 {
        private_keys(seed, 5, 40, 3);
    }
}

/// Counters, pairs, flushes and swaps of several clients on shared keys. Returns the hash of all
/// replies.
fn shared_keys(seed: u64) -> u64 {
    const CLIENTS: usize = 5;
    const REQUESTS: usize = 80;
    let mut sim = Sim::new(seed, CUTTING, Config::default());
    sim.connect(CLIENTS + 1);
    let mut prng = Prng::new(seed);
    for client in 0..CLIENTS {
        for n in 0..REQUESTS {
            let unique = format!("{client}.{n}");
            let me = &mut sim.clients[client];
            match prng.below(20) {
                0..6 => me.say(&["INCR", "counter"]),
                6..10 => me.say(&["MSET", "pair:a", &unique, "pair:b", &unique]),
                10 | 11 => {
                    me.say(&["MULTI"]);
                    me.say(&["SET", "pair:a", &unique]);
                    me.say(&["SET", "pair:b", &unique]);
                    me.say(&["EXEC"]);
                }
                12 => {
                    me.say(&["MULTI"]);
                    me.say(&["MGET", "pair:b", "pair:a"]);
                    me.say(&["EXEC"]);
                }
                _ => me.say(&["MGET", "pair:a", "pair:b"]),
            }
        }
    }
    let everything = |sim: &Sim| sim.clients.iter().all(crate::sim_world::Client::has_said_all);
    sim.run_until(everything);
    let mut counts = Vec::new();
    let mut views = 0;
    for client in 0..CLIENTS {
        let last = sim.ask_last(client);
        let mine: Vec<i64> = integers(&last);
        assert!(mine.is_sorted(), "seed {seed}: a counter went back: {mine:?}");
        counts.extend(mine);
        views += whole_views(seed, &last);
    }
    counts.sort_unstable();
    let gapless: Vec<i64> = (1..=counts.len() as i64).collect();
    assert_eq!(counts, gapless, "seed {seed}");
    assert!(views > 10, "seed {seed}: somebody saw the pair");
    sim.end()
}

fn integers(replies: &[Reply]) -> Vec<i64> {
    let integers = replies.iter().filter(|r| matches!(r, Reply::Integer(_)));
    integers.map(Reply::integer).collect()
}

/// Fails unless every MGET read both keys of a pair or neither. Returns how many read both.
fn whole_views(seed: u64, replies: &[Reply]) -> usize {
    let mut whole = 0;
    for reply in replies {
        match reply {
            Reply::Array(members) => match members.as_slice() {
                [Reply::Bulk(a), Reply::Bulk(b)] => {
                    assert_eq!(a, b, "seed {seed}: a torn pair");
                    whole += 1;
                }
                // Neither key, or both from an EXEC of two SETs.
                [Reply::Null, Reply::Null] | [Reply::Simple(_), Reply::Simple(_)] => {}
                [view @ Reply::Array(_)] => whole += whole_views(seed, std::slice::from_ref(view)),
                other => panic!("seed {seed}: {other:?}"),
            },
            Reply::Error(text) => panic!("seed {seed}: {text}"),
            _ => {}
        }
    }
    whole
}

#[test]
fn counters_have_no_gaps_and_pairs_are_atomic() {
    for seed in 2000..2200 {
        shared_keys(seed);
    }
}

#[test]
fn flushes_and_swaps_keep_pairs_atomic() {
    let mut whole = 0;
    for seed in 3000..3150 {
        let mut sim = Sim::new(seed, CUTTING, Config::default());
        sim.connect(4);
        let mut prng = Prng::new(seed);
        for n in 0..80 {
            let unique = n.to_string();
            for writer in 0..2 {
                let unique = format!("{writer}.{unique}");
                sim.clients[writer].say(&["MSET", "pair:a", &unique, "pair:b", &unique]);
            }
            sim.clients[2].say(&["MGET", "pair:a", "pair:b"]);
            let disturbance: &[&str] = match prng.below(6) {
                0 => &["FLUSHALL"],
                1 => &["FLUSHDB", "ASYNC"],
                2 | 3 => &["SWAPDB", "0", "1"],
                4 => &["MGET", "pair:a", "pair:b"],
                _ => &["DBSIZE"],
            };
            sim.clients[3].say(disturbance);
        }
        for client in 0..4 {
            let replies = sim.ask_last(client);
            assert_eq!(replies.len(), 80, "seed {seed}");
            if client == 3 {
                let sizes = integers(&replies);
                assert!(sizes.iter().all(|n| [0, 2].contains(n)), "seed {seed}: {sizes:?}");
            }
            whole += whole_views(seed, &replies);
        }
        sim.end();
    }
    assert!(whole > 1500, "{whole}");
}

#[test]
fn optimistic_increments_are_not_lost() {
    const CLIENTS: usize = 4;
    const EACH: usize = 8;
    let mut conflicts = 0;
    for seed in 4000..4150 {
        let mut sim = Sim::new(seed, CUTTING, Config::default());
        sim.connect(CLIENTS + 1);
        let mut done = [0; CLIENTS];
        for client in &mut sim.clients[..CLIENTS] {
            client.say(&["WATCH", "n"]);
            client.say(&["GET", "n"]);
        }
        while done.iter().sum::<usize>() < CLIENTS * EACH {
            sim.step();
            for (client, done) in sim.clients.iter_mut().zip(&mut done) {
                let Some(reply) = client.take_reply() else { continue };
                match reply {
                    Reply::Bulk(_) | Reply::Null => {
                        let old = if let Reply::Bulk(text) = reply { text } else { "0".into() };
                        let old: i64 = old.parse().expect("a number");
                        client.say(&["MULTI"]);
                        client.say(&["SET", "n", &(old + 1).to_string()]);
                        client.say(&["EXEC"]);
                    }
                    Reply::Array(_) | Reply::NullArray => {
                        *done += usize::from(reply != Reply::NullArray);
                        conflicts += usize::from(reply == Reply::NullArray);
                        if *done < EACH {
                            client.say(&["WATCH", "n"]);
                            client.say(&["GET", "n"]);
                        }
                    }
                    Reply::Simple(_) => {}
                    other => panic!("seed {seed}: {other:?}"),
                }
            }
        }
        let total = Reply::Bulk((CLIENTS * EACH).to_string());
        assert_eq!(sim.ask(CLIENTS, &["GET", "n"]), total, "seed {seed}");
        sim.end();
    }
    assert!(conflicts > 1000, "{conflicts}");
}

#[test]
fn keys_expire_within_100_ms_of_virtual_time() {
    for (seed, faults) in [(1, Faults::NONE), (2, CUTTING)] {
        let mut sim = Sim::new(seed, faults, Config::default());
        sim.connect(2);
        let mut ends = Vec::new();
        for n in 0..40_u64 {
            let px = 20 + n * n * 2;
            let from = sim.net.now().plus(px * MS);
            let client = n as usize % 2;
            let reply = sim.ask(client, &["SET", &format!("k{n}"), "v", "PX", &px.to_string()]);
            assert_eq!(reply, Reply::ok());
            // The server set the key within this interval, and its clock counts whole milliseconds.
            ends.push((from.0.saturating_sub(MS), sim.net.now().plus((px + 1) * MS).0));
        }
        while sim.shared.keyspace.db_len(DbIndex(0)) > 0 {
            sim.step();
            let (now, left) = (sim.net.now().0, sim.shared.keyspace.db_len(DbIndex(0)));
            let too_early = ends.iter().filter(|(from, _)| *from > now).count() as u64;
            let in_time = ends.iter().filter(|(_, to)| to + 100 * MS > now).count() as u64;
            assert!((too_early..=in_time).contains(&left), "{too_early} {left} {in_time}");
        }
        assert!(sim.net.now().0 >= ends.iter().map(|(from, _)| *from).max().expect("some"));
        sim.end();
    }
}

fn with_debug() -> Config {
    let mut config = Config::default();
    config.enable_debug_command = Access::Yes;
    config
}

#[test]
fn debug_sleep_blocks_all_clients_until_it_ends() {
    for seed in 5000..5050 {
        let mut sim = Sim::new(seed, CUTTING, with_debug());
        sim.connect(4);
        let since = sim.net.now();
        sim.clients[0].say(&["DEBUG", "SLEEP", "1.5"]);
        sim.run_until(|sim| sim.clients[0].has_said_all());
        sim.run_for(10 * MS);
        let asleep = sim.net.now(); // it began to sleep within this interval
        for client in 1..4 {
            sim.clients[client].say(&["INCR", "n"]);
            sim.clients[client].say(&["INCR", "n"]);
        }
        while sim.net.now().since(since) < 1_500 * MS {
            let silent = sim.clients.iter().all(|c| c.got.is_empty());
            assert!(silent, "seed {seed}: nobody is answered during the sleep");
            sim.step();
        }
        assert_eq!(sim.reply(0), Reply::ok(), "seed {seed}");
        let slept = sim.net.now().since(asleep);
        assert!(slept < 1_600 * MS, "seed {seed}: {slept} ns");
        let mut counts: Vec<i64> =
            [1, 1, 2, 2, 3, 3].iter().map(|client| sim.reply(*client).integer()).collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2, 3, 4, 5, 6], "seed {seed}");
        sim.end();
    }
}

#[test]
fn a_reset_during_debug_sleep_resumes_the_other_clients() {
    let mut sim = Sim::new(1, Faults::NONE, with_debug());
    sim.connect(3);
    let since = sim.net.now();
    sim.clients[0].say(&["DEBUG", "SLEEP", "1000"]);
    sim.run_until(|sim| sim.clients[0].has_said_all());
    sim.run_for(10 * MS);
    sim.clients[1].say(&["INCR", "n"]);
    sim.clients[2].say(&["INCR", "n"]);
    sim.run_for(500 * MS);
    assert!(sim.clients.iter().all(|c| c.got.is_empty()), "held");
    sim.clients[0].reset();
    assert_eq!(sim.reply(1).integer() + sim.reply(2).integer(), 3);
    assert!(sim.net.now().since(since) < 1_000 * MS);
    sim.end();
}

/// A client which disconnects while it is blocked consumes no element, whatever the network does.
#[test]
fn a_disconnected_blocked_client_consumes_no_element() {
    for seed in 0..50 {
        let mut sim = Sim::new(seed, CUTTING, Config::default());
        sim.connect(3);
        sim.clients[0].say(&["BLPOP", "q", "0"]);
        for _ in 0..seed % 5 {
            sim.clients[0].say(&["PING"]);
        }
        sim.run_until(|sim| sim.clients[0].has_said_all());
        sim.run_until(|sim| sim.shared.blocked.load(Relaxed) == 1);
        sim.clients[0].close();
        sim.run_until(|sim| sim.shared.registry.len() == 2);
        assert_eq!(sim.shared.blocked.load(Relaxed), 0, "seed {seed}");
        assert_eq!(sim.ask(1, &["RPUSH", "q", "x"]).integer(), 1);
        assert_eq!(sim.ask(2, &["LLEN", "q"]).integer(), 1, "seed {seed}");
        sim.end();
    }
}

#[test]
fn idle_clients_are_closed_and_busy_ones_are_not() {
    let mut config = Config::default();
    config.timeout_s = 5;
    let mut sim = Sim::new(1, Faults::NONE, config);
    sim.connect(3);
    let since = sim.net.now();
    while sim.clients[1].ending.is_none() || sim.clients[2].ending.is_none() {
        assert_eq!(sim.ask(0, &["PING"]), Reply::Simple("PONG".into()));
        let idle = sim.net.now().since(since);
        for client in &sim.clients[1..] {
            assert!(client.ending.is_none() || idle >= 5_000 * MS, "closed after {idle} ns");
        }
        assert!(idle < 6_000 * MS, "still open after {idle} ns");
        sim.run_for(50 * MS);
    }
    assert_eq!(sim.clients[1].ending, Some(Ending::Closed));
    assert_eq!(sim.clients[2].ending, Some(Ending::Closed));
    assert_eq!(sim.shared.registry.len(), 1);
    sim.run_for(2_000 * MS);
    assert_eq!(sim.ask(0, &["PING"]), Reply::Simple("PONG".into()));
    sim.end();
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let told = |seed| (private_keys(seed, 4, 60, 1), shared_keys(seed));
    let (first, again, other) = (told(7), told(7), told(8));
    assert_eq!(first, again);
    assert!(first.0 != other.0 && first.1 != other.1);
}

/// A server with a database whose KEYS takes several steps.
fn populated(seed: u64, faults: Faults) -> Sim {
    let mut sim = Sim::new(seed, faults, with_debug());
    sim.connect(2);
    assert_eq!(sim.ask(0, &["DEBUG", "POPULATE", "5000"]), Reply::ok());
    sim
}

/// A reply which is sent in parts is received whole, and the next replies after it.
#[test]
fn replies_in_parts_are_received_whole() {
    for seed in 0..3 {
        let mut sim = populated(seed, CUTTING);
        sim.clients[0].say(&["KEYS", "key*"]);
        sim.clients[0].say(&["ECHO", "behind"]);
        let Reply::Array(keys) = sim.reply(0) else { panic!("an array") };
        assert_eq!(keys.len(), 5000, "seed {seed}");
        assert_eq!(sim.reply(0), Reply::Bulk("behind".into()), "seed {seed}");
        sim.end();
    }
}

#[test]
fn client_reply_off_suppresses_replies_in_steps() {
    let mut sim = populated(1, Faults::NONE);
    sim.clients[0].say(&["CLIENT", "REPLY", "SKIP"]);
    sim.clients[0].say(&["KEYS", "*"]);
    assert_eq!(sim.ask(0, &["ECHO", "skipped"]), Reply::Bulk("skipped".into()));
    sim.clients[0].say(&["CLIENT", "REPLY", "OFF"]);
    sim.clients[0].say(&["KEYS", "*"]);
    sim.clients[0].say(&["FLUSHALL", "SYNC"]);
    assert_eq!(sim.ask(0, &["CLIENT", "REPLY", "ON"]), Reply::ok());
    let Reply::Array(keys) = sim.ask(0, &["KEYS", "*"]) else { panic!("an array") };
    assert_eq!(keys.len(), 0);
    sim.end();
}

/// The table of a slot keeps a bucket when its last key is removed. FLUSHALL of a database without
/// keys detached these tables, and nobody freed them before a later flush of keys.
#[test]
fn flushing_a_database_without_keys_frees_its_tables() {
    let mut sim = populated(1, Faults::NONE);
    for n in 0..5000 {
        sim.clients[0].say(&["DEL", &format!("key:{n}")]);
    }
    sim.ask_last(0);
    assert_eq!(sim.ask(0, &["DBSIZE"]), Reply::Integer(0));
    assert!(sim.shared.keyspace.memory().buckets > 0, "tables of slots without keys");
    assert_eq!(sim.ask(0, &["FLUSHALL"]), Reply::ok());
    sim.run_for(10 * MS);
    assert_eq!(sim.shared.keyspace.memory().buckets, 0);
    sim.end();
}
