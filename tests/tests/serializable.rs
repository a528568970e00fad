//! Transactions of many clients on several workers are strictly serializable: an order of all
//! transactions which respects real time explains every reply.
//!
//! `STRESS_SEED` repeats the random choices of a run, `STRESS_MS` sets its length.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::in_time::LIMIT;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::serializable::{Element, Key, Op, Outcome, Txn, check, explain};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::{SetAtEnd, seed};
use sheafdb_tests::wire::{Value, Wire, encode};

const CLIENTS: usize = 5;
/// Keys of a round: some of each type which can be appended to.
const KEYS: usize = 6;
/// Number of actions of each client in a round.
const TURNS: usize = 30;
/// Attempts of the last read of all keys: it may be interrupted.
const READ_TRIES: usize = 100;

fn start(threads: usize) -> ServerProcess {
    // Many commands are made to panic; backtraces are not needed.
    ServerProcess::start_with(
        &Binary::under_test(),
        &["--threads", &threads.to_string()],
        |command| {
            command.env("RUST_BACKTRACE", "0");
        },
    )
}

/// How long one part of a test runs.
fn span() -> Duration {
    let ms = std::env::var("STRESS_MS").ok().and_then(|text| text.parse().ok());
    Duration::from_millis(ms.unwrap_or(800))
}

/// The type of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    List,
    Text,
    Stream,
}

fn type_of(key: Key) -> Type {
    [Type::List, Type::List, Type::List, Type::Text, Type::Text, Type::Stream][key]
}

fn name(round: u64, key: Key) -> String {
    format!("key:{key}:{round}")
}

/// A command, and its operations before the reply is known.
struct Request {
    args: Vec<String>,
    ops: Vec<Op>,
}

fn args(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

fn append_of(key: Key, element: Element) -> Op {
    Op::Append { key, element, len: None }
}

fn read_of(key: Key) -> Op {
    Op::Read { key, seen: Vec::new() }
}

fn read(round: u64, key: Key) -> Request {
    let name = name(round, key);
    let text = match type_of(key) {
        Type::List => format!("LRANGE {name} 0 -1"),
        Type::Text => format!("GET {name}"),
        Type::Stream => format!("XRANGE {name} - +"),
    };
    Request { args: args(&text), ops: vec![read_of(key)] }
}

fn element(text: &[u8]) -> Element {
    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).expect("an element is a number")
}

/// The elements in a reply to a read.
fn elements(reply: &Value) -> Vec<Element> {
    match reply {
        Value::NullBulk => Vec::new(),
        Value::Bulk(text) => {
            text.split(|b| *b == b',').filter(|t| !t.is_empty()).map(element).collect()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::Bulk(text) => element(text),
                // An entry of a stream: its id, and its only field and value.
                Value::Array(entry) => match entry.last() {
                    Some(Value::Array(pair)) => elements(&pair[1])[0],
                    other => panic!("no entry: {other:?}"),
                },
                other => panic!("no element: {other:?}"),
            })
            .collect(),
        other => panic!("no elements: {other:?}"),
    }
}

impl Request {
    /// Its operations, completed with the reply.
    fn done(self, reply: &Value) -> Vec<Op> {
        let Self { args, mut ops } = self;
        if matches!(reply, Value::Error(_)) {
            assert!(ops.is_empty(), "{args:?}: {reply:?}");
            return ops;
        }
        let appends = ops.len();
        for (at, op) in ops.iter_mut().enumerate() {
            match (op, &args[0][..], reply) {
                (Op::Read { seen, .. }, "MGET", Value::Array(values)) => {
                    *seen = elements(&values[at]);
                }
                (Op::Read { seen, .. }, _, _) => *seen = elements(reply),
                (Op::Append { len, .. }, "RPUSH", Value::Int(all)) => {
                    *len = Some(*all as usize + 1 + at - appends);
                }
                (Op::Append { element, .. }, "LMOVE" | "BLMOVE", moved) => {
                    assert_eq!(elements(moved), [*element], "{args:?}");
                }
                _ => {}
            }
        }
        ops
    }
}

