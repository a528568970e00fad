//! A reference-counted byte buffer for values too big to copy under a lock.
//!
//! A reader takes a reference under the slot's guard and sends the bytes after it; a writer changes
//! the buffer in place while it holds the only reference and copies it otherwise.

use std::sync::Arc; // a reference count, not synchronisation of the data path

/// A big value: cloning it takes a reference, O(1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Blob(Arc<Vec<u8>>);

impl Blob {
    /// Takes the vector over without copying.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is not a single byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes this buffer occupies, spare room included.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// The vector, to change in place: copied first, O(n), if somebody else holds a reference.
    pub fn make_mut(&mut self) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.0)
    }

    /// True if nobody else holds a reference.
    pub fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_some()
    }

    /// One machine word that owns this reference; give it back with [`Blob::from_word`].
    pub fn into_word(self) -> *const Vec<u8> {
        Arc::into_raw(self.0)
    }

    /// Takes back a reference given out by [`Blob::into_word`].
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
