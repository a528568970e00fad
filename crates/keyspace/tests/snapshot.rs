//! Snapshots beside real threads: each holds an invariant across many keys that every command
//! keeps, and slots that are held long are taken later.
#![cfg(not(shuttle))]

use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use base::sync::{Arc, thread};
use base::{DbIndex, SlotId, UnixMs};
use keyspace::snapshot::{CAPTURED_BYTES_MAX, Root, SMALL_MAX, Sink, Snapshot, Step};
use keyspace::{Access, Big, Encoding, Entry, Event, Guard, Intent, Key, Keyspace, Options};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use value::{Hash, List, Log, NewStr};

const QUIET: Event = Event::SILENT;
const NOW: UnixMs = UnixMs(1_000_000);
const WORKERS: usize = 4;
const RUN: Duration = Duration::from_secs(1);
/// Longest run, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(120);
/// Accounts of each kind, and what each has at first.
const ACCOUNTS: u64 = 150;
const AMOUNT: u64 = 100;

/// A xorshift generator, so that a failing run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % n
    }
}

fn keyspace(workers: usize) -> Arc<Keyspace> {
    Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 21, workers }))
}

fn enter(access: &mut Access) {
    while !access.enter() {
        thread::yield_now();
    }
}

fn take_world(access: &mut Access) {
    while access.try_world().is_err() {
        thread::yield_now();
    }
}

fn cut(access: &mut Access) -> Snapshot {
    take_world(access);
    let snapshot = access.cut(CAPTURED_BYTES_MAX).expect("no other one runs");
    access.open_world();
    snapshot
}

fn number(n: u64) -> String {
    format!("number{n}")
}

fn list(n: u64) -> String {
    format!("list{n}")
}

/// The database that has the key: every account is in one of two.
fn home(guard: &mut Guard<'_>, name: &str) -> DbIndex {
    let key = guard.keyspace().key(name.as_bytes());
    let db = [DbIndex(0), DbIndex(1)].into_iter().find(|&db| guard.contains(db, &key));
    db.expect("an account is never lost")
}

fn add(guard: &mut Guard<'_>, name: &str, amount: i64, anew: bool) {
    let db = home(guard, name);
    let key = guard.keyspace().key(name.as_bytes());
    let mut entry = guard.entry_mut(QUIET, db, &key).expect("it is there");
    let value = entry.str().as_int().expect("a number") + amount;
    if anew {
        entry.remove();
        guard.insert(QUIET, db, &key, NewStr::Int(value), None);
    } else {
        entry.set_int(value);
    }
}

/// Moves an element from one list to another, unless the first is empty.
fn shift(guard: &mut Guard<'_>, from: &str, to: &str) {
    let (from_db, to_db) = (home(guard, from), home(guard, to));
    let (from, to) = (guard.keyspace().key(from.as_bytes()), guard.keyspace().key(to.as_bytes()));
    let edit = |big: &mut Big, log: &mut Log, takes: bool| match big {
        Big::List(list) if takes && list.is_empty() => false,
        Big::List(list) if takes => {
            list.remove(list.len() - 1, log, |_| ());
            true
        }
        Big::List(list) => {
            list.push_back(b"coin", log);
            true
        }
        _ => panic!("a list"),
    };
    let mut entry = guard.entry_mut(QUIET, from_db, &from).expect("it is there");
    if entry.edit(|big, log| edit(big, log, true)) {
        let mut entry = guard.entry_mut(QUIET, to_db, &to).expect("it is there");
        entry.edit(|big, log| edit(big, log, false));
    }
}

fn transfer(guard: &mut Guard<'_>, random: &mut Random, kind: u64, a: &str, b: &str) {
    if kind == 0 {
        let amount = random.below(9) as i64;
        add(guard, a, -amount, random.below(4) == 0);
        add(guard, b, amount, random.below(4) == 0);
    } else {
        shift(guard, a, b);
    }
    if random.below(6) == 0 {
        let (from, key) = (home(guard, a), guard.keyspace().key(a.as_bytes()));
        let to = DbIndex::new(1 - from.0 as u16);
        assert!(guard.move_entry([QUIET; 2], from, &key, to, &key));
    }
}

