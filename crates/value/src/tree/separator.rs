//! Separators between the children of an inner node: beginnings of keys.
//!
//! ```text
//! | byte 0 ... 7 | byte 8 ... len - 1 |
//! |     head     |        rest        |     head: a u64, big-endian, so that most comparisons
//!                 |<------ end ------>|           are decided by it; end: rest, and len
//! ```

use base::sync::Arc;
use std::cmp::Ordering;

/// Two counters in front of what an `Arc` points to.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// A beginning of a key, between two children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Separator {
    /// The first eight bytes, zeros behind a shorter one.
    pub(super) head: u64,
    pub(super) end: End,
}

/// What of a separator is not its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Length of all of it.
    len: u32,
    /// What is behind the first eight bytes.
    rest: Option<Arc<[u8]>>,
}

/// The first eight bytes of a head of four and a tail, as a number; zeros behind a shorter one.
#[inline]
pub fn number(head: u32, tail: &[u8]) -> u64 {
    let low = if let Some(low) = tail.first_chunk() {
        u32::from_be_bytes(*low)
    } else {
        let mut low = [0; 4];
        low[..tail.len()].copy_from_slice(tail);
        u32::from_be_bytes(low)
    };
    u64::from(head) << 32 | u64::from(low)
}

impl Separator {
    /// A separator of these bytes: a head of four and a tail.
    pub fn new(head: u32, tail: &[u8]) -> Self {
        let rest = (tail.len() > 4).then(|| Arc::from(&tail[4..]));
        Self { head: number(head, tail), end: End { len: 4 + tail.len() as u32, rest } }
    }
}

impl End {
    /// Compares the tail of a key whose number is the same as the separator's.
    pub fn compare(&self, tail: &[u8]) -> Ordering {
        let rest = self.rest.as_deref().unwrap_or(&[]);
        let own = tail.get(4..).unwrap_or(&[]);
        // The length distinguishes a short separator, filled with zeros, from one that has zeros.
        own.cmp(rest).then((4 + tail.len()).cmp(&(self.len as usize)))
    }

    pub(super) fn memory(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.len() + ARC_BYTES)
    }
}
