//! The harness tested on itself: redis-server against redis-server agrees, and a proxy that damages
//! every tenth reply of one of them is always noticed.

use std::path::PathBuf;
use std::time::Duration;

use sheafdb_tests::differential::Arena;
use sheafdb_tests::golden::check_file;
use sheafdb_tests::proxy::{Damage, Proxy};
use sheafdb_tests::server_process::{Binary, ServerProcess};

fn campaign(damage: Damage, count: u64) -> Result<(), String> {
    let redis = ServerProcess::start(&Binary::redis(), &[]);
    let other = ServerProcess::start(&Binary::redis(), &[]);
    let proxy = Proxy::start(other.addr, damage);
    // A dropped reply is waited for; shrinking does that many times.
    let patience = Duration::from_millis(if damage == Damage::None { 5_000 } else { 60 });
    let arena = Arena { redis: redis.addr, ours: proxy.addr, known: &[], patience };
    arena.campaign(9_000, count).map(|_| ())
}

#[test]
fn two_equal_servers_agree() {
    campaign(Damage::None, 250).expect("redis-server agrees with itself");
}

#[test]
fn a_dropped_reply_is_noticed() {
    campaign(Damage::Drop, 3).expect_err("every tenth reply is missing");
}

#[test]
fn swapped_replies_are_noticed() {
    campaign(Damage::Swap, 3).expect_err("every tenth reply comes late");
}

#[test]
fn an_error_in_place_of_a_reply_is_noticed() {
    let told = campaign(Damage::Error, 3).expect_err("every tenth reply is an error");
    assert!(told.contains("DIFF_SEED=900"), "the seed is told: {told}");
}

#[test]
fn a_changed_letter_is_noticed() {
    campaign(Damage::Letter, 3).expect_err("every tenth reply has a wrong letter");
}

#[test]
fn a_golden_file_that_is_wrong_is_noticed() {
    let path = std::env::temp_dir().join(format!("sheafdb-golden-{}.txt", std::process::id()));
    let write = |text: &str| std::fs::write(&path, text).expect("a temporary file");
    let run = |update| check_file(&PathBuf::from(&path), &Binary::redis(), update);

    write("> SET k v\n+OK\n> GET k\n\"w\"\n");
    let told = run(false).expect_err("the value is v");
    assert!(told.contains(":3: RESP2: > GET k"), "{told}");
    // The update switch writes what came, in the form of both protocols.
    write("> SET k v\n> GET nothing\n# kept\n> TTL k\n:<int>\n");
    run(true).expect("written");
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(
        text,
        "> SET k v\n+OK\n> GET nothing\n2| null-bulk\n3| null\n# kept\n> TTL k\n:<int>\n"
    );
    run(false).expect("it holds now");
    std::fs::remove_file(path).expect("ours");
}
