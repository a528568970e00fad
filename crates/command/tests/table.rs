//! The table's lookup, its invariants, and the errors of requests which name no command.

use crate::common::{Oracle, Value, is_built, with_args, words};
use command::registry::{self, CommandId};
use command::spec::{BeginSearch, CommandSpec, FindKeys, Flags, KeyFlags, Traits};
use command::{Handler, LockClass, keys, table};

#[test]
fn every_name_is_found_in_any_case() {
    for spec in table::commands() {
        for name in [spec.name.to_owned(), spec.name.to_ascii_uppercase(), mixed(spec.name)] {
            let id = registry::lookup(name.as_bytes()).expect("it is in the table");
            assert_eq!(id.spec().full_name, spec.full_name);
        }
    }
    for (i, id) in registry::all().enumerate() {
        assert_eq!(id.index(), i);
        assert_eq!(CommandId::from_index(i), Some(id));
        assert_eq!(registry::by_full_name(id.spec().full_name.as_bytes()), Some(id));
    }
    assert_eq!(CommandId::from_index(table::ENTRIES), None);
}

fn mixed(name: &str) -> String {
    let letter = |(i, c): (usize, char)| if i % 2 == 0 { c.to_ascii_uppercase() } else { c };
    name.chars().enumerate().map(letter).collect()
}

/// Names one byte away from a real one, in every position and with every byte.
#[test]
fn similar_names_are_not_found() {
    let mut found = 0;
    for spec in table::commands() {
        for at in 0..spec.name.len() {
            for byte in 0..=255_u8 {
                let mut name = spec.name.as_bytes().to_vec();
                name[at] = byte;
                let expected =
                    table::commands().any(|s| s.name.as_bytes().eq_ignore_ascii_case(&name));
                assert_eq!(registry::lookup(&name).is_some(), expected, "{name:?}");
                found += usize::from(expected);
            }
        }
        let longer = [spec.name.as_bytes(), b"x"].concat();
        assert!(registry::lookup(&longer).is_none_or(|id| id.spec().name.as_bytes() == longer));
        let with_zero = [spec.name.as_bytes(), b"\0"].concat();
        assert!(registry::lookup(&with_zero).is_none());
    }
    assert!(found > 2 * table::COMMANDS);
    for name in [&b""[..], b"\0", b"\0\0\0", &[0; 8], &[0xff; 16], &[b'a'; 10_000]] {
        assert!(registry::lookup(name).is_none());
    }
}

#[test]
fn entries_are_consistent() {
    for spec in registry::all().map(CommandId::spec) {
        let name = spec.full_name;
        assert!(!spec.docs.summary.is_empty() && !spec.since.is_empty(), "{name}");
        let container = matches!(spec.handler, Handler::Container);
        assert!(!container || spec.has_subcommands(), "{name} does nothing");
        let locks_keys = matches!(spec.lock, LockClass::Keys | LockClass::Growing);
        // MIGRATE has keys, and takes World for a moment to freeze their slots.
        let has_keys = !spec.keys.is_empty() && !names_no_keys(spec) && name != "migrate";
        assert_eq!(locks_keys, has_keys, "{name}: keys and lock disagree");
        let both = spec.flags.contains(Flags::WRITE) && spec.flags.contains(Flags::READONLY);
        assert!(!both, "{name} is both a write and a read");
        let least = spec.arity.unsigned_abs();
        for (nth, keys) in spec.keys.iter().enumerate() {
            if let BeginSearch::Index(at) = keys.begin {
                // With several kinds of keys, those after the first may be optional.
                let open = (nth > 0 || names_no_keys(spec)) && spec.arity < 0;
                assert!(open || least > at, "{name}: its first key may be missing");
            }
        }
        let moves = spec.keys.iter().any(|keys| {
            let is_counted = matches!(keys.find, FindKeys::KeyNum { .. });
            is_counted || matches!(keys.begin, BeginSearch::Keyword { .. } | BeginSearch::Unknown)
        });
        assert_eq!(spec.flags.contains(Flags::MOVABLEKEYS), moves, "{name}");
        // A command which runs a queue declares how a long one is freed.
        let runs = spec.traits.contains(Traits::RUNS_QUEUE);
        assert_eq!(spec.traits.contains(Traits::COMMITS_IN_PARTS), runs, "{name}");
        for sub in spec.subcommands {
            assert_eq!(sub.full_name, format!("{name}|{}", sub.name));
            assert_eq!(sub.group, spec.group);
        }
        assert!(spec.subcommands.is_sorted_by_key(|sub| sub.name), "{name}");
    }
}

/// What its key specs find belongs to slots as keys do, and is none.
fn names_no_keys(spec: &CommandSpec) -> bool {
    !spec.keys.is_empty() && spec.keys.iter().all(|keys| keys.flags.contains(KeyFlags::NOT_KEY))
}

