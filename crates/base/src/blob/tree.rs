//! The pages of a big string, and the nodes that refer to them.

mod sharing;

use super::FILL_MIN;
use super::page::{self, PAGE_BYTES, PAGE_OVERHEAD, PATCH_MAX, Page, page_heap, zero_page};
use crate::shared::{COUNT_BYTES, Shared, note_copied};
use crate::sync::OnceLock;
use std::ops::Range;

/// Pages of a node.
pub(super) const FANOUT: usize = 128;
/// Bytes of a full node.
const NODE_BYTES: usize = FANOUT * PAGE_BYTES;
/// What a node costs.
const NODE_OVERHEAD: usize = COUNT_BYTES
    + size_of::<Node>()
    + FANOUT * size_of::<Shared<Page>>()
    + size_of::<Shared<Node>>();
/// The last page of a string grows by at least so many bytes.
const GROWTH_MIN: usize = 1 << 10;

/// Pages in order. All nodes but the last one of a string are full.
struct Node(Vec<Shared<Page>>);

impl Node {
    #[expect(clippy::unused_self, reason = "every node has room for all its pages")]
    fn heap(&self) -> usize {
        FANOUT * size_of::<Shared<Page>>()
    }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        let mut pages = Vec::with_capacity(FANOUT);
        pages.extend_from_slice(&self.0);
        Self(pages)
    }
}

/// The root of a big string.
#[derive(Clone, Default)]
pub(super) struct Tree {
    nodes: Vec<Shared<Node>>,
    len: usize,
    /// Heap bytes of pages and nodes, those shared with other strings included, those of the zero
    /// page and the zero node not.
    heap: usize,
    /// The page that the sweep visits next.
    next_swept: u32,
    /// Pages that it visits until it has seen that none is patched: 0 of a string without such.
    unswept: u32,
}

/// The full node of zero pages, which every string shares.
fn zero_node() -> &'static Shared<Node> {
    static ZEROS: OnceLock<Shared<Node>> = OnceLock::new();
    ZEROS.get_or_init(|| Shared::new(Node(vec![zero_page().clone(); FANOUT])))
}

fn is_zero_node(node: &Shared<Node>) -> bool {
    node.address() == zero_node().address()
}

fn node_heap(node: &Shared<Node>) -> usize {
    let pages = || node.0.iter().map(page_heap).sum::<usize>();
    if is_zero_node(node) { 0 } else { NODE_OVERHEAD + pages() }
}

impl Tree {
    /// Heap bytes of a copy, which shares all nodes.
    pub fn copied_bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.len() * size_of::<Shared<Node>>()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Heap bytes of its pages and nodes.
    pub fn heap(&self) -> usize {
        self.heap
    }

    /// Number of pages.
    pub fn page_count(&self) -> usize {
        self.len.div_ceil(PAGE_BYTES)
    }

    /// The bytes from `at` to the end of their run, which is that of the page if the page is whole;
    /// `at` is below the length.
    #[inline]
    pub fn run(&self, at: usize) -> &[u8] {
        let page = at / PAGE_BYTES;
        self.nodes[page / FANOUT].0[page % FANOUT].run(at % PAGE_BYTES)
    }

    /// Appends bytes by copy.
    pub fn append(&mut self, mut bytes: &[u8]) {
        if !self.len.is_multiple_of(PAGE_BYTES) {
            let taken = bytes.len().min(PAGE_BYTES - self.len % PAGE_BYTES);
            let (first, rest) = bytes.split_at(taken);
            let room = self.room_for(self.len % PAGE_BYTES + taken);
            self.grow_last(taken, room, |page| page.extend_from_slice(first));
            bytes = rest;
        }
        for part in bytes.chunks(PAGE_BYTES) {
            let mut page = Vec::with_capacity(self.room_for(part.len()));
            page.extend_from_slice(part);
            self.push(page);
        }
    }

    /// As [`Tree::append`], for a string that will have `len` bytes in the end: allocates no more
    /// than that, and at most twice what has been appended.
    pub fn append_of(&mut self, bytes: &[u8], len: usize) {
        let end = len.max(self.len + bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = self.len % PAGE_BYTES;
            let start = self.len - used;
            if used == 0 {
                self.push(Vec::new());
            }
            let (first, behind) = rest.split_at(rest.len().min(PAGE_BYTES - used));
            let room = used + first.len() + start.max(used);
            let room = room.min(PAGE_BYTES).min(end - start);
            self.grow_last(first.len(), room, |page| page.extend_from_slice(first));
            rest = behind;
        }
    }

