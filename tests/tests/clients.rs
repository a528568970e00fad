//! Real clients against the server under test: redis-py, ioredis, redis-benchmark, redis-cli.

use std::process::Command;

use sheafdb_tests::program::{node, output_until, python, root, run};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::Value;

fn start() -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &[])
}

/// Checks that no command panicked: a client which reconnects and retries would hide it.
fn assert_no_panic(server: &ServerProcess) {
    assert!(!server.log().contains("panicked"), "a command panicked");
}

fn redis_cli(server: &ServerProcess) -> Command {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.addr.port().to_string()]);
    command
}

fn fill(server: &ServerProcess, keys: usize) {
    let mut wire = server.connect();
    for n in 0..keys {
        let reply = wire.command(&["SET", &format!("key:{n}"), &"v".repeat(n % 50)]);
        assert_eq!(reply.expect("answered"), Value::Simple(b"OK".to_vec()));
    }
}

#[test]
fn redis_py() {
    let server = start();
    let mut command = python();
    command.arg("tests/clients/smoke.py").args(["127.0.0.1", &server.addr.port().to_string()]);
    print!("{}", run(&mut command, b""));
    assert_no_panic(&server);
}

/// What web frameworks do with a cache, on servers which evict.
#[test]
fn redis_py_as_a_cache() {
    for (threads, policy) in ["1", "2"]
        .into_iter()
        .flat_map(|threads| ["allkeys-lru", "volatile-lfu"].map(|policy| (threads, policy)))
    {
        let limit = ["--maxmemory", "24mb", "--maxmemory-policy", policy];
        let server = ServerProcess::start(
            &Binary::under_test(),
            &[&["--threads", threads, "--maxmemory-eviction-tenacity", "100"], &limit[..]].concat(),
        );
        let mut command = python();
        command.arg("tests/clients/cache.py").args(["127.0.0.1", &server.addr.port().to_string()]);
        print!("{threads} threads, {}", run(&mut command, b""));
        assert_no_panic(&server);
    }
}

/// A cache in the client, which the server tells of changes.
#[test]
fn redis_py_with_a_client_side_cache() {
    for threads in ["1", "2"] {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        let mut command = python();
        command.arg("tests/clients/cached.py").args(["127.0.0.1", &server.addr.port().to_string()]);
        print!("{threads} threads, {}", run(&mut command, b""));
        assert_no_panic(&server);
    }
}

#[test]
fn ioredis() {
    let server = start();
    let mut command = node();
    command.arg("tests/clients/smoke.js").args(["127.0.0.1", &server.addr.port().to_string()]);
    print!("{}", run(&mut command, b""));
    assert_no_panic(&server);
}

/// Runs redis-benchmark with these tests. Each of `named` must have a result, and the output must
/// not contain an error message.
fn benchmark(server: &ServerProcess, tests: &str, extra: &[&str], named: &[&str]) {
    let mut command = Command::new("redis-benchmark");
    command.args(["-p", &server.addr.port().to_string(), "-q", "-t", tests]);
    let text = run(command.args(extra), b"");
    let lower = text.to_lowercase();
    for word in ["warn", "err", "fail", "could not", "wrongtype"] {
        assert!(!lower.contains(word), "redis-benchmark says '{word}':\n{text}");
    }
    for name in named {
        let told = text.split(['\n', '\r']).any(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(": ") && rest.contains("requests per second"))
        });
        assert!(told, "no result for {name}:\n{text}");
    }
}

#[test]
fn redis_benchmark_completes_without_errors() {
    let server = start();
    for extra in [&["-n", "20000"][..], &["-n", "20000", "-P", "16", "-c", "20"][..]] {
        let named = ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"];
        benchmark(&server, "ping,set,get,incr,mset", extra, &named);
    }
}

/// The default tests of redis-benchmark, except for streams.
#[test]
fn redis_benchmark_default_set() {
    let tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset";
    let named = [
        "PING_INLINE",
        "PING_MBULK",
        "SET",
        "GET",
        "INCR",
        "LPUSH",
        "RPUSH",
        "LPOP",
        "RPOP",
        "SADD",
        "HSET",
        "SPOP",
        "ZADD",
        "ZPOPMIN",
        "LPUSH (needed to benchmark LRANGE)",
        "LRANGE_100 (first 100 elements)",
        "LRANGE_300 (first 300 elements)",
        "LRANGE_500 (first 500 elements)",
        "LRANGE_600 (first 600 elements)",
        "MSET (10 keys)",
    ];
    for threads in ["1", "2"] {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        benchmark(&server, tests, &["-n", "2000"], &named);
        benchmark(&server, tests, &["-n", "2000", "-P", "16", "-r", "500", "-3"], &named);
        assert_no_panic(&server);
    }
}

