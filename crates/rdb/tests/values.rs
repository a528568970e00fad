//! Whole values: recorded payloads of real servers, random values which round-trip in every shape,
//! and damaged payloads.

use std::borrow::Cow;

use crate::support::{sorted, value};
use base::UnixMs;
use base::prng::Prng;
use rdb::{
    Builder, CollectionDump, CollectionRestore, Error, Field, Kind, Options, Owned, Saver, Shape,
    Sink, Source, StreamDump, VERSION, VERSION_VALKEY, open, restore, seal, types,
};

const SHAPES: [Shape; 3] = [Shape::Packed, Shape::Intset, Shape::Plain];

fn savers() -> [Saver; 4] {
    [(true, VERSION), (false, VERSION), (true, VERSION_VALKEY), (false, VERSION_VALKEY)]
        .map(|(compress, version)| Saver::new(Options { compress, version }))
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut out = parts.next().expect("split yields something").as_bytes().to_vec();
    for part in parts {
        out.extend(unhex(&part[..2]));
        out.extend_from_slice(&part.as_bytes()[2..]);
    }
    out
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).expect("a hexadecimal digit") as u8;
    text.as_bytes().chunks_exact(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect()
}

/// The value named by a line of the recording.
fn recorded(kind: &str, items: &str) -> Owned {
    let words = || items.split_terminator(' ');
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').expect("name=value");
        (unescape(name), value.to_owned())
    };
    match kind {
        "string" => Owned::String(unescape(items)),
        "list" => Owned::List(items.split(' ').map(unescape).collect()),
        "set" => Owned::Set(words().map(unescape).collect()),
        "zset" => {
            let score = |text: &str| base::double::parse(text.as_bytes()).expect("a score");
            let member = |word| {
                let (member, text) = pair(word);
                (member, score(&text))
            };
            Owned::Zset(words().map(member).collect())
        }
        "hash" => Owned::Hash(
            words()
                .map(|word| {
                    let (name, rest) = pair(word);
                    let (value, at) = rest.split_once('@').unwrap_or((&rest, ""));
                    let expires = at.parse().ok().map(UnixMs);
                    Field { name, value: unescape(value), expires }
                })
                .collect(),
        ),
        other => panic!("no kind: {other}"),
    }
}

#[test]
fn payloads_of_real_servers_decode() {
    let mut seen = std::collections::BTreeSet::new();
    for line in include_str!("golden/payloads.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().expect("who, payload, kind, value");
        let (who, payload, kind, items) = (word(), unhex(word()), word(), word());
        let value = Owned::restore(&payload).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(sorted(value.clone()), sorted(recorded(kind, items)), "{line}");
        seen.insert((payload[0], who.starts_with("valkey")));
        // Our payload of the value decodes to the same value.
        for mut saver in savers() {
            let again = Owned::restore(&saver.dump(&value)).expect("our own payload");
            assert_eq!(sorted(again), sorted(value.clone()), "{line}");
        }
    }
    let of =
        |valkey| seen.iter().filter(|one| one.1 == valkey).map(|one| one.0).collect::<Vec<_>>();
    assert_eq!(
        of(false),
        [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 22, 23, 24, 25]
    );
    assert_eq!(of(true), [0, 2, 4, 5, 11, 16, 17, 18, 20, 22]);
}

#[test]
fn random_values_round_trip_in_every_shape() {
    let mut prng = Prng::new(4);
    let mut savers = savers();
    for round in 0..1500 {
        let value = value(&mut prng, true);
        for (saver, shape) in
            savers.iter_mut().flat_map(|one| SHAPES.map(|shape| (one.clone(), shape)))
        {
            let mut saver = saver;
            let payload = saver.dump(&value.shaped(shape));
            let again = Owned::restore(&payload).expect("our own payload");
            assert_eq!(sorted(again), sorted(value.clone()), "round {round}, {shape:?}");
        }
    }
}

