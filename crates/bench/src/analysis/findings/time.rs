//! Rules on time that nobody works.

use super::super::figure;
use super::super::little::{self, Balance, littles_law};
use super::{Proof, Stall, Wakeups};
use crate::result::Latency;

/// A delayed acknowledgement waits 40 ms on Linux at least, up to 200 ms there and 500 ms by RFC 1122
/// (4.2.3.2): stalled requests lie in this window, in microseconds.
pub const STALL_US: (f64, f64) = (35_000.0, 260_000.0);
/// Requests in the window, as a share of all: a batch in a hundred is enough to cost most of the throughput.
pub const STALLED_SHARE: f64 = 0.01;
/// A stall is a mode of its own, not a tail: the seven-fold range below the window (5 to 35 ms) holds at most
/// this share of what the window holds.
pub const GAP_SHARE: f64 = 0.2;
/// Throughput with acknowledgements sent at once over that without: what the stall costs.
pub const QUICK_ACK_GAIN: f64 = 1.3;
/// Whoever works more than this share of the time is not waiting.
pub const WAITING_BUSY_MAX: f64 = 0.7;

/// Share of the latency that nobody works, from which on sleep is the cause.
pub const ASLEEP_SHARE: f64 = 0.4;
/// A round trip wakes the server, then the client.
pub const WAKES_PER_REQUEST: f64 = 2.0;
/// The wake-ups must explain at least this share of the time asleep.
pub const EXPLAINED_SHARE: f64 = 0.5;
/// Latency over latency without sleep: less is not worth a name.
pub const SPIN_GAIN: f64 = 1.3;

/// Batches wait for a delayed acknowledgement that Nagle's algorithm asks for (RFC 896, RFC 1122).
pub fn nagle_stall(seen: &Stall) -> Option<Proof> {
    let stalled = share(&seen.latency, STALL_US.0, STALL_US.1);
    let below = share(&seen.latency, STALL_US.0 / 7.0, STALL_US.0);
    let is_mode = stalled >= STALLED_SHARE && below <= GAP_SHARE * stalled;
    let ratio = littles_law(seen.in_flight, seen.throughput, seen.latency.mean_us / 1e6);
    let hidden = little::balance(ratio) == Balance::HiddenTime;
    let gain = seen.quick_ack_throughput.map(|quick| quick / seen.throughput);
    let waiting = seen.client_busy <= WAITING_BUSY_MAX
        && seen.server_busy.is_some_and(|busy| busy <= WAITING_BUSY_MAX);
    let fired = match gain {
        Some(gain) => (is_mode || hidden) && gain >= QUICK_ACK_GAIN,
        None => is_mode && waiting,
    };
    if !fired {
        return None;
    }
    let mean_s = seen.latency.mean_us / 1e6;
    let idle = seen.server_busy.map(|server| {
        let (client, server) = (figure::percent(seen.client_busy), figure::percent(server));
        format!("Nobody worked hard meanwhile: client {client}, server {server} of a CPU.")
    });
    Some(
        Proof::of(format!(
            "In batches of {}, {} of the requests took {} to {}; the range just below held {}.",
            seen.pipeline,
            figure::percent(stalled),
            figure::time(STALL_US.0),
            figure::time(STALL_US.1),
            figure::percent(below),
        ))
        .and(format!("{}.", little::sentence(seen.in_flight, seen.throughput, mean_s)))
        .and(gain.map(|gain| {
            let (quick, slow) = (seen.quick_ack_throughput, seen.throughput);
            let quick = figure::count(quick.unwrap_or(slow));
            let slow = figure::count(slow);
            format!("With TCP_QUICKACK in the client {quick}/s came instead of {slow}/s: {gain:.1} times.")
        }))
        .and(idle)
        .caveat(gain.is_none().then(|| {
            "The same load with TCP_QUICKACK was not measured: a timer of 40 ms in the server \
             would look the same."
                .to_owned()
        })),
    )
}

/// Share of requests whose latency lies above `low` and at or below `high`, both in microseconds.
fn share(latency: &Latency, low: f64, high: f64) -> f64 {
    let up_to = |limit: f64| {
        let steps = latency.cumulative.iter();
        steps.filter(|(bound, _)| *bound <= limit).map(|(_, share)| *share).fold(0.0, f64::max)
    };
    up_to(high) - up_to(low)
}

/// Wake-ups of sleeping cores, not work, make the latency.
pub fn wakeup_bound(seen: &Wakeups) -> Option<Proof> {
    let worked = seen.client_cpu_us + seen.server_cpu_us.unwrap_or(0.0);
    let asleep = (seen.latency_us - worked).max(0.0);
    let gain = seen.spinning_latency_us.map(|spinning| seen.latency_us / spinning);
    let explained = seen.wake_us.map(|wake| WAKES_PER_REQUEST * wake / asleep);
    let mostly_asleep = asleep / seen.latency_us >= ASLEEP_SHARE;
    let fired = match (gain, explained) {
        (Some(gain), _) => mostly_asleep && gain >= SPIN_GAIN,
        (None, Some(explained)) => {
            mostly_asleep && seen.server_cpu_us.is_some() && explained >= EXPLAINED_SHARE
        }
        (None, None) => false,
    };
    fired.then(|| {
        let server = match seen.server_cpu_us {
            Some(us) => format!(", the server {}", figure::time(us)),
            None => String::new(),
        };
        Proof::of(format!(
            "Of a round trip of {} the client worked {}{server}: {} nobody worked.",
            figure::time(seen.latency_us),
            figure::time(seen.client_cpu_us),
            figure::percent(asleep / seen.latency_us),
        ))
        .and(seen.wake_us.map(|wake| {
            format!("One wake-up costs {} on this machine now; a round trip has two.", figure::time(wake))
        }))
        .and(seen.spinning_latency_us.zip(gain).map(|(us, gain)| {
            format!("Without sleep it took {}: {gain:.1} times faster.", figure::time(us))
        }))
        .caveat(gain.is_none().then(|| {
            "Latency without sleep was not measured; on a busy machine waiting for a core looks the same."
                .to_owned()
        }))
        .caveat(seen.server_cpu_us.is_none().then(|| {
            "The server's CPU could not be read: part of the time may be its work.".to_owned()
        }))
    })
}
