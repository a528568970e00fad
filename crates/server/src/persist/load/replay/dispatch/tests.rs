//! Where commands go.

use super::*;
use journal::ReplId;
use keyspace::Options;

fn keyspace() -> Arc<Keyspace> {
    Arc::new(Keyspace::new(&Options { databases: 4, hash_secret: 1, workers: 1 }))
}

fn bytes(lines: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        out.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            out.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
    }
    out
}

/// A key whose slot belongs to this one of two threads.
fn key_of(keyspace: &Keyspace, lane: usize, from: usize) -> String {
    let mut names = (from..).map(|n| format!("k{n}"));
    let is_there = |name: &String| keyspace.key(name.as_bytes()).slot.index() % 2 == lane;
    names.find(is_there).expect("every slot has keys")
}

/// A line for each chunk: `beside LANE` or `alone`, then its commands with their databases; those
/// of a transaction in brackets.
fn shown(batches: &[Batch]) -> Vec<String> {
    let word = |chunk: &Chunk, number: usize| {
        let args = chunk.args(number);
        let name = String::from_utf8_lossy(args.get(0)).to_lowercase();
        let first = String::from_utf8_lossy(args.try_get(1).unwrap_or_default()).into_owned();
        format!("{name} {first}@{}", chunk.commands()[number].db.0)
    };
    let chunk = |chunk: &Chunk| {
        let (mut words, mut at) = (Vec::new(), 0);
        while let Some(command) = chunk.commands().get(at) {
            let end = at + command.count as usize;
            let together: Vec<_> = (at..end).map(|number| word(chunk, number)).collect();
            let text = together.join(", ");
            words.push(if together.len() > 1 { format!("[{text}]") } else { text });
            at = end;
        }
        words.join(", ")
    };
    let mut lines = Vec::new();
    for batch in batches {
        match batch {
            Batch::Alone(alone) => lines.push(format!("alone: {}", chunk(alone))),
            Batch::Beside(chunks) => {
                let filled = chunks.iter().enumerate().filter(|(_, chunk)| !chunk.is_empty());
                lines.extend(filled.map(|(lane, filled)| format!("{lane}: {}", chunk(filled))));
            }
        }
    }
    lines
}

fn sorted(threads: usize, keyspace: &Arc<Keyspace>, lines: &[&str]) -> Vec<String> {
    let mut dispatcher = Dispatcher::new(0, keyspace.clone(), 4, threads);
    dispatcher.block(&bytes(lines), Vec::new(), || false).expect("a good file");
    shown(&dispatcher.take())
}

