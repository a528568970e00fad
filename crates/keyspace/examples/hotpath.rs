//! The hot path alone, for instruction counts: `hotpath get|set|del|insert|key|prefetch COUNT
//! [WORKERS]`. The difference between two counts is the cost of one operation;
//! `docs/design/0001-table.md` has the numbers.

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, Event, Intent, Key, Keyspace, Options};
use std::hint::black_box;
use value::{NewStr, Str};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_700_000_000_000);
/// Keys that are there before anything is counted: six to a slot.
const KEYS: usize = 100_000;

#[inline(always)]
fn each(keys: &[Key<'_>], mut f: impl FnMut(&Key<'_>)) {
    for key in keys {
        f(black_box(key));
    }
}

#[inline(never)]
fn get(access: &mut Access, key: &Key<'_>) {
    let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
    if let Some(entry) = guard.read(DB, key)
        && let Str::Bytes(bytes) = entry.str()
    {
        black_box(bytes.len());
    }
    guard.commit();
}

#[inline(never)]
fn set(access: &mut Access, key: &Key<'_>, value: &[u8]) {
    let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
    guard.insert(Event::SILENT, DB, key, NewStr::Raw(value), None);
    guard.commit();
}

#[inline(never)]
fn del(access: &mut Access, key: &Key<'_>) {
    let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
    guard.remove(Event::SILENT, DB, key);
    guard.commit();
}

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().expect("an operation");
    let count: usize = args.next().expect("a count").parse().expect("a number");
    let workers = args.next().map_or(2, |n| n.parse().expect("a number of workers"));
    let ks = Arc::new(Keyspace::new(&Options { databases: 16, hash_secret: 1, workers }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    let names: Vec<String> = (0..KEYS).map(|n| format!("key:{n:012}")).collect();
    for name in &names {
        let key = ks.key(name.as_bytes());
        let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
        guard.insert(Event::SILENT, DB, &key, NewStr::Raw(&[b'v'; 64]), None);
        guard.commit();
    }
    let names = if what == "insert" {
        (0..100_000).map(|n| format!("new:{n:012}")).collect()
    } else {
        names
    };
    assert!(count <= names.len());
    let keys: Vec<_> = names.iter().map(|name| ks.key(name.as_bytes())).collect();
    let keys = &keys[..count];
    match what.as_str() {
        "nothing" => each(keys, |_| {}),
        "key" => each(keys, |key| {
            black_box(ks.key(key.bytes));
        }),
        "prefetch" => each(keys, |key| {
            ks.prefetch_slot(key.slot);
            let guess = ks.prefetch_bucket(key.slot, key.hash, DB);
            ks.prefetch_entry(guess);
        }),
        "get" => each(keys, |key| get(&mut access, key)),
        "set" | "insert" => each(keys, |key| set(&mut access, key, black_box(&[b'w'; 64]))),
        "del" => each(keys, |key| del(&mut access, key)),
        other => panic!("unknown operation {other}"),
    }
    access.leave();
    std::process::exit(0);
}
