//! A counted, copy-on-write B+tree of leaves: what every big collection is made of.
//!
//! Inner nodes know how many elements are below each child, so an element is found by its rank as well as by its
//! key, O(log n). Nodes are reference counted: a clone of a tree takes one reference, O(1), and a change copies only
//! those nodes on its way that a clone still shares. What a leaf holds is the leaf's business: [`crate::keyed`] has
//! leaves in the order of keys, [`crate::seq`] leaves of a list.

mod inner;
mod walk;

use base::sync::Arc;
pub use inner::Separator;
use inner::{FANOUT_MAX, FANOUT_MIN, Inner};
use std::cmp::Ordering;
pub use walk::Walk;

/// A run of elements, neighbours in their tree.
pub trait Leaf: Clone + Default {
    /// What an element is found by; `()` where only the rank counts.
    type Key<'a>: Copy;

    /// Elements in it.
    fn len(&self) -> usize;
    /// True if there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Heap bytes it holds, O(1).
    fn memory(&self) -> usize;
    /// Too large: to be split.
    fn is_over(&self) -> bool;
    /// So small that it should be joined with a neighbour.
    fn is_under(&self) -> bool;
    /// Cuts the upper part off: about half by size, less if elements came in order.
    #[must_use]
    fn split(&mut self) -> Self;
    /// Takes the elements of its right neighbour, unless both are too much for one leaf.
    fn absorb(&mut self, right: &Self) -> bool;
    /// What tells this leaf from its left neighbour: above all keys there, not above any here.
    fn separator(&self, left: &Self) -> Separator;
    /// A key against a separator: `Less` if it belongs to the left of it.
    fn compare(key: Self::Key<'_>, separator: &Separator) -> Ordering;
}

/// A node, shared with clones of the tree.
#[derive(Clone)]
enum Node<L> {
    Leaf(Arc<L>),
    Inner(Arc<Inner<L>>),
}

/// The way down to a leaf.
#[derive(Clone, Copy)]
pub enum Way<K> {
    /// To the leaf with the element of this rank; the length leads to the last leaf.
    Rank(u64),
    /// To the last leaf; what is before it is not counted on the way and told as 0.
    Last,
    /// To the leaf that holds the key, or would.
    Key(K),
}

/// A tree of leaves. Cloning it is O(1).
#[derive(Clone)]
pub struct Tree<L> {
    root: Node<L>,
    len: u64,
    /// Heap bytes of all nodes.
    memory: usize,
    nodes: usize,
}

impl<L: Leaf> Default for Tree<L> {
    fn default() -> Self {
        Self { root: Node::Leaf(Arc::default()), len: 0, memory: 0, nodes: 1 }
    }
}

/// What a change below did to the counts.
#[derive(Default)]
struct Change {
    len: i64,
    memory: isize,
    nodes: isize,
}

impl Change {
    fn add(&mut self, other: &Self) {
        self.len += other.len;
        self.memory += other.memory;
        self.nodes += other.nodes;
    }
}

impl<L: Leaf> Tree<L> {
    /// Elements.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heap bytes, as if nothing were shared with a clone. O(1).
    pub fn memory(&self) -> usize {
        self.memory + self.nodes * (size_of::<L>() + ARC_BYTES)
    }

