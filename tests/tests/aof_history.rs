//! Numbers and times in append-only files, numbers which go on behind a restart, and kept history:
//! a real server writes them, redis-server and redis-check-aof read them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use sheafdb_tests::folder::{self, Folder};
use sheafdb_tests::in_time::until;
use sheafdb_tests::rdb_state::state;
use sheafdb_tests::rewrite::is_rewriting;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode, parse};

const FILES: &str = "appendonlydir";
const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";
const LIST: &str = "appendonlydir/appendonly.aof.history";

fn start(binary: &Binary, folder: &Folder, more: &[&str]) -> ServerProcess {
    let words = ["--dir", folder.path(), "--appendonly", "yes"];
    ServerProcess::start(binary, &[&words[..], more].concat())
}

fn ours(folder: &Folder, more: &[&str]) -> ServerProcess {
    start(&Binary::under_test(), folder, &[&["--appendfsync", "always"], more].concat())
}

fn redis(folder: &Folder) -> ServerProcess {
    start(&Binary::redis(), folder, &[])
}

fn ask(wire: &mut Wire, line: &str) -> Value {
    let reply = wire.command(&line.split(' ').collect::<Vec<_>>()).expect("an answer");
    assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    reply
}

fn info(wire: &mut Wire, field: &str) -> u64 {
    let Value::Bulk(text) = ask(wire, "INFO persistence") else { panic!("no text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{field} in {text}"))
}

fn last_number(wire: &mut Wire) -> u64 {
    info(wire, "journal_last_number")
}

fn rewrite(wire: &mut Wire) {
    let before = info(wire, "aof_rewrites");
    ask(wire, "BGREWRITEAOF");
    until("the rewrite", || info(wire, "aof_rewrites") > before && !is_rewriting(wire));
}

fn held(server: &ServerProcess) -> String {
    state(&mut server.connect(), false)
}

/// The names of a list, generation by generation.
fn generations(folder: &Folder) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.at(LIST)).unwrap_or_default();
    let mut all: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[5] == "b" {
            assert_eq!(words[6], "until", "{line}");
            all.push(Vec::new());
        }
        all.last_mut().expect("a base first").push(words[1].to_owned());
    }
    all
}

/// Bytes of these files.
fn bytes_of(folder: &Folder, names: &[Vec<String>]) -> u64 {
    let len = |name: &String| {
        fs::metadata(folder.at(FILES).join(name)).unwrap_or_else(|e| panic!("{name}: {e}")).len()
    };
    names.iter().flatten().map(len).sum()
}

/// The numbers of the records of a file, each with its words. A record is a command outside of a
/// transaction other than SELECT, or a whole transaction.
fn records(file: &Path) -> Vec<(u64, Vec<String>)> {
    let bytes = fs::read(file).expect("a file");
    let (mut at, mut next, mut all) = (0, 0, Vec::new());
    let mut open: Option<Vec<String>> = None;
    while at < bytes.len() {
        if bytes[at] == b'#' {
            let line = bytes[at..].split(|byte| *byte == b'\n').next().expect("a line");
            at += line.len() + 1;
            let text = String::from_utf8_lossy(line).into_owned();
            if let Some(moment) = text.trim_end().strip_prefix("#NUM:") {
                assert!(open.is_none(), "within a transaction");
                let (number, ms) = moment.split_once(':').expect("a time");
                next = number.parse().expect("a number");
                assert!(ms.parse::<u64>().expect("a time") > 1_700_000_000_000);
            }
            continue;
        }
        let Ok(Some((Value::Array(words), len))) = parse(&bytes[at..]) else { panic!("{at}") };
        at += len;
        let word = |word: Value| match word {
            Value::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            other => panic!("{other:?}"),
        };
        let mut words: Vec<String> = words.into_iter().map(word).collect();
        match (words[0].as_str(), &mut open) {
            ("MULTI", None) => open = Some(Vec::new()),
            ("EXEC", Some(all_words)) => {
                words = std::mem::take(all_words);
                open = None;
            }
            ("SELECT", None) => continue,
            (_, Some(all_words)) => all_words.append(&mut words),
            (_, None) => {}
        }
        if open.is_none() {
            assert!(next > 0, "the file begins with a number");
            all.push((next, words));
            next += 1;
        }
    }
    all
}