/// Commands of one worker: transfers, of which some are rolled back or end with a panic, and
/// changes of the map of databases.
fn work(ks: &Arc<Keyspace>, worker: usize, ends: &AtomicBool) -> u64 {
    let mut access = Access::new(Arc::clone(ks), worker);
    let mut random = Random(worker as u64 + 1);
    let mut commands = 0;
    while !ends.load(Ordering::Relaxed) {
        commands += 1;
        if random.below(400) == 0 {
            take_world(&mut access);
            access.world(NOW).swap_db(DbIndex(0), DbIndex(1));
            access.open_world();
        }
        let kind = random.below(2);
        let name = if kind == 0 { number } else { list };
        let (a, b) = (name(random.below(ACCOUNTS)), name(random.below(ACCOUNTS)));
        let mut slots: Vec<SlotId> = [&a, &b].map(|name| ks.key(name.as_bytes()).slot).to_vec();
        slots.sort_unstable();
        slots.dedup();
        enter(&mut access);
        let run = AssertUnwindSafe(|| {
            let mut guard = access.lock(&slots, NOW, Intent::Write).expect("no long holder");
            match random.below(40) {
                0 => guard.panic_after(1 + random.below(3) as u32),
                1..4 => {
                    transfer(&mut guard, &mut random, kind, &a, &b);
                    return guard.rollback();
                }
                _ => {}
            }
            transfer(&mut guard, &mut random, kind, &a, &b);
        });
        let _ = catch_unwind(run); // a panic that was asked for
        access.leave();
    }
    commands
}

/// The sums of what a snapshot passes on.
#[derive(Default)]
struct Sums {
    keys: BTreeSet<Vec<u8>>,
    numbers: i64,
    coins: u64,
    roots: Vec<keyspace::Captured>,
}

impl Sink for Sums {
    fn small(&mut self, _: DbIndex, entry: Entry<'_>) {
        assert!(self.keys.insert(entry.key().to_vec()), "each key once");
        self.numbers += entry.str().as_int().expect("a number");
    }

    fn large(&mut self, _: DbIndex, entry: Entry<'_>, value: Root) {
        assert!(self.keys.insert(entry.key().to_vec()), "each key once");
        let Root::Collection(root) = value else { panic!("a list") };
        self.roots.push(root);
        if self.roots.len() > 20 {
            self.count();
        }
    }
}

impl Sums {
    fn count(&mut self) {
        self.coins += self.roots.drain(..).map(|root| root.len()).sum::<u64>();
    }
}

fn fill(access: &mut Access) {
    take_world(access);
    let mut guard = access.world(NOW);
    for n in 0..ACCOUNTS {
        let ks = guard.keyspace();
        let (number, name) = (number(n), list(n));
        guard.insert(QUIET, DbIndex(0), &ks.key(number.as_bytes()), NewStr::Int(100), None);
        let (mut list, mut log) = (List::new(), Log::default());
        (0..AMOUNT).for_each(|_| list.push_back(b"coin", &mut log));
        let (key, list) = (ks.key(name.as_bytes()), Big::List(list));
        guard.insert_big(QUIET, DbIndex(1), &key, Encoding::Quicklist, list, None);
    }
    drop(guard);
    access.open_world();
}

#[test]
fn every_snapshot_holds_an_invariant_across_keys() {
    let ks = keyspace(WORKERS + 1);
    let mut access = Access::new(Arc::clone(&ks), WORKERS);
    fill(&mut access);
    let (ends, commands) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut snapshots, mut captured) = (0, 0);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (ks, ends, commands) = (&ks, &ends, &commands);
            scope.spawn(move || commands.fetch_add(work(ks, worker, ends), Ordering::Relaxed));
        }
        let mut walker = access.further().expect("there is room");
        let start = Instant::now();
        let checked = catch_unwind(AssertUnwindSafe(|| {
            // On a busy machine it may take long until commands and a snapshot meet.
            while start.elapsed() < RUN || captured == 0 {
                assert!(start.elapsed() < LIMIT, "commands and snapshots never meet");
                let mut snapshot = cut(&mut access);
                let mut sums = Sums::default();
                while snapshot.step(&mut walker, &mut sums) != Step::Complete {
                    thread::yield_now();
                }
                sums.count();
                assert_eq!(sums.keys.len() as u64, 2 * ACCOUNTS);
                assert_eq!(sums.numbers as u64, ACCOUNTS * AMOUNT, "a transfer was cut in two");
                assert_eq!(sums.coins, ACCOUNTS * AMOUNT, "a transfer was cut in two");
                snapshots += 1;
                captured += snapshot.progress().captured;
            }
        }));
        ends.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let commands = commands.load(Ordering::Relaxed);
    println!("{snapshots} snapshots beside {commands} commands, {captured} entries captured");
}

