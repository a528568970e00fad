//! What can be asked of the bars.

use clap::builder::RangedU64ValueParser;
use ingest::v2::Acking;

use crate::acks::{self, SIZE_BYTES};
use crate::lab::target::Target;

/// Bytes of a payload.
pub const PAYLOAD: usize = 17;
/// Messages of the measurement of memory.
pub const MEMORY_MESSAGES: u64 = 1_000_000;
/// XADDs in one batch.
pub const PIPELINE: usize = 64;
/// Bytes of such a message on the wire.
pub const MESSAGE: usize = SIZE_BYTES + PAYLOAD;

/// What is to be measured.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Server to measure, as in `lab`; it is restarted for each measurement
    #[arg(long, value_name = "TARGET", default_value = "sheafdb --threads 1",
        value_parser = Target::parse)]
    pub target: Target,
    /// Server to compare it with
    #[arg(long, value_name = "TARGET", default_value = "redis-server",
        value_parser = Target::parse)]
    pub beside: Target,
    /// Performance targets to check, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "BAR,BAR...")]
    pub only: Vec<Which>,
    /// Seconds of each run that has no fixed number of messages
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Repetitions; the servers take turns, and the medians are compared
    #[arg(long, default_value_t = 5, value_parser = at_least_one())]
    pub repetitions: usize,
    /// Messages per run into a stream
    #[arg(long, default_value_t = 2_000_000,
        value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub messages: u64,
    /// Number of producers in `producers`, which must all get a fair share
    #[arg(long, default_value_t = 1000, value_parser = at_least_one())]
    pub producers: usize,
    /// Seconds for which the producers send; long enough for many rounds of the event loop
    #[arg(long, default_value_t = 10.0)]
    pub producers_seconds: f64,
    /// When the producers request acknowledgements: adaptive, synchronous or batched
    #[arg(long, default_value = "adaptive", value_parser = acks::acking)]
    pub acking: Acking,
    /// Bytes of each frame of the client that sends blocks
    #[arg(long, default_value_t = 64 << 10, value_parser = RangedU64ValueParser::<usize>::new().range(100..=1 << 20))]
    pub block: usize,
    /// Connections to the server of --beside
    #[arg(long, default_value_t = 1, value_parser = at_least_one())]
    pub beside_clients: usize,
}

fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=u64::from(u16::MAX))
}

/// The bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// Messages per second and CPU per message, if messages are discarded
    Null,
    /// The same if messages go to a stream; CPU per message relative to XADD at --beside
    Stream,
    /// Bytes of memory per message in a stream
    Memory,
    /// Many producers: no message is lost, no producer is starved
    Producers,
}

/// All of them.
pub const ALL: [Which; 4] = [Which::Null, Which::Stream, Which::Memory, Which::Producers];
