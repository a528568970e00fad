//! Short writes to shared pages, the way back to whole ones, and what a snapshot gives up.

use super::*;
use crate::shared::{set_copy_epoch, take_copied, take_returned};

const PART: usize = 4 << 10;
const LEN: usize = 40 * PAGE_BYTES + 77;

#[test]
fn a_short_write_to_a_shared_page_copies_a_part_of_it() {
    let mut blob = long(LEN);
    let (plain, _) = (blob.capacity(), take_copied());
    for (at, len, parts) in [(5, 3, 1), (PART - 1, 2, 2), (9 * PART, 4 * PART, 4)] {
        let held = blob.clone();
        let (mut model, old) = (blob.to_vec(), blob.to_vec());
        blob.write_at(at, &text(len, 1));
        model[at..at + len].copy_from_slice(&text(len, 1));
        let copied = take_copied() as usize;
        assert!((parts * PART..parts * PART + 2048).contains(&copied), "{copied} for {parts}");
        assert_eq!(patched(&blob), 1);
        // The page that both share counts for each of them.
        let more = blob.capacity() - plain;
        assert!((parts * PART..parts * PART + 300).contains(&more), "{more} for {parts}");
        check(&blob);
        assert!(blob == model[..] && held == old[..]);
        drop(held);
        blob.write_at(at, &text(1, 1));
        assert_eq!((patched(&blob), blob.capacity()), (0, plain), "merged by a write");
        assert_eq!(take_copied(), 0);
        assert!(blob.byte(at + len) == old.get(at + len).copied());
    }
}

#[test]
fn a_page_with_many_parts_becomes_whole() {
    let mut blob = long(LEN);
    let (plain, held) = (blob.capacity(), blob.clone());
    for part in 0..PARTS_MAX {
        blob.write_at(2 * part * PART + 7, b"short");
        assert_eq!(patched(&blob), 1, "after {part}");
    }
    blob.write_at(PART, b"short");
    assert_eq!((patched(&blob), blob.capacity()), (0, plain));
    check(&blob);
    assert!(held.pages_in(0..PAGE_BYTES).next().is_some_and(|run| run.len() == PAGE_BYTES));
    // Long writes, zeros and the last page are copied whole at once.
    blob.append_zeros(3 * PAGE_BYTES);
    let (over, zeros, last) = (5 * PAGE_BYTES, LEN + PAGE_BYTES, 43 * PAGE_BYTES + 9);
    for (at, len) in [(over, (PARTS_MAX + 1) * PART), (zeros, 9), (last, 9)] {
        let _held = blob.clone();
        blob.write_at(at, &text(len, 3));
        assert_eq!(patched(&blob), 0, "at {at}");
    }
    check(&blob);
}

/// A patched page does not stay because nobody writes to it: writes to others merge it.
#[test]
fn writes_elsewhere_merge_what_is_patched() {
    let mut blob = long(LEN);
    let (plain, held) = (blob.capacity(), blob.clone());
    for page in 0..40 {
        blob.write_at(page * PAGE_BYTES + 9, b"short");
    }
    let model = blob.to_vec();
    assert_eq!(patched(&blob), 40);
    let part = blob.slice(0..30 * PAGE_BYTES);
    drop(held);
    for _ in 0..60 {
        blob.write_at(LEN - 1, &model[LEN - 1..]);
    }
    assert_eq!(patched(&blob), 30, "a slice shares these");
    drop(part);
    for _ in 0..60 {
        blob.write_at(LEN - 1, &model[LEN - 1..]);
    }
    assert_eq!((patched(&blob), blob.capacity()), (0, plain));
    assert!(blob == model[..]);
    check(&blob);
}

/// Wherever the sweep is when the string becomes longer or shorter, it comes by every page.
#[test]
fn a_string_whose_length_changes_has_no_patched_pages_in_the_end() {
    for grows in [true, false] {
        for writes in 0..12 {
            let mut blob = long(LEN);
            let held = blob.clone();
            blob.write_at(0, b"short");
            drop(held);
            // Each one visits four pages.
            for _ in 0..writes {
                let held = blob.clone();
                blob.write_at(LEN - 1, b"s");
                drop(held);
            }
            if grows {
                blob.append_zeros(300 * PAGE_BYTES);
            } else {
                blob.truncate(30 * PAGE_BYTES);
            }
            for _ in 0..blob.page_count() {
                blob.write_at(blob.len() - 1, b"s");
            }
            assert_eq!(patched(&blob), 0, "after {writes} writes");
            check(&blob);
        }
    }
}

#[test]
fn what_is_released_is_free_for_its_writer() {
    let mut blob = long(300 * PAGE_BYTES);
    let mut held = blob.clone();
    blob.write_at(0, &text(PAGE_BYTES, 1));
    blob.write_at(PAGE_BYTES, &text(PAGE_BYTES, 1));
    _ = take_copied();
    assert_eq!(held.release(0..PAGE_BYTES - 1), 0, "no whole page");
    let freed = held.release(0..200 * PAGE_BYTES + 9);
    assert!((2 * PAGE_BYTES..2 * PAGE_BYTES + 100).contains(&freed), "{freed}");
    assert_eq!(take_copied(), 0, "it copies for nobody");
    check(&held);
    let all = long(300 * PAGE_BYTES).to_vec();
    assert!(held.pages_in(0..200 * PAGE_BYTES).flatten().all(|byte| *byte == 0));
    assert!(held.slice(200 * PAGE_BYTES..held.len()) == all[200 * PAGE_BYTES..]);
    blob.write_at(190 * PAGE_BYTES, b"in place");
    assert_eq!((take_copied(), patched(&blob)), (0, 0));
    blob.write_at(210 * PAGE_BYTES, b"patched");
    assert!(take_copied() > 0 && patched(&blob) == 1);
    held.release(0..held.len());
    assert!(held.capacity() < 10_000, "{}", held.capacity());
    let mut block = Blob::new(vec![1; 100]);
    assert_eq!((block.release(0..100), block.to_vec()), (0, vec![1; 100]));
}

