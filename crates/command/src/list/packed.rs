//! A list packed in its entry: writing its bytes anew.

use value::list::NewItem;
use value::packed::{Elem, skip};

use super::element::text_len;
use super::end::End;

/// Bytes of a list in its entry.
pub(super) const PACKED_MAX: usize = 2048;
/// Bytes of listpack entries from which on a tree that has shrunk is packed again.
pub(super) const PACKED_AGAIN: u64 = 512;

/// Writes a packed list with elements added at an end; false if it would be too long.
#[inline]
pub(super) fn compose<'t>(
    out: &mut Vec<u8>,
    old: &[u8],
    end: End,
    mut texts: impl DoubleEndedIterator<Item = NewItem<'t>>,
) -> bool {
    out.clear();
    match end {
        End::Front => {
            let added = texts.by_ref().rev().all(|new| append(out, &new));
            out.extend_from_slice(old);
            added && out.len() <= PACKED_MAX
        }
        End::Back => compose_back(out, old, texts),
    }
}

/// Writes a packed list with elements added behind it; false if it would be too long.
#[inline]
pub(super) fn compose_back<'t>(
    out: &mut Vec<u8>,
    old: &[u8],
    mut texts: impl Iterator<Item = NewItem<'t>>,
) -> bool {
    out.clear();
    out.extend_from_slice(old);
    texts.all(|new| append(out, &new))
}

/// How many elements come, and the bytes of their texts.
#[inline]
pub(super) fn coming<'t>(texts: impl Iterator<Item = NewItem<'t>>) -> (u64, u64) {
    texts.fold((0, 0), |(count, bytes), new| (count + 1, bytes + text_len(&new)))
}

/// Appends an element; false if that would be too long.
#[inline]
pub(super) fn append(out: &mut Vec<u8>, new: &NewItem<'_>) -> bool {
    let elem = match new {
        NewItem::Near(elem) => *elem,
        NewItem::Far(blob) => match blob.contiguous() {
            Some(bytes) => Elem::Bytes(bytes),
            None => return false, // pages are more than a packed list takes
        },
    };
    let fits = out.len() + elem.size() <= PACKED_MAX;
    if fits {
        elem.push(out);
    }
    fits
}

/// Where the last element of a packed list starts.
#[inline]
pub(super) fn last(bytes: &[u8]) -> usize {
    let (mut last, mut next) = (0, 0);
    while next < bytes.len() {
        last = next;
        next += skip(&bytes[next..]);
    }
    last
}
