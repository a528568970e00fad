//! Clients move from a worker that has too much to do to one that has little. Time is virtual: what
//! passes between two turns is time in which the workers are busy.

use crate::sim_world::{CUTTING, Client, MS, Reply, Sim};
use crate::worlds::private_keys_in;
use base::prng::Prng;
use base::sync::atomic::Ordering::Relaxed;
use driver::sim::{Ending, Faults};
use server::config::{Access, Config};
use server::sessions::card::Place;
use server::worker::load::{BUSY_PERIODS, STAY_NS};

fn config() -> Config {
    let mut config = Config::default();
    config.enable_debug_command = Access::Yes;
    config
}

/// A world in which each worker hands clients on all the time.
fn restless(seed: u64, faults: Faults) -> Sim {
    let sim = Sim::new(seed, faults, config());
    sim.shared.loads.is_forced.store(true, Relaxed);
    sim
}

fn moved(sim: &Sim) -> u64 {
    sim.shared.sum(|w| w.moved_clients.get())
}

/// The worker of each client, in the order in which they connected.
fn workers(sim: &Sim) -> Vec<usize> {
    sim.shared.registry.all().iter().map(|card| card.place().worker).collect()
}

/// So many steps, in each of which these clients send so many requests, and the workers are busy
/// for a millisecond.
fn work(sim: &mut Sim, steps: usize, heavy: &[(usize, usize)]) {
    for _ in 0..steps {
        for (client, requests) in heavy {
            for _ in 0..*requests {
                sim.clients[*client].say(&["GET", "key"]);
            }
        }
        sim.step();
        sim.net.pass_time(MS);
        sim.clients.iter_mut().for_each(|client| while client.take_reply().is_some() {});
        sim.forget_steps();
    }
}

/// Clients 0, 2 and 4 come to worker 0, the others to worker 1.
fn placed(clients: usize) -> Sim {
    let mut sim = Sim::new(1, Faults::NONE, config());
    sim.connect(clients);
    let expected: Vec<usize> = (0..clients).map(|client| client % 2).collect();
    assert_eq!(workers(&sim), expected);
    sim
}

const SECOND: usize = 1_000;

#[test]
fn two_heavy_clients_of_one_worker_end_up_at_two() {
    let mut sim = placed(4);
    let heavy = [(0, 20), (2, 20)];
    work(&mut sim, BUSY_PERIODS as usize * 100 - 50, &heavy);
    assert_eq!(workers(&sim), [0, 1, 0, 1], "it is not busy for long enough");
    work(&mut sim, 400, &heavy);
    let after = workers(&sim);
    assert_ne!(after[0], after[2], "{after:?}");
    assert_eq!(moved(&sim), 1);
    work(&mut sim, 20 * SECOND, &heavy);
    assert_eq!((workers(&sim), moved(&sim)), (after, 1), "they stay");
    let counts: Vec<u32> = sim.shared.workers.iter().map(|w| w.connections.load(Relaxed)).collect();
    let at = |worker| workers(&sim).iter().filter(|at| **at == worker).count() as u32;
    assert_eq!(counts, [at(0), at(1)]);
    sim.ask_last(0);
    let Reply::Bulk(stats) = sim.ask(0, &["INFO", "stats"]) else { panic!("a text") };
    assert!(stats.contains("\r\nmoved_clients:1\r\n"), "{stats}");
    sim.end();
}

/// The other clients of the worker would win nothing that those of the other one would not lose.
#[test]
fn a_heavy_client_without_another_one_stays() {
    let mut sim = placed(6);
    work(&mut sim, 3 * SECOND, &[(0, 50), (2, 1), (4, 1)]);
    assert_eq!(moved(&sim), 0);
    sim.end();
}

#[test]
fn nobody_moves_to_a_worker_that_is_busy_itself() {
    let mut sim = placed(4);
    work(&mut sim, 3 * SECOND, &[(0, 20), (1, 20), (2, 20), (3, 20)]);
    assert_eq!(moved(&sim), 0);
    sim.end();
}

/// Who has moved stays for some time, whatever happens.
#[test]
fn a_client_that_has_moved_stays_for_a_while() {
    let mut sim = placed(4);
    let heavy = [(0, 20), (2, 20)];
    while moved(&sim) == 0 {
        work(&mut sim, 10, &heavy);
    }
    let (came, at) = (sim.net.now(), workers(&sim));
    // From now on it has another heavy client beside it, and the worker that it left has nothing.
    let (moved_client, left) = if at[0] == 1 { (0, 2) } else { (2, 0) };
    while moved(&sim) == 1 {
        work(&mut sim, 10, &[(moved_client, 30), (1, 20), (3, 20)]);
    }
    let second = sim.net.now().since(came);
    assert!(second < STAY_NS, "others move, after {second} ns");
    assert_eq!((workers(&sim)[moved_client], workers(&sim)[left]), (1, 0));
    sim.end();
}

