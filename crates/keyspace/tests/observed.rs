//! What a server uses of the keyspace apart from the data: the number of changes, the average time
//! to live, reads which do not update access times, and injected panics.

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{Access, Event, Guard, Intent, Keyspace, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use value::encode;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_700_000_000_000);

fn new() -> (Arc<Keyspace>, Access) {
    let options = Options { databases: 2, hash_secret: 3, workers: 1 };
    let ks = Arc::new(Keyspace::new(&options));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    (ks, access)
}

/// Runs `f` under World. Returns `Err` if it panicked.
fn world(access: &mut Access, now: UnixMs, f: impl FnOnce(&mut Guard<'_>)) -> Result<(), ()> {
    access.try_world().expect("nobody else holds it");
    let run = AssertUnwindSafe(|| {
        let mut guard = access.world(now);
        f(&mut guard);
        guard.commit();
    });
    let result = catch_unwind(run).map_err(drop);
    access.open_world();
    result
}

fn set(guard: &mut Guard<'_>, name: &str, text: &[u8], expiry: Option<i64>) {
    let key = guard.keyspace().key(name.as_bytes());
    guard.insert(Event::SILENT, DB, &key, encode(text), expiry.map(UnixMs));
}

#[test]
fn committed_changes_are_counted() {
    let (ks, mut access) = new();
    assert_eq!(ks.changes(), 0);
    world(&mut access, NOW, |g| {
        set(g, "a", b"1", None);
        set(g, "a", b"2", None);
        set(g, "b", &vec![b'x'; 20_000], Some(NOW.0 + 5));
    })
    .expect("no panic");
    assert_eq!(ks.changes(), 3);
    world(&mut access, NOW, |g| {
        set(g, "c", b"1", None);
        g.rollback();
        assert!(!g.remove(Event::SILENT, DB, &ks.key(b"nothing")));
    })
    .expect("no panic");
    assert_eq!(ks.changes(), 3);
    world(&mut access, NOW, |g| assert!(g.remove(Event::SILENT, DB, &ks.key(b"a"))))
        .expect("no panic");
    assert_eq!(ks.changes(), 4);
    world(&mut access, NOW, |g| {
        set(g, "c", b"1", None);
        g.flush_all();
    })
    .expect("no panic");
    assert_eq!(ks.changes(), 7, "a new key and the two that were flushed");
    world(&mut access, NOW, |g| set(g, "d", b"1", Some(NOW.0 + 5))).expect("no panic");
    world(&mut access, UnixMs(NOW.0 + 5), |g| assert!(!g.contains(DB, &ks.key(b"d"))))
        .expect("no panic");
    assert_eq!(ks.changes(), 8, "a key that expired was changed by nobody");
}

#[test]
fn a_key_replaced_after_its_expiry_counts_as_expired() {
    let (ks, mut access) = new();
    let big = vec![b'x'; 20_000];
    let texts: [&[u8]; 3] = [b"short", b"a text that needs another entry", &big];
    for (round, text) in texts.into_iter().enumerate() {
        for (expiry, late) in [(None, 7), (Some(NOW.0 + 5000), 9)] {
            world(&mut access, NOW, |g| set(g, "k", b"first", Some(NOW.0 + 10))).expect("no panic");
            let before = ks.expiry().expired;
            world(&mut access, UnixMs(NOW.0 + 9), |g| set(g, "k", b"early", Some(NOW.0 + 10)))
                .expect("no panic");
            assert_eq!(ks.expiry().expired, before, "not due yet, round {round}");
            let then = UnixMs(NOW.0 + 10 + late);
            world(&mut access, then, |g| set(g, "k", text, expiry)).expect("no panic");
            assert_eq!(ks.expiry().expired, before + 1, "round {round}");
            assert_eq!(ks.expiry().lag_last_ms, late as u64);
            world(&mut access, then, |g| assert!(g.remove(Event::SILENT, DB, &ks.key(b"k"))))
                .expect("no panic");
            assert_eq!((ks.db_len(DB), ks.db_expires(DB)), (0, 0));
        }
    }
}

#[test]
fn average_ttl_covers_only_keys_with_an_expiry() {
    let (ks, mut access) = new();
    assert_eq!(ks.average_ttl_ms(DB, NOW), 0);
    world(&mut access, NOW, |g| {
        set(g, "a", b"1", Some(NOW.0 + 1_000));
        set(g, "b", b"1", Some(NOW.0 + 4_000));
        set(g, "c", b"1", None);
    })
    .expect("no panic");
    assert_eq!(ks.average_ttl_ms(DB, NOW), 2_500);
    assert_eq!(ks.average_ttl_ms(DB, UnixMs(NOW.0 + 500)), 2_000);
    assert_eq!(ks.average_ttl_ms(DB, UnixMs(NOW.0 + 9_000)), 0, "all are overdue");
    assert_eq!(ks.average_ttl_ms(DbIndex(1), NOW), 0);
    world(&mut access, NOW, |g| {
        g.swap_db(DB, DbIndex(1));
        g.flush_all();
        g.rollback();
    })
    .expect("no panic");
    assert_eq!(ks.average_ttl_ms(DB, NOW), 2_500, "a flush that was undone");
    world(&mut access, NOW, |g| g.swap_db(DB, DbIndex(1))).expect("no panic");
    assert_eq!(ks.average_ttl_ms(DbIndex(1), NOW), 2_500);
    world(&mut access, NOW, |g| assert_eq!(g.flush_all(), 3)).expect("no panic");
    assert_eq!(ks.average_ttl_ms(DbIndex(1), NOW), 0);
}

/// Times at the end of the range do not overflow. The averages of later times are right again.
#[test]
fn average_ttl_handles_extreme_times() {
    let (ks, mut access) = new();
    let key = |n: i64| format!("k{n}");
    for _ in 0..3 {
        world(&mut access, NOW, |g| {
            (0..64).for_each(|n| set(g, &key(n), b"1", Some(i64::MAX - n)));
        })
        .expect("no panic");
        let average = ks.average_ttl_ms(DB, NOW);
        assert_eq!(average, (i64::MAX - NOW.0 - 32) as u64);
        world(&mut access, NOW, |g| {
            (0..64).for_each(|n| set(g, &key(n), b"1", Some(NOW.0 + 100)));
        })
        .expect("no panic");
        assert_eq!(ks.average_ttl_ms(DB, NOW), 100);
    }
}

#[test]
fn a_read_without_touch_leaves_the_access_time() {
    let (ks, mut access) = new();
    world(&mut access, NOW, |g| set(g, "a", b"1", None)).expect("no panic");
    let later = UnixMs(NOW.0 + 10_000);
    let key = ks.key(b"a");
    let mut idle_after = |no_touch: bool| {
        let mut guard = access.lock_one(key.slot, later, Intent::Write).expect("free");
        guard.set_no_touch(no_touch);
        assert!(guard.read(DB, &key).is_some());
        guard.peek(DB, &key).map(|entry| entry.idle_seconds(later))
    };
    assert_eq!(idle_after(true), Some(10));
    assert_eq!(idle_after(false), Some(0), "a new guard touches");
}

/// The panic occurs at the n-th change, all changes are rolled back, and the next command does not
/// panic.
#[test]
fn an_injected_panic_occurs_at_its_change_and_is_rolled_back() {
    let (ks, mut access) = new();
    let before = |g: &mut Guard<'_>| {
        set(g, "a", b"old", Some(NOW.0 + 50));
        set(g, "b", b"old", None);
    };
    world(&mut access, NOW, before).expect("no panic");
    for changes in 0..=6 {
        let mut done = 0;
        let result = world(&mut access, NOW, |g| {
            g.panic_after(changes);
            let mut steps: [&mut dyn FnMut(&mut Guard<'_>); 6] = [
                &mut |g| set(g, "a", b"new", Some(NOW.0 + 9)),
                &mut |g| assert!(g.remove(Event::SILENT, DB, &ks.key(b"b"))),
                &mut |g| set(g, "c", &vec![b'x'; 20_000], None),
                &mut |g| {
                    let mut entry =
                        g.entry_mut(Event::SILENT, DB, &ks.key(b"c")).expect("it was just made");
                    entry.append(b"y");
                },
                &mut |g| g.swap_db(DB, DbIndex(1)),
                &mut |g| {
                    g.flush_all();
                },
            ];
            for step in &mut steps {
                step(g);
                done += 1;
            }
        });
        assert!(result.is_err());
        assert_eq!(done, changes.saturating_sub(1), "the change itself panics");
        world(&mut access, NOW, |g| {
            let mut text = |name: &[u8]| {
                let entry = g.peek(DB, &ks.key(name))?;
                Some((entry.str().to_vec(), entry.expiry()))
            };
            assert_eq!(text(b"a"), Some((b"old".to_vec(), Some(UnixMs(NOW.0 + 50)))));
            assert_eq!(text(b"b"), Some((b"old".to_vec(), None)));
            assert_eq!(text(b"c"), None);
            assert_eq!(ks.db_len(DB), 2);
        })
        .expect("no panic");
        assert_eq!(ks.changes(), 2, "nothing that was undone counts");
    }
}

#[test]
fn an_injected_panic_is_disarmed_at_the_end_of_its_command() {
    let (ks, mut access) = new();
    world(&mut access, NOW, |g| set(g, "a", b"1", None)).expect("no panic");
    for earlier_changes in 0..2 {
        world(&mut access, NOW, |g| {
            g.panic_after(2);
            (0..earlier_changes).for_each(|_| set(g, "a", b"2", None));
            g.commit();
            (0..5).for_each(|_| set(g, "a", b"3", None));
        })
        .expect("the commit ended it");
        world(&mut access, NOW, |g| g.panic_after(1)).expect("it changes nothing");
        world(&mut access, NOW, |g| set(g, "a", b"4", None)).expect("the guard is gone");
    }
    assert_eq!(ks.changes(), 1 + 5 + 1 + 1 + 5 + 1);
}

/// A walk, as by KEYS, over a table which shrinks and grows meanwhile: no key is missed, and none
/// is returned twice.
#[test]
fn a_walk_returns_every_key_once() {
    const KEYS: u64 = 3_000;
    let (ks, mut access) = new();
    let name = |n: u64| format!("{{tag}}:{n}").into_bytes();
    for stays in [1, 7, 100] {
        let put = |g: &mut Guard<'_>, n| {
            g.insert(Event::SILENT, DB, &ks.key(&name(n)), encode(b"v"), None);
        };
        world(&mut access, NOW, |g| (0..KEYS).for_each(|n| put(g, n))).expect("no panic");
        let (mut cursor, mut shown, mut turn) = (0, Vec::new(), 0);
        loop {
            let next = access.free(NOW).scan(DB, cursor, 1, |e| shown.push(e.key().to_vec()));
            cursor = next.expect("nobody else holds a slot");
            if cursor == 0 {
                break;
            }
            turn += 1;
            let comes_and_goes = |n: &u64| !n.is_multiple_of(stays);
            world(&mut access, NOW, |g| {
                for n in (0..KEYS).filter(comes_and_goes) {
                    if turn % 6 < 3 {
                        g.remove(Event::SILENT, DB, &ks.key(&name(n)));
                    } else {
                        put(g, n);
                    }
                }
            })
            .expect("no panic");
        }
        assert!(turn > 5, "the walk took {turn} turns");
        let expected = (0..KEYS).filter(|n| n % stays == 0).map(name);
        let steady: std::collections::BTreeSet<_> = expected.collect();
        let mut seen: Vec<_> = shown.iter().filter(|key| steady.contains(*key)).collect();
        seen.sort();
        assert!(seen.is_sorted_by(|a, b| a < b), "a key was shown twice");
        assert_eq!(seen.len(), steady.len(), "a key was left out");
    }
}
