//! Records of changes of fields, in commands that every server of the format knows, unless they are
//! about times of fields.

use base::UnixMs;
use base::num::{I64_TEXT_MAX, format_i64};

use crate::ctx::Ctx;
use crate::record;

/// Leaves that fields were removed.
pub(super) fn removed<'f>(ctx: &mut Ctx<'_, '_>, fields: impl Iterator<Item = &'f [u8]>) {
    let key = ctx.key(1);
    record::in_parts(ctx, &[b"HDEL", key.bytes], fields);
}

/// Leaves when fields expire, or that they do not.
pub(super) fn timed<'f>(
    ctx: &mut Ctx<'_, '_>,
    at: Option<UnixMs>,
    fields: impl Iterator<Item = &'f [u8]>,
) {
    if !ctx.guard.is_recording() {
        return;
    }
    let (key, fields) = (ctx.key(1), fields.collect::<Vec<_>>());
    if fields.is_empty() {
        return;
    }
    let (time, count) = (&mut [0; I64_TEXT_MAX], &mut [0; I64_TEXT_MAX]);
    let count = format_i64(count, fields.len() as i64);
    let head: &[&[u8]] = match at {
        Some(at) => &[b"HPEXPIREAT", key.bytes, format_i64(time, at.0), b"FIELDS", count],
        None => &[b"HPERSIST", key.bytes, b"FIELDS", count],
    };
    ctx.guard.record_with(ctx.db, head.len() + fields.len(), |record| {
        record.words(head.iter().chain(&fields).copied());
    });
}

/// Leaves the text that a field was set to, and its time, which has stayed.
pub(super) fn set_text(ctx: &mut Ctx<'_, '_>, field: &[u8], text: &[u8], time: Option<UnixMs>) {
    let key = ctx.key(1);
    ctx.guard.record(ctx.db, &[b"HSET", key.bytes, field, text]);
    if time.is_some() {
        timed(ctx, time, std::iter::once(field));
    }
}

/// Leaves that the fields in some arguments were set to the values behind them.
pub(super) fn set_arguments(ctx: &mut Ctx<'_, '_>, fields: std::ops::Range<usize>, keeps: bool) {
    if !ctx.guard.is_recording() {
        return;
    }
    let (key, args) = (ctx.key(1), ctx.args);
    let count = &mut [0; I64_TEXT_MAX];
    let count = format_i64(count, fields.len() as i64 / 2);
    let head: &[&[u8]] = if keeps {
        &[b"HSETEX", key.bytes, b"KEEPTTL", b"FIELDS", count]
    } else {
        &[b"HSET", key.bytes]
    };
    ctx.guard.record_with(ctx.db, head.len() + fields.len(), |record| {
        record.words(head.iter().copied());
        fields.for_each(|at| record::argument(record, &args, at));
    });
}
