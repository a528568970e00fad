//! Running other programs.

use std::path::Path;
use std::process::{Command, Stdio};

/// The cargo which runs this program.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root).stdin(Stdio::null());
    command
}

/// A cargo which builds the crates of the workspace under `--cfg NAME`. Their programs are in a
/// target folder of their own. What the crates use from elsewhere is the same with and without the
/// cfg: it is built once, in the usual folder.
pub fn cargo_cfg(root: &Path, cfg: &str, args: &[&str]) -> Command {
    let mut command = cargo(root, args);
    command.arg("--target-dir").arg(root.join("target").join(cfg));
    command.env("RUSTC_WORKSPACE_WRAPPER", root.join("tools/cfg").join(cfg));
    command.env("CARGO_BUILD_BUILD_DIR", root.join("target"));
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

/// How many tests of each program passed, from the lines `test result: ok. N passed; ...`.
pub fn passed(text: &str) -> Vec<u32> {
    let count =
        |line: &str| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok();
    text.lines().filter_map(count).collect()
}

/// Processor seconds of this process and of the children it has waited for. 0 where the system does
/// not report them.
pub fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    ticks(&text).unwrap_or(0) as f64 / TICKS_PER_S
}

/// The unit of these times on Linux.
const TICKS_PER_S: f64 = 100.0;

/// utime, stime, cutime and cstime. The second word, the name, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    words.get(11..15)?.iter().map(|word| word.parse::<u64>().ok()).sum()
}

fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 5 6 7 8 100 20 3 4 20 0 1";
        assert_eq!(ticks(stat), Some(127));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn passed_tests_are_counted() {
        let line = |n| format!("test result: ok. {n} passed; 0 failed; 3 filtered out\n");
        assert_eq!(passed(&format!("running\n{}{}", line(4), line(11))), [4, 11]);
        assert_eq!(passed(&line(0)), [0]);
    }
}