#[test]
fn types_and_versions_are_the_oldest_sufficient_ones() {
    let [redis, _, valkey, _] = savers();
    let text = |text: &str| text.as_bytes().to_vec();
    let hash = |expires| Owned::Hash(vec![Field { name: text("f"), value: text("v"), expires }]);
    let set = Owned::Set(vec![text("1"), text("-2")]);
    let words = Owned::Set(vec![text("a")]);
    let zset = Owned::Zset(vec![(text("m"), 1.0)]);
    for (value, shape, id, version) in [
        (&Owned::String(text("x")), Shape::Plain, types::STRING, 10),
        (&Owned::List(vec![text("x")]), Shape::Packed, types::LIST_QUICKLIST_2, 10),
        (&Owned::List(vec![text("x")]), Shape::Plain, types::LIST_QUICKLIST_2, 10),
        (&set, Shape::Intset, types::SET_INTSET, 10),
        (&set, Shape::Packed, types::SET, 10),
        (&words, Shape::Intset, types::SET, 10),
        (&zset, Shape::Packed, types::ZSET_LISTPACK, 10),
        (&zset, Shape::Plain, types::ZSET_2, 10),
        (&hash(None), Shape::Packed, types::HASH_LISTPACK, 10),
        (&hash(None), Shape::Plain, types::HASH, 10),
        (&hash(Some(UnixMs(5))), Shape::Packed, types::HASH_LISTPACK_EX, 12),
        (&hash(Some(UnixMs(5))), Shape::Plain, types::HASH_METADATA, 12),
    ] {
        let plan = redis.plan(&value.shaped(shape));
        assert_eq!((plan.id(), plan.version()), (id, version), "{value:?} {shape:?}");
        let (id, version) = if version == 12 { (types::HASH_2, 80) } else { (id, version) };
        let plan = valkey.plan(&value.shaped(shape));
        assert_eq!((plan.id(), plan.version()), (id, version), "{value:?} {shape:?}");
    }
    assert_eq!(set.shape(), Shape::Intset);
    assert_eq!(words.shape(), Shape::Plain);
}

/// The payload that is written in steps, and how many these are.
fn dump_in_steps(value: &Owned) -> (Vec<u8>, usize) {
    let source = value.shaped(Shape::Plain);
    let mut dump = CollectionDump::new(&source).expect("a collection");
    let each = |from, part: &mut dyn FnMut(rdb::Item<'_>) -> bool| {
        let (mut at, mut goes_on) = (0, true);
        source.each(|item| {
            if at >= from && goes_on {
                goes_on = part(item);
            }
            at += 1;
        });
    };
    for steps in 1.. {
        if let Some(payload) = dump.step(each) {
            return (payload.to_vec(), steps);
        }
    }
    unreachable!("it ends")
}

/// Reads a payload in steps: the value, and how many steps these are.
fn restore_in_steps(payload: &[u8]) -> Result<(Owned, usize), Error> {
    let mut work = CollectionRestore::new(base::Blob::from(payload)).expect("it has parts");
    let mut builder = Builder::default();
    for steps in 1.. {
        if work.step(100_000, &mut builder)? {
            return Ok((builder.into_value().ok_or(Error::Corrupt)?, steps));
        }
    }
    unreachable!("it ends")
}

/// Damaged payloads, with a right checksum or a wrong one, give the same value or error in steps as
/// at once.
#[test]
fn collections_are_read_in_steps_as_in_one() {
    let mut prng = Prng::new(61);
    for _ in 0..600 {
        let value = value(&mut prng, true);
        let [mut redis, _, mut valkey, _] = savers();
        for saver in [&mut redis, &mut valkey] {
            let mut payload = saver.dump(&value.shaped(Shape::Plain));
            if CollectionRestore::new(base::Blob::from(&payload[..])).is_none() {
                continue;
            }
            for damage in 0..6 {
                let one = Owned::restore(&payload);
                let steps = restore_in_steps(&payload).map(|(value, _)| value);
                assert_eq!(steps.map(sorted), one.map(sorted), "{}", payload.escape_ascii());
                let (body, version) = payload.split_at(payload.len() - 10);
                let version = u16::from_le_bytes([version[0], version[1]]);
                let mut damaged = body.to_vec();
                let at = 1 + prng.below(damaged.len() as u64 - 1) as usize;
                damaged[at] = damaged[at].wrapping_add(1 + prng.below(3) as u8);
                if damage % 2 == 0 {
                    damaged.truncate(at + 1);
                }
                seal(&mut damaged, if damage == 4 { 9999 } else { version });
                if damage == 3 {
                    *damaged.last_mut().expect("a checksum") ^= 1;
                }
                payload = damaged;
            }
        }
    }
}

