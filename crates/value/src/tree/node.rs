//! Nodes: leaves, and above them inner nodes with separators, counts and children.
//!
//! ```text
//! Inner of n children, each line a vector of its own:
//!
//! heads     u64 | u64 | ...           n - 1   numbers of the separators
//! ends      len, rest | ...           n - 1   the other parts of the separators
//! counts    u64 | u64 | u64 | ...     n       elements below each child
//! nodes     ref | ref | ref | ...     n       the children, counted references
//! ```
//!
//! A search reads heads only, mostly two or three lines of them ([`super::search`]).

use super::leaf::Leaf;
use super::search;
use super::separator::{End, Separator};
use base::prefetch::prefetch;
use base::shared::{COUNT_BYTES, Shared, note_copied};
use std::cmp::Ordering;

/// Children of an inner node, at most: about 4 KiB.
pub(super) const FANOUT_MAX: usize = 64;
/// Below this it joins a neighbour, if both fit into one.
pub(super) const FANOUT_MIN: usize = 16;

/// A node, shared with clones of the tree.
#[derive(Clone)]
pub(super) enum Node<L> {
    Leaf(Shared<L>),
    Inner(Shared<Inner<L>>),
}

/// The way down to a leaf.
#[derive(Clone, Copy)]
pub enum Way<K> {
    /// To the leaf with the element of this rank; the length leads to the last leaf.
    Rank(u64),
    /// To the last leaf; the elements before it are not counted on the way, and reported as 0.
    Last,
    /// To the leaf that holds the key, or would.
    Key(K),
}

/// What a change below did to the counts.
#[derive(Default)]
pub(super) struct Change {
    pub len: i64,
    pub memory: isize,
    pub nodes: isize,
}

/// An inner node to change: it is copied first if a clone of the tree shares it.
#[inline]
pub(super) fn make_mut<'a, L: Leaf>(
    inner: &'a mut Shared<Inner<L>>,
    change: &mut Change,
) -> &'a mut Inner<L> {
    if inner.is_shared() {
        copy(inner, change);
    }
    inner.get_mut().expect("it is not shared")
}

#[cold]
fn copy<L: Leaf>(inner: &mut Shared<Inner<L>>, change: &mut Change) {
    let copy = Inner::clone(inner);
    change.memory += copy.memory() as isize - inner.memory() as isize;
    note_copied(COUNT_BYTES + size_of::<Inner<L>>() + copy.memory());
    *inner = Shared::new(copy);
}

/// A node above leaves or other inner nodes.
#[derive(Clone)]
pub(super) struct Inner<L> {
    /// The numbers of the separators: `heads[i]` stands between child `i` and `i + 1`.
    heads: Vec<u64>,
    ends: Vec<End>,
    /// Elements below each child.
    counts: Vec<u64>,
    nodes: Vec<Node<L>>,
    /// Estimates where a number stands among the heads.
    spread: search::Spread,
}

impl<L: Leaf> Inner<L> {
    pub fn pair(left: Node<L>, separator: Separator, right: Node<L>) -> Self {
        let counts = vec![left.count(), right.count()];
        let heads = vec![separator.head];
        let spread = search::Spread::of(&heads);
        Self { heads, ends: vec![separator.end], counts, nodes: vec![left, right], spread }
    }

    /// Heap bytes of its make_mut, long separators included.
    pub fn memory(&self) -> usize {
        let rests: usize = self.ends.iter().map(End::memory).sum();
        self.heads.capacity() * size_of::<u64>()
            + self.ends.capacity() * size_of::<End>()
            + self.counts.capacity() * size_of::<u64>()
            + self.nodes.capacity() * size_of::<Node<L>>()
            + rests
    }

    /// Prefetches what a search for this number will read. The node itself is in the cache.
    #[inline]
    pub fn prefetch_search(&self, number: u64) {
        let guess = self.spread.guess(number, self.heads.len());
        search::prefetch_around(&self.heads, guess);
        prefetch(self.nodes.as_ptr().wrapping_add(guess).addr());
    }

