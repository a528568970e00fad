//! A client with many expensive commands gets no more than its share of a worker while others wait.
//! The clock goes on whenever it is read, so time here is counted, too: a command which is timed by
//! itself takes a step, and so does a window of commands of the short path.

use crate::two_clients::{TestWorker, encode, worker_on};
use driver::Driver;
use driver::loopback::Loopback;
use server::config::{Access, Config};
use server::sessions::quota::{DEBT_MAX_NS, SHARE_NS};

const STEP_NS: u64 = 50_000;
/// What PING and ECHO take here.
const COMMAND_NS: u64 = STEP_NS;
const PER_SHARE: usize = (SHARE_NS / COMMAND_NS) as usize;
/// What is read between the commands, and when replies leave, is no time of theirs, and passes as
/// well: up to four shares and a step.
const TURN_NS_MAX: u64 = 4 * SHARE_NS + 2 * STEP_NS;
const PONG: &str = "+PONG\r\n";

/// A worker whose clients are numbered from 0.
struct Net {
    worker: TestWorker,
    /// What each client has received.
    got: Vec<String>,
}

impl Net {
    fn new(clients: usize) -> Self {
        let mut config = Config::default();
        config.enable_debug_command = Access::Yes;
        let worker = worker_on(Loopback::stepping(7, STEP_NS), clients, config);
        Self { worker, got: vec![String::new(); clients] }
    }

    fn write(&mut self, client: usize, requests: &[&[&str]]) {
        let bytes: Vec<u8> = requests.iter().flat_map(|args| encode(args)).collect();
        self.worker.driver().write(client, &bytes);
    }

    fn repeat(&mut self, client: usize, request: &[&str], count: usize) {
        self.worker.driver().write(client, &encode(request).repeat(count));
    }

    fn turn(&mut self) {
        self.worker.turn();
        let driver = self.worker.driver();
        for (client, got) in self.got.iter_mut().enumerate() {
            got.push_str(std::str::from_utf8(driver.received(client)).expect("text"));
            driver.forget(client);
        }
    }

    /// A turn in which this client sends something and is answered.
    fn ask(&mut self, client: usize, args: &[&str]) -> String {
        self.got[client].clear();
        self.write(client, &[args]);
        self.turn();
        assert!(!self.got[client].is_empty(), "{args:?} is not answered in its turn");
        std::mem::take(&mut self.got[client])
    }

    fn now_ns(&mut self) -> u64 {
        self.worker.driver().now().0
    }

    fn pongs(&self, client: usize) -> usize {
        self.got[client].matches(PONG).count()
    }
}

fn echoes(count: usize) -> (Vec<u8>, String) {
    let names: Vec<String> = (0..count).map(|n| format!("{n:04}")).collect();
    let requests = names.iter().flat_map(|n| encode(&["ECHO", n])).collect();
    let replies: Vec<String> = names.iter().map(|n| format!("$4\r\n{n}\r\n")).collect();
    (requests, replies.concat())
}

#[test]
fn a_get_beside_a_pipeline_of_expensive_commands_is_answered_in_its_turn() {
    let mut net = Net::new(2);
    net.ask(1, &["SET", "k", "v"]);
    let (requests, replies) = echoes(1_000);
    net.worker.driver().write(0, &requests);
    let (mut turns, mut longest_ns) = (0, 0);
    while net.got[0].len() < replies.len() {
        let (before, began) = (net.got[0].len(), net.now_ns());
        assert_eq!(net.ask(1, &["GET", "k"]), "$1\r\nv\r\n");
        let in_turn = (net.got[0].len() - before) / "$4\r\n0000\r\n".len();
        assert_eq!(in_turn, PER_SHARE, "commands in turn {turns}");
        longest_ns = longest_ns.max(net.now_ns() - began);
        turns += 1;
    }
    assert!(net.got[0] == replies, "the replies come in another order");
    assert_eq!(turns, 1_000 / PER_SHARE, "no turn goes by unused");
    assert!(longest_ns <= TURN_NS_MAX, "a turn of {longest_ns} ns");
}

