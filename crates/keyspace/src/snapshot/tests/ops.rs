//! Random operations on keys of all kinds, for the test of snapshots.

use crate::{Event, Guard};
use base::prng::Prng;
use base::{DbIndex, UnixMs};
use value::{Big, Encoding, Hash, Kind, List, Log, NewStr, encode};

/// Keys of the pool: the first half shares a slot.
pub(super) const POOL: u64 = 40;

const QUIET: Event = Event::SILENT;

/// The name of a key of the pool, or of a further key in the shared slot.
pub(super) fn pool(n: u64) -> Vec<u8> {
    match n {
        n if !(POOL / 2..POOL).contains(&n) => format!("{{tag}}:{n}").into_bytes(),
        n if n % 5 == 0 => [format!("long{n}").into_bytes(), vec![b'l'; 300]].concat(),
        n => format!("k{n}").into_bytes(),
    }
}

fn list(elements: u64) -> Big {
    let (mut list, mut log) = (List::new(), Log::default());
    (0..elements).for_each(|n| list.push_back(n.to_string().as_bytes(), &mut log));
    Big::List(list)
}

fn hash(random: &mut Prng, now: UnixMs) -> Big {
    let (mut hash, mut log) = (Hash::new(), Log::default());
    for n in 0..=random.below(30) {
        let field = n.to_string();
        hash.set(field.as_bytes(), b"v", &mut log);
        let at = random.chance(1, 3).then(|| now.0 + 1 + random.below(60) as i64);
        hash.set_expiry(field.as_bytes(), at, &mut log);
    }
    Big::Hash(hash)
}

fn text(random: &mut Prng) -> Vec<u8> {
    let len = match random.below(12) {
        0 => 1000 + random.below(400),
        1 => 2000 + random.below(14_000),
        2 => 16_000 + random.below(9_000),
        3 if random.chance(1, 9) => (1 << 20) + random.below(1 << 18),
        4 | 5 => return random.below(1 << 40).to_string().into_bytes(),
        _ => random.below(70),
    };
    vec![b'a' + random.below(26) as u8; len as usize]
}

/// One operation on keys of the pool; under World also on whole databases.
pub(super) fn op(guard: &mut Guard<'_>, random: &mut Prng, now: UnixMs) {
    let ks = guard.keyspace();
    let (name, other) = (pool(random.below(POOL)), pool(random.below(POOL)));
    let (key, other) = (ks.key(&name), ks.key(&other));
    let databases = u64::from(super::DATABASES);
    let (db, to) = (random.below(databases), random.below(databases));
    let (db, to) = (DbIndex::new(db as u16), DbIndex::new(to as u16));
    let due = random.chance(1, 3).then(|| UnixMs(now.0 + 1 + random.below(60) as i64));
    match random.below(22) {
        0..4 => guard.insert(QUIET, db, &key, encode(&text(random)), due),
        4 | 5 => _ = guard.remove(QUIET, db, &key),
        6 => {
            let bytes = vec![7; random.below(90) as usize];
            guard.insert_packed(QUIET, db, &key, Kind::List, Encoding::Listpack, &bytes, due);
        }
        7 => {
            let big = list(1 + random.below(200));
            guard.insert_big(QUIET, db, &key, Encoding::Quicklist, big, due);
        }
        8 | 9 => {
            let big = hash(random, now);
            guard.insert_big(QUIET, db, &key, Encoding::Hashtable, big, due);
        }
        10 => _ = guard.move_entry([QUIET; 2], db, &key, to, &other),
        11 => _ = guard.copy_entry(QUIET, db, &key, to, &other),
        12 => _ = guard.read(db, &key),
        13 => many(guard, random, db),
        14 if guard.is_world() => {
            if random.chance(1, 3) {
                guard.flush_all();
            } else {
                guard.flush_db(db);
            }
        }
        14 | 15 if guard.is_world() => guard.swap_db(db, to),
        _ => change(guard, random, db, &name, due),
    }
}

/// Adds or removes many keys of the shared slot, so that its table grows or shrinks.
fn many(guard: &mut Guard<'_>, random: &mut Prng, db: DbIndex) {
    let (from, adds) = (POOL + random.below(100), random.chance(1, 2));
    for n in from..from + random.below(300) {
        let name = pool(n);
        let key = guard.keyspace().key(&name);
        if adds {
            guard.insert(QUIET, db, &key, NewStr::Int(n as i64), None);
        } else {
            guard.remove(QUIET, db, &key);
        }
    }
}

/// Changes a key that exists.
fn change(guard: &mut Guard<'_>, random: &mut Prng, db: DbIndex, name: &[u8], due: Option<UnixMs>) {
    let key = guard.keyspace().key(name);
    let Some(mut entry) = guard.entry_mut(QUIET, db, &key) else { return };
    let what = random.below(8);
    if what == 0 {
        return entry.remove();
    }
    if what < 3 {
        return entry.set_expiry(due);
    }
    if entry.kind() == Kind::String {
        let len = entry.entry().str_len() as u64;
        match what {
            3 => entry.set_int(random.below(1 << 50) as i64),
            4 => entry.set_str(NewStr::Raw(&text(random)), random.chance(1, 2)),
            5 => entry.make_raw(),
            6 => _ = entry.append(&text(random)),
            _ => _ = entry.write_at(random.below(len + 40) as usize, b"written"),
        }
    } else if entry.entry().packed().is_some() {
        let bytes = vec![9; random.below(90) as usize];
        match what {
            3 => entry.set_big(Encoding::Quicklist, list(40)),
            4 if entry.entry().encoding() == Encoding::Listpack => {
                entry.set_encoding(Encoding::Quicklist);
            }
            4 => entry.set_encoding(Encoding::Listpack),
            _ => entry.set_packed(Encoding::Listpack, &bytes),
        }
    } else if what == 3 {
        entry.count_as_changed();
    } else {
        let rounds = random.below(9);
        entry.edit(|big, log| (0..rounds).for_each(|_| edit(big, random, log)));
    }
}

fn edit(big: &mut Big, random: &mut Prng, log: &mut Log) {
    match big {
        Big::List(list) if list.is_empty() || random.chance(1, 2) => list.push_back(b"new", log),
        Big::List(list) => list.remove(random.below(list.len()), log, |_| ()),
        Big::Hash(hash) => {
            let field = random.below(40).to_string();
            if random.chance(1, 3) {
                hash.remove(field.as_bytes(), log);
            } else {
                hash.set(field.as_bytes(), b"changed", log);
            }
        }
        _ => {}
    }
}
