//! What can be asked of the experiment, and what it says.

use crate::analysis::texts::Texts;
use crate::cli::load::ratio;

/// The name in findings.
pub const NAME: &str = "pipelining";
/// What it says.
pub const TEXTS: Texts = Texts(include_str!("text.txt"));

/// What can be set. The defaults are memtier's `-c 32 -d 256 --pipeline=30 --ratio=1:10`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Connections
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub connections: usize,
    /// Requests per batch
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub pipeline: usize,
    /// Size of a value in bytes
    #[arg(long, default_value_t = 256, value_name = "BYTES")]
    pub data_size: usize,
    /// Number of keys [default: 10000000; short form: 100000]
    #[arg(long, value_name = "N")]
    pub keys: Option<u64>,
    /// Ratio of SET to GET
    #[arg(long, default_value = "1:10", value_parser = ratio, value_name = "S:G")]
    pub ratio: (u32, u32),
    /// Threads of the load generator
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub client_threads: usize,
    /// Write all keys before each measurement; otherwise most reads miss at first, as with
    /// memtier_benchmark
    #[arg(long)]
    pub populate: bool,
}

impl Default for Options {
    fn default() -> Self {
        crate::cli::defaults()
    }
}
