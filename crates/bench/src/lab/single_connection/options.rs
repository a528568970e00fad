//! What can be asked of the experiment, and what it says.

use crate::analysis::texts::Texts;

/// The name in findings.
pub const NAME: &str = "single-connection";
/// What it says.
pub const TEXTS: Texts = Texts(include_str!("text.txt"));

/// What can be set.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Numbers of connections to measure, separated by commas
    /// [default: 1,2,5,10,50; short form: 1,5,50]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub connections: Vec<usize>,
    /// SET requests per point, unless --seconds is given [default: 1000000; short form: 3000]
    #[arg(long, value_name = "N")]
    pub requests: Option<u64>,
    /// Skip the variants: busy polling off and on, a client that does not sleep, shared
    /// connections
    #[arg(long)]
    pub no_variants: bool,
    /// Skip the runs under strace
    #[arg(long)]
    pub no_trace: bool,
}