/// Counts what it gets.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn small(&mut self, _: DbIndex, _: Entry<'_>) {
        self.0 += 1;
    }

    fn large(&mut self, _: DbIndex, _: Entry<'_>, _: Root) {
        self.0 += 1;
    }
}

fn set(guard: &mut Guard<'_>, name: &str, text: &[u8]) {
    let key = guard.keyspace().key(name.as_bytes());
    guard.insert(QUIET, DbIndex(0), &key, NewStr::Raw(text), None);
}

#[test]
fn slots_that_are_held_long_and_a_closed_gate_are_waited_for() {
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    take_world(&mut access);
    let mut guard = access.world(NOW);
    for name in ["a", "b", "c"] {
        set(&mut guard, name, b"v");
    }
    let frozen = ks.key(b"b").slot;
    guard.freeze(&[frozen]);
    drop(guard);
    access.open_world();
    let mut snapshot = cut(&mut cutter);
    let mut walker = cutter.further().expect("there is room");
    let mut count = Count::default();
    enter(&mut access);
    let slot = ks.key(b"a").slot;
    let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
    guard.mark_long();
    while snapshot.step(&mut walker, &mut count) == Step::More {}
    assert_eq!(count.0, 2, "a frozen slot is read; one that is held long comes later");
    assert_eq!(snapshot.progress().slots, base::SLOTS as u64 - 1);
    assert_eq!(snapshot.step(&mut walker, &mut count), Step::Waits);
    set(&mut guard, "a", b"changed");
    drop(guard);
    access.leave();
    take_world(&mut access);
    assert_eq!(snapshot.step(&mut walker, &mut count), Step::More, "what was captured needs none");
    assert_eq!(snapshot.step(&mut walker, &mut count), Step::Waits, "the gate is closed");
    access.open_world();
    while snapshot.step(&mut walker, &mut count) != Step::Complete {}
    assert_eq!(count.0, 3);
    ks.thaw(&[frozen]);
}

#[test]
fn captured_bytes_are_bounded_and_counted() {
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    let texts: Vec<String> = (0..200).map(|n| format!("{{t}}{n}")).collect();
    let write = |access: &mut Access, byte: u8| {
        for name in &texts {
            enter(access);
            let slot = ks.key(name.as_bytes()).slot;
            let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
            set(&mut guard, name, &[byte; 2000]);
            drop(guard);
            access.leave();
        }
    };
    write(&mut access, b'a');
    let before = ks.memory().entries;
    take_world(&mut cutter);
    let mut snapshot = cutter.cut(100_000).expect("none runs");
    cutter.open_world();
    write(&mut access, b'b');
    assert!(ks.is_capture_over_bound());
    let captured = ks.captured_bytes();
    assert!((400_000..500_000).contains(&captured), "200 entries of 2,000 bytes: {captured}");
    assert_eq!(ks.memory().entries, before + captured, "they are counted as memory");
    write(&mut access, b'c');
    assert_eq!(ks.captured_bytes(), captured, "each entry is captured once");
    let mut walker = cutter.further().expect("there is room");
    let mut count = Count::default();
    while snapshot.step(&mut walker, &mut count) != Step::Complete {}
    assert_eq!((count.0, snapshot.progress().captured), (200, 200));
    assert_eq!((ks.captured_bytes(), ks.is_capture_over_bound()), (0, false));
    assert_eq!((ks.memory().entries, snapshot.progress().captured_bytes), (before, captured));
}

