//! A counted, copy-on-write B+tree of leaves: what every big collection is made of.
//!
//! ```text
//! Tree       root, len, memory, nodes
//!
//! Inner      heads[0] heads[1]     numbers of the separators: their first eight bytes
//!              ends[0]  ends[1]    their lengths, and the bytes after the eighth
//!         +---------+---------+---------+
//!         | child 0 | child 1 | child 2 |  ...  up to 64
//!         |  counts |  counts |  counts |  elements below each
//!         +----|----+----|----+----|----+
//!              v         v         v
//!            Leaf       Leaf      Leaf     or all Inner: leaves are at one depth
//!
//! keys of child 0  <  separator 0  <=  keys of child 1  <  separator 1  <=  keys of child 2
//! ```
//!
//! Inner nodes know how many elements are below each child, so an element is found by its rank as
//! well as by its key, O(log n). Nodes are reference counted: a clone of a tree takes one
//! reference, O(1), and a change copies only those nodes on its way that a clone still shares. What
//! a leaf holds is the leaf's business: [`crate::keyed`] has leaves in the order of keys,
//! [`crate::seq`] leaves of a list.

mod cut;
mod leaf;
mod node;
mod release;
pub mod search;
mod separator;
mod walk;

use base::shared::{COUNT_BYTES, Shared};
pub use leaf::{Cut, Leaf};
pub use node::Way;
use node::{Change, FANOUT_MAX, Inner, Node, make_mut};
pub use separator::{End, Separator, number};
pub use walk::Walk;

/// Keys whose memory is prefetched together, at most.
pub const WARM_MAX: usize = 32;

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
        Self { root: Node::Leaf(Shared::default()), len: 0, memory: 0, nodes: 1 }
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
        self.memory + self.nodes * (size_of::<L>() + COUNT_BYTES)
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

    /// Prefetches the way to these keys, level by level, so that the waits of all keys overlap. At
    /// most [`WARM_MAX`] keys. Returns their leaves, and any leaf for the places after them.
    /// O(log n) for each.
    #[inline]
    pub fn warm<'a>(&'a self, keys: &[L::Key<'_>]) -> [&'a L; WARM_MAX] {
        let mut nodes = [&self.root; WARM_MAX];
        // All leaves are at one depth.
        while let (Node::Inner(_), false) = (nodes[0], keys.is_empty()) {
            for (node, key) in nodes.iter().zip(keys) {
                if let Node::Inner(inner) = node {
                    inner.prefetch_search(L::number(*key));
                }
            }
            for (node, key) in nodes.iter_mut().zip(keys) {
                if let Node::Inner(inner) = *node {
                    *node = inner.node(inner.child_of_key(*key));
                    node.prefetch();
                }
            }
        }
        let leaf =
            |node: &'a Node<L>| if let Node::Leaf(leaf) = node { Some(&**leaf) } else { None };
        let any = leaf(nodes[0]).unwrap_or_else(|| self.find(Way::Rank(0)).0);
        nodes.map(|node| leaf(node).unwrap_or(any))
    }

    /// Changes the leaf at the end of the way; `f` gets the number of elements before that leaf, of
    /// a way by rank. Afterwards a leaf that is over is split, and one that is under joins a
    /// neighbour. O(log n).
    #[inline]
    pub fn edit<R>(&mut self, way: Way<L::Key<'_>>, f: impl FnOnce(&mut L, u64) -> R) -> R {
        let mut change = Change::default();
        let (mut path, mut depth) = ([0_u8; DEPTH_MAX], 0);
        let (mut node, mut before) = (&mut self.root, 0);
        let leaf = loop {
            match node {
                Node::Leaf(leaf) => break leaf,
                Node::Inner(inner) => {
                    let inner = make_mut(inner, &mut change);
                    // The elements before a key are not asked for, so the counts are not read.
                    let (at, skipped) = match way {
                        Way::Key(key) => (inner.child_of_key(key), 0),
                        way => inner.choose(way, before),
                    };
                    path[depth] = at as u8;
                    depth += 1;
                    before += skipped;
                    node = inner.node_mut(at);
                }
            }
        };
        // Measured before the copy of a shared leaf, which may be smaller than the original.
        let (len, memory) = (leaf.len(), leaf.memory());
        let leaf = leaf.make_mut(L::memory);
        let result = f(leaf, before);
        change.len = leaf.len() as i64 - len as i64;
        change.memory += leaf.memory() as isize - memory as isize;
        // A leaf that grows is not joined: it has just begun.
        let is_balanced = !leaf.is_over() && (change.len > 0 || depth == 0 || !leaf.is_under());
        let path = &path[..depth];
        if change.len != 0 {
            self.root.recount(path, change.len);
        }
        if !is_balanced {
            self.rebalance(path, &mut change);
        }
        self.len = self.len.checked_add_signed(change.len).expect("a count of what is there");
        self.memory =
            self.memory.checked_add_signed(change.memory).expect("a count of what is there");
        self.nodes = self.nodes.checked_add_signed(change.nodes).expect("a count of what is there");
        result
    }

    /// True if a clone has the leaf at the end of the way too: a change there would copy it, and
    /// perhaps nodes above it. O(log n).
    pub fn is_shared(&self, way: Way<L::Key<'_>>) -> bool {
        let (mut node, mut before) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.is_shared(),
                Node::Inner(inner) if inner.is_shared() => return true,
                Node::Inner(inner) => {
                    let (at, skipped) = inner.choose(way, before);
                    before += skipped;
                    node = inner.node(at);
                }
            }
        }
    }

    /// Splits or joins the leaf at the end of a path, and what is above it.
    #[cold]
    fn rebalance(&mut self, path: &[u8], change: &mut Change) {
        if let Some((separator, right)) = rebalance(&mut self.root, path, change) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Shared::default()));
            let inner = Inner::pair(left, separator, right);
            change.nodes += 1;
            change.memory += inner.memory() as isize;
            self.root = Node::Inner(Shared::new(inner));
        }
        while let Node::Inner(inner) = &mut self.root
            && inner.children() == 1
        {
            let only = inner.node(0).clone();
            change.nodes -= 1;
            change.memory -= inner.memory() as isize;
            self.root = only;
        }
    }

    /// The leaves from the one at the end of the way on, in either direction.
    pub fn walk(&self, way: Way<L::Key<'_>>) -> Walk<'_, L> {
        Walk::new(&self.root, way)
    }
}

