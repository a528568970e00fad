//! Each bar's measurement.

use std::time::Duration;

use ingest::v2::SinkKind;

use super::bar::{Bound, Measured, rate, server_us};
use super::options::{ALL, MEMORY_MESSAGES, Options, PAYLOAD, Which};
use super::servers::{KEY, Ours, count_and_delete, used_memory, xadd};
use crate::acks::Spec;
use crate::result::Measurement;

/// Messages in a frame where many producers send.
const FRAME: usize = 50;

/// Measures what was asked for. A bar that is missed is none of the errors; a lost message is.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Measured, String> {
    let mut measured = Measured::default();
    for which in ALL {
        if !options.only.is_empty() && !options.only.contains(&which) {
            continue;
        }
        let measure = match which {
            Which::Null => null,
            Which::Stream => stream,
            Which::Memory => memory,
            Which::Producers => producers,
        };
        if let Err(why) = measure(options, &mut measured, progress) {
            progress(&format!("{which:?}: {why}"));
            measured.failed.push(why);
        }
    }
    Ok(measured)
}

fn null(
    options: &Options,
    measured: &mut Measured,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let ours = Ours::start(&options.target)?;
    let mut seen = Vec::new();
    for repetition in 1..=options.repetitions {
        progress(&format!("null sink ({repetition} of {})", options.repetitions));
        let time = Some(Duration::from_secs_f64(options.seconds));
        seen.push(ours.send(&Spec { time, ..ours.spec(options, SinkKind::Null) })?);
    }
    measured.add("null sink: messages/s", rate(&seen), 0, Bound::AtLeast(30e6), &seen);
    let cpu = server_us(&seen)?;
    measured.add("null sink: server us per message", cpu, 4, Bound::AtMost(0.03), &seen);
    measured.measurements.extend(seen);
    Ok(())
}

fn stream(
    options: &Options,
    measured: &mut Measured,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let ours = Ours::start(&options.target)?;
    let beside = options.beside.start().map_err(|error| error.to_string())?;
    let (mut seen, mut others) = (Vec::new(), Vec::new());
    for repetition in 1..=options.repetitions {
        progress(&format!("stream ({repetition} of {})", options.repetitions));
        let messages = options.messages;
        seen.push(ours.send(&Spec { messages, ..ours.spec(options, SinkKind::Stream) })?);
        count_and_delete(&ours.started, messages)?;
        others.push(xadd(&beside, options, messages)?);
        count_and_delete(&beside, messages)?;
    }
    let name = &beside.name;
    let (cpu, other_cpu) = (server_us(&seen)?, server_us(&others)?);
    let both: Vec<Measurement> = seen.iter().chain(&others).cloned().collect();
    measured.add("stream: messages/s", rate(&seen), 0, Bound::AtLeast(5e6), &seen);
    measured.add(&format!("{name} XADD: messages/s"), rate(&others), 0, Bound::None, &others);
    measured.add("stream: server us per message", cpu, 4, Bound::None, &seen);
    let what = format!("{name} XADD: server us per message");
    measured.add(&what, other_cpu, 4, Bound::None, &others);
    let what = format!("stream: CPU per message of {name}'s");
    measured.add(&what, cpu / other_cpu, 3, Bound::AtMost(0.2), &both);
    measured.measurements.extend(both);
    Ok(())
}

fn memory(
    options: &Options,
    measured: &mut Measured,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let messages = MEMORY_MESSAGES;
    let over = |before: u64, after: u64| {
        after.saturating_sub(before) as f64 / messages as f64 - PAYLOAD as f64
    };
    progress("memory");
    let ours = Ours::start(&options.target)?;
    let before = used_memory(&ours.started)?;
    let seen = [ours.send(&Spec { messages, ..ours.spec(options, SinkKind::Stream) })?];
    let bytes = over(before, used_memory(&ours.started)?);
    count_and_delete(&ours.started, messages)?;
    let beside = options.beside.start().map_err(|error| error.to_string())?;
    let before = used_memory(&beside)?;
    let others = [xadd(&beside, options, messages)?];
    let other_bytes = over(before, used_memory(&beside)?);
    let what = "stream: bytes per message over the payload";
    measured.add(what, bytes, 1, Bound::AtMost(40.0), &seen);
    let what = format!("{} XADD: the same", beside.name);
    measured.add(&what, other_bytes, 1, Bound::None, &others);
    Ok(())
}

fn producers(
    options: &Options,
    measured: &mut Measured,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let clients = options.producers;
    for (sink, name) in [(SinkKind::Null, "null sink"), (SinkKind::Stream, KEY)] {
        let who = format!("{clients} producers, {name}");
        progress(&who);
        let ours = Ours::start(&options.target)?;
        let time = Some(Duration::from_secs_f64(options.producers_seconds));
        let spec = Spec { clients, time, block: None, batch: FRAME, ..ours.spec(options, sink) };
        let seen = [ours.send(&spec)?];
        if sink == SinkKind::Stream {
            count_and_delete(&ours.started, seen[0].requests)?;
        }
        let served = seen[0].per_connection;
        let ratio = served.most as f64 / served.least as f64;
        measured.add(&format!("{who}: messages/s"), rate(&seen), 0, Bound::None, &seen);
        let what = format!("{who}: most of one over least of one");
        measured.add(&what, ratio, 2, Bound::AtMost(2.0), &seen);
        measured.measurements.extend(seen);
    }
    Ok(())
}
