//! What a snapshot costs: `snapshot [KEYS]`. Prints the time per key of a walk without writers, and
//! of a SET in place without a snapshot and ahead of the walker, the first time and again.
//! `docs/design/0018-snapshot.md` has the numbers.

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::snapshot::{Root, Sink, Snapshot, Step};
use keyspace::{Access, Entry, Event, Intent, Keyspace, Options};
use std::time::Instant;
use value::NewStr;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_700_000_000_000);

/// Copies keys and values into a buffer, which is emptied when it is full.
struct Copies(Vec<u8>);

impl Sink for Copies {
    fn small(&mut self, _: DbIndex, entry: Entry<'_>) {
        if self.0.len() > 1 << 20 {
            self.0.clear();
        }
        self.0.extend_from_slice(entry.key());
        if let value::Str::Bytes(bytes) = entry.str() {
            self.0.extend_from_slice(bytes);
        }
    }

    fn large(&mut self, _: DbIndex, _: Entry<'_>, _: Root) {}
}

/// Writes all keys in batches, with prefetches, as a worker does.
fn set_all(access: &mut Access, names: &[String], byte: u8) {
    let ks = Arc::clone(access.keyspace());
    for batch in names.chunks(64) {
        assert!(access.enter());
        let keys: Vec<_> = batch.iter().map(|name| ks.key(name.as_bytes())).collect();
        for key in &keys {
            ks.prefetch_slot(key.slot);
        }
        let buckets: Vec<_> =
            keys.iter().map(|key| ks.prefetch_bucket(key.slot, key.hash, DB)).collect();
        for bucket in buckets {
            ks.prefetch_entry(bucket);
        }
        for key in keys {
            let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
            guard.insert(Event::SILENT, DB, &key, NewStr::Raw(&[byte; 64]), None);
            guard.commit();
        }
        access.leave();
    }
}

/// Runs `f` and prints its time per key.
fn timed(what: &str, keys: usize, f: impl FnOnce()) {
    let start = Instant::now();
    f();
    let ns = start.elapsed().as_nanos() as f64 / keys as f64;
    println!("{what:40} {ns:7.0} ns per key");
}

fn cut(access: &mut Access) -> Snapshot {
    access.try_world().expect("nobody is inside");
    let snapshot = access.cut(u64::MAX).expect("none runs");
    access.open_world();
    snapshot
}

fn walk(mut snapshot: Snapshot, walker: &mut Access) {
    let mut sink = Copies(Vec::new());
    while snapshot.step(walker, &mut sink) != Step::Complete {}
}

fn main() {
    let keys = std::env::args().nth(1).map_or(1_000_000, |n| n.parse().expect("a number"));
    let ks = Arc::new(Keyspace::new(&Options { databases: 16, hash_secret: 1, workers: 2 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    let mut walker = access.further().expect("there is room");
    let names: Vec<String> = (0..keys).map(|n| format!("key:{n:012}")).collect();
    set_all(&mut access, &names, b'a');
    timed("SET without a snapshot", keys, || set_all(&mut access, &names, b'b'));
    let mut snapshot = None;
    timed("cut, in all", 1, || snapshot = Some(cut(&mut access)));
    let snapshot = snapshot.expect("it was just made");
    timed("walk without writers", keys, || walk(snapshot, &mut walker));
    let snapshot = cut(&mut access);
    timed("SET ahead of the walker, captured", keys, || set_all(&mut access, &names, b'c'));
    timed("SET ahead of the walker, again", keys, || set_all(&mut access, &names, b'd'));
    println!("{:40} {:7.0} MB", "captured", ks.captured_bytes() as f64 / 1e6);
    timed("walk of captured keys", keys, || walk(snapshot, &mut walker));
}
