//! A block of poured messages has the same result as the same XADDs, or one RPUSH. A refused block
//! changes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base::UnixMs;
use base::prng::Prng;
use command::stream::Bound;
use command::{Error, list, stream};
use keyspace::{Intent, WatchCell};

use crate::common::session::Session;
use crate::common::with_args;

const NOW: UnixMs = UnixMs(1_700_000_000_000);

type Block = Vec<(u64, Vec<u8>)>;

fn raw(session: &mut Session, request: &[&[u8]]) -> Vec<u8> {
    with_args(request, |args| session.reply_to(args)).to_vec()
}

/// Everything observable of a key: DUMP also shows where nodes end.
fn snapshot(session: &mut Session, key: &[u8]) -> Vec<Vec<u8>> {
    let full: [&[u8]; 6] = [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"];
    let short: [&[u8]; 3] = [b"XINFO", b"STREAM", key];
    let requests: [&[&[u8]]; 5] =
        [&[b"DUMP", key], &full, &short, &[b"OBJECT", b"ENCODING", key], &[b"PEXPIRETIME", key]];
    requests.iter().map(|request| raw(session, request)).collect()
}

fn pour_stream(
    session: &mut Session,
    key: &[u8],
    bound: Option<Bound>,
    block: &Block,
    panic_after: u32,
) -> Result<u64, Error> {
    let keyspace = Arc::clone(session.access.keyspace());
    let (key, now) = (keyspace.key(key), session.now);
    let mut guard = session.access.lock_one(key.slot, now, Intent::Write).expect("nobody holds it");
    if panic_after > 0 {
        guard.panic_after(panic_after);
    }
    let messages = block.iter().map(|(number, payload)| (*number, &payload[..]));
    stream::pour(&mut guard, (session.db, &key), &session.settings, now, bound, messages)
}

fn pour_list(
    session: &mut Session,
    key: &[u8],
    block: &Block,
    panic_after: u32,
) -> Result<(), Error> {
    let keyspace = Arc::clone(session.access.keyspace());
    let (key, now) = (keyspace.key(key), session.now);
    let mut guard = session.access.lock_one(key.slot, now, Intent::Write).expect("nobody holds it");
    if panic_after > 0 {
        guard.panic_after(panic_after);
    }
    let payloads = block.iter().map(|(_, payload)| &payload[..]);
    list::pour(&mut guard, (session.db, &key), &session.settings, &mut session.tally, payloads)
}

fn add(session: &mut Session, key: &[u8], bound: Option<Bound>, message: &(u64, Vec<u8>)) {
    let (number, count) = (message.0.to_string(), bound.map_or(0, |b| b.count).to_string());
    let mut request: Vec<&[u8]> = vec![b"XADD", key];
    if let Some(bound) = bound {
        request.extend([&b"MAXLEN"[..], if bound.exact { b"=" } else { b"~" }, count.as_bytes()]);
    }
    request.extend([&b"*"[..], b"id", number.as_bytes(), b"data", &message.1]);
    let reply = raw(session, &request);
    assert!(reply.starts_with(b"$"), "{}", String::from_utf8_lossy(&reply));
}

fn messages(prng: &mut Prng, count: u64) -> Block {
    let message = |prng: &mut Prng| {
        let number = match prng.below(4) {
            0 => u64::MAX - prng.below(3),
            1 => i64::MAX as u64 - 1 + prng.below(3),
            _ => prng.below(100_000),
        };
        let payload = match prng.below(20) {
            0 => vec![b'x'; prng.below(2_000) as usize],
            1 => vec![b'y'; 66_000],
            2..8 => prng.below(1_000_000).to_string().into_bytes(),
            _ => vec![b'z'; prng.below(30) as usize],
        };
        (number, payload)
    };
    (0..count).map(|_| message(prng)).collect()
}

/// Changes the stream by a random other command.
fn disturb(prng: &mut Prng, one: &mut Session, two: &mut Session) {
    let last = |session: &mut Session| {
        let reply = session.ask_at(&[b"XREVRANGE", b"s", b"+", b"-", b"COUNT", b"1"]);
        let crate::common::Value::Array(entries) = reply else { panic!("{reply:?}") };
        let Some(crate::common::Value::Array(entry)) = entries.first() else { return None };
        Some(entry[0].text().to_owned())
    };
    let id = last(one).filter(|_| prng.chance(1, 2));
    let request: Vec<&[u8]> = match (prng.below(4), &id) {
        (0, Some(id)) => vec![b"XDEL", b"s", id.as_bytes()],
        (1, _) => vec![b"XADD", b"s", b"*", b"other", b"1", b"field", b"2"],
        (2, _) => vec![b"XTRIM", b"s", b"MAXLEN", b"7"],
        (3, _) if prng.chance(1, 4) => vec![b"PEXPIREAT", b"s", b"1700000000003"],
        _ => return,
    };
    assert_eq!(raw(one, &request), raw(two, &request));
}

#[test]
fn a_stream_equals_the_result_of_the_same_xadds() {
    let bound = |count, exact| Some(Bound { count, exact });
    let bounds = [
        None,
        bound(0, true),
        bound(3, true),
        bound(99, true),
        bound(100, true),
        bound(250, true),
        bound(0, false),
        bound(3, false),
        bound(250, false),
    ];
    for seed in 0..45 {
        let mut prng = Prng::new(seed);
        let bound = bounds[seed as usize % bounds.len()];
        let (mut one, mut two) = (Session::new(), Session::new());
        for session in [&mut one, &mut two] {
            let limits = [(4096, 100), (200, 5), (0, 7), (300, 0)][seed as usize % 4];
            session.settings.stream_node_max_bytes = limits.0;
            session.settings.stream_node_max_entries = limits.1;
            session.now = NOW;
        }
        for turn in 0..12 {
            let count = if prng.chance(1, 3) { 400 } else { 12 };
            let count = prng.below(count);
            let block = messages(&mut prng, count);
            for message in &block {
                add(&mut one, b"s", bound, message);
            }
            let came = pour_stream(&mut two, b"s", bound, &block, 0).expect("a stream");
            assert_eq!(came, block.len() as u64);
            assert_eq!(snapshot(&mut one, b"s"), snapshot(&mut two, b"s"), "seed {seed}, {turn}");
            disturb(&mut prng, &mut one, &mut two);
            let later = prng.below(3) as i64;
            (one.now, two.now) = (UnixMs(one.now.0 + later), UnixMs(two.now.0 + later));
            assert_eq!(snapshot(&mut one, b"s"), snapshot(&mut two, b"s"), "seed {seed}, {turn}");
        }
    }
}

#[test]
fn a_list_equals_the_result_of_one_rpush() {
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        let (mut one, mut two) = (Session::new(), Session::new());
        (one.now, two.now) = (NOW, NOW);
        for _ in 0..8 {
            let count = if prng.chance(1, 3) { 1_000 } else { 9 };
            let count = prng.below(count);
            let block = messages(&mut prng, count);
            if !block.is_empty() {
                let mut request: Vec<&[u8]> = vec![b"RPUSH", b"l"];
                request.extend(block.iter().map(|(_, payload)| &payload[..]));
                raw(&mut one, &request);
            }
            pour_list(&mut two, b"l", &block, 0).expect("a list");
            assert_eq!(snapshot(&mut one, b"l"), snapshot(&mut two, b"l"), "seed {seed}");
            if prng.chance(1, 3) {
                assert_eq!(raw(&mut one, &[b"LPOP", b"l"]), raw(&mut two, &[b"LPOP", b"l"]));
            }
        }
    }
}

