//! Keyspace events: those of a list of requests match a live server's (`golden/events.txt`), and
//! every write command of the table reports one when it changes something, or is listed here.

use crate::common::requests::{Dice, database, populate, request};
use crate::common::session::Session;
use crate::common::with_args;
use base::{DbIndex, UnixMs};
use command::spec::Flags;
use command::{CommandSpec, Handler, LockClass, registry};

const GOLDEN: &str = include_str!("golden/events.txt");

/// Requests whose events differ, and the reason.
const DIFFERENT: &[(&str, &str)] = &[(
    "XREAD COUNT 1 STREAMS none 0",
    "XREAD does not count lookups, the live server looks twice",
)];

/// The events since the last call, as the golden list writes them.
fn drain_events(session: &mut Session) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(e) = session.access.next_event() {
        let key = String::from_utf8_lossy(&e.key).into_owned();
        events.push(format!("{}@{}:{key}", e.event.name(), e.db.0));
    }
    events
}

/// The events since the last call, without misses.
fn drain_changes(session: &mut Session) -> Vec<String> {
    let mut events = drain_events(session);
    events.retain(|event| !event.starts_with("keymiss@"));
    events
}

/// The words of a request of the list. `RPUSH*300 key` stands for 300 elements.
fn words_of(text: &str, dump: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = text
        .split(' ')
        .map(|word| match word {
            "$dump" => dump.to_vec(),
            "\"\"" => Vec::new(),
            word => word.as_bytes().to_vec(),
        })
        .collect();
    let first = String::from_utf8(words[0].clone()).expect("a name");
    if let Some((name, count)) = first.split_once('*') {
        words[0] = name.as_bytes().to_vec();
        for i in 0..count.parse::<u32>().expect("a count") {
            let item = match name {
                "HSET" => vec![format!("f{i}"), i.to_string()],
                "ZADD" => vec![i.to_string(), format!("e{i}")],
                _ => vec![format!("e{i}")],
            };
            words.extend(item.into_iter().map(String::into_bytes));
        }
    }
    words
}

