//! How entries are replied, at once or in steps over a stream as it was.

use base::num::{U64_TEXT_MAX, fill_back};
use keyspace::Captured;
use resp::{Proto, Reply};
use value::stream::Entry;
use value::{IntText, Stream, StreamId};

use super::view::{of_big, of_entry};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;

/// Entries that are replied under the lock.
pub(super) const AT_ONCE_MAX: u64 = 1000;
/// Entries of one step.
pub(super) const STEP_MAX: u64 = 1000;
/// As many that are found one by one.
const FOUND_AT_ONCE_MAX: u64 = 200;
/// Those of one step.
const FOUND_STEP_MAX: u64 = 80;
/// Bytes of a reply that end a step.
pub(super) const STEP_BYTES: usize = 64 * 1024;

/// Replies an id.
#[inline]
pub(super) fn write_id(reply: &mut Reply<'_>, id: StreamId) {
    let mut text = [0; 2 * U64_TEXT_MAX + 1];
    let seq = fill_back(&mut text, id.seq);
    text[seq - 1] = b'-';
    let start = fill_back(&mut text[..seq - 1], id.ms);
    reply.bulk(&text[start..]);
}

/// Replies an entry: its id, and its fields with their values.
#[inline]
pub(super) fn write_entry(reply: &mut Reply<'_>, entry: Entry<'_>) {
    let (mut name_text, mut value_text) = (IntText::default(), IntText::default());
    reply.array(2);
    write_id(reply, entry.id);
    reply.array(2 * entry.len());
    for (name, value) in entry.fields() {
        reply.bulk(name.bytes(&mut name_text));
        reply.bulk(value.bytes(&mut value_text));
    }
}

/// Entries of one stream: so many from a rank on, in one direction.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// The rank of the next one; of the one behind it, on the way down.
    pub rank: u64,
    pub left: u64,
    pub down: bool,
}

impl Run {
    /// The entries of a stream behind an id, at most so many.
    pub fn behind(stream: &Stream, id: StreamId, count: u64) -> Self {
        let rank = id.next().map_or(stream.len(), |next| stream.rank(next));
        Self { rank, left: (stream.len() - rank).min(count), down: false }
    }

    /// The last entry of a stream.
    pub fn of_last(stream: &Stream) -> Self {
        let left = stream.len().min(1);
        Self { rank: stream.len() - left, left, down: false }
    }

    /// Writes entries until a step is full.
    pub fn write(&mut self, reply: &mut Reply<'_>, stream: &Stream, max: u64) {
        let start = reply.position();
        let mut seen = 0;
        let mut one = |entry: Entry<'_>| {
            write_entry(reply, entry);
            seen += 1;
            seen >= max || reply.written_since(start) >= STEP_BYTES
        };
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        if self.down {
            let _ = stream.iter_back_from(self.rank).take(left).any(&mut one);
            self.rank -= seen;
        } else {
            let _ = stream.iter_from(self.rank).take(left).any(&mut one);
            self.rank += seen;
        }
        self.left -= seen;
    }
}

/// How an entry is shown that is named by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// With its fields; null for those of one that is gone.
    OrNull,
    /// With its fields; the id of one that is gone.
    Entry,
    /// Its id.
    Id,
}

/// Entries of one stream.
pub(super) enum Shown {
    Run(Run),
    /// So many behind an id.
    Behind(StreamId, u64),
    /// Those of some ids, from a place in the list on.
    Ids(Vec<StreamId>, usize, Named),
}

impl Shown {
    /// How many are left.
    fn left(&self) -> u64 {
        match self {
            Self::Run(run) => run.left,
            Self::Behind(_, left) => *left,
            Self::Ids(ids, at, _) => (ids.len() - at) as u64,
        }
    }

    /// Whether the reply is too long to be written under the lock.
    pub fn is_long(&self) -> bool {
        let is_found = matches!(self, Self::Ids(_, _, Named::OrNull | Named::Entry));
        self.left() > if is_found { FOUND_AT_ONCE_MAX } else { AT_ONCE_MAX }
    }

    /// Writes all of them.
    pub fn write_all(&mut self, reply: &mut Reply<'_>, stream: &Stream) {
        reply.array(usize::try_from(self.left()).expect("a length"));
        while self.left() > 0 {
            self.write(reply, stream);
        }
    }

