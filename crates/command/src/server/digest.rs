//! `DEBUG DIGEST`: what tells two sets of data apart, whatever the order in which they were made
//! and the form in which they are stored. The digests are SheafDB's own, not those of Redis.

use base::hash::KeyHasher;
use keyspace::{Entry, Kind};
use rdb::{Item, Source};
use value::{IntText, Stream, StreamId};

use crate::parts::Stored;

/// 160 bits, as three words of which the last counts half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u64; 3]);

/// The function makes the same digest in every server.
fn hash(parts: &[&[u8]]) -> Digest {
    let mut text = Vec::new();
    for part in parts {
        text.extend_from_slice(&(part.len() as u64).to_le_bytes());
        text.extend_from_slice(part);
    }
    Digest([1, 2, 3].map(|seed| KeyHasher::new(seed).hash(&text)))
}

impl Digest {
    /// Takes another in, regardless of their order.
    fn add(&mut self, other: Digest) {
        for (mine, other) in self.0.iter_mut().zip(other.0) {
            *mine = mine.wrapping_add(other);
        }
    }

    /// Takes another in, behind what there is.
    fn follow(&mut self, other: Digest) {
        *self = hash(&[&self.bytes(), &other.bytes()]);
    }

    fn bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// 40 hexadecimal digits.
    pub fn text(self) -> String {
        let [a, b, c] = self.0;
        format!("{a:016x}{b:016x}{:08x}", c as u32)
    }

    /// A key's part in the digest of all data: where it stands, its value, whether it expires.
    pub fn add_entry(&mut self, db: u16, entry: Entry<'_>) {
        let expires = [u8::from(entry.expiry().is_some())];
        let value = of_value(entry).bytes();
        self.add(hash(&[&db.to_le_bytes(), entry.key(), &value, &expires]));
    }
}

/// The digest of a value. O(n).
pub fn of_value(entry: Entry<'_>) -> Digest {
    let stored = Stored::of(entry);
    let in_order = matches!(entry.kind(), Kind::List);
    let mut all = Digest::default();
    stored.each_from(0, stored.count(), |item| {
        let part = match item {
            Item::Element(element) => hash(&[element]),
            Item::Member(member, score) => hash(&[member, &score.to_le_bytes()]),
            Item::Field(field, value, due) => hash(&[field, value, &[u8::from(due.is_some())]]),
        };
        if in_order {
            all.follow(part);
        } else {
            all.add(part);
        }
    });
    if let Some(stream) = stored.stream() {
        add_stream(&mut all, stream);
    }
    hash(&[&[entry.kind() as u8], &all.bytes()])
}

/// Entries in their order, where the stream stands, and its groups but for times.
fn add_stream(all: &mut Digest, stream: &Stream) {
    let (mut name_text, mut value_text) = (IntText::default(), IntText::default());
    for entry in stream.iter() {
        all.follow(hash(&[&entry.id.to_bytes()]));
        for (name, value) in entry.fields() {
            all.follow(hash(&[name.bytes(&mut name_text), value.bytes(&mut value_text)]));
        }
    }
    let marks = stream.marks();
    let (last, deleted) = (marks.last.to_bytes(), marks.max_deleted.to_bytes());
    all.follow(hash(&[&last, &deleted, &marks.added.to_le_bytes()]));
    for (name, group) in stream.groups() {
        let read = group.read.unwrap_or(u64::MAX).to_le_bytes();
        all.follow(hash(&[name, &group.last.to_bytes(), &read]));
        for row in group.pending_from(StreamId::MIN) {
            let consumer = group.owner_name(row);
            all.follow(hash(&[&row.id.to_bytes(), &row.count.to_le_bytes(), consumer]));
        }
        group.consumers().for_each(|(_, consumer)| all.follow(hash(&[consumer.name()])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digests_of_lists_depend_on_order() {
        let (a, b) = (hash(&[b"a"]), hash(&[b"b"]));
        let sum = |x: Digest, y| {
            let mut sum = x;
            sum.add(y);
            sum
        };
        let row = |x, y| {
            let mut row = Digest::default();
            row.follow(x);
            row.follow(y);
            row
        };
        assert_eq!(sum(a, b), sum(b, a));
        assert_ne!(row(a, b), row(b, a));
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_eq!(a.text().len(), 40);
        assert_eq!(Digest::default().text(), "0".repeat(40));
    }
}
