//! Strings against vectors, counted pages, and memory.

use super::page::PARTS_MAX;
use super::tree::FANOUT;
use super::*;
use proptest::prelude::*;

/// Addresses of the nodes and pages of a string of pages.
fn addresses(blob: &Blob) -> (Vec<usize>, Vec<usize>) {
    match &*blob.0 {
        Body::Block(_) => unreachable!("a string of pages is expected"),
        Body::Pages(tree) => tree.addresses(),
    }
}

/// How many nodes and pages of `new` are not in `old`.
fn copied(old: &Blob, new: &Blob) -> (usize, usize) {
    let ((old_nodes, old_pages), (nodes, pages)) = (addresses(old), addresses(new));
    let others = |new: &[usize], old: &[usize]| new.iter().filter(|at| !old.contains(at)).count();
    (others(&nodes, &old_nodes), others(&pages, &old_pages))
}

/// Checks what holds for every string.
fn check(blob: &Blob) {
    assert_eq!(blob.is_paged(), blob.len() > BLOCK_MAX);
    assert!(blob.pages().all(|run| !run.is_empty()));
    if let Body::Pages(tree) = &*blob.0 {
        assert_eq!(tree.heap(), tree.walked_heap());
        assert_eq!(tree.addresses().1.len(), tree.page_count());
        assert_eq!(tree.addresses().0.len(), tree.page_count().div_ceil(FANOUT));
        let shape = tree.shape();
        let (last, others) = shape.split_last().expect("it has pages");
        assert!(others.iter().all(|(len, _)| *len == PAGE_BYTES));
        assert_eq!(others.len() * PAGE_BYTES + last.0, blob.len());
    }
}

/// How many pages are patched.
fn patched(blob: &Blob) -> usize {
    match &*blob.0 {
        Body::Block(_) => 0,
        Body::Pages(tree) => tree.shape().iter().filter(|(_, is_patched)| *is_patched).count(),
    }
}

