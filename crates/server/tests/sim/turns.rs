//! How often workers turn and how much they do in one turn, on the simulated network: no worker
//! spins while a gate is closed, and unbounded work is done in parts. Also work which no event
//! triggers.

use crate::sim_world::{MS, Reply, Sim};
use base::sync::atomic::Ordering::Relaxed;
use driver::sim::{Ending, Faults};
use server::config::{Access, Config};
use server::worker::left::LEFT_KEYS_MAX;
use server::worker::retry::{RELEASES_PER_TURN, RETRY_NS};

/// How long the gate is closed.
const CLOSED_NS: u64 = 200 * MS;
/// Turns that have other causes: expiry, housekeeping, requests of clients.
const TURNS_BESIDES: u64 = 200;

fn sim(clients: usize) -> Sim {
    let mut config = Config::default();
    config.enable_debug_command = Access::Yes;
    let mut sim = Sim::new(1, Faults::NONE, config);
    sim.connect(clients);
    sim
}

/// Runs `during` while client 0 holds the gate closed. Returns the steps of the world meanwhile.
fn steps_beside_a_closed_gate(sim: &mut Sim, during: impl FnOnce(&mut Sim)) -> u64 {
    sim.clients[0].say(&["DEBUG", "SLEEP", &format!("{}", CLOSED_NS as f64 / 1e9)]);
    sim.run_until(|sim| sim.clients[0].has_said_all());
    sim.step();
    let (since, before) = (sim.net.now(), sim.steps);
    during(sim);
    assert_eq!(sim.reply(0), Reply::ok());
    assert!(sim.net.now().since(since) <= 2 * CLOSED_NS, "time went on");
    u64::from(sim.steps - before)
}

fn assert_few(steps: u64) {
    let most = 2 * CLOSED_NS / RETRY_NS + TURNS_BESIDES;
    assert!(steps <= most, "{steps} steps, not {most}");
}

/// A command in steps must not keep its worker turning while the gate is closed: the simulated time
/// would not advance.
#[test]
fn a_command_in_steps_does_not_spin_while_a_gate_is_closed() {
    let mut sim = sim(3);
    assert_eq!(sim.ask(0, &["DEBUG", "POPULATE", "100000"]), Reply::ok());
    sim.clients[1].say(&["KEYS", "*"]);
    sim.clients[2].say(&["KEYS", "*"]);
    sim.run_until(|sim| sim.clients[1].has_said_all() && sim.clients[2].has_said_all());
    let got = |sim: &Sim| sim.clients[1].got.len();
    assert_eq!(got(&sim), 0, "it runs in steps");
    assert_few(steps_beside_a_closed_gate(&mut sim, |_| ()));
    for client in [1, 2] {
        let Reply::Array(keys) = sim.reply(client) else { panic!("an array") };
        assert_eq!(keys.len(), 100_000);
    }
    sim.end();
}

/// Expired tickets and watches of a closed connection do not keep a worker turning either.
#[test]
fn tickets_and_watches_do_not_spin_while_a_gate_is_closed() {
    let mut sim = sim(4);
    for (client, request) in [
        (1, &["BLPOP", "a", "b", "0"][..]),
        (2, &["BLPOP", "a", "c", "0.02"]),
        (3, &["WATCH", "w"]),
    ] {
        sim.clients[client].say(request);
    }
    sim.run_until(|sim| sim.shared.blocked.load(Relaxed) == 2);
    assert_eq!(sim.reply(3), Reply::ok());
    assert_few(steps_beside_a_closed_gate(&mut sim, |sim| {
        sim.clients[1].close();
        sim.clients[3].close();
        sim.run_until(|sim| sim.shared.registry.len() == 2);
        assert_eq!(sim.reply(2), Reply::NullArray);
        assert!(sim.shared.keyspace.waited_keys() > 0, "the gate is closed");
    }));
    sim.run_for(10 * MS);
    assert_eq!(sim.shared.keyspace.waited_keys(), 0);
    sim.end();
}

/// CLIENT ID passes the closed gate and then waits for the end of the pause. Regression: its
/// request was consumed too early, so that it had no reply and the next reply took its place.
#[test]
fn a_pause_while_a_gate_is_closed_loses_no_reply() {
    let mut sim = sim(3);
    let id = sim.ask(2, &["CLIENT", "ID"]);
    steps_beside_a_closed_gate(&mut sim, |sim| {
        assert_eq!(sim.ask(1, &["CLIENT", "PAUSE", "300", "ALL"]), Reply::ok());
        sim.clients[2].say(&["CLIENT", "ID"]);
        sim.clients[2].say(&["CLIENT", "GETNAME"]);
        sim.run_until(|sim| sim.clients[2].has_said_all());
    });
    assert_eq!(sim.reply(2), id);
    assert_eq!(sim.reply(2), Reply::Null);
    sim.end();
}

/// The largest decrease of a figure in one step of the world.
fn largest_decrease(sim: &mut Sim, figure: impl Fn(&Sim) -> usize) -> usize {
    let (mut steepest, mut last) = (0, figure(sim));
    while last > 0 {
        sim.step();
        let now = figure(sim);
        steepest = steepest.max(last.saturating_sub(now));
        last = now;
    }
    steepest
}