#[test]
fn payloads_of_streams_in_steps_are_those_in_one() {
    let source = Owned::Stream(crate::support::stream());
    let mut dump = StreamDump::new(&source).expect("a stream");
    let mut steps = 1;
    let payload = loop {
        if let Some(payload) = dump.step(&source) {
            break payload.to_vec();
        }
        steps += 1;
    };
    assert!(payload == Saver::default().dump(&source), "the payload of a stream");
    assert!(steps > payload.len() / (32 << 10), "{steps} steps for {} bytes", payload.len());
    let (read, steps) = restore_in_steps(&payload).expect("our own payload");
    assert!(Saver::default().dump(&read) == payload, "the stream that was read");
    assert!(steps > payload.len() / (16 << 10), "{steps} steps for {} bytes", payload.len());
    assert!(StreamDump::new(&Owned::String(b"x".to_vec())).is_none());
    let (mut prng, version) = (Prng::new(71), u16::from_le_bytes([payload[payload.len() - 10], 0]));
    for round in 0..300 {
        let mut damaged = payload[..payload.len() - 10].to_vec();
        let at = 1 + prng.below(damaged.len() as u64 - 1) as usize;
        damaged[at] = damaged[at].wrapping_add(1 + prng.below(255) as u8);
        if round % 3 == 0 {
            damaged.truncate(at + 1);
        }
        seal(&mut damaged, version);
        let bytes = |value: Owned| Saver::default().dump(&value);
        let one = Owned::restore(&damaged).map(bytes);
        let steps = restore_in_steps(&damaged).map(|(value, _)| bytes(value));
        assert!(one == steps, "damage at {at}");
    }
}

#[test]
fn a_list_of_empty_nodes_is_refused_in_steps_as_in_one() {
    let mut payload = vec![types::LIST_QUICKLIST_2, 1, 2, 7, 7, 0, 0, 0, 0, 0, 0xff];
    seal(&mut payload, rdb::VERSION);
    assert_eq!(Owned::restore(&payload), Err(Error::Empty));
    assert_eq!(restore_in_steps(&payload), Err(Error::Empty));
}

#[test]
fn payloads_of_collections_in_steps_are_those_in_one() {
    let mut prng = Prng::new(59);
    // One part, one step of them, one more; and some which are as long as a step.
    for (count, longest) in [(1, 10), (999, 20), (1000, 20), (1001, 20), (2000, 30), (300, 60_000)]
    {
        let texts: Vec<Vec<u8>> = (0..count)
            .map(|n| {
                [format!("{n}:").into_bytes(), crate::support::text(&mut prng, longest)].concat()
            })
            .collect();
        let fields = |expires: fn(usize) -> Option<UnixMs>| {
            let field = |(n, text): (usize, &Vec<u8>)| Field {
                name: text.clone(),
                value: texts[count - 1 - n].clone(),
                expires: expires(n),
            };
            Owned::Hash(texts.iter().enumerate().map(field).collect())
        };
        let scored = texts.iter().enumerate().map(|(n, text)| (text.clone(), n as f64 / 3.0));
        for value in [
            Owned::List(texts.clone()),
            Owned::Set(texts.clone()),
            Owned::Zset(scored.collect()),
            fields(|_| None),
            fields(|n| (n % 3 != 0 || n < 2).then_some(UnixMs(1 << 40 >> (n % 7)))),
        ] {
            let (payload, steps) = dump_in_steps(&value);
            let whole = Saver::default().dump(&value.shaped(Shape::Plain));
            assert!(payload == whole, "{count} parts of {:?}", value.kind());
            let (read, read_steps) = restore_in_steps(&payload).expect("our own payload");
            assert!(sorted(read) == sorted(value.clone()), "{count} parts of {:?}", value.kind());
            assert!(read_steps > count / 256 / 9, "{read_steps} steps for {count} parts");
            let least = count / 1000 + usize::from(count > 1 && longest > 1000);
            assert!(steps >= least, "{steps} steps for {count} parts of {:?}", value.kind());
        }
    }
    assert!(CollectionDump::new(&Owned::String(b"x".to_vec())).is_none());
    assert!(CollectionDump::new(&Owned::Set(vec![b"1".to_vec()]).shaped(Shape::Intset)).is_none());
}

