//! The end of sharing: patched pages become whole again, and pages are given up.

use super::super::page::{self, PAGE_BYTES, Page, Swept, freed_with, page_heap, zero_page};
use super::{FANOUT, Node, Tree, is_zero_node};
use crate::shared::Shared;
use std::ops::Range;

/// Pages that a write visits besides its own while some are patched.
const SWEPT_PAGES: usize = 4;

impl Tree {
    /// Visits some pages, of which it merges at most one: patched pages whose base is not shared
    /// any more do not stay.
    #[cold]
    pub(super) fn sweep(&mut self) {
        let count = self.page_count();
        for _ in 0..SWEPT_PAGES.min(self.unswept as usize) {
            let index = self.next_swept as usize % count;
            self.next_swept = index as u32 + 1;
            self.unswept -= 1;
            match self.sweep_page(index) {
                Swept::Whole => {}
                Swept::Merged => return,
                Swept::Patched => self.unswept = count as u32,
            }
        }
    }

    fn sweep_page(&mut self, index: usize) -> Swept {
        let node = &mut self.nodes[index / FANOUT];
        let page = &node.0[index % FANOUT];
        if !page.is_patched() {
            return Swept::Whole;
        }
        let before = page_heap(page);
        // A node is not copied for this.
        let Some(node) = node.get_mut() else { return Swept::Patched };
        let page = &mut node.0[index % FANOUT];
        let swept = page::sweep(page);
        self.heap = self.heap + page_heap(page) - before;
        swept
    }

    /// True if both have the same page at the same place, other than zeros.
    pub fn shares_pages(&self, other: &Self) -> bool {
        let is_same = |(page, other): (&Shared<Page>, &Shared<Page>)| {
            page.address() == other.address() && page.address() != zero_page().address()
        };
        self.nodes.iter().zip(&other.nodes).any(|(node, other)| {
            let is_node = node.address() == other.address();
            !is_zero_node(node) && (is_node || node.0.iter().zip(&other.0).any(is_same))
        })
    }

    /// As [`crate::Blob::release`].
    pub fn release(&mut self, range: Range<usize>) -> usize {
        let end = range.end.min(self.len) / PAGE_BYTES;
        let (mut index, mut freed) = (range.start / PAGE_BYTES, 0);
        while index < end {
            let (first, next) = (index % FANOUT, end.min((index / FANOUT + 1) * FANOUT));
            let count = next - index;
            let node = &mut self.nodes[index / FANOUT];
            index = next;
            if is_zero_node(node) {
                continue;
            }
            if node.is_shared() {
                // Not with `make_mut`: it is no copy that a writer makes.
                *node = Shared::new(Node::clone(node));
            }
            let pages = &mut node.get_mut().expect("it is not shared").0;
            for page in &mut pages[first..first + count] {
                self.heap -= page_heap(page);
                freed += freed_with(page);
                *page = zero_page().clone();
            }
        }
        freed
    }
}