fn text(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

/// A string of `len` bytes which is not zeros.
fn long(len: usize) -> Blob {
    let piece = text(PAGE_BYTES, 7);
    let mut builder = Builder::with_len(len);
    while builder.len() < len {
        builder.extend(&piece[..piece.len().min(len - builder.len())]);
    }
    builder.finish()
}

#[test]
fn a_reader_keeps_what_it_saw() {
    let mut written = Blob::from(b"old".as_slice());
    let seen = written.clone();
    assert!(written.is_shared() && written.is_same(&seen));
    written.append(b"er");
    assert_eq!((seen.to_vec(), written.to_vec()), (b"old".to_vec(), b"older".to_vec()));
    assert!(!written.is_shared(), "the copy belongs to the writer alone");
    let place = written.contiguous().map(<[u8]>::as_ptr);
    written.write_at(0, b"O");
    assert_eq!(written.contiguous().map(<[u8]>::as_ptr), place, "changed in place");
}

#[test]
fn a_block_is_not_copied_on_the_way_in() {
    let bytes = Vec::with_capacity(100);
    let place = bytes.as_ptr();
    let blob = Blob::new(bytes);
    assert_eq!(blob.contiguous().map(<[u8]>::as_ptr), Some(place));
    assert_eq!((blob.len(), blob.capacity(), blob.is_empty()), (0, 100, true));
}

#[test]
fn a_string_above_the_bound_is_pages() {
    for len in [BLOCK_MAX - 1, BLOCK_MAX, BLOCK_MAX + 1] {
        let blob = long(len);
        check(&blob);
        assert_eq!(blob.len(), len);
        assert_eq!(blob, Blob::new(blob.to_vec()));
        assert_eq!(blob.contiguous().is_some(), len <= BLOCK_MAX);
    }
}

#[test]
fn a_small_write_to_a_shared_string_copies_its_way() {
    let mut blob = long(256 << 20);
    for at in [0, 1 << 20, (100 << 20) + 5, (256 << 20) - 3, PAGE_BYTES - 2] {
        let held = blob.clone();
        blob.write_at(at, b"xyz");
        let (nodes, pages) = copied(&held, &blob);
        assert!(nodes == 1 && pages <= 2, "{nodes} nodes and {pages} pages at {at}");
        let held = blob.clone();
        blob.append(b"xyz");
        let (nodes, pages) = copied(&held, &blob);
        assert!(nodes == 1 && pages == 1, "{nodes} nodes and {pages} pages at the end");
    }
    let before = addresses(&blob);
    blob.write_at(77 << 20, b"in place");
    assert_eq!(addresses(&blob), before, "an unshared string is changed in place");
}

#[test]
fn zeros_cost_nothing() {
    let mut blob = Blob::default();
    blob.write_at((512 << 20) - 1, b"\x01");
    check(&blob);
    assert_eq!((blob.len(), blob.byte((512 << 20) - 1)), (512 << 20, Some(1)));
    assert!(blob.capacity() < 4 * PAGE_BYTES, "{} bytes", blob.capacity());
    assert!(blob.pages().flatten().take(3 << 20).all(|byte| *byte == 0));
    blob.write_at(200 << 20, b"one");
    check(&blob);
    assert!(blob.capacity() < 6 * PAGE_BYTES, "{} bytes", blob.capacity());
    assert_eq!(blob.slice((200 << 20)..(200 << 20) + 4).to_vec(), b"one\0");
}

#[test]
fn memory_is_close_to_the_bytes() {
    for len in [BLOCK_MAX + 1, 1_500_000, 10 << 20, (64 << 20) + 1] {
        let blob = long(len);
        assert!(blob.capacity() as f64 <= 1.02 * len as f64, "{} of {len}", blob.capacity());
        let mut appended = blob.clone();
        for _ in 0..1000 {
            appended.append(b"appended in small pieces");
            assert!(appended.capacity() as f64 <= 1.02 * appended.len() as f64);
        }
        check(&appended);
    }
}

#[test]
fn a_slice_at_the_border_of_a_page_shares_pages() {
    let blob = long(40 << 20);
    for (from, to) in [(0, 20 << 20), (16 << 20, 40 << 20), (3 * PAGE_BYTES, (30 << 20) + 9)] {
        let part = blob.slice(from..to);
        check(&part);
        assert_eq!(part.to_vec(), blob.to_vec()[from..to]);
        assert!(copied(&blob, &part).1 <= 1, "all whole pages are shared");
    }
    assert_eq!(blob.slice(5..(30 << 20)).to_vec(), blob.to_vec()[5..30 << 20]);
    assert!(blob.slice(0..blob.len()).is_same(&blob));
}

/// Where a change begins: near borders of pages, nodes, the block, and anywhere.
fn place() -> impl Strategy<Value = usize> {
    prop_oneof![
        (0..40_usize, -3..4_isize)
            .prop_map(|(page, by)| (page * PAGE_BYTES).saturating_add_signed(by)),
        (-3..4_isize).prop_map(|by| BLOCK_MAX.saturating_add_signed(by)),
        (-3..4_isize).prop_map(|by| (FANOUT * PAGE_BYTES).saturating_add_signed(by)),
        0..3 * BLOCK_MAX,
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, u8),
    Append(usize, u8),
    Zeros(usize),
    Truncate(usize),
    Slice(usize, usize),
    Hold,
    Release(usize),
    Resume(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = || prop_oneof![0..10_usize, 0..3 * PAGE_BYTES, Just(PAGE_BYTES), place()];
    let step = prop_oneof![
        4 => (place(), length(), any::<u8>()).prop_map(|(at, len, seed)| Step::Write(at, len, seed)),
        3 => (length(), any::<u8>()).prop_map(|(len, seed)| Step::Append(len, seed)),
        1 => place().prop_map(Step::Zeros),
        2 => place().prop_map(Step::Truncate),
        1 => (place(), place()).prop_map(|(a, b)| Step::Slice(a.min(b), a.max(b))),
        3 => Just(Step::Hold),
        1 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::Resume),
    ];
    prop::collection::vec(step, 1..24)
}

fn apply(blob: &mut Blob, model: &mut Vec<u8>, step: &Step) {
    match *step {
        Step::Write(at, len, seed) => {
            let bytes = text(len, seed);
            blob.write_at(at, &bytes);
            model.resize(model.len().max(at + len).max(at), 0);
            model[at..at + len].copy_from_slice(&bytes);
        }
        Step::Append(len, seed) => {
            blob.append(&text(len, seed));
            model.extend(text(len, seed));
        }
        Step::Zeros(count) => {
            blob.append_zeros(count);
            model.resize(model.len() + count, 0);
        }
        Step::Truncate(len) => {
            blob.truncate(len.min(model.len()));
            model.truncate(len);
        }
        Step::Slice(from, to) => {
            let (from, to) = (from.min(model.len()), to.min(model.len()));
            *blob = blob.slice(from..to);
            *model = model[from..to].to_vec();
        }
        Step::Hold | Step::Release(_) | Step::Resume(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    /// Model: a vector. Clones are held, and keep what they saw whatever is changed later.
    #[test]
    fn it_is_a_vector(steps in steps()) {
        let (mut blob, mut model) = (Blob::default(), Vec::new());
        let mut held: Vec<(Blob, Vec<u8>)> = Vec::new();
        for step in steps {
            match step {
                Step::Hold => held.push((blob.clone(), model.clone())),
                Step::Release(at) if !held.is_empty() => drop(held.swap_remove(at % held.len())),
                Step::Resume(at) if !held.is_empty() => {
                    (blob, model) = held[at % held.len()].clone();
                }
                ref step => apply(&mut blob, &mut model, step),
            }
            check(&blob);
            prop_assert!(blob == model[..], "after {:?}", step);
            for (blob, model) in &held {
                check(blob);
                prop_assert!(*blob == model[..], "held, after {:?}", step);
            }
        }
        for (at, byte) in model.iter().enumerate().step_by(9973) {
            prop_assert_eq!(blob.byte(at), Some(*byte));
            let runs: usize = blob.pages_from(at).map(<[u8]>::len).sum();
            prop_assert_eq!(runs, model.len() - at);
        }
        prop_assert_eq!(blob.byte(model.len()), None);
        prop_assert_eq!(blob.to_vec(), model);
    }

    /// A builder gives the bytes that it got, in whatever parts and with whatever length expected.
    #[test]
    fn a_builder_keeps_every_byte(parts in prop::collection::vec(0..200_000_usize, 0..20), expected in place()) {
        let (mut builder, mut model) = (Builder::with_len(expected), Vec::new());
        for (seed, len) in parts.into_iter().enumerate() {
            builder.extend(&text(len, seed as u8));
            model.extend(text(len, seed as u8));
        }
        let blob = builder.finish();
        check(&blob);
        prop_assert!(blob == model[..]);
    }

    /// Bytes that are appended in place, as many as there is room or fewer, or none, with parts
    /// that are copied in between. Memory is at most twice what has come.
    #[test]
    fn a_builder_is_filled_in_place(
        parts in prop::collection::vec((0..150_000_usize, 0..4_u8), 1..60),
        expected in place(),
    ) {
        let (mut builder, mut model) = (Builder::with_len(expected), Vec::new());
        for (seed, (len, how)) in parts.into_iter().enumerate() {
            let left = expected - model.len();
            if left == 0 {
                break;
            }
            let mut bytes = text(len.min(left), seed as u8);
            if how == 0 {
                builder.extend(&bytes);
            } else {
                let room = builder.fill(|page| {
                    let room = page.capacity() - page.len();
                    bytes.truncate(room);
                    page.extend_from_slice(&bytes);
                    room
                });
                prop_assert!((1..=left).contains(&room));
            }
            model.extend(bytes);
            prop_assert_eq!(builder.len(), model.len());
            prop_assert!(builder.capacity() <= 2 * model.len() + (16 << 10));
        }
        let blob = builder.finish();
        check(&blob);
        prop_assert!(blob == model[..]);
    }
}

mod patched;
mod several;
