//! A value that is being made from its parts: packed as long as it fits its entry, else a tree;
//! then put under a key as Redis 7.2 would call it.

use std::borrow::Cow;

use base::{Blob, DbIndex, UnixMs};
use keyspace::{Event, Guard, INLINE_MAX, Key, Kind, Parts};
use rdb::{Error, Sink, listpack, types};
use value::keyed::Val;
use value::list::{FAR_MIN, NewItem, listpack_entry};
use value::packed::{Elem, LISTPACK_MAX, PACKED_INTS_MAX, PACKED_MAX, Packed, push};
use value::zset::small;
use value::{Big, Encoding, Hash, IntText, List, Log, NewStr, Set, Stream, Zset, encode};

use super::stored::pairs;
use crate::ctx::Settings;
use crate::list::limit::Limit;

/// Bytes of a list that stands in its entry.
const PACKED_LIST_MAX: usize = 2048;
/// Bytes of tags and of a score beside the texts of a part, at most.
const BESIDE_MAX: usize = 3 + 9;

/// A value in the making.
pub struct Built {
    settings: Settings,
    /// It comes from a listpack, which stays one whatever its elements are, if they are few.
    was_packed: bool,
    kind: Kind,
    text: Blob,
    packed: Vec<u8>,
    big: Option<Big>,
    log: Log,
    count: u64,
    longest: usize,
    integers: bool,
    /// Bytes of the elements in a listpack.
    entries: usize,
}

impl Built {
    /// Nothing yet.
    pub fn new(settings: &Settings, was_packed: bool) -> Self {
        Self {
            settings: settings.clone(),
            was_packed,
            kind: Kind::String,
            text: Blob::default(),
            packed: Vec::new(),
            big: None,
            log: Log::default(),
            count: 0,
            longest: 0,
            integers: true,
            entries: 0,
        }
    }

    /// A string.
    pub fn of_text(settings: &Settings, text: Blob) -> Self {
        Self { text, ..Self::new(settings, false) }
    }

    /// Puts the value under a key, replacing what it holds.
    pub fn insert(
        self,
        event: Event,
        guard: &mut Guard<'_>,
        db: DbIndex,
        key: &Key<'_>,
        expiry: Option<UnixMs>,
    ) {
        let encoding = self.encoding();
        if self.kind == Kind::String {
            match self.text.contiguous() {
                Some(short) if short.len() <= INLINE_MAX => {
                    guard.insert(event, db, key, encode(short), expiry);
                }
                _ => guard.insert(event, db, key, NewStr::Blob(self.text), expiry),
            }
        } else if let Some(big) = self.big {
            guard.insert_big(event, db, key, encoding, big, expiry);
        } else {
            guard.insert_packed(event, db, key, self.kind, encoding, &self.packed, expiry);
        }
    }

    /// Elements, members or fields so far.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// How Redis 7.2 stores it at its thresholds.
    fn encoding(&self) -> Encoding {
        let s = &self.settings;
        let few = |entries: u64, len: u64, loose: bool| {
            self.count <= entries && (loose || self.longest as u64 <= len)
        };
        let hash = few(s.hash_max_listpack_entries, s.hash_max_listpack_value, self.was_packed);
        let zset = few(s.zset_max_listpack_entries, s.zset_max_listpack_value, self.was_packed);
        match self.kind {
            Kind::Set if self.is_intset() => Encoding::Intset,
            // The order of a tree is not that of a listpack.
            Kind::Set | Kind::Hash if self.big.is_some() => Encoding::Hashtable,
            Kind::Set if few(s.set_max_listpack_entries, s.set_max_listpack_value, false) => {
                Encoding::Listpack
            }
            Kind::Hash if hash => Encoding::Listpack,
            Kind::Set | Kind::Hash => Encoding::Hashtable,
            Kind::Zset if zset => Encoding::Listpack,
            Kind::Zset => Encoding::Skiplist,
            Kind::Stream => Encoding::Stream,
            _ if self.is_small_list() => Encoding::Listpack,
            _ => Encoding::Quicklist,
        }
    }