/// Whatever a client is in the middle of, it stays until that is over.
#[test]
fn a_client_in_the_middle_of_something_stays() {
    type Story = (&'static [&'static [&'static str]], &'static [&'static str]);
    let stories: [Story; 8] = [
        (&[&["MULTI"]], &["DISCARD"]),
        (&[&["WATCH", "key"]], &["UNWATCH"]),
        (&[&["BLPOP", "list", "0"]], &[]),
        (&[&["MULTI"], &["GET", "key"]], &["EXEC"]),
        (&[&["MONITOR"]], &["QUIT"]),
        (&[&["SUBSCRIBE", "a"], &["PSUBSCRIBE", "b*"]], &["RESET"]),
        (&[&["SSUBSCRIBE", "a"]], &["SUNSUBSCRIBE"]),
        (&[&["CLIENT", "REPLY", "OFF"], &["WATCH", "a"], &["MULTI"]], &["DISCARD"]),
    ];
    for (begin, end) in stories {
        let mut sim = restless(5, Faults::NONE);
        sim.connect(3);
        for request in begin {
            sim.clients[1].say(request);
        }
        sim.run_for(5 * MS);
        let (at, before) = (workers(&sim)[1], moved(&sim));
        for _ in 0..100 {
            sim.run_for(MS / 5);
            assert_eq!(workers(&sim)[1], at, "{begin:?}");
        }
        assert!(moved(&sim) > before + 50, "the others move");
        match end {
            [] => _ = sim.ask(0, &["RPUSH", "list", "x"]),
            ["QUIT"] => {
                sim.clients[1].close();
                sim.run_until(|sim| sim.shared.registry.len() == 2);
                sim.end();
                continue;
            }
            end => sim.clients[1].say(end),
        }
        sim.run_until(|sim| workers(sim)[1] != at);
        sim.end();
    }
}

/// A big argument that has begun to arrive stays where it is; the beginning of a short request goes
/// with its client.
#[test]
fn the_beginning_of_a_request_moves_and_that_of_a_big_argument_does_not() {
    let mut sim = restless(6, Faults::NONE);
    sim.connect(2);
    let big = crate::sim_world::encode(&["SET", "key", &"x".repeat(300_000)]);
    sim.clients[0].say_bytes(&big[..200_000]);
    sim.run_until(|sim| sim.clients[0].has_said_all());
    sim.run_for(5 * MS);
    let at = workers(&sim)[0];
    sim.run_for(20 * MS);
    assert_eq!(workers(&sim)[0], at);
    sim.clients[0].say_bytes(&big[200_000..]);
    assert_eq!(sim.reply(0), Reply::ok());
    assert_eq!(sim.ask(0, &["STRLEN", "key"]).integer(), 300_000);
    let small = crate::sim_world::encode(&["ECHO", "hello"]);
    for byte in small {
        let (at, before) = (workers(&sim)[0], moved(&sim));
        sim.clients[0].say_bytes(&[byte]);
        sim.run_until(|sim| sim.clients[0].has_said_all() && moved(sim) > before + 2);
        sim.run_until(|sim| workers(sim)[0] != at);
    }
    assert_eq!(sim.reply(0), Reply::Bulk("hello".into()));
    sim.end();
}

#[test]
fn everyone_receives_its_own_replies_while_all_move() {
    for seed in 7000..7150 {
        private_keys_in(restless(seed, CUTTING), seed, 6, 40, 0);
    }
}

#[test]
fn connections_that_break_while_all_move_leave_nothing() {
    for seed in 7200..7300 {
        private_keys_in(restless(seed, CUTTING), seed, 5, 40, 3);
    }
}

/// CLIENT KILL finds its victim wherever it is, at once or when it arrives.
#[test]
fn whoever_is_killed_on_its_way_is_closed() {
    let mut prng = Prng::new(9);
    for seed in 0..60 {
        let mut sim = restless(seed, Faults::NONE);
        sim.connect(5);
        let mut ids = Vec::new();
        for client in 0..5 {
            ids.push(sim.ask(client, &["CLIENT", "ID"]).integer());
        }
        for (client, id) in ids.iter().enumerate().take(4).skip(1) {
            for n in 0..40 {
                sim.clients[client].say(&["INCR", &format!("count{client}.{n}")]);
            }
            for _ in 0..prng.below(4) {
                sim.step();
            }
            let killed = sim.ask(0, &["CLIENT", "KILL", "ID", &id.to_string()]);
            assert_eq!(killed.integer(), 1, "seed {seed}");
            let executed = sim.ask(0, &["DBSIZE"]).integer();
            sim.run_until(|sim| sim.clients[client].ending.is_some());
            assert_eq!(sim.ask(0, &["DBSIZE"]).integer(), executed, "seed {seed}: it went on");
            sim.clients[client].close();
        }
        sim.run_until(|sim| sim.shared.registry.len() == 2);
        assert!(moved(&sim) > 10);
        sim.end();
    }
}

/// CLIENT LIST shows everybody once, on the way or not.
#[test]
fn client_list_shows_everybody_while_all_move() {
    let mut sim = restless(3, CUTTING);
    sim.connect(5);
    for _ in 0..50 {
        let Reply::Bulk(text) = sim.ask(0, &["CLIENT", "LIST"]) else { panic!("a text") };
        assert_eq!(text.lines().count(), 5, "{text}");
    }
    let names = ["CLIENT", "SETNAME", "a-name-which-takes-memory"];
    assert_eq!(sim.ask(1, &names), Reply::ok());
    let held = sim.shared.client_memory();
    let at = workers(&sim)[1];
    sim.run_until(|sim| workers(sim)[1] != at);
    sim.run_for(MS);
    assert_eq!(sim.shared.client_memory(), held, "what it holds goes with it");
    sim.end();
}

/// Whatever is on the way when the server ends, every request that was executed is answered, and
/// every connection is closed in order. (Whoever sends to a closed connection is reset.)
#[test]
fn a_shutdown_loses_nobody_who_is_on_the_way() {
    let mut prng = Prng::new(11);
    let mut closed_in_order = 0;
    for seed in 0..100 {
        let mut sim = restless(seed, Faults::NONE);
        sim.connect(6);
        for client in 1..6 {
            for n in 0..60 {
                sim.clients[client].say(&["SET", &format!("{client}.{n}"), "v"]);
            }
        }
        for _ in 0..prng.below(40) {
            sim.step();
        }
        let have_said_all: Vec<bool> = sim.clients.iter().map(Client::has_said_all).collect();
        closed_in_order += have_said_all.iter().filter(|all| **all).count();
        sim.clients[0].say(&["SHUTDOWN", "NOSAVE"]);
        sim.run_until(Sim::has_ended);
        for _ in 0..20 {
            sim.step();
        }
        let answered = |client: &mut Client| std::iter::from_fn(|| client.take_reply()).count();
        let answers: usize = sim.clients.iter_mut().map(answered).sum();
        let keys = sim.shared.keyspace.db_len(base::DbIndex(0)) as usize;
        assert_eq!(answers, keys, "seed {seed}: executed and answered");
        for (at, client) in sim.clients.iter().enumerate().filter(|(at, _)| have_said_all[*at]) {
            assert_eq!(client.ending, Some(Ending::Closed), "seed {seed}: client {at}");
        }
        assert_eq!(sim.shared.connections(), 0, "seed {seed}");
    }
    assert!(closed_in_order > 100, "{closed_in_order}");
}

/// The mark of CLIENT KILL is enough, whatever becomes of its message.
#[test]
fn whoever_is_marked_on_its_way_is_closed_when_it_arrives() {
    let mut sim = restless(12, Faults::NONE);
    sim.connect(4);
    let on_the_way = |sim: &Sim| {
        let all = sim.shared.registry.all();
        all.into_iter().find(|card| card.place() == Place::on_the_way(card.place().worker))
    };
    sim.run_until(|sim| on_the_way(sim).is_some());
    let card = on_the_way(&sim).expect("just seen");
    assert!(card.claim_close());
    sim.clients.iter_mut().for_each(|client| client.say(&["INCR", "key"]));
    sim.run_until(|sim| sim.shared.registry.len() == 3);
    assert!(sim.shared.registry.get(card.id).is_none());
    let mut replies = 0;
    while replies < 3 {
        sim.step();
        replies += sim.clients.iter_mut().filter_map(Client::take_reply).count();
    }
    sim.run_for(5 * MS);
    let more = sim.clients.iter_mut().filter_map(Client::take_reply).count();
    assert_eq!(more, 0, "nothing of it is executed");
    sim.end();
}

#[test]
fn a_worker_does_not_end_while_somebody_is_on_the_way_to_it() {
    let mut sim = Sim::new(13, Faults::NONE, config());
    sim.connect(1);
    sim.shared.loads.expect(1);
    sim.clients[0].say(&["SHUTDOWN", "NOSAVE"]);
    sim.run_until(|sim| sim.shared.shutting_down.load(Relaxed));
    sim.run_for(3 * SECOND as u64 * MS);
    assert!(!sim.has_ended());
    sim.shared.loads.has_come(1);
    sim.run_until(Sim::has_ended);
}
