//! `cargo xtask`: the project's own tools.
//!
//! - `cargo xtask ci [STEP...]` runs the whole check, or only the named steps;
//! - `cargo xtask tidy [--list|--lower]` checks the rules which the compiler does not;
//! - `cargo xtask docs [--check]` writes (or compares) the generated documents;
//! - `cargo xtask guards [--update]` counts instructions of the hot path;
//! - `cargo xtask sim --seed N|--seeds A..B|--hours H` runs servers in a simulated world;
//! - `cargo xtask lines [COMMAND own|same]` finds cache lines that two workers write.

// The files of this tree are named in lower case.
#![allow(clippy::case_sensitive_file_extension_comparisons)]

mod ci;
mod docs;
mod guards;
mod lines;
mod release;
mod run;
mod side_by_side;
mod sim;
mod tidy;
mod watchdog;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let rest: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("ci") => ci::run(&root, &rest),
        Some("tidy") => tidy::run(&root, &rest),
        Some("docs") => docs::run(&root, rest.contains(&"--check")),
        Some("guards") => guards::run(&root, rest.contains(&"--update")),
        Some("lines") => lines::run(&root, &rest),
        Some("sim") => sim::run(&root, &rest),
        _ => Err(format!(
            "usage: cargo xtask ci [STEP...] | tidy [--list|--lower] | docs [--check] | guards [--update] | lines [COMMAND own|same] | sim --seed N|--seeds A..B|--hours H\nsteps: {}",
            ci::step_names().join(" ")
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace: the folder above this crate.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask stands inside the root").into()
}
