//! Scores as keys of a tree.

use crate::keyed::Key;

/// The score in a form whose unsigned order is that of the numbers. Both zeros become one.
#[inline]
pub(super) fn ordered(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The score of its [`ordered`] form.
#[inline]
pub(super) fn score_of(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 0 { !ordered } else { ordered & !(1 << 63) })
}

/// Calls `f` with the key of a score and a member in the tree of scores.
#[inline]
pub(super) fn with_key<R>(score: f64, member: &[u8], f: impl FnOnce(Key<'_>) -> R) -> R {
    const SMALL: usize = 60;
    let bits = ordered(score);
    let head = (bits >> 32) as u32;
    let low = (bits as u32).to_be_bytes();
    if member.len() <= SMALL {
        let mut tail = [0; SMALL + 4];
        tail[..4].copy_from_slice(&low);
        tail[4..4 + member.len()].copy_from_slice(member);
        f(Key { head, tail: &tail[..4 + member.len()] })
    } else {
        let tail = [&low[..], member].concat();
        f(Key { head, tail: &tail })
    }
}

/// The beginning of a key in the tree of scores, of fixed size: enough to prefetch the way to it.
#[derive(Clone, Copy, Default)]
pub(super) struct Prefix {
    head: u32,
    tail: [u8; PREFIX_TAIL],
}

/// Bytes of a prefix after its head: the lower half of the score, and the first bytes of the
/// member, which mostly differ from those of its neighbours.
const PREFIX_TAIL: usize = 16;

impl Prefix {
    /// The beginning of the key of a score and a member; of any key without a score.
    #[inline]
    pub fn of(score: Option<f64>, member: &[u8]) -> Self {
        let Some(score) = score else { return Self::default() };
        let bits = ordered(score);
        let mut tail = [0; PREFIX_TAIL];
        tail[..4].copy_from_slice(&(bits as u32).to_be_bytes());
        let len = member.len().min(PREFIX_TAIL - 4);
        tail[4..4 + len].copy_from_slice(&member[..len]);
        Self { head: (bits >> 32) as u32, tail }
    }

    /// The prefix as a key.
    #[inline]
    pub fn key(&self) -> Key<'_> {
        Key { head: self.head, tail: &self.tail }
    }
}

/// Reads a score of eight bytes.
pub(super) fn score_in(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.try_into().expect("a score has 8 bytes"))
}
