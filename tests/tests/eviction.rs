//! A server at `maxmemory`: it stays within, whatever is written, and evicts what its policy says.

use sheafdb_tests::big::figure;
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::Wire;
use std::process::{Command, Stdio};

const MIB: i64 = 1 << 20;

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
fn storm(server: &ServerProcess, bytes: usize, count: usize) -> i64 {
    let port = server.addr.port().to_string();
    let (bytes, count) = (bytes.to_string(), count.to_string());
    let args = ["-p", &port, "-c", "50", "-P", "64", "-r", "100000000", "-t", "set"];
    let mut load = Command::new("redis-benchmark")
        .args(args)
        .args(["-d", &bytes, "-n", &count, "-q"])
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
    for (bytes, count) in [(64, 1_200_000), (1_500, 150_000), (20_000, 20_000), (64, 400_000)] {
        let before = figure(&mut wire, "stats", "evicted_keys");
        let most = storm(&server, bytes, count);
        let evicted = figure(&mut wire, "stats", "evicted_keys") - before;
        assert!(evicted > 1_000, "{bytes}: {evicted}");
        assert!(most > LIMIT * 9 / 10, "{bytes}: it is full, not empty: {most}");
        assert!(most <= LIMIT + LIMIT / 50, "{bytes}: {most}");
    }
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
    assert_eq!(set("EXISTS brief:0".into()), ":0");
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
    let keys = ask(&mut wire, "DBSIZE");
    let digest = ask(&mut wire, "DEBUG DIGEST");
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 0"), "+OK");
    assert_eq!(ask(&mut wire, "DEBUG LOADAOF"), "+OK");
    assert_eq!((ask(&mut wire, "DBSIZE"), ask(&mut wire, "DEBUG DIGEST")), (keys, digest));
}

#[test]
fn large_values_go_one_by_one() {
    let Some(server) = start(&["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]) else {
        return;
    };
    let mut wire = server.connect();
    let text = "v".repeat(100_000);
    for n in 0..100 {
        let mut words = vec!["HSET".to_owned(), format!("hash:{n}")];
        words.extend((0..10).flat_map(|field| [format!("f{field}"), text.clone()]));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(wire.command(&words).map(|r| render::line(&r)).expect("answered"), ":10");
    }
    // A megabyte each, of which 64 have no room, and not many less.
    let keys = ask(&mut wire, "DBSIZE");
    assert!(matches!(keys.trim_start_matches(':').parse(), Ok(45..64)), "{keys}");
    // A lower limit is followed, and does not wait for a write.
    assert_eq!(ask(&mut wire, "CONFIG SET maxmemory 32mb"), "+OK");
    until("it is followed", || figure(&mut wire, "memory", "used_memory") < 33 * MIB);
    let keys = ask(&mut wire, "DBSIZE");
    assert!(matches!(keys.trim_start_matches(':').parse(), Ok(15..32)), "{keys}");
    assert_eq!(ask(&mut wire, "EXISTS hash:99"), ":1");
}
