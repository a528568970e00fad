//! A server at `maxmemory`: it stays within, whatever is written, and evicts what its policy says.

use sheafdb_tests::big::figure;
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Wire, encode};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const MIB: i64 = 1 << 20;
/// Bytes of a value beside a save.
const VALUE: usize = 2_000;

/// A server under test which is at its limit soon; `None` for the reference.
fn start(args: &[&str]) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    let own = ["--threads", "2", "--maxmemory-eviction-tenacity", "100"];
    let args: Vec<&str> = own.iter().chain(args).copied().collect();
    (binary.kind == Kind::SheafDb).then(|| ServerProcess::start(&binary, &args))
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).unwrap_or_else(|e| panic!("'{line}': {e}")))
}

/// Fills a server beyond its limit with 50 connections, and returns the most that INFO has shown.
fn storm(server: &ServerProcess, bytes: usize, pipeline: usize, count: usize) -> i64 {
    let port = server.addr.port().to_string();
    let [bytes, pipeline, count] = [bytes, pipeline, count].map(|number| number.to_string());
    let args = ["-p", &port, "-c", "50", "-P", &pipeline, "-r", "100000000"];
    // (Keys with the size in them: the random numbers are often those of the run before.)
    let key = format!("{bytes}:{count}:__rand_int__");
    let mut load = Command::new("redis-benchmark")
        .args(args)
        .args(["-d", &bytes, "-n", &count, "-q", "SET", &key, "__data__"])
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-benchmark is installed");
    let (mut wire, mut most) = (server.connect(), 0);
    loop {
        most = most.max(figure(&mut wire, "memory", "used_memory"));
        if let Some(status) = load.try_wait().expect("a child") {
            assert!(status.success(), "a write was refused");
            return most;
        }
    }
}

#[test]
fn the_limit_holds_in_a_storm_of_writes() {
    const LIMIT: i64 = 64 * MIB;
    let args = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(server) = start(&args) else { return };
    let mut wire = server.connect();
    for (bytes, pipeline, count) in
        [(64, 64, 1_200_000), (1_500, 16, 150_000), (20_000, 4, 20_000), (64, 64, 400_000)]
    {
        let before = figure(&mut wire, "stats", "evicted_keys");
        let most = storm(&server, bytes, pipeline, count);
        let evicted = figure(&mut wire, "stats", "evicted_keys") - before;
        assert!(evicted > 1_000, "{bytes}: {evicted} of {most}");
        assert!(most > LIMIT * 8 / 10, "{bytes}: it is full, not empty: {most}");
        // What all connections have sent may lie in the server at once, if it gets no processor
        // for a while.
        let sent = (50 * pipeline * bytes) as i64;
        assert!(most <= LIMIT + LIMIT / 100 + sent, "{bytes}: {most}");
    }
}

/// Whether there is room is known for each window of commands: many clients which send at once
/// exceed the limit by little, and a DEL makes room for what stands behind it.
#[test]
fn without_eviction_the_limit_holds_and_room_is_used_at_once() {
    const LIMIT: i64 = 64 * MIB;
    let args = ["--maxmemory", "64mb", "--maxmemory-policy", "noeviction"];
    let Some(server) = start(&args) else { return };
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.";
    let value = vec![b'v'; 10_000];
    let mut wires: Vec<Wire> = (0..20).map(|_| server.connect()).collect();
    for round in 0..20 {
        for (client, wire) in wires.iter_mut().enumerate() {
            let key = |n: usize| format!("{client}:{round}:{n}").into_bytes();
            let sets = (0..50).flat_map(|n| encode(&[&b"SET"[..], &key(n), &value]));
            wire.send(&sets.collect::<Vec<_>>()).expect("sent");
        }
        for wire in &mut wires {
            for _ in 0..50 {
                let reply = render::line(&wire.receive().expect("answered"));
                assert!(reply == "+OK" || reply == oom, "{reply}");
            }
        }
    }
    let wire = &mut wires[0];
    let used = figure(wire, "memory", "used_memory");
    assert!(used > LIMIT * 9 / 10, "{used}: it is full");
    // (A window for each worker, and what has arrived of its arguments.)
    assert!(used <= LIMIT + LIMIT / 100 + 2 * 32 * 10_000, "{used}");
    assert_eq!(ask(wire, "SET another value"), oom);
    // More than the limit may be exceeded by. (Of the first rounds everything was stored.)
    let names: Vec<String> =
        (0..5).flat_map(|round| (0..50).map(move |n| format!("0:{round}:{n}"))).collect();
    let del: Vec<&str> = std::iter::once("DEL").chain(names.iter().map(String::as_str)).collect();
    wire.send(&[encode(&del), encode(&["SET", "another", "value"])].concat()).expect("sent");
    let replies = [(); 2].map(|()| render::line(&wire.receive().expect("answered")));
    assert_eq!(replies, [":250", "+OK"]);
}

