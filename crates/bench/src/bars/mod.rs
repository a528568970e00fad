//! `sheafdb-bench ingest bars`: what protocol 2 must hold, beside redis-server with the same
//! messages.
//!
//! A message has 17 bytes of payload, 21 on the wire, and each Data frame 16 bytes more. Server and
//! client have a core each. Every figure comes from producers whose acknowledgements were checked,
//! one by one; what went into a stream is counted there once more.

mod measure;
mod servers;

use std::fmt::Write as _;

use clap::builder::RangedU64ValueParser;

pub use measure::run;

use crate::acks::SIZE_BYTES;
use crate::lab::target::Target;
use crate::result::Measurement;
use ingest::v2::Acking;

/// Bytes of a payload.
pub const PAYLOAD: usize = 17;
/// Messages of the measurement of memory.
const MEMORY_MESSAGES: u64 = 1_000_000;
/// XADDs in one batch.
const PIPELINE: usize = 64;
/// Bytes of such a message on the wire.
pub const MESSAGE: usize = SIZE_BYTES + PAYLOAD;

/// What is to be measured.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Whom to measure, as in `lab`; it is started afresh for each bar
    #[arg(long, value_name = "TARGET", default_value = "sheafdb --threads 1",
        value_parser = Target::parse)]
    pub target: Target,
    /// Whom to compare it with
    #[arg(long, value_name = "TARGET", default_value = "redis-server",
        value_parser = Target::parse)]
    pub beside: Target,
    /// Only these
    #[arg(long, value_delimiter = ',', value_name = "BAR,BAR...")]
    pub only: Vec<Which>,
    /// Seconds of each run without a number of messages
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Repetitions, the servers in turn; medians are told
    #[arg(long, default_value_t = 5, value_parser = at_least_one())]
    pub repetitions: usize,
    /// Messages of one run into a stream
    #[arg(long, default_value_t = 2_000_000,
        value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub messages: u64,
    /// Producers that are to be served alike
    #[arg(long, default_value_t = 1000, value_parser = at_least_one())]
    pub producers: usize,
    /// Seconds that they send: a turn of the server takes one of them after the other, and there
    /// must be many
    #[arg(long, default_value_t = 10.0)]
    pub producers_seconds: f64,
    /// When acknowledgements are asked for: adaptive, synchronous, batched
    #[arg(long, default_value = "adaptive", value_parser = crate::cli::ingest::acking)]
    pub acking: Acking,
    /// Bytes of the block client's frames
    #[arg(long, default_value_t = 64 << 10, value_parser = RangedU64ValueParser::<usize>::new().range(100..=1 << 20))]
    pub block: usize,
    /// Connections to the other server
    #[arg(long, default_value_t = 1, value_parser = at_least_one())]
    pub beside_clients: usize,
}

fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=u64::from(u16::MAX))
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
