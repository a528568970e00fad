//! Allocation against a model; several workers at once; memory that is returned to the system.
#![allow(unsafe_code)]

use super::{CLASS_MAX, EntryCache, EntryMem, EntryPages, SPAN, Source, class_bytes};
use base::sync::Mutex;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;

/// A place filled with one byte value.
struct Held {
    place: NonNull<u64>,
    size: usize,
    byte: u8,
}

// SAFETY: a place belongs to the owner of its `Held`.
unsafe impl Send for Held {}

fn alloc(mem: &EntryMem, cache: &mut EntryCache, size: usize, byte: u8) -> Held {
    let place = Source { mem, cache }.alloc(size);
    // SAFETY: the place has as many bytes as its class, and is ours.
    unsafe { place.cast::<u8>().write_bytes(byte, class_bytes(size)) };
    Held { place, size, byte }
}

fn free(mem: &EntryMem, cache: &mut EntryCache, held: &Held) {
    // SAFETY: written by `alloc`, and still owned.
    let bytes = unsafe {
        std::slice::from_raw_parts(held.place.cast::<u8>().as_ptr(), class_bytes(held.size))
    };
    assert!(bytes.iter().all(|b| *b == held.byte), "nobody else writes to a place");
    // SAFETY: taken with this size, and freed only once.
    unsafe { Source { mem, cache }.free(held.place, held.size) };
}

#[derive(Clone, Debug)]
enum Step {
    Take { worker: usize, size: usize, count: usize },
    Give { worker: usize, pick: usize, count: usize },
    Purge,
    Leave { worker: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sizes = prop_oneof![8..64_usize, Just(88_usize), 64..1200_usize, 1000..CLASS_MAX + 2000];
    let step = prop_oneof![
        4 => (0..3_usize, sizes, 1..400_usize).prop_map(|(worker, size, count)| Step::Take { worker, size, count }),
        4 => (0..3_usize, any::<usize>(), 1..600_usize).prop_map(|(worker, pick, count)| Step::Give { worker, pick, count }),
        1 => Just(Step::Purge),
        1 => (0..3_usize).prop_map(|worker| Step::Leave { worker }),
    ];
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 64 }, ..ProptestConfig::default() })]

    /// No place is allocated twice, and all bytes are freed in the end. A range of one huge page is
    /// soon full. Then places come from the process's allocator.
    #[test]
    fn allocation_matches_a_model(steps in steps(), chunks in 1..3_u32) {
        let mem = EntryMem::with_bytes(1 << (20 + chunks));
        let mut caches: Vec<_> = (0..3).map(|_| EntryCache::continuing(0)).collect();
        let mut model: BTreeMap<usize, Held> = BTreeMap::new();
        let mut bytes = 0;
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Take { worker, size, count } => for _ in 0..count {
                    let held = alloc(&mem, &mut caches[worker], size, n as u8);
                    let (at, len) = (held.place.as_ptr().addr(), class_bytes(size));
                    prop_assert_eq!(at % 8, 0);
                    let below = model.range(..at + len).next_back();
                    prop_assert!(below.is_none_or(|(start, other)| start + class_bytes(other.size) <= at));
                    bytes += if mem.offset(at as u64).is_some() { len as i64 } else { 0 };
                    model.insert(at, held);
                },
                Step::Give { worker, pick, count } => for i in 0..count.min(model.len()) {
                    let at = *model.keys().nth((pick ^ i) % model.len()).expect("one of them");
                    let held = model.remove(&at).expect("it is there");
                    bytes -= if mem.offset(at as u64).is_some() { class_bytes(held.size) as i64 } else { 0 };
                    free(&mem, &mut caches[worker], &held);
                },
                Step::Purge => mem.trim(true),
                Step::Leave { worker } => caches[worker].return_all(&mem),
            }
            prop_assert_eq!(caches.iter().map(|c| c.bytes).sum::<i64>(), bytes);
            prop_assert!(mem.pages().active as i64 >= bytes);
        }
        for held in model.values() {
            free(&mem, &mut caches[0], held);
        }
        for cache in &mut caches {
            cache.return_all(&mem);
        }
        mem.trim(true);
        prop_assert_eq!(mem.pages(), EntryPages::default());
    }
}

