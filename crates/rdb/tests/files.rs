//! Whole files: what is written is read, in blocks of any size, at once and in steps; damaged and
//! cut files are an error with its place; opcodes of all versions.

use crate::support::files::{ALL, Content, Entry, Way, file, put, read};
use crate::support::{sorted, value};
use base::UnixMs;
use base::crc64::crc64;
use base::prng::Prng;
use rdb::file::{
    Checked, Chunk, Fault, FileError, FileOptions, FileWriter, LongText, Meta, ScanOptions,
    Scanned, Scanner,
};
use rdb::{Error, Field, Owned, Shape};

const SHAPES: [Shape; 3] = [Shape::Packed, Shape::Intset, Shape::Plain];

fn options(version: u16) -> FileOptions {
    FileOptions { compress: true, checksum: true, version }
}

fn meta(prng: &mut Prng) -> Meta {
    let millis = [0, 1, 1_700_000_000_000, i64::MAX, -2][prng.below(5) as usize];
    Meta {
        expiry: prng.chance(1, 3).then_some(UnixMs(millis)),
        idle_seconds: prng.chance(1, 4).then(|| prng.below(1 << 33)),
        frequency: prng.chance(1, 4).then(|| prng.draw() as u8),
    }
}

fn entries(prng: &mut Prng, count: usize, expiry: bool) -> Vec<Entry> {
    let entry = |at: usize| Entry {
        db: prng.below(3) as u32 * 100,
        name: [crate::support::text(prng, 100), at.to_string().into_bytes()].concat(),
        meta: meta(prng),
        value: value(prng, expiry),
    };
    (0..count).map(entry).collect()
}

fn all_sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    for entry in &mut entries {
        entry.value = sorted(std::mem::replace(&mut entry.value, Owned::String(Vec::new())));
    }
    entries
}

/// Expiries of fields, as far as Redis's types hold them.
fn held(mut entries: Vec<Entry>) -> Vec<Entry> {
    for entry in &mut entries {
        if let Owned::Hash(fields) = &mut entry.value {
            for field in fields {
                let at = &mut field.expires;
                *at = at.map(|at| UnixMs(at.0.clamp(1, rdb::EXPIRE_MAX)));
            }
        }
    }
    entries
}

#[test]
fn random_entries_round_trip_in_blocks_of_any_size() {
    let mut prng = Prng::new(16);
    for round in 0..120 {
        let version = [10, 11, 12, 80][round % 4];
        let entries = entries(&mut prng, 1 + round % 40, version >= 12);
        let options =
            FileOptions { compress: round % 3 > 0, checksum: round % 5 > 0, ..options(version) };
        let shape = SHAPES[round % 3];
        let whole = file(options, &entries, shape, Way::Whole);
        let steps = file(options, &entries, shape, Way::Steps);
        assert!(whole == steps, "round {round}: the same bytes in steps");
        for block in [1 + prng.below(9) as usize, 1 + prng.below(5000) as usize, usize::MAX] {
            for length in [None, Some(whole.len() as u64)] {
                let (content, summary) = read(&whole, block, ScanOptions { length, ..ALL })
                    .unwrap_or_else(|error| panic!("round {round}: {error}"));
                assert_eq!(summary.version, version);
                assert_eq!(
                    (summary.bytes, summary.keys),
                    (whole.len() as u64, entries.len() as u64)
                );
                let checked = if options.checksum { Checked::Right } else { Checked::Absent };
                assert_eq!(summary.checked, checked);
                assert_eq!(content.aux.len(), 2);
                let (theirs, ours) = (all_sorted(held(content.entries)), held(entries.clone()));
                assert!(theirs == all_sorted(ours), "round {round}, blocks of {block}");
            }
        }
    }
}

