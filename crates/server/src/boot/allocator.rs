//! What the binary tells the server of its allocator.

/// What the binary knows of its allocator.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Bytes allocated, and bytes resident.
    pub memory: fn() -> (u64, u64),
    /// What MEMORY asks of it.
    pub tools: AllocatorTools,
    /// Called in each worker's thread before it runs.
    pub worker_started: fn(usize),
}

/// What the allocator can do beyond counting.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorTools {
    /// Bytes of pages in which something is allocated.
    pub active: fn() -> u64,
    /// Gives free pages back to the system; false if that failed.
    pub purge: fn() -> bool,
    /// Gives pages back that have been free for long enough, in all of its arenas: what it does
    /// by itself only while it allocates.
    pub decay: fn(),
    /// Empties the cache of the calling thread.
    pub empty_thread_cache: fn(),
    /// What it tells of itself.
    pub report: fn() -> Vec<u8>,
}

impl Default for AllocatorTools {
    /// Those of an allocator that can do nothing.
    fn default() -> Self {
        Self {
            active: || 0,
            purge: || false,
            decay: || {},
            empty_thread_cache: || {},
            report: Vec::new,
        }
    }
}
