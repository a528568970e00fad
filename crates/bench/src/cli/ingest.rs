//! `sheafdb-bench ingest send|bars`: producers of small messages, and what protocol 2 must hold.

mod send;

use std::path::PathBuf;

use super::{Done, begin_results, progress, save_results};
use crate::bars;
use crate::host;
use crate::result::Results;

/// The options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Send messages to a listener and check every acknowledgement
    Send(Box<send::Send>),
    /// Check the performance targets of ingest protocol 2, relative to XADD at redis-server
    Bars(Box<Bars>),
}

#[derive(clap::Args, Debug)]
struct Bars {
    #[command(flatten)]
    options: bars::Options,
    /// CPUs of the servers, as a list for taskset
    #[arg(long, default_value = "0", value_name = "CPUS")]
    server_cpus: String,
    /// CPU of the client
    #[arg(long, default_value_t = 1, value_name = "CPU")]
    client_cpu: usize,
    /// Also write all measurements to this JSON file, for `compare`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs what was asked for.
pub fn run(args: &Args) -> Done {
    match &args.what {
        What::Send(args) => send::run(args),
        What::Bars(args) => run_bars(args),
    }
}

fn run_bars(args: &Bars) -> Done {
    let mut options = args.options.clone();
    if [options.seconds, options.producers_seconds].iter().any(|s| !(0.05..=3600.0).contains(s)) {
        return Err("seconds are 0.05 to 3600".to_owned());
    }
    for target in [&mut options.target, &mut options.beside] {
        if !target.is_started_here() {
            let name = target.name();
            return Err(format!("{name}: bars are measured of servers that are started for them"));
        }
        *target = target.clone().on_cpus(&args.server_cpus);
    }
    host::run_on(args.client_cpu)
        .map_err(|error| format!("the client cannot run on core {}: {error}", args.client_cpu))?;
    let results = begin_results();
    let result = bars::run(&options, &mut progress("bars"))?;
    print!("{}", bars::table(&result.bars));
    let missed = result.bars.iter().filter(|bar| !bar.holds()).count();
    save_results(args.json.as_deref(), &Results { measurements: result.measurements, ..results })?;
    match (&result.failed[..], missed) {
        ([], 0) => Ok(true),
        ([], _) => Err(format!("{missed} bars are missed")),
        (failed, _) => Err(failed.join("\nsheafdb-bench: ")),
    }
}
