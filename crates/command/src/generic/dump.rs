//! DUMP and RESTORE: a value as bytes of the RDB format, and back.

use base::{Blob, UnixMs};
use keyspace::{Captured, Event, Key, Keyspace, Parts, ReclaimOnDrop, Uses};
use rdb::{CollectionDump, CollectionRestore, StreamDump, TextRestore};
use resp::Reply;
use value::Encoding;

use super::migrate::{LongText, ValueSnapshot};
use crate::ctx::{Ctx, Progress, Resumable, Settings};
use crate::done::Done;
use crate::error::{Error, Payload};
use crate::events;
use crate::parse::{integer, is};
use crate::parts::{Built, Stored, is_packed};
use crate::prepare::{self, Found, Preparation, Sources};
use crate::record;
use crate::string::captured::STEP_BYTES;

/// A longer payload is replied by reference.
const COPIED_MAX: usize = 16 * 1024;
/// A longer payload is read ahead of the command.
const LONG_PAYLOAD: usize = 64 * 1024;

/// `DUMP key`. A long value is captured, and written in steps with its slot released.
pub fn dump(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let keyspace = ctx.guard.keyspace();
    let entry = ctx.guard.look_up(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    match entry.map(|entry| ValueSnapshot::of(keyspace, entry)) {
        None => ctx.reply.null(),
        Some(ValueSnapshot::Text(text)) => return Ok(Done::Steps(Box::new(text))),
        Some(ValueSnapshot::Payload(payload)) => ctx.reply.bulk(&payload),
        Some(ValueSnapshot::Big(big, encoding)) => {
            return Ok(Done::Steps(DumpReply::of(keyspace, big, encoding)));
        }
    }
    Ok(Done::Replied)
}

fn reply_payload(reply: &mut Reply<'_>, payload: &Blob) {
    match payload.contiguous() {
        Some(short) if short.len() <= COPIED_MAX => reply.bulk(short),
        _ => reply.bulk_blob(payload),
    }
}

/// The reply of DUMP for a long string.
impl Resumable for ReclaimOnDrop<LongText> {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let Some(payload) = self.0.step(STEP_BYTES) else { return Ok(Progress::More) };
        ctx.reply.bulk_header(payload.len());
        ctx.reply.raw(&payload.head);
        ctx.reply.raw_blob(&payload.body);
        ctx.reply.raw(&payload.tail);
        ctx.reply.raw(b"\r\n");
        Ok(Progress::Complete)
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

/// The reply of DUMP for a collection.
struct DumpReply {
    big: Captured,
    encoding: Encoding,
    work: ReclaimOnDrop<LongCollection>,
}

/// The payload of a collection under way.
struct LongCollection(CollectionDump);

impl Parts for LongCollection {
    fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl DumpReply {
    fn of(keyspace: &Keyspace, big: Captured, encoding: Encoding) -> Box<dyn Resumable> {
        if let Some(dump) = StreamDump::new(&Stored::captured(&big, encoding)) {
            let work = keyspace.reclaim_on_drop(LongStream(dump));
            return Box::new(StreamReply { big, encoding, work });
        }
        match CollectionDump::new(&Stored::captured(&big, encoding)) {
            Some(dump) => {
                let work = keyspace.reclaim_on_drop(LongCollection(dump));
                Box::new(DumpReply { big, encoding, work })
            }
            None => Box::new(WholeReply(Some(ValueSnapshot::Big(big, encoding)))),
        }
    }
}

impl Resumable for DumpReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let stored = Stored::captured(&self.big, self.encoding);
        let payload = self.work.0.step(|from, part| stored.each_while(from, u64::MAX, part));
        let Some(payload) = payload else { return Ok(Progress::More) };
        reply_payload(&mut ctx.reply, &payload);
        Ok(Progress::Complete)
    }

    fn memory(&self) -> usize {
        self.work.0.memory()
    }
}

/// The reply of DUMP for a stream.
struct StreamReply {
    big: Captured,
    encoding: Encoding,
    work: ReclaimOnDrop<LongStream>,
}

/// The payload of a stream under way.
struct LongStream(StreamDump);

impl Parts for LongStream {
    fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl Resumable for StreamReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let stored = Stored::captured(&self.big, self.encoding);
        let Some(payload) = self.work.0.step(&stored) else { return Ok(Progress::More) };
        reply_payload(&mut ctx.reply, &payload);
        Ok(Progress::Complete)
    }

    fn memory(&self) -> usize {
        self.work.0.memory()
    }
}

