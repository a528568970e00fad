//! A reference-counted string of bytes for values too big to copy under a lock.
//!
//! A reader takes a reference under the slot's guard and sends the bytes after releasing it. A
//! writer which holds the only reference changes the bytes in place; otherwise it copies what it
//! changes.
//!
//! A string of at most [`BLOCK_MAX`] bytes is one block of memory, which is copied whole. A longer
//! one is a tree of pages. Two strings may share nodes and pages; a change copies those on its way
//! which are shared: at most the root, a node and of the pages that it writes to a part, if it is
//! short (`blob/page.rs`).
//!
//! ```text
//! Blob --> count | root: len, heap, nodes
//!                          |    |     |
//!               count | node   node   zero node         128 pages per node
//!                       |  |     |      all 128:
//!              count | page page page   zero page       64 KiB per page, the last one less
//!                       |
//!                     bytes, a size class of the allocator
//! ```
//! Whole pages of zeros are one page, which all strings share: a gap before the written bytes costs
//! neither time nor memory. A page costs 48 bytes besides its own, so a string of n bytes takes
//! n + n/1300, and at most n/64 of spare room behind its last byte.
//!
//! Cost: a clone is one count. A byte is found in O(1). The root of a string of 512 MiB has 64
//! nodes, so a short change of a shared string copies 512 bytes of root, 1 KiB of node and 4 KiB of
//! a page.

mod page;
mod tree;

#[cfg(test)]
mod tests;

use crate::shared::Shared;
pub use page::{PAGE_BYTES, PATCH_MAX};
use std::borrow::Cow;
use std::ops::Range;
use tree::Tree;

/// The longest string that is one block.
pub const BLOCK_MAX: usize = 1 << 20;
/// The least room that [`Builder::fill`] allocates, if so many bytes are expected.
const FILL_MIN: usize = 4 << 10;

/// A big string: cloning it takes a reference, O(1).
#[derive(Clone, Default)]
pub struct Blob(Shared<Body>);

#[derive(Clone)]
enum Body {
    Block(Vec<u8>),
    Pages(Box<Tree>),
}

const _: () = assert!(size_of::<Blob>() == 8 && size_of::<Body>() == 24);

impl Body {
    /// Heap bytes of a copy.
    fn copied_bytes(&self) -> usize {
        match self {
            Self::Block(bytes) => bytes.len(),
            Self::Pages(tree) => tree.copied_bytes(),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Block(Vec::new())
    }
}

impl Blob {
    /// Bytes of the block with the reference count. What that block refers to is
    /// [`Blob::capacity`].
    pub const HEAD_BYTES: usize = crate::shared::COUNT_BYTES + size_of::<Body>();

    /// Wraps the vector: without a copy up to [`BLOCK_MAX`] bytes. A longer one is copied into
    /// pages; who produces such strings uses a [`Builder`].
    #[inline]
    pub fn new(bytes: Vec<u8>) -> Self {
        if bytes.len() > BLOCK_MAX { Self::from(&bytes[..]) } else { Self::block(bytes) }
    }

    #[inline]
    fn block(bytes: Vec<u8>) -> Self {
        Self(Shared::new(Body::Block(bytes)))
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match &*self.0 {
            Body::Block(bytes) => bytes.len(),
            Body::Pages(tree) => tree.len(),
        }
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap bytes that it refers to, spare room included; shared pages count in full, pages of
    /// zeros do not.
    pub fn capacity(&self) -> usize {
        match &*self.0 {
            Body::Block(bytes) => bytes.capacity(),
            Body::Pages(tree) => size_of::<Tree>() + tree.heap(),
        }
    }

    /// Number of pages; a block is one.
    pub fn page_count(&self) -> usize {
        match &*self.0 {
            Body::Block(_) => 1,
            Body::Pages(tree) => tree.page_count(),
        }
    }

    /// True if it is longer than [`BLOCK_MAX`] bytes: a tree of pages.
    #[inline]
    pub fn is_paged(&self) -> bool {
        matches!(&*self.0, Body::Pages(_))
    }

    /// The bytes, if they are one block.
    #[inline]
    pub fn contiguous(&self) -> Option<&[u8]> {
        match &*self.0 {
            Body::Block(bytes) => Some(bytes),
            Body::Pages(_) => None,
        }
    }

    /// The bytes as one slice: those of pages are copied, O(n).
    pub fn to_slice(&self) -> Cow<'_, [u8]> {
        self.contiguous().map_or_else(|| Cow::Owned(self.to_vec()), Cow::Borrowed)
    }

