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
    after_help = "A command may follow the options: sheafdb-bench load -n 1000 -r 100 SET __key__ __data__\n\
        __key__ is a key of the range, __rand_int__ the twelve digits of a number of the range, __int__ a number in as\n\
        many digits as it needs, __int+N__ the last number of the request and N more, __data__ a value.\n\
        A command that begins with - stands behind --.\n\
        Without one, -t or --ratio, the tests are set,get. Exit status: 0 all replies were right; 1 some were not, or \
        there was no load; 2 wrong options."
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
    /// Requests, of all connections together [default: 100000]
    #[arg(short = 'n', long, conflicts_with = "test_time")]
    pub(super) requests: Option<u64>,
    /// Seconds, instead of a number of requests
    #[arg(long, value_name = "SECONDS")]
    pub(super) test_time: Option<f64>,
    /// Bytes of a value
    #[arg(short = 'd', long, default_value_t = 3, value_name = "BYTES")]
    pub(super) data_size: usize,
    /// Bytes of values of many sizes, as in 10-100
    #[arg(long, value_name = "LOW-HIGH", value_parser = values::range)]
    pub(super) data_size_range: Option<(usize, usize)>,
    /// Number of keys: 0 to one less
    #[arg(short = 'r', long, default_value_t = 1)]
    pub(super) keyspace: u64,
    /// Lowest key, instead of -r
    #[arg(long, requires = "key_maximum", conflicts_with = "keyspace")]
    pub(super) key_minimum: Option<u64>,
    /// Highest key, instead of -r
    #[arg(long, conflicts_with = "keyspace")]
    pub(super) key_maximum: Option<u64>,
    /// Text before the twelve digits of a key
    #[arg(long, default_value = "key:")]
    pub(super) key_prefix: String,
    /// Tests, separated by commas, as redis-benchmark names them
    #[arg(short = 't', long, value_delimiter = ',', conflicts_with_all = ["ratio", "words", "command"])]
    pub(super) tests: Vec<String>,
    /// One line per test
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// The same as --format csv
    #[arg(long)]
    pub(super) csv: bool,
    /// What goes to the standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
    /// Also write all measurements to this file, for `compare` and the report
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Repeat for ever
    #[arg(short = 'l', long = "loop")]
    pub(super) forever: bool,
    /// Repeat so often; `compare` needs repetitions
    #[arg(long, default_value_t = 1, value_name = "TIMES")]
    pub(super) repeat: u32,
    /// Mix of SET and GET, as in 1:10
    #[arg(long, value_name = "SETS:GETS", value_parser = values::ratio)]
    pub(super) ratio: Option<(u32, u32)>,
    /// A command of a mix; may be given several times
    #[arg(long, conflicts_with = "ratio")]
    pub(super) command: Vec<String>,
    /// The share of each --command, in the same order
    #[arg(long, requires = "command", value_name = "WEIGHT")]
    pub(super) command_ratio: Vec<u32>,
    /// Keys of SET and GET as memtier_benchmark spells them: R random, Z Zipf, G bell, S
    /// sequential, P sequential with a share per connection
    #[arg(long, value_name = "SET:GET", value_parser = values::key_pattern, conflicts_with = "keys")]
    pub(super) key_pattern: Option<values::KeyPattern>,
    /// Keys: uniform, zipf[:EXPONENT], hot-set[:KEYS,REQUESTS], gaussian, sequential, parallel
    #[arg(long, value_parser = values::pattern, default_value = "uniform")]
    pub(super) keys: load::Pattern,
    /// Open loop: so many requests per second whatever the server does; latency counts from the
    /// intended send time
    #[arg(long, value_name = "PER_SECOND")]
    pub(super) rate: Option<f64>,
    /// Distances between the requests of an open loop
    #[arg(long, value_enum, default_value_t = load::Arrivals::Poisson)]
    pub(super) arrivals: load::Arrivals,
    /// How a connection is used
    #[arg(long, value_enum, default_value_t = Driver::LockStep)]
    pub(super) driver: Driver,
    /// Callers that share the connections (multiplexed) [default: 16 per connection]
    #[arg(long)]
    pub(super) callers: Option<usize>,
    /// Take nil for an answer
    #[arg(long)]
    pub(super) allow_nil: bool,
    /// Leave Nagle's algorithm on (no TCP_NODELAY)
    #[arg(long)]
    pub(super) nagle: bool,
    /// A command, with __key__, __rand_int__, __int__, __int+N__ and __data__
    #[arg(trailing_var_arg = true, conflicts_with = "ratio")]
    pub(super) words: Vec<String>,
}

/// Forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// A measurement per line.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Driver {
    /// A batch leaves when all replies to the one before are there
    LockStep,
    /// Each reply admits a request
    Window,
    /// Callers with one request each share the connections
    Multiplexed,
    /// Requests are made as fast as possible, whether replies come or not
    Unbounded,
    /// A table in this process, no network
    InProcess,
}
