//! DUMP and RESTORE: a value as bytes of the RDB format, and back.

use base::{Blob, UnixMs};
use keyspace::Captured;
use rdb::{Saver, types};
use resp::Reply;
use value::{Encoding, Str};

use super::build::Built;
use super::stored::Stored;
use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::{integer, is};
use crate::spec::Resumable;

/// A longer string is written after its slot is released.
const TEXT_MAX: usize = 16 * 1024;
/// A longer payload is replied by reference.
const COPIED_MAX: usize = 16 * 1024;
/// Reading a longer payload is long work: others park behind its slot.
const LONG_PAYLOAD: usize = 64 * 1024;

/// `DUMP key`. A value of many parts is captured, and written with its slot released.
pub fn dump(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let key = ctx.key(1);
    let keyspace = ctx.guard.keyspace();
    let entry = ctx.guard.read(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    let Some(entry) = entry else {
        ctx.reply.null();
        return Ok(());
    };
    let kept = match entry.big() {
        Some(big) => Kept::Big(keyspace.capture(big), entry.encoding()),
        None if entry.is_string() => match entry.str() {
            Str::Blob(blob) if blob.len() > TEXT_MAX => Kept::Text(blob.clone()),
            _ => return reply_payload(&mut ctx.reply, &Stored::of(&entry)),
        },
        None => return reply_payload(&mut ctx.reply, &Stored::of(&entry)),
    };
    ctx.resume(Box::new(kept));
    Ok(())
}

fn reply_payload(reply: &mut Reply<'_>, stored: &Stored<'_>) -> Result<(), Error> {
    let payload = Saver::default().dump(stored);
    if payload.len() > COPIED_MAX {
        reply.bulk_blob(&Blob::new(payload));
    } else {
        reply.bulk(&payload);
    }
    Ok(())
}

/// A value to be written after the guard that it was found under: in one step, however long.
enum Kept {
    Big(Captured, Encoding),
    Text(Blob),
}

impl Resumable for Kept {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<bool, Error> {
        let stored = match self {
            Kept::Big(big, encoding) => Stored::captured(big, *encoding),
            Kept::Text(blob) => Stored::text(Str::Blob(blob)),
        };
        reply_payload(&mut ctx.reply, &stored).map(|()| true)
    }
}

/// The options of RESTORE.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<i64>,
    freq: Option<i64>,
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
                // Nothing counts accesses, which only LFU eviction needs.
                let freq = integer(value)?;
                if !(0..=255).contains(&freq) {
                    return Err(Error::RestoreFreq);
                }
                options.freq = Some(freq);
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`. The payload is
/// read to its end before anything changes.
pub fn restore(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let options = Options::parse(ctx)?;
    let key = ctx.key(1);
    if !options.replace && ctx.guard.contains(ctx.db, &key) {
        return Err(Error::BusyKey);
    }
    let ttl = integer(ctx.arg(2))?;
    if ttl < 0 {
        return Err(Error::RestoreTtl);
    }
    let payload = ctx.arg(3);
    if payload.len() > LONG_PAYLOAD {
        ctx.guard.mark_long();
    }
    let mut built = Built::new(ctx.settings, is_packed(payload));
    rdb::restore(payload, &mut built).map_err(Error::Payload)?;
    let expiry = match ttl {
        0 => None,
        _ if options.absolute => Some(UnixMs(ttl)),
        _ => Some(UnixMs(ctx.now.0.wrapping_add(ttl))),
    };
    if expiry.is_some_and(|at| at <= ctx.now) {
        ctx.guard.remove(ctx.db, &key);
    } else {
        built.insert(ctx.guard, ctx.db, &key, expiry);
        if let Some(seconds) = options.idle_seconds
            && let Some(mut entry) = ctx.guard.entry_mut(ctx.db, &key)
        {
            entry.set_idle(seconds as u64);
        }
    }
    ctx.reply.ok();
    Ok(())
}

/// Whether a payload's value is one packed string: then Redis looks at its length alone.
fn is_packed(payload: &[u8]) -> bool {
    const PACKED: [u8; 5] = [
        types::HASH_ZIPLIST,
        types::HASH_LISTPACK,
        types::ZSET_ZIPLIST,
        types::ZSET_LISTPACK,
        types::SET_LISTPACK,
    ];
    payload.first().is_some_and(|id| PACKED.contains(id))
}