    /// The bytes in order, as runs of contiguous memory. No run is empty.
    #[inline]
    pub fn pages(&self) -> Pages<'_> {
        self.pages_from(0)
    }

    /// As [`Blob::pages`], from the byte `at` on; none if that is the end or behind it.
    #[inline]
    pub fn pages_from(&self, at: usize) -> Pages<'_> {
        self.pages_in(at..self.len())
    }

    /// As [`Blob::pages`], of a range, which may reach behind the end.
    #[inline]
    pub fn pages_in(&self, range: Range<usize>) -> Pages<'_> {
        Pages { blob: self, at: range.start, end: range.end.min(self.len()) }
    }

    /// The bytes from `at` to the end of their run; `at` is below the length.
    #[inline]
    fn run(&self, at: usize) -> &[u8] {
        match &*self.0 {
            Body::Block(bytes) => &bytes[at..],
            Body::Pages(tree) => tree.run(at),
        }
    }

    /// One byte; none behind the end.
    #[inline]
    pub fn byte(&self, at: usize) -> Option<u8> {
        (at < self.len()).then(|| self.run(at)[0])
    }

    /// Appends the bytes of a range, which may reach behind the end, to `to`.
    pub fn copy_to(&self, range: Range<usize>, to: &mut Vec<u8>) {
        let pages = self.pages_in(range);
        to.reserve(pages.bytes_left());
        pages.for_each(|page| to.extend_from_slice(page));
    }

    /// All bytes in one vector, O(n).
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::new();
        self.copy_to(0..self.len(), &mut all);
        all
    }

    /// The bytes of a range, which lies within the length. If the range begins at a multiple of
    /// [`PAGE_BYTES`] and is longer than [`BLOCK_MAX`], the result shares its pages; otherwise its
    /// bytes are copied.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "it lies within the length");
        if range == (0..self.len()) {
            return self.clone();
        }
        match &*self.0 {
            Body::Pages(tree)
                if range.len() > BLOCK_MAX && range.start.is_multiple_of(PAGE_BYTES) =>
            {
                Self(Shared::new(Body::Pages(Box::new(tree.slice(range)))))
            }
            _ => {
                let mut part = Builder::with_len(range.len());
                self.pages_in(range).for_each(|page| part.extend(page));
                part.finish()
            }
        }
    }

    /// True if both have the same bytes in this range, which lies within both. Pages that they
    /// share are not read.
    pub fn equals_in(&self, other: &Self, range: Range<usize>) -> bool {
        has_bytes(self, range.start, other.pages_in(range))
    }

    /// True if there is another reference to this string. Pages can be shared although it is not.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// Drops this reference, unless it is the last one, which is returned. O(1).
    pub fn drop_if_shared(self) -> Option<Self> {
        self.0.drop_if_shared().map(Self)
    }

    /// True if both are references to the same string: O(1). While both are held, none of them
    /// changes without becoming another string.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.address() == other.0.address()
    }

    /// Gives up pages, from the one in which a range begins to the last one that ends within it:
    /// they read as zeros then. What others hold of them is neither copied nor changed, so a writer
    /// finds pages unshared which this was the last one to share. Returns the heap bytes that this
    /// frees. A block is not changed.
    pub fn release(&mut self, range: Range<usize>) -> usize {
        if !self.is_paged() {
            return 0;
        }
        if self.is_shared() {
            // Not with `make_mut`: it is no copy that a writer makes.
            self.0 = Shared::new(Body::clone(&self.0));
        }
        match self.0.get_mut().expect("it is not shared") {
            Body::Pages(tree) => tree.release(range),
            Body::Block(_) => unreachable!("it is paged"),
        }
    }

    /// True if both have the same page at the same place, other than zeros: one was made of the
    /// other. O(pages), a few ns for each.
    pub fn shares_pages(&self, other: &Self) -> bool {
        match (&*self.0, &*other.0) {
            (Body::Pages(tree), Body::Pages(other)) => tree.shares_pages(other),
            _ => false,
        }
    }

    /// Overwrites the bytes from `at` on, after filling a gap with zeros, and extends the string as
    /// needed. Copies what is shared of that which it overwrites.
    pub fn write_at(&mut self, at: usize, bytes: &[u8]) {
        if at > self.len() {
            self.append_zeros(at - self.len());
        }
        let (over, behind) = bytes.split_at(bytes.len().min(self.len() - at));
        if !over.is_empty() {
            match self.0.make_mut(Body::copied_bytes) {
                Body::Block(block) => block[at..at + over.len()].copy_from_slice(over),
                Body::Pages(tree) => tree.overwrite(at, over),
            }
        }
        self.append(behind);
    }

    /// Appends bytes by copy: in O(their length), plus now and then up to [`BLOCK_MAX`] bytes for a
    /// block that grows.
    pub fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.body_of(self.len() + bytes.len()) {
            Body::Block(block) => block.extend_from_slice(bytes),
            Body::Pages(tree) => tree.append(bytes),
        }
    }

    /// Appends zeros: whole pages of them take neither time nor memory.
    pub fn append_zeros(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        match self.body_of(self.len() + count) {
            Body::Block(block) => block.resize(block.len() + count, 0),
            Body::Pages(tree) => tree.append_zeros(count),
        }
    }

    /// The unshared body, in the form that it has with `len` bytes, and with room for them if it is
    /// a block.
    fn body_of(&mut self, len: usize) -> &mut Body {
        let body = self.0.make_mut(Body::copied_bytes);
        if let Body::Block(block) = body {
            if len > BLOCK_MAX {
                let mut tree = Tree::default();
                tree.append(block);
                *body = Body::Pages(Box::new(tree));
            } else if block.capacity() < len {
                // A quarter more than needed, so that many appends copy little.
                block.reserve_exact((len + len / 4).min(BLOCK_MAX.max(len)) - block.len());
            }
        }
        body
    }

    /// Keeps the first `len` bytes; `len` is at most the length. Frees pages, O(their number).
    pub fn truncate(&mut self, len: usize) {
        assert!(len <= self.len(), "it is only shortened");
        if len == self.len() {
            return;
        }
        if self.is_paged() && len <= BLOCK_MAX {
            let mut kept = Vec::with_capacity(len);
            self.copy_to(0..len, &mut kept);
            *self = Self::block(kept);
            return;
        }
        match self.0.make_mut(Body::copied_bytes) {
            Body::Block(block) => block.truncate(len),
            Body::Pages(tree) => tree.truncate(len),
        }
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() <= BLOCK_MAX {
            return Self::block(bytes.to_vec());
        }
        let mut builder = Builder::with_len(bytes.len());
        builder.extend(bytes);
        builder.finish()
    }
}

impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.len() == other.len() && has_bytes(self, 0, other.pages())
    }
}

impl Eq for Blob {}

impl PartialEq<[u8]> for Blob {
    fn eq(&self, other: &[u8]) -> bool {
        self.len() == other.len() && has_bytes(self, 0, std::iter::once(other))
    }
}

/// True if a blob has the bytes of these runs from `at` on, where it has as many.
fn has_bytes<'a>(blob: &Blob, mut at: usize, runs: impl Iterator<Item = &'a [u8]>) -> bool {
    for run in runs {
        let mut rest = run;
        for page in blob.pages_in(at..at + run.len()) {
            let (first, behind) = rest.split_at(page.len());
            if first.as_ptr() != page.as_ptr() && first != page {
                return false;
            }
            rest = behind;
        }
        at += run.len();
    }
    true
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.contiguous() {
            Some(bytes) => f.debug_tuple("Blob").field(&bytes).finish(),
            None => write!(f, "Blob({} bytes in {} pages)", self.len(), self.page_count()),
        }
    }
}

/// The runs of contiguous bytes of a [`Blob`], in order.
#[derive(Clone, Debug)]
pub struct Pages<'a> {
    blob: &'a Blob,
    at: usize,
    end: usize,
}

impl Pages<'_> {
    /// Bytes of the runs that are left.
    pub fn bytes_left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }
}

