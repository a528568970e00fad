//! A session that records its changes, and one that repeats the records hours later, with other
//! dice and other settings.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base::out::{OutBuf, OutPos};
use base::{DbIndex, UnixMs};
use keyspace::Due;
use keyspace::journal::Batch;

use super::requests::NAMES;
use super::session::Session;
use super::{Value, with_args};

/// Milliseconds after which the records are repeated.
const LATER_MS: i64 = 3 * 3_600_000;
/// Databases that requests change.
const DATABASES: u32 = 16;

/// A recording session, and one that repeats what it records.
pub struct Pair {
    pub first: Session,
    pub second: Session,
    /// The last number that was seen.
    last: u64,
    /// The database that is selected where records are repeated.
    selected: DbIndex,
    /// What was run and what was recorded since the last comparison.
    pub story: String,
    /// The commands of the last records.
    pub recorded: Vec<String>,
    /// What was recorded, and for which database, if somebody else wants to repeat it, too.
    pub bytes: Option<Vec<(DbIndex, Vec<u8>)>>,
    /// How many commands were recorded.
    pub records: usize,
}

impl Pair {
    pub fn new() -> Self {
        let (mut first, mut second) = (Session::new(), Session::new());
        (second.due, second.whole) = (Due::Ignore, true);
        second.tally.random = 12_345;
        // Where rough trims end depends on the pages.
        first.settings.stream_node_max_entries = 2;
        first.settings.at_once_elements = 20;
        first.record(true);
        let selected = DbIndex(0);
        Self {
            first,
            second,
            last: 0,
            selected,
            story: String::new(),
            recorded: Vec::new(),
            bytes: None,
            records: 0,
        }
    }

    /// Runs a request in the first session, and repeats what it records in the second.
    pub fn run(&mut self, words: &[&[u8]]) {
        let text: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let (at, db) = (self.first.now.0, self.first.db.0);
        let reply = with_args(words, |args| self.first.reply_to(args).to_vec());
        let reply = String::from_utf8_lossy(&reply[..reply.len().min(60)]).into_owned();
        writeln!(self.story, "[{at} db {db}] {} -> {reply:?}", shortened(&text.join(" ")))
            .expect("a string");
        self.repeat();
    }

    /// Runs the words of a line: `{soon}` is a time in milliseconds, `{soon_s}` in seconds. Returns
    /// the commands that were recorded, each with its words behind blanks.
    pub fn line(&mut self, line: &str) -> Vec<String> {
        let line = line.replace("{soon}", &(self.first.now.0 + 3000).to_string());
        let line = line.replace("{soon_s}", &(self.first.now.0 / 1000 + 3).to_string());
        self.run(&super::words(&line));
        self.recorded.clone()
    }

    /// Runs lines under one guard. Returns the commands that were recorded.
    pub fn together(&mut self, lines: &[&str]) -> Vec<String> {
        writeln!(self.story, "together: {lines:?}").expect("a string");
        self.first.run_together(lines);
        self.repeat();
        self.recorded.clone()
    }

    /// As [`Pair::line`], with a panic at so many changes, or none; true if there was one.
    pub fn panics(&mut self, line: &str, changes: u32) -> bool {
        self.first.panic_after = changes;
        writeln!(self.story, "a panic after {changes}: {line}").expect("a string");
        let words = super::words(line);
        let run = || with_args(&words, |args| drop(self.first.reply_to(args)));
        let has_panicked = catch_unwind(AssertUnwindSafe(run)).is_err();
        (self.first.panic_after, self.first.tally) = (0, command::Tally::default());
        self.repeat();
        has_panicked
    }

    /// Repeats what was recorded since the last time.
    pub fn repeat(&mut self) {
        self.recorded.clear();
        self.second.now = UnixMs(self.first.now.0 + LATER_MS);
        let mut batches = Vec::new();
        self.first.access.leave();
        self.first.access.keyspace().journal().take(&mut batches);
        assert!(self.first.access.enter());
        for batch in &batches {
            self.repeat_batch(batch);
        }
        let unrecorded = self.first.access.keyspace().journal().unrecorded();
        assert_eq!(unrecorded, 0, "a change without a record:\n{}", self.story);
    }

    fn repeat_batch(&mut self, batch: &Batch) {
        let mut from = OutPos::default();
        for run in &batch.runs {
            assert_eq!(run.first.0, self.last + 1, "numbers are not contiguous\n{}", self.story);
            self.last = run.last().0;
            let (bytes, blobs) = (&batch.out.bytes, &batch.out.blobs);
            let mut out = OutBuf::new();
            out.bytes.extend_from_slice(&bytes[from.bytes..run.end.bytes]);
            for part in &blobs[from.blobs..run.end.blobs] {
                out.blobs.push(part.moved_to(part.position - from.bytes));
            }
            from = run.end;
            if let Some(db) = run.db_in {
                self.selected = db;
            }
            let bytes = out.to_vec();
            assert_eq!(bytes.is_empty(), run.db_in.is_none());
            if let Some(kept) = &mut self.bytes {
                kept.push((self.selected, bytes.clone()));
            }
            self.repeat_bytes(&bytes);
            if let Some(db) = run.db_out {
                assert_eq!(self.selected, db, "the selected database\n{}", self.story);
            }
        }
        assert_eq!(from, batch.out.position(), "bytes behind the last run");
    }