#[test]
fn a_refused_block_returns_its_error_and_changes_nothing() {
    let mut session = Session::new();
    session.now = NOW;
    let block = messages(&mut Prng::new(1), 5);
    session.ask_at(&[b"SET", b"k", b"v"]);
    assert!(matches!(pour_stream(&mut session, b"k", None, &block, 0), Err(Error::WrongType)));
    assert!(matches!(pour_list(&mut session, b"k", &block, 0), Err(Error::WrongType)));
    assert_eq!(session.ask_at(&[b"GET", b"k"]).text(), "v");
    // An empty block creates no key.
    assert!(matches!(pour_stream(&mut session, b"none", None, &Vec::new(), 0), Ok(0)));
    assert!(pour_list(&mut session, b"none", &Vec::new(), 0).is_ok());
    assert_eq!(session.ask_at(&[b"EXISTS", b"none"]), crate::common::Value::Integer(0));
    // Three ids are left before the largest one.
    let id = format!("{}-{}", u64::MAX, u64::MAX - 3);
    for bound in
        [None, Some(Bound { count: 2, exact: true }), Some(Bound { count: 9, exact: false })]
    {
        session.ask_at(&[b"DEL", b"s"]);
        session.ask_at(&[b"XADD", b"s", id.as_bytes(), b"f", b"v"]);
        assert_eq!(pour_stream(&mut session, b"s", bound, &block, 0).ok(), Some(3));
        let before = snapshot(&mut session, b"s");
        assert_eq!(pour_stream(&mut session, b"s", bound, &block, 0).ok(), Some(0));
        assert_eq!(snapshot(&mut session, b"s"), before);
    }
}

