//! The record of a command: the requests which repeat what it did, for the journal.
//!
//! Most commands are their own record: repeating the request on the same data repeats the effect.
//! The rows of the others have [`Traits::OWN_RECORD`](crate::spec::Traits), and their handlers
//! leave what repeats it (`ctx.guard.record`): relative times made absolute, what was drawn at
//! random, what was computed in floating point. Commands that Redis 7.0 does not know leave their
//! effect in commands that it knows, where there are such.
//!
//! Rules for handlers:
//! - A record is left behind the change, and nothing is looked up between both: a lookup may commit
//!   what was left so far.
//! - Nothing is computed for a record unless `ctx.guard.is_recording()`.
//! - What a waiting client takes is recorded where it is taken (`take` functions): served at once
//!   or later, the record is the same. It is that of a command which does not wait.
//!
//! Changes that no handler makes leave their records where they are made, in the server:
//! - ingest writes messages ([`crate::list::pour`], [`crate::stream::pour`]): RPUSH, and XADD with
//!   its id for each message, the last one with the exact trimming;
//! - MIGRATE removes what it has moved: DEL;
//! - DEBUG RELOAD and LOADAOF bring back the data which the file has, and leave none; what would
//!   change the data (RELOAD NOSAVE) is refused. DEBUG POPULATE leaves its SETs itself;
//! - FLUSHALL, FLUSHDB, SWAPDB: the request, FLUSHALL and FLUSHDB without ASYNC or SYNC;
//! - function libraries: FUNCTION LOAD, DELETE, FLUSH, RESTORE as requested;
//! - loading data while the server runs (a snapshot, a transfer): a file of its own.

use crate::ctx::Ctx;
use crate::spec::CommandSpec;
use base::num::{I64_TEXT_MAX, format_i64};
use base::{DbIndex, UnixMs};
use keyspace::{Guard, Mark, RecordWriter};
use resp::Args;

/// Words of one command in a record that could have any number of them.
const WORDS_MAX: usize = 1024;

/// Called behind a handler which has succeeded, `mark` being where it began: leaves its request as
/// the record, unless it has changed nothing or has left a record itself.
pub fn leave(guard: &mut Guard<'_>, mark: Mark, spec: &CommandSpec, db: DbIndex, args: Args<'_>) {
    if !guard.is_recording() || guard.has_recorded_since(mark) || !guard.has_changed_since(mark) {
        return;
    }
    if !spec.may_change() {
        return; // fields that were due are hidden, for which the keyspace leaves a record
    }
    request(guard, db, args);
}

/// As [`leave`] on the short path, where one command stands under a guard: `request` are its bytes
/// as they were received. If these are a RESP array, they are the record.
#[inline]
pub fn framed(
    guard: &mut Guard<'_>,
    mark: Mark,
    spec: &CommandSpec,
    db: DbIndex,
    args: Args<'_>,
    request: &[u8],
) {
    let is_left = !guard.is_recording() || guard.has_recorded_since(mark);
    if is_left || !guard.has_changed_since(mark) || !spec.may_change() {
        return;
    }
    if request.first() == Some(&b'*') {
        guard.record_raw(db, request);
    } else {
        self::request(guard, db, args);
    }
}

/// Leaves a request as it stands. Big arguments are taken by reference.
pub fn request(guard: &mut Guard<'_>, db: DbIndex, args: Args<'_>) {
    guard.record_with(db, args.len(), |record| {
        (0..args.len()).for_each(|at| argument(record, &args, at));
    });
}

/// Writes an argument of the request as the next word.
pub(crate) fn argument(record: &mut RecordWriter<'_>, args: &Args<'_>, at: usize) {
    match args.blob(at) {
        Some(blob) => record.blob(blob),
        None => record.word(args.get(at)),
    }
}

/// Writes a number as the next word.
pub(crate) fn number(record: &mut RecordWriter<'_>, number: i64) {
    record.word(format_i64(&mut [0; I64_TEXT_MAX], number));
}

/// What a SET in a record says about the expiry.
#[derive(Clone, Copy)]
pub(crate) enum SetExpiry {
    None,
    Keep,
    At(UnixMs),
}

/// Leaves a SET. `value` writes one word.
pub(crate) fn set(
    ctx: &mut Ctx<'_, '_>,
    key: &[u8],
    expiry: SetExpiry,
    value: impl FnOnce(&mut RecordWriter<'_>),
) {
    let count = match expiry {
        SetExpiry::None => 3,
        SetExpiry::Keep => 4,
        SetExpiry::At(_) => 5,
    };
    ctx.guard.record_with(ctx.db, count, |record| {
        record.word(b"SET");
        record.word(key);
        value(record);
        match expiry {
            SetExpiry::None => {}
            SetExpiry::Keep => record.word(b"KEEPTTL"),
            SetExpiry::At(at) => {
                record.word(b"PXAT");
                number(record, at.0);
            }
        }
    });
}

/// Leaves the removal of a key.
pub(crate) fn removal(ctx: &mut Ctx<'_, '_>, key: &[u8]) {
    ctx.guard.record(ctx.db, &[b"DEL", key]);
}

/// Leaves when a key expires.
pub(crate) fn expiry(ctx: &mut Ctx<'_, '_>, key: &[u8], at: Option<UnixMs>) {
    match at {
        _ if !ctx.guard.is_recording() => {}
        None => ctx.guard.record(ctx.db, &[b"PERSIST", key]),
        Some(at) => {
            let text = &mut [0; I64_TEXT_MAX];
            ctx.guard.record(ctx.db, &[b"PEXPIREAT", key, format_i64(text, at.0)]);
        }
    }
}

/// Leaves a command and its words in as many commands as it takes, each of which begins with
/// `head`; nothing if there are no words.
pub(crate) fn in_parts<'w>(
    ctx: &mut Ctx<'_, '_>,
    head: &[&[u8]],
    words: impl Iterator<Item = &'w [u8]>,
) {
    if !ctx.guard.is_recording() {
        return;
    }
    let mut words = words.peekable();
    while words.peek().is_some() {
        let part: Vec<&[u8]> = words.by_ref().take(WORDS_MAX).collect();
        ctx.guard.record_with(ctx.db, head.len() + part.len(), |record| {
            record.words(head.iter().chain(&part).copied());
        });
    }
}
