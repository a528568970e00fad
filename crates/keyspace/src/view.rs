//! What a reader sees of an entry.

use crate::entry::EntryPtr;
use base::UnixMs;
use value::{Big, Encoding, Kind, Str};

/// A stored key and its value, as a reader sees them under the guard.
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

    /// What kind of value it is.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        self.ptr.kind()
    }

    /// True if it holds a string: one test, for the shortest paths.
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

    /// Its encoding's name, as `OBJECT ENCODING` says it.
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
        u64::from(lru_of(now).wrapping_sub(self.ptr.lru()) & LRU_MASK)
    }

    /// Bytes that the entry and its share of the table occupy.
    pub fn memory(&self) -> usize {
        self.ptr.memory() + size_of::<u64>() * 2
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

const LRU_MASK: u32 = (1 << 24) - 1;

/// What the access clock said before so many seconds, or as long ago as it can tell.
pub(crate) fn idle_since(lru: u32, seconds: u64) -> u32 {
    lru.wrapping_sub(seconds.min(u64::from(LRU_MASK)) as u32) & LRU_MASK
}

/// The access clock: seconds modulo 2^24, about 194 days.
#[inline]
pub(crate) fn lru_of(now: UnixMs) -> u32 {
    (now.0 / 1000) as u32 & LRU_MASK
}
