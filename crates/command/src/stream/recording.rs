//! Records of what was given, claimed and trimmed: exact, in commands that do not depend on the
//! time or on how a stream is stored. The times at which consumers were seen have no record.

use value::StreamId;
use value::stream::Pending;

use super::references::References;
use super::view::stream_at;
use crate::ctx::Ctx;
use crate::record;

/// So many ids at most stand in one command of a record.
const IDS_MAX: usize = 1024;

/// A group of the stream in an argument.
#[derive(Clone, Copy)]
pub(super) struct OfGroup<'a> {
    pub key: &'a [u8],
    pub name: &'a [u8],
}

/// Leaves that a consumer was made.
pub(super) fn new_consumer(ctx: &mut Ctx<'_, '_>, group: OfGroup<'_>, consumer: &[u8]) {
    let words = [b"XGROUP", &b"CREATECONSUMER"[..], group.key, group.name, consumer];
    ctx.guard.record(ctx.db, &words);
}

/// Leaves rows of pending entries, which belong to a consumer.
pub(super) fn rows(ctx: &mut Ctx<'_, '_>, group: OfGroup<'_>, consumer: &[u8], rows: &[Pending]) {
    for alike in rows.chunk_by(|a, b| (a.at_ms, a.count) == (b.at_ms, b.count)) {
        for part in alike.chunks(IDS_MAX) {
            let row = part[0];
            ctx.guard.record_with(ctx.db, 5 + part.len() + 6, |record| {
                let head = [b"XCLAIM", group.key, group.name, consumer, b"0"];
                record.words(head);
                for row in part {
                    record.word(row.id.to_string().as_bytes());
                }
                record.word(b"TIME");
                record::number(record, row.at_ms);
                record.word(b"RETRYCOUNT");
                record::number(record, i64::try_from(row.count).unwrap_or(i64::MAX));
                record.word(b"FORCE");
                record.word(b"JUSTID");
            });
        }
    }
}

/// Leaves up to where a group has read: the group at this place of the stream in argument `i`.
pub(super) fn position(ctx: &mut Ctx<'_, '_>, i: usize, at: usize, group: OfGroup<'_>) {
    let place = stream_at(ctx, i).group(at);
    let (last, read) = (place.last.to_string(), place.read);
    ctx.guard.record_with(ctx.db, if read.is_some() { 7 } else { 5 }, |record| {
        let head = [b"XGROUP", &b"SETID"[..], group.key, group.name, last.as_bytes()];
        record.words(head);
        if let Some(read) = read {
            record.word(b"ENTRIESREAD");
            record::number(record, i64::try_from(read).unwrap_or(i64::MAX));
        }
    });
}

/// Leaves that entries are not pending any longer.
pub(super) fn acknowledged(ctx: &mut Ctx<'_, '_>, group: OfGroup<'_>, ids: &[StreamId]) {
    let ids: Vec<_> = ids.iter().map(|id| id.to_string().into_bytes()).collect();
    let ids = ids.iter().map(Vec::as_slice);
    record::in_parts(ctx, &[b"XACK", group.key, group.name], ids);
}

/// Leaves that entries were deleted.
pub(super) fn deleted(ctx: &mut Ctx<'_, '_>, key: &[u8], ids: &[StreamId]) {
    let ids: Vec<_> = ids.iter().map(|id| id.to_string().into_bytes()).collect();
    record::in_parts(ctx, &[b"XDEL", key], ids.iter().map(Vec::as_slice));
}

/// How a stream was trimmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trimmed {
    /// All entries but so many at the end went, or were to go.
    pub keeps: u64,
    /// What groups had to say, if that was asked.
    pub references: References,
}

impl Trimmed {
    fn words(self) -> usize {
        3 + usize::from(self.references != References::Keep)
    }

    fn write(self, record: &mut keyspace::RecordWriter<'_>) {
        record.word(b"MAXLEN");
        record.word(b"=");
        record::number(record, i64::try_from(self.keeps).unwrap_or(i64::MAX));
        match self.references {
            References::Keep => {}
            References::Delete => record.word(b"DELREF"),
            References::Acked => record.word(b"ACKED"),
        }
    }
}

/// Leaves that an entry was added, and what was trimmed behind it.
#[cold]
#[inline(never)]
pub(super) fn added<'f>(
    ctx: &mut Ctx<'_, '_>,
    key: &[u8],
    id: StreamId,
    trimmed: Option<Trimmed>,
    fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])>,
) {
    let count = 3 + trimmed.map_or(0, Trimmed::words) + 2 * fields.len();
    ctx.guard.record_with(ctx.db, count, |record| {
        record.word(b"XADD");
        record.word(key);
        if let Some(trimmed) = trimmed {
            trimmed.write(record);
        }
        record.word(id.to_string().as_bytes());
        for (name, value) in fields {
            record.word(name);
            record.word(value);
        }
    });
}

/// Leaves that a stream was trimmed.
pub(super) fn trimmed(ctx: &mut Ctx<'_, '_>, key: &[u8], trimmed: Trimmed) {
    ctx.guard.record_with(ctx.db, 2 + trimmed.words(), |record| {
        record.word(b"XTRIM");
        record.word(key);
        trimmed.write(record);
    });
}
