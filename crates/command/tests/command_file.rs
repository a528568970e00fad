//! Files of commands: who runs them gets the data of the snapshot.

use crate::common::pair::{content, words_of};
use crate::common::requests::{Dice, NAMES, database, populate, request};
use crate::common::session::Session;
use crate::common::words;
use base::{DbIndex, UnixMs};
use command::save::{CommandFile, SavedFile};
use command::spec::LockClass;
use command::{CommandId, Handler, registry};
use journal::producer::{Field, SinkKind};
use journal::{Extent, Moment, Position, ReplId};
use keyspace::Due;
use keyspace::snapshot::Step;

/// What the session holds, as a file.
fn file_of(session: &mut Session, begun: CommandFile) -> Vec<u8> {
    session.access.leave();
    session.access.try_world().expect("nobody is inside");
    let mut snapshot = session.access.cut(1 << 20).expect("none runs");
    session.access.open_world();
    let mut walker = session.access.further().expect("there is room");
    let (mut file, mut bytes) = (begun, Vec::new());
    loop {
        let step = snapshot.step(&mut walker, &mut file);
        while file.step() {
            snapshot.release_copied(file.take_freed());
            assert!(file.len() <= 1 << 20, "a step writes little");
            bytes.extend(file.take(Vec::new()));
        }
        if step == Step::Complete {
            break;
        }
    }
    file.end();
    bytes.extend(file.take(Vec::new()));
    assert!(file.failure().is_none());
    assert_eq!(file.total(), bytes.len() as u64);
    assert!(session.access.enter());
    bytes
}

fn plain(session: &mut Session) -> Vec<u8> {
    file_of(session, CommandFile::begin(None, &[[]; 0]))
}

/// The commands of a file, as lines.
fn lines(mut file: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !file.is_empty() {
        let words = words_of(&mut file);
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        lines.push(words.join(" "));
    }
    lines
}

/// A session which has run a file, hours later.
fn loaded(mut file: &[u8], now: UnixMs) -> Session {
    let mut session = Session::new();
    (session.now, session.due) = (UnixMs(now.0 + 3 * 3_600_000), Due::Ignore);
    while !file.is_empty() {
        let words = words_of(&mut file);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        if words[0] == b"SELECT" {
            let db = std::str::from_utf8(words[1]).expect("digits").parse();
            session.db = DbIndex(db.expect("a number"));
            continue;
        }
        let reply = session.ask_at(&words);
        assert!(!format!("{reply:?}").contains("Error"), "{reply:?} to {words:?}");
    }
    session
}

#[track_caller]
fn assert_same(a: &mut Session, b: &mut Session, db: u32, key: &str) {
    (a.db, b.db) = (DbIndex(db), DbIndex(db));
    let (expected, got) = (content(a, key.as_bytes()), content(b, key.as_bytes()));
    assert!(expected == got, "{key} in {db}:\n{expected:.2000}\n{got:.2000}");
}