fn long_values(prng: &mut Prng) -> Vec<Owned> {
    let mut noise = vec![0; 3 << 20];
    prng.fill(&mut noise);
    let words = |count: usize| (0..count).map(|n| format!("{n}:{}", n * n).into_bytes());
    // Compressed to more than is kept, to less, and not at all.
    let mut mixed = vec![b'm'; 5 << 20];
    mixed[1 << 20..5 << 19].copy_from_slice(&noise[..3 << 19]);
    let field = |expires: Option<UnixMs>| {
        move |(at, name): (usize, Vec<u8>)| Field {
            value: name.clone(),
            name,
            expires: expires.filter(|_| at % 3 == 0),
        }
    };
    let soon = Some(UnixMs(1_800_000_000_000));
    vec![
        Owned::String(vec![b'z'; 70 << 20]),
        Owned::String(mixed),
        Owned::String(noise),
        Owned::List(words(150_000).collect()),
        Owned::List(vec![vec![b'l'; 400 << 10]; 3]),
        Owned::Set(words(60_000).collect()),
        Owned::Zset(words(60_000).enumerate().map(|(at, word)| (word, at as f64 / 3.0)).collect()),
        Owned::Hash(words(60_000).enumerate().map(field(None)).collect()),
        Owned::Hash(words(60_000).enumerate().map(field(soon)).collect()),
        Owned::Stream(crate::support::stream()),
    ]
}

/// Writes a text, of which a clone is changed meanwhile: that is not seen, what is written is given
/// up, and of that nothing is copied any more.
fn write_text(
    mut work: LongText,
    mut clone: base::Blob,
    writer: &mut FileWriter,
    prng: &mut Prng,
    taken: &mut dyn FnMut(&mut FileWriter),
) {
    let (mut freed, mut copied) = (0, base::shared::take_copied());
    let changed = vec![b'c'; 40_000];
    while !work.step(writer, 1 << 16) {
        assert!(work.memory() <= 1 << 20, "{} bytes are kept", work.memory());
        for _ in 0..8 {
            let at = prng.below((clone.len() - changed.len()) as u64) as usize;
            clone.write_at(at, &changed);
        }
        freed += work.take_freed() as u64;
        copied += base::shared::take_copied();
        taken(writer);
    }
    freed += work.take_freed() as u64;
    assert!(freed > 0 && freed <= copied, "{freed} of {copied}");
    clone.write_at(70_000, b"shared with nobody");
    assert_eq!(base::shared::take_copied(), 0);
}

#[test]
fn long_values_are_written_and_read_in_steps() {
    let mut prng = Prng::new(17);
    for (at, value) in long_values(&mut prng).into_iter().enumerate() {
        let version = if value.expires() { 80 } else { 10 };
        let small = |name: &[u8]| Entry {
            db: 0,
            name: name.to_vec(),
            meta: Meta::default(),
            value: Owned::String(b"small".to_vec()),
        };
        let long = Entry { meta: meta(&mut prng), value, ..small(b"the long one") };
        let mut writer = FileWriter::new(options(version), Vec::new());
        writer.begin(&[]);
        put(&mut writer, &small(b"before"), Shape::Plain, Way::Whole);
        let (mut file, mut longest, mut steps) = (Vec::new(), 0, 0);
        let source = crate::support::files::Long(&long.value, Shape::Plain);
        let mut taken = |writer: &mut FileWriter| {
            longest = longest.max(writer.len());
            steps += 1;
            file.extend(writer.take(Vec::new()));
        };
        if let Owned::String(text) = &long.value {
            let blob = base::Blob::from(&text[..]);
            let clone = blob.clone();
            let work = writer.begin_text(&long.name, &long.meta, blob);
            write_text(work, clone, &mut writer, &mut prng, &mut taken);
        } else {
            let begun = writer.begin_long(&long.name, &long.meta, &source);
            let mut work = begun.expect("the version has it");
            while !work.step(&mut writer, &source) {
                taken(&mut writer);
            }
        }
        put(&mut writer, &small(b"behind"), Shape::Plain, Way::Whole);
        writer.end();
        taken(&mut writer);
        // (A compressed text that is kept is copied 64 KiB at a time.)
        let most = if at == 4 { 900 << 10 } else { 100 << 10 };
        assert!(longest < most, "value {at}: {longest} bytes in a step");
        assert!(steps > 2 && steps >= file.len() >> 17, "value {at}: {steps} steps");
        let all = [small(b"before"), long, small(b"behind")];
        let whole = crate::support::files::file_without_aux(options(version), &all);
        assert!(file == whole, "value {at}: the same bytes at once");
        for block in [100_003, usize::MAX] {
            let (content, _) = read(&file, block, ALL).expect("our own file");
            assert!(all_sorted(content.entries) == all_sorted(all.to_vec()), "value {at}");
            let is_long = file.len() > 300 << 10 && content.parts > 0;
            let stays_whole = matches!(all[1].value, Owned::Stream(_)) || file.len() < 1 << 20;
            assert!(is_long || stays_whole, "value {at} of {} bytes in parts", file.len());
            // (The last but one list has elements of 400 KiB; a stream is given whole.)
            let most = if stays_whole { 2 * file.len() + (1 << 20) } else { 2 << 20 };
            assert!(block > 100_003 || content.held < most, "{} bytes are held", content.held);
            assert!(content.parts <= 1 + file.len() / (256 << 10), "{} parts", content.parts);
        }
    }
}

