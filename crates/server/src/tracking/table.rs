//! Which connections have read which keys and are to be told of their next change, once.

use crate::pubsub::names::{Asked, Name};
use crate::tracking::listed::{Listed, listed};
use base::sync::atomic::AtomicU64;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::{Mutex, MutexGuard};
use driver::ConnId;
use hashbrown::HashTable;
use hashbrown::hash_table::OccupiedEntry;

/// Of the hash, in a table's marks: its highest.
const MARK_BITS: u32 = 7;

/// Longest key that stands in the table itself.
const KEY_SHORT_MAX: usize = 22;

/// Parts of the table: each grows by itself, so that no step is long.
const KEY_PARTS: usize = 1024;

/// What a further connection of a key takes.
const READER_BYTES: u64 = size_of::<(u32, ConnId)>() as u64;

/// Who has read a key: workers and connections there, by their places. (A place is used again when
/// its connection has ended, so there are not more readers than there were connections at once.)
#[derive(Debug)]
pub enum Readers {
    /// One.
    One(u32, ConnId),
    /// Several.
    Many(Vec<(u32, ConnId)>),
}

impl Readers {
    /// Adds a reader. False if it was there.
    fn add(&mut self, worker: u32, conn: ConnId) -> bool {
        if let Self::One(first, other) = *self {
            if (first, other.index) == (worker, conn.index) {
                *self = Self::One(worker, conn);
                return false;
            }
            let mut all = Vec::with_capacity(4);
            all.push((first, other));
            *self = Self::Many(all);
        }
        let Self::Many(all) = self else { return false };
        match all.binary_search_by_key(&(worker, conn.index), |(w, c)| (*w, c.index)) {
            Ok(at) => {
                all[at] = (worker, conn);
                false
            }
            Err(at) => {
                all.insert(at, (worker, conn));
                true
            }
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::One(..) => 1,
            Self::Many(all) => all.len(),
        }
    }

    /// The connections of each worker.
    pub fn lists(&self) -> Vec<(usize, Listed)> {
        match self {
            Self::One(worker, conn) => vec![(*worker as usize, listed([*conn]))],
            Self::Many(all) => all
                .chunk_by(|a, b| a.0 == b.0)
                .map(|of_one| {
                    let mut conns: Vec<ConnId> = of_one.iter().map(|(_, conn)| *conn).collect();
                    conns.sort_unstable_by_key(|conn| conn.token());
                    (of_one[0].0 as usize, listed(conns))
                })
                .collect(),
        }
    }
}

/// The bytes of a key: most keys stand in the table itself, so comparing them waits for no memory.
#[derive(Debug)]
enum KeyText {
    Short(u8, [u8; KEY_SHORT_MAX]),
    Long(Box<[u8]>),
}

impl KeyText {
    fn new(text: &[u8]) -> Self {
        let mut short = [0; KEY_SHORT_MAX];
        match short.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text);
                Self::Short(text.len() as u8, short)
            }
            None => Self::Long(text.into()),
        }
    }

    fn get(&self) -> &[u8] {
        match self {
            Self::Short(len, text) => &text[..*len as usize],
            Self::Long(text) => text,
        }
    }
}

/// A key that was read.
#[derive(Debug)]
struct Tracked {
    hash: u64,
    text: KeyText,
    readers: Readers,
}

impl Tracked {
    fn is(&self, key: Asked<'_>) -> bool {
        self.hash == key.hash && self.text.get() == key.text
    }

    /// About what it takes; a table is half full, give or take a sixth.
    fn bytes(&self) -> u64 {
        let text = if let KeyText::Long(text) = &self.text { text.len() } else { 0 };
        (2 * size_of::<Self>() + text) as u64 + (self.readers.len() as u64 - 1) * READER_BYTES
    }
}

