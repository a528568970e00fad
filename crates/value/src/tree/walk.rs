//! Leaves one after the other.

use super::leaf::Leaf;
use super::node::{Inner, Node, Way};

/// A place in a tree that moves by leaves, in either direction. A step is O(1) amortised.
#[derive(Clone)]
pub struct Walk<'a, L> {
    /// The inner nodes from the root down, with the child taken in each.
    path: Vec<(&'a Inner<L>, usize)>,
    leaf: &'a L,
    before: u64,
}

impl<'a, L: Leaf> Walk<'a, L> {
    pub(super) fn new(root: &'a Node<L>, way: Way<L::Key<'_>>) -> Self {
        let (mut path, mut before, mut node) = (Vec::new(), 0, root);
        loop {
            match node {
                Node::Leaf(leaf) => return Self { path, leaf, before },
                Node::Inner(inner) => {
                    let (at, skipped) = inner.choose(way, before);
                    before += skipped;
                    path.push((&**inner, at));
                    node = inner.node(at);
                }
            }
        }
    }

    /// The leaf at this place.
    #[inline]
    pub fn leaf(&self) -> &'a L {
        self.leaf
    }

    /// Elements before this leaf.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// To the next leaf; false at the end, where it stays.
    pub fn forward(&mut self) -> bool {
        let len = self.leaf.len() as u64;
        let moved = self.step(|inner, at| (at + 1 < inner.children()).then_some(at + 1), |_| 0);
        if moved {
            self.before += len;
        }
        moved
    }

    /// To the leaf before; false at the beginning, where it stays.
    pub fn backward(&mut self) -> bool {
        let moved = self.step(|_, at| at.checked_sub(1), |inner| inner.children() - 1);
        if moved {
            self.before -= self.leaf.len() as u64;
        }
        moved
    }

    fn step(
        &mut self,
        next: impl Fn(&Inner<L>, usize) -> Option<usize>,
        edge: impl Fn(&Inner<L>) -> usize,
    ) -> bool {
        let Some(depth) = self.path.iter().rposition(|(inner, at)| next(inner, *at).is_some())
        else {
            return false;
        };
        self.path.truncate(depth + 1);
        let (inner, at) = self.path.last_mut().expect("it was found there");
        *at = next(inner, *at).expect("it was found there");
        let mut node = inner.node(*at);
        loop {
            match node {
                Node::Leaf(leaf) => {
                    self.leaf = leaf;
                    return true;
                }
                Node::Inner(inner) => {
                    let at = edge(inner);
                    self.path.push((&**inner, at));
                    node = inner.node(at);
                }
            }
        }
    }
}
