//! `COMMAND` compared with a live redis-server: for every command of both servers INFO must be
//! equal, except for the differences listed here. Each of these must exist. (DOCS follows 7.2, and
//! is compared with it and with 7.0 in `tests/tests/command_table.rs`.)

use crate::common::{Oracle, Value, is_built, reply_of, with_args, words};
use command::introspect;
use command::registry;
use resp::Proto;

/// Entries of INFO which differ from Redis 7.0 on purpose, and the reason.
const DIFFERENT: [(&str, &str); 20] = [
    ("module", "there are no modules to load"),
    ("command|getkeys", "since 7.2 a single argument is enough"),
    ("command|getkeysandflags", "since 7.2 a single argument is enough"),
    ("zrank", "since 7.2 there is WITHSCORE"),
    ("zrevrank", "since 7.2 there is WITHSCORE"),
    ("client", "has what came later: CAPA, IMPORT-SOURCE, NO-TOUCH, SETINFO"),
    ("blmove", "since 7.2 scripts may call it"),
    ("blpop", "since 7.2 scripts may call it"),
    ("brpop", "since 7.2 scripts may call it"),
    ("brpoplpush", "since 7.2 scripts may call it"),
    ("bzpopmax", "since 7.2 scripts may call it"),
    ("bzpopmin", "since 7.2 scripts may call it"),
    ("wait", "since 7.2 scripts may call it"),
    ("client|setname", "7.2 has tips"),
    ("config|resetstat", "7.2 has tips"),
    ("config|rewrite", "7.2 has tips"),
    ("latency|reset", "7.2 has another tip"),
    ("msetnx", "7.2 has no tips"),
    ("randomkey", "7.2 has one more tip"),
    ("scan", "7.2 has one more tip"),
];

/// Commands which Redis 7.0 does not have.
const YOUNGER: [&str; 40] = [
    "blmovem",
    "client|capa",
    "client|import-source",
    "client|no-touch",
    "client|setinfo",
    "commandlog",
    "commandlog|get",
    "commandlog|help",
    "commandlog|len",
    "commandlog|reset",
    "delex",
    "delifeq",
    "digest",
    "hexpire",
    "hexpireat",
    "hexpiretime",
    "hgetdel",
    "hgetex",
    "hotkeys",
    "hotkeys|get",
    "hotkeys|help",
    "hotkeys|reset",
    "hotkeys|start",
    "hotkeys|stop",
    "hpersist",
    "hpexpire",
    "hpexpireat",
    "hpexpiretime",
    "hpttl",
    "hsetex",
    "httl",
    "increx",
    "lmovem",
    "msetex",
    "sdiffcard",
    "sunioncard",
    "waitaof",
    "xackdel",
    "xdelex",
    "xnack",
];

/// The value without the subcommands at its top level. They are compared one by one, because Redis
/// returns them in the order of a hash table.
fn without_subcommands(value: Value) -> Value {
    match value {
        Value::Array(mut fields) if fields.len() == 10 => {
            fields.truncate(9);
            Value::Array(fields)
        }
        other => other,
    }
}

fn names_of_subcommands(value: &Value) -> Vec<String> {
    let mut names: Vec<String> = match value {
        Value::Array(fields) => match &fields[9] {
            Value::Array(subs) => subs
                .iter()
                .map(|sub| match sub {
                    Value::Array(fields) => fields[0].text().to_owned(),
                    other => panic!("no entry: {other:?}"),
                })
                .collect(),
            Value::Set(none) if none.is_empty() => Vec::new(),
            other => panic!("no list of subcommands: {other:?}"),
        },
        other => panic!("no entry: {other:?}"),
    };
    names.sort();
    names
}

/// The single entry replied by `COMMAND INFO name`, if any.
fn only_entry(reply: Value) -> Option<Value> {
    match reply {
        Value::Array(mut entries) => entries.pop().filter(|entry| *entry != Value::Null),
        other => panic!("no list: {other:?}"),
    }
}

