//! From what was seen to the evidence of findings. Pure.

use super::NAME;
use super::measure::Seen;
use crate::analysis::findings::{Client, Evidence, Sends, Stall, Trust};
use crate::analysis::spread::median;
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
    let busy = seen.loads.iter().map(client_busy).reduce(f64::max);
    Trust::of(&[seen.loads.iter().collect()], busy.filter(|_| !seen.mixed))
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
    let counting = |one: &&crate::lab::io::Account| one.requests > 0;
    let (own, traced) = (seen.account.as_ref(), seen.traced.as_ref());
    let counted = own.filter(counting).or(traced.filter(counting));
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
        replies: batches.replies(),
        reply_bytes: batches.reply_bytes,
        sends: None,
        segments: batches.segments,
    })
}

/// CPU share of the client's sending threads, which share the connections evenly.
pub fn client_busy(load: &Measurement) -> f64 {
    load.client_cpu_s / load.seconds / threads(load) as f64
}

/// CPU share of the server's busiest thread.
pub fn server_busy(seen: &Seen) -> Option<f64> {
    (!seen.busiest.is_empty()).then(|| median(&seen.busiest))
}

fn threads(load: &Measurement) -> usize {
    parameter(load, "threads").max(1)
}

fn parameter(load: &Measurement, name: &str) -> usize {
    let found = load.parameters.iter().find(|(known, _)| known == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::findings::{Stranding, judge};
    use crate::lab::io::Account;
    use crate::lab::pipelining::probe::Batches;
    use crate::result::FindingKind::{self, FlushPerReply, NagleStall, StrandedReply};
    use crate::result::Latency;

    fn kinds(seen: &Seen) -> Vec<FindingKind> {
        judge(&evidence(seen)).iter().map(|one| one.kind).collect()
    }

    fn load(throughput: f64, cumulative: &[(f64, f64)]) -> Measurement {
        let parameters = [("pipeline", "30"), ("threads", "1")];
        let mean_us = 960.0 / throughput * 1e6;
        Measurement {
            parameters: parameters.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
            seconds: 1.0,
            throughput,
            in_flight: 960.0,
            latency: Latency { mean_us, cumulative: cumulative.to_vec(), ..Latency::default() },
            client_cpu_s: 0.1,
            ..Measurement::default()
        }
    }

    fn account(requests: u64, sends: u64) -> Account {
        Account { requests, sends, bytes_out: requests * 6, ..Account::default() }
    }

    #[test]
    fn a_stall_is_told_by_its_cure() {
        let stalled = load(22_000.0, &[(100.0, 0.03), (41_000.0, 0.5), (48_000.0, 1.0)]);
        let mut seen = Seen { loads: vec![stalled], ..Seen::default() };
        seen.quick = vec![load(700_000.0, &[(900.0, 1.0)])];
        assert_eq!(kinds(&seen), [NagleStall]);
        seen.quick = vec![load(23_000.0, &[(41_000.0, 1.0)])];
        assert_eq!(kinds(&seen), [FindingKind::None], "a slow server is not cured");
    }

    #[test]
    fn sends_come_from_the_server_then_a_trace_then_the_wire() {
        let batches = |segments| Batches {
            pipeline: 30,
            count: 10,
            reply_bytes: 7.0,
            segments: Some(segments),
            ..Batches::default()
        };
        let mut seen = Seen { batches: Some(batches(299)), ..Seen::default() };
        assert_eq!(kinds(&seen), [FlushPerReply]);
        seen.traced = Some(account(3000, 100));
        assert_eq!(kinds(&seen), [FindingKind::None], "a trace knows better than the wire");
        seen.account = Some(account(3000, 3000));
        assert_eq!(kinds(&seen), [FlushPerReply], "the server knows better than a trace");
        seen.account = Some(account(0, 0));
        assert_eq!(kinds(&seen), [FindingKind::None], "who counted nothing knows nothing");
    }

    #[test]
    fn replies_that_stay_behind_are_found_without_a_load() {
        let stranding =
            Stranding { asked: 30, received: 0, waited_s: 0.4, received_after_nudge: 30 };
        let seen = Seen { stranding: Some(stranding), ..Seen::default() };
        assert!(seen.is_stranded());
        assert_eq!(kinds(&seen), [StrandedReply]);
    }

    #[test]
    fn the_median_load_speaks_for_all() {
        let loads = [3.0, 1.0, 2.0].map(|throughput| load(throughput, &[]));
        let seen = Seen { loads: loads.to_vec(), ..Seen::default() };
        assert!((seen.median().expect("there are three").throughput - 2.0).abs() < 1e-9);
        assert_eq!(evidence(&seen).trust.repetitions, 3);
        assert!((client_busy(&seen.loads[0]) - 0.1).abs() < 1e-9);
    }
}
