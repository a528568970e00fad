//! How many reads of a skewed trace find their key in a full keyspace which evicts, beside caches
//! with an exact order. The clock is made up, so the figures are the same in every run.
#![cfg(not(shuttle))]

use std::collections::{BTreeMap, HashMap, HashSet};

use base::prng::Prng;
use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, Event, Eviction, Intent, Keyspace, Options, Order, Uses};
use value::NewStr;

const DB: DbIndex = DbIndex(0);
/// Entries which are kept: few of the slots have a key.
const ENTRIES: usize = 2_000;
/// Keys of the trace.
const KEYS: usize = 20_000;
/// Reads. The first quarter fills the cache and does not count.
const READS: usize = 80_000;
/// The default of `maxmemory-samples`.
const SAMPLES: usize = 5;

/// Draws keys by Zipf's law.
fn trace() -> Vec<usize> {
    let mut sum = 0.0;
    let weights = (1..=KEYS).map(|rank| {
        sum += (rank as f64).powf(-0.8);
        sum
    });
    let up_to: Vec<f64> = weights.collect();
    let mut prng = Prng::new(1);
    let mut draw = || {
        let part = (prng.draw() >> 11) as f64 / (1u64 << 53) as f64;
        up_to.partition_point(|up_to| *up_to <= part * sum).min(KEYS - 1)
    };
    (0..READS).map(|_| draw()).collect()
}

/// Per cent of hits behind the first quarter.
fn ratio(trace: &[usize], mut is_hit: impl FnMut(usize, usize) -> bool) -> f64 {
    let hits: Vec<bool> = trace.iter().enumerate().map(|(at, key)| is_hit(at, *key)).collect();
    let counted = &hits[hits.len() / 4..];
    100.0 * counted.iter().filter(|hit| **hit).count() as f64 / counted.len() as f64
}

fn exact_lru(trace: &[usize]) -> f64 {
    let (mut last, mut order) = (HashMap::new(), BTreeMap::new());
    ratio(trace, |at, key| {
        let before = last.insert(key, at);
        if let Some(before) = before {
            order.remove(&before);
        } else if order.len() == ENTRIES {
            let (_, victim) = order.pop_first().expect("it is full");
            last.remove(&victim);
        }
        order.insert(at, key);
        before.is_some()
    })
}

fn exact_random(trace: &[usize]) -> f64 {
    let (mut inside, mut order, mut prng) = (HashSet::new(), Vec::new(), Prng::new(2));
    ratio(trace, |_, key| {
        let is_hit = !inside.insert(key);
        if !is_hit {
            if order.len() == ENTRIES {
                let victim = order.swap_remove(prng.below(ENTRIES as u64) as usize);
                inside.remove(&victim);
            }
            order.push(key);
        }
        is_hit
    })
}

/// The same by the keyspace; the trace takes so many seconds.
fn evicting(trace: &[usize], order: Order, seconds: usize, decay_minutes: u32) -> f64 {
    let options = Options { databases: 1, hash_secret: 11, workers: 1 };
    let ks = Arc::new(Keyspace::new(&options));
    if order == Order::LeastFrequent {
        ks.set_uses(Uses::Counts { log_factor: 10, decay_minutes });
    }
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    let how = Eviction { db: None, order, is_volatile: false, samples: SAMPLES };
    ratio(trace, |at, key| {
        let now = UnixMs(1_700_000_000_000 + (at * seconds * 1_000 / trace.len()) as i64);
        let name = format!("key:{key}");
        let key = ks.key(name.as_bytes());
        let is_hit = {
            let mut guard = access.lock_one(key.slot, now, Intent::Read).expect("free");
            guard.read(DB, &key).is_some()
        };
        if !is_hit {
            if ks.db_len(DB) as usize == ENTRIES {
                assert_eq!(access.evict(how, now, 1, u64::MAX), 1);
            }
            let mut guard = access.lock_one(key.slot, now, Intent::Write).expect("free");
            guard.insert(Event::SILENT, DB, &key, NewStr::Embstr(b"v"), None);
            guard.finish();
        }
        is_hit
    })
}

#[test]
fn samples_find_nearly_what_the_exact_order_finds() {
    let trace = trace();
    let (exact, seen) = (exact_lru(&trace), evicting(&trace, Order::LeastRecent, 400, 1));
    println!("lru: {seen:.2}, exact {exact:.2}");
    assert!(seen > exact - 0.5, "{seen} of {exact}");
}

#[test]
fn every_key_is_as_likely_to_be_sampled() {
    let trace = trace();
    let (exact, seen) = (exact_random(&trace), evicting(&trace, Order::Random, 400, 1));
    println!("random: {seen:.2}, exact {exact:.2}");
    assert!(seen > exact - 0.4, "{seen} of {exact}: some keys are hardly ever sampled");
}

#[test]
fn counters_tell_keys_apart_before_and_behind_their_decay() {
    let trace = trace();
    let lru = exact_lru(&trace);
    let soon = evicting(&trace, Order::LeastFrequent, 400, 1);
    let slow = evicting(&trace, Order::LeastFrequent, 4_000, 10);
    // Keys wait for half an hour: the counters of all have lost all.
    let late = evicting(&trace, Order::LeastFrequent, 40_000, 1);
    println!("lfu: {soon:.2}, {slow:.2} and {late:.2}, lru {lru:.2}");
    assert!(soon > lru + 5.0, "{soon} beside {lru}: a proven key goes for a new one");
    assert!(slow > lru + 5.0, "{slow} beside {lru}: ten times slower, with ten times the decay");
    assert!(late > lru - 1.5, "{late} beside {lru}: any key goes");
}
