//! The chain of a bucket: the bucket itself and its overflow buckets.
//!
//! ```text
//! home bucket                     overflow bucket              overflow bucket
//! +----+----+- -+----+------+     +----+----+- -+----+------+  +----+----+----+-
//! | e0 | e1 |   | e6 | link |---->| e7 | e8 |   | e13| link |->| e14| e15| 0  |
//! +----+----+- -+----+------+     +----+----+- -+----+------+  +----+----+----+-
//!   0    1        6    7
//! ```
//!
//! Entries stand without holes: `push` adds at the end, and `pop` takes from the end, so a removal
//! moves the last entry into the hole. A bucket of eight entries gets an overflow bucket with the
//! ninth: its last entry moves there, and the link takes its word. An overflow bucket is freed with
//! its last entry.

use crate::bucket::{Bucket, WORDS, Word};
use crate::workspace::Workspace;

/// Adds a word at the end of a bucket's chain.
#[inline]
pub(crate) fn push(work: &mut Workspace<'_>, bucket: &Bucket, word: Word) {
    let mut bucket = bucket;
    loop {
        for at in 0..WORDS {
            if bucket.word(at) == Word::EMPTY {
                bucket.set(at, word);
                return;
            }
        }
        let last = bucket.word(WORDS - 1);
        if last.is_link() {
            bucket = work.mem.bucket(last.link_id());
            continue;
        }
        let id = work.pages.alloc(work.mem, 0);
        let overflow = work.mem.bucket(id);
        overflow.set(0, last);
        overflow.set(1, word);
        bucket.set(WORDS - 1, Word::link(id));
        return;
    }
}

/// Removes the last word of a bucket's chain, which must not be empty, and returns it.
#[inline]
pub(crate) fn pop(work: &mut Workspace<'_>, bucket: &Bucket) -> Word {
    let (mut bucket, mut before) = (bucket, None);
    while bucket.word(WORDS - 1).is_link() {
        before = Some(bucket);
        bucket = work.mem.bucket(bucket.word(WORDS - 1).link_id());
    }
    let at = bucket.fill() - 1;
    let word = bucket.word(at);
    bucket.set(at, Word::EMPTY);
    if at == 0
        && let Some(before) = before
    {
        let id = before.word(WORDS - 1).link_id();
        before.set(WORDS - 1, Word::EMPTY);
        work.pages.free(work.mem, 0, id);
    }
    word
}

/// Empties a bucket's chain and returns its words, in the scratch vector: the caller puts that
/// back.
pub(crate) fn drain(work: &mut Workspace<'_>, bucket: &Bucket) -> Vec<Word> {
    let mut words = std::mem::take(work.scratch);
    let (mut bucket, mut own) = (bucket, None);
    loop {
        let last = bucket.word(WORDS - 1);
        for at in 0..WORDS {
            let word = bucket.word(at);
            if word.address().is_some() {
                words.push(word);
            }
            bucket.set(at, Word::EMPTY);
        }
        if let Some(id) = own {
            work.pages.free(work.mem, 0, id);
        }
        if !last.is_link() {
            return words;
        }
        own = Some(last.link_id());
        bucket = work.mem.bucket(last.link_id());
    }
}
