//! DUMP and RESTORE: a value as bytes of the RDB format, and back.

use base::{Blob, UnixMs};
use keyspace::{Event, Key, Uses};
use resp::Reply;

use super::migrate::ValueSnapshot;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::{Error, Payload};
use crate::events;
use crate::parse::{integer, is};
use crate::parts::{Built, is_packed};

/// A longer payload is replied by reference.
const COPIED_MAX: usize = 16 * 1024;
/// Reading a longer payload is long work: others park behind its slot.
const LONG_PAYLOAD: usize = 64 * 1024;

/// `DUMP key`. A value of many parts is captured, and written with its slot released.
pub fn dump(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let keyspace = ctx.guard.keyspace();
    let entry = ctx.guard.look_up(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    match entry.map(|entry| ValueSnapshot::of(keyspace, entry)) {
        None => ctx.reply.null(),
        Some(ValueSnapshot::Payload(payload)) => reply_payload(&mut ctx.reply, payload),
        Some(kept) => return Ok(Done::Steps(Box::new(DumpReply(Some(kept))))),
    }
    Ok(Done::Replied)
}

fn reply_payload(reply: &mut Reply<'_>, payload: Vec<u8>) {
    if payload.len() > COPIED_MAX {
        reply.bulk_blob(&Blob::new(payload));
    } else {
        reply.bulk(&payload);
    }
}

/// The reply of DUMP: in one step, however long.
struct DumpReply(Option<ValueSnapshot>);

impl Resumable for DumpReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if let Some(kept) = self.0.take() {
            // Nothing is locked; who wants World does not wait for this section.
            ctx.guard.mark_long();
            reply_payload(&mut ctx.reply, kept.into_payload());
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
    let payload = ctx.arg(3);
    if payload.len() > LONG_PAYLOAD
        && let Err(parked) = ctx.guard.try_mark_long()
    {
        return Ok(Done::Park(parked));
    }
    let mut built = Built::new(ctx.settings, is_packed(payload));
    rdb::restore(payload, &mut built).map_err(|why| Payload { text: why.reply() })?;
    let expiry = match ttl {
        0 => None,
        _ if options.absolute => Some(UnixMs(ttl)),
        _ => Some(UnixMs(ctx.now.0.wrapping_add(ttl))),
    };
    if expiry.is_some_and(|at| ctx.is_past(at)) {
        ctx.guard.remove(Event::DEL, ctx.db, &key);
    } else {
        if exists {
            // It is replaced by a key of its own.
            ctx.guard.notify(Event::NEW, ctx.db, &key);
        }
        built.insert(events::RESTORE, ctx.guard, ctx.db, &key, expiry);
        options.set_uses(ctx, &key);
    }
    ctx.reply.ok();
    Ok(Done::Replied)
}
