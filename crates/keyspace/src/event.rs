//! Keyspace events (`notify-keyspace-events`) and notes of callers: what is delivered when changes
//! are committed. Both are appended to one list in the order of the changes; a rollback truncates
//! it.

use crate::access::Access;
use crate::capture::Census;
use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::keyspace::Key;
use crate::undo::{Change, Note, Notice};
use base::DbIndex;

/// A class of events, as `notify-keyspace-events` selects them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// Commands that work on keys of any type.
    Generic,
    /// Commands on strings.
    String,
    /// Commands on lists.
    List,
    /// Commands on sets.
    Set,
    /// Commands on hashes.
    Hash,
    /// Commands on sorted sets.
    Zset,
    /// Commands on streams.
    Stream,
    /// A key has expired.
    Expired,
    /// A key was evicted.
    Evicted,
    /// A read found no key.
    Miss,
    /// A key was created.
    New,
    /// No event: [`Event::SILENT`].
    None,
}

impl EventClass {
    /// The letter of `notify-keyspace-events`.
    pub fn letter(self) -> char {
        match self {
            Self::Generic => 'g',
            Self::String => '$',
            Self::List => 'l',
            Self::Set => 's',
            Self::Hash => 'h',
            Self::Zset => 'z',
            Self::Stream => 't',
            Self::Expired => 'x',
            Self::Evicted => 'e',
            Self::Miss => 'm',
            Self::New => 'n',
            Self::None => '-',
        }
    }
}

/// What a change is called: a constant, as small as a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(&'static (EventClass, &'static str));

impl Event {
    /// No event: of a change whose caller has told another one, or that nobody hears of.
    pub const SILENT: Self = Self::new(&(EventClass::None, ""));
    /// A key was removed, or its last element was.
    pub const DEL: Self = Self::new(&(EventClass::Generic, "del"));
    /// A key has expired.
    pub const EXPIRED: Self = Self::new(&(EventClass::Expired, "expired"));
    /// Fields of a hash have expired.
    pub const FIELDS_EXPIRED: Self = Self::new(&(EventClass::Hash, "hexpired"));
    /// A command asked for a key that does not exist.
    pub const MISS: Self = Self::new(&(EventClass::Miss, "keymiss"));
    /// A key was created.
    pub const NEW: Self = Self::new(&(EventClass::New, "new"));

    /// An event of a class, under the name that Redis gives it.
    pub const fn new(event: &'static (EventClass, &'static str)) -> Self {
        Self(event)
    }

    /// The events of a key that has expired, or of which all `fields` have.
    pub(crate) fn of_expired(fields: u64) -> &'static [Self] {
        if fields == 0 { &[Self::EXPIRED] } else { &[Self::FIELDS_EXPIRED, Self::DEL] }
    }

    /// Its class.
    pub fn class(self) -> EventClass {
        self.0.0
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.1
    }
}

/// An event that has happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEvent {
    /// The event.
    pub event: Event,
    /// The logical database.
    pub db: DbIndex,
    /// The key.
    pub key: Box<[u8]>,
}

/// Bits of the word that says who listens to the changes of a worker; 0 while nobody listens.
pub(crate) mod listeners {
    /// Events are kept for [`crate::Guard::next_event`].
    pub const EVENTS: u32 = 1;
    /// Changes are announced before they are made (`capture.rs`).
    pub const CAPTURE: u32 = 2;
    /// A panic is armed ([`crate::Guard::panic_after`]).
    pub const FUSE: u32 = 4;
    /// A snapshot runs: it gets the entries that it has not walked yet before they change
    /// (`snapshot.rs`).
    pub const SNAPSHOT: u32 = 8;
}