/// The commands of the short path share the clock of their window.
#[test]
fn a_get_beside_a_long_pipeline_of_slow_short_commands_is_answered_in_its_turn() {
    let mut net = Net::new(2);
    net.ask(1, &["SET", "k", "v"]);
    let requests = encode(&["GET", "k"]).repeat(2_000);
    net.worker.driver().write(0, &requests);
    let mut turns = 0;
    while net.got[0].len() < 2_000 * "$1\r\nv\r\n".len() {
        let began = net.now_ns();
        assert_eq!(net.ask(1, &["GET", "k"]), "$1\r\nv\r\n");
        let ns = net.now_ns() - began;
        assert!(ns <= TURN_NS_MAX, "a turn of {ns} ns");
        turns += 1;
    }
    assert!((10..=20).contains(&turns), "{turns} turns for 63 windows");
    assert_eq!(net.got[0], "$1\r\nv\r\n".repeat(2_000));
}

#[test]
fn a_client_without_others_is_not_cut_short() {
    let mut net = Net::new(1);
    let (requests, replies) = echoes(1_000);
    net.worker.driver().write(0, &requests);
    net.turn();
    assert_eq!(net.got[0].len() / "$4\r\n0000\r\n".len(), 512);
    net.turn();
    assert!(net.got[0] == replies, "the rest comes in the next turn");
}

/// The worker looks for others after each share, and finds none: it goes on at once, whatever the
/// client owes.
#[test]
fn a_client_beside_idle_ones_uses_every_turn() {
    let mut net = Net::new(3);
    let (requests, replies) = echoes(1_000);
    net.write(0, &[&["MULTI"], &["DEBUG", "SLEEP", "0.05"], &["EXEC"]]);
    net.worker.driver().write(0, &requests);
    let began = net.now_ns();
    for turn in 0..1_000 / PER_SHARE + 3 {
        let before = net.got[0].len();
        net.turn();
        assert!(net.got[0].len() > before, "turn {turn} goes by unused");
        if net.got[0].ends_with(&replies) {
            break;
        }
    }
    assert!(net.got[0].ends_with(&replies), "some replies are missing");
    let ns = net.now_ns() - began;
    assert!(ns < 50_000_000 + 1_010 * 3 * COMMAND_NS, "{ns} ns");
}

/// Whatever their commands cost.
#[test]
fn two_heavy_clients_share_equally() {
    let queued = ["PING"; 20];
    let mut unit: Vec<&[&str]> = vec![&["MULTI"]];
    unit.extend(queued.iter().map(std::slice::from_ref));
    unit.push(&["EXEC"]);
    for has_light in [false, true] {
        let mut net = Net::new(3);
        net.repeat(0, &["PING"], 3_000);
        net.write(1, &unit.repeat(60));
        let mut turns = 0;
        while net.pongs(0) < 1_500 {
            if has_light {
                assert_eq!(net.ask(2, &["GET", "k"]), "$-1\r\n");
            } else {
                net.turn();
            }
            turns += 1;
            assert!(turns < 10_000, "{} PINGs and no more", net.pongs(0));
        }
        let cheap_ns = net.pongs(0) as u64 * COMMAND_NS;
        let units = net.got[1].matches("*20\r\n").count() as u64;
        let stats = net.ask(2, &["INFO", "commandstats"]);
        let (_, exec) = stats.split_once("cmdstat_exec:calls=").expect("EXEC is counted");
        let (_, exec) = exec.split_once("usec_per_call=").expect("a mean");
        let exec_us: f64 = exec.split(',').next().expect("a mean").parse().expect("a number");
        let exec_ns = (exec_us * 1e3) as u64;
        assert!(exec_ns >= 10 * COMMAND_NS, "EXEC is not expensive: {exec_ns} ns");
        let dear_ns = units * (21 * COMMAND_NS + exec_ns);
        let tenth = cheap_ns / 10;
        assert!(cheap_ns.abs_diff(dear_ns) <= tenth, "{cheap_ns} and {dear_ns} ns, {has_light}");
    }
}

#[test]
fn many_heavy_clients_take_turns() {
    const HEAVY: usize = 10;
    let mut net = Net::new(HEAVY + 1);
    for client in 0..HEAVY {
        net.repeat(client, &["PING"], 200);
    }
    net.turn(); // nobody is known to be heavy
    for turn in 0..20 * HEAVY {
        let before: usize = (0..HEAVY).map(|client| net.pongs(client)).sum();
        assert_eq!(net.ask(HEAVY, &["GET", "k"]), "$-1\r\n");
        let counts: Vec<usize> = (0..HEAVY).map(|client| net.pongs(client)).collect();
        assert_eq!(counts.iter().sum::<usize>() - before, PER_SHARE, "in turn {turn}");
        let (least, most) = (counts.iter().min(), counts.iter().max());
        let ahead = most.expect("clients") - least.expect("clients");
        assert!(ahead <= PER_SHARE, "somebody is overtaken: {counts:?}");
    }
}

