//! The arguments of commands which the session or the server executes: errors match a live
//! redis-server's, and valid arguments are parsed correctly.

use crate::common::{Oracle, Value, reply_of, with_args, words};
use command::ops::{
    ClientFact, ClientFilters, ClientKill, ClientOp, ClientRule, ClientType, ConfigOp, Credentials,
    DebugOp, FlushMode, Hello, LatencyOp, LibraryFact, LogKind, LogOp, MemoryOp, Populate,
    ProtocolSample, ReplyMode, SaveMode, ServerOp, SessionOp, ShutdownOp, Tracking,
};
use command::{Error, Handler, help, registry};
use resp::Proto;

#[derive(Debug, PartialEq)]
enum Op {
    Session(SessionOp),
    Server(ServerOp),
}

fn read(line: &str) -> Result<Op, Error> {
    with_args(&words(line), |args| match registry::find(args)?.spec().handler {
        Handler::Session(read) => read(args).map(Op::Session),
        Handler::Server(read) => read(args).map(Op::Server),
        _ => panic!("{line} is no operation"),
    })
}

/// Lines with invalid arguments. None of them has an effect, so they can be sent in a row.
const WRONG: &[&str] = &[
    "AUTH a b c d",
    "HELLO x",
    "HELLO 1",
    "HELLO 4",
    "HELLO 99999999999999999999",
    "HELLO 2 FOO",
    "HELLO 2 AUTH a",
    "HELLO 2 SETNAME",
    "HELLO 2 SETNAME a\u{7f}",
    "HELLO 2 SETNAME x auth",
    "SELECT x",
    "SELECT 99999999999",
    "SELECT -99999999999",
    "SELECT 99999999999999999999",
    "CLIENT SETNAME a\u{1}b",
    "CLIENT LIST TYPE foo",
    "CLIENT LIST TYPE",
    "CLIENT LIST TYPE normal x",
    "CLIENT LIST foo",
    "CLIENT LIST foo bar",
    "CLIENT LIST ID",
    "CLIENT LIST ID a",
    "CLIENT LIST ID 1 b",
    "CLIENT KILL ID a",
    "CLIENT KILL ID 0",
    "CLIENT KILL ID -1",
    "CLIENT KILL ID 9223372036854775808",
    "CLIENT KILL TYPE foo",
    "CLIENT KILL USER foo",
    "CLIENT KILL SKIPME foo",
    "CLIENT KILL foo bar",
    "CLIENT KILL ID 9999 foo",
    "CLIENT NO-EVICT foo",
    "CLIENT PAUSE x",
    "CLIENT PAUSE -1",
    "CLIENT PAUSE 1.5",
    "CLIENT PAUSE x foo",
    "CLIENT PAUSE 1 ALL x",
    "CLIENT PAUSE 99999999999999999999",
    "CLIENT REPLY foo",
    "CLIENT UNBLOCK x",
    "CLIENT UNBLOCK x foo",
    "CLIENT UNBLOCK 1 error x",
    "FLUSHALL foo",
    "FLUSHALL ASYNC SYNC",
    "FLUSHDB foo",
    "BGSAVE now",
    "BGSAVE SCHEDULE SCHEDULE",
    "SHUTDOWN foo",
    "SHUTDOWN SAVE NOSAVE",
    "SHUTDOWN NOW ABORT",
    "SHUTDOWN NOSAVE ABORT",
    "SHUTDOWN NOSAVE NOW FORCE ABORT x",
    "SLOWLOG GET x",
    "SLOWLOG GET -2",
    "SLOWLOG get 1 2",
    "SLOWLOG GET 1 2 3",
    "SLOWLOG GET 99999999999999999999",
    "SWAPDB a 1",
    "SWAPDB 1 a",
    "SWAPDB 99999999999 1",
    "SWAPDB 1 99999999999",
    "CONFIG SET a b c",
    "DEBUG foo",
    "DEBUG SLEEP",
    "DEBUG HELP x",
    "DEBUG OBJECT",
    "DEBUG PROTOCOL foo",
    "DEBUG POPULATE a",
    "DEBUG POPULATE -1",
    "DEBUG POPULATE 1 a -1",
    "DEBUG POPULATE 1 a b",
    "DEBUG POPULATE 1 a 1 x",
    "DEBUG SET-ACTIVE-EXPIRE",
];