/// How connections are interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    Never,
    /// CLIENT KILL.
    Kills,
    /// A command panics.
    Panics,
}

/// A connection which records its operations.
struct Client<'a> {
    server: &'a ServerProcess,
    wire: Wire,
    /// A second connection, which pushes the elements the first one waits for.
    feeder: Wire,
    id: usize,
    rng: Rng,
    round: u64,
    next: Element,
    began: Instant,
    history: Vec<Txn>,
    breaks: Breaks,
}

impl Client<'_> {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn element(&mut self) -> Element {
        self.next += 1;
        1_000_000 * (self.id as u64 + 1) + self.next
    }

    fn append(&mut self, key: Key) -> Request {
        let (name, element) = (name(self.round, key), self.element());
        match type_of(key) {
            Type::List if self.rng.chance(30) => {
                let second = self.element();
                let args = args(&format!("RPUSH {name} {element} {second}"));
                Request { args, ops: vec![append_of(key, element), append_of(key, second)] }
            }
            kind => {
                let text = match kind {
                    Type::List => format!("RPUSH {name} {element}"),
                    Type::Text => format!("APPEND {name} {element},"),
                    Type::Stream => format!("XADD {name} * e {element}"),
                };
                Request { args: args(&text), ops: vec![append_of(key, element)] }
            }
        }
    }

    /// A command on one key, or a read of several.
    fn request(&mut self) -> Request {
        let key = self.rng.below(KEYS);
        match self.rng.below(20) {
            0 | 1 => {
                let texts: Vec<Key> = (0..KEYS).filter(|k| type_of(*k) == Type::Text).collect();
                let names: Vec<String> = texts.iter().map(|key| name(self.round, *key)).collect();
                let ops = texts.into_iter().map(read_of).collect();
                Request { args: args(&format!("MGET {}", names.join(" "))), ops }
            }
            2..10 => self.append(key),
            _ => read(self.round, key),
        }
    }

    fn list(&mut self) -> Key {
        let lists: Vec<Key> = (0..KEYS).filter(|key| type_of(*key) == Type::List).collect();
        self.rng.pick(&lists)
    }

    fn turn(&mut self) {
        match self.rng.below(20) {
            0..5 => self.plain(),
            5 => self.moved(),
            6 => self.served(),
            7 => self.discarded(),
            8..12 => self.watched(),
            _ => self.transaction(),
        }
    }

    /// Some commands in one write: each is a separate transaction.
    fn plain(&mut self) {
        let requests: Vec<Request> = (0..=self.rng.below(3)).map(|_| self.request()).collect();
        let call = self.now();
        let replies = self.ask(requests.iter().map(|r| &r.args));
        let ret = self.now();
        for (at, request) in requests.into_iter().enumerate() {
            self.record(call, ret, vec![request], replies.get(at).map(std::slice::from_ref));
        }
    }

    /// Moves an element from a list which only this client uses: an append which locks two keys.
    fn moved(&mut self) {
        let (key, element) = (self.list(), self.element());
        let from = format!("from:{element}");
        if self.ask([&args(&format!("RPUSH {from} {element}"))]).is_empty() {
            return;
        }
        let args = args(&format!("LMOVE {from} {} LEFT RIGHT", name(self.round, key)));
        let call = self.now();
        let replies = self.ask([&args]);
        let request = Request { args, ops: vec![append_of(key, element)] };
        self.record(call, self.now(), vec![request], replies.get(..1));
    }

    /// Blocks in a move until the other connection pushes an element.
    fn served(&mut self) {
        let (key, element) = (self.list(), self.element());
        // A killed waiter leaves an element in the list, so each time another list is used.
        let feed = format!("feed:{element}");
        let waits = args(&format!("BLMOVE {feed} {} LEFT RIGHT 0", name(self.round, key)));
        let call = self.now();
        let sent = self.wire.send(&encode(&waits));
        if self.rng.chance(50) {
            thread::sleep(Duration::from_micros(self.rng.below(300) as u64));
        }
        let fed = self.feeder.command(&args(&format!("RPUSH {feed} {element}")));
        let reply = sent.and(fed).and_then(|_| self.wire.receive());
        if let Err(why) = &reply {
            self.expect_break(why);
            // In either case no client may stay blocked.
            self.feeder = self.server.connect();
            self.wire = self.server.connect();
        }
        let request = Request { args: waits, ops: vec![append_of(key, element)] };
        self.record(call, self.now(), vec![request], reply.as_ref().ok().map(std::slice::from_ref));
    }

    fn queue(&mut self) -> Vec<Request> {
        let mut requests: Vec<Request> =
            (0..2 + self.rng.below(5)).map(|_| self.request()).collect();
        // Their keys are locked with the others; their replies are not checked.
        if self.rng.chance(15) {
            let walk = ["SCAN 0 COUNT 1000", "SCAN 0 COUNT 1", "RANDOMKEY"][self.rng.below(3)];
            let at = self.rng.below(requests.len());
            requests.insert(at, Request { args: args(walk), ops: Vec::new() });
        }
        requests
    }

    fn discarded(&mut self) {
        let requests = self.queue();
        let ends = [args("DISCARD"), args("SET wrong"), args("EXEC")];
        let ends = if self.rng.chance(50) { &ends[..1] } else { &ends[1..] };
        let multi = args("MULTI");
        let all: Vec<&Vec<String>> =
            std::iter::once(&multi).chain(requests.iter().map(|r| &r.args)).chain(ends).collect();
        let call = self.now();
        let whole = self.ask(all.iter().copied()).len() == all.len();
        assert!(whole || self.breaks != Breaks::Never);
        let ops =
            requests.into_iter().flat_map(|r| r.ops).filter(|op| matches!(op, Op::Append { .. }));
        let outcome = Outcome::Aborted;
        self.history.push(Txn { outcome, call, ret: self.now(), ops: ops.collect() });
    }

    /// Reads watched keys and then runs a transaction: the reads must still hold at EXEC.
    fn watched(&mut self) {
        let keys = [self.rng.below(KEYS), self.rng.below(KEYS)];
        let keys = if keys[0] == keys[1] { &keys[..1] } else { &keys[..] };
        let names: Vec<String> = keys.iter().map(|key| name(self.round, *key)).collect();
        let watch = args(&format!("WATCH {}", names.join(" ")));
        let reads: Vec<Request> = keys.iter().map(|key| read(self.round, *key)).collect();
        let call = self.now();
        let said = self.ask(std::iter::once(&watch).chain(reads.iter().map(|r| &r.args)));
        let read_by = self.now();
        if said.len() < 1 + reads.len() {
            return;
        }
        let mut read_ops: Vec<Op> = Vec::new();
        for (request, reply) in reads.into_iter().zip(&said[1..]) {
            let ops = request.done(reply);
            self.history.push(Txn {
                outcome: Outcome::Committed,
                call,
                ret: read_by,
                ops: ops.clone(),
            });
            read_ops.extend(ops);
        }
        let mut requests = self.queue();
        // Most run a transaction after reading.
        if self.rng.chance(80) {
            requests.insert(0, self.append(keys[0]));
        }
        self.exec(requests, read_ops);
    }

    fn transaction(&mut self) {
        let mut requests = self.queue();
        if self.rng.chance(10) {
            // Its error does not prevent the other commands.
            let list = self.list();
            let wrong = args(&format!("SADD {} x", name(self.round, list)));
            let push = self.append(list);
            requests.splice(1..1, [push, Request { args: wrong, ops: Vec::new() }]);
        }
        self.exec(requests, Vec::new());
    }

    /// MULTI, the requests, EXEC; in one write or one by one. `known` are reads which must hold at
    /// EXEC; they are part of the transaction.
    fn exec(&mut self, requests: Vec<Request>, known: Vec<Op>) {
        let (multi, exec) = (args("MULTI"), args("EXEC"));
        let at_once = self.rng.chance(70);
        let mut all: Vec<&Vec<String>> = vec![&multi];
        all.extend(requests.iter().map(|r| &r.args));
        if !at_once {
            for one in &all {
                if self.ask([*one]).is_empty() {
                    return;
                }
            }
            all.clear();
        }
        all.push(&exec);
        let call = self.now();
        let replies = self.ask(all.iter().copied());
        let ret = self.now();
        let (sent, came) = (all.len(), replies.len());
        match replies.last() {
            Some(Value::Array(done)) if came == sent => {
                assert_eq!(done.len(), requests.len());
                let mut ops = known;
                ops.extend(requests.into_iter().zip(done).flat_map(|(r, reply)| r.done(reply)));
                self.history.push(Txn { outcome: Outcome::Committed, call, ret, ops });
            }
            Some(Value::NullArray) if came == sent => {
                let ops = requests.into_iter().flat_map(|r| r.ops);
                let ops = ops.filter(|op| matches!(op, Op::Append { .. })).collect();
                self.history.push(Txn { outcome: Outcome::Aborted, call, ret, ops });
            }
            other => {
                assert!(came < sent, "{other:?}");
                if self.breaks == Breaks::Panics {
                    // The commands before the one which panicked are committed.
                    for request in requests {
                        self.record(call, ret, vec![request], None);
                    }
                } else {
                    self.record(call, ret, requests, None);
                }
            }
        }
    }

    /// Sends all requests and reads the replies; fewer if the connection was closed.
    fn ask<'r>(&mut self, requests: impl IntoIterator<Item = &'r Vec<String>>) -> Vec<Value> {
        let requests: Vec<&Vec<String>> = requests.into_iter().collect();
        let bytes: Vec<u8> = requests.iter().flat_map(|r| encode(r)).collect();
        let mut broken = self.wire.send(&bytes).err();
        let mut replies = Vec::new();
        while broken.is_none() && replies.len() < requests.len() {
            match self.wire.receive() {
                Ok(reply) => replies.push(reply),
                Err(why) => broken = Some(why),
            }
        }
        if let Some(why) = broken {
            self.expect_break(&why);
            self.wire = self.server.connect();
        }
        replies
    }

    /// A connection may be closed, but must not time out.
    fn expect_break(&self, why: &io::Error) {
        assert!(self.breaks != Breaks::Never && why.kind() != io::ErrorKind::TimedOut, "{why}");
    }

    /// Records a transaction of these requests, with their replies if they arrived.
    fn record(&mut self, call: u64, ret: u64, requests: Vec<Request>, replies: Option<&[Value]>) {
        let txn = if let Some(replies) = replies {
            let ops = requests.into_iter().zip(replies).flat_map(|(r, reply)| r.done(reply));
            Txn { outcome: Outcome::Committed, call, ret, ops: ops.collect() }
        } else {
            let ops = requests.into_iter().flat_map(|r| r.ops);
            let ops = ops.filter(|op| matches!(op, Op::Append { .. })).collect();
            Txn { outcome: Outcome::Unknown, call, ret: u64::MAX, ops }
        };
        self.history.push(txn);
    }
}