/// A command that took longer than a share is paid for, but not all of it.
#[test]
fn a_debt_is_paid_while_others_have_work_and_is_bounded() {
    let rounds = (DEBT_MAX_NS / SHARE_NS) as usize;
    for (seconds, least, most) in [("0.002", 9, 12), ("0.05", rounds, rounds + 2)] {
        let mut net = Net::new(2);
        net.write(0, &[&["MULTI"], &["DEBUG", "SLEEP", seconds], &["EXEC"], &["PING"]]);
        let mut waited = 0;
        while net.pongs(0) == 0 {
            net.ask(1, &["GET", "k"]);
            waited += usize::from(net.got[0].ends_with("*1\r\n+OK\r\n"));
            assert!(waited <= most, "it waits for {waited} turns behind {seconds} s");
        }
        assert!(waited >= least, "it waits for {waited} turns behind {seconds} s");
    }
}

/// A client in the middle of a long command has work, although it sends nothing.
#[test]
fn a_debt_is_paid_while_another_client_has_a_long_command() {
    let mut net = Net::new(2);
    let names: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
    let watch: Vec<&str> =
        std::iter::once("WATCH").chain(names.iter().map(String::as_str)).collect();
    net.write(1, &[&watch]);
    let unit: [&[&str]; 3] = [&["MULTI"], &["DEBUG", "SLEEP", "0.002"], &["EXEC"]];
    net.write(0, &unit.repeat(100));
    let mut turns = 0;
    while net.got[1].is_empty() {
        net.turn();
        turns += 1;
        assert!(turns < 1_000, "WATCH is not answered");
    }
    let executed = net.got[0].matches("*1\r\n+OK\r\n").count();
    assert!(turns >= 30 && executed <= turns / 9 + 2, "{executed} EXECs in {turns} turns");
}

/// Whoever went on long ago, and is served since then, has work like any other client.
#[test]
fn a_client_that_once_went_on_has_work_like_others() {
    let mut net = Net::new(3);
    net.repeat(1, &["PING"], PER_SHARE + 1);
    for _ in 0..5 {
        net.turn();
    }
    for _ in 0..10 {
        net.ask(1, &["GET", "k"]);
    }
    net.write(0, &[&["MULTI"], &["DEBUG", "SLEEP", "0.002"], &["EXEC"], &["PING"]]);
    let mut waited = 0;
    while net.pongs(0) == 0 {
        net.ask(1, &["GET", "k"]);
        waited += usize::from(net.got[0].ends_with("*1\r\n+OK\r\n"));
        assert!(waited <= 12, "it waits for {waited} turns");
    }
    assert!(waited >= 9, "it waits for {waited} turns");
}

/// No more than 1,024 shares are given between two turns, however much all clients owe.
#[test]
fn the_rounds_of_many_clients_in_debt_are_bounded() {
    const CLIENTS: usize = 30;
    let rounds = (DEBT_MAX_NS / SHARE_NS) as usize;
    assert!((1_024..2_048).contains(&(rounds * CLIENTS)), "a turn is not enough, two are");
    let mut net = Net::new(CLIENTS);
    for client in 0..CLIENTS {
        net.write(client, &[&["MULTI"], &["DEBUG", "SLEEP", "0.0105"], &["EXEC"], &["PING"]]);
    }
    for turn in 1..=2 {
        net.turn();
        assert!(net.got.iter().all(|got| got.ends_with("*1\r\n+OK\r\n")), "in turn {turn}");
    }
    net.turn();
    assert_eq!(net.pongs(0), 1, "its debt is paid first");
    for _ in 1..CLIENTS {
        net.turn();
    }
    assert!((0..CLIENTS).all(|client| net.pongs(client) == 1), "the others follow");
}

