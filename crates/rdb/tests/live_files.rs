//! Files of a real redis-server, if there is one on PATH, and ours: what it saves is read, key by
//! key as its DUMP says, and what we write it loads.
//!
//! `SHEAFDB_LIVE_SERVER` names another server. Without one the tests pass with a note, unless `CI`
//! is set: then they fail.

use std::path::PathBuf;

use crate::support::files::{ALL, Entry, Way, put, read};
use crate::support::live::{Answer, Live};
use crate::support::{sorted, value};
use base::UnixMs;
use base::prng::Prng;
use rdb::file::{Checked, FileOptions, FileWriter, Meta};
use rdb::{Owned, Saver, Shape};

const SHAPES: [Shape; 3] = [Shape::Packed, Shape::Intset, Shape::Plain];
const LIBRARY: &[u8] = b"#!lua name=lib\nredis.register_function('f', function() return 1 end)";

/// The file that the server saves and loads.
fn dump_file(live: &mut Live) -> PathBuf {
    let folder = live.done(&[b"CONFIG", b"GET", b"dir"]).all().pop().expect("name and value");
    PathBuf::from(String::from_utf8(folder).expect("a plain name")).join("dump.rdb")
}

fn select(live: &mut Live, db: u32) {
    live.done(&[b"SELECT", db.to_string().as_bytes()]);
}

fn random(prng: &mut Prng, at: usize) -> Entry {
    let expiry = prng.chance(1, 3).then_some(UnixMs(4_000_000_000_000 + at as i64));
    Entry {
        db: prng.below(2) as u32 * 3,
        name: [crate::support::text(prng, 60), at.to_string().into_bytes()].concat(),
        meta: Meta { expiry, ..Meta::default() },
        value: value(prng, false),
    }
}

/// The value of a key as its DUMP says.
fn dumped(live: &mut Live, name: &[u8]) -> Owned {
    let payload = live.done(&[b"DUMP", name]).bytes();
    sorted(Owned::restore(&payload).expect("its own payload"))
}

#[test]
fn files_of_redis_are_read() {
    let Some(mut live) = Live::start() else { return };
    let file = dump_file(&mut live);
    let mut prng = Prng::new(70);
    let mut saver = Saver::default();
    live.done(&[b"FUNCTION", b"LOAD", LIBRARY]);
    for round in 0..12 {
        live.done(&[b"FLUSHALL"]);
        let policy = ["noeviction", "allkeys-lru", "allkeys-lfu"][round % 3];
        live.set("maxmemory-policy", policy);
        live.set("rdbcompression", ["yes", "no"][round % 2]);
        for kind in ["hash", "zset"] {
            let most = ["0", "128", "100000"][prng.below(3) as usize];
            live.set(&format!("{kind}-max-listpack-entries"), most);
        }
        let mut entries: Vec<Entry> = (0..80).map(|at| random(&mut prng, at)).collect();
        // One that comes in parts.
        let words = (0..90_000).map(|at: u32| format!("{at}:{}", at * 7).into_bytes());
        entries.push(Entry { value: Owned::Set(words.collect()), ..random(&mut prng, 80) });
        for entry in &entries {
            select(&mut live, entry.db);
            let payload = saver.dump(&entry.value.shaped(SHAPES[round % 3]));
            live.done(&[b"RESTORE", &entry.name, b"0", &payload]);
            if let Some(at) = entry.meta.expiry {
                live.done(&[b"PEXPIREAT", &entry.name, at.0.to_string().as_bytes()]);
            }
        }
        live.done(&[b"SAVE"]);
        let bytes = std::fs::read(&file).expect("it was saved");
        let (content, summary) = read(&bytes, 70_000, ALL).expect("a file of the server");
        assert_eq!((summary.checked, summary.bytes), (Checked::Right, bytes.len() as u64));
        assert_eq!(content.entries.len(), entries.len(), "round {round}");
        assert!(content.long > 0 && content.parts > 2, "{} in parts", content.long);
        assert_eq!(content.functions, [LIBRARY]);
        assert!(content.aux.iter().any(|(name, _)| name.ends_with(b"-ver")));
        for db in [0, 3] {
            let all = entries.iter().filter(|entry| entry.db == db);
            let expiring = all.clone().filter(|entry| entry.meta.expiry.is_some()).count();
            assert!(content.sizes.contains(&(db, all.count() as u64, expiring as u64)));
        }
        for entry in content.entries {
            let made = entries.iter().find(|made| made.name == entry.name).expect("a key of it");
            assert_eq!((entry.db, entry.meta.expiry), (made.db, made.meta.expiry));
            let says = (entry.meta.idle_seconds.is_some(), entry.meta.frequency.is_some());
            assert_eq!(says, (round % 3 == 1, round % 3 == 2), "{policy}");
            select(&mut live, entry.db);
            assert!(sorted(entry.value) == dumped(&mut live, &entry.name), "round {round}");
        }
    }
}

