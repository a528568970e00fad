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
    /// Repetitions, the servers in turn; medians are measured
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
    #[arg(long, default_value = "adaptive", value_parser = acks::acking)]
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