/// A file with every kind of item.
fn every_kind() -> Vec<u8> {
    let mut prng = Prng::new(3);
    let mut writer = FileWriter::new(options(12), Vec::new());
    writer.begin(&[("redis-ver", b"7.4.0"), ("ctime", b"1700000000")]);
    writer.function(b"#!lua name=l\nredis.register_function('f', function() end)");
    for db in [0, 3] {
        writer.database(base::DbIndex(db), Some((9, 3)));
        let mut kinds = 0u8;
        while kinds != 0x1f {
            let value = value(&mut prng, true);
            let short = {
                let mut bytes = 0;
                value.each(|item| {
                    bytes += match item {
                        rdb::Item::Element(a) | rdb::Item::Member(a, _) => a.len() + 1,
                        rdb::Item::Field(a, b, _) => a.len() + b.len(),
                    };
                });
                bytes < 60
            };
            if short {
                kinds |= 1 << value.kind() as u8;
                let name = format!("key{kinds}").into_bytes();
                let entry = Entry { db, name, meta: meta(&mut prng), value };
                put(&mut writer, &entry, SHAPES[kinds as usize % 3], Way::Whole);
            }
        }
    }
    writer.end();
    writer.take(Vec::new())
}

use rdb::Source;

#[test]
fn a_file_cut_anywhere_is_an_error_at_its_end() {
    let file = every_kind();
    let (content, _) = read(&file, usize::MAX, ALL).expect("it is whole");
    assert!(content.entries.len() > 10 && content.sizes.len() == 2);
    for cut in 0..file.len() {
        for length in [None, Some(cut as u64)] {
            let error = read(&file[..cut], 64, ScanOptions { length, ..ALL }).expect_err("cut");
            assert!(matches!(error.fault, Fault::Ends | Fault::Beyond), "{cut}: {error}");
            assert!(error.offset <= cut as u64, "{cut}: {error}");
        }
    }
}

#[test]
fn a_file_with_any_damaged_byte_is_an_error() {
    let file = every_kind();
    for at in 0..file.len() {
        for change in [1u8, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            for length in [None, Some(file.len() as u64)] {
                let options = ScanOptions { length, ..ALL };
                match read(&damaged, 1000, options) {
                    Err(error) => assert!(error.offset <= file.len() as u64, "{at}: {error}"),
                    // A version without a checksum.
                    Ok((_, summary)) => assert!(at < 9 && summary.version < 5, "{at}: it is read"),
                }
                // Without the checksum it may be read, but as no more than it has.
                let unchecked = ScanOptions { verify: false, skip_unknown: true, ..options };
                if let Ok((content, summary)) = read(&damaged, 1000, unchecked) {
                    assert!(summary.bytes <= file.len() as u64);
                    assert!(content.entries.len() < 80);
                }
            }
        }
    }
}

/// Head, items, end and checksum of a file of any version.
fn raw(head: &str, items: &[&[u8]]) -> Vec<u8> {
    let mut file = [head.as_bytes(), &items.concat(), b"\xff"].concat();
    if head > "REDIS0004" {
        let sum = crc64(0, &file);
        file.extend_from_slice(&sum.to_le_bytes());
    }
    file
}

fn read_raw(head: &str, items: &[&[u8]]) -> Result<Content, FileError> {
    let file = raw(head, items);
    let known = ScanOptions { length: Some(file.len() as u64), ..ALL };
    let content = read(&file, usize::MAX, known).map(|(content, _)| content);
    let in_bytes = read(&file, 1, ALL).map(|(content, _)| content);
    match (&content, &in_bytes) {
        (Ok(a), Ok(b)) => assert_eq!(Content { held: b.held, ..a.clone() }, *b, "byte by byte"),
        (Err(a), Err(b)) => assert_eq!((a.offset, &a.key), (b.offset, &b.key), "{a}; {b}"),
        _ => panic!("{content:?} {in_bytes:?}"),
    }
    content
}