/// Keeps the last value that it got until the next step.
#[derive(Default)]
struct Holds(Option<Root>);

impl Sink for Holds {
    fn small(&mut self, _: DbIndex, _: Entry<'_>) {}

    fn large(&mut self, _: DbIndex, _: Entry<'_>, value: Root) {
        self.0 = Some(value);
    }
}

/// What a test does with a key whose slot it holds.
type Change<'f> = &'f mut dyn FnMut(&mut Guard<'_>, &Key<'_>);

/// Goes inside, holds the slot of a key, and leaves.
fn change(access: &mut Access, name: &str, f: Change<'_>) {
    enter(access);
    let ks = Arc::clone(access.keyspace());
    let key = ks.key(name.as_bytes());
    f(&mut access.lock_one(key.slot, NOW, Intent::Write).expect("free"), &key);
    access.leave();
}

/// Overwrites bytes of the string of a key.
fn write_at(guard: &mut Guard<'_>, key: &Key<'_>, at: usize, bytes: &[u8]) {
    let mut entry = guard.entry_mut(QUIET, DbIndex(0), key).expect("it is there");
    entry.write_at(at, bytes);
}

/// Writers copy the pages and nodes that they share with the snapshot. These bytes are counted from
/// the copy on until the sink is done with the value, and have the same bound.
#[test]
fn copies_of_shared_parts_are_bounded_and_counted() {
    const LEN: usize = 4 << 20;
    const MEMBERS: u64 = 50_000;
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    let mut change = |name: &str, f: Change<'_>| change(&mut access, name, f);
    change("text", &mut |guard, _| set(guard, "text", &vec![b'a'; LEN]));
    change("hash", &mut |guard, key| {
        let (mut hash, mut log) = (Hash::new(), Log::default());
        (0..MEMBERS).for_each(|n| _ = hash.set(&n.to_le_bytes(), b"value", &mut log));
        guard.insert_big(QUIET, DbIndex(0), key, Encoding::Hashtable, Big::Hash(hash), None);
    });
    let mut write = |at: usize, bytes: &[u8]| {
        change("text", &mut |guard, key| write_at(guard, key, at, bytes));
    };
    write(0, b"not shared");
    take_world(&mut cutter);
    let mut snapshot = cutter.cut(1 << 20).expect("none runs");
    cutter.open_world();
    assert_eq!(ks.captured_bytes(), 0);
    write(0, b"first");
    let first = ks.captured_bytes();
    assert!((4 << 10..8 << 10).contains(&first), "a part of 4 KiB, and nodes: {first}");
    write(9, b"again");
    assert_eq!(ks.captured_bytes(), first, "the part is not shared any more");
    write(LEN / 2, &vec![b'b'; 64 << 10]);
    for at in (0..LEN).step_by(64 << 10) {
        write(at, &vec![b'p'; 40 << 10]);
    }
    let (all, len) = (ks.captured_bytes(), LEN as u64);
    // (A long write copies the root and a node, which the undo shares.)
    assert!((len..len + (192 << 10)).contains(&all), "every page once: {all}");
    assert!(ks.is_capture_over_bound());
    let (mut walker, mut sink) = (cutter.further().expect("there is room"), Holds::default());
    assert_eq!(snapshot.step(&mut walker, &mut sink), Step::More);
    assert_eq!(ks.captured_bytes(), all, "the sink has the value");
    assert!(sink.0.take().is_some_and(|root| matches!(root, Root::String(_))));
    let mut is_held = false;
    while !is_held {
        snapshot.step(&mut walker, &mut sink);
        is_held = matches!(sink.0, Some(Root::Collection(_)));
    }
    assert_eq!((ks.captured_bytes(), ks.is_capture_over_bound()), (0, false));
    for n in 0..MEMBERS {
        change("hash", &mut |guard, key| {
            let mut entry = guard.entry_mut(QUIET, DbIndex(0), key).expect("it is there");
            entry.edit(|big, log| {
                let Big::Hash(hash) = big else { panic!("a hash") };
                hash.set(&n.to_le_bytes(), b"other", log);
            });
        });
    }
    let copied = ks.captured_bytes();
    assert!(copied > MEMBERS * 8, "what the walker itself has taken counts, too: {copied}");
    sink.0 = None;
    while snapshot.step(&mut walker, &mut sink) != Step::Complete {}
    assert_eq!((ks.captured_bytes(), ks.is_capture_over_bound()), (0, false));
}

/// What the sink frees of a value while it has it counts no more as copied: the bound frees before
/// the value is written. Nothing is paid back that was not copied.
#[test]
fn copies_count_until_the_sink_has_freed_what_they_are_of() {
    const PAGE: usize = 64 << 10;
    const LEN: usize = 40 * PAGE;
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    let mut change = |name: &str, f: Change<'_>| change(&mut access, name, f);
    let names = ["{t}changed", "{t}removed", "{t}replaced"];
    for name in names {
        change(name, &mut |guard, _| set(guard, name, &vec![b'a'; LEN]));
    }
    let mut write = |name: &str, at: usize, bytes: &[u8]| {
        change(name, &mut |guard, key| write_at(guard, key, at, bytes));
    };
    let mut walker = cutter.further().expect("there is room");
    take_world(&mut cutter);
    let mut snapshot = cutter.cut(LEN as u64 / 2).expect("none runs");
    cutter.open_world();
    for name in &names[..2] {
        write(name, 0, b"captured first");
    }
    for page in 1..40 {
        write(names[0], page * PAGE, &vec![b'b'; 40 << 10]);
    }
    assert!(ks.is_capture_over_bound());
    change(names[1], &mut |guard, key| assert!(guard.remove(QUIET, DbIndex(0), key)));
    let all = ks.captured_bytes();
    change(names[2], &mut |guard, _| set(guard, names[2], b"short"));
    let replaced = ks.captured_bytes() - all;
    assert!(replaced > LEN as u64, "it was not captured before: {replaced}");
    let mut order = Vec::new();
    for _ in names {
        let mut sink = Holds::default();
        while sink.0.is_none() {
            assert_eq!(snapshot.step(&mut walker, &mut sink), Step::More);
        }
        let Some(Root::String(mut text)) = sink.0 else { panic!("a string") };
        let before = ks.captured_bytes();
        for page in 0..40 {
            snapshot.release_copied(text.release(page * PAGE..(page + 1) * PAGE) as u64);
        }
        order.push(before - ks.captured_bytes());
        snapshot.release_copied(0);
    }
    // In the order of their captures. Of the first one 39 pages had been copied, of the second a
    // part. What the key of the second has lost is taken off first. The third counts by itself.
    let pages = |count: usize| (count * PAGE) as u64..((count + 1) * PAGE) as u64;
    assert!(order[0] < PAGE as u64, "{order:?}");
    assert!((pages(38).start..pages(39).end).contains(&(order[0] + order[1])), "{order:?}");
    assert!(pages(40).contains(&order[2]), "{order:?}");
    assert!(!ks.is_capture_over_bound(), "{}", ks.captured_bytes());
    while snapshot.step(&mut walker, &mut Holds::default()) != Step::Complete {}
    snapshot.release_copied(1 << 30);
    assert_eq!((ks.captured_bytes(), ks.is_capture_over_bound()), (0, false));
}

/// What is copied ahead of a change counts like what the change would copy, and the key keeps its
/// value.
#[test]
fn what_is_unshared_ahead_counts_as_copied() {
    const MEMBERS: u64 = 50_000;
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    change(&mut access, "hash", &mut |guard, _| set(guard, "hash", b"small"));
    change(&mut access, "hash", &mut |guard, key| _ = guard.remove(QUIET, DbIndex(0), key));
    let empty = ks.used_bytes();
    change(&mut access, "hash", &mut |guard, key| {
        let (mut hash, mut log) = (Hash::new(), Log::default());
        (0..MEMBERS).for_each(|n| _ = hash.set(&n.to_le_bytes(), b"value", &mut log));
        guard.insert_big(QUIET, DbIndex(0), key, Encoding::Hashtable, Big::Hash(hash), None);
    });
    let mut snapshot = cut(&mut cutter);
    let (mut walker, mut sink) = (cutter.further().expect("there is room"), Holds::default());
    while sink.0.is_none() {
        assert_eq!(snapshot.step(&mut walker, &mut sink), Step::More);
    }
    let names: Vec<[u8; 8]> = (0..900_u64).map(|n| (n * 50).to_le_bytes()).collect();
    let members: Vec<(&[u8], Option<f64>)> = names.iter().map(|name| (&name[..], None)).collect();
    change(&mut access, "hash", &mut |guard, key| {
        assert!(guard.unshare(DbIndex(0), key, &members));
        assert!(!guard.unshare(DbIndex(1), key, &members), "there is none");
    });
    let copied = ks.captured_bytes();
    assert!(copied > 400 << 10, "hundreds of pages: {copied}");
    change(&mut access, "hash", &mut |guard, key| {
        let mut entry = guard.entry_mut(QUIET, DbIndex(0), key).expect("it is there");
        entry.edit(|big, log| {
            let Big::Hash(hash) = big else { unreachable!("a hash") };
            for name in &names {
                hash.set(name, b"VALUE", log);
            }
        });
    });
    assert_eq!(ks.captured_bytes(), copied, "the change copies nothing");
    drop(sink);
    change(&mut access, "hash", &mut |guard, key| _ = guard.remove(QUIET, DbIndex(0), key));
    while snapshot.step(&mut walker, &mut Holds::default()) != Step::Complete {}
    while access.reclaim(1_000) {}
    assert_eq!((ks.used_bytes(), ks.captured_bytes()), (empty, 0), "nothing of it counts any more");
}

/// A long write puts a clone in the place of a string. Earlier the snapshot counted all of the old
/// one, though both have nearly all pages: after one write all writers waited.
#[test]
fn a_long_write_to_a_string_counts_what_it_has_replaced() {
    const PAGE: usize = 64 << 10;
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    change(&mut access, "long", &mut |guard, _| set(guard, "long", &vec![b'a'; 200 * PAGE]));
    let before = ks.used_bytes();
    let mut walker = cutter.further().expect("there is room");
    take_world(&mut cutter);
    let mut snapshot = cutter.cut(100 * PAGE as u64).expect("none runs");
    cutter.open_world();
    let text = vec![b'b'; 2 * PAGE];
    change(&mut access, "long", &mut |guard, key| write_at(guard, key, 150 * PAGE + 9, &text));
    let (captured, data) = (ks.captured_bytes(), ks.used_bytes() - ks.captured_entry_bytes());
    assert!((3 * PAGE..4 * PAGE).contains(&(captured as usize)), "{captured}");
    assert_eq!(data, before, "the string counts as data once");
    let mut texts = Vec::new();
    loop {
        let mut sink = Holds::default();
        if snapshot.step(&mut walker, &mut sink) == Step::Complete {
            break;
        }
        texts.extend(sink.0);
    }
    let [Root::String(text)] = &texts[..] else { panic!("one string") };
    assert!(*text == vec![b'a'; 200 * PAGE][..]);
    assert_eq!((ks.captured_bytes(), ks.used_bytes()), (0, before));
}

/// Says whether the slot of each entry was free when the entry was passed on.
struct Asks {
    other: Access,
    under_lock: u64,
    free: u64,
}

impl Asks {
    fn is_free(&mut self, entry: Entry<'_>) -> bool {
        let slot = self.other.keyspace().key(entry.key()).slot;
        enter(&mut self.other);
        let is_free = self.other.free(NOW).visit(slot, Intent::Read, |_| ()).is_ok();
        self.other.leave();
        is_free
    }
}

impl Sink for Asks {
    fn small(&mut self, _: DbIndex, entry: Entry<'_>) {
        let is_free = self.is_free(entry);
        assert_eq!(is_free, entry.str_len() > SMALL_MAX, "a long text is passed without a lock");
        *(if is_free { &mut self.free } else { &mut self.under_lock }) += 1;
    }

