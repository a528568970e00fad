//! Rules on how often the server polls and sends.

use super::evidence::{Polls, Reading, Sends, Stranding};
use super::proof::{Figures, Proof};
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
        Figures::of("eager_reads")
            .with("messages", figure::count(1.0 / seen.reads))
            .with("bytes", figure::count(bytes))
            .with("write", seen.per_write)
            .with("reads", format!("{:.2}", seen.reads * seen.per_write as f64))
            .with("rate", figure::count(seen.throughput))
            .with("share", figure::percent(share))
            .with("discarded", figure::count(seen.discarded))
            .proof(),
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
    Some(
        Figures::of("flush_per_reply")
            .with("replies", figure::count(seen.replies as f64))
            .with("bytes", figure::count(seen.reply_bytes))
            .with("count", figure::count(count as f64))
            .with("what", what)
            .with("each", format!("{per_reply:.2}"))
            .with("pipeline", seen.pipeline)
            .with("enough", format!("{:.2}", 1.0 / seen.pipeline as f64))
            .when("inferred", seen.sends.is_none())
            .proof(),
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
        Figures::of("poll_per_request")
            .with("polls", figure::count(seen.polls as f64))
            .with("requests", figure::count(seen.requests as f64))
            .with("each", format!("{per_request:.2}"))
            .with("events", format!("{per_poll:.2}"))
            .with("source", &seen.source)
            .with("in_flight", figure::count(seen.in_flight))
            .when("traced", seen.source == "strace")
            .proof()
    })
}

/// Replies that are ready stay in the server until more requests come.
pub fn stranded_reply(seen: &Stranding) -> Option<Proof> {
    let stranded = seen.received < seen.asked && seen.received_after_nudge > seen.received;
    let never = seen.asked.saturating_sub(seen.received_after_nudge);
    stranded.then(|| {
        Figures::of("stranded_reply")
            .with("asked", seen.asked)
            .with("received", seen.received)
            .with("waited", seen.waited_s)
            .with("more", seen.received_after_nudge - seen.received)
            .maybe("never", (never > 0).then_some(never))
            .proof()
    })
}
