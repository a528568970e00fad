//! What a worker brings along to change a table.

use crate::bucket::Word;
use crate::memory::{BucketMem, PageCache};
use base::hash::KeyHasher;

/// What a worker brings along to change a table.
pub(crate) struct Workspace<'a> {
    /// The memory of all buckets.
    pub mem: &'a BucketMem,
    /// The worker's free pages of it.
    pub pages: &'a mut PageCache,
    /// Hashes keys whose entries move to another bucket.
    pub hasher: &'a KeyHasher,
    /// For the words of a bucket that is split or merged; empty in between.
    pub scratch: &'a mut Vec<Word>,
}