/// Runs all clients of a round concurrently, says that they are done, and then reads all keys.
fn history_of(
    server: &ServerProcess,
    (seed, round): (u64, u64),
    breaks: Breaks,
    done: &AtomicBool,
) -> Vec<Txn> {
    let (barrier, began) = (Barrier::new(CLIENTS), Instant::now());
    let client = |id: usize| Client {
        server,
        wire: server.connect(),
        feeder: server.connect(),
        id,
        rng: Rng::new(seed ^ (round << 8) ^ id as u64),
        round,
        next: 0,
        began,
        history: Vec::new(),
        breaks,
    };
    let mut history: Vec<Txn> = thread::scope(|s| {
        // All of them are there before one waits for the others.
        let (clients, barrier): (Vec<_>, _) = ((0..CLIENTS).map(client).collect(), &barrier);
        let handles: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                s.spawn(move || {
                    barrier.wait();
                    (0..TURNS).for_each(|_| client.turn());
                    client.history
                })
            })
            .collect();
        handles.into_iter().flat_map(|h| h.join().expect("a client ends")).collect()
    });
    // On a busy machine each read would be interrupted.
    done.store(true, Ordering::Release);
    let mut last = client(CLIENTS);
    for _ in 0..READ_TRIES {
        last.exec((0..KEYS).map(|key| read(round, key)).collect(), Vec::new());
        let done = last.history.last().is_some_and(|txn| txn.outcome == Outcome::Committed);
        history.append(&mut last.history);
        if done {
            return history;
        }
    }
    panic!("the read of all keys always failed");
}

