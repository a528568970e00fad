//! A sorted set that is built outside the keyspace and then put under its key: a new one, or the
//! changed copy of a small one.

use keyspace::{EntryMut, Event, Guard, Key};
use value::packed::PACKED_MAX;
use value::zset::{View, small};
use value::{Big, Encoding, Kind, Zset};

use base::DbIndex;

use crate::ctx::Settings;

/// A sorted set that no key holds yet.
pub(super) struct Aside {
    value: Value,
    len: u64,
    encoding: Encoding,
    entries_max: u64,
    member_max: u64,
}

enum Value {
    Small(Vec<u8>),
    Big(Zset),
}

impl Aside {
    /// An empty one.
    pub fn new(settings: &Settings) -> Self {
        Self {
            value: Value::Small(Vec::new()),
            len: 0,
            encoding: Encoding::Listpack,
            entries_max: settings.zset_max_listpack_entries,
            member_max: settings.zset_max_listpack_value,
        }
    }

    /// A copy of a small one.
    pub fn of(settings: &Settings, encoding: Encoding, packed: &[u8]) -> Self {
        let len = View::Small(packed).len();
        Self { value: Value::Small(packed.to_vec()), len, encoding, ..Self::new(settings) }
    }

    /// So many pairs come. As Redis 7.2: where they would be too many for a listpack, were they all
    /// new, it is one no more, and what is called so from then on.
    pub fn expect(&mut self, pairs: usize) -> Encoding {
        if pairs as u64 > self.entries_max {
            self.encoding = Encoding::Skiplist;
        }
        self.encoding
    }

    /// A member's score.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.value {
            Value::Small(bytes) => View::Small(bytes).score(member),
            Value::Big(zset) => zset.score(member),
        }
    }

    /// Sets a member's score; `is_new` if the member is new. It becomes a skiplist by
    /// Redis's thresholds, and a tree by ours. A listpack has no minus zero.
    pub fn put(&mut self, member: &[u8], score: f64, is_new: bool) {
        let mut len = self.len;
        if is_new {
            len += 1;
            if len > self.entries_max || member.len() as u64 > self.member_max {
                self.encoding = Encoding::Skiplist;
            }
        }
        let score = if self.encoding == Encoding::Listpack { score + 0.0 } else { score };
        if !is_new {
            self.remove(member);
        }
        self.len = len;
        if let Value::Small(bytes) = &mut self.value {
            if bytes.len() + small::size(member, score) <= PACKED_MAX {
                small::insert(bytes, member, score);
                return;
            }
            self.value = Value::Big(grown(bytes));
        }
        if let Value::Big(zset) = &mut self.value {
            zset.put(member, score);
        }
    }

    /// Removes a member; false if it was not there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let gone = match &mut self.value {
            Value::Small(bytes) => {
                let at = small::find(bytes, member).map(|pair| pair.at);
                let gone = at.is_some();
                if let Some(at) = at {
                    bytes.drain(at);
                }
                gone
            }
            Value::Big(zset) => zset.take(member).is_some(),
        };
        self.len -= u64::from(gone);
        gone
    }

    /// Removes the members of these ranks from a small one.
    pub fn remove_ranks(&mut self, ranks: std::ops::Range<u64>) {
        let Value::Small(bytes) = &mut self.value else { unreachable!("a copy of a small one") };
        self.len -= ranks.end - ranks.start;
        small::remove(bytes, ranks);
    }

    /// True if no member is left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts it in the place of the small one that it was a copy of; without members the key goes.
    pub fn replace(self, mut entry: EntryMut<'_, '_>) {
        if self.is_empty() {
            return entry.remove();
        }
        match self.value {
            Value::Small(bytes) => entry.set_packed(self.encoding, &bytes),
            Value::Big(zset) => entry.set_big(self.encoding, Big::Zset(zset)),
        }
    }

    /// Puts it under a key, whatever was there.
    pub fn insert(self, event: Event, guard: &mut Guard<'_>, db: DbIndex, key: &Key<'_>) {
        match self.value {
            Value::Small(bytes) => {
                guard.insert_packed(event, db, key, Kind::Zset, self.encoding, &bytes, None);
            }
            Value::Big(zset) => {
                guard.insert_big(event, db, key, self.encoding, Big::Zset(zset), None);
            }
        }
    }
}

/// The tree of a small one.
fn grown(bytes: &[u8]) -> Zset {
    let mut zset = Zset::new();
    let mut text = value::IntText::default();
    for pair in small::pairs(bytes) {
        zset.put(pair.member.bytes(&mut text), pair.score);
    }
    zset
}

/// Puts members, which are in order, under a key, whatever was there; without members the key goes.
pub(crate) fn store<M: AsRef<[u8]>>(
    event: Event,
    guard: &mut Guard<'_>,
    settings: &Settings,
    db: DbIndex,
    key: &Key<'_>,
    members: &[(M, f64)],
) {
    if members.is_empty() {
        guard.remove(Event::DEL, db, key);
        return;
    }
    let mut aside = Aside::new(settings);
    let is_long = |(member, _): &(M, f64)| member.as_ref().len() as u64 > aside.member_max;
    if members.len() as u64 > aside.entries_max || members.iter().any(is_long) {
        aside.encoding = Encoding::Skiplist;
    }
    let is_list = aside.encoding == Encoding::Listpack;
    let score_of = |score: f64| if is_list { score + 0.0 } else { score };
    let mut bytes = Vec::new();
    for (member, score) in members {
        let (member, score) = (member.as_ref(), score_of(*score));
        if bytes.len() + small::size(member, score) > PACKED_MAX {
            let mut zset = Zset::new();
            for (member, score) in members {
                zset.put(member.as_ref(), score_of(*score));
            }
            aside.value = Value::Big(zset);
            return aside.insert(event, guard, db, key);
        }
        small::push(&mut bytes, member, score);
    }
    aside.value = Value::Small(bytes);
    aside.insert(event, guard, db, key);
}
