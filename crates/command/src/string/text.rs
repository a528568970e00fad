//! A string as its commands look it up, take it from their arguments, store it and reply it.

use base::{Blob, DbIndex};
use keyspace::{Entry, Event, Guard, INLINE_MAX, Key};
use resp::{Args, Reply};
use value::string::encode;
use value::{IntText, NewStr, Str};

use crate::ctx::Settings;
use crate::error::Error;
use crate::tally::Tally;

/// The string that a key holds.
#[inline(always)]
pub(crate) fn text_of<'a>(entry: &Entry<'a>) -> Result<Str<'a>, Error> {
    if entry.is_string() { Ok(entry.str()) } else { Err(Error::WrongType) }
}

/// Looks up for reading what a key holds, and counts that.
#[inline(always)]
pub(crate) fn lookup<'b>(
    guard: &'b mut Guard<'_>,
    tally: &mut Tally,
    db: DbIndex,
    key: &Key<'_>,
) -> Result<Option<Str<'b>>, Error> {
    let entry = guard.look_up(db, key);
    tally.count(entry.is_some());
    match entry {
        Some(entry) => Ok(Some(text_of(&entry)?)),
        None => Ok(None),
    }
}

/// Replies a string, a big one by reference.
#[inline(always)]
pub(super) fn write(reply: &mut Reply<'_>, text: Str<'_>) {
    match text {
        Str::Bytes(bytes) => reply.bulk(bytes),
        Str::Int(number) => reply.bulk_int(number),
        Str::Blob(blob) => reply.bulk_blob(blob),
    }
}

/// Replies a string, or that there is none.
#[inline(always)]
pub(super) fn write_or_null(reply: &mut Reply<'_>, text: Option<Str<'_>>) {
    match text {
        Some(text) => write(reply, text),
        None => reply.null(),
    }
}

/// An argument as text. One in pages is used as it is: its bytes as one slice would be a copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgText<'a> {
    Short(&'a [u8]),
    /// In pages: longer than [`base::blob::BLOCK_MAX`].
    Long(&'a Blob),
}

impl<'a> ArgText<'a> {
    /// Argument `i`.
    #[inline]
    pub fn of(args: &Args<'a>, i: usize) -> Self {
        match args.blob(i) {
            Some(blob) if blob.is_paged() => Self::Long(blob),
            _ => Self::Short(args.get(i)),
        }
    }

    /// All of them in order.
    pub fn all(args: Args<'a>) -> impl Iterator<Item = Self> {
        (0..args.len()).map(move |i| Self::of(&args, i))
    }

    /// The first bytes: all of a short text. So a word, a number or a digest is read without a
    /// copy; no long text is one of these, nor is its beginning.
    #[inline]
    pub fn start(self) -> &'a [u8] {
        match self {
            Self::Short(bytes) => bytes,
            Self::Long(blob) => blob.pages().next().unwrap_or_default(),
        }
    }
}

/// Argument `i` as a string to store; one that came in a buffer of its own is stored by reference.
#[inline(always)]
pub(super) fn new_text<'a>(args: &Args<'a>, i: usize) -> NewStr<'a> {
    match args.blob(i) {
        None => encode(args.get(i)),
        Some(blob) => adopt(blob),
    }
}

#[cold]
fn adopt(blob: &Blob) -> NewStr<'_> {
    match blob.contiguous() {
        Some(bytes) if bytes.len() <= INLINE_MAX => encode(bytes),
        _ => NewStr::Blob(blob.clone()),
    }
}

/// Stores a text that is `raw` however short it is, under a key that was not there or is replaced
/// with its expiry.
pub(crate) fn insert_raw(
    event: Event,
    guard: &mut Guard<'_>,
    db: DbIndex,
    key: &Key<'_>,
    text: Vec<u8>,
) {
    if text.len() > INLINE_MAX {
        guard.insert(event, db, key, NewStr::Blob(Blob::new(text)), None);
    } else {
        guard.insert(event, db, key, NewStr::Raw(&text), None);
    }
}

/// As [`insert_raw`], a text that is in pages if it is big.
pub(crate) fn insert_blob(
    event: Event,
    guard: &mut Guard<'_>,
    db: DbIndex,
    key: &Key<'_>,
    text: Blob,
) {
    match text.contiguous() {
        Some(short) if short.len() <= INLINE_MAX => {
            guard.insert(event, db, key, NewStr::Raw(short), None);
        }
        _ => guard.insert(event, db, key, NewStr::Blob(text), None),
    }
}

/// As [`insert_raw`], zeros and `bytes` behind them from `at` on.
pub(crate) fn insert_at(
    event: Event,
    guard: &mut Guard<'_>,
    db: DbIndex,
    key: &Key<'_>,
    at: usize,
    bytes: &[u8],
) {
    let mut text = Blob::default();
    text.write_at(at, bytes);
    insert_blob(event, guard, db, key, text);
}

/// The offset, if a text with `count` bytes at it is not too long.
pub(super) fn allowed(settings: &Settings, offset: u64, count: usize) -> Result<usize, Error> {
    let end = offset.saturating_add(count as u64);
    if end > settings.bulk_len_max {
        return Err(Error::StringTooLong);
    }
    usize::try_from(offset).map_err(|_| Error::StringTooLong)
}

/// True if a stored string is this text.
pub(super) fn equals(stored: Str<'_>, text: ArgText<'_>) -> bool {
    match (stored, text) {
        (Str::Blob(blob), ArgText::Short(text)) => *blob == *text,
        (Str::Blob(blob), ArgText::Long(text)) => blob == text,
        (short, ArgText::Short(text)) => *short.bytes(&mut IntText::default()) == *text,
        (_, ArgText::Long(_)) => false,
    }
}
