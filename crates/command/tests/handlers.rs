//! Handlers which access the keyspace, or only reply.

use std::sync::Arc;

use crate::common::{Oracle, Value, with_args, words};
use base::{DbIndex, UnixMs};
use command::ops::{DebugOp, ServerOp};
use command::server::populate;
use command::{Ctx, Done, Handler, Progress, Settings, Tally, registry};
use keyspace::{Access, Event, Guard, Keyspace, Options};
use resp::{Args, OutBuf, Proto, Reply};
use value::string::encode;

const NOW: UnixMs = UnixMs(1_700_000_000_123);

struct Bench {
    access: Access,
    settings: Settings,
}

impl Bench {
    fn new() -> Bench {
        let options = Options { databases: 16, hash_secret: 7, workers: 1 };
        let keyspace = Arc::new(Keyspace::new(&options));
        let mut access = Access::new(keyspace, 0);
        assert!(access.enter());
        Bench { access, settings: Settings::default() }
    }

    /// Runs `f` under a guard of the whole keyspace, or without a guard.
    fn with_ctx<T>(
        &mut self,
        world: bool,
        args: Args<'_>,
        f: impl FnOnce(&mut Ctx<'_, '_>) -> T,
    ) -> (T, Vec<u8>) {
        let mut out = OutBuf::new();
        let mut tally = Tally::default();
        if world {
            assert!(self.access.try_world().is_ok());
        }
        let result = {
            let mut guard: Guard<'_> =
                if world { self.access.world(NOW) } else { self.access.free(NOW) };
            let reply = Reply::new(&mut out, Proto::Resp2);
            let settings = &self.settings;
            let db = DbIndex(0);
            let mut ctx = Ctx::new(
                &mut guard,
                reply,
                args,
                db,
                NOW,
                settings,
                &mut tally,
                command::First::NONE,
            );
            f(&mut ctx)
        };
        if world {
            self.access.open_world();
        }
        (result, out.bytes)
    }

    fn run(&mut self, line: &str) -> String {
        with_args(&words(line), |args| {
            let id = registry::find(args).expect("it is a right request");
            let Handler::Data(handler) = id.spec().handler else { panic!("{line} is no data") };
            let (result, reply) = self.with_ctx(true, args, handler);
            match result {
                Ok(Done::Replied) => String::from_utf8(reply).expect("a reply of text"),
                Err(error) => format!("-{error}\r\n"),
                Ok(other) => panic!("{line} says {other:?}"),
            }
        })
    }

    /// Runs `DEBUG POPULATE` to its end, with no slot locked between steps. Returns the steps.
    fn populate(&mut self, line: &str) -> Result<usize, String> {
        with_args(&words(&format!("DEBUG POPULATE {line}")), |args| {
            let Ok(ServerOp::Debug(DebugOp::Populate(op))) = command::server::debug::debug(args)
            else {
                panic!("{line} is not read as such");
            };
            let mut work = populate::begin(op);
            let mut steps = 1;
            loop {
                let (finished, reply) = self.with_ctx(false, args, |ctx| work.step(ctx));
                if finished.map_err(|error| error.to_string())? == Progress::Complete {
                    assert_eq!(reply, b"+OK\r\n");
                    return Ok(steps);
                }
                assert!(reply.is_empty());
                steps += 1;
            }
        })
    }

    fn get(&mut self, name: &str) -> Option<Vec<u8>> {
        with_args(&[], |args| {
            let read = |ctx: &mut Ctx<'_, '_>| {
                let key = ctx.guard.keyspace().key(name.as_bytes());
                ctx.guard.read(DbIndex(0), &key).map(|entry| match entry.str() {
                    value::string::Str::Bytes(bytes) => bytes.to_vec(),
                    other => panic!("not a short text: {other:?}"),
                })
            };
            self.with_ctx(true, args, read).0
        })
    }
}

