//! DIGEST, and the digests that IFDEQ and IFDNE compare. Those of long strings are computed in
//! steps: of DIGEST for the reply, of the others ahead of the command (`judging.rs`).

use std::hash::Hasher;

use base::Blob;
use keyspace::Keyspace;
use twox_hash::xxhash3_64::{RawHasher, SecretBuffer};
use value::{IntText, Str};

use super::captured::{CapturedText, LONG_BYTES, STEP_BYTES};
use super::text::lookup;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;

/// Characters of a digest.
pub(super) const DIGEST_CHARS: usize = 16;
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
pub(super) struct Digesting {
    text: CapturedText,
    /// The next byte.
    at: usize,
    hasher: RawHasher<&'static [u8; SECRET_BYTES]>,
}

impl Digesting {
    pub fn new(keyspace: &Keyspace, blob: &Blob) -> Self {
        let text = CapturedText::new(keyspace, blob.clone());
        Self { text, at: 0, hasher: hasher() }
    }

    /// Takes in the next [`STEP_BYTES`]; the digest when that was the last of them.
    pub fn step(&mut self) -> Option<[u8; DIGEST_CHARS]> {
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
