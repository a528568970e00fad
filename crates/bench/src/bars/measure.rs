//! Each bar's measurement.

use std::time::Duration;

use ingest::v2::SinkKind;

use super::servers::{KEY, Ours, count_and_delete, used_memory, xadd};
use super::{ALL, Bar, Bound, MEMORY_MESSAGES, Options, PAYLOAD, Told, Which};
use crate::acks::Spec;
use crate::analysis::spread::median;
use crate::result::Measurement;

/// Messages in a frame where many producers send.
const FRAME: usize = 50;

/// Measures what was asked for. A bar that is missed is none of the errors; a lost message is.
pub fn run(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Told, String> {
    let mut told = Told::default();
    for which in ALL {
        if !options.only.is_empty() && !options.only.contains(&which) {
            continue;
        }
        let done = match which {
            Which::Null => null(options, &mut told, say),
            Which::Stream => stream(options, &mut told, say),
            Which::Memory => memory(options, &mut told, say),
            Which::Producers => producers(options, &mut told, say),
        };
        if let Err(why) = done {
            say(&format!("{which:?}: {why}"));
            told.failed.push(why);
        }
    }
    Ok(told)
}

fn null(options: &Options, told: &mut Told, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let ours = Ours::start(&options.target)?;
    let mut seen = Vec::new();
    for repetition in 1..=options.repetitions {
        say(&format!("null sink ({repetition} of {})", options.repetitions));
        let spec = Spec { time: Some(seconds(options)), ..ours.spec(options, SinkKind::Null) };
        seen.push(ours.send(&spec)?);
    }
    told.bars.push(bar("null sink: messages/s", rate(&seen), 0, Bound::AtLeast(30e6), &seen));
    let cpu = server_us(&seen)?;
    told.bars.push(bar("null sink: server us per message", cpu, 4, Bound::AtMost(0.03), &seen));
    told.measurements.extend(seen);
    Ok(())
}

fn stream(options: &Options, told: &mut Told, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let ours = Ours::start(&options.target)?;
    let beside = options.beside.start().map_err(|error| error.to_string())?;
    let (mut seen, mut others) = (Vec::new(), Vec::new());
    for repetition in 1..=options.repetitions {
        say(&format!("stream ({repetition} of {})", options.repetitions));
        let messages = options.messages;
        let spec = Spec { messages, ..ours.spec(options, SinkKind::Stream) };
        seen.push(ours.send(&spec)?);
        count_and_delete(&ours.started, messages)?;
        others.push(xadd(&beside, options, messages)?);
        count_and_delete(&beside, messages)?;
    }
    let name = &beside.name;
    let (cpu, other_cpu) = (server_us(&seen)?, server_us(&others)?);
    let both: Vec<Measurement> = seen.iter().chain(&others).cloned().collect();
    told.bars.extend([
        bar("stream: messages/s", rate(&seen), 0, Bound::AtLeast(5e6), &seen),
        bar(&format!("{name} XADD: messages/s"), rate(&others), 0, Bound::None, &others),
        bar("stream: server us per message", cpu, 4, Bound::None, &seen),
        bar(&format!("{name} XADD: server us per message"), other_cpu, 4, Bound::None, &others),
        bar(
            &format!("stream: CPU per message of {name}'s"),
            cpu / other_cpu,
            3,
            Bound::AtMost(0.2),
            &both,
        ),
    ]);
    told.measurements.extend(both);
    Ok(())
}

fn memory(options: &Options, told: &mut Told, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let messages = MEMORY_MESSAGES;
    let over = |before: u64, after: u64| {
        after.saturating_sub(before) as f64 / messages as f64 - PAYLOAD as f64
    };
    say("memory");
    let ours = Ours::start(&options.target)?;
    let before = used_memory(&ours.started)?;
    let spec = Spec { messages, ..ours.spec(options, SinkKind::Stream) };
    let seen = [ours.send(&spec)?];
    let bytes = over(before, used_memory(&ours.started)?);
    count_and_delete(&ours.started, messages)?;
    let beside = options.beside.start().map_err(|error| error.to_string())?;
    let before = used_memory(&beside)?;
    let others = [xadd(&beside, options, messages)?];
    let other_bytes = over(before, used_memory(&beside)?);
    let name = &beside.name;
    told.bars.extend([
        bar("stream: bytes per message over the payload", bytes, 1, Bound::AtMost(40.0), &seen),
        bar(&format!("{name} XADD: the same"), other_bytes, 1, Bound::None, &others),
    ]);
    Ok(())
}

fn producers(options: &Options, told: &mut Told, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    for (sink, name) in [(SinkKind::Null, "null sink"), (SinkKind::Stream, KEY)] {
        say(&format!("{} producers, {name}", options.producers));
        let ours = Ours::start(&options.target)?;
        let spec = Spec {
            clients: options.producers,
            time: Some(Duration::from_secs_f64(options.producers_seconds)),
            block: None,
            batch: FRAME,
            ..ours.spec(options, sink)
        };
        let seen = [ours.send(&spec)?];
        if sink == SinkKind::Stream {
            count_and_delete(&ours.started, seen[0].requests)?;
        }
        let served = seen[0].per_connection;
        let ratio = served.most as f64 / served.least as f64;
        let clients = options.producers;
        told.bars.extend([
            bar(
                &format!("{clients} producers, {name}: messages/s"),
                rate(&seen),
                0,
                Bound::None,
                &seen,
            ),
            bar(
                &format!("{clients} producers, {name}: most of one over least of one"),
                ratio,
                2,
                Bound::AtMost(2.0),
                &seen,
            ),
        ]);
        told.measurements.extend(seen);
    }
    Ok(())
}

fn seconds(options: &Options) -> Duration {
    Duration::from_secs_f64(options.seconds)
}

fn bar(what: &str, value: f64, decimals: usize, bound: Bound, seen: &[Measurement]) -> Bar {
    let other_cpus = seen.iter().map(|one| one.other_cpus).fold(0.0, f64::max);
    Bar { what: what.to_owned(), value, decimals, bound, other_cpus }
}

fn rate(seen: &[Measurement]) -> f64 {
    median(&seen.iter().map(|one| one.throughput).collect::<Vec<_>>())
}

fn server_us(seen: &[Measurement]) -> Result<f64, String> {
    let us = |one: &Measurement| {
        let server = one.server.ok_or_else(|| format!("{}: its CPU cannot be seen", one.target))?;
        Ok(server.cpu_us_per_request)
    };
    Ok(median(&seen.iter().map(us).collect::<Result<Vec<_>, String>>()?))
}
