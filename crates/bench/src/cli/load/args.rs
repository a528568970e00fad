//! The options as they are written on the command line.

use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};

use super::values;
use crate::load::{self, Spec};

/// The options.
#[derive(clap::Args, Debug)]
#[command(
    disable_help_flag = true,
    args_override_self = true,
    after_help = "A command may follow the options, as in\n  \
        sheafdb-bench load -n 1000 -r 100 SET __key__ __data__\n\
        If it begins with -, write -- before it. Placeholders, replaced in every request:\n  \
        __key__       a key: the prefix and twelve digits\n  \
        __rand_int__  a number of the key range, as twelve digits\n  \
        __int__       a number of the key range, without leading zeros\n  \
        __int+N__     the last number which was drawn for the request, plus N\n  \
        __data__      a value\n\
        Exit status: 0 if all replies were right; 1 if some were not, or the load did not start; \
        2 if the options are wrong."
)]
pub struct Args {
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    pub(super) help: Option<bool>,
    /// Host of the server
    #[arg(short = 'h', long, visible_alias = "server", default_value = "127.0.0.1")]
    pub(super) host: String,
    /// Port of the server
    #[arg(short, long, default_value_t = 6379)]
    pub(super) port: u16,
    /// Unix socket of the server, instead of host and port
    #[arg(short, long, visible_alias = "unix-socket")]
    pub(super) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(super) spec: Spec,
    /// Number of requests of all connections together [default: 100000]
    #[arg(short = 'n', long, conflicts_with = "test_time")]
    pub(super) requests: Option<u64>,
    /// Seconds to run, instead of a number of requests
    #[arg(long, value_name = "SECONDS")]
    pub(super) test_time: Option<f64>,
    /// Size of a value in bytes
    #[arg(short = 'd', long, default_value_t = 3, value_name = "BYTES")]
    pub(super) data_size: usize,
    /// Sizes of values in bytes, uniformly distributed, as in 10-100
    #[arg(long, value_name = "LOW-HIGH", value_parser = values::range)]
    pub(super) data_size_range: Option<(usize, usize)>,
    /// Number of keys; they are numbered from 0
    #[arg(short = 'r', long, default_value_t = 1)]
    pub(super) keyspace: u64,
    /// Lowest number of a key, instead of -r
    #[arg(long, requires = "key_maximum", conflicts_with = "keyspace")]
    pub(super) key_minimum: Option<u64>,
    /// Highest number of a key, instead of -r
    #[arg(long, conflicts_with = "keyspace")]
    pub(super) key_maximum: Option<u64>,
    /// Text in front of the twelve digits of a key
    #[arg(long, default_value = "key:")]
    pub(super) key_prefix: String,
    /// Tests, separated by commas, with the names of redis-benchmark [default: set,get]
    #[arg(short = 't', long, value_delimiter = ',',
        conflicts_with_all = ["ratio", "words", "command"])]
    pub(super) tests: Vec<String>,
    /// Print one line per test
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// Same as --format csv
    #[arg(long)]
    pub(super) csv: bool,
    /// Format of the standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
    /// Also write all measurements to this JSON file, for `compare`
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Repeat until interrupted
    #[arg(short = 'l', long = "loop")]
    pub(super) forever: bool,
    /// Number of repetitions; `compare` needs several
    #[arg(long, default_value_t = 1, value_name = "TIMES")]
    pub(super) repeat: u32,
    /// Mix of SET and GET, as in 1:10 (one SET to ten GET)
    #[arg(long, value_name = "SETS:GETS", value_parser = values::ratio)]
    pub(super) ratio: Option<(u32, u32)>,
    /// Command of a mix; repeat the option for more commands
    #[arg(long, conflicts_with = "ratio")]
    pub(super) command: Vec<String>,
    /// Weight of each --command in the mix, in the same order
    #[arg(long, requires = "command", value_name = "WEIGHT")]
    pub(super) command_ratio: Vec<u32>,
    /// Distribution of the keys of SET and GET, as in memtier_benchmark: R uniform, Z Zipf,
    /// G Gaussian, S sequential, P sequential with a separate range per connection
    #[arg(long, value_name = "SET:GET", value_parser = values::key_pattern, conflicts_with = "keys")]
    pub(super) key_pattern: Option<values::KeyPattern>,
    /// Distribution of the keys: uniform, zipf[:EXPONENT], hot-set[:KEYS,REQUESTS] (shares from 0
    /// to 1), gaussian, sequential, or parallel (sequential with a separate range per connection)
    #[arg(long, value_parser = values::pattern, default_value = "uniform")]
    pub(super) keys: load::Pattern,
    /// Open loop: send this many requests per second, however fast the server replies; latency
    /// counts from the intended send time
    #[arg(long, value_name = "PER_SECOND")]
    pub(super) rate: Option<f64>,
    /// Intervals between the requests of an open loop
    #[arg(long, value_enum, default_value_t = load::Arrivals::Poisson)]
    pub(super) arrivals: load::Arrivals,
    /// How requests are sent on a connection
    #[arg(long, value_enum, default_value_t = Driver::LockStep)]
    pub(super) driver: Driver,
    /// Number of callers that share the connections, with --driver multiplexed
    /// [default: 16 per connection]
    #[arg(long)]
    pub(super) callers: Option<usize>,
    /// Accept nil as a right reply
    #[arg(long)]
    pub(super) allow_nil: bool,
    /// Keep Nagle's algorithm on (do not set TCP_NODELAY)
    #[arg(long)]
    pub(super) nagle: bool,
    /// Command to send, with the placeholders below
    #[arg(trailing_var_arg = true, conflicts_with = "ratio")]
    pub(super) words: Vec<String>,
}

/// Forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line, one line per measurement.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Driver {
    /// Send the next batch when all replies to the previous one have arrived
    LockStep,
    /// Keep a fixed number of requests outstanding: send one for each reply
    Window,
    /// Many callers with one outstanding request each share the connections
    Multiplexed,
    /// Send as fast as possible, without waiting for replies
    Unbounded,
    /// Use a table inside the load generator: no server, no network
    InProcess,
}
