//! The command line.

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "sheafdb-bench", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {}

fn main() {
    match Cli::parse().command {}
}
