//! The numbers of producers in files: what a file of commands or a snapshot says, on its way into
//! the table of producers.
//!
//! - An append-only file has a line in the transaction of each block: written by `pour.rs`, read in
//!   `persist/load/replay`.
//! - A base, a snapshot and a backup have a field for each producer: written by
//!   `persist/save/walker.rs`, read in `persist/load/threads.rs`. A base of commands has a
//!   transaction with such a line for each.
//!
//! What is read last counts: a producer that was forgotten may have begun again with 1.

use crate::ingest::producers::Name;
use ingest::Target;
use journal::producer::{BlockLine, Field, SinkKind};
use std::collections::HashMap;

/// Characters of a line that cannot be read which the log shows.
const UNREAD_SHOWN_MAX: usize = 200;

/// The kind of a sink in files; a null sink has none, because it keeps nothing.
pub fn kind_of(target: Target) -> Option<SinkKind> {
    match target {
        Target::Null => None,
        Target::List => Some(SinkKind::List),
        Target::Stream => Some(SinkKind::Stream),
    }
}

const fn target_of(kind: SinkKind) -> Target {
    match kind {
        SinkKind::List => Target::List,
        SinkKind::Stream => Target::Stream,
    }
}

impl Name {
    /// The producer of a block whose messages are in this key.
    pub fn of_block(line: &BlockLine, db: u32, key: &[u8]) -> Self {
        Self {
            producer: line.producer.as_slice().into(),
            target: target_of(line.kind),
            db,
            key: key.into(),
        }
    }

    /// The producer of a field.
    pub fn of_field(field: &Field<'_>) -> Self {
        Self {
            producer: field.producer.into(),
            target: target_of(field.kind),
            db: field.db,
            key: field.key.into(),
        }
    }
}

/// What a field says of a producer; `None` if its messages are only counted.
pub fn field_of(name: &Name, number: u64) -> Option<Field<'_>> {
    let kind = kind_of(name.target)?;
    Some(Field { kind, db: name.db, number, producer: &name.producer, key: &name.key })
}

/// Lines of a file which should say the number of a producer, and cannot be read. They are left
/// out; the log has their number and the first of them.
#[derive(Debug, Default)]
pub struct Unread {
    count: u64,
    first: String,
}

impl Unread {
    /// One of them.
    pub fn one(text: String) -> Self {
        Self { count: 1, first: text }
    }

    /// Adds one; `text` shows it.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = text();
        }
        self.count += 1;
    }

    /// Adds those behind these.
    pub fn append(&mut self, more: Self) {
        if self.count == 0 {
            self.first = more.first;
        }
        self.count += more.count;
    }

    /// What the log says of a file; `None` if there are none.
    pub fn warning(&self) -> Option<String> {
        let text = match self.count {
            0 => return None,
            1 => "the number of a producer cannot be read, and is left out".to_owned(),
            n => format!("the numbers of {n} producers cannot be read, and are left out"),
        };
        let shown: String = self.first.chars().take(UNREAD_SHOWN_MAX).collect();
        Some(format!("{text}; the first is {shown}"))
    }
}

/// The numbers that were read while files are loaded.
#[derive(Debug, Default)]
pub struct Kept {
    /// Each with its number, and when it was read last.
    known: HashMap<Name, (u64, u64)>,
    read: u64,
    /// Those that were read longest ago go when there are more than twice as many.
    most: usize,
}

impl Kept {
    /// Keeps so many.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// A file says that everything up to this number is held.
    pub fn add(&mut self, name: Name, number: u64) {
        self.read += 1;
        self.known.insert(name, (number, self.read));
        if self.known.len() / 2 >= self.most.max(1) {
            self.shrink();
        }
    }

    /// All of them, in the order in which they were read last.
    pub fn take(&mut self) -> Vec<(Name, u64)> {
        self.shrink();
        let mut all: Vec<_> = self.known.drain().collect();
        all.sort_unstable_by_key(|(_, (_, read))| *read);
        all.into_iter().map(|(name, (number, _))| (name, number)).collect()
    }

    fn shrink(&mut self) {
        if self.known.len() <= self.most {
            return;
        }
        let mut reads: Vec<u64> = self.known.values().map(|(_, read)| *read).collect();
        reads.sort_unstable();
        let first = reads.get(reads.len() - self.most).copied().unwrap_or(u64::MAX);
        self.known.retain(|_, (_, read)| *read >= first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: usize) -> Name {
        let producer = n.to_string().into_bytes().into();
        Name { producer, target: Target::List, db: 0, key: b"k"[..].into() }
    }

    #[test]
    fn what_was_read_last_counts() {
        let mut kept = Kept::new(9);
        for (n, number) in [(1, 100), (2, 7), (1, 3)] {
            kept.add(name(n), number);
        }
        assert_eq!(kept.take(), [(name(2), 7), (name(1), 3)]);
        assert!(kept.take().is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_one_warning() {
        assert_eq!(Unread::default().warning(), None);
        let mut unread = Unread::one("'x'".into());
        let one = unread.warning().expect("one");
        assert_eq!(
            one,
            "the number of a producer cannot be read, and is left out; the first is 'x'"
        );
        (0..9).for_each(|_| unread.add(|| unreachable!("the first is known")));
        unread.append(Unread::one("y".into()));
        let all = unread.warning().expect("some");
        assert!(all.contains("numbers of 11 producers") && all.ends_with("'x'"), "{all}");
        let mut long = Unread::default();
        long.append(Unread::one("y".repeat(9_000)));
        assert!(long.warning().expect("one").len() < 300);
    }

    #[test]
    fn those_which_were_not_read_for_longest_go() {
        let mut kept = Kept::new(10);
        for n in 0..1_000 {
            kept.add(name(n), n as u64 + 1);
            kept.add(name(0), n as u64 + 5);
            assert!(kept.known.len() <= 20);
        }
        let all = kept.take();
        assert_eq!(all.len(), 10);
        assert_eq!(all[9], (name(0), 1_004));
        assert_eq!(all[8], (name(999), 1_000));
        assert_eq!(all[0], (name(991), 992));
        let mut none = Kept::new(0);
        none.add(name(1), 1);
        assert!(none.take().is_empty());
    }
}
