//! Payloads compared with a real redis-server, if there is one on PATH: its DUMP of random values
//! of every encoding decodes to what its read commands return, it RESTOREs our payloads to the same
//! value, and damaged payloads which it refuses are refused with the same error.
//!
//! `SHEAFDB_LIVE_SEED` and `SHEAFDB_LIVE_ROUNDS` repeat or extend a run. Without a redis-server the
//! tests pass with a note, unless `CI` is set: then they fail.

use std::collections::BTreeSet;

use crate::support::live::{Answer, Live};
use crate::support::{sorted, value};
use base::double;
use base::prng::Prng;
use rdb::{Error, Field, Options, Owned, Saver, Shape, open, seal, types};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number in the setting"))
}

/// Runs `round` repeatedly with a live server and a seeded generator.
fn rounds(default: u64, mut round: impl FnMut(&mut Live, &mut Prng, u64)) {
    let Some(mut live) = Live::start() else { return };
    let mut prng = Prng::new(setting("SHEAFDB_LIVE_SEED", 20_260_501));
    for number in 0..setting("SHEAFDB_LIVE_ROUNDS", default) {
        round(&mut live, &mut prng, number);
    }
}

/// The contents of a key according to the read commands.
fn content(live: &mut Live, key: &[u8]) -> Owned {
    let Answer::Simple(kind) = live.done(&[b"TYPE", key]) else { panic!("TYPE is a word") };
    let pairs = |flat: Vec<Vec<u8>>| {
        let mut flat = flat.into_iter();
        std::iter::from_fn(move || Some((flat.next()?, flat.next().expect("pairs"))))
    };
    sorted(match kind.as_str() {
        "string" => Owned::String(live.done(&[b"GET", key]).bytes()),
        "list" => Owned::List(live.done(&[b"LRANGE", key, b"0", b"-1"]).all()),
        "set" => Owned::Set(live.done(&[b"SMEMBERS", key]).all()),
        "zset" => {
            let flat = live.done(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]).all();
            let score = |text: &[u8]| double::parse(text).expect("a score");
            Owned::Zset(pairs(flat).map(|(member, text)| (member, score(&text))).collect())
        }
        "hash" => {
            let field = |(name, value)| Field { name, value, expires: None };
            Owned::Hash(pairs(live.done(&[b"HGETALL", key]).all()).map(field).collect())
        }
        other => panic!("what is {other}?"),
    })
}

/// Stores a value under a key by write commands.
fn write(live: &mut Live, key: &[u8], value: &Owned) {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let name: &[u8] = match value {
        Owned::String(bytes) => {
            words.push(bytes.clone());
            b"SET"
        }
        Owned::List(all) => {
            words.clone_from(all);
            b"RPUSH"
        }
        Owned::Set(all) => {
            words.clone_from(all);
            b"SADD"
        }
        Owned::Zset(all) => {
            for (member, score) in all {
                let mut text = Vec::new();
                double::write(&mut text, *score);
                words.extend([text, member.clone()]);
            }
            b"ZADD"
        }
        Owned::Stream(_) => panic!("streams have a test of their own"),
        Owned::Hash(all) => {
            words.extend(all.iter().flat_map(|field| [field.name.clone(), field.value.clone()]));
            b"HSET"
        }
    };
    live.done(&[b"DEL", key]);
    let args: Vec<&[u8]> = [name, key].into_iter().chain(words.iter().map(Vec::as_slice)).collect();
    live.done(&args);
}