/// Its length alone says so: nobody reads gigabytes to find it out. `check-aof` says the same.
#[test]
fn a_command_which_is_too_long_is_refused_at_once() {
    let mut dispatcher = Dispatcher::new(0, keyspace(), 4, 1);
    let good = bytes(&["SET k v"]);
    let (fits, too_long) = ("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2147483000\r\nx", "$2147483647\r\nx");
    let fed = dispatcher.block(&[&good[..], fits.as_bytes()].concat(), Vec::new(), || false);
    fed.expect("its end may follow");
    let mut dispatcher = Dispatcher::new(0, keyspace(), 4, 1);
    let begun = [&good[..], b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n", too_long.as_bytes()].concat();
    let error = dispatcher.block(&begun, Vec::new(), || false).expect_err("nobody can load it");
    assert!(
        format!("{error:?}").contains("a command is longer than 2147483647 bytes"),
        "{error:?}"
    );
}

#[test]
fn a_slot_belongs_to_one_thread_and_several_run_alone() {
    let ks = keyspace();
    let (a, b, c) = (key_of(&ks, 0, 0), key_of(&ks, 1, 0), key_of(&ks, 0, 100));
    let (set_a, set_b) = (format!("SET {a} 1"), format!("SET {b} 1"));
    let both = format!("MSET {a} 1 {c} 1");
    let across = format!("MSET {a} 1 {b} 1");
    let lines = [set_a.as_str(), &set_b, &both, &across, &set_b, "GET x", "PING"];
    let got = sorted(2, &ks, &lines);
    let expected = [
        format!("0: set {a}@0, mset {a}@0"),
        format!("1: set {b}@0"),
        format!("alone: mset {a}@0, set {b}@0"),
    ];
    assert_eq!(got, expected);
    // One thread runs all of them.
    let alone = [format!("0: set {a}@0, set {b}@0, mset {a}@0, mset {a}@0, set {b}@0")];
    assert_eq!(sorted(1, &ks, &lines), alone);
}

#[test]
fn commands_on_everything_run_alone_in_their_database() {
    let ks = keyspace();
    let a = key_of(&ks, 0, 0);
    let set = format!("SET {a} 1");
    let got = sorted(2, &ks, &["SELECT 3", &set, "FLUSHDB", "SELECT 1", "SWAPDB 0 1"]);
    assert_eq!(got, [format!("0: set {a}@3"), "alone: flushdb @3, swapdb 0@1".to_owned()]);
}

#[test]
fn a_transaction_goes_where_all_of_it_can() {
    let ks = keyspace();
    let (a, b, c) = (key_of(&ks, 0, 0), key_of(&ks, 1, 0), key_of(&ks, 0, 100));
    let (a1, b1, c1) = (format!("INCR {a}"), format!("INCR {b}"), format!("INCR {c}"));
    let got = sorted(2, &ks, &["MULTI", &a1, &c1, "EXEC", &b1, "MULTI", "EXEC"]);
    assert_eq!(got, [format!("0: [incr {a}@0, incr {c}@0]"), format!("1: incr {b}@0")]);
    let got = sorted(2, &ks, &["MULTI", &a1, "SELECT 2", &b1, "EXEC"]);
    assert_eq!(got, [format!("alone: [incr {a}@0, incr {b}@2]")]);
    // Without its EXEC nothing of it runs.
    assert!(sorted(2, &ks, &["MULTI", &a1]).is_empty());
}

#[test]
fn the_number_of_a_producer_counts_with_its_transaction() {
    let block = |key: &str, line: &str, ends: bool| {
        let push = format!("RPUSH {key} m");
        let (select, end) = (["SELECT 2", "MULTI", &push], if ends { "EXEC" } else { "GET k" });
        [bytes(&select), line.as_bytes().to_vec(), bytes(&[end])].concat()
    };
    let mut dispatcher = Dispatcher::new(0, keyspace(), 4, 2);
    let mut read = |file: &[u8]| {
        dispatcher.block(file, Vec::new(), || false).expect("a good file");
        let told = dispatcher.take_producers().into_iter();
        told.map(|(name, number)| {
            let (producer, key) = (name.producer.to_vec(), name.key.to_vec());
            let text = |bytes| String::from_utf8(bytes).expect("text");
            format!("{}/{:?}/{}/{} {number}", text(producer), name.target, name.db, text(key))
        })
        .collect::<Vec<_>>()
    };
    let line = "#PRODUCER:list:7:\"a b\"\r\n";
    assert_eq!(read(&block("k", line, true)), ["a b/List/2/k 7"]);
    let both = [block("k", line, true), block("l", "#PRODUCER:list:3:p\n", true)].concat();
    assert_eq!(read(&both), ["a b/List/2/k 7", "p/List/2/l 3"]);
    // Not in a transaction, behind no command, or not readable: left out.
    assert!(read(line.as_bytes()).is_empty());
    let first = [&bytes(&["MULTI"])[..], line.as_bytes(), &bytes(&["EXEC"])].concat();
    assert!(read(&first).is_empty());
    assert!(read(&block("k", "#PRODUCER:list:x:p\r\n", true)).is_empty());
    assert!(read(&block("k", line, false)).is_empty(), "it has not ended");
}

/// After commands which run alone, others do as well, up to a bound.
#[test]
fn a_run_alone_ends() {
    let ks = keyspace();
    let (a, b) = (key_of(&ks, 0, 0), key_of(&ks, 1, 0));
    let across = format!("DEL {a} {b}");
    let set = format!("SET {a} 1");
    let mut lines = vec![across.as_str()];
    lines.extend(std::iter::repeat_n(set.as_str(), ALONE_RUN + 5));
    let mut dispatcher = Dispatcher::new(0, ks, 4, 2);
    dispatcher.block(&bytes(&lines), Vec::new(), || false).expect("a good file");
    let counts: Vec<_> = dispatcher.take().iter().map(count).collect();
    assert_eq!(counts, [("alone", ALONE_RUN + 1), ("beside", 5)]);
}

fn count(batch: &Batch) -> (&'static str, usize) {
    match batch {
        Batch::Alone(chunk) => ("alone", chunk.commands().len()),
        Batch::Beside(chunks) => ("beside", chunks.iter().map(|c| c.commands().len()).sum()),
    }
}

#[test]
fn what_is_no_command_is_an_error_with_its_place() {
    let good = bytes(&["SET a 1"]);
    for (line, why) in [
        ("FROB a", "unknown command 'FROB'"),
        ("CONFIG FROB", "unknown command 'CONFIG FROB'"),
        ("SET a", "'set' with 2 words, itself counted"),
        ("SELECT 4", "database 4: there are only 4 databases"),
        ("FUNCTION RESTORE x", "FUNCTION RESTORE: this version keeps libraries only from"),
    ] {
        let mut dispatcher = Dispatcher::new(10, keyspace(), 4, 2);
        let all = [&good[..], &bytes(&[line])].concat();
        let error = dispatcher.block(&all, Vec::new(), || false).expect_err(line);
        let at = 10 + good.len();
        assert!(error.text.starts_with(&format!("at byte {at}: {why}")), "{}", error.text);
        assert_eq!((error.offset, error.is_damage), (at as u64, false));
    }
    let mut dispatcher = Dispatcher::new(0, keyspace(), 4, 2);
    let error = dispatcher.block(b"+OK\r\n", Vec::new(), || false).expect_err("no command");
    assert!(error.is_damage);
}

#[test]
fn a_file_may_end_in_the_middle_of_a_command() {
    let whole = bytes(&["SET a 1", "MULTI", "SET b 2", "EXEC"]);
    let first = bytes(&["SET a 1"]).len() as u64;
    for end in first as usize..=whole.len() {
        let mut dispatcher = Dispatcher::new(0, keyspace(), 4, 1);
        // In blocks of any size.
        for block in whole[..end].chunks(5) {
            dispatcher.block(block, Vec::new(), || false).expect("so far it is good");
        }
        let replayed = dispatcher.finish().expect("no damage but its end");
        let is_whole = end == whole.len();
        assert_eq!(replayed.truncated.is_some(), !is_whole && end as u64 != first);
        assert_eq!(replayed.valid_up_to, if is_whole { end as u64 } else { first });
    }
}

/// A record is a command outside of a transaction, other than SELECT, or a whole transaction.
#[test]
fn records_are_numbered_behind_annotations() {
    let number = |before: Numbering, pieces: &[&[u8]]| {
        let mut dispatcher = Dispatcher::new(0, keyspace(), 4, 1).behind(before, None);
        dispatcher.block(&pieces.concat(), Vec::new(), || false).expect("it is good");
        dispatcher.finish().expect("no damage but its end").numbering
    };
    let records =
        bytes(&["SELECT 1", "SET a 1", "MULTI", "SELECT 0", "SET b 2", "SET c 3", "EXEC"]);
    let (old, cut) = (Numbering::default(), bytes(&["GET a", "MULTI", "SET a 1"]));
    assert_eq!(number(old, &[&records]).last(), None);
    assert_eq!(number(old, &[b"#NUM:7:1\r\n", &records, &cut]).last(), Some(9));
    let before = Numbering::behind(Some(20));
    assert_eq!(number(before, &[&records, b"#NUM:40:1\r\n", &records]).last(), Some(41));
    assert_eq!(number(before, &[]).last(), Some(20));
}

/// A file which ends within a transaction, with a line in it, is at the position ahead of it.
#[test]
fn the_position_is_that_of_what_is_valid() {
    let id = ReplId::parse(&[b'a'; 40]).expect("40 digits");
    let at = |offset| Some(Position { id, offset });
    let mut first = Vec::new();
    at(700).expect("a position").annotate(&mut first);
    let records = bytes(&["SELECT 1", "SET a 1", "MULTI", "SET b 2", "EXEC"]);
    let cut = [&bytes(&["MULTI", "SET a 1"])[..], b"#PRODUCER:list:9:\"x\"\r\n"].concat();
    let position = |before, pieces: &[&[u8]]| {
        let mut dispatcher = Dispatcher::new(10, keyspace(), 4, 1);
        dispatcher = dispatcher.behind(Numbering::default(), before);
        for block in pieces.concat().chunks(7) {
            dispatcher.block(block, Vec::new(), || false).expect("it is good");
        }
        dispatcher.finish().expect("no damage but its end").position
    };
    let behind = at(700 + records.len() as u64);
    assert_eq!(position(None, &[&first, &records]), behind);
    assert_eq!(position(None, &[&first, b"#NUM:1:1\r\n", &records, &cut]), behind);
    assert_eq!(position(at(9), &[&records]), None, "of another server");
    assert_eq!(position(at(9), &[]), at(9));
}
