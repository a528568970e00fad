//! Client-side caching over several workers: a client that keeps what it has read until it is told
//! never holds a stale value once its turn to be told has come. Redirections, what tells of every
//! key, and the bound of what is remembered. (Random sequences beside redis-server are the family
//! `tracking` of `differential`.)

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use sheafdb_tests::in_time::until;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};

fn start(threads: usize, extra: &[&str]) -> ServerProcess {
    let threads = threads.to_string();
    ServerProcess::start(&Binary::under_test(), &[&["--threads", &threads], extra].concat())
}

/// Runs a test on one, two and four workers, and on two between which clients move all the time.
fn everywhere(test: impl Fn(&ServerProcess)) {
    for threads in [1, 2, 4] {
        test(&start(threads, &["--enable-debug-command", "yes"]));
    }
    let server = start(2, &["--enable-debug-command", "yes"]);
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "DEBUG MOVE-CLIENTS 1"), Value::Simple(b"OK".to_vec()));
    test(&server);
    until("clients have moved", || field(&mut wire, "stats", "moved_clients") > 0);
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn ask(wire: &mut Wire, line: &str) -> Value {
    wire.command(&words(line)).unwrap_or_else(|e| panic!("'{line}': {e}"))
}

fn ok(wire: &mut Wire, line: &str) {
    assert_eq!(ask(wire, line), Value::Simple(b"OK".to_vec()), "'{line}'");
}

fn number(wire: &mut Wire, line: &str) -> i64 {
    match ask(wire, line) {
        Value::Int(n) => n,
        other => panic!("'{line}': {other:?}"),
    }
}

/// A connection that speaks RESP3.
fn resp3(server: &ServerProcess) -> Wire {
    let mut wire = server.connect();
    ask(&mut wire, "HELLO 3");
    wire
}

/// A number from INFO.
fn field(wire: &mut Wire, section: &str, name: &str) -> i64 {
    let text = match ask(wire, &format!("INFO {section}")) {
        Value::Bulk(text) | Value::Verbatim(text) => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    };
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().expect("a number")
}

/// What a client is told: some keys, or that any may have changed.
#[derive(Debug, PartialEq)]
enum Told {
    Keys(Vec<String>),
    All,
}

/// What a push, or a message in the second protocol, tells.
fn told(value: &Value) -> Option<Told> {
    let (Value::Push(items) | Value::Array(items)) = value else { return None };
    let is = |at: usize, word: &str| items.get(at) == Some(&Value::Bulk(word.into()));
    let is_message = is(0, "message") && is(1, "__redis__:invalidate");
    if !is_message && !is(0, "invalidate") {
        return None;
    }
    match items.last()? {
        Value::Null | Value::NullBulk => Some(Told::All),
        Value::Array(keys) => Some(Told::Keys(keys.iter().map(text).collect())),
        other => panic!("{other:?}"),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Null | Value::NullBulk => "nothing".to_owned(),
        other => panic!("{other:?}"),
    }
}

fn keys(names: &[&str]) -> Told {
    Told::Keys(names.iter().map(|name| (*name).to_owned()).collect())
}

fn next(wire: &mut Wire) -> Told {
    let value = wire.receive().expect("it is told");
    told(&value).unwrap_or_else(|| panic!("told of no key: {value:?}"))
}

/// What a client that tracks was told before the reply to a request of its, and the reply.
fn told_before(wire: &mut Wire, line: &str) -> (Vec<Told>, Value) {
    wire.send(&encode(&words(line))).expect("it takes requests");
    let mut all = Vec::new();
    loop {
        let value = wire.receive().expect("a reply");
        match told(&value) {
            Some(one) => all.push(one),
            None => return (all, value),
        }
    }
}

/// A client that keeps what it has read until it is told that it has changed.
struct Cache {
    wire: Wire,
    held: BTreeMap<String, String>,
}

