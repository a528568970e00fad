//! Bytes per key, as the keyspace counts them: a change which makes keys larger fails here.
#![cfg(not(shuttle))]

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, Event, Intent, Keyspace, Options};
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_700_000_000_000);

/// Bytes per key in spans and in tables, for `slots` slots with `each` keys of 16 bytes.
fn bytes_per_key(slots: usize, each: usize, value: usize) -> (f64, f64) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 7, workers: 1 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    let value = vec![b'v'; value];
    for n in 0..slots * each {
        let name = format!("{{{:05}}}:{:08}", n % slots, n / slots);
        assert_eq!(name.len(), 16);
        let key = ks.key(name.as_bytes());
        let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
        guard.insert(Event::SILENT, DB, &key, NewStr::Raw(&value), None);
        guard.commit();
    }
    let (memory, pages, keys) = (ks.memory(), ks.entry_pages(), (slots * each) as f64);
    assert_eq!(memory.places, memory.entries, "small values are all in spans");
    assert!(pages.active >= memory.places && pages.resident == pages.active);
    (pages.active as f64 / keys, memory.buckets as f64 / keys)
}

#[test]
fn bytes_per_key_are_bounded_at_ten_million_keys() {
    // 610 keys per slot, as with ten million keys.
    for (value, bound) in [(8, 45.7), (64, 101.9)] {
        let (spans, tables) = bytes_per_key(200, 610, value);
        println!("16+{value}: spans {spans:.2}, tables {tables:.2}");
        assert!(spans + tables <= bound, "{spans:.2} and {tables:.2} bytes per key");
    }
}

#[test]
fn tables_stay_small_at_any_size() {
    let mut sum = 0.0;
    let sizes: Vec<usize> = (1..=14).map(|i| i * 75).collect();
    for &each in &sizes {
        let (_, tables) = bytes_per_key(100, each, 8);
        println!("{each} keys to a slot: {tables:.2}");
        assert!(tables <= 21.0, "{each} keys to a slot: {tables:.2} bytes per key");
        sum += tables;
    }
    assert!(sum / sizes.len() as f64 <= 15.2, "{:.2} on average", sum / sizes.len() as f64);
}
