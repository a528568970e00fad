//! Giving up the beginning of a tree while the rest is still read: what a save has written.
//!
//! ```text
//!                   | root: its own, with the counts of all children
//!          +--------+--------+--------+
//!          |   .    |   .    | inner  | inner          given up: an empty leaf, which nobody reads
//!                            |  all of its leaves, until the position is behind the last one
//!                            ^ position
//! ```
//!
//! A writer copies what a snapshot shares with it, so what the snapshot gives up it changes in
//! place again. Leaves go together with the node above them: about 64, which are 200 KiB. Nodes
//! further up, which have other children left, become the snapshot's own: a few per thousand
//! leaves. Counts, length, bytes and number of nodes stay those of the whole tree.

use super::Tree;
use super::leaf::Leaf;
use super::node::{Inner, Node};
use base::shared::{COUNT_BYTES, Shared};

impl<L: Leaf> Tree<L> {
    /// Gives up nodes all of whose elements are before a rank, none of which is read any more.
    /// Returns the heap bytes that this frees: of nodes that are not shared.
    pub fn release_before(&mut self, rank: u64) -> usize {
        if rank >= self.len {
            return self.release();
        }
        if is_due(&self.root, rank) { release(&mut self.root, rank) } else { 0 }
    }

    /// Gives up all nodes if clones have them, which frees none; true if nothing is left to free.
    /// O(1).
    pub fn release_if_shared(&mut self) -> bool {
        let root = std::mem::replace(&mut self.root, Node::Leaf(Shared::default()));
        let last = match root {
            Node::Leaf(leaf) => leaf.drop_if_shared().map(Node::Leaf),
            Node::Inner(inner) => inner.drop_if_shared().map(Node::Inner),
        };
        let Some(last) = last else { return true };
        self.root = last;
        false
    }

    /// Gives up all nodes. Returns the heap bytes that this frees.
    pub fn release(&mut self) -> usize {
        if matches!(&self.root, Node::Leaf(leaf) if leaf.is_empty()) {
            return 0;
        }
        let root = std::mem::replace(&mut self.root, Node::Leaf(Shared::default()));
        heap(&root)
    }
}

/// The child with the element of a rank, and how many elements are before it.
fn child_at<L: Leaf>(inner: &Inner<L>, rank: u64) -> (usize, u64) {
    let (mut at, mut before) = (0, 0);
    while before + inner.count_of(at) <= rank {
        before += inner.count_of(at);
        at += 1;
    }
    (at, before)
}

/// Of the children before one, how many have been given up already, if their children are not
/// leaves.
fn released<L: Leaf>(inner: &Inner<L>, at: usize) -> Option<usize> {
    let is_inner = |child: &usize| matches!(inner.node(*child), Node::Inner(_));
    is_inner(&at).then(|| at - (0..at).rev().take_while(is_inner).count())
}

/// True if something below this node can be given up.
fn is_due<L: Leaf>(node: &Node<L>, rank: u64) -> bool {
    let Node::Inner(inner) = node else { return false };
    let (at, before) = child_at(inner, rank);
    released(inner, at)
        .is_some_and(|released| released < at || is_due(inner.node(at), rank - before))
}

fn release<L: Leaf>(node: &mut Node<L>, rank: u64) -> usize {
    let Node::Inner(inner) = node else { return 0 };
    let (at, before) = child_at(inner, rank);
    let Some(released) = released(inner, at) else { return 0 };
    if inner.is_shared() {
        // Not counted as a copy: no writer makes it.
        *inner = Shared::new(Inner::clone(inner));
    }
    let inner = inner.get_mut().expect("it is not shared");
    let (empty, mut freed) = (Node::Leaf(Shared::default()), 0);
    for child in released..at {
        let gone = std::mem::replace(inner.node_mut(child), empty.clone());
        freed += heap(&gone);
    }
    freed + release(inner.node_mut(at), rank - before)
}

/// Heap bytes that are freed with this node.
fn heap<L: Leaf>(node: &Node<L>) -> usize {
    match node {
        Node::Leaf(leaf) if !leaf.is_shared() => COUNT_BYTES + size_of::<L>() + leaf.memory(),
        Node::Inner(inner) if !inner.is_shared() => {
            let own = COUNT_BYTES + size_of::<Inner<L>>() + inner.memory();
            own + (0..inner.children()).map(|at| heap(inner.node(at))).sum::<usize>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
