//! Which keys are evicted: policies on histories that were made up for them.
#![cfg(not(shuttle))]

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, Event, Evictable, Eviction, Intent, Keyspace, Options, Order, Uses};
use std::collections::BTreeSet;
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const OTHER: DbIndex = DbIndex(2);
const S: i64 = 1000;
const ORDERS: [Order; 4] =
    [Order::LeastRecent, Order::LeastFrequent, Order::NearestExpiry, Order::Random];

fn store() -> (Arc<Keyspace>, Access) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 3, hash_secret: 11, workers: 1 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    (ks, access)
}

/// The `n`th key of a database is created.
fn set(access: &mut Access, db: DbIndex, n: usize, due: Option<i64>, now: i64) {
    let ks = Arc::clone(access.keyspace());
    let name = format!("key:{n}");
    let key = ks.key(name.as_bytes());
    let mut guard = access.lock_one(key.slot, UnixMs(now), Intent::Write).expect("free");
    guard.insert(Event::SILENT, db, &key, NewStr::Embstr(b"v"), due.map(UnixMs));
    guard.finish();
}

/// Whether it is there; that is a use of it.
fn is_there(access: &mut Access, db: DbIndex, n: usize, now: i64) -> bool {
    let ks = Arc::clone(access.keyspace());
    let name = format!("key:{n}");
    let key = ks.key(name.as_bytes());
    let mut guard = access.lock_one(key.slot, UnixMs(now), Intent::Read).expect("free");
    guard.read(db, &key).is_some()
}

fn how(order: Order, is_volatile: bool) -> Eviction {
    Eviction { db: None, order, is_volatile, samples: 5 }
}

/// Evicts `count` of the keys below `keys` and returns which.
fn evict(
    access: &mut Access,
    how: Eviction,
    keys: usize,
    count: usize,
    now: i64,
) -> BTreeSet<usize> {
    for _ in 0..count {
        assert!(access.evict(how, UnixMs(now), 1, u64::MAX) == 1, "{how:?}");
    }
    (0..keys).filter(|n| !is_there(access, DB, *n, now)).collect()
}

fn mean(victims: &BTreeSet<usize>) -> usize {
    victims.iter().sum::<usize>() / victims.len()
}

#[test]
fn volatile_policies_take_only_what_expires_and_take_all_of_it() {
    for order in ORDERS {
        let (ks, mut access) = store();
        for n in 0..500 {
            set(&mut access, DB, n, (n % 5 == 0).then_some(1_000 * S + n as i64), 0);
            set(&mut access, OTHER, n, (n % 50 == 0).then_some(1_000 * S), 0);
        }
        let all = |access: &mut Access, is_volatile| -> usize {
            let mut evict = || access.evict(how(order, is_volatile), UnixMs(S), 3, u64::MAX);
            std::iter::from_fn(|| Some(evict()).filter(|count| *count > 0)).sum()
        };
        let mut evicted = all(&mut access, true);
        assert_eq!((evicted as u64, ks.evicted()), (110, 110), "{order:?}");
        assert_eq!((ks.db_len(DB), ks.db_len(OTHER)), (400, 490));
        assert!((0..500).all(|n| is_there(&mut access, DB, n, S) == (n % 5 != 0)));
        evicted += all(&mut access, false);
        assert_eq!((evicted, ks.db_len(DB), ks.db_len(OTHER)), (1_000, 0, 0), "{order:?}");
    }
}

#[test]
fn those_that_were_used_longest_ago_go_first() {
    for is_volatile in [false, true] {
        let (_, mut access) = store();
        let order = (0..1_000).map(|n| n * 7919 % 1_000);
        for n in order {
            set(&mut access, DB, n, is_volatile.then_some(1_000_000 * S), n as i64 * S);
        }
        let victims =
            evict(&mut access, how(Order::LeastRecent, is_volatile), 1_000, 100, 1_000 * S);
        // Without order the mean is 500; the best is 49.
        assert!(mean(&victims) < 160, "{}: {victims:?}", mean(&victims));
    }
}

#[test]
fn a_candidate_that_is_used_stays() {
    let (ks, mut access) = store();
    for n in 0..16 {
        set(&mut access, DB, n, None, 0);
    }
    assert!(access.evict(how(Order::LeastRecent, false), UnixMs(S), 1, u64::MAX) == 1);
    let left: Vec<usize> = (0..16).filter(|n| is_there(&mut access, DB, *n, 100 * S)).collect();
    assert_eq!(left.len(), 15, "they are candidates, and were used");
    set(&mut access, DB, 99, None, 50 * S);
    for _ in 0..12 {
        // (It may take a few samples until it is seen.)
        assert!(access.evict(how(Order::LeastRecent, false), UnixMs(101 * S), 1, u64::MAX) == 1);
    }
    assert!(ks.db_len(DB) == 4 && !is_there(&mut access, DB, 99, 101 * S));
}

#[test]
fn those_that_are_used_least_go_first() {
    let (ks, mut access) = store();
    ks.set_uses(Uses::Counts { log_factor: 0, decay_minutes: 0 });
    access.leave();
    assert!(access.enter());
    for n in 0..200 {
        set(&mut access, DB, n, None, 0);
        for _ in 0..n {
            assert!(is_there(&mut access, DB, n, 0));
        }
    }
    let victims = evict(&mut access, how(Order::LeastFrequent, false), 200, 20, 0);
    // Without order the mean is 100; the best is 9.
    assert!(mean(&victims) < 40, "{}: {victims:?}", mean(&victims));
}

