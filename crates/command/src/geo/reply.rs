//! Replies of searches.

use resp::Reply;
use value::geo::{Place, hash_of_score};

use super::query::Query;
use super::text::{write_distance, write_place};

/// Bytes of a reply after which a step ends.
pub(super) const STEP_BYTES: usize = 64 * 1024;

/// Replies a place as the request asks for it.
pub(super) fn write_hit(
    query: &Query,
    member: &[u8],
    score: f64,
    distance: f64,
    reply: &mut Reply<'_>,
) {
    let Query { with_distance, with_hash, with_place, metres, .. } = *query;
    let parts = [with_distance, with_hash, with_place];
    let parts = parts.into_iter().filter(|part| *part).count();
    if parts > 0 {
        reply.array(1 + parts);
    }
    reply.bulk(member);
    if with_distance {
        write_distance(reply, distance / metres);
    }
    if with_hash {
        reply.integer(hash_of_score(score) as i64);
    }
    if with_place {
        write_place(reply, Place::of_score(score));
    }
}
