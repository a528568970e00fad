//! Caches in this process, each with one rule of what goes first. They count and keep no values.
//!
//! An access that misses inserts its key, after the cache has evicted until the key fits. A key
//! larger than the whole cache is not inserted.

pub mod belady;
pub mod lfu;
mod list;
pub mod lru;
pub mod random;
pub mod s3_fifo;
mod sketch;
pub mod w_tiny_lfu;

#[cfg(test)]
mod tests;

/// A cache.
pub trait Policy {
    /// Reads a key; a miss inserts it with this weight. True for a hit.
    fn access(&mut self, key: u32, weight: u64) -> bool;
}