#[test]
fn expiries_at_their_limits_round_trip() {
    for (given, redis) in [
        (i64::MIN, 1),
        (0, 1),
        (1, 1),
        (rdb::EXPIRE_MAX, rdb::EXPIRE_MAX),
        (i64::MAX, rdb::EXPIRE_MAX),
    ] {
        let value = Owned::Hash(vec![
            Field { name: b"a".to_vec(), value: vec![], expires: Some(UnixMs(given)) },
            Field { name: b"b".to_vec(), value: vec![], expires: Some(UnixMs(77)) },
        ]);
        let expiry = |saver: &mut Saver, shape| {
            let read = Owned::restore(&saver.dump(&value.shaped(shape))).expect("our own payload");
            let Owned::Hash(fields) = sorted(read) else { panic!("a hash") };
            let at = fields[0].expires;
            // Reading is the last change: however the value goes on, it stays the same.
            for (mut saver, shape) in
                savers().into_iter().flat_map(|s| SHAPES.map(|p| (s.clone(), p)))
            {
                let again = Owned::restore(&saver.dump(&Owned::Hash(fields.clone()).shaped(shape)));
                let Owned::Hash(again) = sorted(again.expect("our own payload")) else {
                    panic!("a hash")
                };
                // (Redis's types have no 0, which is as long ago as 1.)
                let of = |at: Option<UnixMs>| at.map(|at| at.0.max(1));
                assert_eq!(of(again[0].expires), of(at), "{shape:?}");
            }
            at
        };
        let [mut ours, _, mut valkey, _] = savers();
        assert_eq!(expiry(&mut ours, Shape::Packed), Some(UnixMs(redis)));
        assert_eq!(expiry(&mut ours, Shape::Plain), Some(UnixMs(redis)));
        assert_eq!(
            expiry(&mut valkey, Shape::Plain),
            Some(UnixMs(given.clamp(0, rdb::EXPIRE_MAX)))
        );
    }
}

/// A payload with this body.
fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    let mut payload = body.to_vec();
    seal(&mut payload, version);
    payload
}

#[test]
fn the_trailer_detects_damage() {
    let good = sealed(b"\0\x01x", 10);
    assert_eq!(Owned::restore(&good), Ok(Owned::String(b"x".to_vec())));
    assert_eq!(open(&good), Ok((&b"\0\x01x"[..], 10)));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(Owned::restore(&bad), Err(Error::Envelope));
        assert_eq!(Owned::restore(&good[..at]), Err(Error::Envelope));
    }
    for (version, known) in
        [(0, true), (9, true), (12, true), (13, false), (79, false), (80, true), (81, false)]
    {
        assert_eq!(Owned::restore(&sealed(b"\0\x01x", version)).is_ok(), known, "{version}");
    }
    assert_eq!(Error::Envelope.reply(), "ERR DUMP payload version or checksum are wrong");
    assert_eq!(Owned::restore(&sealed(b"\0\x01xyz", 10)), Ok(Owned::String(b"x".to_vec())));
    assert_eq!(Owned::restore(&sealed(b"", 10)), Err(Error::Short));
}

