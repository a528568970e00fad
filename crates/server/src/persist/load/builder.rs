//! Builds values and puts them under their keys.

use crate::persist::delay::sleep_for_keys;
use crate::persist::load::fault::LoadError;
use crate::persist::load::section::Section;
use crate::persist::load::state::Loaded;
use crate::shared::Shared;
use base::sync::Arc;
use base::sync::atomic::AtomicBool;
use base::{DbIndex, SlotId, UnixMs};
use command::load::LoadedValue;
use keyspace::{Access, Due, Guard, Key, Keyspace, PrefetchTarget};
use rdb::file::{self, Keys, LongChunk, LongReader, Meta};

/// Keys whose slots and buckets are prefetched together, and which are built within one section.
const BATCH: usize = 64;

/// What is loaded into.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// A key that is there is replaced; otherwise it is an error.
    pub(crate) replaces: bool,
    /// The time at which loading began: what is due then is left out.
    pub(crate) now: UnixMs,
    /// It is loaded nevertheless: changes follow which were made when it was not due.
    pub(crate) keeps_due: bool,
}

/// A thread's means to build.
pub(crate) struct Builder {
    section: Section,
    shared: Arc<Shared>,
    value: LoadedValue,
    /// A key that is there is replaced; otherwise it is an error.
    replaces: bool,
    /// The time at which loading began.
    now: UnixMs,
    /// What is due at that time is loaded as well: changes follow which were made to it.
    keeps_due: bool,
}

/// A long value of which parts are missing.
pub(crate) struct LongValue {
    reader: LongReader,
    value: LoadedValue,
}

/// A key of a batch, with its hash.
struct Hashed<'k> {
    key: file::Key<'k>,
    db: DbIndex,
    hash: u64,
    slot: SlotId,
    /// Keys that the file announces for the database.
    announced: u64,
}

impl<'k> Hashed<'k> {
    /// The scanner has checked the database.
    fn new(keyspace: &Keyspace, key: file::Key<'k>, announced: u64) -> Self {
        let Key { hash, slot, .. } = keyspace.key(&key.name);
        keyspace.prefetch_slot(slot);
        Self { db: DbIndex(key.db), key, hash, slot, announced }
    }
}

impl Builder {
    pub(crate) fn new(
        access: Access,
        shared: &Arc<Shared>,
        is_cancelled: Arc<AtomicBool>,
        settings: &command::Settings,
        rules: Rules,
    ) -> Self {
        let value = LoadedValue::new(settings);
        let section = Section::new(access, is_cancelled);
        let Rules { replaces, now, keeps_due } = rules;
        Self { section, shared: shared.clone(), value, replaces, now, keeps_due }
    }

    /// Builds a chunk of whole keys.
    pub(crate) fn keys(&mut self, keys: &Keys) -> Result<(), LoadError> {
        let keyspace = Arc::clone(&self.shared.keyspace);
        let mut counts = Loaded::default();
        let mut batch = Vec::with_capacity(BATCH);
        let mut all = keys.iter();
        let is_delayed = self.key_delay_us() > 0;
        loop {
            for key in all.by_ref().take(BATCH) {
                let key = key?;
                let announced = keys.announced(key.db);
                batch.push(Hashed::new(&keyspace, key, announced));
            }
            if batch.is_empty() || self.section.is_cancelled() {
                break;
            }
            self.batch(&keyspace, &batch, &mut counts)?;
            if is_delayed {
                let goes_on = || !self.section.is_cancelled();
                sleep_for_keys(batch.len() as u64, || self.key_delay_us(), goes_on);
            }
            batch.clear();
        }
        self.shared.load.add(keys.bytes(), counts);
        Ok(())
    }

    /// `key-load-delay`.
    fn key_delay_us(&self) -> u64 {
        let config = self.shared.config.lock();
        config.expect("no panic while the configuration is held").load_delay_us
    }