impl<'a> Iterator for Pages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.at >= self.end {
            return None;
        }
        let run = self.blob.run(self.at);
        let run = &run[..run.len().min(self.end - self.at)];
        self.at += run.len();
        Some(run)
    }
}

impl std::iter::FusedIterator for Pages<'_> {}

/// A [`Blob`] that is filled from its beginning, each byte copied once.
///
/// Memory grows with the bytes, not with the expected length: page by page where the string will be
/// longer than [`BLOCK_MAX`], otherwise a block that doubles.
#[derive(Debug, Default)]
pub struct Builder {
    blob: Blob,
    expected: usize,
}

impl Builder {
    /// A builder of a string of `len` bytes. This bounds the room that is allocated; the string may
    /// become longer or shorter.
    pub fn with_len(len: usize) -> Self {
        let body =
            if len > BLOCK_MAX { Body::Pages(Box::default()) } else { Body::Block(Vec::new()) };
        Self { blob: Blob(Shared::new(body)), expected: len }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.blob.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.blob.is_empty()
    }

    /// Heap bytes so far, spare room included.
    pub fn capacity(&self) -> usize {
        self.blob.capacity()
    }

    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        let (len, expected) = (self.len() + bytes.len(), self.expected);
        match self.blob.0.get_mut().expect("a builder shares nothing") {
            Body::Pages(tree) => tree.append_of(bytes, expected),
            Body::Block(block) if len <= BLOCK_MAX => {
                if block.capacity() < len {
                    let capacity = (block.capacity() * 2).max(len).min(expected.max(len));
                    block.reserve_exact(capacity - block.len());
                }
                block.extend_from_slice(bytes);
            }
            Body::Block(_) => self.blob.append(bytes),
        }
    }

    /// Lets `f` append bytes in place, without a copy: into the spare room of the vector that it
    /// gets, the memory of the next run. There is room for at least one byte and for no more than
    /// is expected, so some bytes must still be expected. `f` appends no more than there is room.
    pub fn fill<R>(&mut self, f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let expected = self.expected;
        assert!(self.len() < expected, "more is expected");
        match self.blob.0.get_mut().expect("a builder shares nothing") {
            Body::Pages(tree) => tree.fill_of(expected, f),
            Body::Block(block) => {
                if block.capacity() == block.len() {
                    let capacity = (block.len() * 2).max(FILL_MIN).min(expected);
                    block.reserve_exact(capacity - block.len());
                }
                let result = f(block);
                assert!(block.len() <= expected, "it appends what there is room for");
                result
            }
        }
    }

    /// Appends zeros: whole pages of them take neither time nor memory.
    pub fn extend_zeros(&mut self, count: usize) {
        self.blob.append_zeros(count);
    }

    /// The string.
    pub fn finish(mut self) -> Blob {
        if self.blob.is_paged() && self.len() <= BLOCK_MAX {
            self.blob = Blob::block(self.blob.to_vec());
        }
        self.blob
    }
}
