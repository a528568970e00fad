//! Running other programs.

use std::path::Path;
use std::process::{Command, Stdio};

/// No step takes so many seconds even on a slow machine: what does hangs, and ends with what it has started.
const SECONDS_MAX: &str = "1500";

/// Cargo, the one that runs us; it is killed with its children when it hangs.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--verbose", "--kill-after=10", SECONDS_MAX]);
    command.arg(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root).stdin(Stdio::null());
    command
}

/// Runs it to its end; an error names the command line.
pub fn check(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed ({status}): {}", line(command))) }
}

/// Runs it to its end and returns what it printed to its standard output.
pub fn output(command: &mut Command) -> Result<String, String> {
    command.stderr(Stdio::inherit());
    let out = command.output().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if out.status.success() {
        return Ok(text);
    }
    Err(format!("{text}failed ({}): {}", out.status, line(command)))
}

fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}