fn assert_serializable(history: &[Txn], what: &str) {
    let found = check(history);
    assert!(found.is_empty(), "{what}:\n{}", explain(history, &found));
}

#[test]
fn transactions_are_strictly_serializable() {
    for threads in [2, 4] {
        let server = start(threads);
        let (seed, began, mut txns) = (seed(), Instant::now(), [0; 2]);
        let mut round = 0;
        while began.elapsed() < span() || round < 4 {
            round += 1;
            let history =
                history_of(&server, (seed, round), Breaks::Never, &AtomicBool::new(false));
            assert_serializable(
                &history,
                &format!("seed {seed}, {threads} workers, round {round}"),
            );
            for txn in &history {
                txns[usize::from(txn.outcome == Outcome::Aborted)] += 1;
            }
        }
        println!("{threads} workers: {round} rounds, {} committed, {} not", txns[0], txns[1]);
        assert!(txns.iter().all(|count| *count > 0), "of both: {txns:?}");
    }
}

/// The last transaction of a killed client is executed completely or not at all.
#[test]
fn transactions_of_killed_clients_are_atomic() {
    for threads in [2, 4] {
        cut_off(threads, Breaks::Kills);
    }
}

/// A command which panics has no effect.
#[test]
fn commands_which_panic_are_rolled_back() {
    for threads in [2, 4] {
        cut_off(threads, Breaks::Panics);
    }
}