/// -1 says that a key does not expire. Redis 7.0 keeps such a key, and drops those with -2 or 0.
#[test]
fn an_expiry_of_minus_one_is_none() {
    let key = |code: u8, at: &[u8], name: u8| [&[code], at, &[0, 1, name, 1, b'v']].concat();
    let millis = |at: i64, name| key(0xfc, &at.to_le_bytes(), name);
    let seconds = key(0xfd, &(-1_i32).to_le_bytes(), b'd');
    let items = [millis(-1, b'a'), millis(-2, b'b'), millis(0, b'c'), seconds];
    let content = read_raw("REDIS0010", &[&items.concat()]).expect("it is whole");
    let times: Vec<_> = content.entries.iter().map(|e| e.meta.expiry).collect();
    assert_eq!(times, [None, Some(UnixMs(-2)), Some(UnixMs(0)), Some(UnixMs(-1000))]);
}

/// A server refuses a database which it does not have, also one without a key.
#[test]
fn selecting_a_database_beyond_the_last_is_an_error() {
    let file = raw("REDIS0010", &[b"\0\x01a\x01b\xfe\x0f\xfe\x10\xfe\0\0\x01c\x01d"]);
    let databases = |count| ScanOptions { databases: Some(count), ..ALL };
    for block in [1, usize::MAX] {
        let error = read(&file, block, databases(16)).expect_err("database 16");
        assert_eq!((error.offset, error.db, error.fault), (18, Some(16), Fault::Databases(16)));
        assert!(read(&file, block, databases(17)).is_ok());
    }
}

/// For each chunk of keys the database of its first key, and how many keys were announced for it.
fn announced(file: &[u8], length: Option<u64>) -> Vec<(u32, u64)> {
    let mut scanner = Scanner::new(ScanOptions { length, ..ALL });
    scanner.feed(file);
    let mut announced = Vec::new();
    loop {
        match scanner.next().expect("it is whole") {
            Scanned::Chunk(Chunk::Keys(keys)) => {
                let db = keys.iter().next().expect("a key").expect("it is whole").db;
                assert_eq!(keys.announced(db + 1), 0);
                announced.push((db, keys.announced(db)));
            }
            Scanned::Chunk(_) => {}
            Scanned::More => panic!("all of it was fed"),
            Scanned::Complete(_) => return announced,
        }
    }
}

/// 2^64 - 1 keys are announced for the database.
const TOO_MANY: &[u8] = b"\xfb\x81\xff\xff\xff\xff\xff\xff\xff\xff\0";

/// The announced number of keys is given for its database alone, and not believed beyond what the
/// rest of the file can hold.
#[test]
fn announced_keys_come_with_the_keys() {
    let head: &[u8] = b"\xfe\0\xfb\x02\0\0\x01a\x01b\xfe\x01";
    let rest = b"\0\x01a\x01b".repeat(20);
    let file = raw("REDIS0010", &[head, TOO_MANY, &rest]);
    let length = Some(file.len() as u64);
    let left = file.len() - 9 - head.len() - TOO_MANY.len();
    assert_eq!(announced(&file, length), [(0, 2), (1, left as u64 / 8)]);
    assert_eq!(announced(&file, None), [(0, 0), (1, 0)]);
}

/// Each of many databases was believed to have as many keys as the whole file can hold.
#[test]
fn all_databases_together_have_no_more_keys_than_the_file_can_hold() {
    for dbs in [vec![0; 500], (0..500_u32).collect::<Vec<_>>()] {
        let of =
            |db: &u32| [&[0xfe, 0x80][..], &db.to_be_bytes(), TOO_MANY, b"\0\x01a\x01b"].concat();
        let file = raw("REDIS0010", &[&dbs.iter().flat_map(of).collect::<Vec<_>>()]);
        let announced = announced(&file, Some(file.len() as u64));
        assert_eq!(announced.len(), dbs.len());
        let all: u64 = announced.iter().map(|(_, keys)| keys).sum();
        assert!(all > 0 && all <= file.len() as u64 / 8, "{all} keys in {} bytes", file.len());
    }
}