#[test]
fn workers_free_what_others_allocated() {
    const WORKERS: usize = 4;
    let rounds = if cfg!(miri) { 300 } else { 40_000 };
    let mem = EntryMem::with_bytes(64 << 20);
    let swap: Vec<_> = (0..WORKERS).map(|_| Mutex::new(Vec::new())).collect();
    base::sync::thread::scope(|scope| {
        for me in 0..WORKERS {
            let (mem, swap) = (&mem, &swap);
            scope.spawn(move || {
                let mut cache = EntryCache::continuing(0);
                let mut random = 88 + me;
                for round in 0..rounds {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let size = 8 + (random >> 40) % if round % 64 == 0 { 4000 } else { 200 };
                    let held = alloc(mem, &mut cache, size, round as u8);
                    let to = &swap[(random >> 33) % WORKERS];
                    to.lock().expect("no panic while it is held").push(held);
                    let mut mine = swap[me].lock().expect("no panic while it is held");
                    if mine.len() > 500 {
                        for held in mine.drain(..) {
                            free(mem, &mut cache, &held);
                        }
                    }
                }
                cache.return_all(mem);
            });
        }
    });
    let mut cache = EntryCache::continuing(0);
    for held in swap.iter().flat_map(|s| s.lock().expect("no panic while it is held").split_off(0))
    {
        free(&mem, &mut cache, &held);
    }
    cache.return_all(&mem);
    assert_eq!(mem.pages().active, 0);
}

#[test]
fn free_spans_are_returned_to_the_system_and_reused() {
    let mem = EntryMem::with_bytes(64 << 20);
    let mut cache = EntryCache::continuing(0);
    let fill = |cache: &mut EntryCache, size: usize, count: usize| -> Vec<Held> {
        (0..count).map(|_| alloc(&mem, cache, size, 1)).collect()
    };
    let many = (32 << 20) / 64;
    let held = fill(&mut cache, 64, many);
    assert_eq!(mem.pages(), EntryPages { active: 32 << 20, resident: 32 << 20 });
    for held in &held {
        free(&mem, &mut cache, held);
    }
    cache.return_all(&mem);
    let EntryPages { active, resident } = mem.pages();
    assert_eq!(active, 0);
    assert!((1..=4 << 20).contains(&resident), "some of it is kept, no more: {resident}");
    let held = fill(&mut cache, 200, 100);
    assert_eq!(mem.pages().resident, resident, "another class gets what was kept");
    for held in &held {
        free(&mem, &mut cache, held);
    }
    cache.return_all(&mem);
    mem.trim(true);
    assert_eq!(mem.pages(), EntryPages::default());
    // SAFETY: the first place is free, and its memory was returned to the system.
    assert_eq!(unsafe { mem.range.base().read() }, 0, "what goes back is forgotten");
}

#[test]
fn allocation_prefers_the_fullest_span() {
    let mem = EntryMem::with_bytes(64 << 20);
    let mut cache = EntryCache::continuing(0);
    let places = SPAN / 64;
    let held: Vec<_> = (0..4 * places).map(|_| alloc(&mem, &mut cache, 64, 1)).collect();
    // Three spans keep a tenth of their places, the fourth keeps nine tenths.
    for (at, held) in held.iter().enumerate() {
        if (at % 10 == 0) == (at / places == 3) {
            free(&mem, &mut cache, held);
        }
    }
    cache.return_all(&mem);
    let start = mem.base + 3 * SPAN as u64;
    for _ in 0..places / 10 {
        let held = alloc(&mem, &mut cache, 64, 2);
        let at = held.place.as_ptr().addr() as u64;
        assert!((start..start + SPAN as u64).contains(&at), "a place of the fourth span");
    }
}

/// A place which is never allocated again would be lost while its span is in use, and no counter
/// would show it.
#[test]
fn every_free_place_of_a_partly_used_span_is_reallocated() {
    for size in [8, 64, 88, 1000] {
        let mem = EntryMem::with_bytes(4 << 20);
        let mut cache = EntryCache::continuing(0);
        let places = SPAN / class_bytes(size);
        let held: Vec<_> = (0..places).map(|_| alloc(&mem, &mut cache, size, 1)).collect();
        let addresses = |held: &[Held]| -> BTreeSet<usize> {
            held.iter().map(|held| held.place.as_ptr().addr()).collect()
        };
        for held in &held[1..] {
            free(&mem, &mut cache, held);
        }
        cache.return_all(&mem);
        let again: Vec<_> = (1..places).map(|_| alloc(&mem, &mut cache, size, 2)).collect();
        assert_eq!(addresses(&again), addresses(&held[1..]), "of {size} bytes");
        for held in again.iter().chain(&held[..1]) {
            free(&mem, &mut cache, held);
        }
    }
}