impl Guard<'_> {
    /// Emits an event without a change, or after the one that its change has emitted.
    #[inline]
    pub fn notify(&mut self, event: Event, db: DbIndex, key: &Key<'_>) {
        if self.w.undo.listeners & listeners::EVENTS != 0 {
            self.push_event(event, db, key.bytes);
            self.w.undo.changes.push(Change::Nothing);
        }
    }

    /// Emits an event that precedes the one of a change.
    #[cold]
    pub(crate) fn notify_before(&mut self, event: Event, db: DbIndex, entry: EntryPtr) {
        if self.w.undo.listeners & listeners::EVENTS != 0 {
            self.push_event(event, db, entry.key());
        }
    }

    /// Emits the events of a key that has expired, or of which all `fields` have.
    #[cold]
    pub(crate) fn notify_expired(&mut self, db: DbIndex, old: EntryPtr, fields: u64) {
        if self.w.undo.listeners & listeners::EVENTS != 0 {
            for &event in Event::of_expired(fields) {
                self.push_event(event, db, old.key());
            }
        }
        self.count_down_fuse();
    }

    /// Emits the event of a change that was made.
    #[cold]
    pub(crate) fn notify_change(&mut self, event: Event, db: DbIndex, entry: EntryPtr) {
        if self.w.undo.listeners & listeners::EVENTS != 0 {
            self.push_event(event, db, entry.key());
        }
        self.count_down_fuse();
    }

    #[cold]
    pub(crate) fn push_event(&mut self, event: Event, db: DbIndex, key: &[u8]) {
        if event != Event::SILENT {
            self.w.undo.commit_work += 1;
            self.w.undo.notices.push(Notice::Event(KeyEvent { event, db, key: key.into() }));
        }
    }

    /// Counts a change down to the armed panic.
    #[cold]
    pub(crate) fn count_down_fuse(&mut self) {
        if self.w.undo.fuse != 0 {
            self.w.undo.fuse -= 1;
            #[cfg(shuttle)]
            if self.w.undo.fuse == 0 {
                base::sync::unwind();
            }
            assert!(self.w.undo.fuse != 0, "a panic was asked for, after this change");
        }
    }

    /// The events of keys that stay expired although the changes behind `len` were undone.
    pub(crate) fn expired_from(&self, len: usize) -> Vec<KeyEvent> {
        if self.w.undo.listeners & listeners::EVENTS == 0 {
            return Vec::new();
        }
        let mut events = Vec::new();
        for change in &self.w.undo.changes[len..] {
            if let Change::Expired { place, old, fields } = *change {
                let db = self.ks.logical(place.physical);
                let key_event = |&event| KeyEvent { event, db, key: old.key().into() };
                events.extend(Event::of_expired(fields).iter().map(key_event));
            }
        }
        events
    }

    /// Attaches a note to the changes of the running command: [`Guard::next_note`] returns it when
    /// they are committed, and a rollback drops it.
    pub fn note(&mut self, note: Note) {
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Nothing);
        self.w.undo.notices.push(Notice::Note(note));
    }

    /// True if [`Guard::next_note`] returns one.
    #[inline]
    pub fn has_notes(&self) -> bool {
        !self.w.notes.is_empty()
    }

    /// The next note of committed changes, in their order.
    pub fn next_note(&mut self) -> Option<Note> {
        self.w.notes.pop_front()
    }

    /// The next event of committed changes, in their order.
    pub fn next_event(&mut self) -> Option<KeyEvent> {
        self.w.undo.events.pop_front()
    }
}

impl Access {
    /// Sets whether the events of this worker's changes are kept for [`Access::next_event`].
    pub fn listen_to_events(&mut self, listens: bool) {
        self.w.undo.set_listeners(listeners::EVENTS, listens);
    }

    /// Sets whether this worker's changes are announced before they are made, and counted.
    pub fn capture_changes(&mut self, captures: bool) {
        self.w.undo.set_listeners(listeners::CAPTURE, captures);
    }

    /// The next event of committed changes, in their order.
    pub fn next_event(&mut self) -> Option<KeyEvent> {
        self.w.undo.events.pop_front()
    }

    /// How many changes of each kind were committed, and how many of those had been announced,
    /// since capturing began.
    pub fn census(&self) -> &Census {
        &self.w.undo.capture.census
    }
}