/// Each value, and the commands which make it, as redis-server 7.0 writes them (but for consumers
/// with entries, fields that expire and released entries).
const VALUES: &[(&str, &str, &str)] = &[
    ("s", "SET s hello", "SET s hello"),
    ("n", "SET n -12345", "SET n -12345"),
    ("empty", "SET empty \"\"", "SET empty "),
    ("t", "SET t v PXAT 33000000000000", "SET t v ; PEXPIREAT t 33000000000000"),
    ("l", "RPUSH l a 1 b -7", "RPUSH l a 1 b -7"),
    ("i", "SADD i 3 1 2", "SADD i 1 2 3"),
    ("m", "SADD m b", "SADD m b"),
    (
        "z",
        "ZADD z 0.1 a 3 b 1e300 c inf d -inf e -0.5 g 9007199254740993 h",
        "ZADD z -inf e -0.5 g 0.1 a 3 b 9007199254740992 h 1e+300 c inf d",
    ),
    ("h", "HSET h f v g 2", "HMSET h f v g 2"),
    (
        "e",
        "HSET e f v g w h x ; HPEXPIREAT e 33000000000000 FIELDS 2 f h",
        "HMSET e f v g w h x ; HPEXPIREAT e 33000000000000 FIELDS 2 f h",
    ),
    (
        "x",
        "XADD x 1-1 a b ; XADD x 2-1 a b c d ; XADD x 3-1 a b ; XDEL x 2-1 ; XGROUP CREATE x g 0 ; \
         XGROUP CREATECONSUMER x g alone ; XGROUP CREATE x g2 1-1 ENTRIESREAD 1 ; \
         XCLAIM x g bob 0 1-1 TIME 77 RETRYCOUNT 5 FORCE JUSTID",
        "XADD x 1-1 a b ; XADD x 3-1 a b ; XSETID x 3-1 ENTRIESADDED 3 MAXDELETEDID 2-1 ; \
         XGROUP CREATE x g 0-0 ENTRIESREAD -1 ; XGROUP CREATECONSUMER x g alone ; \
         XGROUP CREATECONSUMER x g bob ; \
         XCLAIM x g bob 0 1-1 TIME 77 RETRYCOUNT 5 JUSTID FORCE ; \
         XGROUP CREATE x g2 1-1 ENTRIESREAD 1",
    ),
    (
        "y",
        "XADD y 5-5 a b ; XDEL y 5-5",
        "XADD y MAXLEN 0 0-1 x y ; XSETID y 5-5 ENTRIESADDED 1 MAXDELETEDID 5-5",
    ),
    (
        "w",
        "XGROUP CREATE w g $ MKSTREAM",
        "XADD w MAXLEN 0 0-1 x y ; XSETID w 0-0 ENTRIESADDED 0 MAXDELETEDID 0-0 ; \
         XGROUP CREATE w g 0-0 ENTRIESREAD -1",
    ),
    (
        "k",
        "XADD k 1-1 a b ; XGROUP CREATE k g 0 ; XNACK k g FAIL IDS 1 1-1 RETRYCOUNT 4 FORCE",
        "XADD k 1-1 a b ; XSETID k 1-1 ENTRIESADDED 1 MAXDELETEDID 0-0 ; \
         XGROUP CREATE k g 0-0 ENTRIESREAD -1 ; XNACK k g FAIL IDS 1 1-1 RETRYCOUNT 4 FORCE",
    ),
];

#[test]
fn each_value_becomes_commands_which_make_it() {
    for (key, made, expected) in VALUES {
        let mut session = Session::new();
        session.db = DbIndex(2);
        for line in made.split(" ; ") {
            let reply = session.ask(&words(line));
            assert!(!format!("{reply:?}").contains("Error"), "{line}: {reply:?}");
        }
        let file = plain(&mut session);
        let wanted: Vec<&str> = std::iter::once("SELECT 2").chain(expected.split(" ; ")).collect();
        assert_eq!(lines(&file), wanted, "{key}");
        let mut again = loaded(&file, session.now);
        assert_same(&mut session, &mut again, 2, key);
    }
}

#[test]
fn parts_come_in_commands_of_64() {
    let mut session = Session::new();
    for n in 0..1500 {
        session.ask_line(&format!("RPUSH l {n}"));
        session.ask_line(&format!("SADD i {n}"));
        session.ask_line(&format!("SADD s member-{n}"));
        session.ask_line(&format!("ZADD z {}.25 member-{n}", n % 97));
        session.ask_line(&format!("HSET h field-{n} {n}"));
        session.ask_line(&format!("HSET e field-{n} {n}"));
        session.ask_line(&format!(
            "HPEXPIREAT e {} FIELDS 1 field-{n}",
            33_000_000_000_000_i64 + n % 2
        ));
        session.ask_line(&format!("XADD x {n}-1 f {n}"));
    }
    session.ask_line("XGROUP CREATE x g 0");
    session.ask_line("XREADGROUP GROUP g c COUNT 700 STREAMS x >");
    let file = plain(&mut session);
    let lines = lines(&file);
    for (name, words) in [("RPUSH l", 66), ("SADD i", 66), ("SADD s", 66), ("ZADD z", 130)] {
        let of_key: Vec<_> = lines.iter().filter(|line| line.starts_with(name)).collect();
        assert_eq!(of_key.len(), 24, "{name}");
        let counts = of_key.iter().map(|line| line.split(' ').count());
        assert_eq!(counts.filter(|count| *count == words).count(), 23, "{name}");
    }
    let mut again = loaded(&file, session.now);
    for key in ["l", "i", "s", "z", "h", "e", "x"] {
        assert_same(&mut session, &mut again, 0, key);
    }
}