#[test]
fn errors_of_invalid_arguments_match_redis() {
    let mut oracle = Oracle::start();
    for line in WRONG {
        let error = read(line).expect_err("it is wrong");
        let ours = Value::Error(String::from_utf8_lossy(&error.text()).into_owned());
        assert_eq!(ours, oracle.ask_line(line), "{line}");
    }
}

/// Redis 7.0 does not have these options. The texts are those which client libraries report from
/// 7.2.
#[test]
fn errors_of_newer_options() {
    let cases = [
        ("CLIENT SETINFO foo x", "ERR Unrecognized option 'foo'"),
        (
            "CLIENT SETINFO LIB-NAME a\u{1}",
            "ERR lib-name cannot contain spaces, newlines or special characters.",
        ),
        (
            "CLIENT SETINFO lib-ver a\u{1}",
            "ERR lib-ver cannot contain spaces, newlines or special characters.",
        ),
        ("CLIENT NO-TOUCH foo", "ERR syntax error"),
        (
            "DEBUG PANIC-IN-COMMAND get 1 2 3",
            "ERR unknown subcommand or wrong number of arguments for 'PANIC-IN-COMMAND'. \
             Try DEBUG HELP.",
        ),
        ("DEBUG PANIC-IN-COMMAND get x", "ERR value is out of range, must be positive"),
    ];
    for (line, text) in cases {
        assert_eq!(read(line).expect_err("it is wrong").to_string(), text, "{line}");
    }
}

