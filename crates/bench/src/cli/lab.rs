//! `sheafdb-bench lab NAME`: runs an experiment, shows its tables and findings, and writes the
//! report.

mod text;

use std::fs;
use std::path::PathBuf;

use super::{Done, begin_results, cannot_write, progress, save, save_results};
use crate::lab::target::Target;
use crate::lab::{
    Error, Output, Setup, acks, all, concurrency, pipelining, ramp, single_connection,
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
    /// SET at 1 to 10,000 connections: who is served, where the peak is, and what the listen queue
    /// loses
    Concurrency(Box<One<concurrency::Options>>),
    /// Five ways to acknowledge small messages, and which of them wins here
    Acks(Box<One<acks::Options>>),
    /// SET and GET with 5 to 60 workers until throughput settles, and which drivers hold back
    Ramp(Box<One<ramp::Options>>),
    /// Batches of requests: when do the replies leave, and what does that cost?
    Pipelining(Box<One<pipelining::Options>>),
    /// One request at a time on few connections: what does it wait for?
    SingleConnection(Box<One<single_connection::Options>>),
    /// All of them in their short form, in one report
    All(Box<One<all::Options>>),
}

/// Runs the experiment.
pub fn run(args: &Args) -> Done {
    match &args.experiment {
        Experiment::Concurrency(one) => one.run(concurrency::NAME, concurrency::run),
        Experiment::Acks(one) => one.run(acks::NAME, acks::run),
        Experiment::All(one) => one.run(all::NAME, all::run),
        Experiment::Pipelining(one) => one.run(pipelining::NAME, pipelining::run),
        Experiment::SingleConnection(one) => {
            one.run(single_connection::NAME, single_connection::run)
        }
        Experiment::Ramp(one) => one.run(ramp::NAME, ramp::run),
    }
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
    /// Whom to measure: sheafdb, redis-server, valkey-server, pogocache, HOST:PORT, the path of a
    /// socket, model:NAME[,option=value]..., or a program with {port}; several times. A label= in
    /// front names it. Default: the experiment's own choice
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Vec<Target>,
    /// Write the report, one HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write all measurements and findings
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every plot as CSV into this folder
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Seconds of load per point
    #[arg(long)]
    seconds: Option<f64>,
    /// Repetitions of each point [default: 3, short: 1]
    #[arg(long, value_name = "TIMES")]
    repetitions: Option<usize>,
    /// Fewer points, less time each
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
