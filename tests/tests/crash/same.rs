//! Random sequences of every family: the server makes the same of its file as it held, behind a
//! shutdown, behind SIGKILL, and behind rewrites; so does redis-server, and the server of the file
//! that redis-server goes on with.

use std::fs;
use std::time::Duration;

use sheafdb_tests::differential::{Delivery, Mix, Sequence, execute, generate};
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::rdb_state::databases;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::PATIENCE;

use super::mirror::{difference, plain};
use super::order::{assert_same, await_written, copy_files};
use super::world::{is_complete, redis};

/// Rounds of a run; `CRASH_ROUNDS` sets another number.
const ROUNDS: usize = 16;
/// Sequences of a round.
const SEQUENCES: u64 = 6;
/// Sequences set expiries of a few milliseconds.
const DUE: Duration = Duration::from_millis(20);

/// Several sequences, one behind the other.
fn sequence(round: u64) -> Sequence {
    let mix = Mix::of_changes();
    let first = 7_000_000 + round * SEQUENCES;
    let steps = (first..first + SEQUENCES).flat_map(|seed| generate(seed, &mix).steps).collect();
    Sequence { proto: 2, delivery: Delivery::OneByOne, steps }
}

fn start(folder: &Folder, more: &[&str]) -> ServerProcess {
    let words = ["--dir", folder.path(), "--appendonly", "yes", "--appendfsync", "always"];
    ServerProcess::start(&Binary::under_test(), &[&words[..], more].concat())
}

fn read(server: &ServerProcess) -> String {
    plain(&databases(&mut server.connect(), 0..16))
}

/// Whether a command that redis-server 7.0 does not know stands in a file.
fn is_unknown(folder: &Folder) -> bool {
    let files = fs::read_dir(folder.at("appendonlydir")).expect("a folder");
    files.flatten().any(|file| {
        let bytes = fs::read(file.path()).unwrap_or_default();
        bytes.windows(11).any(|some| some == b"\r\nHPEXPIREA" || some == b"HPEXPIREAT\r")
    })
}

#[test]
fn sequences_of_every_family_are_restored() {
    let rounds = super::env_number("CRASH_ROUNDS").map_or(ROUNDS, |n| n as usize);
    for round in 0..rounds {
        let folder = Folder::new(&format!("same-{round}"));
        let mut server = start(&folder, &["--threads", if round % 2 == 0 { "1" } else { "2" }]);
        let trace = execute(server.addr, &sequence(round as u64), PATIENCE, false);
        assert_eq!(trace.broken, None, "round {round}");
        if round % 3 == 1 {
            server.connect().command(&["BGREWRITEAOF"]).expect("an answer");
            until("it is rewritten", || is_complete(&mut server.connect()));
        }
        std::thread::sleep(DUE);
        let is_known = !is_unknown(&folder);
        let what = format!("round {round}");
        let live = assert_same(&folder, &server, &what, is_known);
        if round % 2 == 0 {
            server.terminate();
            server.wait_exit(LIMIT).expect("it ends");
        } else {
            server.kill();
        }
        let server = start(&folder, &[]);
        let again = read(&server);
        assert!(again == live, "{what}, restarted:\n{}", difference(&live, &again));
        drop(server);
        if is_known {
            there_and_back(&folder, &live, &what);
        }
    }
}

/// redis-server goes on with a copy of the file, and the server with what that leaves.
fn there_and_back(folder: &Folder, live: &str, what: &str) {
    let copy = Folder::new("same-back");
    copy_files(&folder.at("appendonlydir"), &copy.at("appendonlydir"));
    let mut redis = ServerProcess::start(&redis(), &["--dir", copy.path(), "--appendonly", "yes"]);
    redis.connect().command(&["SET", "more", "text"]).expect("an answer");
    redis.connect().command(&["DEL", "more"]).expect("an answer");
    redis.terminate();
    redis.wait_exit(LIMIT).expect("it ends");
    let back = read(&start(&copy, &[]));
    assert!(back == live, "{what}, back from redis-server:\n{}", difference(live, &back));
}

/// What was changed before the file began, while it began, while there was none, and behind that.
#[test]
fn the_file_begins_and_ends_under_load() {
    let folder = Folder::new("same-begins");
    let server = ServerProcess::start(
        &Binary::under_test(),
        &["--dir", folder.path(), "--threads", "2", "--appendfsync", "always"],
    );
    let ask = |words: &[&str]| server.connect().command(words).expect("an answer");
    for round in 0..6 {
        std::thread::scope(|scope| {
            let work =
                scope.spawn(|| execute(server.addr, &sequence(100 + round), PATIENCE, false));
            if round == 2 {
                ask(&["BGREWRITEAOF"]);
                until("it is written", || {
                    folder.at("appendonlydir/appendonly.aof.manifest").exists()
                });
            }
            ask(&["CONFIG", "SET", "appendonly", "yes"]);
            assert_eq!(work.join().expect("no panic").broken, None, "round {round}");
        });
        until("the file is complete", || is_complete(&mut server.connect()));
        std::thread::sleep(DUE);
        let known = !is_unknown(&folder);
        assert_same(&folder, &server, &format!("round {round}"), known);
        ask(&["SET", "more", "text"]);
        await_written(&mut server.connect());
        ask(&["CONFIG", "SET", "appendonly", "no"]);
        ask(&["SET", "unrecorded", "text"]);
    }
}
