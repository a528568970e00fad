//! Keyspace events (`notify-keyspace-events`) and notes of callers: what is delivered when changes
//! are committed. Both are appended to one list in the order of the changes; a rollback truncates
//! it.

use crate::access::Access;
use crate::capture::Census;
use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::keyspace::{Key, Keyspace};
use crate::undo::{Change, Note, Notice, Undo};
use base::sync::Arc;
use base::sync::atomic::{AtomicU32, Ordering};
use base::{DbIndex, SeqNo};
use std::collections::VecDeque;

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
    /// For client-side caching, not for `notify-keyspace-events`: a key is read or no longer what
    /// it was.
    Tracking,
    /// No event: [`Event::SILENT`].
    None,
}

impl EventClass {
    /// All that `notify-keyspace-events` selects.
    pub const ALL: [Self; 11] = [
        Self::Generic,
        Self::String,
        Self::List,
        Self::Set,
        Self::Hash,
        Self::Zset,
        Self::Stream,
        Self::Expired,
        Self::Evicted,
        Self::Miss,
        Self::New,
    ];

    /// Its bit in a set of classes; [`Event::SILENT`] has none.
    #[inline]
    const fn bit(self) -> u32 {
        if matches!(self, Self::None) { 0 } else { 1 << self as u32 }
    }

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
            Self::Tracking | Self::None => '-',
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
    /// A key is no longer what it was: what marks watches, and the end of a key that is due.
    pub const TOUCHED: Self = Self::new(&(EventClass::Tracking, "touched"));
    /// The same of a key that was due, or whose fields were: nobody has changed it.
    pub const DUE_TOUCHED: Self = Self::new(&(EventClass::Tracking, "due touched"));
    /// Any key may no longer be what it was: a database was emptied, or two were exchanged.
    pub const ALL_TOUCHED: Self = Self::new(&(EventClass::Tracking, "all touched"));
    /// A command of a transaction has read a key whose changes are told.
    pub const READ: Self = Self::new(&(EventClass::Tracking, "read"));

    /// An event of a class, under the name that Redis gives it.
    pub const fn new(event: &'static (EventClass, &'static str)) -> Self {
        Self(event)
    }

    /// The events of a key that has expired, or of which all `fields` have.
    pub(crate) fn of_expired(fields: u64) -> &'static [Self] {
        if fields == 0 {
            &[Self::DUE_TOUCHED, Self::EXPIRED]
        } else {
            &[Self::DUE_TOUCHED, Self::FIELDS_EXPIRED, Self::DEL]
        }
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

/// Classes of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClasses(u32);

impl EventClasses {
    /// Every class that `notify-keyspace-events` selects.
    const ALL: Self = Self(EventClass::Tracking.bit() - 1);

    /// Those that `selects` accepts.
    pub fn select(selects: impl Fn(EventClass) -> bool) -> Self {
        let bits = EventClass::ALL.into_iter().filter(|class| selects(*class)).map(EventClass::bit);
        Self(bits.sum())
    }

    /// These, and what client-side caching is told of.
    #[must_use]
    pub fn with_tracking(self) -> Self {
        Self(self.0 | EventClass::Tracking.bit())
    }

    /// True if there is none.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, event: Event) -> bool {
        self.0 & event.class().bit() != 0
    }
}

/// The classes of which workers are told, as all of them share it.
#[derive(Debug, Default)]
pub(crate) struct KeptClasses(AtomicU32);

impl KeptClasses {
    fn set(&self, classes: EventClasses) {
        self.0.store(classes.0, Ordering::Relaxed);
    }

    pub fn get(&self) -> EventClasses {
        EventClasses(self.0.load(Ordering::Relaxed))
    }
}

/// Who is told of events at once, when their change is committed.
pub trait EventSink: Send + Sync {
    /// Called under the locks of the change, in the order of the changes. Nobody may hear of it
    /// before the change with this number is safe; 0 if numbers are not drawn.
    fn tell(&self, event: &KeyEvent, seq: SeqNo);
}

impl Keyspace {
    /// Selects the events of which the sinks of workers are told. A worker follows when it enters
    /// its section the next time.
    pub fn select_events(&self, classes: EventClasses) {
        self.events.set(classes);
        self.uses.raise();
    }
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

/// Events of committed changes.
#[derive(Default)]
pub(crate) struct Events {
    /// Those that are kept or told.
    classes: EventClasses,
    /// Who is told of them; if nobody is, they are kept.
    pub sink: Option<Arc<dyn EventSink>>,
    /// Of changes that have no number yet: the sink is told later.
    is_held: bool,
    kept: VecDeque<KeyEvent>,
}

impl Events {
    /// The change of an event is committed.
    pub fn keep(&mut self, event: KeyEvent) {
        self.kept.push_back(event);
    }

    /// Sets whether the sink is not told yet: committed changes have no number.
    pub fn set_held(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Tells the sink of what was committed, under this number.
    pub fn tell(&mut self, seq: SeqNo) {
        let Some(sink) = self.sink.as_ref().filter(|_| !self.is_held) else { return };
        while let Some(event) = self.kept.pop_front() {
            sink.tell(&event, seq);
        }
    }
}

impl Undo {
    /// Changes leave these events.
    pub fn select_events(&mut self, classes: EventClasses) {
        self.events.classes = classes;
        self.set_listeners(listeners::EVENTS, !classes.is_empty());
    }
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

    /// Emits that any key may no longer be what it was.
    pub(crate) fn notify_all_touched(&mut self) {
        self.notify(Event::ALL_TOUCHED, DbIndex(0), &self.ks.key(b""));
    }

    /// What the sinks of workers are told of was changed by the running command, which holds World:
    /// this worker follows at once, the others before they change anything.
    pub fn follow_events(&mut self) {
        self.w.undo.select_events(self.ks.events.get());
    }

    #[cold]
    pub(crate) fn push_event(&mut self, event: Event, db: DbIndex, key: &[u8]) {
        if self.w.undo.events.classes.has(event) {
            // A command that changes a key in several places has touched it once.
            if event.class() == EventClass::Tracking
                && let Some(Notice::Event(last)) = self.w.undo.notices.last()
                && (last.event, last.db, &*last.key) == (event, db, key)
            {
                return;
            }
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
                let told = |event: &&Event| self.w.undo.events.classes.has(**event);
                events.extend(Event::of_expired(fields).iter().filter(told).map(key_event));
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
        self.w.undo.events.kept.pop_front()
    }
}

impl Access {
    /// Sets whether the events of this worker's changes are kept for [`Access::next_event`].
    pub fn listen_to_events(&mut self, listens: bool) {
        let classes = if listens { EventClasses::ALL } else { EventClasses::default() };
        self.w.undo.select_events(classes);
    }

    /// From now on this sink is told of the events of this worker's changes that are selected
    /// ([`Keyspace::select_events`]).
    pub fn tell_events_to(&mut self, sink: Arc<dyn EventSink>) {
        self.w.undo.events.sink = Some(sink);
        self.w.undo.select_events(self.ks.events.get());
    }

    /// Sets whether this worker's changes are announced before they are made, and counted.
    pub fn capture_changes(&mut self, captures: bool) {
        self.w.undo.set_listeners(listeners::CAPTURE, captures);
    }

    /// The next event of committed changes, in their order.
    pub fn next_event(&mut self) -> Option<KeyEvent> {
        self.w.undo.events.kept.pop_front()
    }

    /// How many changes of each kind were committed, and how many of those had been announced,
    /// since capturing began.
    pub fn census(&self) -> &Census {
        &self.w.undo.capture.census
    }
}