#[test]
fn a_panic_rolls_back_the_block() {
    let bounds = [
        None,
        Some(Bound { count: 50, exact: true }),
        Some(Bound { count: 150, exact: true }),
        Some(Bound { count: 150, exact: false }),
    ];
    for (seed, bound) in (0..40).zip(bounds.into_iter().cycle()) {
        let mut prng = Prng::new(seed);
        let mut session = Session::new();
        session.now = NOW;
        let count = prng.below(4) * 90;
        let before = messages(&mut prng, count);
        pour_stream(&mut session, b"s", bound, &before, 0).expect("a stream");
        pour_list(&mut session, b"l", &before, 0).expect("a list");
        let was = (snapshot(&mut session, b"s"), snapshot(&mut session, b"l"));
        let used = session.access.keyspace().used_bytes();
        let count = 1 + prng.below(300);
        let block = messages(&mut prng, count);
        let poured =
            catch_unwind(AssertUnwindSafe(|| pour_stream(&mut session, b"s", bound, &block, 1)));
        assert!(poured.is_err(), "seed {seed}");
        let poured = catch_unwind(AssertUnwindSafe(|| pour_list(&mut session, b"l", &block, 1)));
        assert!(poured.is_err(), "seed {seed}");
        let is = (snapshot(&mut session, b"s"), snapshot(&mut session, b"l"));
        assert!(was == is, "seed {seed}: something is left");
        // Only buffers may have grown.
        let after = session.access.keyspace().used_bytes();
        assert!(after.abs_diff(used) < 256 * 1024, "seed {seed}: {used} and {after}");
        // The next block is stored as if the panic had not occurred.
        pour_stream(&mut session, b"s", bound, &block, 0).expect("a stream");
        pour_list(&mut session, b"l", &block, 0).expect("a list");
        let mut other = Session::new();
        other.now = NOW;
        before.iter().chain(&block).for_each(|message| add(&mut other, b"s", bound, message));
        assert_eq!(snapshot(&mut session, b"s"), snapshot(&mut other, b"s"), "seed {seed}");
    }
}

#[test]
fn watches_are_dirtied_and_changes_are_counted() {
    let mut session = Session::new();
    session.now = NOW;
    let keyspace = Arc::clone(session.access.keyspace());
    let block = messages(&mut Prng::new(3), 70);
    for name in [&b"s"[..], b"l"] {
        for _ in 0..2 {
            let (key, cell) = (keyspace.key(name), WatchCell::new());
            let mut guard =
                session.access.lock_one(key.slot, NOW, Intent::Write).expect("nobody holds it");
            guard.watch(session.db, &key, &cell);
            drop(guard);
            let before = keyspace.changes();
            if name == b"s" {
                pour_stream(&mut session, name, None, &block, 0).expect("a stream");
                assert_eq!(keyspace.changes() - before, 70, "as XADDs");
            } else {
                pour_list(&mut session, name, &block, 0).expect("a list");
                assert!(keyspace.changes() > before);
            }
            assert!(cell.is_dirty());
        }
    }
}
