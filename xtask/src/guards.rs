//! Instruction counts of the hot path. Wall time is no judge on a shared machine; the number of
//! instructions of a fixed piece of work is the same on every run, so a bound on it holds the line.
//!
//! Each line of `tests/hot_path.txt` is `NAME BOUND`. The program `hot_path NAME COUNT` does the work
//! COUNT times; callgrind counts two runs, and their difference over the difference of COUNT is the
//! cost of one, without start-up. `--update` writes the bounds anew, with some room above the count.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::run;

const BOUNDS: &str = "tests/hot_path.txt";
/// The two repetitions whose difference is measured.
const FEW: u64 = 2_000;
const MANY: u64 = 12_000;
/// A new bound stands this many percent above the count it was taken from.
const ROOM_PERCENT: u64 = 4;

/// Counts every piece of work and compares it with its bound.
pub fn run(root: &Path, update: bool) -> Result<(), String> {
    run::check(&mut run::cargo(
        root,
        &["build", "--quiet", "--release", "--package", "sheafdb-tests", "--bin", "hot_path"],
    ))?;
    let text = std::fs::read_to_string(root.join(BOUNDS))
        .map_err(|e| format!("cannot read {BOUNDS}: {e}"))?;
    let mut written = String::new();
    let mut slower = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            written.extend([line, "\n"]);
            continue;
        }
        let (name, bound) = parse(line)?;
        let cost = (count(root, name, MANY)? - count(root, name, FEW)?).div_ceil(MANY - FEW);
        println!("  {name:<28} {cost:>6} instructions, bound {bound}");
        if cost > bound {
            slower.push(format!("{name}: {cost} instructions, bound {bound}"));
        }
        let bound = cost + cost * ROOM_PERCENT / 100;
        written.extend([name, " ", &bound.to_string(), "\n"]);
    }
    if update {
        return std::fs::write(root.join(BOUNDS), written)
            .map_err(|e| format!("cannot write {BOUNDS}: {e}"));
    }
    if slower.is_empty() { Ok(()) } else { Err(slower.join("\n")) }
}

fn parse(line: &str) -> Result<(&str, u64), String> {
    let bad = || format!("{BOUNDS}: '{line}' is not 'NAME BOUND'");
    let (name, bound) = line.split_once(' ').ok_or_else(bad)?;
    Ok((name, bound.trim().parse().map_err(|_| bad())?))
}

/// Instructions of one whole run.
fn count(root: &Path, name: &str, times: u64) -> Result<u64, String> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(root.join("target/release/hot_path"))
        .args([name, &times.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot start valgrind: {e}"))?;
    let told = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        return Err(format!("hot_path {name} failed under valgrind:\n{told}"));
    }
    collected(&told).ok_or(format!("valgrind told no count for {name}:\n{told}"))
}

/// The number in valgrind's line `==pid== Collected : N`.
fn collected(told: &str) -> Option<u64> {
    let line = told.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_valgrind_says_is_understood() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 123456\n"), Some(123_456));
        assert_eq!(collected("==7== nothing\n"), None);
    }

    #[test]
    fn bounds_are_read() {
        assert_eq!(parse("frame_set 180"), Ok(("frame_set", 180)));
        assert!(parse("frame_set").is_err());
        assert!(parse("frame_set many").is_err());
    }
}
