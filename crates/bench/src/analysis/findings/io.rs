//! Rules on how often the server polls and sends.

use super::evidence::{Polls, Reading, Sends, Stranding};
use super::proof::Proof;
use crate::analysis::figure;

/// Below this depth there is little to share.
pub const PIPELINE_MIN: usize = 8;
/// Half: fewer than two replies share a send although eight or more could.
pub const SENDS_PER_REPLY: f64 = 0.5;
/// Larger replies fill segments of 1,448 bytes by themselves.
pub const REPLY_BYTES_MAX: f64 = 512.0;

/// Connections in flight from which on a poll should bring several events.
pub const IN_FLIGHT_MIN: f64 = 8.0;
/// One event per poll, and a fifth for chance.
pub const EVENTS_PER_POLL: f64 = 1.2;
/// A poll for nearly every request; pipelined requests share one even at one event.
pub const POLLS_PER_REQUEST: f64 = 0.8;

/// A larger write is worth a read of its own.
pub const WRITE_BYTES_MAX: usize = 4 << 10;
/// A quarter of what is usually received at once: the cost of a receive and an answer is then a
/// tenth of it.
pub const READ_BYTES_MAX: f64 = 16_384.0;
/// So much of what the client can send is not lost to parsing: something keeps the client itself
/// busy.
pub const DISCARDED_SHARE: f64 = 0.85;

/// Small writes are read almost one by one, and that slows their sender down.
pub fn eager_reads(seen: &Reading) -> Option<Proof> {
    let write = seen.per_write * seen.message_bytes;
    let bytes = seen.message_bytes as f64 / seen.reads;
    let share = seen.throughput / seen.discarded;
    let judged = write <= WRITE_BYTES_MAX && seen.reads > 0.0 && seen.discarded > 0.0;
    if !judged || bytes > READ_BYTES_MAX || share > DISCARDED_SHARE {
        return None;
    }
    Some(
        Proof::of(format!(
            "Each read brought {} messages ({} bytes); a write has {}: {:.2} reads per write.",
            figure::count(1.0 / seen.reads),
            figure::count(bytes),
            seen.per_write,
            seen.reads * seen.per_write as f64,
        ))
        .and(format!(
            "The client waited for nothing and sent {} messages/s, {} of the {} that it sends to a reader without answers.",
            figure::count(seen.throughput),
            figure::percent(share),
            figure::count(seen.discarded),
        )),
    )
}

/// Replies of one batch leave one by one.
pub fn flush_per_reply(seen: &Sends) -> Option<Proof> {
    let (count, what) = match (seen.sends, seen.segments) {
        (Some(sends), _) => (sends, "sends"),
        (None, Some(segments)) => (segments, "segments on the wire"),
        (None, None) => return None,
    };
    let per_reply = count as f64 / seen.replies.max(1) as f64;
    let judged = seen.pipeline >= PIPELINE_MIN && seen.reply_bytes <= REPLY_BYTES_MAX;
    if !judged || seen.replies == 0 || per_reply < SENDS_PER_REPLY {
        return None;
    }
    let inferred = seen.sends.is_none().then(|| {
        "Sends were not counted in the server: segments can be fewer than sends, never more \
         than a few per reply of this size."
            .to_owned()
    });
    Some(
        Proof::of(format!(
            "{} replies of {} bytes came in {} {what}: {per_reply:.2} per reply.",
            figure::count(seen.replies as f64),
            figure::count(seen.reply_bytes),
            figure::count(count as f64),
        ))
        .and(format!(
            "{} requests were sent at once, so {:.2} per reply would do.",
            seen.pipeline,
            1.0 / seen.pipeline as f64
        ))
        .caveat(inferred),
    )
}

/// Nearly every request costs a poll that brings nothing else.
pub fn poll_per_request(seen: &Polls) -> Option<Proof> {
    let per_poll = seen.events as f64 / seen.polls.max(1) as f64;
    let per_request = seen.polls as f64 / seen.requests.max(1) as f64;
    let fired = seen.in_flight >= IN_FLIGHT_MIN
        && seen.requests > 0
        && seen.events > 0
        && per_poll <= EVENTS_PER_POLL
        && per_request >= POLLS_PER_REQUEST;
    fired.then(|| {
        Proof::of(format!(
            "{} polls for {} requests ({per_request:.2} each), {per_poll:.2} events per poll ({}).",
            figure::count(seen.polls as f64),
            figure::count(seen.requests as f64),
            seen.source,
        ))
        .and(format!(
            "{} connections had a request in flight: one poll could have brought several.",
            figure::count(seen.in_flight)
        ))
        .caveat((seen.source == "strace").then(|| {
            "Tracing slows the server, which lets events gather: without it there are more polls."
                .to_owned()
        }))
    })
}

/// Replies that are ready stay in the server until more requests come.
pub fn stranded_reply(seen: &Stranding) -> Option<Proof> {
    let stranded = seen.received < seen.asked && seen.received_after_nudge > seen.received;
    stranded.then(|| {
        Proof::of(format!(
            "Of {} replies {} came within {} s; one more request brought {} of the others.",
            seen.asked,
            seen.received,
            seen.waited_s,
            seen.received_after_nudge - seen.received
        ))
        .caveat(
            (seen.received_after_nudge < seen.asked)
                .then(|| format!("{} replies never came.", seen.asked - seen.received_after_nudge)),
        )
    })
}