/// One which waits for its next request pays as well.
#[test]
fn a_client_that_sends_one_command_after_the_other_pays_too() {
    let mut net = Net::new(2);
    net.write(0, &[&["MULTI"], &["DEBUG", "SLEEP", "0.002"], &["EXEC"]]);
    while !net.got[0].ends_with("*1\r\n+OK\r\n") {
        net.ask(1, &["GET", "k"]);
    }
    net.write(0, &[&["PING"]]);
    let mut waited = 0;
    while net.pongs(0) == 0 {
        net.ask(1, &["GET", "k"]);
        waited += 1;
        assert!(waited <= 12, "it waits for {waited} turns");
    }
    assert!(waited >= 9, "it waits for {waited} turns");
}

/// What a client sends in one go, with everything that a session can be in the middle of.
fn story() -> Vec<u8> {
    let long = "x".repeat(150_000);
    let mut requests = Vec::new();
    let mut add = |args: &[&str]| requests.extend(encode(args));
    add(&["RPUSH", "list", "a", "b", "c"]);
    for round in 0..6 {
        let n = round.to_string();
        add(&["SELECT", &n]);
        for _ in 0..40 {
            add(&["PING"]);
            add(&["INCR", "counter"]);
        }
        add(&["MULTI"]);
        for _ in 0..20 {
            add(&["INCR", "counter"]);
            add(&["ECHO", &n]);
        }
        add(&["EXEC"]);
        add(&["SET", "long", &long]);
        add(&["STRLEN", "long"]);
        add(&["BLPOP", "list", "0.001"]);
        add(&["CLIENT", "REPLY", "SKIP"]);
        add(&["PING"]);
        add(&["NONE"]);
        add(&["WATCH", "counter"]);
        add(&["UNWATCH"]);
        add(&["SORT", "list", "ALPHA"]);
        for _ in 0..70 {
            add(&["GET", "counter"]);
        }
    }
    requests.extend_from_slice(b"*1\r\n+broken\r\n");
    requests
}

/// It receives the same, beside others and without them; and what stands in a transaction is
/// answered in one turn.
#[test]
fn whoever_is_cut_short_receives_the_same() {
    let mut replies = Vec::new();
    for others in [0, 3] {
        let mut net = Net::new(1 + others);
        let story = story();
        let mut parts = story.chunks(10_007);
        for turn in 0.. {
            assert!(turn < 1_000_000, "it ends with {:?}", net.got[0].lines().last());
            if turn % 3 == 0 {
                net.worker.driver().write(0, parts.next().unwrap_or_default());
                for other in 1..=others {
                    net.repeat(other, &["GET", "counter"], 40);
                    net.repeat(other, &["PING"], 7);
                }
            }
            let before = net.got[0].len();
            net.turn();
            let new = &net.got[0][before..];
            if let Some((_, queue)) = new.split_once("*40\r\n") {
                assert!(queue.matches(':').count() >= 20, "EXEC is split: {new}");
            }
            if net.worker.driver().is_closed(0) {
                break;
            }
        }
        assert!(net.got[0].ends_with("got '+'\r\n"), "{:?}", net.got[0].lines().last());
        replies.push(std::mem::take(&mut net.got[0]));
    }
    assert!(replies[0] == replies[1], "the replies differ");
}

#[test]
fn sessions_without_a_share_are_paused_closed_and_watched_like_others() {
    let mut net = Net::new(4);
    net.ask(3, &["MONITOR"]);
    let id = net.ask(0, &["CLIENT", "ID"]);
    let id = id.trim_start_matches(':').trim_end();
    for client in [0, 2] {
        net.repeat(client, &["PING"], 300);
    }
    net.turn();
    net.ask(1, &["CLIENT", "PAUSE", "1000", "ALL"]);
    net.turn();
    let before = net.pongs(0) + net.pongs(2);
    for _ in 0..20 {
        net.turn();
    }
    assert_eq!(net.pongs(0) + net.pongs(2), before, "nothing runs meanwhile");
    net.worker.driver().advance(2_000_000_000);
    for _ in 0..20 {
        net.turn();
    }
    assert!(net.pongs(0) + net.pongs(2) > before + 20, "they go on");
    let killed = net.ask(1, &["CLIENT", "KILL", "ID", id]);
    assert_eq!(killed, ":1\r\n");
    for _ in 0..10 {
        net.turn();
    }
    assert!(net.worker.driver().is_closed(0));
    for _ in 0..400 {
        net.turn();
    }
    assert_eq!(net.pongs(2), 300, "the other goes on");
    let seen = net.got[3].matches("\"PING\"").count();
    assert_eq!(seen, net.pongs(0) + 300, "MONITOR shows what has run");
}
