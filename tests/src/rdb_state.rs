//! Everything that a server holds as a text, the same for every server and both protocols: what
//! `tests/rdb/servers.py` records of the servers which wrote the files of `tests/rdb/files`.
//! `tests/rdb/README.md` describes the text.

use std::collections::BTreeMap;

use crate::quote;
use crate::wire::{Value, Wire};

/// Longer strings are a length and a hash.
const LONG_STRING: usize = 80;
/// Values of more lines are a number of lines and a hash.
const LONG_VALUE: usize = 120;
/// Databases of a server with default settings.
const DATABASES: u32 = 16;

/// The state of the server behind a connection. Functions are part of it if `with_functions`.
///
/// # Panics
/// If the server refuses one of the commands that read.
pub fn state(wire: &mut Wire, with_functions: bool) -> String {
    let mut reader = StateReader::new(wire);
    let mut lines = if with_functions { reader.functions() } else { Vec::new() };
    reader.databases(0..DATABASES, &mut lines);
    lines.push(String::new());
    lines.join("\n")
}

/// The part of the state which these databases hold, with every line of long values, too. Database
/// 0 is selected at the end.
///
/// # Panics
/// If the server refuses one of the commands that read.
pub fn databases(wire: &mut Wire, dbs: impl IntoIterator<Item = u32>) -> String {
    let mut lines = Vec::new();
    let mut reader = StateReader::new(wire);
    reader.lines_max = usize::MAX;
    reader.databases(dbs, &mut lines);
    lines.push(String::new());
    lines.join("\n")
}

struct StateReader<'a> {
    wire: &'a mut Wire,
    policy: String,
    has_field_times: bool,
    /// Values of more lines are shown as their number and a hash.
    lines_max: usize,
}

impl<'a> StateReader<'a> {
    fn new(wire: &'a mut Wire) -> Self {
        let mut reader =
            Self { wire, policy: String::new(), has_field_times: false, lines_max: LONG_VALUE };
        let setting = pairs(reader.ask(&[b"CONFIG", b"GET", b"maxmemory-policy"]));
        reader.policy = utf8(&setting[0].1);
        let told = items(reader.ask(&[b"COMMAND", b"INFO", b"HPEXPIRETIME"]));
        reader.has_field_times = matches!(told[0], Value::Array(_));
        reader
    }

    fn ask(&mut self, words: &[&[u8]]) -> Value {
        let reply = self.wire.command(words).expect("the server answers");
        if let Value::Error(text) = &reply {
            let asked: Vec<String> = words.iter().map(|word| quote::escaped(word)).collect();
            panic!("{}: {}", asked.join(" "), quote::escaped(text));
        }
        reply
    }

    fn databases(&mut self, dbs: impl IntoIterator<Item = u32>, lines: &mut Vec<String>) {
        for db in dbs {
            self.ask(&[b"SELECT", db.to_string().as_bytes()]);
            let mut keys = texts(self.ask(&[b"KEYS", b"*"]));
            keys.sort();
            if !keys.is_empty() {
                lines.push(format!("db {db}"));
            }
            for key in keys {
                lines.extend(self.key(&key));
            }
        }
        self.ask(&[b"SELECT", b"0"]);
    }

    fn functions(&mut self) -> Vec<String> {
        let libraries = items(self.ask(&[b"FUNCTION", b"LIST", b"WITHCODE"]));
        let mut all: Vec<_> = libraries.into_iter().map(fields).collect();
        all.sort_by_key(|library| text(&library["library_name"]));
        let line =
            |library: &Fields| format!("function {}", shown(&text(&library["library_code"])));
        all.iter().map(line).collect()
    }

    fn key(&mut self, key: &[u8]) -> Vec<String> {
        // What a read changes comes first.
        let expiry = match int(&self.ask(&[b"PEXPIRETIME", key])) {
            at @ 0.. => format!(" expires {at}"),
            _ => String::new(),
        };
        let usage = if self.policy.contains("lfu") {
            format!(" freq {}", int(&self.ask(&[b"OBJECT", b"FREQ", key])))
        } else if self.policy.contains("lru") {
            // Thousands of seconds: a test may take its time.
            let idle = int(&self.ask(&[b"OBJECT", b"IDLETIME", key]));
            format!(" idle {}", (idle + 500) / 1000 * 1000)
        } else {
            String::new()
        };
        let kind = utf8(&self.ask(&[b"TYPE", key]));
        let mut lines = self.value(&kind, key);
        if lines.len() > self.lines_max {
            let hash = fnv(lines.join("\n").as_bytes());
            lines = vec![format!("#{} lines:{hash:016x}", lines.len())];
        }
        let head = format!("{kind} {}{expiry}{usage}", shown(key));
        let lines = lines.into_iter().map(|line| format!("  {line}"));
        std::iter::once(head).chain(lines).collect()
    }