/// A part of the table.
#[derive(Debug, Default)]
struct Part {
    /// With ten million keys it grows from 7,000 to twice as many in one step, which moves 400 KB.
    keys: HashTable<Tracked>,
    readers: u64,
    bytes: u64,
}

impl Part {
    /// A key near this hash. The table marks its places with seven bits of the hashes there, so one
    /// mark after the other is looked for, at one place.
    fn any(&mut self, hash: u64) -> Option<OccupiedEntry<'_, Tracked>> {
        let marked = |mark: u64| hash & (u64::MAX >> MARK_BITS) | mark << (64 - MARK_BITS);
        let is_there = |mark: &u64| self.keys.find(marked(*mark), |_| true).is_some();
        let from = hash >> (64 - MARK_BITS);
        let marks = (from..1 << MARK_BITS).chain(0..from);
        // (Nearly empty: there may be none, and looking at all places takes no longer.)
        let near = marks.into_iter().find(is_there).map(marked);
        let found = near.or_else(|| self.keys.iter().next().map(|key| key.hash))?;
        self.keys.find_entry(found, |_| true).ok()
    }
}

/// The table, in parts, each under a lock of its own.
#[derive(Debug)]
pub struct Keys {
    parts: Vec<Mutex<Part>>,
    /// Keys in it.
    pub len: AtomicU64,
    /// Pairs of a key and a connection.
    pub readers: AtomicU64,
    /// Their bytes, about.
    pub bytes: AtomicU64,
    /// Where the next key is looked for that has to go.
    next_victim: AtomicU64,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            parts: (0..KEY_PARTS).map(|_| Mutex::default()).collect(),
            len: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            next_victim: AtomicU64::new(0),
        }
    }
}

