//! The nodes of a list: which elements share a listpack.

use crate::listpack;
use crate::switches::PlainFrom;

/// A node of a list is a listpack of at most so many bytes; a longer element is a node by itself.
const NODE_BYTES_MAX: usize = 8 * 1024;

/// What a node of a list holds at most; a longer element is a node by itself.
#[derive(Clone, Copy, Debug)]
pub struct NodeLimits {
    /// Elements.
    pub elements: u64,
    /// Bytes of the listpack.
    pub bytes: usize,
}

impl NodeLimits {
    /// Of payloads and files.
    pub(crate) const OF_PAYLOADS: Self = Self { elements: u64::MAX, bytes: NODE_BYTES_MAX };
}

/// The nodes of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// How many.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Distributes the elements of a list to nodes.
#[derive(Debug)]
pub(crate) struct NodePacker {
    limits: NodeLimits,
    plain_from: usize,
    /// The nodes so far.
    pub nodes: Nodes,
    /// Bytes of the elements in the open node, and how many; 0 if none is open.
    open: usize,
    elements: u64,
}

/// Where an element goes.
#[derive(PartialEq, Eq)]
pub(crate) enum Placed {
    /// Into the open node.
    Join,
    /// Into a new one.
    Open,
    /// A node by itself.
    Alone,
}

impl NodePacker {
    /// No elements yet.
    pub fn new(limits: NodeLimits, plain_from: PlainFrom) -> Self {
        Self { limits, plain_from: plain_from.0, nodes: Nodes::default(), open: 0, elements: 0 }
    }

    /// Where the next element goes.
    pub fn place(&mut self, element: &[u8]) -> Placed {
        let size = listpack::size(element);
        let is_plain = element.len() >= self.plain_from;
        if is_plain || listpack::total(size) > self.limits.bytes {
            self.nodes.count += 1;
            self.nodes.bytes += if is_plain { element.len() } else { listpack::total(size) } as u64;
            self.open = 0;
            return Placed::Alone;
        }
        let joins = self.open > 0
            && self.elements < self.limits.elements
            && listpack::total(self.open + size) <= self.limits.bytes;
        if joins {
            self.open += size;
            self.elements += 1;
            self.nodes.bytes += size as u64;
            return Placed::Join;
        }
        (self.open, self.elements) = (size, 1);
        self.nodes.count += 1;
        self.nodes.bytes += listpack::total(size) as u64;
        Placed::Open
    }
}
