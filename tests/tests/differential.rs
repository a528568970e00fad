//! Random command sequences against a real server: redis-server, or what `SHEAFDB_ORACLE` names.
//! `DIFF_SEED`, `DIFF_SEQUENCES` choose which, `DIFF_FAMILY` what they are about.

use std::collections::BTreeSet;
use std::time::Instant;

use sheafdb_tests::differential::{Arena, ENABLED, FAMILIES, Family, Mix, campaign};
use sheafdb_tests::known::{self, Known};
use sheafdb_tests::quote;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess, io_backend};
use sheafdb_tests::wire::{PATIENCE, Value, Wire};

const KNOWN: &str = include_str!("../known_differences.txt");
/// Number of sequences by default.
const SEQUENCES: u64 = 5000;
/// Pairs of servers which work concurrently: most of the time is spent waiting.
const ARENAS: usize = 4;

/// redis-server checks timeouts this often.
const OFTEN: [&str; 2] = ["--hz", "500"];

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The entries for the reference's release and for families which the server under test supports.
fn known() -> Vec<Known> {
    let mut known = known::parse(KNOWN).expect("the list is well formed");
    let release = Binary::redis().release();
    known.retain(|entry| entry.is_beside(&release));
    known.retain(|entry| entry.family.as_deref().is_none_or(|name| ENABLED.contains(&name)));
    known
}

#[test]
fn random_sequences_agree() {
    let known = known();
    let redis: Vec<_> =
        (0..ARENAS).map(|_| ServerProcess::start(&Binary::redis(), &OFTEN)).collect();
    // With one worker, and with more, which share the keys.
    let threads = |at: usize| match Binary::under_test().kind {
        Kind::SheafDb => vec!["--threads", if at.is_multiple_of(2) { "1" } else { "2" }],
        Kind::Redis => Vec::new(),
    };
    // Half of the servers run commands in steps from few elements on.
    let settings = |at: usize| {
        let mut settings = threads(at);
        if Binary::under_test().kind == Kind::SheafDb && at >= ARENAS / 2 {
            settings.extend(["--work-at-once-elements", "2"]);
        }
        // Both back ends, each with one worker and with two, unless one back end is configured.
        let on_epoll = at == 1 || at == 2;
        if Binary::under_test().kind == Kind::SheafDb && on_epoll && io_backend().is_none() {
            settings.extend(["--io-backend", "epoll"]);
        }
        settings
    };
    let ours: Vec<_> =
        (0..ARENAS).map(|at| ServerProcess::start(&Binary::under_test(), &settings(at))).collect();
    let seed = env_number("DIFF_SEED").unwrap_or(1);
    let count = env_number("DIFF_SEQUENCES").unwrap_or(SEQUENCES);
    let mix = match std::env::var("DIFF_FAMILY") {
        Ok(name) => Mix::about(&name),
        Err(_) => Mix::of(ENABLED),
    };
    let arenas: Vec<Arena<'_>> = redis
        .iter()
        .zip(&ours)
        .map(|(redis, ours)| Arena {
            redis: redis.addr,
            ours: ours.addr,
            known: &known,
            patience: PATIENCE,
            hears_events: true,
        })
        .collect();
    let names: Vec<&str> = mix.leading.iter().map(|family| family.name).collect();
    let release = Binary::redis().release();
    println!("{count} sequences from seed {seed} about {} beside {release}", names.join(", "));
    let started = Instant::now();
    match campaign(&arenas, &mix, seed, count) {
        Ok(summary) => {
            println!("{summary:?} in {:.1} s", started.elapsed().as_secs_f64());
            // A generator which produces only errors, or none, tests little.
            let share = summary.errors * 100 / summary.commands;
            assert!(count < 100 || (5..60).contains(&share), "{share} % of the replies are errors");
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// A family may be disabled only while its commands are missing.
#[test]
fn families_are_enabled_when_their_commands_are_there() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let mut wire = server.connect();
    let mut unknown = |family: &Family| -> BTreeSet<&'static str> {
        let mut commands = family.commands();
        commands.retain(|name| {
            let told = wire.command(&["COMMAND", "INFO", name]).expect("it is answered");
            let Value::Array(entries) = told else { panic!("COMMAND INFO is an array") };
            !matches!(entries.first(), Some(Value::Array(_)))
        });
        commands
    };
    let reference = server.kind == Kind::Redis;
    for family in FAMILIES {
        let missing = unknown(family);
        let enabled = ENABLED.contains(&family.name);
        assert!(
            !enabled || missing.is_empty(),
            "'{}' is enabled, but the server does not know {missing:?}",
            family.name
        );
        assert!(
            enabled || reference || !missing.is_empty(),
            "the server knows all commands of '{}': add it to ENABLED",
            family.name
        );
    }
}

/// Runs an example on its own server; returns its last command and the reply. `send> ` sends a
/// blocking command on another connection, `recv` reads its reply.
fn run_example(binary: &Binary, lines: &[String]) -> (Vec<Vec<u8>>, String) {
    let server = ServerProcess::start(binary, &[]);
    let (mut wire, mut waiting) = (server.connect(), server.connect());
    let (mut sent, mut last) = (Vec::new(), (Vec::new(), String::new()));
    let split = |line: &str| quote::split(line).expect("an example is a command");
    for line in lines {
        if let Some(command) = line.strip_prefix("send> ") {
            sent = split(command);
            waiting.send(format!("{command}\r\n").as_bytes()).expect("it is open");
            await_blocked(&mut wire);
        } else if line == "recv" {
            let reply = waiting.receive().expect("it is answered");
            last = (sent.clone(), render::line(&reply));
        } else {
            let args = split(line);
            let reply = wire.command(&args).expect("it is answered");
            last = (args, render::line(&reply));
        }
    }
    last
}

/// Waits until a client is blocked.
fn await_blocked(wire: &mut Wire) {
    let began = Instant::now();
    loop {
        let info = wire.command(&["INFO", "clients"]).expect("it is answered");
        let (Value::Bulk(text) | Value::Verbatim(text)) = &info else { panic!("a text: {info:?}") };
        if String::from_utf8_lossy(text).contains("blocked_clients:1") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "nobody is blocked");
        std::thread::yield_now();
    }
}