    /// Writes until a step is full.
    fn write(&mut self, reply: &mut Reply<'_>, stream: &Stream) {
        match self {
            Self::Run(run) => run.write(reply, stream, STEP_MAX),
            Self::Behind(behind, left) => {
                let (start, mut seen) = (reply.position(), 0);
                let items = behind.next().map(|from| stream.iter_from_id(from));
                for entry in items.into_iter().flatten() {
                    if seen == STEP_MAX.min(*left) || reply.written_since(start) >= STEP_BYTES {
                        break;
                    }
                    write_entry(reply, entry);
                    (*behind, seen) = (entry.id, seen + 1);
                }
                *left -= seen;
            }
            Self::Ids(ids, at, named) => {
                let max = if *named == Named::Id { STEP_MAX } else { FOUND_STEP_MAX };
                let start = reply.position();
                let mut seen = 0;
                while let Some(id) = ids.get(*at)
                    && seen < max
                    && reply.written_since(start) < STEP_BYTES
                {
                    write_named(reply, stream, *id, *named);
                    (*at, seen) = (*at + 1, seen + 1);
                }
            }
        }
    }
}

fn write_named(reply: &mut Reply<'_>, stream: &Stream, id: StreamId, named: Named) {
    let entry = if named == Named::Id { None } else { stream.get(id) };
    match entry {
        Some(entry) => write_entry(reply, entry),
        None if named == Named::OrNull => {
            reply.array(2);
            write_id(reply, id);
            reply.null_array();
        }
        None => write_id(reply, id),
    }
}

/// One array of the reply.
pub(super) struct Part {
    /// The name of a stream, which is replied before its entries.
    pub key: Option<Box<[u8]>>,
    pub value: Captured,
    pub shown: Shown,
}

/// The arrays of a reply that are too long to be written under the locks: they are written in
/// steps.
#[derive(Default)]
pub(super) struct LongReply {
    parts: Vec<Part>,
    at: usize,
    has_begun: bool,
}

impl LongReply {
    pub fn add(&mut self, part: Part) {
        self.parts.push(part);
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// What the handler returns: its reply is complete, or these arrays follow in steps.
    pub fn into_done(self) -> Done {
        if self.is_empty() { Done::Replied } else { Done::Steps(Box::new(self)) }
    }
}

impl Resumable for LongReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let Some(part) = self.parts.get_mut(self.at) else { return Ok(Progress::Complete) };
        if !self.has_begun {
            begin_part(&mut ctx.reply, part.key.as_deref(), part.shown.left());
            self.has_begun = true;
        }
        part.shown.write(&mut ctx.reply, of_big(&part.value));
        if part.shown.left() == 0 {
            (self.at, self.has_begun) = (self.at + 1, false);
        }
        Ok(Progress::complete_if(self.at == self.parts.len()))
    }
}

fn begin_part(reply: &mut Reply<'_>, key: Option<&[u8]>, count: u64) {
    if let Some(key) = key {
        begin_stream(reply, key);
    }
    reply.array(usize::try_from(count).expect("a length"));
}

/// What stands before a stream's entries in the reply to XREAD.
pub(super) fn begin_stream(reply: &mut Reply<'_>, key: &[u8]) {
    if reply.proto() == Proto::Resp2 {
        reply.array(2);
    }
    reply.bulk(key);
}

/// Replies what is shown of the stream in argument `i`, behind its name: under the lock, unless it
/// is much or something before it is.
pub(super) fn show(ctx: &mut Ctx<'_, '_>, i: usize, mut shown: Shown, long: &mut LongReply) {
    let (key, keyspace) = (ctx.key(i), ctx.guard.keyspace());
    let Some(entry) = ctx.guard.peek(ctx.db, &key) else { return };
    if shown.is_long() || !long.is_empty() {
        let value = keyspace.capture(entry.big().expect("a stream stands outside its entry"));
        long.add(Part { key: Some(key.bytes.into()), value, shown });
    } else {
        begin_stream(&mut ctx.reply, key.bytes);
        shown.write_all(&mut ctx.reply, of_entry(entry));
    }
}

pub(super) fn begin_map(ctx: &mut Ctx<'_, '_>, streams: usize) {
    match ctx.proto() {
        Proto::Resp2 => ctx.reply.array(streams),
        Proto::Resp3 => ctx.reply.map(streams),
    }
}
