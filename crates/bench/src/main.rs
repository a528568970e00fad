//! The command line.

use std::process::ExitCode;

use bench::cli::serve;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "sheafdb-bench", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sheafdb-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