/// The limit moves while two workers write: no write is refused, nobody waits for ever, and the
/// last limit is followed.
#[test]
fn a_limit_that_moves_under_load_is_followed() {
    let Some(server) = start(&["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-random"])
    else {
        return;
    };
    let mut wire = server.connect();
    std::thread::scope(|scope| {
        let load = scope.spawn(|| storm(&server, 300, 16, 600_000));
        let mut low = false;
        while !load.is_finished() {
            low = !low;
            let limit = if low { "24mb" } else { "96mb" };
            assert_eq!(ask(&mut wire, &format!("CONFIG SET maxmemory {limit}")), "+OK");
            let policy = if low { "allkeys-lfu" } else { "allkeys-lru" };
            assert_eq!(ask(&mut wire, &format!("CONFIG SET maxmemory-policy {policy}")), "+OK");
        }
        load.join().expect("no write was refused");
    });
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 16mb"), "+OK");
    until("it is followed", || figure(&mut wire, "memory", "used_memory") <= 16 * MIB);
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 0"), "+OK");
    let keys = figure(&mut wire, "stats", "evicted_keys");
    assert_eq!(ask(&mut wire, "SET a b"), "+OK");
    assert!(keys > 1_000 && figure(&mut wire, "stats", "evicted_keys") == keys, "{keys}");
}

/// Queues writes of 8 MB each in a transaction.
fn queue(wire: &mut Wire, key: &str, count: usize) -> bool {
    let value = vec![b'v'; 8 * MIB as usize];
    let mut send = |args: &[&[u8]]| wire.command(args).map(|reply| render::line(&reply)).ok();
    send(&[b"MULTI"]).is_some()
        && (0..count).all(|_| send(&[b"SET", key.as_bytes(), &value]).as_deref() == Some("+QUEUED"))
}

fn exec(wire: &mut Wire) -> bool {
    wire.command(&["EXEC"]).is_ok()
}

#[test]
fn the_clients_which_hold_most_are_closed() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let mut wire = server.connect();
    for bad in ["-1", "101%", "5%%", "x"] {
        let reply = ask(&mut wire, &format!("CONFIG SET maxmemory-clients {bad}"));
        assert!(reply.starts_with("-ERR CONFIG SET failed (possibly"), "{reply}");
    }
    let mut free = server.connect();
    assert!(queue(&mut free, "free", 3) && exec(&mut free), "there is no limit");
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 100mb maxmemory-clients 20%"), "+OK");
    assert_eq!(ask(&mut wire, "CONFIG GET maxmemory-clients"), r#"*2 "maxmemory-clients" "20%""#);
    let mut bounded = server.connect();
    assert!(!(queue(&mut bounded, "bounded", 3) && exec(&mut bounded)), "it is closed");
    until("it is counted", || figure(&mut wire, "stats", "evicted_clients") >= 1);
    // Of two who hold too much together, the larger one may not be closed.
    let mut protected = server.connect();
    assert_eq!(ask(&mut protected, "CLIENT NO-EVICT ON"), "+OK");
    assert!(queue(&mut protected, "protected", 2));
    assert!(!(queue(&mut bounded, "bounded", 1) && exec(&mut bounded)), "it is closed");
    let mut smaller = server.connect();
    assert!(!(queue(&mut smaller, "bounded", 1) && exec(&mut smaller)), "so it is this one");
    assert!(exec(&mut protected));
    assert_eq!(ask(&mut wire, "EXISTS free bounded protected"), ":2");
    assert!(figure(&mut wire, "stats", "evicted_clients") >= 2);
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory-clients 0"), "+OK");
    let mut free = server.connect();
    assert!(queue(&mut free, "bounded", 3) && exec(&mut free), "the limit is gone");
}

