//! Rules on throughput against load, and on the load itself.

use super::super::retrograde::{Level, fall};
use super::super::spread::median;
use super::super::usl;
use super::evidence::{BUSY, Client, Queue, Trust, Writer};
use super::proof::{Figures, Proof};
use crate::analysis::figure;
use crate::host::OTHER_CPUS_MAX;

/// From this load on a server with several threads should gain by more.
pub const FLAT_FROM: f64 = 4.0;
/// The load must grow at least so many times for flatness to mean anything.
pub const FLAT_SPAN: f64 = 4.0;
/// Growth below this is flat: noise between levels reaches a few per cent, a second core brings far
/// more.
pub const FLAT_GROWTH_MAX: f64 = 1.20;
/// PING needs no data. A server that runs commands where it reads them answers PING and GET about
/// as fast when each request is a round trip; a hop to another thread costs far more than a lookup.
pub const PING_RATIO: f64 = 1.5;
/// A thread that this share of the requests woke takes part in each of them: sometimes it is still
/// awake when the next request arrives.
pub const WAKE_SHARE: f64 = 0.6;
/// Where the owner is seen by its wake-ups, throughput may grow by this share of what the load
/// grew: messages that come together are answered together.
pub const FLAT_GROWTH_SHARE: f64 = 0.25;
/// Busiest thread of a server that waits for one thread.
pub const WRITER_BUSY: f64 = 0.85;
/// Idle CPUs that another thread could have used: a quarter of one.
pub const IDLE_CPUS_MIN: f64 = 0.25;

/// The server may be as busy as the client within this; then neither waits for the other.
pub const SERVER_MARGIN: f64 = 0.05;

/// In flight at the end over in flight at the beginning: bounded clients keep a constant.
pub const QUEUE_GROWTH: f64 = 2.0;
/// Growth per second as a share of the replies per second: slower growth is a swing.
pub const QUEUE_RATE: f64 = 0.02;
/// Samples below which quarters say nothing.
const QUEUE_SAMPLES_MIN: usize = 8;

/// Throughput stays flat under more load because one thread owns the data, not because all are
/// busy.
pub fn single_writer_flat(levels: &[Level], seen: &Writer, trust: &Trust) -> Option<Proof> {
    let mut levels: Vec<&Level> = levels.iter().filter(|l| !l.throughput.is_empty()).collect();
    levels.sort_by(|a, b| a.load.total_cmp(&b.load));
    let first = levels.iter().find(|l| l.load >= FLAT_FROM)?;
    let later: Vec<&&Level> = levels.iter().filter(|l| l.load > first.load).collect();
    let best = later.iter().map(|l| l.median()).fold(f64::NAN, f64::max);
    let span = later.last()?.load / first.load;
    let growth = best / first.median();
    let owner = seen.wakes.as_ref().and_then(|wakes| wakes.owner(WAKE_SHARE));
    let by_wakes = owner.is_some() && growth <= FLAT_GROWTH_SHARE * span;
    let flat = growth <= FLAT_GROWTH_MAX && seen.active_threads != Some(1);
    if span < FLAT_SPAN || !(flat || by_wakes) {
        return None;
    }
    let ping = seen.ping_throughput.map(|ping| ping / seen.data_throughput);
    // Other programs that use the processors make any ramp flat, and PING was measured at another
    // time.
    let quiet = trust.other_cpus <= OTHER_CPUS_MAX;
    let by_ping = flat && quiet && ping.is_some_and(|ratio| ratio >= PING_RATIO);
    let by_thread = flat
        && ping.is_none()
        && seen.busiest_thread.is_some_and(|busy| busy >= WRITER_BUSY)
        && seen.active_threads.is_some_and(|threads| threads >= 2)
        && seen.idle_cpus.is_some_and(|idle| idle >= IDLE_CPUS_MIN);
    (by_ping || by_thread || by_wakes).then(|| {
        let several = seen.active_threads.filter(|threads| *threads >= 2);
        let thread = seen.busiest_thread.zip(several);
        Figures::of("single_writer_flat")
            .with("from", figure::count(first.load))
            .with("to", figure::count(first.load * span))
            .with("low", figure::count(first.median()))
            .with("high", figure::count(best))
            .with("growth", format!("{growth:.2}"))
            .maybe("ping", seen.ping_throughput.map(figure::count))
            .with("data", figure::count(seen.data_throughput))
            .maybe("ratio", ping.map(|ratio| format!("{ratio:.1}")))
            .maybe("woken", owner.map(|(_, threads)| threads))
            .maybe("threads", several)
            .maybe("busy", thread.map(|(busy, _)| figure::percent(busy)))
            .maybe("idle", seen.idle_cpus.map(|idle| format!("{idle:.2}")))
            .when("full", seen.idle_cpus.is_some_and(|idle| idle < IDLE_CPUS_MIN))
            .proof()
    })
}