/// Every entry of the list is needed: its example still produces both replies.
#[test]
fn known_differences_are_real() {
    let ours = Binary::under_test();
    if ours.kind == Kind::Redis {
        println!("the server under test is redis-server itself");
        return;
    }
    for entry in known() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let file = entry.document.split('#').next().unwrap_or_default();
        assert!(
            entry.document.starts_with("https://") || root.join(file).exists(),
            "{} is no document",
            entry.document
        );
        let (_, redis) = run_example(&Binary::redis(), &entry.example);
        let (last, ours) = run_example(&ours, &entry.example);
        let real = if entry.is_about_digits() || entry.is_about_order() {
            entry.is_about(&last) && redis != ours
        } else {
            entry.explains(&last, &redis, &ours)
        };
        assert!(real, "{entry:?}\nredis: {redis}\nours: {ours}");
    }
}

/// Entries name existing families.
#[test]
fn known_differences_name_families() {
    for entry in known::parse(KNOWN).expect("the list is well formed") {
        if let Some(name) = &entry.family {
            assert!(Family::named(name).is_some(), "there is no family '{name}'");
        }
    }
}

/// Wrong replies which no entry may allow: the patterns are narrow.
#[test]
fn known_differences_excuse_nothing_else() {
    let all = known::parse(KNOWN).expect("the list is well formed");
    for (line, redis, ours) in [
        ("BITCOUNT nokey 0 1 BIT", ":0", "-ERR syntax error"),
        ("BITCOUNT nokey 0 1", ":0", "-ERR value is not an integer or out of range"),
        ("BITPOS nokey 1 0 -1 BYTE", ":-1", "-ERR syntax error"),
        ("BITPOS list 1 5", "-WRONGTYPE x", "-ERR value is not an integer or out of range"),
        ("BITCOUNT k 0 1 BOGUS", "-ERR syntax error", ":3"),
        ("BITCOUNT k 1 2", "-ERR syntax error", ":3"),
        ("GETEX nokey EX 100", "null", "-ERR invalid expire time in 'getex' command"),
        ("GETEX nokey PX 100", "null", "-ERR value is not an integer or out of range"),
        ("BITFIELD f OVERFLOW FAIL INCRBY u2 0 9 GET u8 0", "*2 null :1", "*2 null :2"),
        ("BITFIELD f OVERFLOW SAT SET i8 0 -9223372036854775808", "*1 :0", "-ERR syntax error"),
        ("PFADD h a", "-INVALIDOBJ a", "-INVALIDOBJ b"),
        ("LSET l 7 x", "+OK", "-ERR index out of range"),
        ("SCAN 0 MATCH type", "*2 \"0\" *0", "-ERR unknown type name 'type'"),
        ("ZRANK z", "-ERR wrong number of arguments for 'zrank' command", ":1"),
        ("COMMAND DOCS get", "summary: \"Get the value of a key\"", "summary: \"Nonsense\""),
        ("COMMAND DOCS get", "arguments: *0", "arguments: *1 \"display_text\""),
        ("COMMAND DOCS set", "group: \"string\"", "group: \"IFEQ\""),
        ("COMMAND DOCS xread", "complexity: \"O(N)\"", "complexity: \"O(1)\""),
        ("COMMAND INFO blpop", "flags: +blocking +noscript +write", "flags: +blocking +fast"),
        ("COMMAND INFO msetnx", "tips: \"response_policy:agg_min\"", "tips: \"nonsense\""),
    ] {
        let args = quote::split(line).expect("a command");
        let excused = all.iter().any(|one| one.explains(&args, redis, ours));
        assert!(!excused, "{line}: {redis} / {ours}");
    }
}