#[test]
fn events_match_a_live_server() {
    let mut session = Session::new();
    session.access.listen_to_events(true);
    let (mut dump, mut wrong, mut compared) = (Vec::new(), Vec::new(), 0);
    for line in GOLDEN.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (text, expected) = line.split_once(" ->").unwrap_or((line, ""));
        let words = words_of(text, &dump);
        if let Some(number) = text.strip_prefix("@db ") {
            session.db = DbIndex(number.parse().expect("a database"));
        } else if let Some(ms) = text.strip_prefix("@wait ") {
            session.now = UnixMs(session.now.0 + ms.parse::<i64>().expect("milliseconds"));
        } else if text.starts_with("@dump ") {
            let reply = with_args(&[b"DUMP", &words[1]], |args| session.reply_to(args).to_vec());
            let from = reply.iter().position(|byte| *byte == b'\n').expect("a bulk string") + 1;
            dump = reply[from..reply.len() - 2].to_vec();
        } else {
            let request: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            session.now.0 += 1;
            with_args(&request, |args| session.reply_to(args));
            let events = drain_events(&mut session).join(" ");
            compared += 1;
            let is_known = DIFFERENT.iter().any(|(known, _)| *known == text);
            if events != expected.trim() && !is_known {
                wrong.push(format!("{text}\n  expected {}\n  got      {events}", expected.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 300, "{compared} requests");
}

/// Write commands which change something without an event, and the reason.
const SILENT: [(&str, &str); 15] = [
    ("hexpire", "a hash whose fields are not those that are named gets another form only"),
    ("hexpireat", "as HEXPIRE"),
    ("hpexpire", "as HEXPIRE"),
    ("hpexpireat", "as HEXPIRE"),
    ("pfcount", "keeps the count that it has computed"),
    ("pfdebug", "for tests of the form of a HyperLogLog"),
    ("sort", "of its source only the encoding changes"),
    ("sort_ro", "of its source only the encoding changes"),
    ("xack", "what is pending is no data"),
    ("xackdel", "acknowledges what is deleted already"),
    ("xautoclaim", "only a new consumer is told"),
    ("xclaim", "only a new consumer is told"),
    ("xdelex", "references of groups may go without an entry"),
    ("xreadgroup", "only a new consumer is told"),
    ("xnack", "what is pending is no data"),
];

/// The live server of the list does not have these commands. The events of the field commands are
/// those of Redis 7.4.
#[test]
fn newer_commands_report_their_events() {
    let mut session = Session::new();
    session.access.listen_to_events(true);
    let mut expect = |line: &str, expected: &[&str]| {
        with_args(&crate::common::words(line), |args| session.reply_to(args));
        session.now.0 += 1;
        assert_eq!(drain_changes(&mut session), expected, "{line}");
        session.now.0
    };
    expect("SET s 1", &["new@0:s", "set@0:s"]);
    expect("DELIFEQ s 2", &[]);
    expect("DELIFEQ s 1", &["del@0:s"]);
    expect("HSET h a 1 b 2 c 3 d 4", &["new@0:h", "hset@0:h"]);
    expect("HEXPIRE h 100 FIELDS 1 none", &[]);
    expect("HEXPIRE h 100 FIELDS 2 a b", &["hexpire@0:h"]);
    expect("HEXPIRE h 100 XX FIELDS 1 c", &[]);
    expect("HPERSIST h FIELDS 1 a", &["hpersist@0:h"]);
    expect("HPERSIST h FIELDS 1 a", &[]);
    expect("HEXPIRE h 0 FIELDS 1 a", &["hdel@0:h"]);
    expect("HGETEX h EX 100 FIELDS 1 b", &["hexpire@0:h"]);
    expect("HGETEX h PERSIST FIELDS 1 b", &["hpersist@0:h"]);
    expect("HGETEX h FIELDS 1 b", &[]);
    expect("HSETEX h EX 100 FIELDS 1 e 1", &["hset@0:h", "hexpire@0:h"]);
    expect("HGETDEL h FIELDS 1 e", &["hdel@0:h"]);
    expect("HPEXPIRE h 1 FIELDS 1 b", &["hexpire@0:h"]);
    expect("HLEN h", &["hexpired@0:h"]);
    expect("HPEXPIRE h 1 FIELDS 2 c d", &["hexpire@0:h"]);
    expect("HLEN h", &["hexpired@0:h", "del@0:h"]);
    expect("HSET h a 1", &["new@0:h", "hset@0:h"]);
    expect("HPEXPIREAT h 1 FIELDS 1 a", &["hdel@0:h", "del@0:h"]);
}

/// Reports its event, like Redis, even if it removes nothing. Then it counts no change.
const UNCOUNTED: &str = "ltrim";
/// The number of requests of each command.
const REQUESTS: usize = 200;
/// The number of requests after which all keys are reset.
const FRESH: usize = 50;

#[test]
fn every_change_of_a_write_command_is_reported() {
    let mut dice = Dice(5);
    let mut session = Session::new();
    session.whole = true;
    session.access.listen_to_events(true);
    session.access.capture_changes(true);
    let is_tested = |spec: &CommandSpec| {
        let runs = matches!(spec.handler, Handler::Data(_) | Handler::Blocking(..));
        runs && matches!(spec.lock, LockClass::Keys | LockClass::Growing)
    };
    let (mut silent, mut unchanged, mut told_of) = (Vec::new(), Vec::new(), 0);
    for spec in registry::all().map(command::CommandId::spec).filter(|spec| is_tested(spec)) {
        let mut changes = 0;
        for i in 0..REQUESTS {
            if i % FRESH == 0 {
                populate(&mut session);
                drain_changes(&mut session);
            }
            let request = request(spec, &mut dice);
            session.db = DbIndex(database(spec, &mut dice));
            let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
            with_args(&words, |args| session.reply_to(args));
            let mut events = drain_changes(&mut session);
            // An expired key is not a change of the command which finds it.
            events.retain(|event| !event.starts_with("expired") && !event.starts_with("hexpired"));
            let is_uncounted = UNCOUNTED == spec.full_name;
            assert!(
                events.is_empty() || session.changed || session.steps > 1 || is_uncounted,
                "{} tells {events:?} and has changed nothing",
                request.join(" ")
            );
            changes += usize::from(session.changed);
            told_of += events.len();
            let is_known = SILENT.iter().any(|(name, _)| *name == spec.full_name);
            if session.changed && events.is_empty() && !is_known {
                silent.push(request.join(" "));
            }
        }
        if changes == 0 && spec.flags.contains(Flags::WRITE) {
            unchanged.push(spec.full_name);
        }
    }
    assert!(silent.is_empty(), "{} without an event: {:#?}", silent.len(), silent);
    // The list above covers commands which seldom change anything here.
    unchanged.retain(|name| {
        let name = name.replace('|', " ").to_uppercase();
        !GOLDEN.lines().any(|line| line.starts_with(&name) && !line.ends_with("->"))
    });
    let tested_above = ["delifeq", "hpersist"];
    assert!(unchanged.iter().all(|name| tested_above.contains(name)), "untested: {unchanged:?}");
    assert!(told_of > 1000, "{told_of} events");
    for (kind, counted) in session.access.census() {
        assert_eq!(counted.announced, counted.made, "{kind}");
    }
}
