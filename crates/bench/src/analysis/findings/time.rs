//! Rules on time that nobody works.

use super::super::little::{self, Balance, littles_law};
use super::evidence::{Stall, Wakeups};
use super::proof::Proof;
use crate::analysis::figure;
use crate::result::Latency;

/// A delayed acknowledgement waits 40 ms on Linux at least, up to 200 ms there and 500 ms by RFC
/// 1122 (4.2.3.2): stalled requests lie in this window, in microseconds.
pub const STALL_US: (f64, f64) = (35_000.0, 260_000.0);
/// Requests in the window, as a share of all: a batch in a hundred is enough to cost most of the
/// throughput.
pub const STALLED_SHARE: f64 = 0.01;
/// A stall is a mode of its own, not a tail: the seven-fold range below the window (5 to 35 ms)
/// holds at most this share of what the window holds.
pub const GAP_SHARE: f64 = 0.2;
/// Throughput with acknowledgements sent at once over that without: what the stall costs.
pub const QUICK_ACK_GAIN: f64 = 1.3;
/// Whoever works more than this share of the time is not waiting.
pub const WAITING_BUSY_MAX: f64 = 0.7;

/// A round trip wakes the server, then the client.
pub const WAKES_PER_REQUEST: f64 = 2.0;
/// Two wake-ups must make at least this share of a latency that was not compared with one without
/// sleep; and what staying awake saves must be at least this share of one wake-up: less is noise.
pub const EXPLAINED_SHARE: f64 = 0.5;
/// Somebody sleeps only where a core is idle: as a rule more than one of two, in a round trip that
/// one side at a time works for; with other programs on all cores none, and then nothing need be
/// woken.
pub const IDLE_CPUS_MIN: f64 = 0.25;
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

/// Wake-ups of sleeping cores, not work, make the latency. CPU time does not tell the two apart: on
/// a virtual machine going to sleep and waking another core are exits, which count as work of
/// whoever makes them. So the latency is compared with that of somebody who stays awake.
pub fn wakeup_bound(seen: &Wakeups) -> Option<Proof> {
    let wakes = seen.wake_us.map(|wake| WAKES_PER_REQUEST * wake);
    let fired = match (seen.awake, wakes) {
        (Some((_, awake)), _) => {
            let saved = seen.latency_us - awake;
            seen.latency_us >= SPIN_GAIN * awake
                && seen.wake_us.is_none_or(|wake| saved >= EXPLAINED_SHARE * wake)
        }
        // A round trip that is shorter than two wake-ups has not had them.
        (None, Some(wakes)) => {
            seen.server_cpu_us.is_some()
                && (EXPLAINED_SHARE..=1.0).contains(&(wakes / seen.latency_us))
        }
        (None, None) => false,
    };
    if !fired || seen.idle_cpus < IDLE_CPUS_MIN {
        return None;
    }
    let server = match seen.server_cpu_us {
        Some(us) => format!(", the server {}", figure::time(us)),
        None => String::new(),
    };
    Some(
        Proof::of(format!(
            "A round trip took {}. The client used {} of CPU{server}, what sleeping and waking cost included; {:.1} \
             CPUs were idle.",
            figure::time(seen.latency_us),
            figure::time(seen.client_cpu_us),
            seen.idle_cpus,
        ))
        .and(seen.wake_us.map(|wake| {
            format!("One wake-up costs {} on this machine now; a round trip has two.", figure::time(wake))
        }))
        .and(seen.awake.map(|(who, awake)| {
            let gain = seen.latency_us / awake;
            format!("With \"{who}\" it took {}: {gain:.1} times faster.", figure::time(awake))
        }))
        .caveat(seen.awake.is_none().then(|| {
            "Latency without sleep was not measured; on a busy machine waiting for a core looks the same."
                .to_owned()
        })),
    )
}