#[test]
fn redis_loads_our_files() {
    let Some(mut live) = Live::start() else { return };
    let file = dump_file(&mut live);
    let mut prng = Prng::new(71);
    for round in 0..12 {
        let options =
            FileOptions { compress: round % 2 == 0, checksum: round % 4 > 0, version: 10 };
        let mut entries: Vec<Entry> = (0..80).map(|at| random(&mut prng, at)).collect();
        let mut writer = FileWriter::new(options, Vec::new());
        writer.begin(&[("redis-ver", b"7.0.0"), ("redis-bits", b"64"), ("ctime", b"1700000000")]);
        writer.function(LIBRARY);
        writer.database(base::DbIndex(3), Some((40, 9)));
        if round % 3 == 0 {
            let text = vec![b'x'; 3 << 20];
            entries.push(Entry { value: Owned::String(text), ..random(&mut prng, 80) });
            let words = (0..90_000).map(|at: u32| format!("{at}:{}", at * 7).into_bytes());
            entries.push(Entry { value: Owned::List(words.collect()), ..random(&mut prng, 81) });
        }
        for (at, entry) in entries.iter_mut().enumerate() {
            if round % 3 == 1 {
                entry.meta.frequency = Some(at as u8);
            } else if round % 3 == 2 {
                entry.meta.idle_seconds = Some(1000);
            }
            let way = [Way::Whole, Way::Steps][at % 2];
            put(&mut writer, entry, SHAPES[at % 3], way);
        }
        writer.end();
        std::fs::write(&file, writer.take(Vec::new())).expect("its folder can be written");
        live.set("maxmemory-policy", ["noeviction", "allkeys-lfu", "allkeys-lru"][round % 3]);
        live.done(&[b"DEBUG", b"RELOAD", b"NOSAVE"]);
        for db in [0, 3] {
            select(&mut live, db);
            let all: Vec<&Entry> = entries.iter().filter(|entry| entry.db == db).collect();
            assert_eq!(live.done(&[b"DBSIZE"]), Answer::Integer(all.len() as i64));
            for entry in all {
                let value = sorted(entry.value.clone());
                assert!(dumped(&mut live, &entry.name) == value, "round {round}");
                let at = entry.meta.expiry.map_or(-1, |at| at.0);
                assert_eq!(live.done(&[b"PEXPIRETIME", &entry.name]), Answer::Integer(at));
                if round % 3 == 2 {
                    let idle = live.done(&[b"OBJECT", b"IDLETIME", &entry.name]);
                    assert!(matches!(idle, Answer::Integer(0..1100)), "{idle:?}");
                }
            }
        }
        let Answer::Array(libraries) = live.done(&[b"FUNCTION", b"LIST"]) else {
            panic!("a list of libraries")
        };
        assert_eq!(libraries.len(), 1);
    }
}