fn bytes(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

/// Filters from pairs: the fact, and whether it must or must not hold.
fn filters(skip_me: bool, rules: &[(bool, ClientFact)]) -> ClientFilters {
    let rule = |(is, fact): &(bool, ClientFact)| ClientRule { fact: fact.clone(), is_not: !is };
    ClientFilters { rules: rules.iter().map(rule).collect(), skip_me }
}

#[test]
fn session_commands_are_parsed() {
    let credentials = |user: Option<&str>, password| Credentials {
        user: user.map(bytes),
        password: bytes(password),
    };
    let hello = |proto| Hello { proto, auth: None, name: None };
    let cases = [
        ("AUTH pw", SessionOp::Auth(credentials(None, "pw"))),
        ("auth me pw", SessionOp::Auth(credentials(Some("me"), "pw"))),
        ("HELLO", SessionOp::Hello(hello(None))),
        ("HELLO 3", SessionOp::Hello(hello(Some(3)))),
        (
            "hello 2 setname me Auth you pw SETNAME us",
            SessionOp::Hello(Hello {
                auth: Some(credentials(Some("you"), "pw")),
                name: Some(bytes("us")),
                ..hello(Some(2))
            }),
        ),
        ("SELECT 15", SessionOp::Select(15)),
        ("SELECT -1", SessionOp::Select(-1)),
        ("QUIT now", SessionOp::Quit),
        ("RESET", SessionOp::Reset),
        ("MONITOR", SessionOp::Monitor),
        ("MULTI", SessionOp::Multi),
        ("EXEC", SessionOp::Exec),
        ("DISCARD", SessionOp::Discard),
        ("WATCH a b", SessionOp::Watch),
        ("UNWATCH", SessionOp::Unwatch),
    ];
    for (line, op) in cases {
        assert_eq!(read(line), Ok(Op::Session(op)), "{line}");
    }
}

/// Fails unless every line is parsed as its operation.
fn assert_client_operations(cases: impl IntoIterator<Item = (&'static str, ClientOp)>) {
    for (line, op) in cases {
        assert_eq!(
            read(&format!("CLIENT {line}")),
            Ok(Op::Session(SessionOp::Client(op))),
            "{line}"
        );
    }
}

#[test]
fn client_commands_are_parsed() {
    let pause = |timeout_ms, writes_only| ClientOp::Pause { timeout_ms, writes_only };
    assert_client_operations([
        ("GETNAME", ClientOp::GetName),
        ("SETNAME me", ClientOp::SetName(bytes("me"))),
        ("SETNAME \"\"", ClientOp::SetName(bytes(""))),
        ("SETINFO lib-name py", ClientOp::SetInfo(LibraryFact::Name(bytes("py")))),
        ("SETINFO LIB-VER 8", ClientOp::SetInfo(LibraryFact::Version(bytes("8")))),
        ("ID", ClientOp::Id),
        ("INFO", ClientOp::Info),
        (
            "TRACKING off BCAST",
            ClientOp::Tracking(Tracking {
                on: Some(false),
                broadcast: true,
                ..Tracking::default()
            }),
        ),
        (
            "TRACKING on REDIRECT 7 bcast NOLOOP prefix a prefix b bogus",
            ClientOp::Tracking(Tracking {
                on: Some(true),
                redirect: Some(7),
                broadcast: true,
                no_loop: true,
                prefixes: vec![bytes("a"), bytes("b")],
                wrong: Some(Box::new(Error::Syntax)),
                ..Tracking::default()
            }),
        ),
        ("CACHING yes", ClientOp::Caching(Some(true))),
        ("CACHING perhaps", ClientOp::Caching(None)),
        ("TRACKINGINFO", ClientOp::TrackingInfo),
        ("GETREDIR", ClientOp::Redirection),
        ("CAPA redirect nosuch", ClientOp::Capa { redirect: true }),
        ("CAPA nosuch", ClientOp::Capa { redirect: false }),
        ("IMPORT-SOURCE off", ClientOp::ImportSource(Some(false))),
        ("NO-EVICT on", ClientOp::NoEvict(true)),
        ("NO-TOUCH OFF", ClientOp::NoTouch(false)),
        ("PAUSE 10", pause(10, false)),
        ("PAUSE 10 write", pause(10, true)),
        ("PAUSE 9007199254740993 ALL", pause(9_007_199_254_740_993, false)),
        ("UNPAUSE", ClientOp::Unpause),
        ("REPLY on", ClientOp::Reply(ReplyMode::On)),
        ("REPLY OFF", ClientOp::Reply(ReplyMode::Off)),
        ("REPLY Skip", ClientOp::Reply(ReplyMode::Skip)),
        ("UNBLOCK 5", ClientOp::Unblock { id: 5, with_error: false }),
        ("UNBLOCK -5 ERROR", ClientOp::Unblock { id: -5, with_error: true }),
    ]);
}

#[test]
fn client_filters_are_parsed() {
    let list = |rules: &[(bool, ClientFact)]| ClientOp::List(filters(false, rules));
    let kill =
        |rules: &[(bool, ClientFact)]| ClientOp::Kill(ClientKill::Filters(filters(true, rules)));
    let ids = |ids: &[i64]| ClientFact::Ids(ids.to_vec());
    let age = |at_least_ms| ClientFact::Age { at_least_ms };
    assert_client_operations([
        ("LIST", list(&[])),
        ("LIST TYPE slave", list(&[(true, ClientFact::Type(ClientType::Replica))])),
        ("LIST type Master", list(&[(true, ClientFact::Type(ClientType::Master))])),
        ("LIST ID 3 -1 3", list(&[(true, ids(&[3, -1, 3]))])),
        (
            "LIST not-id 3 4 Name x DB 2 SKIPME yes not-db 3 not-db 4",
            ClientOp::List(filters(
                true,
                &[
                    (false, ids(&[3, 4])),
                    (true, ClientFact::Name(bytes("x"))),
                    (true, ClientFact::Database(2)),
                    (false, ClientFact::Database(4)),
                ],
            )),
        ),
        ("LIST MAXAGE 60", list(&[(true, age(60))])),
        ("KILL ID", ClientOp::Kill(ClientKill::Address(bytes("ID")))),
        ("KILL 1.2.3.4:5", ClientOp::Kill(ClientKill::Address(bytes("1.2.3.4:5")))),
        ("KILL ID 7", kill(&[(true, ids(&[7]))])),
        (
            "KILL ID 7 8 IDLE 5",
            kill(&[(true, ids(&[7, 8])), (true, ClientFact::Idle { at_least_s: 5 })]),
        ),
        (
            "KILL TYPE pubsub ADDR a LADDR b USER default SKIPME no",
            ClientOp::Kill(ClientKill::Filters(filters(
                false,
                &[
                    (true, ClientFact::Type(ClientType::PubSub)),
                    (true, ClientFact::Address(bytes("a"))),
                    (true, ClientFact::LocalAddress(bytes("b"))),
                    (true, ClientFact::User(bytes("default"))),
                ],
            ))),
        ),
        ("KILL MAXAGE 60", kill(&[(true, age(60_000))])),
    ]);
}

/// Fails unless every line is parsed as its operation.
fn assert_server_operations(cases: impl IntoIterator<Item = (&'static str, ServerOp)>) {
    for (line, op) in cases {
        assert_eq!(read(line), Ok(Op::Server(op)), "{line}");
    }
}

#[test]
fn server_commands_are_parsed() {
    let end = |save, now, force| ServerOp::Shutdown(ShutdownOp::End { save, now, force });
    let get = |count, waited| LogOp::Get { count, waited };
    assert_server_operations([
        ("CONFIG GET a b*", ServerOp::Config(ConfigOp::Get(vec![bytes("a"), bytes("b*")]))),
        (
            "CONFIG SET a 1 b 2",
            ServerOp::Config(ConfigOp::Set(vec![
                (bytes("a"), bytes("1")),
                (bytes("b"), bytes("2")),
            ])),
        ),
        ("CONFIG REWRITE", ServerOp::Config(ConfigOp::Rewrite)),
        ("CONFIG RESETSTAT", ServerOp::Config(ConfigOp::ResetStat)),
        ("FLUSHALL", ServerOp::FlushAll(FlushMode::Default)),
        ("FLUSHALL async", ServerOp::FlushAll(FlushMode::Async)),
        ("FLUSHDB SYNC", ServerOp::FlushDb(FlushMode::Sync)),
        ("SAVE", ServerOp::Save(SaveMode::Foreground)),
        ("BGSAVE", ServerOp::Save(SaveMode::Background)),
        ("BGSAVE schedule", ServerOp::Save(SaveMode::Background)),
        ("LASTSAVE", ServerOp::LastSave),
        ("INFO", ServerOp::Info(vec![])),
        ("INFO Server IO", ServerOp::Info(vec![bytes("server"), bytes("io")])),
        ("SHUTDOWN", end(None, false, false)),
        ("SHUTDOWN nosave NOW force", end(Some(false), true, true)),
        ("SHUTDOWN SAVE save", end(Some(true), false, false)),
        ("SHUTDOWN ABORT", ServerOp::Shutdown(ShutdownOp::Abort)),
        ("SLOWLOG GET", ServerOp::CommandLog(LogKind::Slow, get(Some(10), false))),
        ("SLOWLOG GET 0", ServerOp::CommandLog(LogKind::Slow, get(Some(0), false))),
        ("SLOWLOG GET -1", ServerOp::CommandLog(LogKind::Slow, get(None, false))),
        ("SLOWLOG GET 7 Waited", ServerOp::CommandLog(LogKind::Slow, get(Some(7), true))),
        ("SLOWLOG LEN", ServerOp::CommandLog(LogKind::Slow, LogOp::Len)),
        (
            "COMMANDLOG GET 5 Large-Reply",
            ServerOp::CommandLog(LogKind::LargeReply, get(Some(5), false)),
        ),
        ("COMMANDLOG GET -1 slow", ServerOp::CommandLog(LogKind::Slow, get(None, false))),
        ("COMMANDLOG LEN large-request", ServerOp::CommandLog(LogKind::LargeRequest, LogOp::Len)),
        ("COMMANDLOG RESET large-reply", ServerOp::CommandLog(LogKind::LargeReply, LogOp::Reset)),
        ("LATENCY LATEST", ServerOp::Latency(LatencyOp::Latest)),
        ("LATENCY DOCTOR", ServerOp::Latency(LatencyOp::Doctor)),
        ("LATENCY GRAPH a", ServerOp::Latency(LatencyOp::Graph((*b"a").into()))),
        ("LATENCY HISTORY a", ServerOp::Latency(LatencyOp::History((*b"a").into()))),
        ("LATENCY RESET", ServerOp::Latency(LatencyOp::Reset(vec![]))),
        ("LATENCY HISTOGRAM a", ServerOp::Latency(LatencyOp::Histogram(vec![(*b"a").into()]))),
        ("MEMORY DOCTOR", ServerOp::Memory(MemoryOp::Doctor)),
        ("MEMORY STATS", ServerOp::Memory(MemoryOp::Stats)),
        ("MEMORY PURGE", ServerOp::Memory(MemoryOp::Purge)),
        ("MEMORY MALLOC-STATS", ServerOp::Memory(MemoryOp::MallocStats)),
        ("SLOWLOG RESET", ServerOp::CommandLog(LogKind::Slow, LogOp::Reset)),
        ("SWAPDB 0 -1", ServerOp::SwapDb(0, -1)),
    ]);
}

#[test]
fn debug_commands_are_parsed() {
    let debug = ServerOp::Debug;
    let populate = |count, prefix, value_len| {
        debug(DebugOp::Populate(Populate { count, prefix: bytes(prefix), value_len }))
    };
    let armed = |command: Option<&str>, after_changes, after_runs, is_error| {
        let command = command.map(bytes);
        debug(DebugOp::PanicInCommand { command, after_changes, after_runs, is_error })
    };
    let panic =
        |command, after_changes, after_runs| armed(command, after_changes, after_runs, false);
    assert_server_operations([
        ("DEBUG SLEEP 0.5", debug(DebugOp::Sleep { seconds: 0.5 })),
        ("DEBUG SLEEP x", debug(DebugOp::Sleep { seconds: 0.0 })),
        ("DEBUG SLEEP -3", debug(DebugOp::Sleep { seconds: 0.0 })),
        ("DEBUG SLEEP nan", debug(DebugOp::Sleep { seconds: 0.0 })),
        ("DEBUG SLEEP inf", debug(DebugOp::Sleep { seconds: 365.0 * 86_400.0 })),
        ("DEBUG HOLD k 1.5", debug(DebugOp::Hold { key: bytes("k"), seconds: 1.5 })),
        ("DEBUG HOLD k 0", debug(DebugOp::Hold { key: bytes("k"), seconds: 0.0 })),
        ("DEBUG OBJECT k", debug(DebugOp::Object { key: bytes("k") })),
        ("DEBUG SET-ACTIVE-EXPIRE 0", debug(DebugOp::SetActiveExpire(false))),
        ("debug set-active-expire 1", debug(DebugOp::SetActiveExpire(true))),
        ("DEBUG PROTOCOL bignum", debug(DebugOp::Protocol(ProtocolSample::BigNumber))),
        ("DEBUG PROTOCOL False", debug(DebugOp::Protocol(ProtocolSample::Bool(false)))),
        (
            "DEBUG STRINGMATCH-LEN 3 a*",
            debug(DebugOp::StringMatchLen { len: 3, pattern: bytes("a*") }),
        ),
        ("DEBUG POPULATE 5", populate(5, "key", 0)),
        ("DEBUG POPULATE 5 k 100", populate(5, "k", 100)),
        ("DEBUG FAIL-IN-COMMAND Get 3", armed(Some("get"), 3, 0, true)),
        ("DEBUG PANIC-IN-COMMAND", panic(None, 0, 0)),
        ("DEBUG PANIC-IN-COMMAND SET 2", panic(Some("set"), 2, 0)),
        ("DEBUG PANIC-IN-COMMAND SET 2 5", panic(Some("set"), 2, 5)),
        ("DEBUG SAFE-UP-TO 7", debug(DebugOp::SafeUpTo(Some(7)))),
        ("DEBUG safe-up-to all", debug(DebugOp::SafeUpTo(None))),
        ("DEBUG HELP", debug(DebugOp::Help)),
    ]);
}

/// The help texts are Redis's, except for what this version lacks or adds.
#[test]
fn help_texts_match_redis() {
    let mut oracle = Oracle::start();
    for name in ["command", "config", "object", "slowlog"] {
        let ours = reply_of(Proto::Resp2, |reply| {
            help::write(reply, name);
            Ok(())
        });
        assert_eq!(Value::parse(&ours), oracle.ask_line(&format!("{name} HELP")), "{name}");
    }
    for (name, _) in help::TEXTS {
        let Some(id) = registry::lookup(name.as_bytes()) else { continue };
        assert!(id.spec().has_subcommands() || name == "debug");
    }
}

#[test]
fn protocol_samples_match_redis() {
    use std::io::{Read, Write};
    for proto in [Proto::Resp2, Proto::Resp3] {
        let mut oracle = Oracle::start();
        if proto == Proto::Resp3 {
            oracle.ask_line("HELLO 3");
        }
        for kind in
            "string integer double bignum null array set map attrib push verbatim true false"
                .split(' ')
        {
            let line = format!("DEBUG PROTOCOL {kind}");
            let Ok(Op::Server(ServerOp::Debug(DebugOp::Protocol(sample)))) = read(&line) else {
                panic!("{line} is not read as such");
            };
            let ours = reply_of(proto, |reply| command::server::debug::reply_sample(reply, sample));
            let stream = oracle.stream();
            stream.write_all(format!("{line}\r\n").as_bytes()).expect("it takes requests");
            let mut theirs = vec![0; ours.len()];
            stream.read_exact(&mut theirs).expect("a reply as long as ours");
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(shown(&ours), shown(&theirs), "{kind}");
            assert_eq!(oracle.ask_line("PING"), Value::Simple("PONG".into()), "after {kind}");
        }
    }
}