/// Version 10 has no active times: the consumer seems active when it was last seen.
#[test]
fn active_times_of_consumers_are_kept_from_version_11_on() {
    let mut stream = value::Stream::new();
    let mut group = value::stream::Group::new(value::StreamId::MIN, Some(0));
    group.add_consumer(b"never", 1_700_000_000_000, -1);
    group.add_consumer(b"once", 1_700_000_000_000, 1_600_000_000_000);
    assert!(stream.add_group(b"g", group));
    let entry =
        Entry { db: 0, name: b"s".to_vec(), meta: Meta::default(), value: Owned::Stream(stream) };
    for (version, times) in [
        (10, [1_700_000_000_000, 1_700_000_000_000]),
        (11, [-1, 1_600_000_000_000]),
        (12, [-1, 1_600_000_000_000]),
        (80, [-1, 1_600_000_000_000]),
    ] {
        for way in [Way::Whole, Way::Steps] {
            let file = file(options(version), std::slice::from_ref(&entry), Shape::Plain, way);
            let (content, _) = read(&file, usize::MAX, ALL).expect("it is whole");
            let Owned::Stream(stream) = &content.entries[0].value else { panic!("a stream") };
            let consumers = stream.group(0).consumers();
            let active: Vec<i64> = consumers.map(|(_, consumer)| consumer.active_ms).collect();
            assert_eq!(active, times, "version {version}");
        }
    }
}

#[test]
fn opcodes_of_all_versions_are_read() {
    let seconds = 1_500_000_000i32.to_le_bytes();
    let content = read_raw("REDIS0001", &[b"\xfe\0\xfd", &seconds, b"\0\x01k\x01v"]);
    let [Entry { db: 0, meta, .. }] = &content.expect("version 1").entries[..] else {
        panic!("one key")
    };
    assert_eq!(meta.expiry, Some(UnixMs(1_500_000_000_000)));
    let millis = 1_500_000_000_123i64.to_le_bytes();
    let content = read_raw(
        "REDIS0009",
        &[
            b"\xfa\x01a\xc0\x07\xfa\x02ab\x01x",
            b"\0\x01a\xc0\x05", // before any database is selected
            b"\xfe\x41\x2c\xfb\x02\x01\xfc",
            &millis,
            b"\xf8\x40\x64\x03\x01z\x02\x01a\x031.5\x01b\xfe", // a sorted set with texts
            b"\xf9\x07\x01\x01l\x01\x01e",
        ],
    );
    let content = content.expect("version 9");
    assert_eq!(content.aux, [(b"a".to_vec(), b"7".to_vec()), (b"ab".to_vec(), b"x".to_vec())]);
    assert_eq!(content.sizes, [(300, 2, 1)]);
    let places: Vec<_> = content.entries.iter().map(|e| (e.db, &e.name[..], e.meta)).collect();
    let none = Meta::default();
    let zset = Meta { expiry: Some(UnixMs(1_500_000_000_123)), idle_seconds: Some(100), ..none };
    let list = Meta { frequency: Some(7), ..none };
    assert_eq!(places, [(0, &b"a"[..], none), (300, b"z", zset), (300, b"l", list)]);
    let scores = Owned::Zset(vec![(b"a".to_vec(), 1.5), (b"b".to_vec(), f64::INFINITY)]);
    assert_eq!(content.entries[1].value, scores);
    // Slots: an opcode, and an aux field between the keys; slots being imported.
    let slots: [&[u8]; 4] = [
        b"\xfe\0\xf4\x01\x02\0\0\x01a\x01b",
        b"\xfa\x09slot-info\x0512,1,\0\x01c\x01d",
        b"\xf5\x04code",
        b"\0\x01e\x01f",
    ];
    let content = read_raw("REDIS0012", &slots).expect("version 12");
    assert_eq!((content.entries.len(), content.aux.len()), (3, 0));
    assert_eq!(content.functions, [b"code".to_vec()]);
    let import = b"\xf3\x03job\x02\x01\x02\x40\x64\x40\xc8\0\x01a\x01b";
    assert_eq!(read_raw("VALKEY080", &[import]).expect("80").entries.len(), 1);
    assert_eq!(read_raw("REDIS0012", &[import]).expect_err("other").fault, Fault::Opcode(243));
}