#[test]
fn the_nearest_expiry_goes_first() {
    let (_, mut access) = store();
    for n in 0..1_000 {
        set(&mut access, DB, n, Some(1_000_000 + (n as i64 * 7919) % 1_000), 0);
    }
    for _ in 0..100 {
        assert!(access.evict(how(Order::NearestExpiry, true), UnixMs(0), 1, u64::MAX) == 1);
    }
    let victims: BTreeSet<usize> = (0..1_000)
        .filter(|n| !is_there(&mut access, DB, *n, 0))
        .map(|n| (n * 7919) % 1_000)
        .collect();
    assert!(mean(&victims) < 160, "{}: {victims:?}", mean(&victims));
}

#[test]
fn random_victims_are_spread() {
    let (_, mut access) = store();
    for n in 0..1_000 {
        set(&mut access, DB, n, None, n as i64 * S);
    }
    let victims = evict(&mut access, how(Order::Random, false), 1_000, 300, 1_000 * S);
    assert!((400..600).contains(&mean(&victims)), "{}", mean(&victims));
}

#[test]
fn no_more_go_than_bytes_are_needed() {
    let (ks, mut access) = store();
    for n in 0..1_000 {
        set(&mut access, DB, n, None, 0);
    }
    let one = ks.memory().entries / 1_000;
    let mut evict =
        |max, excess| access.evict(how(Order::LeastRecent, false), UnixMs(S), max, excess);
    assert_eq!(evict(8, 1), 1, "one makes room enough");
    assert_eq!(evict(8, one + 1), 2);
    assert_eq!(evict(2, u64::MAX), 2);
    assert_eq!(evict(1_000, u64::MAX), keyspace::EVICTIONS_MAX);
    assert_eq!(ks.evicted() as usize, 5 + keyspace::EVICTIONS_MAX);
}

/// Removes keys of one database until none goes.
fn evict_all(access: &mut Access, db: Option<DbIndex>, is_volatile: bool) -> usize {
    let how = Eviction { db, ..how(Order::LeastRecent, is_volatile) };
    let evict = || Some(access.evict(how, UnixMs(S), 8, u64::MAX)).filter(|count| *count > 0);
    std::iter::from_fn(evict).sum()
}

/// The one key which may go is found, wherever it is: among many which may not, and beside another
/// database in whose slots everything expires.
#[test]
fn a_single_key_with_an_expiry_is_found_among_many_others() {
    const KEYS: usize = 60_000;
    let (ks, mut access) = store();
    for n in 0..KEYS {
        set(&mut access, DB, n, Some(1_000 * S), 0);
        set(&mut access, OTHER, n, None, 0);
    }
    for round in 0..20 {
        set(&mut access, OTHER, KEYS + round, Some(1_000 * S), 0);
        assert_eq!(evict_all(&mut access, Some(OTHER), true), 1, "round {round}");
    }
    assert_eq!((ks.db_len(DB), ks.db_len(OTHER)), (KEYS as u64, KEYS as u64));
    assert_eq!(evict_all(&mut access, Some(OTHER), true), 0, "none is left");
}

/// Two databases of 300 keys, every third with an expiry.
fn two_databases() -> (Arc<Keyspace>, Access) {
    let (ks, mut access) = store();
    for n in 0..300 {
        for db in [DB, OTHER] {
            set(&mut access, db, n, (n % 3 == 0).then_some(1_000 * S), 0);
        }
    }
    (ks, access)
}

#[test]
fn a_database_that_is_named_gives_its_own_keys_only() {
    let (ks, mut access) = two_databases();
    let (before, other) = (ks.db_bytes(DB), ks.db_bytes(OTHER));
    assert_eq!(evict_all(&mut access, Some(OTHER), true), 100);
    assert_eq!((ks.db_len(DB), ks.db_len(OTHER), ks.db_expires(OTHER)), (300, 200, 0));
    assert_eq!(evict_all(&mut access, Some(OTHER), false), 200);
    assert_eq!((ks.db_len(DB), ks.db_len(OTHER)), (300, 0));
    assert_eq!((ks.db_bytes(DB), ks.db_bytes(OTHER)), (before, 0));
    assert!(other > 300 * 40, "{other}");
    assert_eq!((ks.db_evicted(DB), ks.db_evicted(OTHER), ks.evicted()), (0, 300, 300));
}

#[test]
fn room_in_a_database_ends_when_so_much_is_free() {
    let (ks, mut access) = two_databases();
    let goal = ks.db_bytes(OTHER) / 2;
    let how = Eviction { db: Some(OTHER), ..how(Order::Random, false) };
    while ks.db_bytes(OTHER) > goal {
        assert!(access.evict(how, UnixMs(S), 8, ks.db_bytes(OTHER) - goal) > 0);
    }
    let left = ks.db_bytes(OTHER);
    assert!(left > goal - 200, "{left} of {goal}");
    assert_eq!(ks.db_len(DB), 300);
}

#[test]
fn a_database_gives_what_its_budget_allows_whoever_asks() {
    let (ks, mut access) = two_databases();
    ks.set_evictable(OTHER, Evictable::Nothing);
    assert_eq!(evict_all(&mut access, Some(OTHER), false), 0);
    assert_eq!(evict_all(&mut access, None, false), 300);
    assert_eq!((ks.db_len(DB), ks.db_len(OTHER)), (0, 300));
    ks.set_evictable(OTHER, Evictable::Volatile);
    assert_eq!(evict_all(&mut access, None, false), 100);
    assert_eq!((ks.db_len(OTHER), ks.db_expires(OTHER)), (200, 0));
    // The budget stays with the number: the keys that are there afterwards are another's.
    access.try_world().expect("nobody else holds it");
    access.world(UnixMs(S)).swap_db(DB, OTHER);
    access.open_world();
    assert_eq!((ks.db_len(DB), ks.db_len(OTHER)), (200, 0));
    assert_eq!(evict_all(&mut access, Some(OTHER), false), 0);
    assert_eq!(evict_all(&mut access, None, false), 200);
}
