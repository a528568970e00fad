//! A reader's view of an entry.

use crate::entry::EntryPtr;
use crate::uses::{Uses, idle_seconds};
use base::UnixMs;
use value::{Big, Encoding, Kind, Str};

/// A stored key and its value, valid while the guard is held.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub(crate) ptr: EntryPtr,
    pub(crate) life: std::marker::PhantomData<&'a [u8]>,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(ptr: EntryPtr) -> Self {
        Self { ptr, life: std::marker::PhantomData }
    }

    /// The key.
    pub fn key(&self) -> &'a [u8] {
        self.ptr.key()
    }

    /// The kind of the value.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        self.ptr.kind()
    }

    /// True if it holds a string: a single test, for the hot paths.
    #[inline(always)]
    pub fn is_string(&self) -> bool {
        self.ptr.header().is_string()
    }

    /// The bytes of a collection inside the entry; `None` for a string and for a [`Big`].
    #[inline]
    pub fn packed(&self) -> Option<&'a [u8]> {
        self.ptr.packed()
    }

    /// The collection outside the entry; `None` for a string and for a packed one.
    #[inline]
    pub fn big(&self) -> Option<&'a Big> {
        self.ptr.big()
    }

    /// The string; the key must hold one.
    #[inline(always)]
    pub fn str(&self) -> Str<'a> {
        self.ptr.str()
    }

    /// Its encoding, as `OBJECT ENCODING` reports it.
    pub fn encoding(&self) -> Encoding {
        self.ptr.encoding()
    }

    /// When it expires.
    #[inline]
    pub fn expiry(&self) -> Option<UnixMs> {
        self.ptr.expiry()
    }

    /// Whole seconds since it was last read or written.
    pub fn idle_seconds(&self, now: UnixMs) -> u64 {
        idle_seconds(self.ptr.uses(), now)
    }

    /// About how often it is used, on a logarithmic scale; `None` if `uses` does not record this.
    pub fn frequency(&self, uses: Uses, now: UnixMs) -> Option<u8> {
        uses.frequency(self.ptr.uses(), now)
    }

    /// Bytes that the entry and its share of the table occupy.
    pub fn memory(&self) -> usize {
        self.ptr.memory() + size_of::<u64>() * 2
    }

    /// Bytes of the entry's own allocation, and how many of them are in use.
    pub fn allocation(&self) -> (usize, usize) {
        (self.ptr.class(), self.ptr.size(self.ptr.header()))
    }

    /// Length of the text in bytes.
    pub fn str_len(&self) -> usize {
        match self.str() {
            Str::Int(number) => base::num::text_len(number),
            Str::Bytes(bytes) => bytes.len(),
            Str::Blob(blob) => blob.len(),
        }
    }
}

impl std::fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Entry");
        shown.field("key", &self.key()).field("kind", &self.kind());
        if self.is_string() {
            shown.field("str", &self.str());
        } else {
            shown.field("packed", &self.packed()).field("big", &self.big());
        }
        shown.finish()
    }
}