/// Random thresholds, so that values of any size get any encoding.
fn vary(live: &mut Live, prng: &mut Prng) {
    let mut pick = |among: &[&'static str]| among[prng.below(among.len() as u64) as usize];
    live.set("rdbcompression", pick(&["yes", "yes", "no"]));
    live.set("list-max-listpack-size", pick(&["-2", "-1", "-5", "3", "128"]));
    live.set("list-compress-depth", pick(&["0", "1"]));
    live.set("set-max-intset-entries", pick(&["0", "512", "100000"]));
    for kind in ["hash", "zset"] {
        live.set(&format!("{kind}-max-listpack-entries"), pick(&["0", "128", "100000"]));
        live.set(&format!("{kind}-max-listpack-value"), pick(&["64", "64", "1000000"]));
    }
    let packed_below = pick(&["1073741824", "100", "5000"]);
    live.done(&[b"DEBUG", b"QUICKLIST-PACKED-THRESHOLD", packed_below.as_bytes()]);
}

#[test]
fn payloads_of_redis_decode() {
    let mut seen = BTreeSet::new();
    rounds(1200, |live, prng, number| {
        if number % 8 == 0 {
            vary(live, prng);
        }
        let value = value(prng, false);
        write(live, b"k", &value);
        let payload = live.done(&[b"DUMP", b"k"]).bytes();
        let read =
            Owned::restore(&payload).unwrap_or_else(|error| panic!("round {number}: {error}"));
        let theirs = content(live, b"k");
        assert_eq!(sorted(value), theirs, "round {number}: the commands themselves");
        assert_eq!(sorted(read), theirs, "round {number}");
        seen.insert(payload[0]);
        // Intsets by width, strings by their encoding, lists with both kinds of nodes.
        if payload[0] == types::SET_INTSET && payload[1] < 0x40 {
            seen.insert(200 + payload[2]);
        }
        if payload[0] == types::STRING && payload[1] >= 0xc0 {
            seen.insert(payload[1]);
        }
        if payload[0] == types::LIST_QUICKLIST_2 && (2..0x40).contains(&payload[1]) {
            seen.insert(220 + payload[2]);
        }
    });
    let expected = [
        types::STRING,
        types::SET,
        types::HASH,
        types::ZSET_2,
        types::SET_INTSET,
        types::HASH_LISTPACK,
        types::ZSET_LISTPACK,
        types::LIST_QUICKLIST_2,
        0xc0,
        0xc1,
        0xc2,
        0xc3,
        202,
        204,
        208,
        221,
        222,
    ];
    if !seen.is_empty() && setting("SHEAFDB_LIVE_ROUNDS", 0) == 0 {
        let missing: Vec<u8> = expected.into_iter().filter(|one| !seen.contains(one)).collect();
        assert!(missing.is_empty(), "never seen: {missing:?}");
    }
}

#[test]
fn redis_restores_our_payloads() {
    let mut savers =
        [true, false].map(|compress| Saver::new(Options { compress, ..Options::default() }));
    rounds(800, |live, prng, number| {
        if number % 8 == 0 {
            vary(live, prng);
        }
        let value = value(prng, false);
        for shape in [Shape::Packed, Shape::Intset, Shape::Plain] {
            let payload = savers[number as usize % 2].dump(&value.shaped(shape));
            let reply = live.call(&[b"RESTORE", b"k", b"0", &payload, b"REPLACE"]);
            assert_eq!(reply, Answer::Simple("OK".into()), "round {number}, {shape:?}: {value:?}");
            let theirs = content(live, b"k");
            assert_eq!(theirs, sorted(value.clone()), "round {number}, {shape:?}");
            let again = live.done(&[b"DUMP", b"k"]).bytes();
            let again = Owned::restore(&again).expect("its own payload");
            assert_eq!(sorted(again), theirs, "round {number}, {shape:?}");
        }
    });
}

/// We accept nothing which the server refuses, and what both accept is equal. Only we refuse a
/// value which reaches into the trailer, a score in a listpack which is no number, and a count
/// whose first byte is that of an encoded string.
#[test]
fn damaged_payloads_are_refused_if_redis_refuses_them() {
    let mut saver = Saver::default();
    let (mut both, mut neither, mut stricter) = (0, 0, 0);
    rounds(6000, |live, prng, number| {
        let shape = [Shape::Packed, Shape::Intset, Shape::Plain][number as usize % 3];
        let payload = saver.dump(&value(prng, false).shaped(shape));
        let (body, version) = open(&payload).expect("our own payload");
        let mut damaged = body.to_vec();
        let most = if prng.chance(2, 3) { damaged.len().min(24) } else { damaged.len() };
        damaged[prng.below(most as u64) as usize] = prng.draw() as u8;
        if prng.chance(1, 8) {
            damaged.truncate(prng.below(damaged.len() as u64) as usize);
        }
        seal(&mut damaged, version);
        let theirs = live.call(&[b"RESTORE", b"k", b"0", &damaged, b"REPLACE"]);
        match (Owned::restore(&damaged), theirs) {
            (Ok(value), Answer::Simple(_)) => {
                both += 1;
                assert_eq!(sorted(value), content(live, b"k"), "{}", damaged.escape_ascii());
            }
            (Err(error), Answer::Error(text)) => {
                neither += 1;
                assert_eq!(error.reply(), text);
            }
            (Err(_), _) => stricter += 1,
            (Ok(value), theirs) => {
                // Types which 7.0 does not have.
                let newer = damaged[0] >= types::SET_LISTPACK;
                assert!(newer, "{theirs:?}, but {value:?}: {}", damaged.escape_ascii());
            }
        }
    });
    eprintln!("taken {both}, refused {neither}, refused only here {stricter}");
    assert!(stricter * 20 <= both + neither, "{stricter} of {}", both + neither);
}

#[test]
fn error_texts_match_redis() {
    let Some(mut live) = Live::start() else { return };
    let sealed = |body: &[u8], version| {
        let mut payload = body.to_vec();
        seal(&mut payload, version);
        payload
    };
    let good = sealed(b"\0\x01x", 10);
    let mut torn = good.clone();
    torn[4] ^= 1;
    for (payload, error) in [
        (torn, Error::Envelope),
        (Vec::new(), Error::Envelope),
        (good[..good.len() - 1].to_vec(), Error::Envelope),
        (sealed(b"\0\x01x", 79), Error::Envelope),
        (sealed(b"", 10), Error::Short),
        (sealed(b"\0", 10), Error::Short),
        (sealed(b"\x01\0", 10), Error::Empty),
        (sealed(b"\x06\x01x", 10), Error::Type(6)),
        (sealed(b"\x0b\x01x", 10), Error::Short),
        (sealed(b"\x12\x01\x03\x01x", 10), Error::Corrupt),
        (sealed(b"\x02\x02\x01a\x01a", 10), Error::Refused),
    ] {
        assert_eq!(Owned::restore(&payload), Err(error), "{}", payload.escape_ascii());
        let reply = live.call(&[b"RESTORE", b"k", b"0", &payload]);
        assert_eq!(reply, Answer::Error(error.reply().into()), "{}", payload.escape_ascii());
    }
    assert_eq!(live.done(&[b"EXISTS", b"k"]), Answer::Integer(0));
}

/// A stream with groups, made by commands: a part of it deleted, read, acknowledged, claimed.
fn make_stream(live: &mut Live, prng: &mut Prng) {
    live.done(&[b"DEL", b"s"]);
    for n in 1..=prng.below(400) + 1 {
        let id = format!("{}-{}", 1_700_000_000_000 + n / 3 * 7, n % 3);
        let text = vec![b'x'; prng.below(60) as usize];
        let fields: &[&[u8]] = if prng.chance(1, 5) {
            &[b"other", &text, b"n", b"-70000"]
        } else {
            &[b"a", b"17", b"text", &text]
        };
        live.done(&[&[&b"XADD"[..], b"s", id.as_bytes()][..], fields].concat());
        if prng.chance(1, 9) {
            live.done(&[b"XDEL", b"s", id.as_bytes()]);
        }
    }
    if prng.chance(1, 5) {
        return;
    }
    for group in [&b"g"[..], b"h"] {
        live.done(&[b"XGROUP", b"CREATE", b"s", group, b"0"]);
        for consumer in [&b"c"[..], b"d"] {
            let count = prng.below(30).to_string();
            let words: [&[u8]; 9] = [
                b"XREADGROUP",
                b"GROUP",
                group,
                consumer,
                b"COUNT",
                count.as_bytes(),
                b"STREAMS",
                b"s",
                b">",
            ];
            live.call(&words);
        }
    }
    let trimmed = prng.below(300).to_string();
    live.done(&[b"XTRIM", b"s", b"MAXLEN", trimmed.as_bytes()]);
}

#[test]
fn streams_round_trip_through_redis() {
    rounds(40, |live, prng, _| {
        make_stream(live, prng);
        let theirs = live.done(&[b"DUMP", b"s"]).bytes();
        let value = Owned::restore(&theirs).expect("what it dumps is read");
        let ours = Saver::default().dump(&value);
        assert_eq!(Owned::restore(&ours).as_ref(), Ok(&value), "what we write we read");
        assert_eq!((ours[0], theirs[0]), (types::STREAM_2, types::STREAM_2));
        live.done(&[b"RESTORE", b"t", b"0", &ours, b"REPLACE"]);
        for words in [
            &[&b"XRANGE"[..], b"s", b"-", b"+"][..],
            &[b"XINFO", b"STREAM", b"s", b"FULL", b"COUNT", b"0"],
        ] {
            let other: Vec<&[u8]> =
                words.iter().map(|w| if *w == b"s" { b"t" } else { *w }).collect();
            assert_eq!(live.done(words), live.done(&other));
        }
    });
}

/// A damaged payload is refused and never causes a panic.
#[test]
fn damaged_streams_are_refused() {
    let (mut taken, mut refused) = (0, 0);
    rounds(20, |live, prng, _| {
        make_stream(live, prng);
        let theirs = live.done(&[b"DUMP", b"s"]).bytes();
        let (body, version) = open(&theirs).expect("its payload");
        for _ in 0..100 {
            let mut damaged = body.to_vec();
            damaged[prng.below(body.len() as u64) as usize] = prng.draw() as u8;
            seal(&mut damaged, version);
            match Owned::restore(&damaged) {
                Ok(_) => taken += 1,
                Err(_) => refused += 1,
            }
        }
    });
    eprintln!("taken {taken}, refused {refused}");
}

/// The types of Redis 5 and of 7.2, which the reference server does not write: an empty stream with
/// a group and a consumer.
#[test]
fn streams_of_older_and_newer_types_are_read() {
    let (seen, active) = (1_700_000_000_000_i64, 1_600_000_000_000_i64);
    let oldest =
        [&[15, 0, 0, 5, 1, 1, 1, b'g', 4, 2, 0, 1, 1, b'c'][..], &seen.to_le_bytes(), &[0]]
            .concat();
    let newest = [
        &[21, 0, 0, 5, 1, 0, 0, 3, 3, 7, 1, 1, b'g', 4, 2, 6, 0, 1, 1, b'c'][..],
        &seen.to_le_bytes(),
        &active.to_le_bytes(),
        &[0],
    ]
    .concat();
    let expected = [(0, None, seen, oldest.clone()), (7, Some(6), active, newest)];
    for (added, read, active, body) in expected {
        let mut payload = body.clone();
        seal(&mut payload, 9);
        let restored = Owned::restore(&payload);
        let Ok(Owned::Stream(stream)) = restored else { panic!("{restored:?}") };
        let marks = stream.marks();
        assert_eq!((marks.last.ms, marks.last.seq, marks.added), (5, 1, added));
        let (name, group) = stream.groups().next().expect("a group");
        let read = read.or(Some(0).filter(|_| added == 0));
        assert_eq!((name, group.last.ms, group.last.seq, group.read), (&b"g"[..], 4, 2, read));
        let (_, consumer) = group.consumers().next().expect("a consumer");
        assert_eq!((consumer.name(), consumer.seen_ms), (&b"c"[..], seen));
        assert_eq!(consumer.active_ms, active);
    }
    let Some(mut live) = Live::start() else { return };
    let mut payload = oldest;
    seal(&mut payload, 9);
    live.done(&[b"RESTORE", b"s", b"0", &payload]);
    let Ok(value) = Owned::restore(&payload) else { panic!("a stream") };
    live.done(&[b"RESTORE", b"t", b"0", &Saver::default().dump(&value)]);
    let reply = |live: &mut Live, key| live.done(&[b"XINFO", b"GROUPS", key]);
    assert_eq!(reply(&mut live, b"s"), reply(&mut live, b"t"));
}
