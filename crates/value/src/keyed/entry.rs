//! An entry of an ordered map.

use crate::member_hash::hash32;
use base::Blob;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A key: its first four bytes as a big-endian number, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<'a> {
    /// The first four bytes.
    pub head: u32,
    /// All others.
    pub tail: &'a [u8],
}

impl<'a> Key<'a> {
    /// The key of a member in hash order.
    #[inline]
    pub fn hashed(member: &'a [u8]) -> Self {
        Self { head: hash32(member), tail: member }
    }
}

/// A stored value.
#[derive(Clone, Copy, Debug)]
pub enum Val<'a> {
    /// In its page.
    Bytes(&'a [u8]),
    /// In an allocation of its own: a reference to it can be sent without a copy.
    Blob(&'a Blob),
}

impl<'a> Val<'a> {
    /// Length in bytes.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Blob(blob) => blob.len(),
        }
    }

    /// True if it has no bytes.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Its bytes; those of a value of pages are copied, O(n).
    #[inline]
    pub fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            Self::Blob(blob) => blob.to_slice(),
        }
    }

    /// Its bytes, unless they are in pages. A value in pages spells no number.
    pub fn block(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Blob(blob) => blob.contiguous(),
        }
    }

    /// The bytes in order, as runs of contiguous memory.
    pub fn runs(self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, pages) = match self {
            Self::Bytes(bytes) => (Some(bytes), None),
            Self::Blob(blob) => (None, Some(blob.pages())),
        };
        bytes.into_iter().chain(pages.into_iter().flatten())
    }

    /// The order of the bytes of both. O(n) in the length of their common prefix; pages which they
    /// share are not read.
    #[inline]
    pub fn compare(self, other: Val<'_>) -> Ordering {
        match (self, other) {
            (Self::Bytes(a), Val::Bytes(b)) => a.cmp(b),
            _ => compare_runs(self.runs(), other.runs()),
        }
    }

    /// The bytes of a value which is known to be short, such as a score.
    #[inline]
    pub fn short(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Blob(blob) => blob.contiguous().expect("a short value is one block"),
        }
    }
}

fn compare_runs<'a, 'b>(
    mut a: impl Iterator<Item = &'a [u8]>,
    mut b: impl Iterator<Item = &'b [u8]>,
) -> Ordering {
    let (mut left, mut right): (&[u8], &[u8]) = (&[], &[]);
    loop {
        if left.is_empty() {
            left = a.next().unwrap_or_default();
        }
        if right.is_empty() {
            right = b.next().unwrap_or_default();
        }
        let len = left.len().min(right.len());
        if len == 0 {
            return left.len().cmp(&right.len());
        }
        let ((x, left_rest), (y, right_rest)) = (left.split_at(len), right.split_at(len));
        if x.as_ptr() != y.as_ptr() && x != y {
            return x.cmp(y);
        }
        (left, right) = (left_rest, right_rest);
    }
}

/// A key with its value.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key.
    pub key: Key<'a>,
    /// The value.
    pub value: Val<'a>,
}

#[cfg(test)]
mod tests {
    use super::Val;
    use base::Blob;
    use base::blob::{BLOCK_MAX, PAGE_BYTES};

    /// Blocks, pages and plain bytes compare as their bytes do, wherever they differ.
    #[test]
    fn values_compare_by_their_bytes() {
        let mut texts = vec![Vec::new(), b"m".to_vec(), vec![b'm'; PAGE_BYTES]];
        for len in [BLOCK_MAX, BLOCK_MAX + 1, BLOCK_MAX + PAGE_BYTES + 5] {
            texts.push(vec![b'm'; len]);
            for at in [0, PAGE_BYTES - 1, PAGE_BYTES, len - 1] {
                for byte in [b'a', b'z'] {
                    let mut text = vec![b'm'; len];
                    text[at] = byte;
                    texts.push(text);
                }
            }
        }
        let blobs: Vec<Blob> = texts.iter().map(|text| Blob::from(&text[..])).collect();
        for (a, text) in texts.iter().enumerate() {
            for (b, other) in texts.iter().enumerate() {
                let order = text.cmp(other);
                let (first, second) = (Val::Blob(&blobs[a]), Val::Blob(&blobs[b]));
                assert_eq!(first.compare(second), order, "{a} and {b}");
                assert_eq!(first.compare(Val::Bytes(other)), order, "{a} and {b}");
                assert_eq!(Val::Bytes(text).compare(second), order, "{a} and {b}");
            }
        }
    }
}
