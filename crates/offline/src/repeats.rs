//! Finds a key that occurs twice, which a server does not load.
//!
//! A first pass keeps 8 bytes of each key, its hash, for [`KEYS_MAX`] keys. Only if two are equal,
//! a second pass compares the names of these keys. The hashes depend on a secret, so that no file
//! can be made whose keys have equal ones.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use rdb::file::{Chunk, Fault, FileError, LongChunk};

/// Keys whose hashes are kept at most: 512 MiB.
const KEYS_MAX: usize = 1 << 26;
/// Hashes for which names are compared at most.
const SUSPECTS_MAX: usize = 1000;

/// The hashes of keys.
pub struct Hashes {
    random: RandomState,
    all: Vec<u64>,
    /// Keys that were not compared, because there were too many.
    pub left_out: u64,
}

/// Keys whose hashes occur twice.
pub struct Suspects {
    random: RandomState,
    hashes: HashSet<u64>,
    seen: HashSet<(u32, Vec<u8>)>,
}

impl Hashes {
    /// No key yet.
    pub fn new() -> Self {
        Self { random: RandomState::new(), all: Vec::new(), left_out: 0 }
    }

    /// Adds a key, O(its length).
    pub fn add(&mut self, db: u32, name: &[u8]) {
        if self.all.len() == KEYS_MAX {
            self.left_out += 1;
        } else {
            self.all.push(self.random.hash_one((db, name)));
        }
    }

    /// What must be looked at again, if there is something. O(n log n).
    pub fn suspects(&mut self) -> Option<Suspects> {
        self.all.sort_unstable();
        let equal = self.all.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]);
        let hashes: HashSet<u64> = equal.take(SUSPECTS_MAX).collect();
        (!hashes.is_empty()).then(|| Suspects {
            random: self.random.clone(),
            hashes,
            seen: HashSet::new(),
        })
    }
}

impl Suspects {
    /// The first key of a part of a file which came before.
    ///
    /// # Errors
    /// The file is wrong, so it was changed meanwhile.
    pub fn first_in(&mut self, chunk: &Chunk) -> Result<Option<FileError>, FileError> {
        match chunk {
            Chunk::Keys(keys) => {
                for key in keys {
                    let key = key?;
                    if self.is_repeated(key.db, &key.name) {
                        return Ok(Some(twice(key.offset, key.db, &key.name, key.id)));
                    }
                }
            }
            Chunk::Long(LongChunk::Begin(about)) if self.is_repeated(about.db, &about.name) => {
                return Ok(Some(twice(about.offset, about.db, &about.name, about.id)));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Whether the same key came before.
    fn is_repeated(&mut self, db: u32, name: &[u8]) -> bool {
        self.hashes.contains(&self.random.hash_one((db, name)))
            && !self.seen.insert((db, name.to_vec()))
    }
}

fn twice(offset: u64, db: u32, name: &[u8], id: u8) -> FileError {
    let (db, key, id) = (Some(db), Some(name.to_vec()), Some(id));
    FileError { offset, db, key, id, fault: Fault::Twice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_of_one_database_is_found() {
        let mut hashes = Hashes::new();
        for (db, name) in [(0, b"a"), (1, b"a"), (0, b"b")] {
            hashes.add(db, name);
        }
        assert!(hashes.suspects().is_none());
        hashes.add(1, b"a");
        let mut suspects = hashes.suspects().expect("it came twice");
        let found = [(0, b"a"), (1, b"a"), (0, b"b"), (1, b"a")]
            .map(|(db, name)| suspects.is_repeated(db, name));
        assert_eq!(found, [false, false, false, true]);
    }

    /// Equal hashes of different keys are no repetition.
    #[test]
    fn names_are_compared_where_hashes_are_equal() {
        let mut hashes = Hashes::new();
        let random = hashes.random.clone();
        hashes.all = [&b"a"[..], b"b"].map(|name| random.hash_one((0_u32, name))).to_vec();
        hashes.all.extend_from_within(..);
        let mut suspects = hashes.suspects().expect("equal hashes");
        assert!(!suspects.is_repeated(0, b"a") && !suspects.is_repeated(0, b"b"));
        assert!(suspects.is_repeated(0, b"b"));
    }
}