/// The reply of DUMP for a collection which is one string: in one step.
struct WholeReply(Option<ValueSnapshot>);

impl Resumable for WholeReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if let Some(kept) = self.0.take() {
            // Nothing is locked; who wants World does not wait for this section.
            ctx.guard.mark_long();
            reply_payload(&mut ctx.reply, &Blob::new(kept.into_payload()));
        }
        Ok(Progress::Complete)
    }
}

/// The options of RESTORE.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<i64>,
    freq: Option<u8>,
}

impl Options {
    fn parse(ctx: &Ctx<'_, '_>) -> Result<Self, Error> {
        let mut options = Options::default();
        let mut at = 4;
        while at < ctx.args.len() {
            let word = ctx.arg(at);
            let value = ctx.args.try_get(at + 1);
            at += 1;
            if is(word, "REPLACE") {
                options.replace = true;
            } else if is(word, "ABSTTL") {
                options.absolute = true;
            } else if is(word, "IDLETIME")
                && options.freq.is_none()
                && let Some(value) = value
            {
                options.idle_seconds = Some(integer(value)?);
                if options.idle_seconds < Some(0) {
                    return Err(Error::RestoreIdletime);
                }
                at += 1;
            } else if is(word, "FREQ")
                && options.idle_seconds.is_none()
                && let Some(value) = value
            {
                let freq = integer(value)?;
                options.freq = Some(u8::try_from(freq).map_err(|_| Error::RestoreFreq)?);
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

impl Options {
    /// Sets what the policy keeps of uses; the option for the other kind says nothing then.
    fn set_uses(&self, ctx: &mut Ctx<'_, '_>, key: &Key<'_>) {
        let counts = ctx.guard.uses() != Uses::Times;
        let Some(mut entry) = ctx.guard.entry_mut(Event::SILENT, ctx.db, key) else { return };
        match (self.idle_seconds, self.freq) {
            (Some(seconds), _) if !counts => entry.set_idle(seconds as u64),
            (_, Some(count)) if counts => entry.set_frequency(count),
            _ => entry.set_fresh(),
        }
    }
}

impl Options {
    /// Leaves the request with the time at which the key expires.
    #[cold]
    fn record(&self, ctx: &mut Ctx<'_, '_>, expiry: Option<UnixMs>) {
        let (args, uses) = (ctx.args, self.idle_seconds.is_some() || self.freq.is_some());
        let words = 5 + usize::from(expiry.is_some()) + 2 * usize::from(uses);
        ctx.guard.record_with(ctx.db, words, |record| {
            record.word(b"RESTORE");
            record.word(args.get(1));
            record::number(record, expiry.map_or(0, |at| at.0));
            record::argument(record, &args, 3);
            record.word(b"REPLACE");
            if expiry.is_some() {
                record.word(b"ABSTTL");
            }
            if let Some(seconds) = self.idle_seconds {
                record.word(b"IDLETIME");
                record::number(record, seconds);
            } else if let Some(frequency) = self.freq {
                record.word(b"FREQ");
                record::number(record, frequency.into());
            }
        });
    }
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`. The payload is
/// read to its end before anything changes.
pub fn restore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = Options::parse(ctx)?;
    let key = ctx.key(1);
    let exists = ctx.guard.contains(ctx.db, &key);
    if !options.replace && exists {
        return Err(Error::BusyKey);
    }
    let ttl = integer(ctx.arg(2))?;
    if ttl < 0 {
        return Err(Error::RestoreTtl);
    }
    let ahead = match prepare::found::<Restoring>(ctx) {
        Found::Ready(ahead) => Some(ahead),
        Found::Begin(_) => None,
    };
    let built = match (ahead, ctx.args.blob(3)) {
        (Some(ahead), _) => ahead.into_built()?,
        (None, Some(payload)) if payload.len() > LONG_PAYLOAD => {
            return Ok(Done::Prepare(Box::new(Restoring::new(ctx, payload.clone()))));
        }
        (None, _) => read(ctx.settings, ctx.arg(3)).map_err(refused)?,
    };
    let expiry = match ttl {
        0 => None,
        _ if options.absolute => Some(UnixMs(ttl)),
        _ => Some(UnixMs(ctx.now.0.wrapping_add(ttl))),
    };
    if expiry.is_some_and(|at| ctx.is_past(at)) {
        if ctx.guard.remove(Event::DEL, ctx.db, &key) {
            record::removal(ctx, key.bytes);
        }
    } else {
        if exists {
            // It is replaced by a key of its own.
            ctx.guard.notify(Event::NEW, ctx.db, &key);
        }
        built.insert(events::RESTORE, ctx.guard, ctx.db, &key, expiry);
        options.set_uses(ctx, &key);
        if ctx.guard.is_recording() {
            options.record(ctx, expiry);
        }
    }
    ctx.reply.ok();
    Ok(Done::Replied)
}

fn refused(why: rdb::Error) -> Error {
    Payload { text: why.reply() }.into()
}

/// The value of a payload.
fn read(settings: &Settings, payload: &[u8]) -> Result<Built, rdb::Error> {
    let mut built = Built::new(settings, is_packed(payload));
    rdb::restore(payload, &mut built)?;
    Ok(built)
}

/// A value that is read ahead of its command, with no slot locked: in steps, but a collection
/// which is one container in one. It depends on no key.
struct Restoring {
    sources: Sources,
    settings: Settings,
    work: ReclaimOnDrop<Restored>,
}

/// How far it is read.
enum Restored {
    /// What is read in one step, or nothing that can be read.
    Whole(Blob),
    Collection(CollectionRestore, Box<Built>),
    Text(TextRestore),
    Read(Result<Box<Built>, rdb::Error>),
}

impl Parts for Restored {
    fn memory(&self) -> usize {
        match self {
            Restored::Whole(payload) => payload.len(),
            Restored::Collection(work, built) => work.memory() + built.memory(),
            Restored::Text(text) => text.memory(),
            Restored::Read(built) => built.as_ref().map_or(0, |built| built.memory()),
        }
    }
}

impl Restoring {
    fn new(ctx: &Ctx<'_, '_>, payload: Blob) -> Self {
        let work = if let Some(text) = TextRestore::new(payload.clone()) {
            Restored::Text(text)
        } else if let Some(parts) = CollectionRestore::new(payload.clone()) {
            Restored::Collection(parts, Box::new(Built::new(ctx.settings, false)))
        } else {
            Restored::Whole(payload)
        };
        let work = ctx.guard.keyspace().reclaim_on_drop(work);
        Restoring { sources: Sources::new(0), settings: ctx.settings.clone(), work }
    }

    fn into_built(self) -> Result<Built, Error> {
        match self.work.into_inner() {
            Restored::Read(built) => built.map(|built| *built).map_err(refused),
            _ => unreachable!("all steps were taken"),
        }
    }
}

impl Resumable for Restoring {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let built = match &mut *self.work {
            Restored::Whole(payload) => {
                // Nothing is locked; who wants World does not wait for this section.
                ctx.guard.mark_long();
                read(&self.settings, &payload.to_slice())
            }
            Restored::Collection(work, built) => match work.step(STEP_BYTES, &mut **built) {
                Ok(false) => return Ok(Progress::More),
                Ok(true) => Ok(std::mem::replace(&mut **built, Built::new(&self.settings, false))),
                Err(why) => Err(why),
            },
            Restored::Text(text) => match text.step(STEP_BYTES) {
                Ok(false) => return Ok(Progress::More),
                Ok(true) => Ok(Built::of_text(&self.settings, text.take_text())),
                Err(why) => Err(why),
            },
            Restored::Read(_) => return Ok(Progress::Complete),
        };
        let read = Restored::Read(built.map(Box::new));
        self.work = ctx.guard.keyspace().reclaim_on_drop(read);
        Ok(Progress::Complete)
    }

    fn memory(&self) -> usize {
        Parts::memory(&*self.work)
    }
}

impl Preparation for Restoring {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        ctx.set_prepared(Box::new(self));
        restore(ctx)
    }
}