    /// Lets `f` append to the last page, or to a new one, in the vector's spare room; the string
    /// will have `len` bytes in the end, of which some are missing. Allocates as
    /// [`Tree::append_of`] does.
    ///
    /// Out of line: who receives into it also serves requests that have no long argument.
    #[inline(never)]
    pub fn fill_of<R>(&mut self, len: usize, f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let used = self.len % PAGE_BYTES;
        let start = self.len - used;
        let room = PAGE_BYTES.min(len - start).min(used + start.max(used).max(FILL_MIN));
        if used == 0 {
            let mut page = Vec::with_capacity(room);
            let result = f(&mut page);
            assert!(page.len() <= room, "it appends what there is room for");
            if !page.is_empty() {
                self.push(page);
            }
            return result;
        }
        let mut result = None;
        let mut end = used;
        self.edit_page(self.len / PAGE_BYTES, |page| {
            if page.capacity() == used {
                page.reserve_exact(room - used);
            }
            result = Some(f(page));
            end = page.len();
        });
        assert!((used..=PAGE_BYTES.min(len - start)).contains(&end), "it appends what has room");
        self.len = start + end;
        result.expect("the page was edited")
    }

    /// Appends zeros. Whole pages of them cost one reference, whole nodes too.
    pub fn append_zeros(&mut self, mut count: usize) {
        if !self.len.is_multiple_of(PAGE_BYTES) {
            let taken = count.min(PAGE_BYTES - self.len % PAGE_BYTES);
            let room = self.room_for(self.len % PAGE_BYTES + taken);
            self.grow_last(taken, room, |page| page.resize(page.len() + taken, 0));
            count -= taken;
        }
        while count >= PAGE_BYTES {
            if count >= NODE_BYTES && self.len.is_multiple_of(NODE_BYTES) {
                self.nodes.push(zero_node().clone());
                self.len += NODE_BYTES;
                self.sweep_more(FANOUT);
                count -= NODE_BYTES;
            } else {
                self.push_page(zero_page().clone());
                count -= PAGE_BYTES;
            }
        }
        if count > 0 {
            let mut page = Vec::with_capacity(self.room_for(count));
            page.resize(count, 0);
            self.push(page);
        }
    }