/// Inner nodes above a leaf, at most: each but the root has 16 children or could not be joined with
/// a neighbour.
const DEPTH_MAX: usize = 32;

type Split<L> = Option<(Separator, Node<L>)>;

/// Splits and joins the nodes of a path, from the leaf upwards. They are not shared, and their
/// counts are right.
fn rebalance<L: Leaf>(node: &mut Node<L>, path: &[u8], change: &mut Change) -> Split<L> {
    let inner = match node {
        Node::Leaf(leaf) => return split_leaf(leaf, change),
        Node::Inner(inner) => make_mut(inner, change),
    };
    let (&at, path) = path.split_first().expect("a child of each inner node");
    let at = usize::from(at);
    if let Some((separator, right)) = rebalance(inner.node_mut(at), path, change) {
        let (memory, mut cut) = (inner.memory(), None);
        inner.insert(at + 1, separator, right);
        if inner.children() > FANOUT_MAX {
            let (separator, right) = inner.split();
            change.nodes += 1;
            change.memory += right.memory() as isize;
            cut = Some((separator, Node::Inner(Shared::new(right))));
        }
        change.memory += inner.memory() as isize - memory as isize;
        return cut;
    }
    if change.len <= 0 && inner.node(at).is_under() {
        inner.join(at, change);
    }
    None
}

fn split_leaf<L: Leaf>(leaf: &mut Shared<L>, change: &mut Change) -> Split<L> {
    if !leaf.is_over() {
        return None;
    }
    let leaf = leaf.make_mut(L::memory);
    let memory = leaf.memory();
    let right = leaf.split();
    change.nodes += 1;
    change.memory += right.memory() as isize + leaf.memory() as isize - memory as isize;
    Some((right.separator(leaf), Node::Leaf(Shared::new(right))))
}