impl Keys {
    fn part(&self, hash: u64) -> MutexGuard<'_, Part> {
        self.parts[(hash >> 32) as usize % KEY_PARTS].lock().expect("no panic while a part is held")
    }

    /// A connection has read a key, under the lock of the key's slot.
    pub fn remember(&self, key: Asked<'_>, worker: usize, conn: ConnId) {
        let (mut part, worker) = (self.part(key.hash), worker as u32);
        if let Some(known) = part.keys.find_mut(key.hash, |known| known.is(key)) {
            if known.readers.add(worker, conn) {
                self.count(&mut part, 0, 1, READER_BYTES);
            }
            return;
        }
        let (hash, text) = (key.hash, KeyText::new(key.text));
        let new = Tracked { hash, text, readers: Readers::One(worker, conn) };
        self.count(&mut part, 1, 1, new.bytes());
        part.keys.insert_unique(hash, new, |known| known.hash);
    }

    fn count(&self, part: &mut Part, keys: u64, readers: u64, bytes: u64) {
        part.readers += readers;
        part.bytes += bytes;
        self.len.fetch_add(keys, Relaxed);
        self.readers.fetch_add(readers, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn count_out(&self, part: &mut Part, keys: u64, readers: u64, bytes: u64) {
        part.readers -= readers;
        part.bytes -= bytes;
        self.len.fetch_sub(keys, Relaxed);
        self.readers.fetch_sub(readers, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Takes out who has read a key, and calls `tell` while nobody else can read or change what is
    /// known of it.
    pub fn forget(&self, key: Asked<'_>, tell: impl FnOnce(Name, &Readers)) {
        let mut part = self.part(key.hash);
        if let Ok(found) = part.keys.find_entry(key.hash, |known| known.is(key)) {
            let gone = found.remove().0;
            self.tell_gone(&mut part, &gone, tell);
        }
    }

    /// As [`Keys::forget`], for a key at random. False if none was found.
    pub fn forget_any(&self, tell: impl FnOnce(Name, &Readers)) -> bool {
        // Hashes are spread evenly, by a secret: any sequence of numbers finds keys at random.
        let from = self.next_victim.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
        for at in 0..KEY_PARTS as u64 {
            // (The part of a hash is in its bits from the 32nd on.)
            let hash = from.wrapping_add(at << 32);
            let mut part = self.part(hash);
            let Some(found) = part.any(hash) else { continue };
            let gone = found.remove().0;
            self.tell_gone(&mut part, &gone, tell);
            return true;
        }
        false
    }

    fn tell_gone(&self, part: &mut Part, gone: &Tracked, tell: impl FnOnce(Name, &Readers)) {
        // Each time that many have gone it is moved into less room.
        if part.keys.len() < part.keys.capacity() / 3 {
            part.keys.shrink_to(part.keys.len() * 3 / 2, |known| known.hash);
        }
        self.count_out(part, 1, gone.readers.len() as u64, gone.bytes());
        tell(Name::new(gone.hash, gone.text.get()), &gone.readers);
    }

    /// Empties the table, in as many steps as it has parts.
    pub fn clear(&self) -> Forgotten {
        let mut taken = Forgotten { parts: Vec::new(), bytes: 0 };
        for part in &self.parts {
            let mut part = part.lock().expect("no panic while a part is held");
            let keys = std::mem::take(&mut part.keys);
            let (readers, bytes) = (part.readers, part.bytes);
            self.count_out(&mut part, keys.len() as u64, readers, bytes);
            taken.bytes += bytes as usize;
            taken.parts.push(keys);
        }
        taken
    }
}

/// What a table has held.
pub struct Forgotten {
    parts: Vec<HashTable<Tracked>>,
    bytes: usize,
}

impl keyspace::Parts for Forgotten {
    fn memory(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn conn(index: u32, generation: u32) -> ConnId {
        ConnId { index, generation }
    }

    fn asked(text: &[u8]) -> Asked<'_> {
        Asked { hash: u64::from(text[0]) << 32, text }
    }

    fn counts(keys: &Keys) -> (u64, u64) {
        (keys.len.load(Relaxed), keys.readers.load(Relaxed))
    }

    #[test]
    fn readers_are_told_once_and_counted() {
        let keys = Keys::default();
        for (worker, conn) in [(1, conn(7, 0)), (0, conn(5, 0)), (1, conn(2, 3)), (1, conn(7, 0))] {
            keys.remember(asked(b"a"), worker, conn);
        }
        keys.remember(asked(b"a"), 1, conn(7, 1)); // the place is used again
        keys.remember(asked(b"b"), 0, conn(5, 0));
        keys.remember(asked(b"b"), 0, conn(5, 9));
        assert_eq!(counts(&keys), (2, 4));
        let mut told = Vec::new();
        keys.forget(asked(b"a"), |name, readers| {
            assert_eq!(name.text(), b"a");
            for (worker, list) in readers.lists() {
                told.push((worker, list.iter().map(|s| s.conn).collect::<Vec<_>>()));
            }
        });
        assert_eq!(told, [(0, vec![conn(5, 0)]), (1, vec![conn(7, 1), conn(2, 3)])]);
        keys.forget(asked(b"a"), |_, _| panic!("it was told"));
        assert_eq!(counts(&keys), (1, 1));
        drop(keys.clear());
        assert_eq!(counts(&keys), (0, 0));
        assert_eq!(keys.bytes.load(Relaxed), 0);
    }

    #[test]
    fn any_key_can_be_forgotten_until_none_is_left() {
        let keys = Keys::default();
        for n in 0..1_000_u64 {
            let text = n.to_string();
            let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            keys.remember(Asked { hash, text: text.as_bytes() }, 0, conn(1, 1));
        }
        let mut left: Vec<u64> = (0..1_000).collect();
        while keys.forget_any(|name, _| {
            let n: u64 = String::from_utf8_lossy(name.text()).parse().expect("a number");
            left.retain(|other| *other != n);
        }) {}
        assert!(left.is_empty(), "{left:?}");
        assert_eq!((counts(&keys), keys.bytes.load(Relaxed)), ((0, 0), 0));
    }
}
