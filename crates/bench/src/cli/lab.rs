//! `sheafdb-bench lab NAME`: runs an experiment, shows its tables and findings, and writes the
//! report.

mod text;

use std::fs;
use std::path::PathBuf;

use super::{Done, begin_results, cannot_write, progress, save, save_results};
use crate::lab::target::Target;
use crate::lab::{
    Error, Output, Setup, acks, all, cache, concurrency, pipelining, ramp, single_connection,
};
use crate::report::{self, Document};
use crate::result::Results;

/// The options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

/// The experiments; each is one line here and one in [`run`].
#[derive(clap::Subcommand, Debug)]
enum Experiment {
    /// SET on 1 to 10,000 connections: which are served, where throughput peaks, and how many
    /// connections the listen queue drops
    Concurrency(Box<One<concurrency::Options>>),
    /// Ingest: how the ways to acknowledge small messages compare on this machine
    Acks(Box<One<acks::Options>>),
    /// SET and GET by 5 to 60 workers until throughput is stable, and which clients limit their
    /// load to what the server can take
    Ramp(Box<One<ramp::Options>>),
    /// Pipelined requests: when the server sends its replies, and what that costs
    Pipelining(Box<One<pipelining::Options>>),
    /// One request at a time on few connections: what its latency consists of
    SingleConnection(Box<One<single_connection::Options>>),
    /// Play traces to servers with a limit of memory: how many reads find their key, beside exact
    /// policies, the optimum, S3-FIFO and W-TinyLFU
    Cache(Box<One<cache::Options>>),
    /// All experiments but `cache` in their short form, in one report
    All(Box<One<all::Options>>),
}

/// Runs the experiment.
pub fn run(args: &Args) -> Done {
    match &args.experiment {
        Experiment::Concurrency(one) => one.run(concurrency::NAME, concurrency::run),
        Experiment::Acks(one) => one.run(acks::NAME, acks::run),
        Experiment::Cache(one) => one.run(cache::NAME, cache::run),
        Experiment::All(one) => one.run(all::NAME, all::run),
        Experiment::Pipelining(one) => one.run(pipelining::NAME, pipelining::run),
        Experiment::SingleConnection(one) => {
            one.run(single_connection::NAME, single_connection::run)
        }
        Experiment::Ramp(one) => one.run(ramp::NAME, ramp::run),
    }
}

/// `sheafdb-bench cache`, which is `sheafdb-bench lab cache`.
#[derive(clap::Args, Debug)]
pub struct CacheArgs {
    #[command(flatten)]
    one: One<cache::Options>,
}

/// Runs the experiment *cache*.
pub fn run_cache(args: &CacheArgs) -> Done {
    args.one.run(cache::NAME, cache::run)
}

/// What runs an experiment with its options.
type Run<O> = fn(&Setup, &O, &mut dyn FnMut(&str)) -> Result<Output, Error>;

/// One experiment: what all share, and its own options.
#[derive(clap::Args, Debug)]
struct One<O: clap::Args> {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    own: O,
}

/// What all experiments share.
#[derive(clap::Args, Debug)]
struct Common {
    /// Server to measure; repeat the option for more. One of: sheafdb, redis-server,
    /// valkey-server, pogocache (each is started), HOST:PORT or the path of a unix socket (already
    /// running), model:NAME[,OPTION=VALUE]... (a model of `serve`), or a command line with {port}
    /// or {sock}. LABEL= in front sets the name in the report [default: depends on the experiment]
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Vec<Target>,
    /// Write the report to this HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write all measurements and findings to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the data of every plot as CSV into this folder
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Seconds of load per point [default: depends on the experiment]
    #[arg(long)]
    seconds: Option<f64>,
    /// Repetitions of each point [default: 3; with --short: 1]
    #[arg(long, value_name = "TIMES")]
    repetitions: Option<usize>,
    /// Short form: fewer points, less time for each
    #[arg(long)]
    short: bool,
}

impl Common {
    fn setup(&self) -> Result<Setup, String> {
        if self.seconds.is_some_and(|s| !(0.01..=86_400.0).contains(&s)) {
            return Err("seconds per point are 0.01 to 86400".to_owned());
        }
        Ok(Setup {
            targets: self.target.clone(),
            seconds: self.seconds,
            short: self.short,
            repetitions: self.repetitions.unwrap_or(if self.short { 1 } else { 3 }).max(1),
        })
    }
}

impl<O: clap::Args> One<O> {
    fn run(&self, name: &str, experiment: Run<O>) -> Done {
        let setup = self.common.setup()?;
        let results = begin_results();
        let output =
            experiment(&setup, &self.own, &mut progress(name)).map_err(|e| e.to_string())?;
        print!("{}", text::render(&output));
        let failed = output.failed.clone();
        write(&self.common, name, output, results)?;
        if failed.is_empty() { Ok(true) } else { Err(failed.join("\nsheafdb-bench: ")) }
    }
}

/// Writes the files that were asked for.
fn write(common: &Common, name: &str, output: Output, begun: Results) -> Result<(), String> {
    if let Some(folder) = &common.csv {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        let plots = output.sections.iter().flat_map(|section| &section.plots);
        let plots = plots
            .map(|plot| (format!("{name}-{}.csv", report::slug(&plot.title)), report::csv(plot)));
        for (file, text) in plots.chain(output.files.iter().cloned()) {
            save(&folder.join(file), &text)?;
        }
    }
    if let Some(path) = &common.report {
        let document = Document {
            title: match name {
                "all" => "Laboratory report".to_owned(),
                name => format!("Laboratory report: {name}"),
            },
            intro: vec![
                format!("{} (sheafdb-bench {})", begun.command, env!("CARGO_PKG_VERSION")),
                format!("Begun {}.", text::date(begun.started_unix_s)),
            ],
            sections: output.sections,
        };
        save(path, &report::html(&document, &begun.machine))?;
    }
    let (measurements, findings) = (output.measurements, output.findings);
    save_results(common.json.as_deref(), &Results { measurements, findings, ..begun })
}