#[test]
fn a_percentage_is_one_of_what_the_process_may_have() {
    let Some(server) = start(&["--maxmemory", "50%"]) else { return };
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "CONFIG GET maxmemory"), r#"*2 "maxmemory" "50%""#);
    let half = figure(&mut wire, "memory", "maxmemory");
    let all = figure(&mut wire, "memory", "total_system_memory");
    assert!((MIB..=all / 2).contains(&half), "{half} of {all}");
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 25%"), "+OK");
    assert_eq!(figure(&mut wire, "memory", "maxmemory"), half / 2);
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 1gb"), "+OK");
    assert_eq!(ask(&mut wire, "CONFIG GET maxmemory"), r#"*2 "maxmemory" "1073741824""#);
    for bad in ["%", "101%", "-5%", "1.5%", "99999999999999999999%"] {
        let reply = ask(&mut wire, &format!("CONFIG SET maxmemory {bad}"));
        assert!(reply.starts_with("-ERR CONFIG SET failed (possibly"), "{reply}");
    }
    assert_eq!(figure(&mut wire, "memory", "maxmemory"), 1 << 30);
}

#[test]
fn writes_fail_when_no_key_may_go() {
    let Some(server) = start(&["--maxmemory", "32mb", "--maxmemory-policy", "volatile-lru"]) else {
        return;
    };
    let mut wire = server.connect();
    let value = "v".repeat(10_000);
    let mut set = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        render::line(&wire.command(&words).expect("answered"))
    };
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.";
    let kept = (0..10_000).take_while(|n| set(format!("SET kept:{n} {value}")) != oom).count();
    assert!((1_000..10_000).contains(&kept), "{kept}");
    assert_eq!(set("GET kept:0".into()).len(), set(format!("GET kept:{}", kept - 1)).len());
    // Room for some which may go.
    for n in 0..500 {
        assert_eq!(set(format!("DEL kept:{n}")), ":1");
    }
    until("what was removed is freed", || set("SET a b EX 1000".into()) == "+OK");
    for n in 0..2_000 {
        let reply = set(format!("SET brief:{n} {value} EX 1000"));
        assert_eq!(reply, "+OK", "{n}: others may go");
    }
    assert!((500..kept).all(|n| set(format!("EXISTS kept:{n}")) == ":1"), "these may not");
    let brief = (0..2_000).filter(|n| set(format!("EXISTS brief:{n}")) == ":1").count();
    assert!((100..2_000).contains(&brief), "{brief}");
    // The limit is exceeded while nothing may go, and not any more once it is higher.
    assert_eq!(set("CONFIG SET maxmemory 1mb".into()), "+OK");
    until("nothing is left which may go", || set("SET a b".into()) == oom);
    let current = "current_eviction_exceeded_time";
    until("it is exceeded", || figure(&mut server.connect(), "stats", current) > 0);
    assert_eq!(set("CONFIG SET maxmemory 1gb".into()), "+OK");
    until("it is kept", || figure(&mut server.connect(), "stats", current) == 0);
    assert!(figure(&mut server.connect(), "stats", "total_eviction_exceeded_time") > 0);
}

#[test]
fn what_is_evicted_is_a_change() {
    let folder = Folder::new("evicted");
    let always = ["--appendonly", "yes", "--appendfsync", "everysec", "--dir", folder.path()];
    let args = ["--maxmemory", "32mb", "--maxmemory-policy", "allkeys-random"];
    let Some(server) = start(&[&always[..], &args].concat()) else { return };
    let mut wire = server.connect();
    let mut watcher = server.connect();
    for n in 0..50 {
        assert_eq!(ask(&mut watcher, &format!("SET watched:{n} v")), "+OK");
        assert_eq!(ask(&mut watcher, &format!("WATCH watched:{n}")), "+OK");
    }
    let value = "v".repeat(1_000);
    for n in 0..40_000 {
        assert_eq!(ask(&mut wire, &format!("SET key:{n} {value}")), "+OK");
    }
    assert_eq!(ask(&mut watcher, "MULTI"), "+OK");
    assert_eq!(ask(&mut watcher, "SET a b"), "+QUEUED");
    assert_eq!(ask(&mut watcher, "EXEC"), "null-array", "a watched key was evicted");
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 0"), "+OK");
    let keys = ask(&mut wire, "DBSIZE");
    let digest = ask(&mut wire, "DEBUG DIGEST");
    assert_eq!(ask(&mut wire, "DEBUG LOADAOF"), "+OK");
    assert_eq!((ask(&mut wire, "DBSIZE"), ask(&mut wire, "DEBUG DIGEST")), (keys, digest));
}

