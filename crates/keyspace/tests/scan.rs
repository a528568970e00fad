//! SCAN's guarantee while the table grows and shrinks under it, and tables of unusual shapes.
#![cfg(not(shuttle))]

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, Event, Intent, Keyspace, Options};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(0);

struct Store {
    ks: Arc<Keyspace>,
    access: Access,
}

impl Store {
    fn new(seed: u64) -> Self {
        let ks = Arc::new(Keyspace::new(&Options {
            databases: 2,
            hash_secret: seed.into(),
            workers: 1,
        }));
        let mut access = Access::new(Arc::clone(&ks), 0);
        assert!(access.enter());
        Self { ks, access }
    }

    fn set(&mut self, name: &str) {
        let key = self.ks.key(name.as_bytes());
        let mut guard = self.access.lock_one(key.slot, NOW, Intent::Write).expect("free");
        guard.insert(Event::SILENT, DB, &key, NewStr::Raw(name.as_bytes()), None);
        guard.commit();
    }

    fn del(&mut self, name: &str) -> bool {
        let key = self.ks.key(name.as_bytes());
        self.access.lock_one(key.slot, NOW, Intent::Write).expect("free").remove(
            Event::SILENT,
            DB,
            &key,
        )
    }

    fn has(&mut self, name: &str) -> bool {
        let key = self.ks.key(name.as_bytes());
        let mut guard = self.access.lock_one(key.slot, NOW, Intent::Write).expect("free");
        guard.read(DB, &key).is_some_and(|e| e.str().to_vec() == name.as_bytes())
    }

    fn scan(&mut self, cursor: u64, count: u64, mut f: impl FnMut(&str)) -> u64 {
        let mut guard = self.access.free(NOW);
        let next = guard.scan(DB, cursor, count, |e| {
            f(std::str::from_utf8(e.key()).expect("the test's keys are text"));
        });
        next.expect("nobody else holds a slot")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Keys which exist throughout are all returned, however the table grows and shrinks between
    /// the calls.
    #[test]
    fn scan_returns_every_key_which_exists_throughout(
        seed: u64,
        one_slot: bool,
        stay in 1..800_usize,
        steps in proptest::collection::vec((0..4000_usize, 0..4000_usize), 1..60),
        count in 1..40_u64,
    ) {
        let mut store = Store::new(seed);
        let tag = if one_slot { "{t}" } else { "" };
        let staying: Vec<String> = (0..stay).map(|n| format!("{tag}stay{n}")).collect();
        for name in &staying {
            store.set(name);
        }
        let mut shown: BTreeMap<String, usize> = BTreeMap::new();
        let mut guests = BTreeSet::new();
        let mut cursor = 0;
        for turn in 0.. {
            cursor = store.scan(cursor, count, |name| {
                *shown.entry(name.to_owned()).or_default() += 1;
            });
            prop_assert!(cursor < 1 << 53);
            if cursor == 0 {
                break;
            }
            if let Some(&(add, remove)) = steps.get(turn) {
                for n in 0..add {
                    let name = format!("{tag}guest{n}");
                    store.set(&name);
                    guests.insert(name);
                }
                for _ in 0..remove {
                    let Some(name) = guests.pop_first() else { break };
                    prop_assert!(store.del(&name));
                }
            }
        }
        for name in &staying {
            prop_assert!(shown.contains_key(name), "{} was not shown", name);
        }
        prop_assert!(shown.keys().all(|name| name.contains("stay") || name.contains("guest")));
    }
}

/// If the table does not change, SCAN returns every key exactly once.
#[test]
fn scan_of_an_unchanged_table_returns_every_key_once() {
    let mut store = Store::new(5);
    for n in 0..5000 {
        store.set(&format!("k{n}"));
        store.set(&format!("{{t}}{n}"));
    }
    for count in [1, 10, 1000, u64::MAX] {
        let mut shown = BTreeMap::new();
        let (mut cursor, mut calls) = (0, 0);
        loop {
            cursor = store.scan(cursor, count, |name| {
                *shown.entry(name.to_owned()).or_insert(0) += 1;
            });
            calls += 1;
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(shown.len(), 10_000);
        assert!(shown.values().all(|&times| times == 1));
        assert_eq!(calls == 1, count == u64::MAX);
    }
}

/// Cursors which no SCAN returned: the walk does not panic, and it ends.
#[test]
fn scan_accepts_any_cursor() {
    let mut store = Store::new(5);
    for n in 0..1000 {
        store.set(&format!("k{n}"));
    }
    for cursor in [u64::MAX, 1 << 53, (1 << 53) - 1, 1, 12_345_678_901_234] {
        let mut at = cursor;
        for turn in 0.. {
            at = store.scan(at, 10, |_| {});
            if at == 0 {
                break;
            }
            assert!(turn < 10_000, "the walk from {cursor} ends");
        }
    }
}

/// 300,000 keys in one slot: 57,000 buckets, far pages and wide tags. Then all of them are deleted.
#[test]
fn one_slot_holds_300k_keys() {
    let mut store = Store::new(9);
    let n = 300_000;
    for i in 0..n {
        store.set(&format!("{{tag}}{i}"));
    }
    assert_eq!(store.ks.db_len(DB), n);
    assert!((0..n).step_by(7).all(|i| store.has(&format!("{{tag}}{i}"))));
    assert!((n..n + 1000).all(|i| !store.has(&format!("{{tag}}{i}"))));
    let per_key = store.ks.memory().buckets as f64 / n as f64;
    assert!(per_key < 16.0, "{per_key:.1} bytes of buckets per key");
    let mut shown = 0;
    let mut cursor = 0;
    loop {
        cursor = store.scan(cursor, 1000, |_| shown += 1);
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(shown, n);
    for i in (0..n).filter(|i| i % 1000 != 0) {
        assert!(store.del(&format!("{{tag}}{i}")));
    }
    assert!((0..n).step_by(1000).all(|i| store.has(&format!("{{tag}}{i}"))));
    assert!(!store.has("{tag}1"));
    let left = store.ks.memory().buckets;
    assert!(left < 300 * 64, "{left} bytes of buckets for 300 keys: the table has shrunk");
    for i in (0..n).step_by(1000) {
        assert!(store.del(&format!("{{tag}}{i}")));
    }
    assert_eq!(store.ks.db_len(DB), 0);
    assert_eq!(store.ks.memory().entries, 0);
    let left = store.ks.memory().buckets;
    assert!(left <= 128, "an emptied table keeps its first page: {left} bytes");
}

/// RANDOMKEY can return every key, and returns only existing keys.
#[test]
fn random_key_reaches_every_key() {
    let mut store = Store::new(5);
    assert_eq!(store.access.free(NOW).random_key(DB, || 1), Ok(None));
    for n in 0..30 {
        store.set(&format!("k{n}"));
        store.set(&format!("{{t}}{n}"));
    }
    let mut state = 1_u64;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut seen = BTreeSet::new();
    for _ in 0..5000 {
        let key = store.access.free(NOW).random_key(DB, &mut draw).expect("no long holder");
        seen.insert(key.expect("there are keys"));
    }
    assert_eq!(seen.len(), 60);
}