    fn large(&mut self, _: DbIndex, entry: Entry<'_>, _: Root) {
        assert!(self.is_free(entry), "a value outside is passed without a lock");
        self.free += 1;
    }
}

/// A step holds a slot for few entries, however many the slot has, and never for large ones.
#[test]
fn a_step_is_short() {
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    take_world(&mut access);
    let mut guard = access.world(NOW);
    let (long, outside) = (vec![b'x'; 4_000], vec![b'x'; 40_000]);
    for n in 0..3_000 {
        let text = match n % 100 {
            0 => &long[..],
            1 => &outside[..],
            _ => b"short",
        };
        set(&mut guard, &format!("{{t}}{n}"), text);
    }
    drop(guard);
    access.open_world();
    let mut walker = access.further().expect("there is room");
    let mut snapshot = cut(&mut access);
    let other = Access::new(Arc::clone(&ks), 1);
    let mut sink = Asks { other, under_lock: 0, free: 0 };
    let (mut before, mut most) = (0, 0);
    while snapshot.step(&mut walker, &mut sink) != Step::Complete {
        let entries = snapshot.progress().entries;
        most = most.max(entries - before);
        before = entries;
    }
    // 16 entries, and the rest of a bucket.
    assert!((16..40).contains(&most), "at most {most} entries in a step");
    assert_eq!((sink.under_lock, sink.free), (2_940, 60));
}

/// A failed command meets an expired key: the key stays removed, the snapshot has it, and the event
/// is emitted.
#[test]
fn a_key_that_expires_in_a_failed_command_is_captured_and_reported() {
    for to_mark in [false, true] {
        let ks = keyspace(2);
        let mut access = Access::new(Arc::clone(&ks), 0);
        let mut cutter = Access::new(Arc::clone(&ks), 1);
        access.listen_to_events(true);
        let [due, live] = [ks.key(b"{x}due"), ks.key(b"{x}live")];
        enter(&mut access);
        let mut guard = access.lock_one(due.slot, NOW, Intent::Write).expect("free");
        guard.insert(QUIET, DbIndex(0), &due, NewStr::Int(1), Some(UnixMs(NOW.0 + 5)));
        guard.insert(QUIET, DbIndex(0), &live, NewStr::Int(1), None);
        drop(guard);
        access.leave();
        while access.next_event().is_some() {}
        let mut snapshot = cut(&mut cutter);
        enter(&mut access);
        let later = UnixMs(NOW.0 + 9);
        let mut guard = access.lock_one(due.slot, later, Intent::Write).expect("free");
        guard.insert(QUIET, DbIndex(0), &live, NewStr::Int(2), None);
        let mark = guard.mark();
        guard.insert(QUIET, DbIndex(0), &live, NewStr::Int(3), None);
        assert!(guard.read(DbIndex(0), &due).is_none());
        if to_mark {
            guard.rollback_to(mark);
            guard.commit();
        } else {
            guard.rollback();
        }
        let told: Vec<_> = std::iter::from_fn(|| guard.next_event()).collect();
        let expired: Vec<_> = told.iter().filter(|told| told.event == Event::EXPIRED).collect();
        assert_eq!(expired.len(), 1, "{told:?}");
        assert_eq!(&*expired[0].key, due.bytes);
        drop(guard);
        access.leave();
        let mut walker = cutter.further().expect("there is room");
        let mut sums = Sums::default();
        while snapshot.step(&mut walker, &mut sums) != Step::Complete {}
        assert_eq!((sums.keys.len(), sums.numbers), (2, 2), "both keys, as they were");
        assert_eq!(snapshot.progress().captured, if to_mark { 2 } else { 1 });
    }
}

/// A loop of FLUSHDB beside a slow save kept the tables of every flush until the walker came by.
/// Those of the cut are kept, once; what was written since has no place in the snapshot.
#[test]
fn a_database_that_is_flushed_again_and_again_keeps_bounded_memory() {
    const KEYS: u64 = 500;
    const FLUSHES: u64 = 20;
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut cutter = Access::new(Arc::clone(&ks), 1);
    let mut write = |round: u64, flushes: bool| {
        take_world(&mut access);
        let mut guard = access.world(NOW);
        (0..KEYS).for_each(|n| set(&mut guard, &format!("{round}:{n}"), &[b'v'; 200]));
        if flushes {
            guard.flush_db(DbIndex(0));
        }
        drop(guard);
        access.open_world();
        while access.reclaim(1_000) {}
    };
    write(0, false);
    let at_cut = ks.memory();
    let mut snapshot = cut(&mut cutter);
    for round in 1..=FLUSHES {
        write(round, true);
        let now = ks.memory();
        // The keys of the first round are flushed together with those of the cut.
        assert!(now.entries <= 2 * at_cut.entries, "flush {round}: {now:?}, {at_cut:?}");
        assert!(now.buckets <= 2 * at_cut.buckets, "flush {round}: {now:?}, {at_cut:?}");
    }
    assert!(ks.memory().entries >= at_cut.entries, "the snapshot has no other copy");
    write(FLUSHES + 1, false);
    let mut walker = cutter.further().expect("there is room");
    let mut count = Count::default();
    while snapshot.step(&mut walker, &mut count) != Step::Complete {}
    assert_eq!(count.0, KEYS, "the keys of the cut, and no others");
    write(FLUSHES + 2, true);
    for access in [&mut cutter, &mut walker] {
        while access.reclaim(1_000) {}
    }
    assert_eq!((ks.memory().entries, ks.memory().buckets), (0, 0), "everything was freed");
}

/// A sink that fails costs the snapshot alone.
#[test]
fn a_panic_of_the_sink_leaves_a_keyspace_for_the_next_snapshot() {
    struct Fails(u64);
    impl Sink for Fails {
        fn small(&mut self, _: DbIndex, _: Entry<'_>) {
            self.0 -= 1;
            assert!(self.0 > 0, "no room left");
        }

        fn large(&mut self, db: DbIndex, entry: Entry<'_>, _: Root) {
            self.small(db, entry);
        }
    }
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    take_world(&mut access);
    let mut guard = access.world(NOW);
    (0..500).for_each(|n| set(&mut guard, &format!("{{t}}{n}"), b"v"));
    let long = vec![b'x'; 20_000];
    (0..20).for_each(|n| set(&mut guard, &format!("{{u}}{n}"), &long));
    drop(guard);
    access.open_world();
    for fails_after in [1, 7, 300, 505, 520] {
        let mut snapshot = cut(&mut access);
        let mut walker = access.further().expect("there is room");
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut sink = Fails(fails_after);
            while snapshot.step(&mut walker, &mut sink) != Step::Complete {}
        }));
        assert!(ran.is_err(), "the sink has failed");
        drop((snapshot, walker));
        assert!(ks.is_snapshot_running());
        let mut rest = access.abandoned_snapshot().expect("it was dropped before its end");
        let mut walker = access.further().expect("there is room");
        let mut none = Count::default();
        while rest.step(&mut walker, &mut none) != Step::Complete {}
        assert_eq!(none.0, 0, "an abandoned snapshot has no sink");
    }
    let mut snapshot = cut(&mut access);
    let mut walker = access.further().expect("there is room");
    let mut count = Count::default();
    while snapshot.step(&mut walker, &mut count) != Step::Complete {}
    assert_eq!(count.0, 520);
}

/// What the walker had taken when its snapshot was dropped is freed by who walks on, although no
/// writer has captured anything.
#[test]
fn what_a_dropped_snapshot_had_taken_is_freed() {
    let ks = keyspace(2);
    let mut access = Access::new(Arc::clone(&ks), 0);
    take_world(&mut access);
    let mut guard = access.world(NOW);
    let long = vec![b'x'; 3 << 20];
    (0..5).for_each(|n| set(&mut guard, &format!("{{u}}{n}"), &long));
    drop(guard);
    access.open_world();
    let before = ks.memory().entries;
    let mut snapshot = cut(&mut access);
    let mut walker = access.further().expect("there is room");
    while ks.memory().entries == before {
        assert_eq!(snapshot.step(&mut walker, &mut Count::default()), Step::More);
    }
    drop(snapshot);
    let mut rest = access.abandoned_snapshot().expect("it was dropped before its end");
    let mut count = Count::default();
    while rest.step(&mut walker, &mut count) != Step::Complete {}
    assert_eq!((count.0, ks.memory().entries), (0, before));
}