impl Cache {
    fn forget(&mut self, told: &Told) {
        match told {
            Told::All => self.held.clear(),
            Told::Keys(keys) => keys.iter().for_each(|key| drop(self.held.remove(key))),
        }
    }

    /// Reads keys in one pipeline and keeps the values.
    fn read(&mut self, keys: &[String]) {
        let requests: Vec<u8> = keys.iter().flat_map(|key| encode(&["GET", key])).collect();
        self.wire.send(&requests).expect("it takes requests");
        for key in keys {
            loop {
                let value = self.wire.receive().expect("a reply");
                if let Some(told) = told(&value) {
                    self.forget(&told);
                    continue;
                }
                self.held.insert(key.clone(), text(&value));
                break;
            }
        }
    }
}

const KEYS: usize = 12;
const READERS: usize = 4;
const ROUNDS: usize = 250;

fn key(n: usize) -> String {
    format!("k{n}")
}

/// Readers cache in all modes, while others change the keys: alone, in transactions, by expiry. At
/// the end, when everybody is told of what had changed, no reader holds another value than the
/// server.
fn caches_hold_no_stale_value(server: &ServerProcess, mode: &str) {
    let mut wire = server.connect();
    for n in 0..KEYS {
        ok(&mut wire, &format!("SET {} 0", key(n)));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|writer: u64| {
            let (mut wire, is_over) = (server.connect(), &is_over);
            scope.spawn(move || {
                let mut rng = Rng::new(writer);
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let (one, other) = (key(rng.below(KEYS)), key(rng.below(KEYS)));
                    let lines = match rng.below(6) {
                        0 => vec![format!("MSET {one} m{round} {other} m{round}")],
                        1 => {
                            vec![format!("SET {one} x{round} PX 1"), format!("SET {one} y{round}")]
                        }
                        2 => vec!["MULTI".into(), format!("APPEND {one} z"), "EXEC".into()],
                        3 => vec![format!("RENAME {one} {other}"), format!("SET {one} r{round}")],
                        _ => vec![format!("SET {one} {writer}:{round}")],
                    };
                    let all: Vec<u8> = lines.iter().flat_map(|line| encode(&words(line))).collect();
                    wire.send(&all).expect("it takes requests");
                    for _ in &lines {
                        drop(wire.receive().expect("a reply"));
                    }
                }
            })
        });
        let end = SetAtEnd(&is_over);
        let mut caches: Vec<Cache> =
            (0..READERS).map(|_| Cache { wire: resp3(server), held: BTreeMap::new() }).collect();
        for cache in &mut caches {
            ok(&mut cache.wire, format!("CLIENT TRACKING ON {mode}").trim_end());
        }
        let mut rng = Rng::new(77);
        for _ in 0..ROUNDS {
            for cache in &mut caches {
                let some: Vec<String> = (0..8).map(|_| key(rng.below(KEYS))).collect();
                cache.read(&some);
            }
        }
        drop(end);
        let all: Vec<String> = (0..KEYS).map(key).collect();
        for cache in &mut caches {
            cache.read(&all);
        }
        for writer in writers {
            writer.join().expect("it writes");
        }
        compare(&mut wire, caches);
    });
}

