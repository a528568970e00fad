//! Defragmentation of a whole server: memory between entries comes back while clients write, and
//! nobody notices anything else.

use sheafdb_tests::big::figure;
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Keys of each kind. (Each worker has a span of each size class that it fills, and each class one
/// in reserve: some MiB of gaps stay, however few keys there are.)
const STRINGS: usize = 100_000;
const OTHERS: usize = 1_500;
/// Commands on their way at a time.
const PIPELINE: usize = 500;

/// A server under test; `None` for the reference.
fn start(threads: usize) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    let threads = threads.to_string();
    let args = [
        "--threads",
        &threads,
        "--activedefrag",
        "no",
        "--active-defrag-ignore-bytes",
        "1mb",
        "--active-defrag-threshold-lower",
        "5",
        "--active-defrag-cycle-min",
        "40",
        "--active-defrag-cycle-max",
        "75",
    ];
    (binary.kind == Kind::SheafDb).then(|| ServerProcess::start(&binary, &args))
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).unwrap_or_else(|e| panic!("'{line}': {e}")))
}

/// Sends commands in pipelines and returns the replies, none of which is an error.
fn all(wire: &mut Wire, commands: impl IntoIterator<Item = String>) -> Vec<String> {
    let commands: Vec<String> = commands.into_iter().collect();
    let mut replies = Vec::new();
    for some in commands.chunks(PIPELINE) {
        let words = |line: &String| encode(&line.split(' ').collect::<Vec<_>>());
        wire.send(&some.iter().flat_map(words).collect::<Vec<_>>()).expect("it takes requests");
        for line in some {
            let reply = wire.receive().expect("answered");
            assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
            replies.push(render::line(&reply));
        }
    }
    replies
}

/// Two keys in five stay.
fn stays(n: usize) -> bool {
    n * 7 % 5 < 2
}

/// The names of all keys that were made by [`fill`] and fulfil the condition.
fn names(is_one: impl Fn(usize) -> bool + Copy) -> Vec<String> {
    let of = |kind: &'static str, count: usize| {
        (0..count).filter(move |n| is_one(*n)).map(move |n| format!("{kind}:{n}"))
    };
    let others = ["hash", "zset", "stream", "list"].map(|kind| of(kind, OTHERS));
    of("string", STRINGS).chain(others.into_iter().flatten()).collect()
}

/// Keys of all kinds, some of which expire late.
fn fill(wire: &mut Wire) {
    let text = "x".repeat(140);
    all(
        wire,
        (0..STRINGS).map(|n| match n % 4 {
            0 => format!("SET string:{n} {n}{text} EX 100000"),
            _ => format!("SET string:{n} {n}{text}"),
        }),
    );
    let fields =
        (0..8).map(|at| format!(" field{at} value-{at}-of-it")).collect::<Vec<_>>().concat();
    all(wire, (0..OTHERS).map(|n| format!("HSET hash:{n} n {n}{fields}")));
    let members = (0..8).map(|at| format!(" {at} member-{at}-of-it")).collect::<Vec<_>>().concat();
    all(wire, (0..OTHERS).map(|n| format!("ZADD zset:{n} {n} n{members}")));
    all(wire, (0..OTHERS).map(|n| format!("XADD stream:{n} 1-{} n {n} text {text}", n + 1)));
    all(wire, (0..OTHERS).map(|n| format!("RPUSH list:{n} {n} {text} b c")));
    all(wire, (0..OTHERS).step_by(3).map(|n| format!("EXPIRE hash:{n} 100000")));
}

/// Digest and expiry time of keys.
fn state(wire: &mut Wire, names: &[String]) -> Vec<String> {
    let mut state = all(wire, names.iter().map(|name| format!("DEBUG DIGEST-VALUE {name}")));
    state.extend(all(wire, names.iter().map(|name| format!("EXPIRETIME {name}"))));
    state
}

/// Writes, transactions under WATCH, and keys that expire, on keys of its own, until told to end.
/// Returns how many transactions there were: all of them run.
fn write(wire: &mut Wire, me: usize, is_over: &AtomicBool) -> usize {
    let text = "y".repeat(100);
    let mut rounds = 0;
    while !is_over.load(Relaxed) || rounds == 0 {
        all(wire, (0..200).map(|n| format!("SET writer{me}:{n} {rounds}{text}")));
        all(wire, (0..50).map(|n| format!("SET short{me}:{n} {text} PX {}", 1 + n)));
        let own = format!("string:{}", 5 * me);
        ask(wire, &format!("WATCH {own} hash:{} counter{me}", 5 * me));
        ask(wire, "MULTI");
        ask(wire, &format!("INCR counter{me}"));
        ask(wire, &format!("HSET own{me} field{} {rounds}", rounds % 20));
        let reply = wire.command(&["EXEC"]).expect("answered");
        assert!(matches!(reply, Value::Array(_)), "nobody has changed a watched key: {reply:?}");
        rounds += 1;
        assert_eq!(ask(wire, &format!("GET counter{me}")), format!("\"{rounds}\""));
    }
    rounds
}