/// Also beside a save, which keeps what it has captured for a while.
#[test]
fn large_values_go_one_by_one() {
    for has_save in [false, true] {
        let limit = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru", "--save", ""];
        let folder = Folder::new("evicted-large-values");
        let args = [&limit[..], &["--dir", folder.path()]].concat();
        let Some(server) = start(&args) else { return };
        let mut wire = server.connect();
        let text = "v".repeat(100_000);
        for n in 0..100 {
            if has_save && n == 50 {
                assert_eq!(ask(&mut wire, "CONFIG SET rdb-key-save-delay 2000000000"), "+OK");
                assert_eq!(ask(&mut wire, "BGSAVE"), "+Background saving started");
            }
            let mut words = vec!["HSET".to_owned(), format!("hash:{n}")];
            words.extend((0..10).flat_map(|field| [format!("f{field}"), text.clone()]));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(wire.command(&words).map(|r| render::line(&r)).expect("answered"), ":10");
        }
        // A megabyte each, of which 64 have no room, and not many less.
        let keys = ask(&mut wire, "DBSIZE");
        assert!(matches!(keys.trim_start_matches(':').parse(), Ok(45..64)), "{keys}, {has_save}");
        assert_eq!(ask(&mut wire, "CONFIG SET rdb-key-save-delay 0"), "+OK");
        // A lower limit is followed, and does not wait for a write.
        assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 32mb"), "+OK");
        until("it is followed", || figure(&mut wire, "memory", "used_memory") < 33 * MIB);
        let keys = ask(&mut wire, "DBSIZE");
        assert!(matches!(keys.trim_start_matches(':').parse(), Ok(15..32)), "{keys}, {has_save}");
    }
}

/// Sets new keys in bursts of one window, all with values of so many bytes.
fn set_keys(wire: &mut Wire, keys: std::ops::Range<usize>, bytes: usize) {
    let value = vec![b'v'; bytes];
    let all: Vec<usize> = keys.collect();
    for burst in all.chunks(32) {
        let key = |n: &usize| format!("key:{n}").into_bytes();
        let requests = burst.iter().flat_map(|n| encode(&[&b"SET"[..], &key(n), &value]));
        wire.send(&requests.collect::<Vec<_>>()).expect("sent");
        for _ in burst {
            assert_eq!(render::line(&wire.receive().expect("answered")), "+OK");
        }
    }
}

/// Keys that a stream of writes at the limit evicts, without or with a save under way on a disk
/// that takes nothing meanwhile.
fn evicted_beside(threads: &str, has_save: bool) -> i64 {
    let folder = Folder::new("evicted-beside-a-save");
    let limit = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru", "--save", ""];
    let own = ["--threads", threads, "--dir", folder.path()];
    let all = [&own[..], &limit, &["--maxmemory-eviction-tenacity", "100"]].concat();
    let server = ServerProcess::start(&Binary::under_test(), &all);
    let mut wire = server.connect();
    set_keys(&mut wire, 0..40_000, VALUE);
    let before = figure(&mut wire, "stats", "evicted_keys");
    assert!(before > 1_000, "{before}: it is full");
    let under_way = |wire: &mut Wire| figure(wire, "persistence", "rdb_bgsave_in_progress");
    if has_save {
        assert_eq!(ask(&mut wire, "CONFIG SET rdb-key-save-delay 2000000000"), "+OK");
        assert_eq!(ask(&mut wire, "BGSAVE"), "+Background saving started");
        until("it has begun", || under_way(&mut wire) == 1);
    }
    set_keys(&mut wire, 40_000..70_000, VALUE);
    assert_eq!(under_way(&mut wire), i64::from(has_save), "it has not ended");
    let evicted = figure(&mut wire, "stats", "evicted_keys") - before;
    assert_eq!(ask(&mut wire, "CONFIG SET rdb-key-save-delay 0"), "+OK");
    until("the save ends", || under_way(&mut wire) == 0);
    evicted
}

/// What a save keeps of keys that went, with its lists and buffers, is no reason for more of them
/// to go. (Half a megabyte of other memory is.)
#[test]
fn a_slow_save_at_the_limit_evicts_few_more_keys() {
    if Binary::under_test().kind != Kind::SheafDb {
        return;
    }
    for threads in ["1", "2"] {
        let [without, with] = [false, true].map(|has_save| evicted_beside(threads, has_save));
        println!("{threads} threads: {without} keys evicted, {with} beside a save");
        assert!(without > 25_000, "{without}: one goes for each that comes");
        assert!(with <= without + without / 100, "{without} without a save, {with} with one");
    }
}