fn segments(folder: &Folder) -> Vec<std::path::PathBuf> {
    let files = folder.at(FILES);
    let mut names = folder::names(&files);
    names.retain(|name| name.ends_with(".incr.aof"));
    names.into_iter().map(|name| files.join(name)).collect()
}

/// Each change says the number which it is to have. Between them are transactions, changes of other
/// databases, removals of keys which are due, numbers without a command, and a cut.
#[test]
fn each_number_is_one_record() {
    let folder = Folder::new("aof-numbers");
    let server = ours(&folder, &["--threads", "2", "--aof-history", "1gb"]);
    let mut wires = [server.connect(), server.connect()];
    ask(&mut wires[0], "XADD s 1-1 f v");
    ask(&mut wires[0], "XGROUP CREATE s g 0");
    ask(&mut wires[0], "XREADGROUP GROUP g c STREAMS s >");
    let (mut expected, mut without) = (Vec::new(), Vec::new());
    for n in 0..300_usize {
        let wire = &mut wires[n % 2];
        let before = last_number(wire);
        match n % 6 {
            0 => {
                for line in ["MULTI", &format!("SET other{n} t{n}"), "SELECT 1", "INCR in-one"] {
                    ask(wire, line);
                }
                ask(wire, "SELECT 0");
                ask(wire, "EXEC");
            }
            // Only the time at which the consumer was seen changes: between two records of one
            // section.
            1 => {
                let (first, read) = (format!("SET a u{n}"), "XREADGROUP GROUP g c STREAMS s >");
                let lines = [&first, read, &format!("SET b t{n}")];
                let words = lines.map(|line| encode(&line.split(' ').collect::<Vec<_>>()));
                wire.send(&words.concat()).expect("sent");
                let replies = lines.map(|_| wire.receive().expect("an answer"));
                assert_eq!(replies[1], Value::NullArray);
            }
            2 => drop(ask(wire, &format!("SET due t{n} PX 1"))),
            _ => drop(ask(wire, &format!("SET key{} t{n}", n % 7))),
        }
        let after = last_number(wire);
        assert!(after > before, "{n} draws a number");
        if n % 6 == 1 && after == before + 3 {
            without.push((format!("t{n}"), before + 2));
            expected.push((format!("t{n}"), after..=after));
        } else {
            expected.push((format!("t{n}"), before + 1..=after));
        }
        if n == 150 {
            rewrite(wire);
        }
    }
    let last = last_number(&mut wires[0]);
    drop(wires);
    drop(server);
    let mut found = BTreeMap::new();
    for file in segments(&folder) {
        for (number, words) in records(&file) {
            assert!(number <= last, "{number} above {last}");
            assert!(found.insert(number, words).is_none(), "{number} is there twice");
        }
    }
    let mut exact = 0;
    for (text, numbers) in expected {
        let mut those = found.iter().filter(|(_, words)| words.contains(&text));
        let (number, words) = those.next().unwrap_or_else(|| panic!("{text} is missing"));
        assert!(numbers.contains(number), "{number}: {words:?} is one of {numbers:?}");
        assert!(those.next().is_none(), "{text} is there twice");
        // (A key which is due may go meanwhile.)
        exact += usize::from(numbers.count() == 1);
    }
    assert!(exact > 100, "{exact}");
    assert!(without.len() > 10, "{without:?}");
    for (text, number) in without {
        assert!(!found.contains_key(&number), "before {text}: {number} has a command");
    }
}

/// Restarts, rewrites, and a redis-server which goes on behind one of these.
fn numbers_go_on(preamble: &str) {
    let folder = Folder::new("aof-restart");
    let mut before = 0;
    for round in 0..8_u64 {
        let server = ours(&folder, &["--aof-use-rdb-preamble", preamble]);
        let mut wire = server.connect();
        let begun = last_number(&mut wire);
        assert!(begun >= before, "round {round}: {begun} after {before}");
        assert!(begun <= before + 1, "round {round}: {begun} after {before}");
        for _ in 0..round % 4 * 5 {
            ask(&mut wire, "INCR n");
        }
        if round % 3 == 1 || round == 6 {
            rewrite(&mut wire);
        }
        before = last_number(&mut wire);
        if round == 6 {
            // What redis-server appends has no annotations and counts, too.
            server.end();
            let redis = redis(&folder);
            let mut wire = redis.connect();
            for _ in 0..7 {
                ask(&mut wire, "INCR n");
            }
            redis.end();
            before += 7;
        }
    }
    assert!(before > 60, "{before}");
}

