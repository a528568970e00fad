//! The replies of COMMAND for each command, compared with the reference: arity, flags, keys,
//! categories, tips, key specifications, subcommands, and every field of its documentation.
//! Intended differences are in `known_differences.txt`.

use std::collections::BTreeSet;

use sheafdb_tests::known;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

const KNOWN: &str = include_str!("../known_differences.txt");
/// Documentation fields in which 7.2 differs from 7.0: command, field and digest. `UPDATE=1` with a
/// 7.2 reference records them.
const RECORDED: &str = include_str!("../docs72.txt");
/// Fields whose text may be 7.2's, for any command.
const REWORDED: [&str; 2] = ["summary", "arguments"];

fn names(wire: &mut Wire) -> BTreeSet<String> {
    let Value::Array(list) = wire.command(&["COMMAND", "LIST"]).expect("answered") else {
        panic!("COMMAND LIST is an array");
    };
    list.into_iter()
        .map(|name| match name {
            Value::Bulk(name) => String::from_utf8(name).expect("names are text"),
            other => panic!("a name is {other:?}"),
        })
        .collect()
}

/// Lines of a reply; sets such as flags are sorted, subcommands only by name (they are checked
/// separately).
fn lines_of(value: &Value) -> Vec<String> {
    let Value::Array(entries) = value else { panic!("COMMAND INFO is an array: {value:?}") };
    let Some(Value::Array(fields)) = entries.first() else { return vec!["not there".into()] };
    const PARTS: [&str; 10] =
        ["name", "arity", "flags", "first", "last", "step", "categories", "tips", "keys", "inside"];
    let mut lines = Vec::new();
    for (part, field) in PARTS.iter().zip(fields) {
        let text = match (*part, field) {
            ("inside", _) => continue,
            ("flags" | "categories" | "tips", Value::Array(items) | Value::Set(items)) => {
                let words: BTreeSet<String> = items.iter().map(render::line).collect();
                words.into_iter().collect::<Vec<_>>().join(" ")
            }
            _ => render::line(field),
        };
        lines.push(format!("{part}: {text}"));
    }
    lines
}

/// Converts a reply to lines.
type Lines = fn(&Value) -> Vec<String>;

/// Lines of a reply of COMMAND DOCS for one command: its fields by name. Subcommands are checked
/// separately.
fn documented(value: &Value) -> Vec<String> {
    let Value::Array(entries) = value else { panic!("COMMAND DOCS is an array: {value:?}") };
    let Some(Value::Array(fields)) = entries.get(1) else { return vec!["not there".into()] };
    let line = |pair: &[Value]| match pair {
        [Value::Bulk(name), _] if name == b"subcommands" => None,
        [Value::Bulk(name), field] => {
            Some(format!("{}: {}", String::from_utf8_lossy(name), render::line(field)))
        }
        _ => panic!("a field and its name: {pair:?}"),
    };
    fields.chunks(2).filter_map(line).collect()
}

/// Pairs of the fields of both; an absent field is an empty line.
fn by_name(a: &[String], b: &[String]) -> Vec<(String, String)> {
    let name = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = a.iter().chain(b).map(name).collect();
    let field = |lines: &[String], wanted: &String| {
        lines.iter().find(|line| name(line) == *wanted).cloned().unwrap_or_default()
    };
    names.iter().map(|wanted| (field(a, wanted), field(b, wanted))).collect()
}

/// A digest of a text (FNV-1a).
fn digest(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// A line of the record for a command and a line of its documentation.
fn recorded(name: &str, line: &str) -> Option<String> {
    let (field, _) = line.split_once(':')?;
    REWORDED.contains(&field).then(|| format!("{name} {field} {}", digest(line)))
}

#[test]
fn commands_are_described_as_redis_describes_them() {
    let mut known = known::parse(KNOWN).expect("the list is well formed");
    let release = Binary::redis().release();
    known.retain(|entry| entry.is_beside(&release));
    let binary = Binary::under_test();
    let (redis, ours) =
        (ServerProcess::start(&Binary::redis(), &[]), ServerProcess::start(&binary, &[]));
    let (mut redis, mut ours) = (redis.connect(), ours.connect());
    let (theirs, mine) = (names(&mut redis), names(&mut ours));
    let count = ours.command(&["COMMAND", "COUNT"]).expect("answered");
    let top = mine.iter().filter(|name| !name.contains('|')).count();
    assert_eq!(count, Value::Int(top as i64), "COUNT and LIST agree");
    let (mut wrong, mut told_by_72) = (Vec::new(), BTreeSet::new());
    let record: BTreeSet<String> = RECORDED.lines().map(str::to_owned).collect();
    for name in mine.intersection(&theirs) {
        let asked: [(&str, Lines); 2] = [("INFO", lines_of), ("DOCS", documented)];
        for (what, lines) in asked {
            let args = ["COMMAND", what, name].map(|word| word.as_bytes().to_vec());
            let a = lines(&redis.command(&args).expect("answered"));
            let b = lines(&ours.command(&args).expect("answered"));
            told_by_72.extend(a.iter().filter_map(|line| recorded(name, line)));
            for (a, b) in by_name(&a, &b).into_iter().filter(|(a, b)| a != b) {
                let is_72 =
                    what == "DOCS" && recorded(name, &b).is_some_and(|b| record.contains(&b));
                if !is_72 && !known.iter().any(|one| one.explains(&args, &a, &b)) {
                    wrong.push(format!("{what} {name}\n  redis: {a}\n  ours:  {b}"));
                }
            }
        }
    }
    if release == "7.2" && record != told_by_72 {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs72.txt");
        let lines: Vec<String> = told_by_72.into_iter().map(|line| line + "\n").collect();
        let updates = std::env::var("UPDATE").is_ok_and(|value| value == "1");
        assert!(updates, "docs72.txt is not what 7.2 says");
        std::fs::write(path, lines.concat()).expect("the record is written");
    }
    println!("{} commands, {} of them in Redis {release}", mine.len(), {
        mine.intersection(&theirs).count()
    });
    assert!(binary.kind == Kind::Redis || mine.len() > 60, "only {} commands", mine.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