fn cut_off(threads: usize, breaks: Breaks) {
    let mut server = start(threads);
    let (seed, began, mut unknown) = (seed(), Instant::now(), 0);
    let mut round = 0;
    while began.elapsed() < span() || round < 4 || unknown == 0 {
        assert!(began.elapsed() < span() + 2 * LIMIT, "no transaction is interrupted");
        round += 1;
        let done = AtomicBool::new(false);
        let history = thread::scope(|s| {
            s.spawn(|| break_now_and_then(&server, seed ^ round, breaks, &done));
            let _end = SetAtEnd(&done);
            history_of(&server, (seed, round), breaks, &done)
        });
        let what = format!("seed {seed}, {threads} workers, {breaks:?}, round {round}");
        assert_serializable(&history, &what);
        unknown += history.iter().filter(|txn| txn.outcome == Outcome::Unknown).count();
    }
    println!("{threads} workers, {breaks:?}: {round} rounds, {unknown} without a reply");
    assert!(server.answers());
}

/// Repeatedly kills all other clients, or makes the next command of a kind panic after some
/// changes.
fn break_now_and_then(server: &ServerProcess, seed: u64, breaks: Breaks, done: &AtomicBool) {
    const COMMANDS: &[&str] = &["rpush", "append", "xadd", "lmove", "blmove"];
    let (mut wire, mut rng) = (server.connect(), Rng::new(seed));
    while !done.load(Ordering::Acquire) {
        thread::sleep(Duration::from_micros(500 + rng.below(4000) as u64));
        let text = match breaks {
            Breaks::Never => return,
            Breaks::Kills => "CLIENT KILL TYPE normal SKIPME yes".to_owned(),
            Breaks::Panics => {
                let (command, changes) = (rng.pick(COMMANDS), 1 + rng.below(3));
                format!("DEBUG PANIC-IN-COMMAND {command} {changes}")
            }
        };
        let reply = wire.command(&args(&text)).expect("nobody kills it");
        assert!(!matches!(reply, Value::Error(_)), "{text}: {reply:?}");
    }
}
