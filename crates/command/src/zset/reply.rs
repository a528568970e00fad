//! What the commands on sorted sets reply: members, scores, errors.

use resp::{Proto, Reply};
use value::packed::Elem;

/// Replies a member.
#[inline]
pub(crate) fn write_member(reply: &mut Reply<'_>, member: Elem<'_>) {
    match member {
        Elem::Int(number) => reply.bulk_int(number),
        Elem::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// Replies the header of `len` members, with or without their scores.
pub(super) fn write_header(reply: &mut Reply<'_>, len: u64, scores: bool) {
    let flat = scores && reply.proto() == Proto::Resp2;
    reply.array(len as usize * if flat { 2 } else { 1 });
}

/// Replies a member, with or without its score: a pair in RESP3, one after the other in RESP2.
#[inline]
pub(super) fn write_scored(reply: &mut Reply<'_>, member: Elem<'_>, score: f64, scores: bool) {
    if scores && reply.proto() == Proto::Resp3 {
        reply.array(2);
    }
    write_member(reply, member);
    if scores {
        reply.double(score);
    }
}

/// Replies a score, or that there is none.
pub(super) fn write_score(reply: &mut Reply<'_>, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}
