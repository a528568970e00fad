//! Cutting a run of elements out of a tree, whole nodes at a time.
//!
//! ```text
//!               |<- 6 from rank 2 ->|
//! before   [a b c]  [d e f]  [g h i]  [j k l]
//! cut      [a b  ]           [    i]  [j k l]     d e f go with their leaf
//! repair   [a b i]                    [j k l]     small nodes at the seam join a neighbour
//! ```
//!
//! What lies wholly inside the run goes as it is, a child or a subtree by one reference each. Only
//! the two leaves at its ends are changed. The tree counts its nodes and bytes: the smaller part,
//! what goes or what stays, is walked for them, about ten nanoseconds per page. So cutting is O(log
//! n) changes and O(pages / 2) reads. Nothing is freed here while a clone of the tree holds it, and
//! callers that cut much keep one for the undo.

use super::Tree;
use super::leaf::{Cut, Leaf};
use super::node::{Change, Inner, Node, Way, make_mut};

impl<L: Cut> Tree<L> {
    /// Removes so many elements from this rank on.
    ///
    /// # Panics
    /// If they are not there.
    pub fn cut(&mut self, at: u64, count: u64) {
        assert!(at.checked_add(count).is_some_and(|end| end <= self.len), "ranks of the tree");
        if count == 0 {
            return;
        }
        if count == self.len {
            *self = Self::default();
            return;
        }
        let weighs_rest = count > self.len / 2;
        let mut change = Change::default();
        cut_node(&mut self.root, at, at + count, !weighs_rest, &mut change);
        self.len -= count;
        // The seam has a left and a right side.
        for side in [at.saturating_sub(1), at.min(self.len - 1)] {
            repair(&mut self.root, side, &mut change);
            self.drop_single_roots(&mut change);
        }
        if weighs_rest {
            let weight = weigh(&self.root);
            (self.nodes, self.memory) = (weight.nodes, weight.memory);
        } else {
            self.memory =
                self.memory.checked_add_signed(change.memory).expect("a count of what is there");
            self.nodes =
                self.nodes.checked_add_signed(change.nodes).expect("a count of what is there");
        }
    }

    /// Takes off roots of one child.
    fn drop_single_roots(&mut self, change: &mut Change) {
        while let Node::Inner(inner) = &self.root
            && inner.children() == 1
        {
            change.nodes -= 1;
            change.memory -= inner.memory() as isize;
            self.root = inner.node(0).clone();
        }
    }

    /// True if both are clones of one tree and neither has changed since. O(1): roots are compared,
    /// because a change copies the root as long as both trees exist.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (Node::Leaf(a), Node::Leaf(b)) => a.address() == b.address(),
            (Node::Inner(a), Node::Inner(b)) => a.address() == b.address(),
            _ => false,
        }
    }
}

/// Nodes and their bytes.
#[derive(Default)]
struct Weight {
    nodes: usize,
    memory: usize,
}

fn weigh<L: Leaf>(node: &Node<L>) -> Weight {
    let mut weight = Weight::default();
    add_weight(node, &mut weight);
    weight
}

fn add_weight<L: Leaf>(node: &Node<L>, weight: &mut Weight) {
    weight.nodes += 1;
    match node {
        Node::Leaf(leaf) => weight.memory += leaf.memory(),
        Node::Inner(inner) => {
            weight.memory += inner.memory();
            let nodes = || (0..inner.children()).map(|at| inner.node(at));
            // All at once, because the waits for memory overlap.
            for node in nodes() {
                node.prefetch();
            }
            nodes().for_each(|node| add_weight(node, weight));
        }
    }
}

/// Cuts ranks out of a node, not all of it.
fn cut_node<L: Cut>(
    node: &mut Node<L>,
    from: u64,
    to: u64,
    weighs_gone: bool,
    change: &mut Change,
) {
    let inner = match node {
        Node::Leaf(leaf) => {
            let memory = leaf.memory();
            let leaf = leaf.make_mut(L::memory);
            leaf.cut(from as usize, (to - from) as usize);
            change.memory += leaf.memory() as isize - memory as isize;
            return;
        }
        Node::Inner(inner) => make_mut(inner, change),
    };
    let (mut before, mut gone) = (0, 0..0);
    for at in 0..inner.children() {
        let count = inner.count_of(at);
        let (start, end) = (from.clamp(before, before + count), to.clamp(before, before + count));
        if start == before && end == before + count {
            gone = if gone.is_empty() { at..at + 1 } else { gone.start..at + 1 };
        } else if start < end {
            cut_node(inner.node_mut(at), start - before, end - before, weighs_gone, change);
            inner.recount(at, -((end - start) as i64));
        }
        before += count;
    }
    if gone.is_empty() {
        return;
    }
    if weighs_gone {
        for at in gone.clone() {
            let weight = weigh(inner.node(at));
            change.nodes -= weight.nodes as isize;
            change.memory -= weight.memory as isize;
        }
    }
    let memory = inner.memory();
    inner.remove_children(gone);
    change.memory += inner.memory() as isize - memory as isize;
}

/// Puts the nodes on the way to a rank in order, from the root down: one that has become small
/// joins a neighbour, or takes children from it.
fn repair<L: Leaf>(node: &mut Node<L>, rank: u64, change: &mut Change) {
    let Node::Inner(inner) = node else { return };
    let inner: &mut Inner<L> = make_mut(inner, change);
    let (at, skipped) = loop {
        let (at, skipped) = inner.choose(Way::Rank(rank), 0);
        let children = inner.children();
        if children < 2 || !inner.node(at).is_under() {
            break (at, skipped);
        }
        inner.join(at, change);
        if inner.children() == children {
            inner.share_children(at, change);
        }
        if inner.children() == children {
            break inner.choose(Way::Rank(rank), 0);
        }
    };
    repair(inner.node_mut(at), rank - skipped, change);
}

#[cfg(test)]
impl<L: Leaf> Tree<L> {
    /// Walks the whole tree to check its counts and its shape: no node is empty, and no inner node
    /// has a single child.
    pub fn check(&self) {
        fn check_node<L: Leaf>(node: &Node<L>, depth: usize, depths: &mut Vec<usize>) -> u64 {
            match node {
                Node::Leaf(leaf) => {
                    assert!(!leaf.is_empty() || depth == 0, "a leaf of nothing");
                    depths.push(depth);
                    leaf.len() as u64
                }
                Node::Inner(inner) => {
                    assert!(inner.children() > 1, "a node of {} children", inner.children());
                    assert!(inner.children() <= super::node::FANOUT_MAX);
                    for at in 0..inner.children() {
                        assert_eq!(
                            check_node(inner.node(at), depth + 1, depths),
                            inner.count_of(at)
                        );
                    }
                    inner.count()
                }
            }
        }
        let mut depths = Vec::new();
        assert_eq!(check_node(&self.root, 0, &mut depths), self.len);
        assert!(depths.iter().all(|depth| *depth == depths[0]), "leaves at one depth");
        let weight = weigh(&self.root);
        assert_eq!((weight.nodes, weight.memory), (self.nodes, self.memory));
    }
}

#[cfg(test)]
mod tests;