fn ours(name: &str, proto: Proto) -> Value {
    let bytes = reply_of(proto, |reply| {
        with_args(&[name.as_bytes()], |args| {
            introspect::reply_info(reply, args);
            Ok(())
        })
    });
    Value::parse(&bytes)
}

/// Whether this build has a command with this full name.
fn has(name: &str) -> bool {
    command::by_full_name(name.as_bytes()).is_some()
}

#[test]
fn info_matches_redis() {
    let mut oracle = Oracle::start();
    oracle.ask_line("HELLO 3");
    let mut different = Vec::new();
    let mut younger = Vec::new();
    for name in registry::all().map(|id| id.spec().full_name) {
        let theirs = only_entry(oracle.ask_line(&format!("COMMAND INFO {name}")));
        let ours = only_entry(ours(name, Proto::Resp3)).expect("it is in the table");
        let Some(theirs) = theirs else {
            younger.push(name);
            continue;
        };
        let same = names_of_subcommands(&theirs) == names_of_subcommands(&ours)
            && without_subcommands(theirs.clone()) == without_subcommands(ours.clone());
        if same {
            continue;
        }
        let known = DIFFERENT.iter().any(|(n, _)| *n == name);
        assert!(known, "{name}\n ours: {ours:?}\n theirs: {theirs:?}");
        different.push(name);
    }
    younger.sort_unstable();
    assert_eq!(younger, YOUNGER.into_iter().filter(|n| has(n)).collect::<Vec<_>>());
    for (name, _) in DIFFERENT.into_iter().filter(|(n, _)| has(n)) {
        assert!(different.contains(&name), "{name} is not different any more");
    }
}

#[test]
fn resp2_and_resp3_replies_match_redis_byte_for_byte() {
    for (proto, hello) in [(Proto::Resp2, "HELLO 2"), (Proto::Resp3, "HELLO 3")] {
        let mut oracle = Oracle::start();
        oracle.ask_line(hello);
        for names in ["echo", "nothing memory|USAGE watch", "time echo time"] {
            let bytes = reply_of(proto, |reply| {
                with_args(&words(names), |args| {
                    introspect::reply_info(reply, args);
                    Ok(())
                })
            });
            let theirs = oracle.ask_line(&format!("COMMAND INFO {names}"));
            assert_eq!(Value::parse(&bytes), theirs, "{names} {hello}");
        }
        for line in ["GETKEYS nothing a", "GETKEYSANDFLAGS nothing a"] {
            let request = format!("COMMAND {line}");
            assert_eq!(Value::parse(&getkeys(line, proto)), oracle.ask_line(&request), "{line}");
        }
        for line in GETKEYS.iter().filter(|line| is_built(&words(line)[1..])) {
            let request = format!("COMMAND {line}");
            assert_eq!(Value::parse(&getkeys(line, proto)), oracle.ask_line(&request), "{line}");
        }
    }
}

/// Every form of the two commands which return the keys of a request.
const GETKEYS: &[&str] = &[
    "GETKEYS get a",
    "GETKEYS get a b c",
    "GETKEYS ping a b c",
    "GETKEYS mset a b c d",
    "GETKEYS mset a b c d e",
    "GETKEYS mset a",
    "GETKEYS config get x",
    "GETKEYS config foo x",
    "GETKEYS object encoding k",
    "GETKEYS OBJECT Freq k",
    "GETKEYS memory usage k SAMPLES 3",
    "GETKEYS lcs a b IDX",
    "GETKEYS copy a b DB 1",
    "GETKEYS watch a b c",
    "GETKEYS del a b c",
    "GETKEYS command info x",
    "GETKEYS debug object x",
    "GETKEYSANDFLAGS set a b",
    "GETKEYSANDFLAGS set a b EX 10 GET",
    "GETKEYSANDFLAGS set a get",
    "GETKEYSANDFLAGS rename a b",
    "GETKEYSANDFLAGS mset a b c d",
    "GETKEYSANDFLAGS exists a b",
    "GETKEYSANDFLAGS getdel a",
    "GETKEYSANDFLAGS get a b",
    "GETKEYSANDFLAGS move a 1",
];

