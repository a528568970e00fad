//! Names of channels and patterns: kept once, referred to by all who subscribe.

use base::sync::Arc;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// About how many bytes a name takes beside its text, in all tables in which it stands.
pub const NAME_BYTES: u64 = 160;

/// The name of a channel or a pattern, with its hash.
#[derive(Clone, Debug)]
pub struct Name {
    hash: u64,
    text: Arc<[u8]>,
}

impl Name {
    /// A name with the hash that the keyspace's secret gives it.
    pub fn new(hash: u64, text: &[u8]) -> Self {
        Self { hash, text: text.into() }
    }

    /// Its bytes.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// A name that is asked for, which nobody may have kept yet.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its hash.
    pub hash: u64,
    /// Its bytes.
    pub text: &'a [u8],
}

impl Asked<'_> {
    /// A copy to be kept.
    pub fn to_name(self) -> Name {
        Name::new(self.hash, self.text)
    }
}

/// What tables compare: a name that is kept, or one that is asked for.
pub trait Named {
    /// Hash and bytes.
    fn parts(&self) -> (u64, &[u8]);
}

impl Named for Name {
    fn parts(&self) -> (u64, &[u8]) {
        (self.hash, &self.text)
    }
}

impl Named for Asked<'_> {
    fn parts(&self) -> (u64, &[u8]) {
        (self.hash, self.text)
    }
}

impl<'a> Borrow<dyn Named + 'a> for Name {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Named + '_ {}

impl PartialOrd for dyn Named + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Named + '_ {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Hash for dyn Named + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.parts().0);
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Passes on the hash that a name has.
#[derive(Debug, Default)]
pub struct Passed(u64);

impl Hasher for Passed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a name gives its hash as one number")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A table by name.
pub type Table<V> = HashMap<Name, V, BuildHasherDefault<Passed>>;

/// A table with room for fewer names than this is left as large as it is.
const SHRUNK_FROM: usize = 16;

/// Removes a name. A table that is nearly empty then gives its memory back: what a million names
/// have taken is not kept when they are gone. (It shrinks to twice its names, so that it neither
/// grows nor shrinks again soon.)
pub fn remove_from<V>(table: &mut Table<V>, name: &dyn Named) {
    table.remove(name);
    if table.capacity() > SHRUNK_FROM && table.len() * 8 < table.capacity() {
        table.shrink_to(table.len() * 2);
    }
}

/// Parts of a table that may hold a million names: each grows by itself, so that no step is long.
pub const PARTS: usize = 256;

/// The part of a name. (A table uses the highest and the lowest bits of the hash.)
#[inline]
pub fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_back_what_its_names_have_taken() {
        let mut table = Table::default();
        let name = |n: u64| Name::new(n << 57 | n, b"x");
        (0..4000).for_each(|n| _ = table.insert(name(n), n));
        let most = table.capacity();
        for n in 0..4000 {
            remove_from(&mut table, &name(n));
            let room = table.capacity();
            let is_small = room <= SHRUNK_FROM || room <= table.len() * 8 + 8;
            assert!(is_small, "room for {room} names, and {} are there", table.len());
            assert!(room <= most);
        }
        assert!(table.capacity() <= SHRUNK_FROM);
        // One that comes and goes does not have the table made again each time.
        table.insert(name(1), 1);
        let room = table.capacity();
        remove_from(&mut table, &name(1));
        assert_eq!(table.capacity(), room);
    }
}