/// The handler's own parser determines the locked keys, unless the key specs find them by position
/// alone. A search for a keyword or a count would be a second parser, which could find other keys
/// than the first.
#[test]
fn keys_at_variable_positions_are_determined_by_the_handler() {
    for spec in registry::all().map(CommandId::spec) {
        let by_position = |keys: &command::spec::KeySpec| {
            matches!(keys.begin, BeginSearch::Index(_))
                && matches!(keys.find, FindKeys::Range { limit: 0, .. })
        };
        let is_plain = spec.keys.iter().all(by_position);
        let blocks = matches!(spec.handler, Handler::Blocking(..));
        let has_parser = !is_plain && !blocks || names_no_keys(spec);
        assert_eq!(spec.touched.is_some(), has_parser, "{}", spec.full_name);
    }
}

#[test]
fn the_single_key_of_a_command_is_its_only_key() {
    for spec in registry::all().map(CommandId::spec) {
        let words = vec![&b"1"[..]; spec.arity.unsigned_abs().into()];
        with_args(&words, |args| {
            let mut walked = Vec::new();
            let _ = keys::for_each(spec, args, |key| walked.push(key.arg));
            if let Some(at) = spec.single_key().filter(|_| !names_no_keys(spec)) {
                assert_eq!(walked, [at], "{}", spec.full_name);
            }
        });
    }
}

/// Requests which name no command, or a command with the wrong number of arguments.
#[test]
fn errors_match_redis() {
    let mut oracle = Oracle::start();
    let long = "x".repeat(300);
    let medium = "y".repeat(100);
    let edge = ["a".repeat(124), "a".repeat(125), "a".repeat(126), "a".repeat(120)];
    let mut requests: Vec<Vec<&[u8]>> = vec![
        vec![b"fo\r\no", b"x\ny"],
        vec![b"f\0oo", b"a\0b"],
        vec![b"config", b"a\r\nb"],
        vec![b"config", b"a\0b"],
        vec![b"", b""],
        vec![b"config", b""],
        vec![b"config", long.as_bytes()],
        vec![long.as_bytes(), b"aaa", medium.as_bytes(), medium.as_bytes(), b"d"],
        vec![b"nothing"],
        vec![b"nothing", b"a", b"b"],
        vec![b"nothing", medium.as_bytes(), medium.as_bytes(), b"c"],
    ];
    requests.extend(edge.iter().map(|arg| vec![&b"x"[..], arg.as_bytes(), b"cccccccccc", b"d"]));
    let lines = [
        "get",
        "GET a b",
        "config",
        "CONFIG FOO",
        "config get",
        "config set a",
        "object encoding",
        "Object Foo a",
        "client",
        "client foo",
        "command foo",
        "slowlog foo",
        "memory",
        "memory foo bar",
        "select",
        "select 1 2",
        "time x",
        "dbsize x",
        "echo",
        "mset a",
        "set a",
        "client getname x",
        "swapdb 1",
        "debug",
        "watch",
        "slowlog len x",
        "client unpause x",
        "config rewrite x",
        "memory usage",
    ];
    requests.extend(lines.iter().map(|line| words(line)).filter(|line| is_built(line)));
    for request in requests {
        let error = with_args(&request, |args| registry::find(args).expect_err("it is wrong"));
        let ours = Value::Error(String::from_utf8_lossy(&error.text()).into_owned());
        let shown = request.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>();
        assert_eq!(ours, oracle.ask(&request), "{shown:?}");
    }
}

#[test]
fn valid_requests_resolve() {
    let cases = [
        ("ECHO a", "echo"),
        ("CONFIG get a b", "config|get"),
        ("command", "command"),
        ("command count", "command|count"),
        ("CLIENT NO-evict on", "client|no-evict"),
    ];
    for (line, name) in cases {
        let id = with_args(&words(line), registry::find).expect("it is right");
        assert_eq!(id.spec().full_name, name);
    }
}

/// A command which creates a list must know the clients which wait for it, so each of these is
/// checked before it runs. Those with one key at a fixed position and FAST take the short path:
/// LPUSH, RPUSH and MOVE check on their own, the others never fill an empty key.
#[test]
fn commands_which_may_fill_a_key() {
    let may_fill = |spec: &&command::CommandSpec| keys::may_fill(spec);
    let names = |fast: bool| -> Vec<&str> {
        let path = |spec: &&command::CommandSpec| {
            fast == (spec.flags.contains(Flags::FAST) && keys::has_single_key(spec))
        };
        let all = registry::all().map(CommandId::spec).filter(may_fill).filter(path);
        let mut names: Vec<&str> = all.map(|spec| spec.full_name).collect();
        names.sort_unstable();
        names
    };
    let fast = "expire expireat lpush lpushx move persist pexpire pexpireat rpush rpushx";
    assert_eq!(names(true), fast.split(' ').collect::<Vec<_>>());
    let others = "blmove blmovem brpoplpush copy linsert lmove lmovem lset rename renamenx restore rpoplpush sort";
    assert_eq!(names(false), others.split(' ').collect::<Vec<_>>());
    let filled = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let spec = registry::lookup(words[0]).expect("it is there").spec();
        with_args(&words, |args| {
            keys::filled(spec, args).into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        })
    };
    assert_eq!(filled("LMOVE a b LEFT LEFT"), [b"b"]);
    assert_eq!(filled("SORT a BY p* STORE b GET # STORE c"), [b"c"]);
    assert!(filled("SORT a BY p*").is_empty() && filled("BLPOP a b 0").is_empty());
}
