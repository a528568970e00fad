//! What one session has asked for with CLIENT TRACKING.

use crate::sessions::card::ClientCard;
use crate::sessions::client_memory::Share;
use base::sync::Arc;
use std::collections::BTreeSet;

/// What a prefix takes beside its bytes.
const PREFIX_BYTES: u64 = 96;

/// Of which keys a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those that it has read.
    Reads,
    /// Those that it has read behind CLIENT CACHING YES.
    OptIn,
    /// Those that it has read, but not behind CLIENT CACHING NO.
    OptOut,
    /// Those that begin with its prefixes.
    Broadcast,
}

/// A session's tracking.
pub struct Tracking {
    /// Of which keys it is told.
    pub mode: Mode,
    /// Not of what it changes itself.
    pub no_loop: bool,
    /// The client that is told instead.
    pub redirect: Option<Arc<ClientCard>>,
    /// That client was gone when it was to be told.
    pub is_broken: bool,
    /// In [`Mode::Broadcast`].
    prefixes: BTreeSet<Box<[u8]>>,
    /// Their bytes, as those of the client.
    held: Share,
}

impl Tracking {
    /// A session begins to track; `held` is a share of no bytes.
    pub fn new(mode: Mode, held: Share) -> Self {
        Self {
            mode,
            no_loop: false,
            redirect: None,
            is_broken: false,
            prefixes: BTreeSet::new(),
            held,
        }
    }

    /// A prefix more. False if it was there.
    pub fn add_prefix(&mut self, prefix: &[u8]) -> bool {
        let is_new = self.prefixes.insert(prefix.into());
        if is_new {
            self.held.set(self.held.bytes() + PREFIX_BYTES + prefix.len() as u64);
        }
        is_new
    }

    /// The prefixes, sorted.
    pub fn prefixes(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.prefixes.iter().map(|prefix| &**prefix)
    }

    /// One of the prefixes of which this one is a beginning, or the other way round. (They do not
    /// overlap each other, but for the empty one: those nearest to it are enough.)
    pub fn overlap(&self, prefix: &[u8]) -> Option<&[u8]> {
        use std::ops::Bound::{Included, Unbounded};
        let first = self.prefixes().next().filter(|first| first.is_empty());
        let range = |bounds| self.prefixes.range::<[u8], _>(bounds).map(|found| &**found);
        let before = range((Unbounded, Included(prefix))).next_back();
        let behind = range((Included(prefix), Unbounded)).next();
        first
            .or_else(|| before.filter(|found| prefix.starts_with(found)))
            .or_else(|| behind.filter(|found| found.starts_with(prefix)))
    }

    /// Bytes that are held for it.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::client_memory::ClientMemory;

    #[test]
    fn prefixes_overlap_if_one_begins_with_the_other() {
        let memory = ClientMemory::default();
        let mut tracking = Tracking::new(Mode::Broadcast, memory.share());
        for prefix in ["b", "dd", "m:"] {
            assert_eq!(tracking.overlap(prefix.as_bytes()), None);
            assert!(tracking.add_prefix(prefix.as_bytes()));
        }
        for (prefix, other) in
            [("b", "b"), ("bx", "b"), ("d", "dd"), ("ddd", "dd"), ("", "b"), ("m:1", "m:")]
        {
            assert_eq!(tracking.overlap(prefix.as_bytes()), Some(other.as_bytes()), "{prefix}");
        }
        for prefix in ["a", "c", "de", "dc", "m", "n"] {
            let other = if prefix == "m" { Some(&b"m:"[..]) } else { None };
            assert_eq!(tracking.overlap(prefix.as_bytes()), other, "{prefix}");
        }
        assert!(!tracking.add_prefix(b"b"));
        assert!(tracking.add_prefix(b""));
        assert_eq!(tracking.overlap(b"zz"), Some(&b""[..]));
        assert_eq!(memory.bytes(), tracking.bytes());
    }
}