/// The last number is in the base, in an annotation, or follows from the records behind it.
#[test]
fn numbers_go_on_behind_a_restart() {
    for preamble in ["yes", "no"] {
        numbers_go_on(preamble);
    }
    // Files of redis-server alone have no numbers.
    let folder = Folder::new("aof-restart-redis");
    {
        let redis = redis(&folder);
        ask(&mut redis.connect(), "SET a 1");
        redis.end();
    }
    let server = ours(&folder, &[]);
    assert_eq!(last_number(&mut server.connect()), 0);
}

/// Copies the folder and keeps only this generation, as the data.
fn only(folder: &Folder, generation: &[String], name: &str) -> Folder {
    let copy = Folder::new(name);
    fs::create_dir(copy.at(FILES)).expect("a folder");
    let mut lines = Vec::new();
    for (at, name) in generation.iter().enumerate() {
        fs::copy(folder.at(FILES).join(name), copy.at(FILES).join(name)).expect("a copy");
        let kind = if at == 0 { 'b' } else { 'i' };
        lines.push(format!("file {name} seq {} type {kind}\n", at.max(1)));
    }
    fs::write(copy.at(MANIFEST), lines.concat()).expect("a manifest");
    copy
}

#[test]
fn what_rewrites_replace_is_kept_and_goes_when_it_is_turned_off() {
    let folder = Folder::new("aof-history");
    let mut server = ours(&folder, &["--aof-history", "1gb", "--aof-timestamp-enabled", "yes"]);
    let (mut states, mut files) = (Vec::new(), 0);
    for round in 0..6 {
        let mut wire = server.connect();
        for n in 0..20 {
            ask(&mut wire, &format!("RPUSH list{n} {round}"));
        }
        if round == 3 {
            // It is turned off and on: that begins with a new base.
            let rewrites = info(&mut wire, "aof_rewrites");
            ask(&mut wire, "CONFIG SET appendonly no");
            until("it is off", || info(&mut wire, "aof_enabled") == 0);
            ask(&mut wire, "CONFIG SET appendonly yes");
            until("it is on", || {
                info(&mut wire, "aof_rewrites") > rewrites && !is_rewriting(&mut wire)
            });
        } else {
            rewrite(&mut wire);
        }
        states.push(held(&server));
        let list = generations(&folder);
        assert_eq!(list.len(), round + 1, "{list:?}");
        assert_eq!(info(&mut wire, "journal_history_bytes"), bytes_of(&folder, &list));
        files = folder::names(&folder.at(FILES)).len();
        if round % 2 == 0 {
            drop(server);
            server = ours(&folder, &["--aof-history", "1gb"]);
            let got = info(&mut server.connect(), "journal_history_bytes");
            assert_eq!(got, bytes_of(&folder, &list), "found again");
        }
    }
    // Each generation leads to the data of its end, for redis-server, too.
    for (generation, expected) in generations(&folder).iter().zip(&states) {
        for binary in [Binary::under_test(), Binary::redis()] {
            let copy = only(&folder, generation, "aof-generation");
            assert_eq!(held(&start(&binary, &copy, &[])), *expected, "{generation:?}");
        }
        let copy = only(&folder, generation, "aof-generation");
        let out = Command::new("redis-check-aof").arg(copy.at(MANIFEST)).output().expect("it runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    }
    let mut wire = server.connect();
    ask(&mut wire, "CONFIG SET aof-history 0");
    rewrite(&mut wire);
    assert_eq!((generations(&folder), info(&mut wire, "journal_history_bytes")), (vec![], 0));
    let names = folder::names(&folder.at(FILES));
    assert!(names.len() + 10 < files && !folder.at(LIST).exists(), "{names:?}");
}

/// redis-server loads a folder with kept history, goes on with it, and leaves the history alone.
#[test]
fn redis_server_goes_on_with_the_folder_and_leaves_history_alone() {
    let folder = Folder::new("aof-history-redis");
    let expected = {
        let server = ours(&folder, &["--aof-history", "7d"]);
        let mut wire = server.connect();
        for n in 0..50 {
            ask(&mut wire, &format!("SET key{n} {n}"));
            if n % 10 == 9 {
                rewrite(&mut wire);
            }
        }
        ask(&mut wire, "DEL key1");
        held(&server)
    };
    let list = generations(&folder);
    assert_eq!(list.len(), 5);
    let before = bytes_of(&folder, &list);
    let after = {
        let redis = redis(&folder);
        assert_eq!(held(&redis), expected);
        let mut wire = redis.connect();
        ask(&mut wire, "SET redis 1");
        ask(&mut wire, "BGREWRITEAOF");
        until("its rewrite", || !is_rewriting(&mut wire));
        ask(&mut wire, "SET redis 2");
        let after = held(&redis);
        redis.end();
        after
    };
    assert_eq!(bytes_of(&folder, &list), before);
    let server = ours(&folder, &["--aof-history", "7d"]);
    assert_eq!(held(&server), after);
    rewrite(&mut server.connect());
    assert_eq!(generations(&folder)[..5], list[..]);
}

#[test]
fn a_bound_holds_and_a_list_that_is_damaged_stops_nothing() {
    let folder = Folder::new("aof-history-bound");
    let server = ours(&folder, &["--aof-history", "100kb"]);
    let mut wire = server.connect();
    let value = "v".repeat(20_000);
    for n in 0..12 {
        ask(&mut wire, &format!("SET key {n}{value}"));
        rewrite(&mut wire);
        assert!(bytes_of(&folder, &generations(&folder)) <= 100 << 10);
    }
    assert!((2..6).contains(&generations(&folder).len()), "{:?}", generations(&folder));
    let kept = folder::names(&folder.at(FILES));
    drop(server);
    fs::write(folder.at(LIST), "file appendonly.aof.9.base.rdb seq 9").expect("a file");
    let server = ours(&folder, &["--aof-history", "100kb"]);
    let mut wire = server.connect();
    assert!(server.log().contains("aof.history: it cannot be read"), "{}", server.log());
    assert_eq!(info(&mut wire, "journal_history_bytes"), 0);
    rewrite(&mut wire);
    let names = folder::names(&folder.at(FILES));
    assert!(kept.iter().all(|name| names.contains(name)), "{kept:?}\n{names:?}");
    assert!(names.contains(&"appendonly.aof.history.damaged".to_owned()), "{names:?}");
    assert_eq!(generations(&folder).len(), 1);
}

/// Numbers, times and offsets are no timestamps: a file is cut at a second as if they were not
/// there.
#[test]
fn a_time_cuts_as_without_numbers() {
    let folder = Folder::new("aof-numbers-time");
    let more = ["--aof-timestamp-enabled", "yes"];
    let server = ours(&folder, &more);
    let mut wire = server.connect();
    let mut lines: Vec<String> = Vec::new();
    let mut n = 0;
    until("three seconds", || {
        n += 1;
        ask(&mut wire, &format!("SET key{n} {n}"));
        ask(&mut wire, "MULTI");
        ask(&mut wire, "INCR a");
        ask(&mut wire, "INCR b");
        ask(&mut wire, "EXEC");
        let text = fs::read(segments(&folder).pop().expect("a segment")).expect("readable");
        let text = String::from_utf8_lossy(&text).into_owned();
        lines = text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
        lines.iter().filter(|line| line.starts_with("#TS:")).count() >= 3
    });
    drop(server);
    let (seconds, numbers): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.starts_with("#TS:"));
    let is_known = |line: &&String| line.starts_with("#NUM:") || line.starts_with("#OFFSET:");
    assert!(numbers.len() > 20 && numbers.iter().all(is_known));
    let last = segments(&folder).pop().expect("a segment");
    let whole = fs::read(&last).expect("readable");
    let text = String::from_utf8_lossy(&whole).into_owned();
    for next in &seconds[1..] {
        let time = next["#TS:".len()..].parse::<u64>().expect("a time") - 1;
        let ours = Binary::under_test().path;
        for program in [vec![Path::new("redis-check-aof")], vec![&ours, Path::new("check-aof")]] {
            fs::write(&last, &whole).expect("a file");
            let mut command = Command::new(program[0]);
            command.args(&program[1..]).args(["--truncate-to-timestamp", &time.to_string()]);
            let out = command.arg(folder.at(MANIFEST)).output().expect("it runs");
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
            let cut = fs::read(&last).expect("readable");
            let expected = text.find(next.as_str()).expect("it is there");
            assert_eq!(cut.len(), expected, "{program:?} at {time}");
        }
        let server = redis(&folder);
        assert!(server.log().contains("Ready to accept connections"));
    }
}
