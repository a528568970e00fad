//! From what was seen to the evidence of findings. Pure.

use super::NAME;
use super::measure::Seen;
use crate::analysis::findings::{Client, Evidence, Sends, Stall, Trust};
use crate::analysis::spread::{Spread, median};
use crate::result::Measurement;

/// The evidence that one target left.
pub fn evidence(seen: &Seen) -> Evidence {
    let load = seen.median();
    Evidence {
        experiment: NAME.to_owned(),
        target: seen.name.clone(),
        trust: trust(seen),
        stranding: seen.stranding.clone(),
        stall: load.map(|load| stall(seen, load)),
        sends: sends(seen),
        client: load.filter(|_| !seen.mixed).map(|load| Client {
            threads: threads(load),
            busiest_thread: client_busy(load),
            server_busiest_thread: server_busy(seen),
        }),
        ..Evidence::default()
    }
}

fn trust(seen: &Seen) -> Trust {
    let throughput: Vec<f64> = seen.loads.iter().map(|load| load.throughput).collect();
    let most = |of: &dyn Fn(&Measurement) -> f64| seen.loads.iter().map(of).fold(0.0, f64::max);
    Trust {
        other_cpus: most(&|load| load.other_cpus),
        client_busy: (!seen.mixed && !seen.loads.is_empty()).then(|| most(&client_busy)),
        relative_spread: Spread::of(&throughput).map(|spread| spread.relative()),
        repetitions: seen.loads.len(),
    }
}

fn stall(seen: &Seen, load: &Measurement) -> Stall {
    Stall {
        pipeline: parameter(load, "pipeline"),
        in_flight: load.in_flight,
        throughput: load.throughput,
        latency: load.latency.clone(),
        client_busy: client_busy(load),
        server_busy: server_busy(seen),
        quick_ack_throughput: seen.median_quick().map(|quick| quick.throughput),
    }
}

/// Sends per reply: as the server counts them, or a trace, or segments that came in single batches.
fn sends(seen: &Seen) -> Option<Sends> {
    let counted = seen.account.as_ref().or(seen.traced.as_ref()).filter(|one| one.requests > 0);
    let pipeline = seen.batches.as_ref().map(|batches| batches.pipeline);
    if let Some(account) = counted {
        return Some(Sends {
            pipeline: seen.median().map(|load| parameter(load, "pipeline")).or(pipeline)?,
            replies: account.requests,
            reply_bytes: account.per_request(account.bytes_out),
            sends: Some(account.sends),
            segments: None,
        });
    }
    let batches = seen.batches.as_ref()?;
    Some(Sends {
        pipeline: batches.pipeline,
        replies: batches.count * batches.pipeline as u64,
        reply_bytes: batches.reply_bytes,
        sends: None,
        segments: batches.segments,
    })
}

/// CPU share of the client's sending threads, which share the connections evenly.
pub fn client_busy(load: &Measurement) -> f64 {
    load.client_cpu_s / load.seconds / threads(load) as f64
}

fn server_busy(seen: &Seen) -> Option<f64> {
    (!seen.busiest.is_empty()).then(|| median(&seen.busiest))
}

fn threads(load: &Measurement) -> usize {
    parameter(load, "threads").max(1)
}

fn parameter(load: &Measurement, name: &str) -> usize {
    let found = load.parameters.iter().find(|(known, _)| known == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}
