//! MEMORY USAGE and MEMORY STATS compared with the allocator: for every type, small and large, the
//! sum of USAGE over equal keys is within 10 % of the memory allocated for them.

use std::time::Duration;

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// A key's share of the table, which is not in the allocator's figures.
const SHARE: i64 = 16;
/// Minimum bytes per case, so that other allocations of the server are negligible.
const CASE_BYTES: usize = 16 << 20;
/// Keys created in one pipeline.
const BATCH: usize = 200;
/// Lengths of strings: in their entries, by themselves, in pages.
const TEXT_LENGTHS: &[usize] =
    &[1, 24, 64, 200, 1000, 10_000, 20_000, 70_000, 100_000, 1_000_000, 1_048_577, 5_000_000];
/// Keys whose USAGE is requested; the others are like them.
const ASKED: usize = 500;

fn stats(wire: &mut Wire) -> impl Fn(&str) -> i64 + use<> {
    let Ok(Value::Array(parts)) = wire.command(&["MEMORY", "STATS"]) else { panic!("a list") };
    move |name| {
        let at = parts.iter().position(|part| *part == Value::Bulk(name.as_bytes().to_vec()));
        match at.map(|at| &parts[at + 1]) {
            Some(Value::Int(number)) => *number,
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// The words of a command which creates a value with `size` elements.
fn value(kind: &str, size: usize) -> Vec<String> {
    let text = |n: usize| format!("elem:{n:06}");
    let parts = |f: &dyn Fn(usize) -> Vec<String>| (0..size).flat_map(f).collect::<Vec<_>>();
    match kind {
        "SET" => vec!["v".repeat(size)],
        "RPUSH" | "SADD" | "PFADD" => parts(&|n| vec![text(n)]),
        "HSET" => parts(&|n| vec![text(n), format!("value:{n}")]),
        "ZADD" => parts(&|n| vec![format!("{n}.5"), text(n)]),
        _ => panic!("{kind}"),
    }
}

#[test]
fn memory_usage_matches_the_allocator() {
    let cases = [
        ("SET", TEXT_LENGTHS),
        ("RPUSH", &[1, 20, 128, 500, 2000, 50_000]),
        ("SADD", &[1, 20, 128, 500, 2000, 50_000]),
        ("HSET", &[1, 20, 128, 500, 2000, 50_000]),
        ("ZADD", &[1, 20, 128, 500, 2000, 50_000]),
        ("PFADD", &[3, 5000]),
    ];
    let mut wrong = Vec::new();
    for (kind, sizes) in cases {
        for &size in sizes {
            let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
            let wire = &mut server.connect();
            let words = value(kind, size);
            // Whatever is added, a HyperLogLog has 12 KB.
            let most = if kind == "PFADD" { 12 << 10 } else { usize::MAX };
            let len = words.iter().map(String::len).sum::<usize>().min(most);
            let count = (CASE_BYTES / (len + 64)).clamp(8, 200_000);
            let key = |n: usize| format!("key:{n:07}");
            let request = |n: usize| {
                let key = key(n);
                let words: Vec<&str> =
                    [kind, &key].into_iter().chain(words.iter().map(String::as_str)).collect();
                encode(&words)
            };
            // Exclude allocations of the start and of the first request.
            wire.send(&request(0)).expect("sent");
            wire.receive().expect("answered");
            wire.command(&["FLUSHALL", "SYNC"]).expect("answered");
            std::thread::sleep(Duration::from_millis(200));
            let before = stats(wire);
            let batch = BATCH.min((1 << 20) / (len + 64) + 1);
            for first in (0..count).step_by(batch) {
                let batch = first..(first + batch).min(count);
                let sent: Vec<u8> = batch.clone().flat_map(request).collect();
                wire.send(&sent).expect("sent");
                batch.for_each(|_| drop(wire.receive().expect("answered")));
            }
            let after = stats(wire);
            let mut usage = 0;
            let asked = ASKED.min(count);
            for n in 0..asked {
                match wire.command(&["MEMORY", "USAGE", &key(n)]).expect("answered") {
                    Value::Int(bytes) => usage += bytes - SHARE,
                    other => panic!("{other:?}"),
                }
            }
            let usage = usage * count as i64 / asked as i64;
            let grown = |name: &str| after(name) - before(name);
            let real = grown("allocator.allocated");
            for (name, told) in [("USAGE", usage), ("dataset.bytes", grown("dataset.bytes"))] {
                let ratio = told as f64 / real as f64;
                println!("{kind} {size} {name} {:.0} {ratio:.3}", real as f64 / count as f64);
                if !(0.9..=1.1).contains(&ratio) {
                    wrong.push(format!("{kind} of {size}: {name} {told} of {real} ({ratio:.3})"));
                }
            }
            // Allocated memory is that of the keys, the tables and the clients.
            assert!(grown("total.allocated") >= real, "{kind} of {size}");
            assert_eq!(after("keys.count"), count as i64);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The undo log of a transaction is bounded: beyond the bound completed commands are committed.
#[test]
fn the_undo_log_of_a_large_transaction_is_bounded() {
    const WRITES: usize = 300;
    const BYTES: usize = 1 << 20;
    // Half of all overwritten bytes; the log's capacity may be twice its bound.
    const MOST: i64 = (WRITES * BYTES / 2) as i64;
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let wire = &mut server.connect();
    let text = "x".repeat(BYTES);
    let asks = |wire: &mut Wire, words: &[&str]| wire.command(words).expect("answered");
    asks(wire, &["SET", "k", &text]);
    asks(wire, &["MULTI"]);
    asks(wire, &["MEMORY", "STATS"]);
    for _ in 0..WRITES {
        asks(wire, &["SETRANGE", "k", "0", &text]);
    }
    asks(wire, &["MEMORY", "STATS"]);
    let Value::Array(replies) = asks(wire, &["EXEC"]) else { panic!("a list") };
    let taken = |reply: &Value| {
        let Value::Array(parts) = reply else { panic!("a list") };
        let at = parts.iter().position(|part| *part == Value::Bulk(b"total.allocated".to_vec()));
        let Some(Value::Int(number)) = at.map(|at| &parts[at + 1]) else { panic!("{parts:?}") };
        *number
    };
    let (first, last) = (taken(&replies[0]), taken(&replies[WRITES + 1]));
    assert!(last - first < MOST, "{first} bytes before, {last} behind {WRITES} writes");
}

/// The logs of slow and of large commands say what their entries take, as the allocator sees it;
/// no more of them are kept than the settings allow.
#[test]
fn logs_count_what_their_entries_take() {
    const ENTRIES: i64 = 2_000;
    let settings = ["--slowlog-log-slower-than", "0", "--slowlog-max-len", "2000"];
    let sizes =
        ["--commandlog-request-larger-than", "1000", "--commandlog-large-request-max-len", "2000"];
    let args = [&["--threads", "1"][..], &settings, &sizes].concat();
    let server = ServerProcess::start(&Binary::under_test(), &args);
    let wire = &mut server.connect();
    let logs = |wire: &mut Wire| -> i64 {
        let Ok(Value::Bulk(text)) = wire.command(&["INFO", "memory"]) else { panic!("a text") };
        let text = String::from_utf8(text).expect("text");
        let field = text.lines().find_map(|line| line.strip_prefix("mem_logs:"));
        field.expect("INFO says it").parse().expect("a number")
    };
    let before = (stats(wire)("total.allocated"), logs(wire));
    let words: Vec<String> = (0..40).map(|n| format!("{n:0>150}")).collect();
    let words: Vec<&str> =
        [&["EXISTS"][..], &words.iter().map(|w| &**w).collect::<Vec<_>>()].concat();
    for _ in 0..2 * ENTRIES / 100 {
        let requests = encode(&words).repeat(100);
        wire.send(&requests).expect("open");
        (0..100).for_each(|_| assert_eq!(wire.receive().expect("answered"), Value::Int(0)));
    }
    let taken = stats(wire)("total.allocated") - before.0;
    let said = logs(wire) - before.1;
    println!("{said} bytes in the logs, {taken} allocated");
    assert!(said > 2 * ENTRIES * 32 * 128 && said < 2 * ENTRIES * 32 * 300, "{said}");
    assert!((0.8..1.1).contains(&(said as f64 / taken as f64)), "{said} of {taken}");
    for log in ["slow", "large-request"] {
        let len = wire.command(&["COMMANDLOG", "LEN", log]).expect("answered");
        assert_eq!(len, Value::Int(ENTRIES), "{log}");
        wire.command(&["COMMANDLOG", "RESET", log]).expect("answered");
    }
    assert!(logs(wire) < 10_000, "{} bytes of empty logs", logs(wire));
}