    fn is_intset(&self) -> bool {
        self.integers && !self.was_packed && self.count <= self.settings.set_max_intset_entries
    }

    fn is_small_list(&self) -> bool {
        Limit::of(&self.settings).holds(self.count, listpack::total(self.entries) as u64)
    }

    /// Notes a part; true if it goes into the packed form.
    fn note(&mut self, first: &[u8], second: &[u8]) -> bool {
        self.count += 1;
        self.longest = self.longest.max(first.len()).max(second.len());
        self.entries += listpack::size(first);
        self.integers &= matches!(Elem::of(first), Elem::Int(_));
        let max = match self.kind {
            Kind::List => PACKED_LIST_MAX,
            Kind::Set if self.is_intset() => PACKED_INTS_MAX,
            Kind::Set | Kind::Hash if self.encoding() == Encoding::Listpack => LISTPACK_MAX,
            _ => PACKED_MAX,
        };
        if self.big.is_some() {
            return false;
        }
        let more = first.len().saturating_add(second.len()) + BESIDE_MAX;
        self.packed.len().saturating_add(more) <= max
    }

    /// The tree, made of what was packed so far if there is none.
    fn tree(&mut self) -> Result<(&mut Big, &mut Log), Error> {
        if self.big.is_none() {
            let mut big = match self.kind {
                Kind::Set => Big::Set(Set::new()),
                Kind::Zset => Big::Zset(Zset::new()),
                Kind::Hash => Big::Hash(Hash::new()),
                _ => Big::List(List::new()),
            };
            let packed = std::mem::take(&mut self.packed);
            let mut elements = Packed::new(&packed).iter();
            let (mut text, mut second) = (IntText::default(), IntText::default());
            match self.kind {
                Kind::Zset => small::pairs(&packed).try_for_each(|pair| {
                    let part = Part::Member(pair.member.bytes(&mut text), pair.score);
                    add(&mut big, part, &mut self.log)
                }),
                Kind::Hash => pairs(elements).try_for_each(|(name, value)| {
                    let part = Part::Field(name.bytes(&mut text), value.bytes(&mut second));
                    add(&mut big, part, &mut self.log)
                }),
                _ => elements.try_for_each(|element| {
                    add(&mut big, Part::Element(element.bytes(&mut text)), &mut self.log)
                }),
            }?;
            self.big = Some(big);
        }
        Ok((self.big.as_mut().expect("it was made"), &mut self.log))
    }

    /// Adds an element to a list: a long one by reference.
    pub fn list_element(&mut self, text: Val<'_>) {
        match text {
            Val::Blob(blob) if blob.len() >= FAR_MIN => {
                let item = NewItem::Far(blob.clone());
                self.count += 1;
                self.longest = self.longest.max(blob.len());
                self.entries += listpack_entry(item.item()) as usize;
                match self.tree().expect("a list takes all").0 {
                    Big::List(list) => list.build(item),
                    _ => unreachable!("a list is built"),
                }
            }
            short => self.element(&short.bytes()).expect("a list takes all"),
        }
    }

