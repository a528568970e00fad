//! The journal at a number: what workers did at the same time to the same few keys, replayed up to
//! the number of a base, is what that base holds. Each base is a snapshot which was cut at a random
//! moment of the load, and kept history has the files from before.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::rdb_state::databases;
use sheafdb_tests::rewrite::is_rewriting;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

use super::mirror::{difference, plain};
use super::order::{DUE, start_clients};

/// Rounds of a run; `CRASH_ROUNDS` sets another number.
const ROUNDS: usize = 6;
/// Rewrites of a round.
const REWRITES: usize = 5;
/// Records between two rewrites, at most.
const RECORDS_MAX: usize = 1_500;
const FILES: &str = "appendonlydir";
/// Each file of changes begins in database 0.
const SELECT_0: &[u8] = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";

#[test]
fn records_up_to_a_number_make_the_base_which_was_cut_there() {
    let rounds = super::env_number("CRASH_ROUNDS").map_or(ROUNDS, |n| n as usize);
    let (mut bases, mut differing) = (0, 0);
    for round in 0..rounds {
        let folder = Folder::new(&format!("number-{round}"));
        let mut rng = Rng::new(90_000 + round as u64);
        load(&folder, round, &mut rng);
        sleep(DUE);
        let generations = generations(&folder);
        assert_eq!(generations.len(), REWRITES + 1, "round {round}");
        let mut last = String::new();
        for at in 1..generations.len() {
            let what = format!("round {round}, base {at}");
            let held = check(&folder, &generations, at, &what);
            bases += 1;
            differing += usize::from(held != last);
            last = held;
        }
    }
    println!("{bases} bases, {differing} of them hold other data than the one before");
    assert!(differing * 2 > bases, "{differing} of {bases}");
}