#[test]
fn inconsistent_values_are_refused() {
    for (body, error) in [
        (&b"\x02\x02\x01a\x01a"[..], Error::Refused),
        (b"\x02\x02\xc0\x01\x011", Error::Refused),
        (b"\x04\x02\x01a\x01b\x01a\x01c", Error::Refused),
        (b"\x05\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\0\0", Error::Refused),
        (b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x7f", Error::Corrupt),
        (b"\x03\x01\x01a\xfd", Error::Corrupt),
        (b"\x01\0", Error::Empty),
        (b"\x12\x01\x02\x07\x07\0\0\0\0\0\xff", Error::Empty),
        (b"\x10\x07\x07\0\0\0\0\0\xff", Error::Empty),
        (b"\x12\x01\x03\x01a", Error::Corrupt),
        (b"\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a", Error::Short),
        (b"\x04\x03\x01a\x01b", Error::Short),
        (b"\x06\x01a", Error::Type(6)),
        (b"\x0f\x01a", Error::Short),
        (b"\x1a\x01a", Error::Type(26)),
        (b"\x00\xc3\x01\x81\0\0\0\xff\xff\xff\xff\xff\0", Error::Corrupt),
        (b"\x00\xc3\x01\x80\xff\xff\xff\xff\0", Error::Corrupt),
    ] {
        assert_eq!(Owned::restore(&sealed(body, 10)), Err(error), "{}", body.escape_ascii());
        assert_eq!(error.reply(), "ERR Bad data format");
    }
    // Types of the other dialect.
    assert_eq!(
        Owned::restore(&sealed(b"\x18\0\0\0\0\0\0\0\0\x01\0\x01f\x01v", 80)),
        Err(Error::Type(24))
    );
    assert!(Owned::restore(&sealed(b"\x18\0\0\0\0\0\0\0\0\x01\0\x01f\x01v", 12)).is_ok());
}

/// A sink which only records the sizes announced to it.
struct Promised(u64);

impl Sink for Promised {
    fn stream(&mut self, _: value::Stream) -> Result<(), Error> {
        Ok(())
    }

    fn string(&mut self, bytes: Cow<'_, [u8]>) -> Result<(), Error> {
        self.0 = bytes.len() as u64 / rdb::lzf::GROWTH_MAX as u64;
        Ok(())
    }

    fn start(&mut self, _: Kind, about: u64) -> Result<(), Error> {
        self.0 = about;
        Ok(())
    }

    fn element(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn member(&mut self, _: &[u8], _: f64) -> Result<(), Error> {
        Ok(())
    }

    fn field(&mut self, _: &[u8], _: &[u8], _: Option<UnixMs>) -> Result<(), Error> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A compressed container can have more elements than the payload has bytes, so the limit is what
/// LZF can expand to.
#[test]
fn announced_sizes_are_bounded_by_the_payload() {
    let most = |body: &[u8], promised: u64| {
        let packed = body.contains(&0xc3);
        promised <= body.len() as u64 * if packed { rdb::lzf::GROWTH_MAX as u64 } else { 1 }
    };
    let mut prng = Prng::new(6);
    for _ in 0..200_000 {
        let mut body = vec![0; 1 + prng.below(40) as usize];
        prng.fill(&mut body);
        body[0] %= 26;
        if prng.chance(1, 2) && body.len() > 10 {
            // An explicit length.
            body[1..10].copy_from_slice(b"\x81\0\0\0\0\0\0\0\0");
            body[2 + prng.below(8) as usize] = prng.draw() as u8;
        }
        let mut sink = Promised(0);
        let _ = restore(&sealed(&body, 12), &mut sink);
        assert!(most(&body, sink.0), "{} of {}", sink.0, body.escape_ascii());
    }
}

#[test]
fn damaged_payloads_give_errors_or_other_values() {
    let mut prng = Prng::new(5);
    let mut savers = savers();
    let (mut refused, mut taken) = (0, 0);
    for round in 0..20_000 {
        let value = value(&mut prng, true);
        let shape = SHAPES[round % SHAPES.len()];
        let payload = savers[round % 4].dump(&value.shaped(shape));
        let (body, version) = open(&payload).expect("our own payload");
        let mut body = body.to_vec();
        if round % 7 == 0 {
            body.truncate(prng.below(body.len() as u64) as usize);
        }
        for _ in 0..=prng.below(3) {
            if !body.is_empty() {
                // Lengths and counts are mostly at the start.
                let most = if prng.chance(1, 2) { body.len().min(24) } else { body.len() };
                body[prng.below(most as u64) as usize] = prng.draw() as u8;
            }
        }
        match Owned::restore(&sealed(&body, version)) {
            Ok(_) => taken += 1,
            Err(Error::Envelope) => panic!("the trailer is right"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 3000 && taken > 300, "{refused} {taken}");
}
