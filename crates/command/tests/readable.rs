//! A Redis server of version 7.0 that repeats the records holds the same data then.

use crate::common::pair::{Pair, words_of};
use crate::common::requests::{Dice, NAMES, database, populate, request};
use crate::common::{Oracle, Value};
use base::DbIndex;
use command::{CommandSpec, Handler, LockClass, registry};

/// Requests of each command.
const REQUESTS: usize = 60;
/// Requests between two comparisons.
const COMPARED_EVERY: usize = 20;
/// The records are from a time that is yet to come for the oracle, where nothing expires by itself.
const AHEAD_MS: i64 = 48 * 3_600_000;

/// Whose effect Redis 7.0 has no commands for: fields that expire, entries that nobody has pending.
const UNKNOWN: [&str; 8] =
    ["hexpire", "hexpireat", "hpexpire", "hpexpireat", "hpersist", "hsetex", "hgetex", "xnack"];
/// Options for which there are no commands, either.
const UNKNOWN_WORDS: [&str; 2] = ["DELREF", "ACKED"];

fn is_tested(spec: &CommandSpec) -> bool {
    let runs = matches!(spec.handler, Handler::Data(_) | Handler::Blocking(..));
    runs && spec.may_change()
        && matches!(spec.lock, LockClass::Keys | LockClass::Growing)
        && !UNKNOWN.contains(&spec.full_name)
}

fn is_known(request: &[String]) -> bool {
    let trims = ["xadd", "xtrim"].contains(&request[0].as_str());
    !trims || !request.iter().any(|word| UNKNOWN_WORDS.contains(&word.to_uppercase().as_str()))
}

/// What a key holds, as far as both servers say it: nothing of consumers' times, which are not
/// recorded, and of the times of deliveries, which have not come yet.
fn content(name: &str, ask: &mut dyn FnMut(&str) -> Value) -> String {
    let mut ask = |line: &str| ask(&line.replace("KEY", name));
    let kind = ask("TYPE KEY");
    let kind = kind.text();
    let held = match kind {
        "none" => return String::new(),
        "string" => format!("{:?}", ask("GET KEY")),
        "list" => format!("{:?}", ask("LRANGE KEY 0 -1")),
        "zset" => scored(&items(ask("ZRANGE KEY 0 -1 WITHSCORES"))),
        "set" => sorted(ask("SMEMBERS KEY"), 1),
        "hash" => sorted(ask("HGETALL KEY"), 2),
        "stream" => stream(&mut ask),
        other => panic!("a {other}"),
    };
    format!("{kind} {:?}: {held}", ask("PEXPIRETIME KEY"))
}

fn items(all: Value) -> Vec<Value> {
    let (Value::Array(all) | Value::Set(all)) = all else { panic!("{all:?}") };
    all
}

/// Members with their scores as numbers: both servers write them with other digits.
fn scored(all: &[Value]) -> String {
    let score = |text: &str| text.parse::<f64>().expect("a score");
    let pairs = all.chunks(2).map(|pair| format!("{:?} {}", pair[0], score(pair[1].text())));
    pairs.collect::<Vec<_>>().join(" ")
}

fn sorted(all: Value, each: usize) -> String {
    let mut all: Vec<String> = items(all).chunks(each).map(|part| format!("{part:?}")).collect();
    all.sort_unstable();
    all.join(" ")
}

fn stream(ask: &mut dyn FnMut(&str) -> Value) -> String {
    let about = items(ask("XINFO STREAM KEY"));
    let marks = ["last-generated-id", "max-deleted-entry-id", "entries-added", "length"];
    let of = |all: &[Value], names: &[&str]| -> Vec<String> {
        let pairs = all.chunks(2).filter(|pair| names.contains(&pair[0].text()));
        pairs.map(|pair| format!("{pair:?}")).collect()
    };
    let mut told =
        vec![format!("{:?}", of(&about, &marks)), format!("{:?}", ask("XRANGE KEY - +"))];
    for group in items(ask("XINFO GROUPS KEY")) {
        let group = items(group);
        // The lag is computed, and by Redis 7.0 not in all cases.
        let names = ["name", "consumers", "pending", "last-delivered-id", "entries-read"];
        told.push(format!("{:?}", of(&group, &names)));
        let name = group[1].text().to_owned();
        for consumer in items(ask(&format!("XINFO CONSUMERS KEY {name}"))) {
            told.push(format!("{:?}", of(&items(consumer), &["name", "pending"])));
        }
        for row in items(ask(&format!("XPENDING KEY {name} - + 1000"))) {
            let row = items(row);
            told.push(format!("{:?} {:?} {:?}", row[0], row[1], row[3]));
        }
    }
    told.join("\n")
}

struct Reader {
    oracle: Oracle,
    selected: u32,
}

impl Reader {
    fn repeat(&mut self, pair: &mut Pair) {
        let bytes = pair.bytes.replace(Vec::new()).unwrap_or_default();
        for (db, bytes) in bytes {
            if self.selected != db.0 {
                self.oracle.ask_line(&format!("SELECT {}", db.0));
                self.selected = db.0;
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let words = words_of(&mut rest);
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                if words[0] == b"SELECT" {
                    self.selected = String::from_utf8_lossy(words[1]).parse().expect("a number");
                }
                let reply = self.oracle.ask(&words);
                let failed = matches!(&reply, Value::Error(_))
                    || matches!(&reply, Value::Array(all) if words[0] == b"EXEC"
                        && all.iter().any(|one| matches!(one, Value::Error(_))));
                assert!(!failed, "{reply:?}\n{}", pair.story);
            }
        }
    }

    fn compare(&mut self, pair: &mut Pair) {
        for db in 0..=8 {
            for name in NAMES {
                pair.first.db = DbIndex(db);
                let (whole, story) = (std::mem::replace(&mut pair.first.whole, true), &pair.story);
                let first =
                    content(name, &mut |line| pair.first.ask_at(&crate::common::words(line)));
                pair.first.whole = whole;
                let _ = story;
                pair.repeat();
                self.repeat(pair);
                if self.selected != db {
                    self.oracle.ask_line(&format!("SELECT {db}"));
                    self.selected = db;
                }
                let second = content(name, &mut |line| self.oracle.ask_line(line));
                assert_eq!(first, second, "{name} in {db}\n{}", pair.story);
            }
        }
        pair.story.clear();
    }
}

#[test]
fn redis_reads_the_records() {
    let mut dice = Dice(31);
    let mut pair = Pair::new();
    pair.first.now.0 += AHEAD_MS;
    (pair.first.whole, pair.bytes) = (true, Some(Vec::new()));
    let mut reader = Reader { oracle: Oracle::start(), selected: 0 };
    let specs = registry::all().map(command::CommandId::spec).filter(|spec| is_tested(spec));
    for spec in specs {
        populate(&mut pair.first);
        for n in 0..REQUESTS {
            let request = request(spec, &mut dice);
            if !is_known(&request) {
                continue;
            }
            pair.first.db = DbIndex(database(spec, &mut dice));
            let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
            pair.run(&words);
            reader.repeat(&mut pair);
            if dice.one_in(3) {
                pair.pass(dice.below(900));
            }
            if n % COMPARED_EVERY == COMPARED_EVERY - 1 {
                reader.compare(&mut pair);
            }
        }
    }
}