#[test]
fn the_types_of_both_dialects_are_read() {
    let at = 1_800_000_000_000i64.to_le_bytes();
    let valkey = read_raw("VALKEY080", &[b"\x16\x01h\x01\x01f\x01v", &at]).expect("80");
    let field =
        |expires| Owned::Hash(vec![Field { name: b"f".to_vec(), value: b"v".to_vec(), expires }]);
    assert_eq!(valkey.entries[0].value, field(Some(UnixMs(1_800_000_000_000))));
    let redis = read_raw("REDIS0012", &[b"\x16\x01h\x01\0\x01f\x01v"]).expect("12");
    assert_eq!(redis.entries[0].value, field(None));
    let redis = read_raw("REDIS0012", &[b"\x18\x01h", &at, b"\x01\x01\x01f\x01v"]).expect("12");
    assert_eq!(redis.entries[0].value, field(Some(UnixMs(1_800_000_000_000))));
}

#[test]
fn what_is_not_a_file_of_a_known_version_is_refused() {
    for (head, fault) in [
        (&b"REDIS0013"[..], Fault::Version("0013".into())),
        (b"REDIS0000", Fault::Version("0000".into())),
        (b"REDIS0080", Fault::Version("0080".into())),
        (b"REDIS+012", Fault::Version("+012".into())),
        (b"VALKEY081", Fault::Version("081".into())),
        (b"VALKEY011", Fault::Version("011".into())),
        (b"appendonl", Fault::Magic),
        (b"RED", Fault::Ends),
        (b"rdb", Fault::Magic),
        (b"", Fault::Ends),
    ] {
        let error = read(head, 2, ALL).expect_err("no file");
        assert_eq!((error.offset, error.fault), (0, fault), "{}", head.escape_ascii());
    }
}

/// The number of a module's type with this name and version 1.
fn module(name: &[u8; 9]) -> [u8; 9] {
    let six = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'-' => 62,
        _ => 63,
    };
    let id = name.iter().fold(0u64, |id, &c| id << 6 | u64::from(six(c))) << 10 | 1;
    let mut length = [0x81; 9];
    length[1..].copy_from_slice(&id.to_be_bytes());
    length
}

#[test]
fn unknown_modules_are_an_error_or_left_out() {
    let id = module(b"ReJSON-RL");
    // An integer, an unsigned one, a float, a double, a string, and the end.
    let values = b"\x01\x05\x02\x40\xff\x03ffff\x04dddddddd\x05\x03abc\0";
    let value = [&b"\x07\x01j"[..], &id, values].concat();
    let aux = [&b"\xf7"[..], &id, b"\x02\x01", values].concat();
    let (before, behind) = (&b"\xfe\x02\0\x01a\x01b"[..], &b"\0\x01c\x01d"[..]);
    let error = read_raw("REDIS0009", &[before, &value, behind]).expect_err("a module");
    assert_eq!(
        error.to_string(),
        "at byte 19, database 2, key 'j', type 7: \
        it belongs to the module type 'ReJSON-RL'"
    );
    let error = read_raw("REDIS0009", &[&aux, behind]).expect_err("a module");
    assert_eq!((error.key, error.fault), (None, Fault::Module("ReJSON-RL".into())));
    let skipping = ScanOptions { skip_unknown: true, ..ALL };
    let file = raw("REDIS0009", &[before, &aux, &value, behind, &value]);
    for block in [1, 7, usize::MAX] {
        let (content, summary) = read(&file, block, skipping).expect("both are left out");
        let names: Vec<_> = content.entries.iter().map(|e| (e.db, &e.name[..])).collect();
        assert_eq!(names, [(2, &b"a"[..]), (2, b"c")]);
        assert_eq!((summary.keys, summary.skipped_keys, summary.skipped_aux), (2, 2, 1));
    }
    // Nobody knows where these end.
    let older = [&b"\x06\x01j"[..], &id, b"\x05"].concat();
    for (value, fault) in [
        (&older[..], Fault::Module("ReJSON-RL".into())),
        (b"\x1c\x01j\x05", Fault::UnknownType(28)),
        (b"\x08\x01j\x05", Fault::UnknownType(8)),
    ] {
        let error = read(&raw("REDIS0012", &[before, value]), 3, skipping).expect_err("unknown");
        let expected = (Some(2), Some(b"j".to_vec()), Some(value[0]), fault);
        assert_eq!((error.db, error.key, error.id, error.fault), expected);
    }
    let pre = read(&raw("REDIS0010", &[b"\xf6\x01f\x01l"]), 3, skipping).expect_err("unknown");
    assert_eq!((pre.offset, pre.fault), (9, Fault::Opcode(246)));
}