#[test]
fn redis_cli_commands() {
    let server = start();
    let lines =
        b"set greeting \"hello there\"\nget greeting\nincr n\nnosuch\nmulti\nincr n\nexec\n";
    let text = run(&mut redis_cli(&server), lines);
    assert_eq!(
        text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        [
            "OK",
            "hello there",
            "1",
            "ERR unknown command 'nosuch', with args beginning with: ",
            "OK",
            "QUEUED",
            "2"
        ]
    );
    let text = run(redis_cli(&server).args(["-3", "--no-raw", "hello", "3"]), b"");
    assert!(text.contains("\"proto\" => (integer) 3"), "{text}");
}

#[test]
fn redis_cli_scan_and_bigkeys() {
    let server = start();
    fill(&server, 3000);
    let text = run(redis_cli(&server).args(["--scan", "--pattern", "key:*"]), b"");
    let found: std::collections::BTreeSet<&str> = text.lines().collect();
    assert_eq!(found.len(), 3000);
    let text = run(redis_cli(&server).arg("--bigkeys"), b"");
    assert!(text.contains("Sampled 3000 keys in the keyspace!"), "{text}");
    assert!(text.contains("has 49 bytes"), "{text}");
    let text = run(redis_cli(&server).arg("--memkeys"), b"");
    assert!(text.contains("Sampled 3000 keys in the keyspace!"), "{text}");
}

#[test]
fn redis_cli_pipe() {
    let server = start();
    let mut input = Vec::new();
    for n in 0..50_000 {
        let key = format!("pipe:{n}");
        input.extend(sheafdb_tests::wire::encode(&["SET", &key, "value"]));
    }
    let text = run(redis_cli(&server).arg("--pipe"), &input);
    assert!(text.contains("errors: 0, replies: 50000"), "{text}");
    let mut wire = server.connect();
    assert_eq!(wire.command(&["DBSIZE"]).expect("answered"), Value::Int(50_000));
}

/// These modes do not end by themselves; the test kills them after the expected output.
#[test]
fn redis_cli_stat_and_latency() {
    let server = start();
    fill(&server, 10);
    let prints = |args: &[&str], wanted: &str| {
        // It buffers its output if that is not a terminal; killing it would lose the buffer.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "redis-cli", "-p", &server.addr.port().to_string()]);
        command.args(args);
        let text = output_until(&mut command, |text| text.contains(wanted));
        assert!(text.contains(wanted), "redis-cli {args:?} printed no '{wanted}':\n{text}");
    };
    prints(&["--stat", "-i", "0.2"], "\n10 ");
    let text = run(redis_cli(&server).args(["--latency", "--raw", "-i", "1"]), b"");
    let words: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Minimum, maximum, average in ms, and how many.
    assert!(words.len() == 4 && words[3] >= 1.0 && words[2] < 500.0, "{text}");
}

/// The program of docs/from-redis.md which copies all keys to a running server, with a key of every
/// type.
#[test]
fn the_documented_program_copies_keys_to_redis() {
    let (ours, redis) = (start(), ServerProcess::start(&Binary::redis(), &[]));
    let (mut here, mut there) = (ours.connect(), redis.connect());
    for line in [
        "SET text hello",
        "SET number 42 PXAT 4102444800000",
        "RPUSH list a b 3",
        "HSET hash name ada age 36",
        "SADD numbers 1 2 3",
        "SADD words a b c",
        "ZADD board 1 a 2.5 b inf c",
        "PEXPIREAT board 4102444800000",
        "GEOADD places 13.405 52.52 Berlin",
        "PFADD visitors a b c",
        "SETBIT bits 100 1",
    ] {
        let reply = here.command(&line.split(' ').collect::<Vec<_>>()).expect("answered");
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    }
    let large: Vec<String> = (0..5000).map(|n| format!("element {n}")).collect();
    let mut push = vec!["RPUSH", "large"];
    push.extend(large.iter().map(String::as_str));
    here.command(&push).expect("answered");

    let text = std::fs::read_to_string(root().join("docs/from-redis.md")).expect("it is there");
    let from = text.find("import redis\n\nhere, there").expect("it tells how to copy keys");
    let script = &text[from..];
    let script = &script[..script.find("```").expect("its end")];
    let script = script
        .replace("port=6379", &format!("port={}", ours.addr.port()))
        .replace("port=7000", &format!("port={}", redis.addr.port()));
    run(python().args(["-c", &script]), b"");

    assert_eq!(there.command(&["DBSIZE"]).expect("answered"), Value::Int(11));
    for line in [
        "GET text",
        "GET number",
        "PEXPIRETIME number",
        "LRANGE list 0 -1",
        "LRANGE large 0 -1",
        "HGET hash name",
        "HGET hash age",
        "HLEN hash",
        "SORT numbers",
        "SORT words ALPHA",
        "ZRANGE board 0 -1 WITHSCORES",
        "PEXPIRETIME board",
        "GEOPOS places Berlin",
        "PFCOUNT visitors",
        "GET bits",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let [a, b] = [&mut here, &mut there].map(|wire| wire.command(&words).expect("answered"));
        assert_eq!(a, b, "{line}");
    }
}