    /// Nodes: what freeing it costs.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The leaf at the end of the way, and the number of elements before that leaf. O(log n).
    #[inline]
    pub fn find(&self, way: Way<L::Key<'_>>) -> (&L, u64) {
        let (mut node, mut before) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(leaf) => return (leaf, before),
                Node::Inner(inner) => {
                    let (at, skipped) = inner.choose(way, before);
                    before += skipped;
                    node = inner.node(at);
                }
            }
        }
    }

    /// The leaf at the end of the way, without counting what is before it. O(log n).
    #[inline]
    pub fn find_key(&self, key: L::Key<'_>) -> &L {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf,
                Node::Inner(inner) => node = inner.node(inner.child_of_key(key)),
            }
        }
    }

    /// Changes the leaf at the end of the way; `f` gets the number of elements before that leaf. Afterwards the tree
    /// is in order again: a leaf that is over is split, one that is under joins a neighbour. O(log n).
    pub fn edit<R>(&mut self, way: Way<L::Key<'_>>, f: impl FnOnce(&mut L, u64) -> R) -> R {
        let mut change = Change::default();
        let (result, split) = edit(&mut self.root, way, 0, f, &mut change);
        if let Some((separator, right)) = split {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Arc::default()));
            let inner = Inner::pair(left, separator, right);
            change.nodes += 1;
            change.memory += inner.memory() as isize;
            self.root = Node::Inner(Arc::new(inner));
        }
        while let Node::Inner(inner) = &mut self.root
            && inner.children() == 1
        {
            let only = inner.node(0).clone();
            change.nodes -= 1;
            change.memory -= inner.memory() as isize;
            self.root = only;
        }
        self.len = self.len.checked_add_signed(change.len).expect("a count of what is there");
        self.memory =
            self.memory.checked_add_signed(change.memory).expect("a count of what is there");
        self.nodes = self.nodes.checked_add_signed(change.nodes).expect("a count of what is there");
        result
    }

    /// The leaves from the one at the end of the way on, in either direction.
    pub fn walk(&self, way: Way<L::Key<'_>>) -> Walk<'_, L> {
        Walk::new(&self.root, way)
    }
}

/// Two counters in front of what an `Arc` points to.
const ARC_BYTES: usize = 2 * size_of::<usize>();

type Split<L> = Option<(Separator, Node<L>)>;

fn edit<L: Leaf, R>(
    node: &mut Node<L>,
    way: Way<L::Key<'_>>,
    before: u64,
    f: impl FnOnce(&mut L, u64) -> R,
    change: &mut Change,
) -> (R, Split<L>) {
    let inner = match node {
        Node::Leaf(leaf) => return edit_leaf(leaf, before, f, change),
        Node::Inner(inner) => inner::own(inner, change),
    };
    let (at, skipped) = inner.choose(way, before);
    let mut below = Change::default();
    let (result, split) = edit(inner.node_mut(at), way, before + skipped, f, &mut below);
    inner.recount(at, below.len);
    let mut cut = None;
    if let Some((separator, right)) = split {
        let memory = inner.memory();
        inner.insert(at + 1, separator, right);
        if inner.children() > FANOUT_MAX {
            let (separator, right) = inner.split();
            below.nodes += 1;
            below.memory += right.memory() as isize;
            cut = Some((separator, Node::Inner(Arc::new(right))));
        }
        below.memory += inner.memory() as isize - memory as isize;
    } else if below.len <= 0 && inner.node(at).is_under() {
        // A leaf that has just begun to grow is left alone.
        inner.join(at, &mut below);
    }
    change.add(&below);
    (result, cut)
}

fn edit_leaf<L: Leaf, R>(
    leaf: &mut Arc<L>,
    before: u64,
    f: impl FnOnce(&mut L, u64) -> R,
    change: &mut Change,
) -> (R, Split<L>) {
    // A copy of a shared leaf may be smaller than the original: measured before.
    let (len, memory) = (leaf.len(), leaf.memory());
    let leaf = Arc::make_mut(leaf);
    let result = f(leaf, before);
    let mut cut = None;
    change.len += leaf.len() as i64 - len as i64;
    if leaf.is_over() {
        let right = leaf.split();
        change.nodes += 1;
        change.memory += right.memory() as isize;
        cut = Some((right.separator(leaf), Node::Leaf(Arc::new(right))));
    }
    change.memory += leaf.memory() as isize - memory as isize;
    (result, cut)
}

impl<L: Leaf> Node<L> {
    fn count(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.len() as u64,
            Self::Inner(inner) => inner.count(),
        }
    }

    fn is_under(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.is_under(),
            Self::Inner(inner) => inner.children() < FANOUT_MIN,
        }
    }
}