    /// Overwrites bytes; they lie within the length.
    pub fn overwrite(&mut self, at: usize, mut bytes: &[u8]) {
        assert!(bytes.len() <= self.len - at, "only what is there is overwritten");
        let (mut place, patches) = (at, bytes.len() <= PATCH_MAX);
        while !bytes.is_empty() {
            let (index, offset) = (place / PAGE_BYTES, place % PAGE_BYTES);
            let (first, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - offset));
            if first.len() == PAGE_BYTES {
                self.replace_page(index, first);
            } else {
                self.write_page(index, (offset, first), patches);
            }
            place += first.len();
            bytes = rest;
        }
        if self.unswept > 0 {
            self.sweep();
        }
    }

    /// Keeps the first `len` bytes; `len` is at most the length.
    pub fn truncate(&mut self, len: usize) {
        assert!(len <= self.len, "it is only shortened");
        let pages = len.div_ceil(PAGE_BYTES);
        for node in self.nodes.drain(pages.div_ceil(FANOUT)..) {
            self.heap -= node_heap(&node);
        }
        if !pages.is_multiple_of(FANOUT) {
            let before = node_heap(self.nodes.last().expect("it has the page"));
            let last = self.nodes.last_mut().expect("it has the page");
            last.make_mut(Node::heap).0.truncate(pages % FANOUT);
            self.heap = self.heap + node_heap(last) - before;
        }
        self.len = len;
        if self.unswept > 0 {
            // What is visited next may be gone, so all are visited again.
            self.unswept = pages as u32;
        }
        let offset = len % PAGE_BYTES;
        if offset != 0 && self.last_page_len() > offset {
            let page = len / PAGE_BYTES;
            let kept = self.nodes[page / FANOUT].0[page % FANOUT].prefix(offset);
            self.set_page(page, Shared::new(Page::Whole(kept)));
        }
    }

    /// The bytes of a range which begins and ends at borders of pages or at the end: refers to the
    /// same pages, O(number of pages / 128) if it begins at the border of a node.
    pub fn slice(&self, range: Range<usize>) -> Self {
        debug_assert!(range.start.is_multiple_of(PAGE_BYTES));
        let mut part = Self::default();
        let mut at = range.start;
        while at < range.end {
            let index = at / PAGE_BYTES;
            let node = &self.nodes[index / FANOUT];
            let left = range.end - at;
            if index.is_multiple_of(FANOUT)
                && part.len.is_multiple_of(NODE_BYTES)
                && left >= NODE_BYTES
            {
                part.heap += node_heap(node);
                part.nodes.push(node.clone());
                part.len += NODE_BYTES;
                at += NODE_BYTES;
                continue;
            }
            let page = &node.0[index % FANOUT];
            let len = page.len().min(left);
            if len == page.len() {
                part.push_page(page.clone());
            } else {
                part.push(page.prefix(len));
            }
            at += len;
        }
        if self.unswept > 0 {
            part.unswept = part.page_count() as u32;
        }
        part
    }

    /// Room to allocate for a last page of `len` bytes: at most 1/64 of the string is spare.
    fn room_for(&self, len: usize) -> usize {
        let spare = GROWTH_MIN.max((self.len + len) / 64);
        PAGE_BYTES.min((len + spare).next_multiple_of(GROWTH_MIN))
    }

    /// Appends `count` bytes to the last page, which holds at most [`PAGE_BYTES`] then; a page that
    /// must grow gets `room` bytes.
    fn grow_last(&mut self, count: usize, room: usize, f: impl FnOnce(&mut Vec<u8>)) {
        self.edit_page(self.len / PAGE_BYTES, |page| {
            if page.capacity() - page.len() < count {
                page.reserve_exact(room - page.len());
            }
            f(page);
        });
        self.len += count;
    }

    /// Appends a page.
    fn push(&mut self, bytes: Vec<u8>) {
        self.push_page(Shared::new(Page::Whole(bytes)));
    }

    fn push_page(&mut self, page: Shared<Page>) {
        if self.nodes.last().is_none_or(|node| node.0.len() == FANOUT) {
            self.nodes.push(Shared::new(Node(Vec::with_capacity(FANOUT))));
            self.heap += NODE_OVERHEAD;
        }
        self.len += page.len();
        self.heap += page_heap(&page);
        let node = self.nodes.last_mut().expect("there is one");
        node.make_mut(Node::heap).0.push(page);
        self.sweep_more(1);
    }

    /// So many pages are appended: a sweep under way visits them before it begins anew.
    fn sweep_more(&mut self, pages: usize) {
        if self.unswept > 0 {
            self.unswept += pages as u32;
        }
    }

    /// The node of a page, to change: a copy of its own if it was shared.
    fn node_mut(&mut self, page: usize) -> &mut Node {
        let node = &mut self.nodes[page / FANOUT];
        if is_zero_node(node) {
            self.heap += NODE_OVERHEAD;
        }
        node.make_mut(Node::heap)
    }

    /// Changes the bytes of a page, which is copied first if it is shared.
    fn edit_page(&mut self, index: usize, f: impl FnOnce(&mut Vec<u8>)) {
        let page = &mut self.node_mut(index).0[index % FANOUT];
        let before = page_heap(page);
        f(page.make_mut(Page::heap).bytes_mut());
        let after = page_heap(page);
        self.heap = self.heap + after - before;
    }

    /// Overwrites a part of a page. Of one that is shared it copies what it touches, or all.
    fn write_page(&mut self, index: usize, (offset, bytes): (usize, &[u8]), patches: bool) {
        let page = &mut self.node_mut(index).0[index % FANOUT];
        let before = page_heap(page);
        page::write(page, offset, bytes, patches);
        let (after, is_patched) = (page_heap(page), page.is_patched());
        self.heap = self.heap + after - before;
        if is_patched {
            self.unswept = self.page_count() as u32;
        }
    }

    /// Bytes of the last page.
    fn last_page_len(&self) -> usize {
        self.nodes.last().and_then(|node| node.0.last()).map_or(0, |page| page.len())
    }

    /// Overwrites a whole page: a shared one is replaced without a copy.
    fn replace_page(&mut self, index: usize, bytes: &[u8]) {
        let page = &mut self.node_mut(index).0[index % FANOUT];
        let before = page_heap(page);
        if let Some(own) = page.get_mut() {
            own.replace(bytes);
            let after = page_heap(page);
            self.heap = self.heap + after - before;
        } else {
            note_copied(PAGE_OVERHEAD + bytes.len());
            self.set_page(index, Shared::new(Page::Whole(bytes.to_vec())));
        }
    }

    fn set_page(&mut self, index: usize, new: Shared<Page>) {
        let after = page_heap(&new);
        let page = &mut self.node_mut(index).0[index % FANOUT];
        let before = page_heap(page);
        *page = new;
        self.heap = self.heap + after - before;
    }

    /// The heap bytes, computed from all pages.
    #[cfg(test)]
    pub fn walked_heap(&self) -> usize {
        self.nodes.iter().map(node_heap).sum()
    }

    /// The lengths of all pages, and which are patched.
    #[cfg(test)]
    pub fn shape(&self) -> Vec<(usize, bool)> {
        let pages = self.nodes.iter().flat_map(|node| &node.0);
        pages.map(|page| (page.len(), page.is_patched())).collect()
    }

    /// The addresses of nodes and pages.
    #[cfg(test)]
    pub fn addresses(&self) -> (Vec<usize>, Vec<usize>) {
        let pages = self.nodes.iter().flat_map(|node| node.0.iter().map(Shared::address));
        (self.nodes.iter().map(Shared::address).collect(), pages.collect())
    }
}
