//! Sizes of requests and replies, as the logs of large commands count them.

use resp::{Args, OutBuf, OutPos};

/// Replies below this many bytes never take the short path while every one of them may be large
/// enough for the log; so the short path looks no further.
pub const LARGE_REPLY_MIN: usize = 64 << 10;

/// The size of a command on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the reply so far.
    pub reply: u64,
}

/// True if a reply on the short path may belong into the log of large ones.
#[inline(always)]
pub fn is_large(from: OutPos, out: &OutBuf) -> bool {
    out.bytes.len() - from.bytes >= LARGE_REPLY_MIN || out.blobs.len() != from.blobs
}

/// Bytes of a request as the protocol frames it.
pub fn protocol_len(args: Args<'_>) -> u64 {
    let head = |n: usize| 4 + u64::from(n.max(1).ilog10());
    head(args.len()) + args.lens().map(|len| head(len) + len as u64 + 2).sum::<u64>()
}
