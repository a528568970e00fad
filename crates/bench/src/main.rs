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
    /// Put a load on a server and measure it
    Load(Box<cli::load::Args>),
    /// Compare two files of measurements, and say what is no chance
    Compare(cli::compare::Args),
    /// Read big collections, or see what their elements take, beside another server
    Collections(cli::collections::Args),
    /// Send messages to ingest listeners, and measure what protocol 2 must hold
    Ingest(cli::ingest::Args),
    /// Run an experiment that explains how a server behaves
    Lab(cli::lab::Args),
    Serve(cli::serve::Serve),
}

fn main() -> ExitCode {
    cli::exit(match Cli::parse().command {
        Command::Load(args) => cli::load::run(&args),
        Command::Compare(args) => cli::compare::run(&args),
        Command::Collections(args) => cli::collections::run(&args),
        Command::Ingest(args) => cli::ingest::run(&args),
        Command::Lab(args) => cli::lab::run(&args),
        Command::Serve(args) => cli::serve::run(&args),
    })
}