const MANY: usize = 10 * RELEASES_PER_TURN;

fn names() -> Vec<String> {
    (0..MANY).map(|n| format!("key{n}")).collect()
}

/// Watches and tickets of a closed connection are released in parts, because all at once would
/// occupy the worker for long.
#[test]
fn watches_and_tickets_of_a_closed_connection_are_released_in_parts() {
    let mut sim = sim(3);
    let names = names();
    let request = |first, last: &[&'static str]| -> Vec<&str> {
        let names = names.iter().map(String::as_str);
        [first].into_iter().chain(names).chain(last.iter().copied()).collect()
    };
    assert_eq!(sim.ask(1, &request("WATCH", &[])), Reply::ok());
    let watched = |sim: &Sim| sim.shared.keyspace.watched_slots();
    let had = watched(&sim);
    assert!(had > 4 * RELEASES_PER_TURN, "{had} slots");
    sim.clients[1].close();
    let steepest_watches = largest_decrease(&mut sim, watched);
    assert!(steepest_watches <= RELEASES_PER_TURN, "{steepest_watches}");
    sim.clients[2].say(&request("BLPOP", &["0"]));
    sim.run_until(|sim| sim.shared.blocked.load(Relaxed) == 1);
    let waited = |sim: &Sim| sim.shared.keyspace.waited_keys() as usize;
    assert_eq!(waited(&sim), MANY);
    sim.clients[0].say(&["RPUSH", "key7", "x"]);
    let steepest_tickets = largest_decrease(&mut sim, waited);
    assert_eq!(sim.reply(0).integer(), 1);
    // (The served ticket is removed at once.)
    assert!(steepest_tickets <= RELEASES_PER_TURN + 1, "{steepest_tickets}");
    sim.end();
}

/// The server stops receiving from a client which reads nothing, so no event concerns it. It is
/// closed at the soft limit nevertheless.
#[test]
fn the_soft_limit_of_replies_is_enforced_without_events() {
    let mut sim = sim(1);
    let limit = "normal 0 100kb 5";
    assert_eq!(sim.ask(0, &["CONFIG", "SET", "client-output-buffer-limit", limit]), Reply::ok());
    assert_eq!(sim.ask(0, &["SET", "small", &"x".repeat(1000)]), Reply::ok());
    assert_eq!(sim.ask(0, &["SET", "big", &"x".repeat(600_000)]), Reply::ok());
    let slow = sim.join();
    let get = crate::sim_world::encode(&["GET", "big"]);
    assert_eq!(slow.write(&get), get.len());
    let since = sim.net.now();
    sim.run_for(4_500 * MS);
    assert_eq!(sim.shared.registry.len(), 2, "not yet");
    sim.run_for(1_000 * MS);
    assert_eq!(sim.shared.registry.len(), 1, "after {} ns", sim.net.now().since(since));
    let mut room = [0; 4096];
    while slow.read(&mut room) > 0 {}
    assert!(matches!(slow.ending(), Some(Ending::Closed | Ending::Reset)));
    // A client which reads in time stays connected.
    let quick = sim.join();
    assert_eq!(quick.write(&get), get.len());
    sim.run_for(3_000 * MS);
    let mut got = 0;
    while got < 600_000 {
        got += quick.read(&mut room);
        sim.step();
    }
    sim.run_for(10_000 * MS);
    assert_eq!(sim.shared.registry.len(), 2);
    drop(quick);
    sim.end();
}

/// A client which leaves watches and tickets behind faster than they are released waits for their
/// release: otherwise their number would grow without bound.
#[test]
fn a_client_waits_while_many_of_its_watches_are_released() {
    const REQUESTS: usize = 100;
    let names: Vec<String> = (0..4 * LEFT_KEYS_MAX).map(|n| format!("key{n}")).collect();
    let request = |first: &'static str, last: &[&'static str]| -> Vec<&str> {
        let names = names.iter().map(String::as_str);
        [first].into_iter().chain(names).chain(last.iter().copied()).collect()
    };
    for story in
        [vec![request("WATCH", &[]), vec!["UNWATCH"]], vec![request("BLPOP", &["0.000001"])]]
    {
        let mut sim = sim(2);
        // The maximum of memory which one request leaves behind.
        let mut one = 0;
        sim.clients[1].say(&story[0]);
        while sim.clients[1].take_reply().is_none() {
            sim.step();
            one = one.max(sim.shared.client_memory());
        }
        let mut most = 0;
        for _ in 0..REQUESTS {
            for request in &story {
                sim.clients[1].say(request);
            }
        }
        let mut missing = REQUESTS * story.len();
        while missing > 0 {
            sim.step();
            most = most.max(sim.shared.client_memory());
            while sim.clients[1].take_reply().is_some() {
                missing -= 1;
            }
        }
        assert!(most <= 4 * one, "{}: {most} bytes, where one leaves {one}", story[0][0]);
        // Other clients do not wait.
        for request in &story {
            sim.clients[1].say(request);
        }
        assert_eq!(sim.ask(0, &["WATCH", "other"]), Reply::ok());
        sim.end();
    }
}
