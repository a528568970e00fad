//! `sheafdb-bench lab NAME`: runs an experiment, shows its tables and findings, and writes the report.

mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::host;
use crate::lab::target::Target;
use crate::lab::{Error, Setup, Told, acks, all, concurrency, pipelining, ramp, single_connection};
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
    /// SET at 1 to 10,000 connections: who is served, where the peak is, and what the listen queue loses
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
pub fn run(args: &Args) -> ExitCode {
    let done = match &args.experiment {
        Experiment::Concurrency(one) => one.run(concurrency::NAME, concurrency::run),
        Experiment::Acks(one) => one.run(acks::NAME, acks::run),
        Experiment::All(one) => one.run(all::NAME, all::run),
        Experiment::Pipelining(one) => one.run(pipelining::NAME, pipelining::run),
        Experiment::SingleConnection(one) => {
            one.run(single_connection::NAME, single_connection::run)
        }
        Experiment::Ramp(one) => one.run(ramp::NAME, ramp::run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("sheafdb-bench: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What runs an experiment with its options.
type Run<O> = fn(&Setup, &O, &mut dyn FnMut(&str)) -> Result<Told, Error>;

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
    /// Whom to measure: sheafdb, redis-server, valkey-server, pogocache, HOST:PORT, the path of a socket,
    /// model:NAME[,option=value]..., or a program with {port}; several times. A label= in front names it.
    /// Default: the experiment's own choice
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
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
        let parse = |text: &String| Target::parse(text).map_err(|error| error.to_string());
        Ok(Setup {
            targets: self.target.iter().map(parse).collect::<Result<_, _>>()?,
            seconds: self.seconds,
            short: self.short,
            repetitions: self.repetitions.unwrap_or(if self.short { 1 } else { 3 }).max(1),
        })
    }
}

impl<O: clap::Args> One<O> {
    fn run(&self, name: &str, experiment: Run<O>) -> Result<(), String> {
        let setup = self.common.setup()?;
        let started = Instant::now();
        let started_unix_s =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut say = |what: &str| {
            eprintln!("{name} {:6.1} s  {what}", started.elapsed().as_secs_f64());
        };
        let told = experiment(&setup, &self.own, &mut say).map_err(|error| error.to_string())?;
        print!("{}", text::told(&told));
        let failed = told.failed.clone();
        write(&self.common, name, told, started_unix_s)?;
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\nsheafdb-bench: ")) }
    }
}

/// Writes the files that were asked for.
fn write(common: &Common, name: &str, told: Told, started_unix_s: u64) -> Result<(), String> {
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let machine = host::machine();
    if let Some(folder) = &common.csv {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        let plots = told.sections.iter().flat_map(|section| &section.plots);
        let plots = plots
            .map(|plot| (format!("{name}-{}.csv", text::slug(&plot.title)), report::csv(plot)));
        for (file, text) in plots.chain(told.files.iter().cloned()) {
            save(&folder.join(file), &text)?;
        }
    }
    if let Some(path) = &common.report {
        let document = Document {
            title: format!("The laboratory: {name}"),
            intro: vec![
                format!("{command} (sheafdb-bench {})", env!("CARGO_PKG_VERSION")),
                format!("Begun {}.", text::date(started_unix_s)),
            ],
            sections: told.sections,
        };
        save(path, &report::html(&document, &machine))?;
    }
    if let Some(path) = &common.json {
        let (measurements, findings) = (told.measurements, told.findings);
        let results =
            Results { format: 1, started_unix_s, command, machine, measurements, findings };
        let text = serde_json::to_string(&results).expect("results have no maps with odd keys");
        save(path, &(text + "\n"))?;
    }
    Ok(())
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}
