//! Inner nodes: separators, counts and children.

use super::{Change, Leaf, Node, Way};
use base::sync::Arc;
use std::cmp::Ordering;

/// Children of an inner node, at most: about 4 KiB.
pub const FANOUT_MAX: usize = 64;
/// Below this it joins a neighbour, if both fit into one.
pub const FANOUT_MIN: usize = 16;

/// A key prefix between two children: its first eight bytes as a big-endian number, and all of it.
///
/// Most comparisons are decided by the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Separator {
    /// The first eight bytes, zeros behind a shorter one.
    pub head: u64,
    /// Its length.
    pub len: u32,
    /// What is behind the first eight bytes.
    pub rest: Option<Arc<[u8]>>,
}

impl Separator {
    /// A separator of these bytes: a head of four and a tail.
    pub fn new(head: u32, tail: &[u8]) -> Self {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&head.to_be_bytes());
        let inside = tail.len().min(4);
        bytes[4..4 + inside].copy_from_slice(&tail[..inside]);
        let rest = (tail.len() > 4).then(|| Arc::from(&tail[4..]));
        Self { head: u64::from_be_bytes(bytes), len: 4 + tail.len() as u32, rest }
    }

    /// A key of a head and a tail against it.
    #[inline]
    pub fn compare(&self, head: u32, tail: &[u8]) -> Ordering {
        let mut bytes = [0; 4];
        let inside = tail.len().min(4);
        bytes[..inside].copy_from_slice(&tail[..inside]);
        let number = u64::from(head) << 32 | u64::from(u32::from_be_bytes(bytes));
        number.cmp(&self.head).then_with(|| {
            let rest = self.rest.as_deref().unwrap_or(&[]);
            let own = tail.get(4..).unwrap_or(&[]);
            // Zeros at the end of a short one are told from real ones by the length.
            own.cmp(rest).then((4 + tail.len()).cmp(&(self.len as usize)))
        })
    }

    fn memory(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.len() + super::ARC_BYTES)
    }
}

/// A node to change: copied first if a clone of the tree shares it.
#[inline]
pub fn own<'a, L: Leaf>(inner: &'a mut Arc<Inner<L>>, change: &mut Change) -> &'a mut Inner<L> {
    if Arc::get_mut(inner).is_none() {
        let copy = Inner::clone(inner);
        change.memory += copy.memory() as isize - inner.memory() as isize;
        *inner = Arc::new(copy);
    }
    Arc::get_mut(inner).expect("it is not shared any more")
}

/// A node above leaves or other inner nodes.
#[derive(Clone)]
pub struct Inner<L> {
    /// `separators[i]` stands between child `i` and `i + 1`.
    separators: Vec<Separator>,
    /// Elements below each child.
    counts: Vec<u64>,
    nodes: Vec<Node<L>>,
}

impl<L: Leaf> Inner<L> {
    pub fn pair(left: Node<L>, separator: Separator, right: Node<L>) -> Self {
        let counts = vec![left.count(), right.count()];
        Self { separators: vec![separator], counts, nodes: vec![left, right] }
    }

    /// Heap bytes of its own, long separators included.
    pub fn memory(&self) -> usize {
        let rests: usize = self.separators.iter().map(Separator::memory).sum();
        self.separators.capacity() * size_of::<Separator>()
            + self.counts.capacity() * size_of::<u64>()
            + self.nodes.capacity() * size_of::<Node<L>>()
            + rests
    }

    #[inline]
    pub fn children(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub fn node(&self, at: usize) -> &Node<L> {
        &self.nodes[at]
    }

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
        self.separators.partition_point(|s| L::compare(key, s) != Ordering::Less)
    }

    pub fn recount(&mut self, at: usize, by: i64) {
        self.counts[at] = self.counts[at].checked_add_signed(by).expect("a count of what is there");
    }

    /// A new child right of an old one whose count still is that of both.
    pub fn insert(&mut self, at: usize, separator: Separator, node: Node<L>) {
        let count = node.count();
        self.counts[at - 1] -= count;
        self.separators.insert(at - 1, separator);
        self.counts.insert(at, count);
        self.nodes.insert(at, node);
    }

    /// Cuts the upper half off.
    pub fn split(&mut self) -> (Separator, Self) {
        let at = self.nodes.len() / 2;
        let right = Self {
            separators: self.separators.split_off(at),
            counts: self.counts.split_off(at),
            nodes: self.nodes.split_off(at),
        };
        let between = self.separators.pop().expect("both halves have children");
        self.separators.shrink_to_fit();
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
                let into = Arc::make_mut(into);
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
                    let into = own(into, change);
                    let memory = into.memory();
                    into.separators.push(self.separators[left].clone());
                    into.separators.extend_from_slice(&from.separators);
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
            self.separators.remove(left);
            self.counts[left] += self.counts.remove(left + 1);
            self.nodes.remove(left + 1);
            change.memory += self.memory() as isize - memory as isize;
        }
    }
}