/// Nobody writes any more: each cache is told once more, and then holds what the server has.
fn compare(wire: &mut Wire, caches: Vec<Cache>) {
    // What is due ends here.
    let now: Vec<String> =
        (0..KEYS).map(|n| text(&ask(wire, &format!("GET {}", key(n))))).collect();
    let mut compared = 0;
    for mut cache in caches {
        let (all, reply) = told_before(&mut cache.wire, "PING");
        assert_eq!(reply, Value::Simple(b"PONG".to_vec()));
        for told in &all {
            cache.forget(told);
        }
        for (n, value) in now.iter().enumerate() {
            if let Some(held) = cache.held.get(&key(n)) {
                assert_eq!(held, value, "k{n} is stale");
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "nothing was held at the end");
}

#[test]
fn caches_of_what_was_read_hold_no_stale_value() {
    everywhere(|server| caches_hold_no_stale_value(server, ""));
}

#[test]
fn caches_of_prefixes_hold_no_stale_value() {
    everywhere(|server| caches_hold_no_stale_value(server, "BCAST PREFIX k"));
}

/// Not more keys than half of these may be remembered: readers are told of others at random.
#[test]
fn caches_hold_no_stale_value_beyond_the_bound_of_the_table() {
    let most = (KEYS / 2).to_string();
    let server = start(2, &["--tracking-table-max-keys", &most]);
    caches_hold_no_stale_value(&server, "");
    let mut wire = server.connect();
    until("the readers have gone", || field(&mut wire, "clients", "tracking_clients") == 0);
    ok(&mut wire, "CLIENT TRACKING ON");
    let all: Vec<String> = (0..100).map(key).collect();
    let words: Vec<&str> = ["MGET"].into_iter().chain(all.iter().map(String::as_str)).collect();
    wire.command(&words).expect("a reply");
    assert_eq!(field(&mut wire, "stats", "tracking_total_keys"), KEYS as i64 / 2);
    ok(&mut wire, "CONFIG SET tracking-table-max-keys 2");
    until("the table shrinks", || field(&mut wire, "stats", "tracking_total_keys") == 2);
    ok(&mut wire, "CLIENT TRACKING OFF");
    assert_eq!(field(&mut wire, "stats", "tracking_total_keys"), 0);
    assert_eq!(field(&mut wire, "memory", "mem_tracking"), 0);
}

/// Others change a key all the time. A reader which was told of nothing since its read, although it
/// has asked since, holds what another connection has read between: a message that stands before
/// the reply with the old value would leave it with that.
#[test]
fn no_message_stands_before_the_old_value() {
    const READS: usize = 4_000;
    for threads in [2, 4] {
        let server = start(threads, &[]);
        // (Both protocols would tell in their own words that it is not there.)
        ok(&mut server.connect(), "SET n 0");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (mut wire, is_over) = (server.connect(), &is_over);
                scope.spawn(move || {
                    let some = encode(&["INCR", "n"]).repeat(32);
                    while !is_over.load(Ordering::Relaxed) {
                        wire.send(&some).expect("it takes requests");
                        for _ in 0..32 {
                            drop(wire.receive().expect("a reply"));
                        }
                    }
                });
            }
            let _end = SetAtEnd(&is_over);
            let (mut reader, mut other) = (resp3(&server), server.connect());
            ok(&mut reader, "CLIENT TRACKING ON");
            let mut held = 0;
            for _ in 0..READS {
                let (_, value) = told_before(&mut reader, "GET n");
                let now = ask(&mut other, "GET n");
                let (told, _) = told_before(&mut reader, "PING");
                if told.is_empty() {
                    assert_eq!(value, now, "it holds an old value, and is told of nothing");
                    held += 1;
                }
            }
            assert!(held < READS, "nothing was changed");
        });
    }
}

/// Who tracks at one worker is told of a change at any other before it can see the change.
#[test]
fn a_change_is_told_before_it_can_be_seen() {
    everywhere(|server| {
        let mut reader = resp3(server);
        let mut writers: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        ok(&mut reader, "CLIENT TRACKING ON");
        ok(&mut writers[0], "SET a 0");
        for round in 1..400 {
            let (told, before) = told_before(&mut reader, "GET a");
            assert_eq!(told, []);
            assert_eq!(text(&before), (round - 1).to_string());
            ok(&mut writers[round % 4], &format!("SET a {round}"));
            let (told, _) = told_before(&mut reader, "GET b");
            assert_eq!(told, [keys(&["a"])], "round {round}");
        }
    });
}