    fn value(&mut self, kind: &str, key: &[u8]) -> Vec<String> {
        let all = |reply: Value| texts(reply).iter().map(|text| shown(text)).collect();
        match kind {
            "string" => vec![shown(&text(&self.ask(&[b"GET", key])))],
            "list" => all(self.ask(&[b"LRANGE", key, b"0", b"-1"])),
            "set" => {
                let mut members = texts(self.ask(&[b"SMEMBERS", key]));
                members.sort();
                members.iter().map(|member| shown(member)).collect()
            }
            "zset" => {
                let all = pairs(self.ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]));
                let line = |(member, score): &(Value, Value)| {
                    let score: f64 = utf8(score).parse().expect("a score is a number");
                    format!("{} {:016x}", shown(&text(member)), score.to_bits())
                };
                all.iter().map(line).collect()
            }
            "hash" => self.hash(key),
            "stream" => self.stream(key),
            other => panic!("what is {other}?"),
        }
    }

    fn hash(&mut self, key: &[u8]) -> Vec<String> {
        let all = pairs(self.ask(&[b"HGETALL", key]));
        let mut all: Vec<_> = all.iter().map(|(field, value)| (text(field), text(value))).collect();
        all.sort();
        let mut times = vec![-1; all.len()];
        if self.has_field_times {
            let count = all.len().to_string();
            let head: [&[u8]; 4] = [b"HPEXPIRETIME", key, b"FIELDS", count.as_bytes()];
            let names = all.iter().map(|(field, _)| field.as_slice());
            let words: Vec<&[u8]> = head.into_iter().chain(names).collect();
            times = items(self.ask(&words)).iter().map(int).collect();
        }
        let line = |((field, value), at): (&(Vec<u8>, Vec<u8>), i64)| {
            let expiry = if at < 0 { String::new() } else { format!(" expires {at}") };
            format!("{} {}{expiry}", shown(field), shown(value))
        };
        all.iter().zip(times).map(line).collect()
    }

    fn stream(&mut self, key: &[u8]) -> Vec<String> {
        let info = fields(self.ask(&[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]));
        let length = int(&info["length"]);
        // An empty stream has none; Redis reports 2^64 - 1 for one which an old file had.
        let first = if length > 0 {
            format!(" first {}", utf8(&info["recorded-first-entry-id"]))
        } else {
            String::new()
        };
        let mut lines = vec![format!(
            "counts length {length} last {} deleted {} added {}{first}",
            utf8(&info["last-generated-id"]),
            utf8(&info["max-deleted-entry-id"]),
            int(&info["entries-added"]),
        )];
        for entry in items(info["entries"].clone()) {
            let entry = items(entry);
            let values = texts(entry[1].clone());
            let values: Vec<String> = values.iter().map(|value| shown(value)).collect();
            lines.push(format!("entry {} {}", utf8(&entry[0]), values.join(" ")));
        }
        for each in items(info["groups"].clone()) {
            group(&fields(each), &mut lines);
        }
        lines
    }
}

fn group(group: &Fields, lines: &mut Vec<String>) {
    let number = |value: &Value| match value {
        Value::Int(n) => n.to_string(),
        _ => "none".to_owned(),
    };
    lines.push(format!(
        "group {} last {} read {}",
        shown(&text(&group["name"])),
        utf8(&group["last-delivered-id"]),
        number(&group["entries-read"]),
    ));
    for each in items(group["pending"].clone()) {
        let each = items(each);
        let (id, consumer) = (utf8(&each[0]), shown(&text(&each[1])));
        let (delivered, times) = (int(&each[2]), int(&each[3]));
        lines.push(format!("pending {id} {consumer} delivered {delivered} times {times}"));
    }
    let mut consumers: Vec<_> = items(group["consumers"].clone()).into_iter().map(fields).collect();
    consumers.sort_by_key(|consumer| text(&consumer["name"]));
    for consumer in consumers {
        let name = shown(&text(&consumer["name"]));
        let active = consumer.get("active-time").map(|at| format!(" active {}", int(at)));
        let seen = int(&consumer["seen-time"]);
        lines.push(format!("consumer {name} seen {seen}{}", active.unwrap_or_default()));
    }
}

/// The bytes in double quotes, or length and hash of long ones.
fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= LONG_STRING {
        return quote::quoted(bytes);
    }
    format!("#{}:{:016x}", bytes.len(), fnv(bytes))
}

/// FNV-1a with 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

type Fields = BTreeMap<String, Value>;

/// A map of RESP3, or an array of names and values.
fn fields(value: Value) -> Fields {
    pairs(value).into_iter().map(|(name, value)| (utf8(&name), value)).collect()
}

/// Pairs, of which an array has each as an array or as two items.
fn pairs(value: Value) -> Vec<(Value, Value)> {
    if let Value::Map(pairs) = value {
        return pairs;
    }
    let is_pair = |item: &Value| matches!(item, Value::Array(two) if two.len() == 2);
    let all = items(value);
    let flat: Vec<Value> = if !all.is_empty() && all.iter().all(is_pair) {
        all.into_iter().flat_map(items).collect()
    } else {
        all
    };
    let mut flat = flat.into_iter();
    std::iter::from_fn(|| Some((flat.next()?, flat.next()?))).collect()
}

fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        other => panic!("no array: {other:?}"),
    }
}

fn texts(value: Value) -> Vec<Vec<u8>> {
    items(value).iter().map(text).collect()
}

fn text(value: &Value) -> Vec<u8> {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Double(text) => text.clone(),
        other => panic!("no text: {other:?}"),
    }
}

fn utf8(value: &Value) -> String {
    String::from_utf8(text(value)).expect("plain text")
}

fn int(value: &Value) -> i64 {
    if let Value::Int(n) = value { *n } else { panic!("no integer: {value:?}") }
}
