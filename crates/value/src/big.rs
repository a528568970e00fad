//! Collections that are not small: what an entry holds a box of.

use base::sync::Arc;

use crate::kind::Kind;

/// A collection outside its entry. Cloning it takes references, O(1).
#[derive(Clone, Debug)]
pub enum Big {
    /// A list.
    List(List),
    /// A set.
    Set(Set),
    /// A sorted set.
    Zset(Zset),
    /// A hash.
    Hash(Hash),
}

macro_rules! each {
    ($big:expr, $value:ident => $body:expr) => {
        match $big {
            Big::List($value) => $body,
            Big::Set($value) => $body,
            Big::Zset($value) => $body,
            Big::Hash($value) => $body,
        }
    };
}

impl Big {
    /// What kind of value it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::Zset(_) => Kind::Zset,
            Self::Hash(_) => Kind::Hash,
        }
    }

    /// Bytes on the heap, O(1); the `Big` itself is not counted.
    pub fn memory(&self) -> usize {
        each!(self, value => value.memory())
    }

    /// Number of elements, O(1).
    pub fn len(&self) -> u64 {
        each!(self, value => value.len())
    }

    /// True if there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of allocations that dropping it may free, O(1).
    pub fn node_count(&self) -> usize {
        each!(self, value => value.node_count())
    }

    /// Takes back the most recent operation in the log, which is one of this value.
    pub fn undo(&mut self, log: &mut Log) {
        match log.bytes.pop().expect("an operation was logged") {
            CAPTURED => *self = log.roots.pop().expect("a captured value"),
            op => each!(self, value => value.undo(op, log)),
        }
    }
}

const CAPTURED: u8 = 0;
const PUSHED: u8 = 1;
const POPPED: u8 = 2;

/// Inverse operations of the running command, the last one on top.
#[derive(Debug, Default)]
pub struct Log {
    /// Operations, each with its kind last.
    pub bytes: Vec<u8>,
    /// Whole values as they were.
    pub roots: Vec<Big>,
}

/// How long the log was at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMark {
    bytes: usize,
    roots: usize,
}

impl Log {
    /// How long it is now.
    pub fn mark(&self) -> LogMark {
        LogMark { bytes: self.bytes.len(), roots: self.roots.len() }
    }

    /// Keeps a reference to the whole value, before a change of much of it.
    pub fn capture(&mut self, big: &Big) {
        self.roots.push(big.clone());
        self.bytes.push(CAPTURED);
    }

    /// True if nothing is logged.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.roots.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.roots.clear();
    }
}

/// Elements in a row.
#[derive(Clone, Debug, Default)]
pub struct List {
    items: Arc<Vec<Arc<Vec<u8>>>>,
    bytes: usize,
}

/// A set.
pub type Set = List;
/// A sorted set.
pub type Zset = List;
/// A hash.
pub type Hash = List;

impl List {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.items.iter().map(|item| &item[..])
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.items.len() as u64
    }

    /// True if there is no element.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.bytes + self.items.capacity() * size_of::<Arc<Vec<u8>>>()
    }

    /// Number of allocations.
    pub fn node_count(&self) -> usize {
        1 + self.items.len()
    }

    /// Adds an element behind the last one.
    pub fn push_back(&mut self, element: &[u8], log: &mut Log) {
        self.put(element.to_vec());
        log.bytes.push(PUSHED);
    }

    /// Takes the last element.
    pub fn pop_back(&mut self, log: &mut Log) -> Option<Vec<u8>> {
        let element = self.take()?;
        log.bytes.extend_from_slice(&element);
        log.bytes.extend_from_slice(&(element.len() as u32).to_le_bytes());
        log.bytes.push(POPPED);
        Some(element)
    }

    fn put(&mut self, element: Vec<u8>) {
        self.bytes += element.len();
        Arc::make_mut(&mut self.items).push(Arc::new(element));
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let element = Arc::make_mut(&mut self.items).pop()?;
        self.bytes -= element.len();
        Some(Arc::unwrap_or_clone(element))
    }

    fn undo(&mut self, op: u8, log: &mut Log) {
        if op == PUSHED {
            self.take();
            return;
        }
        let at = log.bytes.len() - 4;
        let len = log.bytes.split_off(at).try_into().map(u32::from_le_bytes);
        let from = at - len.expect("four bytes of length") as usize;
        self.put(log.bytes.split_off(from));
    }
}
