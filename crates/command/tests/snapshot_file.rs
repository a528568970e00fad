//! Files of snapshots beside writers: what is written of a long value is given up, which changes no
//! byte of the file, and what writers have copied of it counts no more.

use base::prng::Prng;
use base::sync::Arc;
use base::{Blob, DbIndex, UnixMs};
use command::save::{CommandFile, FileOptions, Recorded, SavedFile, SnapshotFile};
use keyspace::snapshot::{Snapshot, Step};
use keyspace::{Access, Encoding, Event, Guard, Intent, Key, Keyspace, Options};
use value::list::NewItem;
use value::{Big, Hash, List, Log, NewStr, Set, Zset};

const NOW: UnixMs = UnixMs(1_000_000);
const DB: DbIndex = DbIndex(0);
const PARTS: u64 = 60_000;
const TEXT: usize = 6 << 20;
/// Less than what the writers copy.
const BOUND: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Noise,
    Words,
    List,
    Set,
    Zset,
    Hash,
    HashThatExpires,
    HashThatHides,
}

const KINDS: [Kind; 8] = [
    Kind::Noise,
    Kind::Words,
    Kind::List,
    Kind::Set,
    Kind::Zset,
    Kind::Hash,
    Kind::HashThatExpires,
    Kind::HashThatHides,
];

fn name(n: u64) -> Vec<u8> {
    format!("part {n}, which is not short").into_bytes()
}

/// The text, which is compressed to more than is kept if it is words.
fn text(kind: Kind) -> Blob {
    let mut bytes = vec![0; TEXT];
    Prng::new(5).fill(&mut bytes);
    if kind == Kind::Words {
        bytes.iter_mut().enumerate().filter(|(at, _)| at % 40 > 12).for_each(|(_, byte)| *byte = 7);
    }
    Blob::from(&bytes[..])
}

fn collection(kind: Kind) -> Big {
    let (mut log, log_of_hash) = (Log::default(), &mut Log::default());
    match kind {
        Kind::List => {
            let mut list = List::new();
            (0..PARTS).for_each(|n| list.push_back(&name(n), &mut log));
            Big::List(list)
        }
        Kind::Set => {
            let mut set = Set::new();
            (0..PARTS).for_each(|n| _ = set.add(&name(n), &mut log));
            Big::Set(set)
        }
        Kind::Zset => {
            let mut zset = Zset::new();
            (0..PARTS).for_each(|n| _ = zset.set(&name(n), (n % 977) as f64, &mut log));
            Big::Zset(zset)
        }
        _ => {
            let mut hash = Hash::new();
            for n in 0..PARTS {
                hash.set(&name(n), b"value", log_of_hash);
                if kind != Kind::Hash && n % 3 == 0 {
                    hash.set_expiry(&name(n), Some(2_000_000 + n as i64), log_of_hash);
                }
            }
            if kind == Kind::HashThatHides {
                assert!(hash.hide(2_000_000 + PARTS as i64 / 2, log_of_hash) > 0);
            }
            Big::Hash(hash)
        }
    }
}

fn insert(guard: &mut Guard<'_>, key: &Key<'_>, kind: Kind) {
    let encoding = match kind {
        Kind::Noise | Kind::Words => {
            return guard.insert(Event::SILENT, DB, key, NewStr::Blob(text(kind)), None);
        }
        Kind::List => Encoding::Quicklist,
        Kind::Zset => Encoding::Skiplist,
        _ => Encoding::Hashtable,
    };
    guard.insert_big(Event::SILENT, DB, key, encoding, collection(kind), None);
}

/// Changes something at a random place. The value stays as long as it is.
fn change(guard: &mut Guard<'_>, key: &Key<'_>, kind: Kind, random: &mut Prng) {
    let mut entry = guard.entry_mut(Event::SILENT, DB, key).expect("it is there");
    if matches!(kind, Kind::Noise | Kind::Words) {
        let at = random.below(TEXT as u64 - 9) as usize;
        entry.write_at(at, b"written");
        return;
    }
    let n = random.below(PARTS);
    entry.edit(|big, log| match big {
        Big::List(list) => list.set(n, NewItem::Near(value::packed::Elem::Int(7)), log),
        Big::Set(set) => {
            set.remove(&name(n), log);
            set.add(&name(n), log);
        }
        Big::Zset(zset) => _ = zset.set(&name(n), 5.5, log),
        Big::Hash(hash) => _ = hash.set_keep(&name(n), b"other", log),
        Big::Stream(_) => unreachable!("none is here"),
    });
}

