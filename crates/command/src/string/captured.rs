//! Big strings apart from their keys: captured, read by runs, built in steps.
//!
//! A string of [`LONG_BYTES`] stands in many pages. A command which reads more than that many bytes
//! of it takes a reference to its root, O(1), and reads without its locks.

use std::ops::{Deref, DerefMut, Range};

use base::Blob;
use keyspace::{Keyspace, Parts, ReclaimOnDrop};
use value::bitmap::WINDOW_MAX;
use value::{IntText, Str};

/// From so many bytes on, a command which reads or writes them does so in steps.
pub(crate) const LONG_BYTES: usize = 1 << 20;

/// Bytes which a step reads or writes, at most. A step which counts bits takes 20 us for them, one
/// which writes to fresh memory 100 us.
pub(crate) const STEP_BYTES: usize = 256 << 10;

/// A string which is used without its guard. When a long one is dropped, the reclaimer frees what
/// nobody else refers to.
pub(crate) enum CapturedText {
    /// Freed where it is dropped.
    Short(Blob),
    /// Freed by the reclaimer.
    Long(ReclaimOnDrop<Root>),
}

/// A string of many pages.
pub(crate) struct Root(Blob);

impl Parts for Root {
    fn memory(&self) -> usize {
        self.0.len()
    }
}

impl CapturedText {
    /// A stored string.
    pub fn new(keyspace: &Keyspace, blob: Blob) -> Self {
        if blob.len() >= LONG_BYTES {
            Self::Long(keyspace.reclaim_on_drop(Root(blob)))
        } else {
            Self::Short(blob)
        }
    }

    /// An empty string, which is going to be long.
    pub fn empty(keyspace: &Keyspace) -> Self {
        Self::Long(keyspace.reclaim_on_drop(Root(Blob::default())))
    }

    /// The string, which its new owner frees.
    pub fn into_blob(self) -> Blob {
        match self {
            Self::Short(blob) => blob,
            Self::Long(root) => root.into_inner().0,
        }
    }
}

impl Deref for CapturedText {
    type Target = Blob;

    fn deref(&self) -> &Blob {
        match self {
            Self::Short(blob) => blob,
            Self::Long(root) => &root.0,
        }
    }
}

impl DerefMut for CapturedText {
    fn deref_mut(&mut self) -> &mut Blob {
        match self {
            Self::Short(blob) => blob,
            Self::Long(root) => &mut root.0,
        }
    }
}

/// The byte at a place; `None` behind the end.
pub(crate) fn byte(text: Str<'_>, at: usize) -> Option<u8> {
    match text {
        Str::Blob(blob) => blob.byte(at),
        short => short.bytes(&mut IntText::default()).get(at).copied(),
    }
}

/// Copies the bytes from `at` on into `window`, as many as there are, and at most [`WINDOW_MAX`];
/// says how many.
pub(crate) fn fill(text: Str<'_>, at: usize, window: &mut [u8]) -> usize {
    let mut filled = 0;
    let mut add = |run: &[u8]| {
        let run = &run[..run.len().min(window.len() - filled)];
        window[filled..filled + run.len()].copy_from_slice(run);
        filled += run.len();
    };
    match text {
        Str::Blob(blob) => blob.pages_in(at..at.saturating_add(WINDOW_MAX)).for_each(add),
        short => add(short.bytes(&mut IntText::default()).get(at..).unwrap_or_default()),
    }
    filled
}

/// The bytes of a range which lies within the string: where they stand, or copied to `scratch` if
/// they stand in several runs.
pub(crate) fn part<'a>(blob: &'a Blob, range: Range<usize>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let first = blob.pages_in(range.clone()).next().unwrap_or_default();
    if first.len() == range.len() {
        return first;
    }
    scratch.clear();
    blob.copy_to(range, scratch);
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A string of two full pages and a part of one, whatever their size is; and its bytes.
    fn sample() -> (Blob, Vec<u8>) {
        let bytes: Vec<u8> = (0..LONG_BYTES as u32 * 2 + 5).map(|n| (n % 251) as u8).collect();
        let mut blob = Blob::default();
        bytes.chunks(100_000).for_each(|chunk| blob.append(chunk));
        (blob, bytes)
    }

    /// Places around which runs end: the borders of all pages of a power of two.
    fn borders() -> impl Iterator<Item = usize> {
        [0, 32 << 10, 64 << 10, 128 << 10, 1 << 20, 2 << 20].into_iter()
    }

    #[test]
    fn runs_parts_and_bytes_are_those_of_the_text() {
        let (blob, bytes) = sample();
        let mut scratch = Vec::new();
        for border in borders() {
            for from in border.saturating_sub(2)..border + 3 {
                assert_eq!(byte(Str::Blob(&blob), from), bytes.get(from).copied());
                for len in [0, 1, 2, 7, 9, 70_000] {
                    let range = from.min(bytes.len())..(from + len).min(bytes.len());
                    assert_eq!(part(&blob, range.clone(), &mut scratch), &bytes[range.clone()]);
                    let mut window = [0; 9];
                    let wanted = &bytes[range.start..bytes.len().min(range.start + 9)];
                    let filled = fill(Str::Blob(&blob), from, &mut window);
                    assert_eq!(&window[..filled], wanted, "at {from}");
                }
            }
        }
    }
}