    fn batch(
        &mut self,
        keyspace: &Keyspace,
        batch: &[Hashed<'_>],
        counts: &mut Loaded,
    ) -> Result<(), LoadError> {
        let mut targets = [PrefetchTarget::default(); BATCH];
        for (h, target) in batch.iter().zip(&mut targets) {
            *target = keyspace.prefetch_bucket(h.slot, h.hash, h.db);
        }
        // A full bucket continues in another one.
        targets[..batch.len()].iter().for_each(|target| keyspace.prefetch_entry(*target));
        let result = batch.iter().try_for_each(|h| {
            self.value.begin(h.key.id);
            match h.key.load(&mut self.value) {
                Err(e) if e.is_empty() => {
                    counts.empty += 1;
                    return Ok(());
                }
                loaded => loaded?,
            }
            let key = Key { bytes: &h.key.name, hash: h.hash, slot: h.slot };
            let (meta, offset, announced) = (&h.key.meta, h.key.offset, h.announced);
            let place = Place { db: h.db, key, meta, offset, announced };
            self.insert(None, &place, counts)
        });
        self.section.leave();
        result
    }

    /// Builds a part of a long value; returns the value if it is not complete.
    pub(crate) fn long(
        &mut self,
        long: Option<Box<LongValue>>,
        part: LongChunk,
    ) -> Result<Option<Box<LongValue>>, LoadError> {
        match (long, part) {
            (None, LongChunk::Begin(about)) => {
                let mut value = self.value.another();
                value.begin(about.id);
                Ok(Some(Box::new(LongValue { reader: LongReader::new(about), value })))
            }
            (Some(mut long), LongChunk::Part(bytes)) => {
                long.reader.part(&bytes, &mut long.value)?;
                self.shared.load.add(bytes.len(), Loaded::default());
                Ok(Some(long))
            }
            (Some(long), LongChunk::End) => self.end_long(*long).map(|()| None),
            (long, part) => {
                unreachable!("parts are in order: {part:?} behind {}", long.is_some())
            }
        }
    }

    fn end_long(&mut self, long: LongValue) -> Result<(), LoadError> {
        let LongValue { reader, mut value } = long;
        let about = reader.about().clone();
        match reader.finish(&mut value) {
            Err(e) if e.is_empty() => {
                self.shared.load.add(0, Loaded { empty: 1, ..Loaded::default() });
                return Ok(());
            }
            Err(e) => return Err(e.into()),
            Ok(Some(text)) => value.set_text(text),
            Ok(None) => {}
        }
        let keyspace = Arc::clone(&self.shared.keyspace);
        let key = keyspace.key(&about.name);
        let (db, meta, offset) = (DbIndex(about.db), &about.meta, about.offset);
        let place = Place { db, key, meta, offset, announced: 0 };
        let mut counts = Loaded::default();
        let result = self.insert(Some(&mut value), &place, &mut counts);
        self.section.leave();
        result?;
        self.shared.load.add(0, counts);
        Ok(())
    }

    /// Puts a value under its key; this builder's own value if none is given. The section stays
    /// entered.
    fn insert(
        &mut self,
        value: Option<&mut LoadedValue>,
        place: &Place<'_>,
        counts: &mut Loaded,
    ) -> Result<(), LoadError> {
        let Place { db, key, meta, offset, announced } = place;
        if !self.keeps_due && meta.expiry.is_some_and(|at| at < self.now) {
            counts.expired += 1;
            return Ok(());
        }
        let (value, replaces) = (value.unwrap_or(&mut self.value), self.replaces);
        let due = if self.keeps_due { Due::Ignore } else { Due::Remove };
        let put = |guard: &mut Guard<'_>| {
            guard.set_due(due);
            guard.reserve(*db, key.slot, *announced);
            let is_new = value.insert(guard, *db, key, meta, replaces);
            guard.finish();
            is_new
        };
        match self.section.with_slot(key.slot, self.now, put) {
            Some(true) => counts.keys += 1,
            Some(false) => return Err(LoadError::duplicate(*offset, db.0, key.bytes)),
            None => {} // the server ends
        }
        Ok(())
    }
}

/// Where a value belongs.
struct Place<'a> {
    db: DbIndex,
    key: Key<'a>,
    meta: &'a Meta,
    /// In the file.
    offset: u64,
    /// Keys that the file announces for the database; 0 if it does not.
    announced: u64,
}
