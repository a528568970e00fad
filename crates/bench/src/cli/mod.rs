//! The command line: one file per subcommand, with its arguments and what it prints.

pub mod collections;
pub mod compare;
pub mod defaults;
pub mod ingest;
pub mod lab;
pub mod load;
pub mod serve;

pub use defaults::defaults;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::host;
use crate::result::Results;

/// How a subcommand ended: false if it failed and has said why, else an error is still to be
/// printed.
pub type Done = Result<bool, String>;

/// The exit status; prints an error.
pub fn exit(done: Done) -> ExitCode {
    let succeeded = done.unwrap_or_else(|why| {
        eprintln!("sheafdb-bench: {why}");
        false
    });
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Progress of a long command: each line goes to stderr with the seconds since now.
fn progress(name: &str) -> impl FnMut(&str) {
    let (name, started) = (name.to_owned(), Instant::now());
    move |what| eprintln!("{name} {:6.1} s  {what}", started.elapsed().as_secs_f64())
}

/// Results without measurements: when and where this command began.
fn begin_results() -> Results {
    Results {
        format: 1,
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        machine: host::machine(),
        ..Results::default()
    }
}

/// Writes results where they were asked for.
fn save_results(path: Option<&Path>, results: &Results) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string(results).expect("results have no maps with odd keys");
    save(path, &(text + "\n"))
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}
