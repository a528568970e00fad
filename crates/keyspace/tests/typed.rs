//! Collections in entries: panics in the middle of an edit, watches, expiry, and where they are
//! freed.
#![cfg(not(shuttle))]

use base::sync::{Arc, thread};
use base::{DbIndex, UnixMs};
use keyspace::{
    Access, Captured, Encoding, Event, Guard, Intent, Key, Keyspace, Kind, Options, WatchCell,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use value::{Big, Log, NewStr};
use value::{Hash, List};

const NOW: UnixMs = UnixMs(1_000_000);
const DB: DbIndex = DbIndex(0);

fn access() -> Access {
    let options = Options { databases: 2, hash_secret: 3, workers: 1 };
    let mut access = Access::new(Arc::new(Keyspace::new(&options)), 0);
    assert!(access.enter());
    access
}

fn list(elements: usize) -> Big {
    let (mut list, mut log) = (List::default(), Log::default());
    // Large elements: a page holds four of them, so a list of four hundred has many pages.
    for n in 0..elements {
        list.push_back(format!("{n:01000}").as_bytes(), &mut log);
    }
    Big::List(list)
}

fn push(big: &mut Big, log: &mut Log) {
    let Big::List(list) = big else { panic!("a list") };
    list.push_back(b"one more", log);
}

/// Runs `f` under the lock of the key `k`.
fn with<R>(access: &mut Access, now: UnixMs, f: impl FnOnce(&mut Guard<'_>, &Key<'_>) -> R) -> R {
    let ks = Arc::clone(access.keyspace());
    let key = ks.key(b"k");
    f(&mut access.lock_one(key.slot, now, Intent::Write).expect("free"), &key)
}

fn len(access: &mut Access) -> Option<u64> {
    with(access, NOW, |g, key| g.read(DB, key).and_then(|e| e.big().map(Big::len)))
}

fn put(access: &mut Access, elements: usize, due: Option<UnixMs>) {
    with(access, NOW, |g, key| {
        g.insert_big(Event::SILENT, DB, key, Encoding::Quicklist, list(elements), due);
    });
}

#[test]
fn a_panic_within_an_edit_is_rolled_back() {
    let mut access = access();
    put(&mut access, 400, None);
    let before = access.keyspace().memory().entries;
    let died = catch_unwind(AssertUnwindSafe(|| {
        with(&mut access, NOW, |g, key| {
            let mut entry = g.entry_mut(Event::SILENT, DB, key).expect("it is there");
            entry.edit(push);
            entry.set_expiry(Some(UnixMs(NOW.0 + 5)));
            entry.edit(|big, log| {
                push(big, log);
                log.capture(big);
                *big = list(7);
                push(big, log);
                resume_unwind(Box::new(()))
            })
        })
    }));
    assert!(died.is_err());
    assert_eq!(len(&mut access), Some(400));
    assert_eq!(with(&mut access, NOW, |g, key| g.read(DB, key).and_then(|e| e.expiry())), None);
    let after = access.keyspace().memory().entries;
    assert!(after.abs_diff(before) < 4096, "{before} and {after}: spare room may stay");
    with(&mut access, NOW, |g, key| g.remove(Event::SILENT, DB, key));
    assert_eq!(access.keyspace().memory().entries, 0, "every byte was accounted for");
}

#[test]
fn the_injected_panic_counts_edits() {
    let mut access = access();
    put(&mut access, 3, None);
    let died = catch_unwind(AssertUnwindSafe(|| {
        with(&mut access, NOW, |g, key| {
            g.panic_after(2);
            let mut entry = g.entry_mut(Event::SILENT, DB, key).expect("it is there");
            entry.edit(push);
            entry.edit(push);
        });
    }));
    assert!(died.is_err(), "the second change was one too many");
    assert_eq!(len(&mut access), Some(3));
}

#[test]
fn edits_dirty_watches() {
    let mut access = access();
    put(&mut access, 3, None);
    let changes: [fn(&mut Guard<'_>, &Key<'_>); 4] = [
        |g, key| g.entry_mut(Event::SILENT, DB, key).expect("there").edit(push),
        |g, key| {
            g.entry_mut(Event::SILENT, DB, key)
                .expect("there")
                .set_big(Encoding::Quicklist, list(2));
        },
        |g, key| {
            g.entry_mut(Event::SILENT, DB, key)
                .expect("there")
                .set_packed(Encoding::Listpack, b"abc");
        },
        |g, key| {
            g.entry_mut(Event::SILENT, DB, key)
                .expect("there")
                .set_packed(Encoding::Listpack, b"abd");
        },
    ];
    for change in changes {
        let cell = WatchCell::new();
        with(&mut access, NOW, |g, key| g.watch(DB, key, &cell));
        assert!(!cell.is_dirty());
        with(&mut access, NOW, change);
        assert!(cell.is_dirty());
    }
}

/// A value keeps its kind and its expiry through every change of its layout.
#[test]
fn a_layout_change_keeps_kind_and_expiry() {
    let mut access = access();
    let due = Some(UnixMs(NOW.0 + 50));
    let shown = |g: &mut Guard<'_>, key: &Key<'_>| {
        let entry = g.read(DB, key).expect("it is there");
        (entry.kind(), entry.encoding(), entry.packed().map(<[u8]>::len), entry.expiry())
    };
    with(&mut access, NOW, |g, key| {
        g.insert(Event::SILENT, DB, key, NewStr::Embstr(b"text"), None);
        g.insert_packed(Event::SILENT, DB, key, Kind::List, Encoding::Listpack, b"abcd", due);
        assert_eq!(shown(g, key), (Kind::List, Encoding::Listpack, Some(4), due));
        g.entry_mut(Event::SILENT, DB, key)
            .expect("there")
            .set_packed(Encoding::Listpack, &[1; 3000]);
        assert_eq!(shown(g, key), (Kind::List, Encoding::Listpack, Some(3000), due));
        g.entry_mut(Event::SILENT, DB, key).expect("there").set_encoding(Encoding::Quicklist);
        assert_eq!(shown(g, key), (Kind::List, Encoding::Quicklist, Some(3000), due));
        g.entry_mut(Event::SILENT, DB, key).expect("there").set_big(Encoding::Quicklist, list(5));
        assert_eq!(shown(g, key), (Kind::List, Encoding::Quicklist, None, due));
        let mut entry = g.entry_mut(Event::SILENT, DB, key).expect("there");
        let place = entry.entry().big().map(std::ptr::from_ref);
        entry.set_expiry(None);
        assert_eq!(entry.entry().big().map(std::ptr::from_ref), place, "the box has moved");
        entry.set_expiry(due);
        assert_eq!(entry.entry().big().map(std::ptr::from_ref), place, "and back");
        assert!(!g.entry_mut(Event::SILENT, DB, key).expect("there").remove_if_empty());
        g.entry_mut(Event::SILENT, DB, key).expect("there").set_packed(Encoding::Listpack, b"");
        assert!(
            g.entry_mut(Event::SILENT, DB, key).expect("there").remove_if_empty()
                && !g.contains(DB, key)
        );
        g.insert(Event::SILENT, DB, key, NewStr::Int(7), None);
        assert!(!g.entry_mut(Event::SILENT, DB, key).expect("there").remove_if_empty());
        assert_eq!(shown(g, key), (Kind::String, Encoding::Int, None, None));
        g.remove(Event::SILENT, DB, key);
    });
    assert_eq!(access.keyspace().memory().entries, 0, "every byte was accounted for");
}

/// However a value of many parts is removed, the reclaimer frees it.
#[test]
fn the_reclaimer_frees_values_of_many_parts() {
    let mut access = access();
    let reclaimer = Arc::clone(access.keyspace().reclaimer());
    let ways: [fn(&mut Access); 5] = [
        |access| with(access, NOW, |g, key| assert!(g.remove(Event::SILENT, DB, key))),
        |access| with(access, NOW, |g, key| g.insert(Event::SILENT, DB, key, NewStr::Int(1), None)),
        |access| with(access, UnixMs(NOW.0 + 10), |g, key| assert!(!g.contains(DB, key))),
        |access| {
            access.try_world().expect("no other worker is inside");
            access.world(NOW).flush_all();
            access.open_world();
            while access.reclaim(1000) {}
        },
        |access| {
            with(access, NOW, |g, key| {
                g.entry_mut(Event::SILENT, DB, key).expect("there").edit(|big, log| {
                    log.capture(big);
                    *big = list(2);
                });
            });
        },
    ];
    for (n, way) in ways.into_iter().enumerate() {
        put(&mut access, 400, Some(UnixMs(NOW.0 + 10)));
        way(&mut access);
        assert_eq!(reclaimer.freed(), n as u64 + 1, "way {n}");
    }
    with(&mut access, NOW, |g, key| g.remove(Event::SILENT, DB, key));
    put(&mut access, 10, None);
    with(&mut access, NOW, |g, key| g.remove(Event::SILENT, DB, key));
    assert_eq!(reclaimer.freed(), 5, "a small one is freed in passing");
    assert_eq!(access.keyspace().memory().entries, 0, "every byte was accounted for");
}

#[test]
fn the_reclaimer_thread_frees_removed_values() {
    let mut access = access();
    let reclaimer = Arc::clone(access.keyspace().reclaimer());
    let server = {
        let reclaimer = Arc::clone(&reclaimer);
        thread::spawn(move || reclaimer.serve())
    };
    for _ in 0..50 {
        put(&mut access, 1000, None);
        with(&mut access, NOW, |g, key| g.remove(Event::SILENT, DB, key));
    }
    reclaimer.close();
    server.join().expect("it ends");
    assert_eq!((reclaimer.freed(), reclaimer.pending(), reclaimer.pending_bytes()), (50, 0, 0));
    assert_eq!(access.keyspace().memory().entries, 0, "every byte was accounted for");
}

#[test]
fn a_captured_value_outlives_its_key() {
    let mut access = access();
    put(&mut access, 400, None);
    let captured: Captured = with(&mut access, NOW, |g, key| {
        let ks = g.keyspace();
        let entry = g.read(DB, key).expect("it is there");
        ks.capture(entry.big().expect("a big one"))
    });
    with(&mut access, NOW, |g, key| g.entry_mut(Event::SILENT, DB, key).expect("there").edit(push));
    with(&mut access, NOW, |g, key| g.remove(Event::SILENT, DB, key));
    assert_eq!(captured.len(), 400);
    let freed = access.keyspace().reclaimer().freed();
    drop(captured);
    assert_eq!(access.keyspace().reclaimer().freed(), freed + 1);
}

/// A value which was built but never stored under a key does not count.
#[test]
fn values_which_were_never_stored_are_not_counted_as_freed() {
    struct Built;
    impl keyspace::Parts for Built {
        fn memory(&self) -> usize {
            1
        }
    }
    let access = access();
    drop(access.keyspace().reclaim_on_drop(Built));
    access.keyspace().reclaimer().reclaim_parts(Box::new(Built));
    assert_eq!(access.keyspace().reclaimer().freed(), 0);
}

/// Many fields of a hash have expired when a command accesses it: they are hidden, reappear after a
/// rollback of their removal, and the key is removed with the last of them.
#[test]
fn many_expired_fields_are_hidden_at_once() {
    let mut access = access();
    let name = |n: i64| format!("field:{n}").into_bytes();
    let (mut hash, mut log) = (Hash::new(), Log::default());
    for n in 0..3000 {
        hash.set(&name(n), b"value", &mut log);
        if n % 3 > 0 {
            hash.set_expiry(&name(n), Some(NOW.0 + 10 * (n % 3)), &mut log);
        }
    }
    with(&mut access, NOW, |g, key| {
        g.insert_big(Event::SILENT, DB, key, Encoding::Hashtable, Big::Hash(hash), None);
    });
    let full = access.keyspace().memory().entries;
    assert_eq!(len(&mut access), Some(3000));
    let late = UnixMs(NOW.0 + 100);
    let died = catch_unwind(AssertUnwindSafe(|| {
        with(&mut access, late, |g, key| {
            // In the middle of a command nothing is removed. The hiding is rolled back with the
            // command.
            g.insert(Event::SILENT, DbIndex(1), key, value::NewStr::Int(1), None);
            assert_eq!(g.read(DB, key).and_then(|e| e.big().map(Big::len)), Some(1000));
            resume_unwind(Box::new(()))
        })
    }));
    assert!(died.is_err());
    assert_eq!((len(&mut access), access.keyspace().memory().entries), (Some(3000), full));
    // Half of the fields expire first. The expiry of the others stays known.
    let half = UnixMs(NOW.0 + 15);
    let left =
        with(&mut access, half, |g, key| g.read(DB, key).and_then(|e| e.big().map(Big::len)));
    assert_eq!(left, Some(2000));
    let full_still = access.keyspace().memory().entries;
    assert!(full_still > full * 9 / 10, "{full_still} of {full}: few are removed at once");
    let report = access.expire_step(late, u64::MAX, || base::MonoNs(0));
    assert_eq!(report.expired, 0, "fields are no keys");
    assert_eq!(len(&mut access), Some(1000), "the sweep takes the rest");
    assert!(access.keyspace().memory().entries < full / 2, "they are gone");
    access.expire_step(late, u64::MAX, || base::MonoNs(0));
    assert_eq!(access.next_due(), None, "and nothing is left in the index");
    with(&mut access, NOW, |g, key| {
        let mut entry = g.entry_mut(Event::SILENT, DB, key).expect("it is there");
        entry.edit(|big, log| {
            let Big::Hash(hash) = big else { panic!("a hash") };
            for n in (0..3000).step_by(3) {
                hash.set_expiry(&name(n), Some(NOW.0 + 50), log);
            }
        });
    });
    assert!(with(&mut access, late, |g, key| g.read(DB, key).is_none()), "no field is left");
    assert_eq!(access.keyspace().memory().entries, 0);
}