    fn repeat_bytes(&mut self, mut bytes: &[u8]) {
        let mut is_open = false;
        while !bytes.is_empty() {
            let words = words_of(&mut bytes);
            let text: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
            writeln!(self.story, "    {}", shortened(&text.join(" "))).expect("a string");
            self.recorded.push(text.join(" "));
            self.records += 1;
            match &*words[0] {
                b"MULTI" => assert!(!std::mem::replace(&mut is_open, true)),
                b"EXEC" => assert!(std::mem::replace(&mut is_open, false)),
                b"SELECT" => self.selected = DbIndex(text[1].parse().expect("a number")),
                _ => {
                    self.second.db = self.selected;
                    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                    let reply = with_args(&words, |args| self.second.reply_to(args).to_vec());
                    let reply = String::from_utf8_lossy(&reply);
                    assert!(!reply.starts_with('-'), "{reply}\n{}", self.story);
                }
            }
        }
        assert!(!is_open, "MULTI without EXEC");
    }

    /// Both hold the same data.
    pub fn compare(&mut self) {
        let was = self.first.db;
        for db in 0..DATABASES {
            let mut shown = Vec::new();
            self.first.db = DbIndex(db);
            for name in NAMES {
                shown.push(content(&mut self.first, name.as_bytes()));
            }
            self.repeat(); // what was due is gone now
            self.second.db = DbIndex(db);
            for (name, first) in NAMES.iter().zip(shown) {
                let second = content(&mut self.second, name.as_bytes());
                assert_eq!(first, second, "{name} in {db}\n{}", self.story);
            }
        }
        self.first.db = was;
        self.story.clear();
    }

    /// The clock of the first session goes on.
    pub fn pass(&mut self, ms: usize) {
        self.first.now.0 += ms as i64;
    }
}

/// A number behind a letter, on a line of its own.
fn number_of(bytes: &mut &[u8], lead: u8) -> usize {
    let end = bytes.windows(2).position(|two| two == b"\r\n").expect("a line");
    assert_eq!(bytes[0], lead);
    let number = std::str::from_utf8(&bytes[1..end]).expect("text").parse();
    *bytes = &bytes[end + 2..];
    number.expect("a number")
}

/// The words of the first command.
pub fn words_of(bytes: &mut &[u8]) -> Vec<Vec<u8>> {
    let count = number_of(bytes, b'*');
    let word = |_| {
        let len = number_of(bytes, b'$');
        let (word, rest) = bytes.split_at(len);
        *bytes = rest.strip_prefix(b"\r\n").expect("the end of a word");
        word.to_vec()
    };
    (0..count).map(word).collect()
}

/// What a key holds, and when it and its fields expire, however it is stored.
pub fn content(session: &mut Session, name: &[u8]) -> String {
    let was = std::mem::replace(&mut session.whole, true);
    let mut ask = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let words: Vec<&[u8]> =
            words.iter().map(|word| if *word == b"KEY" { name } else { *word }).collect();
        with_args(&words, |args| session.reply_to(args)).to_vec()
    };
    let kind = Value::parse(&ask("TYPE KEY"));
    let expiry = Value::parse(&ask("PEXPIRETIME KEY"));
    let held = match kind.text() {
        "none" => String::new(),
        "string" => format!("{:?}", ask("GET KEY")),
        "list" => format!("{:?}", ask("LRANGE KEY 0 -1")),
        "zset" => format!("{:?}", Value::parse(&ask("ZRANGE KEY 0 -1 WITHSCORES"))),
        "set" => sorted(Value::parse(&ask("SMEMBERS KEY"))),
        "hash" => {
            let Value::Array(flat) = Value::parse(&ask("HGETALL KEY")) else { unreachable!() };
            let mut fields: Vec<String> = Vec::new();
            for pair in flat.chunks(2) {
                let at = ask(&format!("HPEXPIRETIME KEY FIELDS 1 {}", pair[0].text()));
                fields.push(format!("{pair:?} {:?}", Value::parse(&at)));
            }
            fields.sort_unstable();
            fields.join("\n")
        }
        "stream" => {
            let mut all = Value::parse(&ask("XINFO STREAM KEY FULL COUNT 0"));
            forget_times(&mut all);
            format!("{all:?}")
        }
        other => panic!("a {other}"),
    };
    session.whole = was;
    format!("{} {expiry:?}: {held}", kind.text())
}

fn sorted(all: Value) -> String {
    let (Value::Array(mut all) | Value::Set(mut all)) = all else { panic!("{all:?}") };
    all.sort_by(|a, b| a.text().cmp(b.text()));
    format!("{all:?}")
}

/// When consumers were seen has no record, and how entries are stored is no data.
fn forget_times(value: &mut Value) {
    let Value::Array(all) = value else { return };
    let forgotten = ["seen-time", "active-time", "radix-tree-keys", "radix-tree-nodes"];
    for at in 1..all.len() {
        if matches!(&all[at - 1], Value::Bulk(name) if forgotten.contains(&name.as_str())) {
            all[at] = Value::Null;
        }
    }
    all.iter_mut().for_each(forget_times);
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(300).map_or(text, |(at, _)| &text[..at])
}