/// Ends the writers when it is dropped, after a failure, too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The suite's story, with one or two workers.
fn memory_comes_back(threads: usize) {
    let Some(server) = start(threads) else { return };
    let (mut wire, mut watcher) = (server.connect(), server.connect());
    fill(&mut wire);
    all(&mut wire, names(|n| !stays(n)).into_iter().map(|name| format!("DEL {name}")));
    let kept = names(stays);
    let before = state(&mut wire, &kept);
    assert!(before.iter().all(|line| !line.ends_with(":-2")), "all of them are there");
    let gaps = figure(&mut wire, "memory", "allocator_frag_bytes");
    assert_eq!(figure(&mut wire, "stats", "active_defrag_hits"), 0, "it is off");
    // A transaction watches some of the keys all the time.
    let watched: Vec<&str> = kept.iter().step_by(20).map(String::as_str).collect();
    watcher.command(&[&["WATCH"], &watched[..]].concat()).expect("answered");
    let (is_over, transactions) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for me in 0..2 {
            let (mut writer, is_over, transactions) = (server.connect(), &is_over, &transactions);
            scope.spawn(move || {
                transactions.fetch_add(write(&mut writer, me, is_over), Relaxed);
            });
        }
        let _over = Over(&is_over);
        assert_eq!(ask(&mut wire, "CONFIG SET activedefrag yes"), "+OK");
        until("entries are moved", || figure(&mut wire, "stats", "active_defrag_hits") > 0);
        // A save in between ends the round; another one begins behind it.
        ask(&mut wire, "BGSAVE");
        until("the save ends", || figure(&mut wire, "persistence", "rdb_bgsave_in_progress") == 0);
        until("memory between entries comes back", || {
            figure(&mut wire, "memory", "allocator_frag_bytes") * 10 < gaps * 6
        });
    });
    assert!(transactions.load(Relaxed) > 0);
    until("it rests", || figure(&mut wire, "memory", "active_defrag_running") == 0);
    assert_eq!(ask(&mut watcher, "MULTI"), "+OK");
    assert_eq!(ask(&mut watcher, "PING"), "+QUEUED");
    let reply = watcher.command(&["EXEC"]).expect("answered");
    assert!(matches!(reply, Value::Array(_)), "a move breaks no WATCH: {reply:?}");
    assert_eq!(state(&mut wire, &kept), before, "every value is what it was");
    until("keys expire", || {
        let left = ask(&mut wire, "EXISTS short0:49 short1:49 short0:1 short1:1");
        left == ":0"
    });
    // What was saved and what is loaded again is the same.
    assert_eq!(ask(&mut wire, "DEBUG RELOAD"), "+OK");
    assert_eq!(state(&mut wire, &kept), before, "and so it is on disk");
    assert!(figure(&mut wire, "stats", "active_defrag_key_misses") > 0);
    assert!(figure(&mut wire, "stats", "total_active_defrag_time") > 0);
    assert_eq!(ask(&mut wire, "CONFIG SET activedefrag no"), "+OK");
    until("it ends", || figure(&mut wire, "memory", "active_defrag_running") == 0);
    assert_eq!(ask(&mut wire, "CONFIG RESETSTAT"), "+OK");
    for name in ["hits", "key_hits", "misses", "key_misses", "step_max_us"] {
        assert_eq!(figure(&mut wire, "stats", &format!("active_defrag_{name}")), 0, "{name}");
    }
}

#[test]
fn memory_comes_back_with_one_worker() {
    memory_comes_back(1);
}

#[test]
fn memory_comes_back_with_two_workers() {
    memory_comes_back(2);
}

/// After FLUSHALL spans and tables go back without being asked for.
#[test]
fn what_is_flushed_goes_back_to_the_system() {
    let Some(server) = start(2) else { return };
    let mut wire = server.connect();
    let text = "z".repeat(200);
    all(&mut wire, (0..100_000).map(|n| format!("SET key:{n} {text}")));
    let full = figure(&mut wire, "memory", "allocator_resident");
    assert!(full > 20 << 20, "{full}");
    assert_eq!(ask(&mut wire, "FLUSHALL"), "+OK");
    // 4 MiB of free spans may stay, and what the allocator holds of an empty server. (Worker 0 is
    // not idle: it answers this.)
    until("it goes back", || figure(&mut wire, "memory", "allocator_resident") < 14 << 20);
    assert!(ask(&mut wire, "MEMORY DOCTOR").contains("little to look at"));
}
