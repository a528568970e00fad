//! `sheafdb-bench ingest send|bars`: producers of small messages, and what protocol 2 must hold.

mod send;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::bars;
use crate::host;
use crate::lab::target::Target;
use crate::result::{Measurement, Results};
use ingest::v2::Acking;

/// The options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Send messages to a listener, and check every acknowledgement
    Send(Box<send::Send>),
    /// Measure what protocol 2 must hold, beside redis-server's XADD
    Bars(Box<Bars>),
}

#[derive(clap::Args, Debug)]
struct Bars {
    /// Whom to measure, as in `lab`; it is started
    #[arg(long, value_name = "TARGET", default_value = "sheafdb --threads 1")]
    target: String,
    /// Whom to compare it with
    #[arg(long, value_name = "TARGET", default_value = "redis-server")]
    beside: String,
    /// Processors of the servers, for taskset
    #[arg(long, default_value = "0", value_name = "CPUS")]
    server_cpus: String,
    /// Processor of the client
    #[arg(long, default_value_t = 1, value_name = "CPU")]
    client_cpu: usize,
    /// Only these
    #[arg(long, value_delimiter = ',', value_name = "BAR,BAR...")]
    only: Vec<bars::Which>,
    /// Seconds of each run without a number of messages
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Repetitions, the servers in turn; medians are told
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Messages of one run into a stream
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,
    /// Producers that are to be served alike
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    producers: u16,
    /// Seconds that they send
    #[arg(long, default_value_t = 10.0)]
    producers_seconds: f64,
    /// When acknowledgements are asked for: adaptive, synchronous, batched
    #[arg(long, default_value = "adaptive", value_parser = acking)]
    acking: Acking,
    /// Bytes of the block client's frames
    #[arg(long, default_value_t = 64 << 10, value_parser = clap::value_parser!(u32).range(100..=1 << 20))]
    block: u32,
    /// Connections to the other server
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    beside_clients: u16,
    /// Also write all measurements to this file, for `compare`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Messages of the measurement of memory.
const MEMORY_MESSAGES: u64 = 1_000_000;
/// XADDs in one batch.
const PIPELINE: usize = 64;

/// A strategy of protocol 2.
fn acking(text: &str) -> Result<Acking, String> {
    Acking::from_name(text).ok_or_else(|| "adaptive, synchronous or batched".to_owned())
}

/// Runs what was asked for.
pub fn run(args: &Args) -> ExitCode {
    let done = match &args.what {
        What::Send(args) => send::run(args),
        What::Bars(args) => run_bars(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("sheafdb-bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run_bars(args: &Bars) -> Result<(), String> {
    if [args.seconds, args.producers_seconds].iter().any(|s| !(0.05..=3600.0).contains(s)) {
        return Err("seconds are 0.05 to 3600".to_owned());
    }
    let target = |text: &str| {
        let target = Target::parse(text).map_err(|error| error.to_string())?;
        if target.is_started_here() {
            Ok(target.on_cpus(&args.server_cpus))
        } else {
            Err(format!("{text}: bars are measured of servers that are started for them"))
        }
    };
    let options = bars::Options {
        target: target(&args.target)?,
        beside: target(&args.beside)?,
        seconds: args.seconds,
        producers_seconds: args.producers_seconds,
        repetitions: usize::from(args.repetitions),
        messages: args.messages,
        memory_messages: MEMORY_MESSAGES,
        producers: usize::from(args.producers),
        acking: args.acking,
        block: args.block as usize,
        beside_clients: usize::from(args.beside_clients),
        beside_pipeline: PIPELINE,
        only: args.only.clone(),
    };
    host::run_on(args.client_cpu)
        .map_err(|error| format!("the client cannot run on core {}: {error}", args.client_cpu))?;
    let (started, began) = (Instant::now(), since_1970());
    let mut say = |what: &str| eprintln!("bars {:6.1} s  {what}", started.elapsed().as_secs_f64());
    let told = bars::run(&options, &mut say)?;
    print!("{}", bars::table(&told.bars));
    let missed = told.bars.iter().filter(|bar| !bar.holds()).count();
    if let Some(path) = &args.json {
        save(path, began, told.measurements)?;
    }
    match (&told.failed[..], missed) {
        ([], 0) => Ok(()),
        ([], _) => Err(format!("{missed} bars are missed")),
        (failed, _) => Err(failed.join("\nsheafdb-bench: ")),
    }
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Writes measurements for `compare`.
fn save(path: &Path, started_unix_s: u64, measurements: Vec<Measurement>) -> Result<(), String> {
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let (machine, findings) = (host::machine(), Vec::new());
    let results = Results { format: 1, started_unix_s, command, machine, measurements, findings };
    let text = serde_json::to_string(&results).expect("results have no maps with odd keys");
    std::fs::write(path, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}
