//! DIGEST, and the digests that IFDEQ and IFDNE compare.

use twox_hash::XxHash3_64;
use value::{IntText, Str};

use keyspace::Parked;

use super::options::Condition;
use super::text::{LONG_BYTES, lookup, text_of};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;

/// Characters of a digest.
const DIGEST_CHARS: usize = 16;

/// `DIGEST key`: 64 bits of XXH3, in lower-case hexadecimal.
pub fn digest(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let Some(text) = lookup(ctx.guard, ctx.tally, ctx.db, &key)? else {
        ctx.reply.null();
        return Ok(Done::Replied);
    };
    let digest = match text {
        Str::Blob(blob) if blob.len() >= LONG_BYTES => {
            let blob = blob.clone();
            if let Err(parked) = ctx.guard.try_mark_long() {
                return Ok(Done::Park(parked));
            }
            of_bytes(&blob.to_slice())
        }
        text => of_bytes(&text.bytes(&mut IntText::default())),
    };
    ctx.reply.bulk(&digest);
    Ok(Done::Replied)
}

/// Says that a condition takes the digest of a long string, in the key of the first argument.
pub(super) fn mark_if_long(ctx: &mut Ctx<'_, '_>, condition: Condition<'_>) -> Result<(), Parked> {
    let key = ctx.key(1);
    let (Condition::DigestEqual(digest) | Condition::DigestNotEqual(digest)) = condition else {
        return Ok(());
    };
    let text = ctx.guard.peek(ctx.db, &key).and_then(|entry| text_of(&entry).ok());
    let is_long = matches!(text, Some(Str::Blob(blob)) if blob.len() >= LONG_BYTES);
    if is_long && digest.len() == DIGEST_CHARS { ctx.guard.try_mark_long() } else { Ok(()) }
}

/// True if a stored string has this digest, which is checked only now: a condition on a key that is
/// not there does not depend on it.
pub(super) fn has_digest(stored: Str<'_>, digest: &[u8]) -> Result<bool, Error> {
    if digest.len() != DIGEST_CHARS {
        return Err(Error::DigestWanted);
    }
    Ok(digest.eq_ignore_ascii_case(&of_bytes(&stored.bytes(&mut IntText::default()))))
}

fn of_bytes(bytes: &[u8]) -> [u8; DIGEST_CHARS] {
    let hash = XxHash3_64::oneshot(bytes);
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
            assert_eq!(of_bytes(&vec![b'q'; len]), digest.as_bytes(), "of {len} bytes");
        }
        assert_eq!(&of_bytes(b"12345"), b"f34099ede96b5581");
    }
}