#[test]
fn handlers_without_keys_reply() {
    let mut bench = Bench::new();
    let cases = [
        ("PING", "+PONG\r\n"),
        ("PING hello", "$5\r\nhello\r\n"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"),
        ("ECHO \"\"", "$0\r\n\r\n"),
        ("TIME", "*2\r\n$10\r\n1700000000\r\n$6\r\n123000\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("MEMORY USAGE nothing", "$-1\r\n"),
        ("MEMORY USAGE nothing SAMPLES 0", "$-1\r\n"),
        ("MEMORY USAGE nothing SAMPLES -1", "-ERR syntax error\r\n"),
        ("MEMORY USAGE nothing SAMPLES", "-ERR syntax error\r\n"),
        ("MEMORY USAGE nothing COUNT 1", "-ERR syntax error\r\n"),
        ("MEMORY USAGE nothing samples x", "-ERR value is not an integer or out of range\r\n"),
        ("COMMAND GETKEYS watch a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
    ];
    for (line, reply) in cases {
        assert_eq!(bench.run(line), reply, "{line}");
    }
    let count = format!(":{}\r\n", command::table::COMMANDS);
    assert_eq!(bench.run("COMMAND COUNT"), count);
    let help = bench.run("slowlog HELP");
    assert!(help.starts_with("*12\r\n+SLOWLOG <subcommand>"), "{help}");
}

/// The errors match a live server's.
#[test]
fn errors_of_memory_usage_and_ping_match_redis() {
    let mut bench = Bench::new();
    let mut oracle = Oracle::start();
    for line in [
        "PING a b",
        "MEMORY USAGE k SAMPLES -1",
        "MEMORY USAGE k SAMPLES",
        "MEMORY USAGE k COUNT 1",
        "MEMORY USAGE k samples x",
        "MEMORY USAGE k samples 1 SAMPLES 2",
    ] {
        assert_eq!(Value::parse(bench.run(line).as_bytes()), oracle.ask_line(line), "{line}");
    }
}

#[test]
fn memory_usage_grows_with_the_value() {
    let mut bench = Bench::new();
    let mut usage_of = |len: usize| {
        with_args(&[], |args| {
            bench.with_ctx(true, args, |ctx| {
                let key = ctx.guard.keyspace().key(b"k");
                ctx.guard.insert(Event::SILENT, DbIndex(0), &key, encode(&vec![b'x'; len]), None);
                ctx.guard.commit();
            })
        });
        let reply = bench.run("MEMORY USAGE k");
        reply[1..].trim_end().parse::<usize>().expect("an integer")
    };
    for len in [10, 100, 10_000, 100_000] {
        let bytes = usage_of(len);
        assert!(bytes > len && bytes < len * 3 / 2 + 100, "{bytes} for {len}");
    }
}

#[test]
fn populate_creates_the_same_keys_as_redis() {
    let mut bench = Bench::new();
    let mut oracle = Oracle::start();
    for (line, keys) in [
        ("3", &["key:0", "key:2", "key:3"][..]),
        ("3 k 20", &["k:0", "k:2"]),
        ("4 k 3", &["k:0", "k:3"]),
        ("1 z 2", &["z:0"]),
        ("0 none", &["none:0"]),
    ] {
        assert!(bench.populate(line).is_ok(), "{line}");
        oracle.ask_line(&format!("DEBUG POPULATE {line}"));
        for key in keys {
            let theirs = match oracle.ask_line(&format!("GET {key}")) {
                Value::Bulk(text) => Some(text.into_bytes()),
                _ => None,
            };
            assert_eq!(bench.get(key), theirs, "{key} after {line}");
        }
    }
    assert_eq!(bench.run("DBSIZE"), ":8\r\n");
}

#[test]
fn populate_runs_in_steps_of_bounded_size() {
    let mut bench = Bench::new();
    assert_eq!(bench.populate("256 a"), Ok(1));
    assert_eq!(bench.populate("257 b"), Ok(2));
    assert_eq!(bench.populate("6 c 131072"), Ok(3));
    assert_eq!(bench.populate("2 d 300000"), Ok(2));
    let bound = bench.settings.bulk_len_max;
    let error = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(bench.populate(&format!("1 e {}", bound + 1)), Err(error.to_owned()));
    assert_eq!(bench.run("DBSIZE"), format!(":{}\r\n", 256 + 257 + 6 + 2));
}