    #[inline]
    pub fn children(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub fn node(&self, at: usize) -> &Node<L> {
        &self.nodes[at]
    }

    #[inline]
    pub fn node_mut(&mut self, at: usize) -> &mut Node<L> {
        &mut self.nodes[at]
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The child on the way, and how many elements are before it here.
    #[inline]
    pub fn choose(&self, way: Way<L::Key<'_>>, before: u64) -> (usize, u64) {
        match way {
            Way::Key(key) => {
                let at = self.child_of_key(key);
                (at, self.counts[..at].iter().sum())
            }
            Way::Last => (self.nodes.len() - 1, 0),
            Way::Rank(rank) => {
                let (mut at, mut skipped) = (0, 0);
                while at + 1 < self.nodes.len() && rank - before >= skipped + self.counts[at] {
                    skipped += self.counts[at];
                    at += 1;
                }
                (at, skipped)
            }
        }
    }

    #[inline]
    pub fn child_of_key(&self, key: L::Key<'_>) -> usize {
        let number = L::number(key);
        let at = search::first_not_below(
            &self.heads,
            number,
            self.spread.guess(number, self.heads.len()),
            |head| *head,
        );
        if self.heads.get(at) == Some(&number) { self.child_in_run(at, number, key) } else { at }
    }

    /// Among separators of the same number from `from` on.
    #[cold]
    fn child_in_run(&self, from: usize, number: u64, key: L::Key<'_>) -> usize {
        let run = self.heads[from..].partition_point(|head| *head == number);
        let ends = &self.ends[from..from + run];
        from + ends.partition_point(|end| L::compare(key, end) != Ordering::Less)
    }

    #[inline]
    pub fn recount(&mut self, at: usize, by: i64) {
        self.counts[at] = self.counts[at].checked_add_signed(by).expect("a count of what is there");
    }

    /// Inserts a child right of an old one whose count still is that of both.
    pub fn insert(&mut self, at: usize, separator: Separator, node: Node<L>) {
        let count = node.count();
        self.counts[at - 1] -= count;
        self.heads.insert(at - 1, separator.head);
        self.ends.insert(at - 1, separator.end);
        self.spread = search::Spread::of(&self.heads);
        self.counts.insert(at, count);
        self.nodes.insert(at, node);
    }

    /// Cuts the upper half off.
    pub fn split(&mut self) -> (Separator, Self) {
        let at = self.nodes.len() / 2;
        let heads = self.heads.split_off(at);
        let right = Self {
            spread: search::Spread::of(&heads),
            heads,
            ends: self.ends.split_off(at),
            counts: self.counts.split_off(at),
            nodes: self.nodes.split_off(at),
        };
        let (head, end) = self.heads.pop().zip(self.ends.pop()).expect("both halves have children");
        let between = Separator { head, end };
        self.spread = search::Spread::of(&self.heads);
        self.heads.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.counts.shrink_to_fit();
        self.nodes.shrink_to_fit();
        (between, right)
    }

    /// Joins child `at` with its smaller neighbour, if both fit into one node.
    pub fn join(&mut self, at: usize, change: &mut Change) {
        if self.nodes.len() < 2 {
            return;
        }
        let left = if at == 0 {
            0
        } else if at + 1 == self.nodes.len() || self.counts[at - 1] <= self.counts[at + 1] {
            at - 1
        } else {
            at
        };
        let (head, tail) = self.nodes.split_at_mut(left + 1);
        let (into, from) = (&mut head[left], &tail[0]);
        let joined = match (into, from) {
            (Node::Leaf(into), Node::Leaf(from)) => {
                let memory = into.memory();
                let into = into.make_mut(L::memory);
                let joined = into.absorb(from);
                change.memory += into.memory() as isize - memory as isize;
                if joined {
                    change.memory -= from.memory() as isize;
                }
                joined
            }
            (Node::Inner(into), Node::Inner(from)) => {
                let fits = into.children() + from.children() <= FANOUT_MAX;
                if fits {
                    let into = make_mut(into, change);
                    let memory = into.memory();
                    into.heads.push(self.heads[left]);
                    into.heads.extend_from_slice(&from.heads);
                    into.ends.push(self.ends[left].clone());
                    into.ends.extend_from_slice(&from.ends);
                    into.spread = search::Spread::of(&into.heads);
                    into.counts.extend_from_slice(&from.counts);
                    into.nodes.extend(from.nodes.iter().cloned());
                    change.memory += into.memory() as isize - memory as isize;
                    change.memory -= from.memory() as isize;
                }
                fits
            }
            _ => unreachable!("all leaves are at one depth"),
        };
        if joined {
            let memory = self.memory();
            change.nodes -= 1;
            self.heads.remove(left);
            self.ends.remove(left);
            self.spread = search::Spread::of(&self.heads);
            self.counts[left] += self.counts.remove(left + 1);
            self.nodes.remove(left + 1);
            change.memory += self.memory() as isize - memory as isize;
        }
    }

    /// Elements below a child.
    pub fn count_of(&self, at: usize) -> u64 {
        self.counts[at]
    }

    /// Lets children go, which are not all; each is dropped by reference.
    pub fn remove_children(&mut self, gone: std::ops::Range<usize>) {
        // Of the separators around them one stays; at an end of the node none does.
        let from = gone.start.saturating_sub(usize::from(gone.end == self.nodes.len()));
        self.heads.drain(from..from + gone.len());
        self.ends.drain(from..from + gone.len());
        self.spread = search::Spread::of(&self.heads);
        self.counts.drain(gone.clone());
        self.nodes.drain(gone);
        self.heads.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.counts.shrink_to_fit();
        self.nodes.shrink_to_fit();
    }

    /// Joins child `at`, which has few children, with a neighbour, or shares the children of both
    /// evenly if they are too many for one. Leaves are left as they are.
    pub fn share_children(&mut self, at: usize, change: &mut Change) {
        let before = self.memory();
        let left = at.min(self.nodes.len() - 2);
        let (head, tail) = self.nodes.split_at_mut(left + 1);
        let (Node::Inner(low), Node::Inner(high)) = (&mut head[left], &mut tail[0]) else { return };
        let (low, high) = (make_mut(low, change), make_mut(high, change));
        let memory = low.memory() + high.memory();
        low.heads.push(self.heads[left]);
        low.heads.append(&mut high.heads);
        low.ends.push(std::mem::take(&mut self.ends[left]));
        low.ends.append(&mut high.ends);
        low.spread = search::Spread::of(&low.heads);
        low.counts.append(&mut high.counts);
        low.nodes.append(&mut high.nodes);
        let mut now = low.memory();
        if low.children() > FANOUT_MAX {
            let between;
            (between, *high) = low.split();
            (self.heads[left], self.ends[left]) = (between.head, between.end);
            now = low.memory() + high.memory();
            (self.counts[left], self.counts[left + 1]) = (low.count(), high.count());
        } else {
            change.nodes -= 1;
            self.heads.remove(left);
            self.ends.remove(left);
            self.counts[left] += self.counts.remove(left + 1);
            self.nodes.remove(left + 1);
        }
        self.spread = search::Spread::of(&self.heads);
        change.memory += now as isize - memory as isize;
        change.memory += self.memory() as isize - before as isize;
    }
}

impl<L: Leaf> Node<L> {
    pub fn count(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.len() as u64,
            Self::Inner(inner) => inner.count(),
        }
    }

    /// Changes the counts of the inner nodes of a path.
    #[inline]
    pub fn recount(&mut self, path: &[u8], by: i64) {
        let mut node = self;
        for at in path {
            let Node::Inner(inner) = node else { unreachable!("a path of inner nodes") };
            let inner = inner.get_mut().expect("it was copied on the way down");
            inner.recount(usize::from(*at), by);
            node = inner.node_mut(usize::from(*at));
        }
    }

    /// Prefetches its first two lines.
    #[inline]
    pub fn prefetch(&self) {
        let at = match self {
            Self::Leaf(leaf) => leaf.address(),
            Self::Inner(inner) => inner.address(),
        };
        prefetch(at);
        prefetch(at + 64);
    }

    pub fn is_under(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.is_under(),
            Self::Inner(inner) => inner.children() < FANOUT_MIN,
        }
    }
}
