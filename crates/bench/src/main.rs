//! The command line.

use std::process::ExitCode;

use bench::cli;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "sheafdb-bench", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Load a server with requests; measure throughput, latency and CPU
    Load(Box<cli::load::Args>),
    /// Compare two files of measurements; show which differences are statistically significant
    Compare(cli::compare::Args),
    /// Compare servers on big collections: CPU per read, memory per element
    Collections(cli::collections::Args),
    /// Play traces to servers with a limit of memory: how many reads find their key
    Cache(Box<cli::lab::CacheArgs>),
    /// Load ingest listeners, or check the performance targets of ingest protocol 2
    Ingest(cli::ingest::Args),
    /// Run an experiment that explains the behaviour of a server, and write a report
    Lab(cli::lab::Args),
    Serve(cli::serve::Serve),
}

fn main() -> ExitCode {
    cli::exit(match Cli::parse().command {
        Command::Load(args) => cli::load::run(&args),
        Command::Compare(args) => cli::compare::run(&args),
        Command::Collections(args) => cli::collections::run(&args),
        Command::Cache(args) => cli::lab::run_cache(&args),
        Command::Ingest(args) => cli::ingest::run(&args),
        Command::Lab(args) => cli::lab::run(&args),
        Command::Serve(args) => cli::serve::run(&args),
    })
}
