//! Values of a snapshot file on their way into the keyspace.

use std::borrow::Cow;

use base::{Blob, DbIndex, UnixMs};
use keyspace::{Event, Guard, INLINE_MAX, Key, Uses};
use rdb::file::Meta;
use rdb::{Error, Kind, Sink, types};
use value::{Stream, encode};

use crate::ctx::Settings;
use crate::parts::{Built, is_packed};

/// A value which is read from a file: a sink for its parts, which then puts it under its key. Used
/// for one value after the other, so that a short string needs no allocation.
pub struct LoadedValue {
    settings: Settings,
    /// A short string.
    text: Vec<u8>,
    /// Any other value.
    built: Option<Built>,
}

impl LoadedValue {
    /// For values which are built with these settings.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), text: Vec::new(), built: None }
    }

    /// An empty one with the same settings.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::new(&self.settings)
    }

    /// Begins the next value, which has this type in the file.
    pub fn begin(&mut self, id: u8) {
        self.text.clear();
        self.built = (id != types::STRING).then(|| Built::new(&self.settings, is_packed(&[id])));
    }

    /// Sets a string which was read in parts.
    pub fn set_text(&mut self, text: Blob) {
        self.built = Some(Built::of_text(&self.settings, text));
    }

    /// Puts the value under a key which the guard covers, and which gets what the file says of its
    /// uses, as far as the policy keeps that. The change does not count as one of a command, and
    /// nobody is notified of it. O(1), but O(length) for a value which fits its entry.
    ///
    /// Returns false, and changes nothing, if the key exists and is not to be replaced.
    pub fn insert(
        &mut self,
        guard: &mut Guard<'_>,
        db: DbIndex,
        key: &Key<'_>,
        meta: &Meta,
        replaces: bool,
    ) -> bool {
        if !replaces && guard.contains(db, key) {
            return false;
        }
        let before = guard.counted();
        match self.built.take() {
            None => guard.insert(Event::SILENT, db, key, encode(&self.text), meta.expiry),
            Some(built) => built.insert(Event::SILENT, guard, db, key, meta.expiry),
        }
        guard.count_as(before, 0);
        if meta.idle_seconds.is_some() || meta.frequency.is_some() {
            set_uses(guard, db, key, meta);
        }
        true
    }

    fn collection(&mut self) -> Result<&mut Built, Error> {
        self.built.as_mut().ok_or(Error::Corrupt)
    }
}

/// Sets what the policy keeps of uses; the field for the other kind says nothing then, as in
/// RESTORE.
#[cold]
fn set_uses(guard: &mut Guard<'_>, db: DbIndex, key: &Key<'_>, meta: &Meta) {
    let counts = guard.uses() != Uses::Times;
    let Some(mut entry) = guard.entry_mut(Event::SILENT, db, key) else { return };
    match (meta.idle_seconds, meta.frequency) {
        (Some(seconds), _) if !counts => entry.set_idle(seconds),
        (_, Some(count)) if counts => entry.set_frequency(count),
        _ => {}
    }
}

impl Sink for LoadedValue {
    fn string(&mut self, bytes: Cow<'_, [u8]>) -> Result<(), Error> {
        if bytes.len() <= INLINE_MAX {
            self.text.extend_from_slice(&bytes);
        } else {
            self.set_text(Blob::new(bytes.into_owned()));
        }
        Ok(())
    }

    fn start(&mut self, kind: Kind, about: u64) -> Result<(), Error> {
        self.collection()?.start(kind, about)
    }

    fn element(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.collection()?.element(bytes)
    }

    fn member(&mut self, member: &[u8], score: f64) -> Result<(), Error> {
        self.collection()?.member(member, score)
    }

    fn field(&mut self, field: &[u8], value: &[u8], at: Option<UnixMs>) -> Result<(), Error> {
        self.collection()?.field(field, value, at)
    }

    fn stream(&mut self, stream: Stream) -> Result<(), Error> {
        self.collection()?.stream(stream)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.collection()?.finish()
    }
}
