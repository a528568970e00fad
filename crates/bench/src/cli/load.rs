//! `sheafdb-bench load`: the options that users of redis-benchmark and memtier_benchmark know, and
//! some that they do not.

mod options;
mod output;
mod suite;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Done, begin_results, save_results};
use crate::load::{self, Progress, Spec};
use crate::result::Measurement;

pub(crate) use options::ratio;
use output::Printer;

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
    help: Option<bool>,
    /// Host of the server
    #[arg(short = 'h', long, visible_alias = "server", default_value = "127.0.0.1")]
    host: String,
    /// Port of the server
    #[arg(short, long, default_value_t = 6379)]
    port: u16,
    /// Unix socket of the server, instead of host and port
    #[arg(short, long, visible_alias = "unix-socket")]
    socket: Option<PathBuf>,
    /// Password for AUTH
    #[arg(short = 'a', long, visible_alias = "pass")]
    password: Option<String>,
    /// User for AUTH
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// Database for SELECT
    #[arg(long, visible_alias = "select-db", default_value_t = 0)]
    dbnum: u32,
    /// Speak RESP3
    #[arg(short = '3', long)]
    resp3: bool,
    /// Connections, of all threads together
    #[arg(short = 'c', long, visible_alias = "connections", default_value_t = 50)]
    clients: usize,
    /// Requests, of all connections together [default: 100000]
    #[arg(short = 'n', long, conflicts_with = "test_time")]
    requests: Option<u64>,
    /// Seconds, instead of a number of requests
    #[arg(long, value_name = "SECONDS")]
    test_time: Option<f64>,
    /// Seconds of load before the measurement begins
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    warm_up: f64,
    /// Requests per batch (lock-step) or under way (window) on a connection
    #[arg(short = 'P', long, default_value_t = 1)]
    pipeline: usize,
    /// Bytes of a value
    #[arg(short = 'd', long, default_value_t = 3, value_name = "BYTES")]
    data_size: usize,
    /// Bytes of values of many sizes, as in 10-100
    #[arg(long, value_name = "LOW-HIGH", value_parser = options::range)]
    data_size_range: Option<(usize, usize)>,
    /// Number of keys: 0 to one less
    #[arg(short = 'r', long, default_value_t = 1)]
    keyspace: u64,
    /// Lowest key, instead of -r
    #[arg(long, requires = "key_maximum", conflicts_with = "keyspace")]
    key_minimum: Option<u64>,
    /// Highest key, instead of -r
    #[arg(long, conflicts_with = "keyspace")]
    key_maximum: Option<u64>,
    /// Text before the twelve digits of a key
    #[arg(long, default_value = "key:")]
    key_prefix: String,
    /// Tests, separated by commas, as redis-benchmark names them
    #[arg(short = 't', long, value_delimiter = ',', conflicts_with_all = ["ratio", "words", "command"])]
    tests: Vec<String>,
    /// One line per test
    #[arg(short = 'q', long)]
    quiet: bool,
    /// The same as --format csv
    #[arg(long)]
    csv: bool,
    /// What goes to the standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write all measurements to this file, for `compare` and the report
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Threads of the load generator
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Repeat for ever
    #[arg(short = 'l', long = "loop")]
    forever: bool,
    /// Repeat so often; `compare` needs repetitions
    #[arg(long, default_value_t = 1, value_name = "TIMES")]
    repeat: u32,
    /// Mix of SET and GET, as in 1:10
    #[arg(long, value_name = "SETS:GETS", value_parser = options::ratio)]
    ratio: Option<(u32, u32)>,
    /// A command of a mix; may be given several times
    #[arg(long, conflicts_with = "ratio")]
    command: Vec<String>,
    /// The share of each --command, in the same order
    #[arg(long, requires = "command", value_name = "WEIGHT")]
    command_ratio: Vec<u32>,
    /// Keys of SET and GET as memtier_benchmark spells them: R random, Z Zipf, G bell, S
    /// sequential, P sequential with a share per connection
    #[arg(long, value_name = "SET:GET", value_parser = options::key_pattern, conflicts_with = "keys")]
    key_pattern: Option<options::KeyPattern>,
    /// Keys: uniform, zipf[:EXPONENT], hot-set[:KEYS,REQUESTS], gaussian, sequential, parallel
    #[arg(long, value_parser = options::pattern, default_value = "uniform")]
    keys: load::Pattern,
    /// Each connection draws from a sequence of its own
    #[arg(long)]
    distinct_client_seed: bool,
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Open loop: so many requests per second whatever the server does; latency counts from the
    /// intended send time
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Distances between the requests of an open loop
    #[arg(long, value_enum, default_value_t = load::Arrivals::Poisson)]
    arrivals: load::Arrivals,
    /// How a connection is used
    #[arg(long, value_enum, default_value_t = Driver::LockStep)]
    driver: Driver,
    /// Callers that share the connections (multiplexed) [default: 16 per connection]
    #[arg(long)]
    callers: Option<usize>,
    /// Check every reply against what was written
    #[arg(long)]
    verify: bool,
    /// Share of the reads that ask for keys that do not exist
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    misses: f64,
    /// Write the keys before they are read: auto if a command must find them
    #[arg(long, value_enum, default_value_t = load::Populate::Auto)]
    populate: load::Populate,
    /// Take nil for an answer
    #[arg(long)]
    allow_nil: bool,
    /// Process of the server, for its CPU and memory; found by itself where it is local
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    /// Seconds without any reply after which requests are lost; also to connect
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    timeout: f64,
    /// Leave Nagle's algorithm on (no TCP_NODELAY)
    #[arg(long)]
    nagle: bool,
    /// Acknowledge at once whatever arrives (TCP_QUICKACK)
    #[arg(long)]
    quick_ack: bool,
    /// Poll without sleeping
    #[arg(long)]
    spin: bool,
    /// A command, with __key__, __rand_int__, __int__, __int+N__ and __data__
    #[arg(trailing_var_arg = true, conflicts_with = "ratio")]
    words: Vec<String>,
}

/// Forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// A measurement per line.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Driver {
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

/// Runs the loads and prints what came of them; false if a request did not get its right reply.
pub fn run(args: &Args) -> Done {
    let specs = args.specs()?;
    let mut results = begin_results();
    let format = if args.csv { Format::Csv } else { args.format };
    let mut printer = Printer::new(format, args.quiet);
    let mut all_right = true;
    let mut round = 0;
    while args.forever || round < args.repeat {
        for spec in &specs {
            let measured = measure(spec, !args.quiet)?;
            printer.print(&measured).map_err(|error| format!("cannot write: {error}"))?;
            if !measured.failures.is_empty() {
                all_right = false;
                eprintln!("sheafdb-bench: {}", output::failed(&measured));
            }
            // A loop for ever must not keep everything for ever.
            if args.json.is_some() && !args.forever {
                results.measurements.push(measured);
            }
        }
        round += 1;
    }
    save_results(args.json.as_deref(), &results)?;
    Ok(all_right)
}

fn measure(spec: &Spec, show: bool) -> Result<Measurement, String> {
    if !show || !std::io::stderr().is_terminal() {
        return load::run(spec).map_err(|error| error.to_string());
    }
    let bar = ProgressBar::new(1000);
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {msg}");
    bar.set_style(style.expect("the template is valid").progress_chars("=> "));
    bar.set_prefix(spec.name.clone());
    let measured = load::run_with(spec, &mut |progress| match progress {
        Progress::Connected(count) => bar.set_message(format!("{count} connections")),
        Progress::Populated(done, of) => {
            bar.set_position(done * 1000 / of.max(1));
            bar.set_message(format!("{done} of {of} keys written"));
        }
        Progress::Running(share, sample) => {
            bar.set_position((share * 1000.0) as u64);
            let (rate, p99) = (sample.throughput, sample.p99_us);
            bar.set_message(format!("{rate:.0} requests/s, p99 {p99:.1} us"));
        }
    });
    bar.finish_and_clear();
    measured.map_err(|error| error.to_string())
}
