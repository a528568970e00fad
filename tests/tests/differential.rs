//! Random command sequences against a real redis-server. `DIFF_SEED`, `DIFF_SEQUENCES` choose which.

use sheafdb_tests::differential::Arena;
use sheafdb_tests::known;
use sheafdb_tests::quote;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::PATIENCE;

const KNOWN: &str = include_str!("../known_differences.txt");
/// Sequences without a wish.
const SEQUENCES: u64 = 1500;

fn wish(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_sequences_agree() {
    let known = known::parse(KNOWN).expect("the list is well formed");
    let redis = ServerProcess::start(&Binary::redis(), &[]);
    let ours = ServerProcess::start(&Binary::under_test(), &[]);
    let seed = wish("DIFF_SEED").unwrap_or(1);
    let count = wish("DIFF_SEQUENCES").unwrap_or(SEQUENCES);
    let arena = Arena { redis: redis.addr, ours: ours.addr, known: &known, patience: PATIENCE };
    println!("{count} sequences from seed {seed}");
    match arena.campaign(seed, count) {
        Ok(summary) => {
            println!("{summary:?}");
            // A generator that makes only errors, or none, tests little.
            let share = summary.errors * 100 / summary.commands;
            assert!(count < 100 || (5..60).contains(&share), "{share} % of the replies are errors");
        }
        Err(text) => panic!("{text}"),
    }
}

/// Every entry of the list is real: its example still gives both replies.
#[test]
fn known_differences_are_real() {
    let ours = Binary::under_test();
    if ours.kind == Kind::Redis {
        println!("the server under test is redis-server itself");
        return;
    }
    for entry in known::parse(KNOWN).expect("the list is well formed") {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let file = entry.document.split('#').next().unwrap_or_default();
        assert!(
            entry.document.starts_with("https://") || root.join(file).exists(),
            "{} is no document",
            entry.document
        );
        let mut replies = Vec::new();
        let mut last = Vec::new();
        for binary in [&Binary::redis(), &ours] {
            let server = ServerProcess::start(binary, &[]);
            let mut wire = server.connect();
            for line in &entry.example {
                last = quote::split(line).expect("an example is a command");
                let reply = wire.command(&last).expect("it is answered");
                replies.push(render::line(&reply));
            }
        }
        let (redis, ours) = (&replies[entry.example.len() - 1], &replies[replies.len() - 1]);
        assert!(entry.explains(&last, redis, ours), "{entry:?}\nredis: {redis}\nours: {ours}");
    }
}
