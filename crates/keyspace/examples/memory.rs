//! Resident bytes per key: `memory KEYS VALUE_BYTES`, 16-byte keys, entries from jemalloc.

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, Event, Intent, Key, Keyspace, Options};
use value::NewStr;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).expect("a second field");
    pages.parse::<usize>().expect("a number") * 4096
}

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("a number"));
    let keys = args.next().expect("number of keys");
    let value = vec![b'v'; args.next().expect("bytes of a value")];
    let before_all = resident();
    let ks = Arc::new(Keyspace::new(&Options { databases: 16, hash_secret: 1, workers: 1 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    let before = resident();
    println!("empty keyspace: {} KiB", (before - before_all) / 1024);
    let start = std::time::Instant::now();
    for n in 0..keys {
        let name = format!("key:{n:012}");
        let key = ks.key(name.as_bytes());
        let mut guard = access.lock_one(key.slot, UnixMs(0), Intent::Write).expect("free");
        guard.insert(Event::SILENT, DbIndex(0), &key, NewStr::Raw(&value), None);
        guard.commit();
    }
    let took = start.elapsed();
    let grown = resident() - before;
    let memory = ks.memory();
    println!(
        "{keys} keys of 16+{}: {:.2} bytes/key resident; entries {:.2}, buckets {:.2}; {:.0} ns/insert",
        value.len(),
        grown as f64 / keys as f64,
        memory.entries as f64 / keys as f64,
        memory.buckets as f64 / keys as f64,
        took.as_nanos() as f64 / keys as f64,
    );
    // Lookups in an order that no prefetcher guesses, in windows of 32 with the three prefetches.
    let mut state = 1_u64;
    let mut names = vec![[0_u8; 16]; 1 << 20];
    for name in &mut names {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let n = (state >> 33) as usize % keys;
        name.copy_from_slice(format!("key:{n:012}").as_bytes());
    }
    for prefetch in [false, true] {
        let start = std::time::Instant::now();
        let mut found = 0;
        for window in names.chunks(32) {
            let keys: Vec<_> = window.iter().map(|name| ks.key(name)).collect();
            if prefetch {
                for key in &keys {
                    ks.prefetch_slot(key.slot);
                }
                let ask = |key: &Key<'_>| ks.prefetch_bucket(key.slot, key.hash, DbIndex(0));
                let guesses: Vec<_> = keys.iter().map(ask).collect();
                for guess in guesses {
                    ks.prefetch_entry(guess);
                }
            }
            for key in &keys {
                let mut guard = access.lock_one(key.slot, UnixMs(0), Intent::Write).expect("free");
                found += guard.read(DbIndex(0), key).map_or(0, |e| e.str_len().min(1));
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / names.len() as f64;
        println!("lookups, prefetch {prefetch}: {ns:.0} ns each, {found} found");
    }
    std::process::exit(0);
}