/// What a run shows.
#[derive(Default)]
struct Run {
    file: Vec<u8>,
    /// The bound was exceeded, and later, before the value was written, no more.
    exceeded: bool,
    relieved: bool,
    copied: u64,
}

fn save<F: SavedFile>(kind: Kind, changes: usize, begin: impl Fn(&Snapshot) -> F) -> Run {
    let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 3, workers: 2 }));
    let mut writer = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    let (key, random) = (ks.key(b"long"), &mut Prng::new(9));
    let mut with = |f: &mut dyn FnMut(&mut Guard<'_>)| {
        assert!(writer.enter());
        f(&mut writer.lock_one(key.slot, NOW, Intent::Write).expect("free"));
        writer.leave();
    };
    with(&mut |guard| insert(guard, &key, kind));
    cutter.try_world().expect("nobody is inside");
    let mut snapshot = cutter.cut(BOUND).expect("none runs");
    cutter.open_world();
    let mut file = begin(&snapshot);
    let mut walker = cutter.further().expect("there is room");
    let (mut run, mut copied) = (Run::default(), 0);
    loop {
        let step = snapshot.step(&mut walker, &mut file);
        while file.step() {
            let before = snapshot.captured_bytes();
            (0..changes).for_each(|_| with(&mut |guard| change(guard, &key, kind, random)));
            copied += snapshot.captured_bytes().saturating_sub(before);
            snapshot.release_copied(file.take_freed());
            let in_all = snapshot.progress().captured_bytes;
            assert!(snapshot.captured_bytes() <= in_all && copied <= in_all);
            run.exceeded |= ks.is_capture_over_bound();
            run.relieved |= run.exceeded && !ks.is_capture_over_bound();
            run.file.extend(file.take(Vec::new()));
        }
        if step == Step::Complete {
            break;
        }
    }
    file.end();
    run.file.extend(file.take(Vec::new()));
    run.copied = snapshot.progress().captured_bytes;
    assert_eq!((snapshot.captured_bytes(), ks.is_capture_over_bound()), (0, false));
    run
}

fn rdb(snapshot: &Snapshot) -> SnapshotFile {
    let options = FileOptions { compress: true, checksum: true, version: 80 };
    let (moment, none) = ((snapshot.databases(), NOW), [[]; 0]);
    SnapshotFile::begin(options, moment, Recorded::Nothing, &[], &none)
}

fn commands(_: &Snapshot) -> CommandFile {
    CommandFile::begin(None, &[[]; 0])
}

#[test]
fn a_file_beside_writers_is_that_of_the_cut() {
    are_equal(rdb, true);
}

#[test]
fn a_file_of_commands_beside_writers_is_that_of_the_cut() {
    are_equal(commands, false);
}

fn are_equal<F: SavedFile>(begin: impl Fn(&Snapshot) -> F, counts_first: bool) {
    for kind in KINDS {
        let (alone, beside) = (save(kind, 0, &begin), save(kind, 60, &begin));
        assert!(alone.copied < 1000, "{kind:?}: {}", alone.copied);
        assert!(beside.copied > BOUND, "{kind:?}: {}", beside.copied);
        assert!(alone.file == beside.file, "{kind:?}: the same bytes");
        // Nothing is given up while ranks say nothing about places.
        let gives_up = kind != Kind::HashThatHides;
        // (Commands of a collection give up parts from the first step on, before that is much.)
        assert!(beside.exceeded || !counts_first && gives_up, "{kind:?}");
        assert_eq!(beside.relieved, beside.exceeded && gives_up, "{kind:?}");
    }
}
