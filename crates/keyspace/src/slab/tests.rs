//! Allocation against a model; several workers at once; memory that is returned to the system.
#![allow(unsafe_code)]

use super::leaving::EXAMINED_MAX;
use super::{CLASS_MAX, Choice, EntryCache, EntryMem, EntryPages, SPAN, Source, class_bytes};
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

/// Fills spans with places of 64 bytes and frees all but each tenth of some spans. Returns what is
/// still held.
fn sparse(mem: &EntryMem, cache: &mut EntryCache, spans: usize, full: usize) -> Vec<Held> {
    let places = SPAN / 64;
    let held: Vec<_> = (0..spans * places).map(|_| alloc(mem, cache, 64, 1)).collect();
    let (kept, freed): (Vec<_>, Vec<_>) =
        held.into_iter().enumerate().partition(|(at, _)| at / places < full || at % 10 == 0);
    for (_, held) in &freed {
        free(mem, cache, held);
    }
    cache.return_all(mem);
    kept.into_iter().map(|(_, held)| held).collect()
}

fn choose(mem: &EntryMem) -> Option<Choice> {
    let mut choice = mem.begin_choice()?;
    while mem.choose(&mut choice) {}
    Some(choice)
}

fn end(mem: &EntryMem) {
    let mut from = Some(0);
    while let Some(at) = from {
        from = mem.end_leaving(at);
    }
}

/// Moves what stands in spans that are left, as the walk does.
fn move_all(mem: &EntryMem, cache: &mut EntryCache, held: &mut [Held]) -> usize {
    let leaving = mem.leaving().expect("a choice was made");
    cache.return_left(mem, &leaving);
    let (mut left, mut moved) = (Vec::new(), 0);
    for held in held {
        let address = held.place.as_ptr().expose_provenance() as u64;
        if mem.is_left(&leaving, address) {
            let mut source = Source { mem, cache };
            let place = source.alloc_place(64).expect("there is room");
            source.vacate(64);
            assert!(!mem.is_left(&leaving, place.as_ptr().expose_provenance() as u64));
            // SAFETY: two places of 64 bytes, both of which are ours.
            unsafe { place.copy_from_nonoverlapping(held.place, 8) };
            held.place = place;
            left.push(address);
            moved += 1;
        }
    }
    mem.free_left(&mut left);
    moved
}

/// The full spans stay, and the others move together: the spans with the highest addresses are
/// left.
#[test]
fn the_emptiest_spans_are_left_and_become_free() {
    let mem = EntryMem::with_bytes(64 << 20);
    let mut cache = EntryCache::continuing(0);
    let mut held = sparse(&mem, &mut cache, 40, 10);
    let choice = choose(&mem).expect("30 spans are nearly empty");
    // The 30 have 10 % each: three spans full, and one in reserve.
    assert_eq!(choice.chosen, 26);
    let leaving = mem.leaving().expect("chosen");
    assert!((0..14).all(|n| !leaving.has(n)) && (14..40).all(|n| leaving.has(n)));
    let bytes = cache.bytes;
    let moved = move_all(&mem, &mut cache, &mut held);
    assert!(moved > 26 * SPAN / 64 / 11, "{moved}");
    cache.return_all(&mem);
    assert_eq!((mem.pages().active, cache.bytes), (14 * SPAN as u64, bytes));
    assert!((14..40).all(|n| !leaving.has(n)), "a free span is not left");
    end(&mem);
    assert!(mem.leaving().is_none() && choose(&mem).is_none(), "nothing is to spare");
    for held in &held {
        free(&mem, &mut cache, held);
    }
    cache.return_all(&mem);
    mem.trim(true);
    assert_eq!(mem.pages(), EntryPages::default());
}

/// While a span is left its places are not allocated, not even those that were freed meanwhile, and
/// a span that became free is. Afterwards all are.
#[test]
fn no_place_of_a_span_that_is_left_is_allocated() {
    let mem = EntryMem::with_bytes(64 << 20);
    let mut cache = EntryCache::continuing(0);
    let mut held = sparse(&mem, &mut cache, 8, 0);
    let leaving = choose(&mem).expect("they are nearly empty").leaving;
    let is_left =
        |held: &Held| mem.is_left(&leaving, held.place.as_ptr().expose_provenance() as u64);
    // Places that a worker frees meanwhile.
    let at = held.iter().position(is_left).expect("most are");
    free(&mem, &mut cache, &held.swap_remove(at));
    cache.return_left(&mem, &leaving);
    let more: Vec<_> = (0..4 * SPAN / 64).map(|_| alloc(&mem, &mut cache, 64, 2)).collect();
    assert!(more.iter().all(|held| !is_left(held)), "none of them is handed out");
    let active = mem.pages().active;
    end(&mem);
    let again: Vec<_> = (0..3 * SPAN / 64).map(|_| alloc(&mem, &mut cache, 64, 3)).collect();
    assert_eq!(mem.pages().active, active, "free places of the spans are used again");
    for held in held.iter().chain(&more).chain(&again) {
        free(&mem, &mut cache, held);
    }
}

#[test]
#[should_panic(expected = "a place is given back once")]
fn a_place_that_is_freed_twice_is_found() {
    let mem = EntryMem::with_bytes(64 << 20);
    let mut cache = EntryCache::continuing(0);
    let held = sparse(&mem, &mut cache, 4, 0);
    let address = held[0].place.as_ptr().expose_provenance() as u64;
    mem.free_left(&mut vec![address, address]);
}

/// A choice and its end examine a bounded number of spans under the mutex.
#[test]
fn a_choice_is_made_in_bounded_steps() {
    let mem = EntryMem::with_bytes(256 << 20);
    let mut cache = EntryCache::continuing(0);
    let spans = 3 * EXAMINED_MAX;
    let held: Vec<_> = (0..spans * 8).map(|_| alloc(&mem, &mut cache, CLASS_MAX, 1)).collect();
    for (at, held) in held.iter().enumerate() {
        if at % 8 != 0 {
            free(&mem, &mut cache, held);
        }
    }
    cache.return_all(&mem);
    let mut choice = mem.begin_choice().expect("seven of eight places are free");
    let (mut steps, mut before) = (0, 0);
    while mem.choose(&mut choice) {
        steps += 1;
        assert!(choice.chosen - before <= EXAMINED_MAX as u32);
        before = choice.chosen;
    }
    assert!((2..=4).contains(&steps), "{steps}");
    assert!(choice.chosen as usize > spans * 8 / 10, "{}", choice.chosen);
    let mut ends = 0;
    let mut from = Some(0);
    while let Some(at) = from {
        from = mem.end_leaving(at);
        ends += 1;
    }
    assert!((3..=4).contains(&ends), "{ends}");
    for held in held.iter().step_by(8) {
        free(&mem, &mut cache, held);
    }
}
