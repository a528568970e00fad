//! Rules on time in which neither side works.

use super::super::little::{self, Balance, littles_law};
use super::evidence::{Stall, Wakeups};
use super::proof::{Figures, Proof};
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
/// A side that works more than this share of the time is not waiting.
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
    let quick = seen.quick_ack_throughput;
    Some(
        Figures::of("nagle_stall")
            .with("pipeline", seen.pipeline)
            .with("stalled", figure::percent(stalled))
            .with("from", figure::time(STALL_US.0))
            .with("to", figure::time(STALL_US.1))
            .with("below", figure::percent(below))
            .with("law", little::sentence(seen.in_flight, seen.throughput, mean_s))
            .maybe("quick", quick.map(figure::count))
            .with("slow", figure::count(seen.throughput))
            .maybe("gain", gain.map(|gain| format!("{gain:.1}")))
            .with("client", figure::percent(seen.client_busy))
            .maybe("server", seen.server_busy.map(figure::percent))
            .when("untried", gain.is_none())
            .proof(),
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
    let server = seen.server_cpu_us.map(|us| format!(", the server {}", figure::time(us)));
    let gain = |awake: f64| format!("{:.1}", seen.latency_us / awake);
    Some(
        Figures::of("wakeup_bound")
            .with("latency", figure::time(seen.latency_us))
            .with("client", figure::time(seen.client_cpu_us))
            .with("server", server.unwrap_or_default())
            .with("idle", format!("{:.1}", seen.idle_cpus))
            .maybe("wake", seen.wake_us.map(figure::time))
            .maybe("who", seen.awake.map(|(who, _)| who))
            .maybe("awake", seen.awake.map(|(_, us)| figure::time(us)))
            .maybe("gain", seen.awake.map(|(_, us)| gain(us)))
            .when("untried", seen.awake.is_none())
            .proof(),
    )
}
