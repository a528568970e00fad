//! DIGEST, and the digests that IFDEQ and IFDNE compare. Those of long strings are computed in
//! steps: of DIGEST for the reply, of the others ahead of the command.

use std::hash::Hasher;

use base::Blob;
use keyspace::Keyspace;
use twox_hash::xxhash3_64::{RawHasher, SecretBuffer};
use value::{IntText, Str};

use super::captured::{CapturedText, LONG_BYTES, STEP_BYTES};
use super::options::Condition;
use super::text::{lookup, text_of};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::prepare::{self, Found, Preparation, Sources};

/// Characters of a digest.
const DIGEST_CHARS: usize = 16;
/// Bytes of the secret that XXH3 uses without a seed.
const SECRET_BYTES: usize = 192;

/// `DIGEST key`: 64 bits of XXH3, in lower-case hexadecimal.
pub fn digest(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    let Some(text) = lookup(ctx.guard, ctx.tally, ctx.db, &key)? else {
        ctx.reply.null();
        return Ok(Done::Replied);
    };
    match text {
        Str::Blob(blob) if blob.len() >= LONG_BYTES => {
            return Ok(Done::Steps(Box::new(DigestReply(Digesting::new(keyspace, blob)))));
        }
        text => ctx.reply.bulk(&of_text(text)),
    }
    Ok(Done::Replied)
}

/// The digest of a captured string under way.
struct Digesting {
    text: CapturedText,
    /// The next byte.
    at: usize,
    hasher: RawHasher<&'static [u8; SECRET_BYTES]>,
}

impl Digesting {
    fn new(keyspace: &Keyspace, blob: &Blob) -> Self {
        let text = CapturedText::new(keyspace, blob.clone());
        Self { text, at: 0, hasher: hasher() }
    }

    /// Takes in the next [`STEP_BYTES`]; the digest when that was the last of them.
    fn step(&mut self) -> Option<[u8; DIGEST_CHARS]> {
        let end = self.text.len().min(self.at + STEP_BYTES);
        add(&mut self.hasher, &self.text, self.at..end);
        self.at = end;
        (end == self.text.len()).then(|| hex(self.hasher.finish()))
    }
}

/// The reply of DIGEST.
struct DigestReply(Digesting);

impl Resumable for DigestReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let digest = self.0.step();
        if let Some(digest) = digest {
            ctx.reply.bulk(&digest);
        }
        Ok(Progress::complete_if(digest.is_some()))
    }
}

/// What is known of a condition before a command looks at its key.
pub(super) enum Ahead {
    /// Nothing: it is judged at once.
    Unknown,
    /// Whether it holds for what the key holds.
    Holds(bool),
    /// The command has ended, or runs again later.
    Done(Done),
}

/// Judges a condition on the key in the first argument of `command` ahead of it, if that takes the
/// digest of a long string.
pub(super) fn judge(
    ctx: &mut Ctx<'_, '_>,
    condition: Condition<'_>,
    command: Command,
) -> Result<Ahead, Error> {
    let (digest, if_equal) = match condition {
        Condition::DigestEqual(digest) => (digest, true),
        Condition::DigestNotEqual(digest) => (digest, false),
        _ => return Ok(Ahead::Unknown),
    };
    let Ok(wanted) = <[u8; DIGEST_CHARS]>::try_from(digest) else { return Ok(Ahead::Unknown) };
    let tries = match prepare::found::<Judging>(ctx) {
        Found::Ready(ahead) => return Ok(Ahead::Holds(ahead.holds)),
        Found::Begin(tries) => tries,
    };
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    let text = ctx.guard.peek(ctx.db, &key).and_then(|entry| text_of(&entry).ok());
    let Some(Str::Blob(blob)) = text.filter(|text| text.len() >= LONG_BYTES) else {
        return Ok(Ahead::Unknown);
    };
    let digesting = Digesting::new(keyspace, blob);
    let sources = Sources::of(ctx, 1..2, tries);
    let work = Judging { sources, digesting, wanted, if_equal, holds: false, command };
    prepare::begin(ctx, work).map(Ahead::Done)
}

/// The handler of a command.
pub(super) type Command = fn(&mut Ctx<'_, '_>) -> Result<Done, Error>;

/// A condition on the digest of a long string, judged ahead.
struct Judging {
    sources: Sources,
    digesting: Digesting,
    wanted: [u8; DIGEST_CHARS],
    /// The condition is that the digest is the wanted one; otherwise that it is another.
    if_equal: bool,
    holds: bool,
    command: Command,
}

impl Resumable for Judging {
    fn step(&mut self, _ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let digest = self.digesting.step();
        if let Some(digest) = digest {
            self.holds = self.wanted.eq_ignore_ascii_case(&digest) == self.if_equal;
        }
        Ok(Progress::complete_if(digest.is_some()))
    }
}

impl Preparation for Judging {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let command = self.command;
        ctx.set_prepared(Box::new(self));
        command(ctx)
    }
}

/// True if a stored string has this digest, which is checked only now: a condition on a key that is
/// not there does not depend on it.
pub(super) fn has_digest(stored: Str<'_>, digest: &[u8]) -> Result<bool, Error> {
    if digest.len() != DIGEST_CHARS {
        return Err(Error::DigestWanted);
    }
    Ok(digest.eq_ignore_ascii_case(&of_text(stored)))
}

fn of_text(text: Str<'_>) -> [u8; DIGEST_CHARS] {
    let mut hasher = hasher();
    match text {
        Str::Blob(blob) => add(&mut hasher, blob, 0..blob.len()),
        short => hasher.write(&short.bytes(&mut IntText::default())),
    }
    hex(hasher.finish())
}

fn hasher() -> RawHasher<&'static [u8; SECRET_BYTES]> {
    RawHasher::new(SecretBuffer::<&'static [u8; SECRET_BYTES]>::default())
}

fn add(hasher: &mut impl Hasher, blob: &Blob, range: std::ops::Range<usize>) {
    blob.pages_in(range).for_each(|run| hasher.write(run));
}

fn hex(hash: u64) -> [u8; DIGEST_CHARS] {
    std::array::from_fn(|i| b"0123456789abcdef"[(hash >> (60 - 4 * i)) as usize & 15])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replies of Redis 8.6 for strings of this many letters `q`: every code path of XXH3.
    #[test]
    fn digests_match_redis() {
        for (len, digest) in [
            (0, "2d06800538d394c2"),
            (3, "0989a84b64e60726"),
            (8, "58f36208a142d878"),
            (9, "aef56142f501a410"),
            (16, "e5ebbd2329eac6b2"),
            (17, "c0f4fd137bcb41cd"),
            (128, "8d3ef19b7a0aea21"),
            (129, "348020316d0e37b5"),
            (240, "778be05a7922288a"),
            (241, "f476ea4d5d0cc656"),
            (1024, "da88fb6823527caf"),
            (5000, "ffe8746a7854cd67"),
        ] {
            assert_eq!(of_text(Str::Bytes(&vec![b'q'; len])), digest.as_bytes(), "of {len} bytes");
        }
        assert_eq!(&of_text(Str::Bytes(b"12345")), b"f34099ede96b5581");
    }
}
