//! A transaction of more than 64 MiB of changes: what would undo it is given up in parts, and it is
//! one record all the same. So the file has all of it or nothing, wherever it ends.

use std::fs;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

use super::order::{await_written, copy_files};

/// Bytes of a value, and how often a transaction overwrites one of the two: the first 65 are a
/// part.
const BYTES: usize = 1 << 20;
const CHANGES: usize = 80;

fn start(folder: &str) -> ServerProcess {
    let words = ["--dir", folder, "--appendonly", "yes", "--threads", "2"];
    // (The transaction alone is large enough for a rewrite.)
    let words = [&words[..], &["--auto-aof-rewrite-percentage", "0"]].concat();
    ServerProcess::start(&Binary::under_test(), &words)
}

fn ask(wire: &mut Wire, words: &[&str]) -> Value {
    wire.command(words).expect("an answer")
}

fn last_number(wire: &mut Wire) -> u64 {
    let Value::Bulk(text) = ask(wire, &["INFO", "persistence"]) else { panic!("a text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("journal_last_number:"));
    line.and_then(|number| number.parse().ok()).expect("a number")
}

/// The first bytes of both values.
fn first(wire: &mut Wire) -> String {
    let of = |wire: &mut Wire, key| match ask(wire, &["GETRANGE", key, "0", "0"]) {
        Value::Bulk(text) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("a text: {other:?}"),
    };
    of(wire, "a") + &of(wire, "b")
}

/// Two values of zeros, which are in the file.
fn fill(wire: &mut Wire) {
    let zeros = "0".repeat(BYTES);
    for key in ["a", "b"] {
        assert_eq!(ask(wire, &["SET", key, &zeros]), Value::Simple(b"OK".to_vec()));
    }
    await_written(wire);
}

/// Queues changes of both in turn, the last of them to ones. EXEC is missing.
fn queue(wire: &mut Wire) {
    ask(wire, &["MULTI"]);
    for n in 0..CHANGES {
        let text = if n + 2 < CHANGES { "x" } else { "1" }.repeat(BYTES);
        let key = ["a", "b"][n % 2];
        assert_eq!(ask(wire, &["SETRANGE", key, "0", &text]), Value::Simple(b"QUEUED".to_vec()));
    }
}

/// The commands before one that panics behind the first part stand, and are recorded.
#[test]
fn what_stands_of_a_large_transaction_is_one_record() {
    let folder = Folder::new("crash-parts");
    let server = start(folder.path());
    let wire = &mut server.connect();
    fill(wire);
    queue(wire);
    let other = &mut server.connect();
    let before = last_number(other);
    let runs = (CHANGES - 3).to_string();
    let armed = ask(other, &["DEBUG", "PANIC-IN-COMMAND", "setrange", "0", &runs]);
    assert_eq!(armed, Value::Simple(b"OK".to_vec()));
    wire.send(&encode(&["EXEC"])).expect("sent");
    assert!(wire.receive().is_err(), "the connection is closed");
    assert_eq!((first(other), last_number(other)), ("xx".into(), before + 1));
    await_written(other);
    let digest = ask(other, &["DEBUG", "DIGEST"]);
    server.kill();
    let again = start(folder.path());
    assert_eq!(ask(&mut again.connect(), &["DEBUG", "DIGEST"]), digest);
}

#[test]
fn a_file_that_ends_in_a_large_transaction_has_nothing_of_it() {
    let folder = Folder::new("crash-parts-cut");
    let server = start(folder.path());
    let wire = &mut server.connect();
    fill(wire);
    let segment = folder.at("appendonlydir/appendonly.aof.1.incr.aof");
    let from = fs::metadata(&segment).expect("a file").len() as usize;
    queue(wire);
    let before = last_number(&mut server.connect());
    assert!(matches!(ask(wire, &["EXEC"]), Value::Array(all) if all.len() == CHANGES));
    assert_eq!((first(wire), last_number(wire)), ("11".into(), before + 1));
    await_written(wire);
    server.kill();
    let bytes = fs::read(&segment).expect("a file");
    let record = bytes.len() - from;
    assert!(record > CHANGES * BYTES, "{record}");
    let copy = folder.at("copy");
    // Behind the first part, and within the last command.
    for end in [from + 68 * BYTES, bytes.len() - 1] {
        copy_files(&folder.at("appendonlydir"), &copy.join("appendonlydir"));
        let path = copy.join("appendonlydir/appendonly.aof.1.incr.aof");
        fs::write(path, &bytes[..end]).expect("room");
        let again = start(copy.to_str().expect("plain"));
        assert_eq!(first(&mut again.connect()), "00", "{end} of {}", bytes.len());
    }
}

#[test]
fn a_large_transaction_is_there_or_not_when_the_server_is_killed() {
    let folder = Folder::new("crash-parts-kill");
    let server = start(folder.path());
    let wire = &mut server.connect();
    fill(wire);
    queue(wire);
    wire.send(&encode(&["EXEC"])).expect("sent");
    let segment = folder.at("appendonlydir/appendonly.aof.1.incr.aof");
    until("some of it is written", || {
        fs::metadata(&segment).is_ok_and(|file| file.len() as usize > 3 * BYTES)
    });
    server.kill();
    let again = start(folder.path());
    let first = first(&mut again.connect());
    assert!(first == "00" || first == "11", "{first}");
    println!("{first}");
}