/// A limit of clients moves while these queue transactions on two workers. What exceeds the lower
/// limit is closed, what fits into the higher one is executed, and who holds little is left alone.
#[test]
fn a_limit_of_clients_that_moves_under_load_is_followed() {
    const CLIENTS: usize = 3;
    let Some(server) = start(&[]) else { return };
    let [closed, done] = [(); 2].map(|()| AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    let value = "v".repeat(256 << 10);
    let transaction = |wire: &mut Wire| {
        let mut send = |words: &[&str]| wire.command(words).is_ok();
        send(&["MULTI"]) && (0..8).all(|_| send(&["ECHO", &value])) && send(&["EXEC"])
    };
    let mut wire = server.connect();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let mut wire = server.connect();
                    while !is_over.load(Relaxed) && transaction(&mut wire) {
                        done.fetch_add(1, Relaxed);
                    }
                    closed.fetch_add(1, Relaxed);
                }
            });
        }
        for _ in 0..10 {
            for (limit, count) in [("1mb", &closed), ("64mb", &done)] {
                let line = format!("CONFIG SET maxmemory-clients {limit}");
                assert_eq!(ask(&mut wire, &line), "+OK");
                let before = count.load(Relaxed);
                until(&line, || count.load(Relaxed) >= before + CLIENTS);
            }
        }
        is_over.store(true, Relaxed);
    });
    assert!(figure(&mut wire, "stats", "evicted_clients") >= 10 * CLIENTS as i64);
    // A lower limit does not wait for the next request of who exceeds it.
    let mut idle = server.connect();
    assert!(queue(&mut idle, "idle", 1));
    let before = figure(&mut wire, "stats", "evicted_clients");
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory-clients 2mb"), "+OK");
    until("it is closed", || figure(&mut wire, "stats", "evicted_clients") == before + 1);
    assert!(!exec(&mut idle));
}

/// A command that waits was accepted when there was room. It is judged again when it is served.
#[test]
fn a_waiting_command_is_judged_when_it_is_served() {
    for (set, reset, why) in [
        ("maxmemory 1", "maxmemory 0", "used memory > 'maxmemory'"),
        ("db-limit 0-1-noeviction", "db-limit ", "used memory of database 0 > 'db-limit'"),
    ] {
        let Some(server) = start(&[]) else { return };
        let mut wire = server.connect();
        let config = |text: &str, wire: &mut Wire| {
            let (name, value) = text.split_once(' ').expect("two words");
            let reply = wire.command(&["CONFIG", "SET", name, &value.replace('-', " ")]);
            assert_eq!(render::line(&reply.expect("answered")), "+OK");
        };
        for move_command in ["BLMOVE a b LEFT RIGHT 0", "BRPOPLPUSH a b 0"] {
            assert_eq!(ask(&mut wire, "RPUSH x 1"), ":1");
            let (mut mover, mut popper) = (server.connect(), server.connect());
            let blocked = |wire: &mut Wire| figure(wire, "clients", "blocked_clients");
            for (count, (waiter, line)) in
                [(&mut mover, move_command), (&mut popper, "BLPOP a 0")].into_iter().enumerate()
            {
                let words: Vec<&str> = line.split(' ').collect();
                waiter.send(&encode(&words)).expect("sent");
                until("it waits", || blocked(&mut wire) == count as i64 + 1);
            }
            config(set, &mut wire);
            let oom = format!("-OOM command not allowed when {why}.");
            until("there is no room", || ask(&mut wire, "SET y 1") == oom);
            // (This takes no memory by itself.)
            assert_eq!(ask(&mut wire, "RENAME x a"), "+OK");
            assert_eq!(render::line(&mover.receive().expect("answered")), oom);
            let popped = render::line(&popper.receive().expect("answered"));
            assert_eq!(popped, r#"*2 "a" "1""#, "the next one gets it");
            assert_eq!(ask(&mut wire, "EXISTS a b"), ":0");
            config(reset, &mut wire);
            // With room it is served.
            let words: Vec<&str> = move_command.split(' ').collect();
            mover.send(&encode(&words)).expect("sent");
            until("it waits", || blocked(&mut wire) == 1);
            assert_eq!(ask(&mut wire, "RPUSH a 2"), ":1");
            assert_eq!(render::line(&mover.receive().expect("answered")), "\"2\"");
            assert_eq!(ask(&mut wire, "DEL b"), ":1");
        }
    }
}