#[test]
fn errors_name_the_place_and_the_key() {
    let wrong =
        |items: &[&[u8]]| read_raw("REDIS0010", items).expect_err("it is wrong").to_string();
    assert_eq!(
        wrong(&[b"\xfe\x05\0\x01a\x01b\x0b\x03set\x01x"]),
        "at byte 21, database 5, key 'set', type 11: the bytes end inside the value"
    );
    assert_eq!(
        wrong(&[b"\x02\x01s\x02\x01a\x01a"]),
        "at byte 12, database 0, key 's', type 2: a member or field comes twice"
    );
    assert_eq!(wrong(&[b"\xf8\x05"]), "at byte 11: no key follows an expiry or idle time");
    assert_eq!(
        wrong(&[b"\xfe\x02\xf8\x05"]),
        "at byte 13, database 2: no key follows an expiry or idle time"
    );
    let mut file = every_kind();
    *file.last_mut().expect("a checksum") ^= 1;
    let error = read(&file, 50, ALL).expect_err("its checksum is wrong");
    assert!(matches!(error.fault, Fault::Checksum { .. }), "{error}");
    assert_eq!(error.offset, file.len() as u64 - 8);
}

/// Whole keys, among them aux fields and databases, need no more memory than two chunks.
#[test]
fn memory_does_not_grow_with_the_file() {
    let mut writer = FileWriter::new(options(10), Vec::new());
    writer.begin(&[]);
    let value = Owned::String(vec![b'v'; 64]);
    for at in 0..300_000u32 {
        writer.database(base::DbIndex(at % 5), None);
        let source = value.shaped(Shape::Plain);
        writer.value(&at.to_be_bytes(), &Meta::default(), &source).expect("any version has it");
    }
    writer.end();
    let keys = writer.take(Vec::new());
    let selected = raw("REDIS0010", &[&b"\xfe\x01".repeat(4 << 20)]);
    for file in [keys, selected] {
        let (content, _) = read(&file, 65_536, ALL).expect("a whole file");
        assert!(file.len() > 4 << 20 && content.held < 1 << 20, "{} held", content.held);
    }
}

/// A scanner keeps what is there, and not what is claimed.
#[test]
fn what_reaches_beyond_the_file_is_an_error_at_once() {
    let huge = b"\x80\xff\xff\xff\xff";
    for items in [
        [&b"\0"[..], huge, b""],            // a key
        [b"\0\x01k", huge, b""],            // a string
        [b"\x01\x01k", huge, b"\x01a"],     // a list
        [b"\x01\x01k\x02", huge, b"\x01a"], // an element
        [b"\x10\x01k", huge, b"abc"],       // a listpack
        [b"\xfa", huge, b"abc"],            // an aux field
        [b"\xf5", huge, b"abc"],            // functions
        [b"\0\x01k\xc3", huge, huge],       // a compressed string
    ] {
        let file = [&b"REDIS0010"[..], &items.concat(), &[0; 3000]].concat();
        let length = Some(file.len() as u64 + 100);
        let mut scanner = Scanner::new(ScanOptions { length, ..ALL });
        scanner.feed(&file[..40]);
        let error = loop {
            match scanner.next() {
                Ok(Scanned::More) => panic!("{}: it waits", items.concat().escape_ascii()),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        let beyond = matches!(error.fault, Fault::Beyond | Fault::Value(Error::Corrupt));
        assert!(beyond && error.offset < 40, "{error}");
    }
}

#[test]
fn a_version_that_cannot_hold_a_value_refuses_it() {
    let field = Field { name: b"f".to_vec(), value: b"v".to_vec(), expires: Some(UnixMs(9)) };
    let hash = Owned::Hash(vec![field]);
    for (version, needs) in [(10, Some(12)), (11, Some(12)), (12, None), (80, None)] {
        let mut writer = FileWriter::new(options(version), Vec::new());
        let source = hash.shaped(Shape::Plain);
        let meta = Meta { expiry: Some(UnixMs(5)), ..Meta::default() };
        let error = writer.value(b"h", &meta, &source).err();
        assert_eq!(error.map(|error| error.needs), needs);
        assert_eq!(writer.is_empty(), needs.is_some(), "nothing is written");
        let error = writer.begin_long(b"h", &meta, &source).err();
        assert_eq!(error.map(|error| error.needs), needs);
    }
}
