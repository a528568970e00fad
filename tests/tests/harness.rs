//! Tests of the test harness: two redis-servers agree on every family, and the damage of a proxy to
//! every tenth reply or write is always found and reported with a few commands.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sheafdb_tests::differential::{Arena, ENABLED, FAMILIES, Failure, Mix, Summary, campaign};
use sheafdb_tests::golden::check_file;
use sheafdb_tests::proxy::{Damage, Proxy};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::PATIENCE;

/// redis-server checks timeouts this often.
const OFTEN: [&str; 2] = ["--hz", "500"];

/// Families whose commands have one reply each. (Others wait for a reply that a proxy may have
/// changed.)
fn replying() -> Mix {
    let mut mix = Mix::of(ENABLED);
    mix.leading.retain(|family| !family.gathers);
    mix
}

fn damaged(damage: Damage, mix: &Mix, count: u64) -> Result<Summary, Box<Failure>> {
    let redis = ServerProcess::start(&Binary::redis(), &[]);
    let other = ServerProcess::start(&Binary::redis(), &[]);
    let proxy = Proxy::start(other.addr, damage);
    // A short timeout: shrinking waits for a dropped reply many times.
    let waits = matches!(damage, Damage::Drop | Damage::Swap);
    let patience = Duration::from_millis(if waits { 60 } else { 60_000 });
    // (What damages replies knows of no messages.)
    let (redis, ours) = (redis.addr, proxy.addr);
    let arena = Arena { redis, ours, known: &[], patience, hears_events: false };
    campaign(&[arena], mix, 9_000, count)
}

/// Finds comparisons which are not deterministic.
#[test]
fn two_equal_servers_agree_about_every_family() {
    const SEQUENCES: u64 = 300;
    let wish = |name: &str| std::env::var(name).ok();
    let number = |name: &str| wish(name).and_then(|text| text.parse::<u64>().ok());
    let count = number("DIFF_SEQUENCES").unwrap_or(SEQUENCES);
    let seed = number("DIFF_SEED").unwrap_or(9_000);
    let servers: Vec<ServerProcess> =
        (0..8).map(|_| ServerProcess::start(&Binary::redis(), &OFTEN)).collect();
    let arenas: Vec<Arena<'_>> = servers
        .chunks(2)
        .map(|pair| Arena {
            redis: pair[0].addr,
            ours: pair[1].addr,
            known: &[],
            patience: PATIENCE,
            hears_events: true,
        })
        .collect();
    let mut wrong = Vec::new();
    for family in FAMILIES.iter().filter(|family| family.leads) {
        if wish("DIFF_FAMILY").is_some_and(|name| name != family.name) {
            continue;
        }
        let started = Instant::now();
        match campaign(&arenas, &Mix::about(family.name), seed, count) {
            Ok(summary) => {
                println!("{}: {summary:?} in {:.1?}", family.name, started.elapsed());
                let share = summary.errors * 100 / summary.commands;
                if count >= 100 && !(5..60).contains(&share) {
                    wrong.push(format!("{}: {share} % of the replies are errors", family.name));
                }
            }
            Err(failure) => wrong.push(format!("{}: {failure}", family.name)),
        }
    }
    assert!(wrong.is_empty(), "redis-server disagrees with itself\n{}", wrong.join("\n"));
}

#[test]
fn a_dropped_reply_is_noticed() {
    damaged(Damage::Drop, &replying(), 3).expect_err("every tenth reply is missing");
}

#[test]
fn swapped_replies_are_noticed() {
    damaged(Damage::Swap, &replying(), 3).expect_err("every tenth reply comes late");
}

#[test]
fn an_error_in_place_of_a_reply_is_noticed() {
    let failure = damaged(Damage::Error, &replying(), 3).expect_err("errors come back");
    let text = failure.to_string();
    assert!(text.contains("DIFF_SEED=900"), "the failure names its seed: {text}");
}

#[test]
fn a_changed_letter_is_noticed() {
    damaged(Damage::Letter, &replying(), 3).expect_err("every tenth reply has a wrong letter");
}

/// This damage depends only on the command, so shrinking must reduce the sequence to the damaged
/// command and few others.
fn shrinks_to(damage: Damage, family: &str, most: usize) {
    let failure = damaged(damage, &Mix::about(family), 60).expect_err("the damage is seen");
    println!("{damage:?} {family}: {failure}");
    let commands = failure.small.steps.len();
    assert!(commands <= most, "{damage:?} in {family}: {commands} commands\n{failure}");
}

#[test]
fn a_lost_write_is_noticed_in_every_type_and_shrunk() {
    for family in ["string", "list", "hash", "set", "zset", "geo", "bitmap", "hyperloglog"] {
        shrinks_to(Damage::LostWrite, family, 4);
    }
}

#[test]
fn a_changed_byte_is_noticed_in_every_type_and_shrunk() {
    for family in ["string", "list", "hash", "set", "zset", "bitmap"] {
        shrinks_to(Damage::StateByte, family, 4);
    }
}

#[test]
fn a_golden_file_that_is_wrong_is_noticed() {
    let path = std::env::temp_dir().join(format!("sheafdb-golden-{}.txt", std::process::id()));
    let write = |text: &str| std::fs::write(&path, text).expect("a temporary file");
    let run = |update| check_file(&PathBuf::from(&path), &Binary::redis(), update);

    write("> SET k v\n+OK\n> GET k\n\"w\"\n");
    let text = run(false).expect_err("the value is v");
    assert!(text.contains(":3: RESP2: > GET k"), "{text}");
    // The update switch writes the received replies for both protocols.
    write("> SET k v\n> GET nothing\n# kept\n> TTL k\n:<int>\n");
    run(true).expect("written");
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(
        text,
        "> SET k v\n+OK\n> GET nothing\n2| null-bulk\n3| null\n# kept\n> TTL k\n:<int>\n"
    );
    run(false).expect("it holds now");
    std::fs::remove_file(path).expect("a temporary file");
}
