//! A reference-counted byte buffer for values too big to copy under a lock.
//!
//! A reader takes a reference under the slot's guard and sends the bytes after releasing it. A
//! writer that holds the only reference changes the buffer in place; otherwise it copies.

use std::sync::Arc; // a reference count, not synchronisation of the data path

/// A big value: cloning it takes a reference, O(1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Blob(Arc<Vec<u8>>);

impl Blob {
    /// Wraps the vector without copying.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The bytes in order, as runs of contiguous memory.
    pub fn pages(&self) -> impl Iterator<Item = &[u8]> + Clone {
        std::iter::once(self.as_slice())
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes this buffer occupies, spare room included.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// The vector, to change in place: copied first, O(n), if there is another reference.
    pub fn make_mut(&mut self) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.0)
    }

    /// True if this is the only reference.
    pub fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_some()
    }

    /// One machine word that owns this reference; [`Blob::from_word`] takes it back.
    pub fn into_word(self) -> *const Vec<u8> {
        Arc::into_raw(self.0)
    }

    /// Takes back a reference from [`Blob::into_word`].
    ///
    /// # Safety
    /// `word` came from `into_word` and was not taken back before.
    #[allow(unsafe_code)]
    pub unsafe fn from_word(word: *const Vec<u8>) -> Self {
        // SAFETY: the caller says that `word` came from `Arc::into_raw` and owns one count.
        Self(unsafe { Arc::from_raw(word) })
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reader_keeps_what_it_saw() {
        let mut written = Blob::from(b"old".as_slice());
        let seen = written.clone();
        assert!(!written.is_unique());
        written.make_mut().extend_from_slice(b"er");
        assert_eq!((seen.as_slice(), written.as_slice()), (b"old".as_slice(), b"older".as_slice()));
        assert!(written.is_unique(), "the copy belongs to the writer alone");
        let place = written.as_slice().as_ptr();
        written.make_mut()[0] = b'O';
        assert_eq!(written.as_slice().as_ptr(), place, "changed in place");
    }

    #[test]
    fn nothing_is_copied_on_the_way_in() {
        let bytes = Vec::with_capacity(100);
        let place = bytes.as_ptr();
        let blob = Blob::new(bytes);
        assert_eq!(blob.as_slice().as_ptr(), place);
        assert_eq!((blob.len(), blob.capacity(), blob.is_empty()), (0, 100, true));
    }

    proptest! {
        /// Model: a list of strong references, some of them held as words. However they are
        /// cloned, turned into words and back, and dropped, the count stays theirs.
        #[test]
        #[allow(unsafe_code)]
        fn words_own_one_reference_each(steps in prop::collection::vec((0u8..4, any::<usize>()), 0..60)) {
            let first = Blob::from(b"shared".as_slice());
            let (mut blobs, mut words) = (vec![first.clone()], Vec::new());
            for (step, at) in steps {
                match step {
                    0 if !blobs.is_empty() => blobs.push(blobs[at % blobs.len()].clone()),
                    1 if !blobs.is_empty() => {
                        words.push(blobs.swap_remove(at % blobs.len()).into_word());
                    }
                    2 if !words.is_empty() => {
                        let word = words.swap_remove(at % words.len());
                        // SAFETY: it came from `into_word` and has just left the list for good.
                        blobs.push(unsafe { Blob::from_word(word) });
                    }
                    3 if !blobs.is_empty() => drop(blobs.swap_remove(at % blobs.len())),
                    _ => {}
                }
                prop_assert_eq!(Arc::strong_count(&first.0), 1 + blobs.len() + words.len());
                prop_assert!(blobs.iter().all(|blob| blob.as_slice() == b"shared"));
            }
            for word in words {
                // SAFETY: it came from `into_word` and was not taken back: it is still listed.
                drop(unsafe { Blob::from_word(word) });
            }
            prop_assert_eq!(Arc::strong_count(&first.0), 1 + blobs.len());
        }
    }
}