/// What is long goes in steps; a command gets no more parts when it is long.
#[test]
fn long_values_go_in_steps() {
    let mut session = Session::new();
    let text = |n: usize, len: usize| {
        let bytes = n.to_string().into_bytes();
        bytes.iter().copied().cycle().take(len).collect::<Vec<u8>>()
    };
    session.ask(&[b"SET", b"s", &text(123, 3 << 20)]);
    session.ask_line("PEXPIREAT s 33000000000000");
    for n in 0..200 {
        session.ask(&[b"RPUSH", b"l", &text(n, 20_000)]);
        session.ask(&[b"HSET", b"h", &text(n, 100), &text(n + 1, 20_000)]);
        session.ask(&[b"XADD", b"x", b"*", b"f", &text(n, 20_000)]);
    }
    let file = plain(&mut session);
    let (mut rest, mut longest) = (&file[..], 0);
    while !rest.is_empty() {
        let before = rest.len();
        if words_of(&mut rest)[0] != b"SET" {
            longest = longest.max(before - rest.len());
        }
    }
    assert!(longest < 64 << 10, "{longest}");
    let mut again = loaded(&file, session.now);
    for key in ["s", "l", "h", "x"] {
        assert_same(&mut session, &mut again, 0, key);
    }
}

#[test]
fn the_file_begins_with_its_moment_libraries_and_producers() {
    let mut session = Session::new();
    session.ask_line("SET a 1");
    let id = ReplId::parse(&[b'5'; 40]).expect("an id");
    let moment = Moment { number: 7, unix_ms: 99 };
    let extent = Extent { moment, position: Some(Position { id, offset: 4711 }) };
    let mut file = CommandFile::begin(Some(extent), &["#!lua name=f"]);
    let field = |db, key: &'static [u8]| Field {
        kind: SinkKind::Stream,
        db,
        number: 42,
        producer: b"p 1",
        key,
    };
    file.producer(&field(3, b"k"));
    file.producer(&field(3, b"l"));
    let head = "#BASE:7:99\r\n#OFFSET:4711:5555555555555555555555555555555555555555\r\n*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n$12\r\n#!lua name=f\r\n\
                *2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
    let of = |key: &str| {
        format!(
            "*1\r\n$5\r\nMULTI\r\n*2\r\n$7\r\nPERSIST\r\n$1\r\n{key}\r\n\
             #PRODUCER:stream:42:\"p 1\"\r\n*1\r\n$4\r\nEXEC\r\n"
        )
    };
    let tail = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    let expected = format!("{head}{}{}{tail}", of("k"), of("l"));
    let bytes = file_of(&mut session, file);
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

/// Makes values of all types, and changes them at random.
fn random_requests(session: &mut Session, seed: u64) {
    session.whole = true;
    populate(session);
    let changes = |id: &CommandId| {
        let spec = id.spec();
        matches!(spec.handler, Handler::Data(_))
            && spec.may_change()
            && spec.lock == LockClass::Keys
    };
    let specs: Vec<_> = registry::all().filter(changes).map(CommandId::spec).collect();
    let mut dice = Dice(seed);
    for _ in 0..3000 {
        let spec = specs[dice.below(specs.len())];
        session.db = DbIndex(database(spec, &mut dice));
        let request = request(spec, &mut dice);
        let request: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
        session.ask_at(&request);
    }
}

/// Random requests of every family. (A pending entry that is gone cannot be made again.)
#[test]
fn random_data_is_made_again() {
    let mut kept = 0;
    for seed in 0..6 {
        let mut session = Session::new();
        random_requests(&mut session, seed);
        let file = plain(&mut session);
        let mut again = loaded(&file, session.now);
        session.due = Due::Ignore;
        let mut third = loaded(&plain(&mut again), session.now);
        for db in 0..16 {
            for key in NAMES {
                (session.db, again.db) = (DbIndex(db), DbIndex(db));
                let held = content(&mut session, key.as_bytes());
                kept += usize::from(!held.starts_with("none"));
                if !held.starts_with("stream") {
                    assert_same(&mut session, &mut again, db, key);
                }
                assert_same(&mut again, &mut third, db, key);
            }
        }
    }
    assert!(kept > 100, "{kept}");
}