/// What tells of all keys, and what ends a key without a command on it.
#[test]
fn whatever_ends_a_key_is_told() {
    everywhere(|server| {
        let (mut reader, mut wire) = (resp3(server), server.connect());
        ok(&mut reader, "CLIENT TRACKING ON NOLOOP");
        let mut told_of = |lines: &[&str]| {
            ask(&mut reader, "MGET a b");
            for line in lines {
                ask(&mut wire, line);
            }
            next(&mut reader)
        };
        assert_eq!(told_of(&["SET a 1"]), keys(&["a"]));
        assert_eq!(told_of(&["SET b 1"]), keys(&["b"]));
        assert_eq!(told_of(&["FLUSHDB"]), Told::All);
        assert_eq!(told_of(&["FLUSHALL"]), Told::All);
        assert_eq!(told_of(&["SWAPDB 0 1"]), Told::All);
        // A key that expires by itself, and one whose last field does.
        for (set, get) in [
            ("SET a 1 PX 50", "GET a"),
            ("HSET h f 1 g 2 ; HPEXPIRE h 50 FIELDS 1 f", "HGET h f"),
            ("DEL h ; HSET h f 1 ; HPEXPIRE h 50 FIELDS 1 f", "HGET h f"),
        ] {
            loop {
                set.split(" ; ").for_each(|line| _ = ask(&mut wire, line));
                let (_, value) = told_before(&mut reader, get);
                if text(&value) == "1" {
                    break; // it was in time
                }
            }
            let key = get.split(' ').nth(1).expect("a key");
            assert_eq!(next(&mut reader), keys(&[key]), "{get}");
        }
        // Its own command finds it due: with NOLOOP, too, it is told.
        ok(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 0");
        for (set, get, other) in [
            ("SET a 1 PX 50", "GET a", "EXISTS a"),
            ("HSET h f 1 g 2 ; HPEXPIRE h 50 FIELDS 1 f", "HGET h f", "HGET h g"),
        ] {
            loop {
                set.split(" ; ").for_each(|line| _ = ask(&mut wire, line));
                if text(&told_before(&mut reader, get).1) == "1" {
                    break;
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(60));
            let key = get.split(' ').nth(1).expect("a key");
            reader.send(&encode(&words(other))).expect("it takes requests");
            let both = [(); 2].map(|()| told(&reader.receive().expect("a reply or a push")));
            assert!(both.contains(&Some(keys(&[key]))), "{other}: {both:?}");
        }
        ok(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 1");
        ask(&mut wire, "CONFIG SET maxmemory-policy allkeys-random");
        ok(&mut wire, "SET c 1");
        ask(&mut reader, "GET c");
        ask(&mut wire, "CONFIG SET maxmemory 1");
        until("a key is evicted", || {
            ask(&mut wire, "SET d 1");
            field(&mut wire, "stats", "evicted_keys") > 0
        });
        ok(&mut wire, "CONFIG SET maxmemory 0");
        until("it is told", || {
            let (told, _) = told_before(&mut reader, "PING");
            told.contains(&keys(&["c"])) || number(&mut wire, "EXISTS c") == 1
        });
    });
}

/// Messages go to another client, of any worker and in both protocols; that it is gone is told.
#[test]
fn messages_go_where_a_client_has_them_go() {
    everywhere(|server| {
        let mut wire = server.connect();
        for (proto, subscribes) in [(2, true), (3, false), (3, true)] {
            let mut targets: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
            let ids: Vec<i64> =
                targets.iter_mut().map(|target| number(target, "CLIENT ID")).collect();
            for (target, id) in targets.iter_mut().zip(&ids) {
                ask(target, &format!("HELLO {proto}"));
                if subscribes {
                    ask(target, "SUBSCRIBE __redis__:invalidate");
                }
                let mut reader = server.connect();
                ok(&mut reader, &format!("CLIENT TRACKING ON REDIRECT {id}"));
                assert_eq!(number(&mut reader, "CLIENT GETREDIR"), *id);
                ask(&mut reader, "GET a");
                ok(&mut wire, "SET a 1");
                assert_eq!(next(target), keys(&["a"]));
                // What it changes itself is told, too, also behind its end.
                ask(&mut reader, "GET a");
                ok(&mut reader, "SET a 2");
                assert_eq!(next(target), keys(&["a"]));
                ask(&mut reader, "GET a");
                ok(&mut wire, "SET a 3");
                ask(&mut reader, "QUIT");
                assert_eq!(next(target), keys(&["a"]));
            }
            let mut reader = resp3(server);
            ok(&mut reader, &format!("CLIENT TRACKING ON REDIRECT {}", ids[0]));
            drop(targets);
            let broken = Value::Bulk(b"tracking-redir-broken".to_vec());
            until("it is told that its target is gone", || {
                ok(&mut wire, "SET a 4");
                reader.send(&encode(&["GET", "a"])).expect("it takes requests");
                let mut is_broken = false;
                loop {
                    match reader.receive().expect("a reply") {
                        Value::Push(items) => is_broken |= items[0] == broken,
                        _ => return is_broken,
                    }
                }
            });
        }
    });
}

/// A client in a wait is told behind the reply for which it has waited: others may have changed
/// the key since.
#[test]
fn a_served_reader_is_told_behind_its_reply() {
    everywhere(|server| {
        let (mut reader, mut wire) = (resp3(server), server.connect());
        ok(&mut reader, "CLIENT TRACKING ON");
        for _ in 0..50 {
            ask(&mut wire, "DEL s");
            while !told_before(&mut reader, "PING").0.is_empty() {}
            reader.send(&encode(&words("XREAD BLOCK 0 STREAMS s $"))).expect("it takes requests");
            until("it waits", || field(&mut wire, "clients", "blocked_clients") == 1);
            let both =
                [encode(&words("XADD s 1-1 a b")), encode(&words("XADD s 2-1 a b"))].concat();
            wire.send(&both).expect("it takes requests");
            for _ in 0..2 {
                drop(wire.receive().expect("a reply"));
            }
            let is_told = |value: &Value| told(value) == Some(keys(&["s"]));
            let mut value = reader.receive().expect("a reply");
            while is_told(&value) {
                value = reader.receive().expect("a reply");
            }
            assert!(is_told(&reader.receive().expect("told")), "behind {value:?}");
        }
    });
}

/// Everything of clients that are gone is released.
#[test]
fn nothing_is_left_of_clients_that_are_gone() {
    everywhere(|server| {
        let mut wire = server.connect();
        for round in 0..5 {
            let mut clients: Vec<Wire> = (0..40).map(|_| resp3(server)).collect();
            for (n, client) in clients.iter_mut().enumerate() {
                let how = if n % 2 == 0 { "" } else { " BCAST PREFIX a PREFIX b PREFIX c" };
                ok(client, &format!("CLIENT TRACKING ON{how}"));
                ask(client, &format!("MGET a{n} b{n} c{round}"));
            }
            assert_eq!(field(&mut wire, "clients", "tracking_clients"), 40);
            assert_eq!(field(&mut wire, "stats", "tracking_total_prefixes"), 3);
            assert_eq!(field(&mut wire, "stats", "tracking_total_keys"), 41);
            assert_eq!(field(&mut wire, "stats", "tracking_total_items"), 60);
            ok(&mut clients[0], "SET a1 1");
            ask(&mut clients[2], "RESET");
            drop(clients);
            until("nobody tracks", || field(&mut wire, "clients", "tracking_clients") == 0);
            assert_eq!(field(&mut wire, "stats", "tracking_total_prefixes"), 0);
            assert_eq!(field(&mut wire, "stats", "tracking_total_items"), 0);
            assert_eq!(field(&mut wire, "memory", "mem_tracking"), 0);
        }
    });
}
