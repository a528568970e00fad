//! LATENCY: spikes per event, and histograms per command.

mod text;

use crate::admin::latency::text::{doctor, graph};
use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::figures::latency_of;
use crate::worker::core::Core;
use command::error::NoSamples;
use command::ops::LatencyOp;
use command::{CommandId, Error};
use observe::{Series, SpikeEvent};
use resp::{OutBuf, Reply};

impl Core {
    /// Carries out a LATENCY subcommand.
    pub(crate) fn latency_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        op: LatencyOp,
    ) -> Result<Outcome, Error> {
        let spikes = &self.shared.spikes;
        let mut reply = caller.reply(out);
        match op {
            LatencyOp::Latest => reply_latest(&mut reply, &self.known_events()),
            LatencyOp::History(event) => {
                let series = SpikeEvent::by_name(&event).map(|event| spikes.series(event));
                let samples = series.unwrap_or_default().samples;
                reply.array(samples.len());
                for spike in samples {
                    reply.array(2);
                    reply.integer(spike.unix_s);
                    reply.integer(spike.ms as i64);
                }
            }
            LatencyOp::Graph(name) => {
                let event = SpikeEvent::by_name(&name);
                let series = event.map(|event| (event, spikes.series(event)));
                let Some((event, series)) = series.filter(|(_, s)| !s.samples.is_empty()) else {
                    return Err(NoSamples { event: String::from_utf8_lossy(&name).into() }.into());
                };
                let text = graph(event.name(), &series, self.turn.unix_ms().0 / 1000);
                reply.verbatim(*b"txt", text.as_bytes());
            }
            LatencyOp::Reset(names) => {
                let named = |event: &SpikeEvent| {
                    names.is_empty()
                        || names.iter().any(|name| SpikeEvent::by_name(name) == Some(*event))
                };
                let events = SpikeEvent::ALL.into_iter().filter(named);
                reply.integer(events.filter(|event| spikes.reset(*event)).count() as i64);
            }
            LatencyOp::Doctor => {
                let text = doctor(
                    &self.known_events(),
                    self.settings.spike_threshold_ms(),
                    self.settings.slower_than_us,
                    self.turn.unix_ms().0 / 1000,
                );
                reply.verbatim(*b"txt", text.as_bytes());
            }
            LatencyOp::Histogram(names) => {
                let ids = commands_of(&names);
                self.reply_histograms(&mut reply, &ids);
            }
        }
        Ok(Outcome::Done)
    }

    /// The events of which there are spikes.
    fn known_events(&self) -> Vec<(SpikeEvent, Series)> {
        let all =
            SpikeEvent::ALL.into_iter().map(|event| (event, self.shared.spikes.series(event)));
        all.filter(|(_, series)| !series.samples.is_empty()).collect()
    }

    fn reply_histograms(&self, reply: &mut Reply<'_>, ids: &[CommandId]) {
        let known = ids.iter().map(|id| (*id, latency_of(&self.shared, *id)));
        let known: Vec<_> = known.filter(|(_, totals)| totals.count() > 0).collect();
        reply.map(known.len());
        for (id, totals) in known {
            reply.bulk(id.spec().full_name.as_bytes());
            reply.map(2);
            reply.bulk(b"calls");
            reply.integer(totals.count() as i64);
            reply.bulk(b"histogram_usec");
            let buckets = totals.cumulative_us();
            reply.map(buckets.len());
            for (bound_us, seen) in buckets {
                reply.integer(bound_us as i64);
                reply.integer(seen as i64);
            }
        }
    }
}

fn reply_latest(reply: &mut Reply<'_>, events: &[(SpikeEvent, Series)]) {
    reply.array(events.len());
    for (event, series) in events {
        let Some(last) = series.samples.back() else { continue };
        reply.array(4);
        reply.bulk(event.name().as_bytes());
        reply.integer(last.unix_s);
        reply.integer(last.ms as i64);
        reply.integer(series.max_ms as i64);
    }
}

/// The commands of these names, a container standing for its subcommands; all without names. What
/// is no command is none.
fn commands_of(names: &[Box<[u8]>]) -> Vec<CommandId> {
    if names.is_empty() {
        return command::all().collect();
    }
    let mut ids = Vec::new();
    for name in names {
        let name = name.to_ascii_lowercase();
        let Some(id) = command::by_full_name(&name) else { continue };
        if id.spec().subcommands.is_empty() {
            ids.push(id);
            continue;
        }
        ids.extend(id.subcommands());
    }
    ids
}
