//! `sheafdb-bench lab NAME`: runs an experiment, prints what was found, and writes a report.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::analysis::findings::entry;
use crate::host;
use crate::lab::target::Target;
use crate::lab::{self, Error, Setup, Told};
use crate::report::{self, Document, Table};
use crate::result::Results;

/// The options.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(clap::Subcommand, Debug)]
enum Experiment {
    /// Batches of requests: when do the replies leave, and what does that cost?
    Pipelining {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        options: lab::pipelining::Options,
    },
    /// One request at a time on few connections: what does it wait for?
    SingleConnection {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        options: lab::single_connection::Options,
    },
}

/// What every experiment is given.
#[derive(clap::Args, Clone, Debug)]
struct Common {
    /// Whom to measure: sheafdb, redis-server, valkey-server, pogocache, HOST:PORT, unix:PATH, model:NAME[,option=value]...,
    /// or a command with {port} or {sock}; LABEL= in front names it. May be given several times
    #[arg(long, value_name = "TARGET", value_parser = target)]
    target: Vec<Target>,
    /// Seconds of load per point
    #[arg(long, value_name = "S", value_parser = positive)]
    seconds: Option<f64>,
    /// Repetitions of each point
    #[arg(long, default_value_t = 1, value_name = "N")]
    repetitions: usize,
    /// Fewer points, less time each
    #[arg(long)]
    short: bool,
    /// Write a report to this file (HTML)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write all measurements and findings to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs one.
pub fn run(args: &Args) -> ExitCode {
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |s| s.as_secs());
    let (common, told) = match &args.experiment {
        Experiment::Pipelining { common, options } => {
            (common, lab::pipelining::run(&common.setup(), options, &mut say))
        }
        Experiment::SingleConnection { common, options } => {
            (common, lab::single_connection::run(&common.setup(), options, &mut say))
        }
    };
    match told.and_then(|told| common.tell(told, started_unix_s)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sheafdb-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(what: &str) {
    eprintln!("{what}");
}

fn target(text: &str) -> Result<Target, String> {
    Target::parse(text).map_err(|error| error.to_string())
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|s: &f64| s.is_finite() && *s > 0.0).ok_or("more than 0".to_owned())
}

impl Common {
    fn setup(&self) -> Setup {
        Setup {
            targets: self.target.clone(),
            seconds: self.seconds,
            short: self.short,
            repetitions: self.repetitions,
        }
    }

    fn tell(&self, told: Told, started_unix_s: u64) -> Result<(), Error> {
        print!("{}", text(&told));
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let machine = host::machine();
        if let Some(path) = &self.report {
            let title = "Laboratory".to_owned();
            let intro = vec![command.clone()];
            let document = Document { title, intro, sections: told.sections };
            write(path, &report::html(&document, &machine))?;
        }
        if let Some(path) = &self.json {
            let results = Results {
                format: 1,
                started_unix_s,
                command,
                machine,
                measurements: told.measurements,
                findings: told.findings,
            };
            let json = serde_json::to_string_pretty(&results).expect("plain data");
            write(path, &json)?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text)
        .map_err(|error| Error::Machine(format!("cannot write {}: {error}", path.display())))
}

/// Tables, remarks and findings as text.
fn text(told: &Told) -> String {
    let mut text = String::new();
    for section in &told.sections {
        let _ = writeln!(text, "{}\n", section.title);
        for paragraph in &section.prose {
            let _ = writeln!(text, "{paragraph}");
        }
        for table in &section.tables {
            text += &grid(table);
        }
    }
    text.push_str("\nFindings\n");
    for finding in &told.findings {
        let known = entry(finding.kind);
        let _ = writeln!(text, "{}: {} ({})", finding.target, known.name, known.blame.word());
        for line in &finding.evidence {
            let _ = writeln!(text, "    {line}");
        }
        for line in &finding.caveats {
            let _ = writeln!(text, "    caveat: {line}");
        }
    }
    text
}

/// A table with columns as wide as they must be.
fn grid(table: &Table) -> String {
    let width = |at: usize| {
        let cells = table.rows.iter().chain([&table.columns]).filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut text = format!("\n{}\n", table.title);
    for row in [&table.columns].into_iter().chain(&table.rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}