/// What is patched in one epoch is not returned in another one.
#[test]
fn only_what_an_epoch_has_copied_returns() {
    let mut blob = long(LEN);
    for (epoch, returns) in [(7, true), (8, false)] {
        set_copy_epoch(7);
        let held = blob.clone();
        blob.write_at(100, b"short");
        set_copy_epoch(epoch);
        drop(held);
        _ = take_returned();
        blob.write_at(100, b"short");
        assert_eq!(patched(&blob), 0);
        assert_eq!(take_returned() > PART as u64, returns);
    }
    set_copy_epoch(0);
}

#[derive(Clone, Debug)]
enum Op {
    Write(usize, usize, u8),
    Append(usize),
    Truncate(usize),
    Hold,
    Drop(usize),
    Release(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let at = || prop_oneof![0..3 * PAGE_BYTES, 0..LEN, (0..40_usize).prop_map(|n| n * PAGE_BYTES)];
    let len = prop_oneof![4 => 0..20_usize, 2 => 0..3 * PART, 1 => 0..2 * PAGE_BYTES];
    let op = prop_oneof![
        12 => (at(), len, any::<u8>()).prop_map(|(at, len, seed)| Op::Write(at, len, seed)),
        1 => (0..PAGE_BYTES).prop_map(Op::Append),
        1 => (17 * PAGE_BYTES..LEN).prop_map(Op::Truncate),
        2 => Just(Op::Hold),
        1 => any::<usize>().prop_map(Op::Drop),
        2 => (0..PAGE_BYTES * 4).prop_map(Op::Release),
    ];
    prop::collection::vec(op, 1..60)
}

/// A clone that is given up from its beginning: what it was, and how far it is given up.
struct Held(Blob, Vec<u8>, usize);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 48 }))]

    /// Model: vectors. Of each clone, what is not released stays, and heap bytes are exact.
    #[test]
    fn patched_strings_are_vectors(ops in ops()) {
        let (mut blob, mut held) = (long(LEN), Vec::<Held>::new());
        let mut model = blob.to_vec();
        for op in ops {
            match op {
                Op::Write(at, len, seed) => {
                    let bytes = text(len, seed);
                    blob.write_at(at, &bytes);
                    model.resize(model.len().max(at + len).max(at), 0);
                    model[at..at + len].copy_from_slice(&bytes);
                }
                Op::Append(len) => {
                    blob.append(&text(len, 5));
                    model.extend(text(len, 5));
                }
                Op::Truncate(len) => {
                    blob.truncate(len.min(model.len()));
                    model.truncate(len);
                }
                Op::Hold => held.push(Held(blob.clone(), model.clone(), 0)),
                Op::Drop(at) if !held.is_empty() => drop(held.swap_remove(at % held.len())),
                Op::Release(by) if !held.is_empty() => {
                    let Held(blob, model, from) = &mut held[0];
                    let to = (*from + by).min(model.len());
                    blob.release(*from..to);
                    *from = to;
                }
                Op::Drop(_) | Op::Release(_) => {}
            }
            check(&blob);
            prop_assert!(blob == model[..]);
            for Held(blob, model, from) in &held {
                check(blob);
                prop_assert_eq!(blob.len(), model.len());
                prop_assert!(blob.pages_from(*from).flatten().eq(&model[*from..]));
            }
        }
    }

    /// Of one snapshot beside which strings are only overwritten, all that was copied of pages
    /// comes back, and never more.
    #[test]
    fn what_was_copied_comes_back(
        writes in prop::collection::vec((0..39 * PAGE_BYTES, 0..PAGE_BYTES / 8, 0..3_u8), 1..80),
    ) {
        let mut blob = long(LEN);
        let (plain, mut held) = (blob.capacity(), blob.clone());
        set_copy_epoch(9);
        (_, _) = (take_copied(), take_returned());
        let (mut copied, mut back, mut from) = (0, 0, 0);
        for (at, len, step) in writes {
            // Pages that are replaced as a whole, too.
            let page = at / PAGE_BYTES * PAGE_BYTES;
            let (at, len) = if step == 2 { (page, PAGE_BYTES) } else { (at, len) };
            blob.write_at(at, &text(len, 1));
            if step == 1 {
                back += held.release(from..from + PAGE_BYTES) as u64;
                from += PAGE_BYTES;
            }
            copied += take_copied();
            back += take_returned();
            prop_assert!(back <= copied, "{back} of {copied}");
        }
        back += held.release(from..LEN) as u64;
        let last = blob.byte(0).expect("it is there");
        for _ in 0..100 {
            blob.write_at(0, &[last]);
        }
        copied += take_copied();
        back += take_returned();
        prop_assert_eq!((patched(&blob), blob.capacity()), (0, plain));
        // What is left are a root and nodes.
        prop_assert!(back <= copied && copied - back < 4096, "{back} of {copied}");
        set_copy_epoch(0);
    }
}
