//! A snapshot beside random commands, in one thread: what the sink gets equals a copy of the
//! keyspace at the cut, and no entry has the bit afterwards.

mod ops;

use crate::entry::EntryPtr;
use crate::reclaim::Captured;
use crate::snapshot::{Root, Sink, Snapshot, Step};
use crate::stats::{WorkerStats, get};
use crate::view::Entry;
use crate::{Access, Guard, Intent, Keyspace, Options};
use base::prng::Prng;
use base::sync::Arc;
use base::sync::hint::AtomicI64;
use base::{DbIndex, SlotId, UnixMs};
use ops::{POOL, op, pool};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use value::{Big, Encoding};

const DATABASES: u16 = 3;

/// A value with what belongs to it, as text.
#[derive(Clone, PartialEq, Eq)]
struct Content {
    expiry: Option<UnixMs>,
    encoding: Encoding,
    parts: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |part: &Vec<u8>| format!("{:.30} ", part.escape_ascii().to_string());
        let parts: String = self.parts.iter().take(4).map(text).collect();
        let (count, bytes) = (self.parts.len(), self.parts.concat().len());
        write!(f, "{:?} {:?} {count} parts of {bytes} bytes {parts}", self.expiry, self.encoding)
    }
}

type Contents = BTreeMap<(DbIndex, Vec<u8>), Content>;

fn parts_of(big: &Big) -> Vec<Vec<u8>> {
    match big {
        Big::List(list) => list.iter().map(value::list::Item::to_vec).collect(),
        Big::Hash(hash) => {
            let mut fields: Vec<_> = hash
                .iter_at(0)
                .map(|(name, value)| {
                    let due = format!(" {:?}", hash.expiry(name));
                    [name, &value.bytes(), due.as_bytes()].concat()
                })
                .collect();
            fields.sort();
            fields.push(hash.hidden().to_string().into_bytes());
            fields
        }
        _ => panic!("only lists and hashes are big here"),
    }
}

fn content(entry: Entry<'_>) -> Content {
    let parts = match (entry.packed(), entry.big()) {
        (Some(packed), _) => vec![packed.to_vec()],
        (None, Some(big)) => parts_of(big),
        (None, None) => vec![entry.str().to_vec()],
    };
    Content { expiry: entry.expiry(), encoding: entry.encoding(), parts }
}

/// What a snapshot has passed on. Roots are read as late as possible.
#[derive(Default)]
struct Taken {
    contents: Contents,
    roots: Vec<((DbIndex, Vec<u8>), Content, Captured)>,
}

impl Taken {
    fn add(&mut self, db: DbIndex, entry: Entry<'_>, content: Content) {
        let before = self.contents.insert((db, entry.key().to_vec()), content);
        assert!(before.is_none(), "{} is passed on once", entry.key().escape_ascii());
    }

    fn into_contents(mut self) -> Contents {
        for (key, mut content, root) in self.roots {
            content.parts = parts_of(&root);
            self.contents.insert(key, content);
        }
        self.contents
    }
}

impl Sink for Taken {
    fn small(&mut self, db: DbIndex, entry: Entry<'_>) {
        self.add(db, entry, content(entry));
    }

    fn large(&mut self, db: DbIndex, entry: Entry<'_>, value: Root) {
        let mut content = content(entry);
        self.add(db, entry, content.clone());
        match value {
            Root::String(string) => assert_eq!(string.to_vec(), content.parts[0]),
            Root::Collection(root) => {
                content.parts.clear();
                self.roots.push(((db, entry.key().to_vec()), content, root));
            }
        }
    }
}

/// Calls `f` with every entry and its database.
fn each_entry(guard: &Guard<'_>, mut f: impl FnMut(DbIndex, EntryPtr)) {
    let ks = guard.keyspace();
    for (physical, table) in SlotId::all().flat_map(|slot| guard.owned(slot).tables()) {
        let mut point = (table.len() > 0).then_some(0);
        while let Some(at) = point {
            point = table.visit(&ks.mem, at, |entry| f(ks.logical(physical), entry));
        }
    }
}