/// Clients change eight keys, and meanwhile the file is rewritten at random numbers.
fn load(folder: &Folder, round: usize, rng: &mut Rng) {
    let preamble = if round.is_multiple_of(3) { "no" } else { "yes" };
    let fsync = if round.is_multiple_of(2) { "everysec" } else { "always" };
    let words = ["--aof-history", "1gb", "--aof-use-rdb-preamble", preamble];
    let more = ["--threads", "4", "--appendfsync", fsync, "--rdbcompression", "no"];
    let rewrites = ["--auto-aof-rewrite-percentage", "0"];
    let mut server = start(folder.path(), &[&words[..], &more, &rewrites].concat());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        start_clients(scope, server.addr, round, &is_over);
        let mut wire = server.connect();
        for left in (0..=REWRITES).rev() {
            let enough = info(&mut wire, "journal_last_number") + 1 + rng.below(RECORDS_MAX) as u64;
            until("more records", || info(&mut wire, "journal_last_number") >= enough);
            if left > 0 {
                rewrite(&mut wire);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    server.terminate();
    server.wait_exit(LIMIT).expect("it ends");
}

fn rewrite(wire: &mut Wire) {
    let before = info(wire, "aof_rewrites");
    let reply = wire.command(&["BGREWRITEAOF"]).expect("an answer");
    assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
    until("a rewrite ends", || info(wire, "aof_rewrites") > before && !is_rewriting(wire));
}

/// The records up to the number of a base, behind an earlier base, make the same data. Returns it.
fn check(folder: &Folder, generations: &[Generation], at: usize, what: &str) -> String {
    let base = &generations[at].base;
    let number = moment(&fs::read(folder.at(FILES).join(base)).expect("a base"));
    let alone = Part::new(folder, "alone");
    alone.list(&[(base.as_str(), "b")]);
    let expected = held(alone.0.path());
    let earlier = Part::new(folder, "earlier");
    let segments = |from: &[Generation]| -> Vec<String> {
        from.iter().flat_map(|one| one.changes.clone()).collect()
    };
    match at % 3 {
        // What the rewrite has replaced. The file behind it proves that the cut, whose number has
        // no command, was reached.
        0 => earlier.list_all(&generations[at - 1].base, &segments(&generations[at - 1..=at])),
        // Everything from the beginning on, also what came behind the number.
        1 => earlier.list_all(&generations[0].base, &segments(generations)),
        // The same in one file: the number is in its middle.
        _ => {
            let parts = segments(generations).into_iter().map(|name| earlier.read(&name));
            let whole = parts.flat_map(|part| [SELECT_0, &part[..]].concat()).collect::<Vec<u8>>();
            fs::write(earlier.0.at(FILES).join("whole"), whole).expect("a file");
            earlier.list_all(&generations[0].base, &["whole".to_owned()]);
        }
    }
    let restored = folder.at("restored");
    let mut command = Command::new(Binary::under_test().path);
    command.args(["restore", "--until", &number.to_string(), earlier.0.path(), "-o"]);
    let out = command.arg(&restored).stdin(Stdio::null()).output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{what}: {text}{}", String::from_utf8_lossy(&out.stderr));
    let got = held(&restored);
    assert!(
        got == expected,
        "{what}: the base (-) and the records up to {number} (+)\n{text}{}",
        difference(&expected, &got)
    );
    fs::remove_dir_all(restored).expect("it is there");
    expected
}

/// A copy of all files, with a manifest of its own.
struct Part(Folder);

impl Part {
    fn new(folder: &Folder, name: &str) -> Self {
        let part = Folder::new(&format!("number-{name}"));
        super::order::copy_files(&folder.at(FILES), &part.at(FILES));
        // What is kept is in no list: the manifest alone counts.
        fs::remove_file(part.at(FILES).join("appendonly.aof.history")).expect("it is kept");
        Self(part)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.at(FILES).join(name)).expect("a file")
    }

    fn list_all(&self, base: &str, changes: &[String]) {
        let changes = changes.iter().map(|name| (name.as_str(), "i"));
        self.list(&[(base, "b")].into_iter().chain(changes).collect::<Vec<_>>());
    }

    fn list(&self, files: &[(&str, &str)]) {
        let line = |(at, (name, kind)): (usize, &(&str, &str))| {
            format!("file {name} seq {} type {kind}\n", at + 1)
        };
        let text: String = files.iter().enumerate().map(line).collect();
        fs::write(self.0.at(FILES).join("appendonly.aof.manifest"), text).expect("a file");
    }
}

/// A base and the files of changes up to the next base.
struct Generation {
    base: String,
    changes: Vec<String>,
}

/// All of a folder, oldest first.
fn generations(folder: &Folder) -> Vec<Generation> {
    let mut all: Vec<Generation> = Vec::new();
    for list in ["appendonly.aof.history", "appendonly.aof.manifest"] {
        let text = fs::read_to_string(folder.at(FILES).join(list)).expect("a list");
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[5] {
                "b" => all.push(Generation { base: words[1].to_owned(), changes: Vec::new() }),
                "i" => all.last_mut().expect("a base first").changes.push(words[1].to_owned()),
                other => panic!("{other}: {line}"),
            }
        }
    }
    all
}

/// The number of the last record which a base holds.
fn moment(base: &[u8]) -> u64 {
    let text = base.strip_prefix(b"#BASE:").unwrap_or_else(|| {
        let name = b"sheafdb-moment";
        let at = base.windows(name.len()).position(|some| some == name).expect("the field");
        // Behind the name is the length of the value, a byte.
        &base[at + name.len() + 1..]
    });
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let number: String = digits.map(|byte| char::from(*byte)).collect();
    number.parse().expect("a number")
}

fn start(folder: &str, more: &[&str]) -> ServerProcess {
    let words = ["--dir", folder, "--appendonly", "yes"];
    ServerProcess::start(&Binary::under_test(), &[&words[..], more].concat())
}

/// What a server holds which starts on a folder.
fn held(folder: impl AsRef<Path>) -> String {
    let server = start(folder.as_ref().to_str().expect("plain"), &["--threads", "2"]);
    plain(&databases(&mut server.connect(), 0..16))
}

fn info(wire: &mut Wire, field: &str) -> u64 {
    let info = wire.command(&["INFO", "persistence"]).expect("an answer");
    let (Value::Bulk(text) | Value::Verbatim(text)) = info else { panic!("{info:?}") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{field} in {text}"))
}