/// Throughput falls under more load. With fewer than three repetitions of a level, on a machine
/// that other programs use too, they may be the cause: there is no finding.
pub fn retrograde(levels: &[Level], trust: &Trust) -> Option<Proof> {
    let found = fall(levels).filter(|f| f.separated || trust.other_cpus <= OTHER_CPUS_MAX)?;
    let points: Vec<(f64, f64)> =
        levels.iter().flat_map(|l| l.throughput.iter().map(|x| (l.load, *x))).collect();
    let law = usl::fit(&points).filter(usl::Usl::is_good);
    let law = law.as_ref();
    Some(
        Figures::of("retrograde")
            .with("peak", figure::count(found.peak))
            .with("peak_load", figure::count(found.peak_load))
            .with("end", figure::count(found.end))
            .with("end_load", figure::count(found.end_load))
            .with("fall", figure::percent(found.share()))
            .maybe("sigma", law.map(|law| format!("{:.3}", law.sigma)))
            .maybe("kappa", law.map(|law| format!("{:.2e}", law.kappa)))
            .maybe("fit", law.map(|law| format!("{:.2}", law.r_squared)))
            .maybe("law_peak", law.and_then(|law| Some(figure::count(law.peak()?.round()))))
            .when("few", !found.separated)
            .proof(),
    )
}

/// The load generator is the bottleneck.
pub fn client_saturated(seen: &Client) -> Option<Proof> {
    let server = seen.server_busiest_thread;
    let waits = server.is_none_or(|server| server < seen.busiest_thread - SERVER_MARGIN);
    (seen.busiest_thread >= BUSY && waits).then(|| {
        Figures::of("client_saturated")
            .with("threads", seen.threads)
            .with("busy", figure::percent(seen.busiest_thread))
            .maybe("server", server.map(figure::percent))
            .when("unseen", server.is_none())
            .proof()
    })
}

/// The client sends faster than replies come, without a bound.
pub fn unbounded_client(seen: &Queue) -> Option<Proof> {
    let count = seen.samples.len();
    if count < QUEUE_SAMPLES_MIN || seen.throughput <= 0.0 {
        return None;
    }
    let mut samples = seen.samples.clone();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let middle = |part: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        median(&part.iter().map(of).collect::<Vec<f64>>())
    };
    let (early, late) = (&samples[..count / 4], &samples[count - count / 4..]);
    let (before, after) = (middle(early, |s| s.1), middle(late, |s| s.1));
    let seconds = middle(late, |s| s.0) - middle(early, |s| s.0);
    let rate = (after - before) / seconds;
    let grows = after >= QUEUE_GROWTH * before.max(1.0) && rate >= QUEUE_RATE * seen.throughput;
    grows.then(|| {
        Figures::of("unbounded_client")
            .with("before", figure::count(before))
            .with("after", figure::count(after))
            .with("time", figure::time(seconds * 1e6))
            .with("rate", figure::count(rate))
            .with("throughput", figure::count(seen.throughput))
            .with("wait", figure::time(after / seen.throughput * 1e6))
            .proof()
    })
}
