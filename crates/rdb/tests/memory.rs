//! What a value costs while it is read: no more than a small multiple of its bytes, whatever is in
//! it.
#![allow(unsafe_code)] // an allocator that counts

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rdb::{Error, Owned, VERSION, seal, types};

thread_local! {
    /// Bytes that this thread has now, and the most that it had.
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(more: usize, less: usize) {
    // The counters of an ending thread are gone. Such a thread is not measured.
    let _ = NOW.try_with(|now| {
        now.set((now.get() + more).saturating_sub(less));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promise is handed on; the block came from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, 0); // both exist while it is copied
        count(0, layout.size());
        // SAFETY: the caller's promise is handed on; the block came from the same allocator.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `f` had at a time.
fn peak<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = f();
    (result, PEAK.get() - before)
}

/// Bytes of an element in a node: a digit, a text of one byte, an integer of eight bytes.
const DIGIT: &[u8] = b"\x07\x01";
const LETTER: &[u8] = b"\x81a\x02";
const INTEGER: &[u8] = b"\xf4\x01\x80\x80\x80\x80\x80\x80\x80\x09";

/// A number as an element.
fn number(n: usize) -> Vec<u8> {
    [&[0xf3][..], &(n as u32).to_le_bytes(), &[5]].concat()
}

/// A payload with a stream of one node with these elements. Nothing is compressed.
fn stream(count: usize, elements: &[u8]) -> Vec<u8> {
    let total = (elements.len() + 7) as u32;
    let node = [&total.to_le_bytes()[..], b"\xff\xff", elements, b"\xff"].concat();
    let long = |n: usize| [&[0x80][..], &(n as u32).to_be_bytes()].concat();
    let id = [[0; 7].as_slice(), &[1], &[0; 8]].concat();
    let last = [long(count + 1), vec![0]].concat();
    let head = [&[types::STREAM, 1, 16], &id[..], &long(node.len())].concat();
    let mut payload = [head, node, long(count), last, vec![0]].concat();
    seal(&mut payload, VERSION);
    payload
}

/// A stream of one entry with so many fields: its own ones, or those of the node.
fn wide(fields: usize, own: bool, element: &[u8]) -> Vec<u8> {
    let many = |n: usize| element.repeat(n);
    let [zero, one] = [0, 1].map(number);
    let names = if own { 1 } else { fields };
    let head = [one.clone(), zero.clone(), number(names), many(names), zero.clone()].concat();
    let flags = number(if own { 0 } else { 2 });
    let entry = [flags, zero.clone(), zero].concat();
    let takes = if own { 4 + 2 * fields } else { 3 + fields };
    let body = if own { [number(fields), many(2 * fields)].concat() } else { many(fields) };
    stream(1, &[head, entry, body, number(takes)].concat())
}

/// A stream of so many entries with one field.
fn long(entries: usize, element: &[u8]) -> Vec<u8> {
    let head = [number(entries), number(0), number(1), element.to_vec(), number(0)].concat();
    let entry = |n| [number(2), number(n), number(0), element.to_vec(), number(4)].concat();
    stream(entries, &[head, (0..entries).flat_map(entry).collect()].concat())
}

/// Elements of a few bytes were read into a vector each: a file of 227 KB, compressed, took half a
/// gigabyte.
#[test]
fn a_stream_costs_a_small_multiple_of_its_bytes() {
    for element in [DIGIT, LETTER, INTEGER] {
        for (what, payload) in [
            ("fields of its own", wide(100_000, true, element)),
            ("fields of the node", wide(100_000, false, element)),
            ("entries", long(100_000, element)),
        ] {
            let (read, peak) = peak(|| Owned::restore(&payload));
            let Owned::Stream(stream) = read.expect("it is whole") else { panic!("a stream") };
            let (len, factor) = (stream.len(), peak as f64 / payload.len() as f64);
            assert_eq!(len, if what == "entries" { 100_000 } else { 1 });
            println!("{what} {}: {factor:.1}", element.escape_ascii());
            assert!(
                factor < 6.0,
                "{what} {}: {peak} bytes for {}",
                element.escape_ascii(),
                payload.len()
            );
        }
    }
}

/// What is only claimed costs nothing.
#[test]
fn a_stream_without_its_elements_costs_nothing() {
    for own in [false, true] {
        let whole = wide(100_000, own, DIGIT);
        // The node ends behind the first elements, and the payload with it.
        let mut cut = whole[..200].to_vec();
        let node_at = 1 + 1 + 1 + 16 + 5;
        cut[node_at - 4..node_at].copy_from_slice(&(200 - node_at as u32).to_be_bytes());
        cut[node_at..node_at + 4].copy_from_slice(&(200 - node_at as u32).to_le_bytes());
        seal(&mut cut, VERSION);
        let (read, peak) = peak(|| Owned::restore(&cut));
        assert_eq!(read.expect_err("the elements are missing"), Error::Corrupt);
        assert!(peak < 8 * cut.len(), "{peak} bytes for {}", cut.len());
    }
}