/// A keyspace under test: one worker runs commands, another one makes cuts.
struct Bed {
    ks: Arc<Keyspace>,
    worker: Access,
    cutter: Access,
    walker: Access,
    random: Prng,
    now: i64,
    running: Option<(Snapshot, Contents, Taken)>,
    completed: usize,
    /// How many entries of complete snapshots were captured.
    captured: u64,
}

impl Bed {
    fn new(seed: u64) -> Self {
        let options =
            Options { databases: DATABASES, hash_secret: u128::from(seed) + 1, workers: 2 };
        let ks = Arc::new(Keyspace::new(&options));
        let worker = Access::new(Arc::clone(&ks), 0);
        let mut cutter = Access::new(Arc::clone(&ks), 1);
        let walker = cutter.further().expect("there is room");
        let (random, now) = (Prng::new(seed), 1_000_000);
        Self { ks, worker, cutter, walker, random, now, running: None, completed: 0, captured: 0 }
    }

    fn world<R>(&mut self, f: impl FnOnce(&mut Guard<'_>) -> R) -> R {
        self.cutter.try_world().expect("nobody is inside");
        let result = f(&mut self.cutter.world(UnixMs(self.now)));
        self.cutter.open_world();
        result
    }

    /// Some operations in one guard, of which some are rolled back, and some end with a panic.
    fn command(&mut self) {
        let ks = Arc::clone(&self.ks);
        let names: Vec<Vec<u8>> = (0..POOL).map(pool).collect();
        let mut slots: Vec<_> = names.iter().map(|name| ks.key(name).slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let (random, worker, now) = (&mut self.random, &mut self.worker, UnixMs(self.now));
        let is_world = random.chance(1, 6);
        if is_world {
            worker.try_world().expect("nobody is inside");
        } else {
            assert!(worker.enter());
        }
        let run = AssertUnwindSafe(|| {
            let mut guard = if is_world {
                worker.world(now)
            } else {
                worker.lock(&slots, now, Intent::Write).expect("free")
            };
            if random.chance(1, 8) {
                guard.panic_after(1 + random.below(4) as u32);
            }
            for _ in 0..=random.below(4) {
                let mark = guard.mark();
                for _ in 0..=random.below(2) {
                    op(&mut guard, random, now);
                }
                if random.chance(1, 6) {
                    guard.rollback_to(mark);
                }
            }
            if random.chance(1, 8) {
                guard.rollback();
            }
        });
        let _ = catch_unwind(run); // a panic that was asked for
        if is_world {
            self.worker.open_world();
        }
        self.worker.leave();
    }

    fn cut(&mut self) {
        let mut expected = Contents::new();
        self.world(|guard| {
            each_entry(guard, |db, entry| {
                assert!(!entry.is_skipped(), "no snapshot runs");
                let entry = Entry::new(entry);
                let there = expected.insert((db, entry.key().to_vec()), content(entry));
                assert!(there.is_none());
            });
        });
        self.cutter.try_world().expect("nobody is inside");
        let snapshot = self.cutter.cut(1 << 20).expect("none runs");
        assert!(self.cutter.cut(1).is_err(), "one at a time");
        self.cutter.open_world();
        let keys: u64 = snapshot.databases().iter().map(|at_cut| at_cut.keys).sum();
        assert_eq!(keys, expected.len() as u64);
        let expires: u64 = snapshot.databases().iter().map(|at_cut| at_cut.expires).sum();
        let counted = expected.values().filter(|content| content.expiry.is_some()).count();
        assert_eq!(expires, counted as u64);
        self.running = Some((snapshot, expected, Taken::default()));
    }

    /// Makes a step; true at the end of the snapshot.
    fn step(&mut self) -> bool {
        let Some((snapshot, _, taken)) = &mut self.running else { return true };
        match snapshot.step(&mut self.walker, taken) {
            Step::More => false,
            Step::Waits => panic!("no slot is held"),
            Step::Complete => {
                self.finish();
                true
            }
        }
    }

    fn finish(&mut self) {
        let Some((snapshot, expected, taken)) = self.running.take() else { return };
        assert_eq!(snapshot.captured_bytes(), 0);
        let progress = snapshot.progress();
        assert_eq!(progress.slots, base::SLOTS as u64);
        if !expected.is_empty() {
            assert_eq!(progress.entries, expected.len() as u64);
        }
        Self::compare(&expected, taken);
        self.completed += 1;
        self.captured += progress.captured;
        assert!(!self.ks.is_snapshot_running());
        self.world(|guard| {
            each_entry(guard, |_, entry| assert!(!entry.is_skipped(), "every bit is cleared"));
        });
    }

    fn compare(expected: &Contents, taken: Taken) {
        let contents = taken.into_contents();
        for (key, content) in expected {
            let told = contents.get(key);
            assert_eq!(told, Some(content), "{:?} {:?}", key.0, key.1.escape_ascii().to_string());
        }
        assert_eq!(contents.len(), expected.len(), "nothing else is there");
    }

    /// What flushes have left to free, and to the snapshot.
    fn flushed(&self) -> (i64, i64) {
        let sum = |counter: fn(&WorkerStats) -> &AtomicI64| {
            self.ks.all_stats().map(|w| get(counter(w))).sum::<i64>()
        };
        (sum(|w| &w.flushed), sum(|w| &w.inherited))
    }

    fn step_to_end(&mut self) {
        while !self.step() {}
    }
}

/// Random commands, cuts and steps. Now and then a snapshot is aborted or dropped.
fn run(seed: u64, turns: usize) -> (usize, u64) {
    let mut bed = Bed::new(seed);
    // How fast the walker is, compared with the commands.
    let pace = 1 + bed.random.below(60);
    for _ in 0..turns {
        bed.command();
        if bed.random.chance(1, 3) {
            bed.now += bed.random.below(20) as i64;
        }
        if bed.random.chance(1, 9) {
            assert!(bed.worker.enter());
            let clock = || base::MonoNs(0);
            bed.worker.expire_step(UnixMs(bed.now), u64::MAX, clock);
            bed.worker.leave();
        }
        if bed.running.is_none() && bed.random.chance(1, 4) {
            bed.cut();
        }
        for _ in 0..bed.random.below(pace) {
            bed.step();
        }
        if bed.random.chance(1, 200) {
            bed.end_early();
        }
    }
    bed.step_to_end();
    bed.world(|guard| _ = guard.flush_all());
    for access in [&mut bed.worker, &mut bed.cutter, &mut bed.walker] {
        while access.reclaim(1_000) {}
    }
    assert_eq!(bed.ks.memory().entries, 0, "everything was freed");
    assert_eq!(bed.ks.memory().buckets, 0, "every bucket was freed");
    assert_eq!(bed.flushed(), (0, 0), "and nothing waits to be");
    (bed.completed, bed.captured)
}

impl Bed {
    /// Ends the snapshot without its sink: by an abort, or by a drop.
    fn end_early(&mut self) {
        let Some((mut snapshot, ..)) = self.running.take() else { return };
        if self.random.chance(1, 2) {
            snapshot.abort();
        } else {
            drop(snapshot);
            assert!(self.ks.is_snapshot_running());
            snapshot = self.cutter.abandoned_snapshot().expect("it was dropped");
            assert!(self.cutter.abandoned_snapshot().is_none(), "once");
        }
        let mut none = Taken::default();
        for _ in 0..40 {
            self.command();
            snapshot.step(&mut self.walker, &mut none);
        }
        while snapshot.step(&mut self.walker, &mut none) != Step::Complete {}
        assert!(none.contents.is_empty(), "nothing is passed on after an abort");
        self.world(|guard| {
            each_entry(guard, |_, entry| assert!(!entry.is_skipped(), "every bit is cleared"));
        });
    }
}

#[test]
fn a_snapshot_equals_the_keyspace_at_its_cut() {
    let (mut completed, mut captured) = (0, 0);
    for seed in 0..24 {
        let (snapshots, entries) = run(seed, 400);
        completed += snapshots;
        captured += entries;
    }
    assert!(completed > 100 && captured > 1_000, "{completed} snapshots captured {captured}");
}

/// A writer which was inside its section during the last step commits behind it. If that exceeded
/// the bound, writes would wait for a snapshot which nobody walks any more.
#[test]
fn a_commit_behind_the_end_exceeds_no_bound() {
    let mut bed = Bed::new(1);
    bed.cut();
    let running = bed.ks.snapshot.running().expect("it runs");
    running.capture(&bed.ks, 0, std::iter::empty(), 2 << 20);
    assert!(bed.ks.is_capture_over_bound());
    bed.step_to_end();
    assert!(!bed.ks.is_capture_over_bound());
    running.capture(&bed.ks, 0, std::iter::empty(), 2 << 20);
    assert!(!bed.ks.is_capture_over_bound());
    bed.cut();
    running.capture(&bed.ks, 0, std::iter::empty(), 2 << 20);
    assert!(!bed.ks.is_capture_over_bound(), "it is another one's bound");
    bed.step_to_end();
}

/// However much is said to be freed, no more is paid back than was copied, and what was removed is
/// taken off first.
#[test]
fn no_more_is_paid_back_than_was_copied() {
    let mut bed = Bed::new(1);
    bed.cut();
    let running = bed.ks.snapshot.running().expect("it runs");
    let copy = |bytes| running.capture(&bed.ks, 0, std::iter::empty(), bytes);
    for by_sink in [false, true] {
        copy(1000);
        running.release_copied(&bed.ks, 5000, by_sink);
        assert_eq!(running.captured_bytes(), 0);
        copy(700);
        assert_eq!(running.captured_bytes(), 700, "nothing was paid in advance");
        running.note_removed(300);
        running.release_copied(&bed.ks, 500, by_sink);
        assert_eq!(running.captured_bytes(), if by_sink { 500 } else { 200 });
        running.finish_copied(&bed.ks, running.copied_in_all());
    }
    copy(2 << 20);
    assert!(bed.ks.is_capture_over_bound());
    running.release_copied(&bed.ks, 1 << 20, true);
    assert!(!bed.ks.is_capture_over_bound());
    bed.step_to_end();
}

/// What a flush leaves is no data from the flush on: neither while it is freed, nor while a
/// snapshot walks all of it first, or a part.
#[test]
fn what_was_flushed_is_no_data() {
    const KEYS: usize = 20_000;
    for steps in [None, Some(0), Some(1_000)] {
        let mut bed = Bed::new(1);
        let fill = |bed: &mut Bed, db: u16, keys: usize| {
            bed.world(|guard| {
                for n in 0..keys {
                    let (ks, name) = (guard.keyspace(), format!("key {n}").into_bytes());
                    let value = value::encode(&[b'v'; 100]);
                    guard.insert(
                        crate::Event::SILENT,
                        DbIndex::new(db),
                        &ks.key(&name),
                        value,
                        None,
                    );
                }
            });
        };
        fill(&mut bed, 1, 500);
        let live = bed.ks.evictable_bytes() as i64;
        fill(&mut bed, 0, KEYS);
        let flushed = bed.ks.evictable_bytes() as i64 - live;
        assert!(flushed > (KEYS * 100) as i64);
        if let Some(steps) = steps {
            bed.cut();
            (0..steps).for_each(|_| assert!(!bed.step(), "it is not over"));
        }
        bed.world(|guard| _ = guard.flush_db(DbIndex(0)));
        let is_data = |bed: &Bed| {
            let data = bed.ks.evictable_bytes() as i64;
            assert!((data - live).abs() < flushed / 20, "{data}, {live} {steps:?}");
        };
        is_data(&bed);
        assert_eq!(bed.flushed().0 + bed.flushed().1, flushed);
        assert_eq!(bed.flushed().1 > 0, steps.is_some(), "the snapshot has what it needs");
        assert_eq!(bed.flushed().0 > flushed / 10, steps != Some(0), "and not what it has passed");
        while bed.running.is_some() && !bed.step() {
            is_data(&bed);
        }
        while bed.cutter.reclaim(100) {
            is_data(&bed);
        }
        assert_eq!(bed.flushed(), (0, 0));
        is_data(&bed);
    }
}