fn getkeys(line: &str, proto: Proto) -> Vec<u8> {
    let words = words(line);
    reply_of(proto, |reply| {
        with_args(&words[1..], |args| match words[0] {
            b"GETKEYS" => introspect::reply_keys(reply, args),
            _ => introspect::reply_keys_and_flags(reply, args),
        })
    })
}

/// Cases which Redis 7.0 cannot answer: its GETKEYS needs two arguments, and MSETEX is newer. The
/// expected answers follow the documentation.
#[test]
fn keys_of_newer_commands_are_found() {
    let cases = [
        ("GETKEYS get", "-ERR Invalid number of arguments specified for command\r\n"),
        ("GETKEYS ping", "-ERR The command has no key arguments\r\n"),
        ("GETKEYS config", "-ERR The command has no key arguments\r\n"),
        ("GETKEYS config nothing", "-ERR Invalid command specified\r\n"),
        ("GETKEYS msetex 2 a 1 b 2 EX 9", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("GETKEYS msetex 1 a 1", "*1\r\n$1\r\na\r\n"),
        ("GETKEYS msetex 3 a 1 b 2", "-ERR Invalid arguments specified for command\r\n"),
        ("GETKEYS msetex 0 a 1", "-ERR Invalid arguments specified for command\r\n"),
        ("GETKEYS msetex x a 1", "-ERR Invalid arguments specified for command\r\n"),
        (
            "GETKEYS msetex 9223372036854775807 a 1",
            "-ERR Invalid arguments specified for command\r\n",
        ),
        ("GETKEYSANDFLAGS set a b IFDEQ c", "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RW\r\n+update\r\n"),
        ("GETKEYSANDFLAGS delex a", "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RM\r\n+delete\r\n"),
        ("GETKEYSANDFLAGS delex a IFEQ b", "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RW\r\n+delete\r\n"),
    ];
    for (line, expected) in cases.into_iter().filter(|(line, _)| is_built(&words(line)[1..])) {
        let reply = getkeys(line, Proto::Resp2);
        assert_eq!(String::from_utf8_lossy(&reply), expected, "{line}");
    }
}

#[test]
fn command_lists_match_redis() {
    let mut oracle = Oracle::start();
    let known: Vec<&str> = registry::all().map(|id| id.spec().full_name).collect();
    let filters = [
        "",
        "FILTERBY ACLCAT transaction",
        "FILTERBY ACLCAT DANGEROUS",
        "FILTERBY ACLCAT @read",
        "FILTERBY ACLCAT nothing",
        "FILTERBY MODULE x",
        "FILTERBY PATTERN config|*",
        "filterby Pattern *SET*",
        "FILTERBY PATTERN",
        "FILTERBY PATTERN a b",
        "FILTERBY FOO bar",
        "FOO",
    ];
    for filter in filters {
        let line = format!("COMMAND LIST {filter}");
        let bytes = reply_of(Proto::Resp2, |reply| {
            with_args(&words(&line), |args| introspect::reply_list(reply, args))
        });
        let sorted = |value: Value| match value {
            Value::Array(names) => {
                let mut names: Vec<String> = names.iter().map(|n| n.text().to_owned()).collect();
                names.retain(|n| known.contains(&&n[..]) && !YOUNGER.contains(&&n[..]));
                names.sort();
                Ok(names)
            }
            other => Err(other),
        };
        assert_eq!(sorted(Value::parse(&bytes)), sorted(oracle.ask_line(&line)), "{line}");
    }
}

#[test]
fn info_and_docs_without_names_return_all_commands() {
    for name in ["info", "docs"] {
        let bytes = reply_of(Proto::Resp3, |reply| {
            with_args(&[], |args| {
                match name {
                    "info" => introspect::reply_info(reply, args),
                    _ => introspect::reply_docs(reply, args),
                }
                Ok(())
            })
        });
        let count = match Value::parse(&bytes) {
            Value::Array(entries) => entries.len(),
            Value::Map(entries) => entries.len(),
            other => panic!("neither a list nor a map: {other:?}"),
        };
        assert_eq!(count, command::table::COMMANDS);
    }
}
