//! `sheafdb-bench ingest bars`: what protocol 2 must hold, beside redis-server with the same messages.
//!
//! A message has 17 bytes of payload, 21 on the wire, and each Data frame 16 bytes more. Server and client have a core
//! each. Every figure comes from producers whose acknowledgements were checked, one by one; what went into a
//! stream is counted there once more.

mod measure;
mod servers;

use std::fmt::Write as _;

pub use measure::run;

use crate::acks::SIZE_BYTES;
use crate::lab::target::Target;
use crate::result::Measurement;
use ingest::v2::Acking;

/// Bytes of a payload.
pub const PAYLOAD: usize = 17;
/// Bytes of such a message on the wire.
pub const MESSAGE: usize = SIZE_BYTES + PAYLOAD;

/// What is to be measured, all choices made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is measured; started afresh for each bar.
    pub target: Target,
    /// Whom it is compared with.
    pub beside: Target,
    /// Seconds of each run that has no number of messages.
    pub seconds: f64,
    /// Seconds that many producers send: a turn of the server takes one of them after the other, and there must be many.
    pub producers_seconds: f64,
    /// Repetitions, the servers in turn; medians are told.
    pub repetitions: usize,
    /// Messages of one run into a stream.
    pub messages: u64,
    /// Messages of the measurement of memory.
    pub memory_messages: u64,
    /// Producers that are to be served alike.
    pub producers: usize,
    /// When acknowledgements are asked for.
    pub acking: Acking,
    /// Bytes of the block client's frames.
    pub block: usize,
    /// Connections to the other server.
    pub beside_clients: usize,
    /// Requests in a batch on each.
    pub beside_pipeline: usize,
    /// Which bars; empty: all.
    pub only: Vec<Which>,
}

/// The bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// Messages per second and CPU per message without a key
    Null,
    /// The same into a stream, and CPU per message beside the other server's XADD
    Stream,
    /// Bytes per message in a stream
    Memory,
    /// Many producers: nothing lost, nobody starved
    Producers,
}

/// All of them.
pub const ALL: [Which; 4] = [Which::Null, Which::Stream, Which::Memory, Which::Producers];

/// Whether a figure must be at least or at most so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
    /// No bar: told for comparison.
    None,
}

/// One figure beside its bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Decimals that it is told with.
    pub decimals: usize,
    /// What it must be.
    pub bound: Bound,
    /// CPUs that other programs used meanwhile, at most.
    pub other_cpus: f64,
}

impl Bar {
    /// Is it as it must be?
    pub fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.value >= bound,
            Bound::AtMost(bound) => self.value <= bound,
            Bound::None => true,
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The figures.
    pub bars: Vec<Bar>,
    /// What they come from.
    pub measurements: Vec<Measurement>,
    /// What must not be: a lost message, a wrong acknowledgement, a sentence each.
    pub failed: Vec<String>,
}

/// The table in Markdown.
pub fn table(bars: &[Bar]) -> String {
    let mut text =
        String::from("| what | measured | bar | | other CPUs |\n|---|---|---|---|---|\n");
    for bar in bars {
        let figure = |value: f64| {
            if bar.decimals == 0 {
                crate::analysis::figure::count(value)
            } else {
                format!("{value:.*}", bar.decimals)
            }
        };
        let (bound, verdict) = match bar.bound {
            Bound::AtLeast(bound) => (format!("at least {}", figure(bound)), bar.holds()),
            Bound::AtMost(bound) => (format!("at most {}", figure(bound)), bar.holds()),
            Bound::None => (String::new(), true),
        };
        let verdict = match bar.bound {
            Bound::None => "",
            _ if verdict => "holds",
            _ => "missed",
        };
        let (what, value, others) = (&bar.what, figure(bar.value), bar.other_cpus);
        let _ = writeln!(text, "| {what} | {value} | {bound} | {verdict} | {others:.2} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_holds_or_misses_its_bar() {
        let bar = |value, decimals, bound| Bar {
            what: "x".to_owned(),
            value,
            decimals,
            bound,
            other_cpus: 0.0,
        };
        let bars = [
            bar(30_000_000.0, 0, Bound::AtLeast(30e6)),
            bar(29_999_999.0, 0, Bound::AtLeast(30e6)),
            bar(0.031, 3, Bound::AtMost(0.03)),
            bar(1.0, 1, Bound::None),
        ];
        assert_eq!(bars.each_ref().map(Bar::holds), [true, false, false, true]);
        let text = table(&bars);
        assert!(text.contains("| x | 30,000,000 | at least 30,000,000 | holds | 0.00 |"), "{text}");
        assert!(text.contains("| x | 0.031 | at most 0.030 | missed |"), "{text}");
        assert!(text.contains("| x | 1.0 |  |  |"), "{text}");
    }
}
