//! Running other programs.

use std::path::Path;
use std::process::{Command, Stdio};

/// Cargo, the one that runs us.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
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