    fn add_big(&mut self, part: Part<'_>) -> Result<(), Error> {
        let (big, log) = self.tree()?;
        add(big, part, log)
    }
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Element(&'a [u8]),
    Member(&'a [u8], f64),
    Field(&'a [u8], &'a [u8]),
}

/// Adds a part, which is not there yet.
fn add(big: &mut Big, part: Part<'_>, log: &mut Log) -> Result<(), Error> {
    let is_new = match (big, part) {
        (Big::List(list), Part::Element(text)) => {
            list.push_back(text, log);
            true
        }
        (Big::Set(set), Part::Element(text)) => set.add(text, log),
        (Big::Zset(zset), Part::Member(member, score)) => zset.set(member, score, log).is_none(),
        (Big::Hash(hash), Part::Field(name, value)) => hash.set(name, value, log),
        _ => return Err(Error::Corrupt),
    };
    log.clear(); // nobody has seen the value yet: nothing of it is undone
    if is_new { Ok(()) } else { Err(Error::Refused) }
}

impl Parts for Built {
    fn memory(&self) -> usize {
        self.text.capacity() + self.big.as_ref().map_or(0, Big::memory)
    }
}

impl Sink for Built {
    fn string(&mut self, bytes: Cow<'_, [u8]>) -> Result<(), Error> {
        self.text = Blob::new(bytes.into_owned());
        Ok(())
    }

    fn start(&mut self, kind: Kind, _about: u64) -> Result<(), Error> {
        self.kind = kind;
        Ok(())
    }

    fn element(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.note(bytes, b"") {
            push(&mut self.packed, bytes);
            return Ok(());
        }
        self.add_big(Part::Element(bytes))
    }

    fn member(&mut self, member: &[u8], score: f64) -> Result<(), Error> {
        if self.note(member, b"") {
            small::push(&mut self.packed, member, score);
            return Ok(());
        }
        self.add_big(Part::Member(member, score))
    }

    fn field(&mut self, field: &[u8], value: &[u8], at: Option<UnixMs>) -> Result<(), Error> {
        if let Some(at) = at {
            self.note(field, value);
            self.add_big(Part::Field(field, value))?;
            if let (Big::Hash(hash), log) = self.tree()? {
                hash.set_expiry(field, Some(at.0), log);
                log.clear();
            }
            return Ok(());
        }
        if self.note(field, value) {
            push(&mut self.packed, field);
            push(&mut self.packed, value);
            return Ok(());
        }
        self.add_big(Part::Field(field, value))
    }

    fn stream(&mut self, stream: Stream) -> Result<(), Error> {
        self.kind = Kind::Stream;
        self.big = Some(Big::Stream(stream));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        if self.big.is_some() || self.kind == Kind::List {
            return Ok(());
        }
        let step = if self.kind == Kind::Set { 1 } else { 2 };
        let mut names: Vec<_> = Packed::new(&self.packed).iter().step_by(step).collect();
        names.sort_unstable_by_key(|name| sortable(*name));
        if names.windows(2).any(|two| two[0] == two[1]) {
            return Err(Error::Refused);
        }
        let mut ordered = Vec::with_capacity(self.packed.len());
        if self.kind == Kind::Zset {
            let mut members: Vec<_> = small::pairs(&self.packed).collect();
            let (mut text, mut other) = (IntText::default(), IntText::default());
            members.sort_by(|a, b| {
                let scores = a.score.partial_cmp(&b.score).expect("scores are numbers");
                scores.then_with(|| a.member.bytes(&mut text).cmp(b.member.bytes(&mut other)))
            });
            for pair in members {
                ordered.extend_from_slice(&self.packed[pair.at]);
            }
        } else if self.kind == Kind::Set && self.is_intset() {
            for name in names {
                name.push(&mut ordered);
            }
        } else {
            return Ok(());
        }
        self.packed = ordered;
        Ok(())
    }
}

/// An order in which equal elements are neighbours and integers ascend.
fn sortable(elem: Elem<'_>) -> (bool, i64, &[u8]) {
    match elem {
        Elem::Int(value) => (false, value, b""),
        Elem::Bytes(bytes) => (true, 0, bytes),
    }
}

/// Whether a payload's value is one packed string: then Redis looks at its length alone.
pub fn is_packed(payload: &[u8]) -> bool {
    const PACKED: [u8; 5] = [
        types::HASH_ZIPLIST,
        types::HASH_LISTPACK,
        types::ZSET_ZIPLIST,
        types::ZSET_LISTPACK,
        types::SET_LISTPACK,
    ];
    payload.first().is_some_and(|id| PACKED.contains(id))
}
