//! What is held for clients besides data: requests that have not run or that wait, queues of MULTI,
//! watches, replies that have not left, messages of ingest that are not in their sink. `maxmemory`
//! bounds it together with the data.
//!
//! Each worker has one sum. An object which holds bytes for a client owns a [`Share`] of it;
//! dropping the share subtracts them, so that no end of a connection or transaction can forget it.
//! A request which is received whole and answered at once is never held and costs nothing here.

use base::sync::Arc;
use base::sync::CachePadded;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The bytes that one worker holds for its clients.
#[derive(Debug)]
pub struct ClientMemory(Arc<CachePadded<AtomicU64>>);

impl Default for ClientMemory {
    fn default() -> Self {
        Self(Arc::new(CachePadded(AtomicU64::new(0))))
    }
}

impl ClientMemory {
    /// Bytes held now.
    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// A share of the sum, of no bytes at first.
    pub fn share(&self) -> Share {
        Share { sum: self.0.clone(), bytes: 0 }
    }
}

/// What one holder adds to its worker's sum.
#[derive(Debug)]
pub struct Share {
    sum: Arc<CachePadded<AtomicU64>>,
    bytes: u64,
}

impl Share {
    /// Bytes of it.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets how many bytes the holder holds.
    pub fn set(&mut self, bytes: u64) {
        // The sum wraps, so that less is added as more is.
        self.sum.fetch_add(bytes.wrapping_sub(self.bytes), Relaxed);
        self.bytes = bytes;
    }

    /// Its bytes are held by another worker from now on.
    pub fn move_to(&mut self, memory: &ClientMemory) {
        let bytes = self.bytes;
        self.set(0);
        self.sum = memory.0.clone();
        self.set(bytes);
    }

    /// A further share of the same sum.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { sum: self.sum.clone(), bytes: 0 }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_share_is_subtracted_from_the_sum() {
        let memory = ClientMemory::default();
        let mut first = memory.share();
        let mut second = first.another();
        first.set(100);
        second.set(7);
        first.set(30);
        assert_eq!(memory.bytes(), 37);
        drop(first);
        assert_eq!((memory.bytes(), second.bytes()), (7, 7));
        drop(second);
        assert_eq!(memory.bytes(), 0);
    }
}
