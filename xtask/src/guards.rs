//! Instruction counts of the hot path. Wall time is not reliable on a shared machine; the number of
//! instructions of a fixed workload is the same in every run, so a bound on it detects regressions.
//!
//! Each line of `xtask/guards.txt` is `PACKAGE EXAMPLE WORK BOUND`. The example of that package,
//! started as `EXAMPLE WORK COUNT`, does the work COUNT times; callgrind counts two runs, and their
//! difference over the difference of COUNT is the cost of one, without start-up. `--update` writes
//! new bounds, with some margin above the counts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::release;

const BOUNDS: &str = "xtask/guards.txt";
/// The two repetition counts whose difference is measured. Workloads which cycle through several
/// inputs use 16: both counts are multiples of that, and the cost of the allocator, which varies
/// between runs, is small relative to their difference.
const FEW: u64 = 16;
const MANY: u64 = 496;
/// A new bound is this many percent above the measured count.
const ROOM_PERCENT: u64 = 2;

/// Counts every workload and compares it with its bound; one at a time on each processor, because
/// the counts are independent.
pub fn run(root: &Path, update: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(root.join(BOUNDS))
        .map_err(|e| format!("cannot read {BOUNDS}: {e}"))?;
    let is_guard = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let guards: Vec<Guard<'_>> =
        text.lines().filter(is_guard).map(parse).collect::<Result<_, _>>()?;
    let mut programs: Vec<String> =
        guards.iter().map(|guard| format!("--example={}", guard.example)).collect();
    programs.sort();
    programs.dedup();
    release::build(root, &programs)?;
    let costs = costs(root, &guards)?;
    let mut slower = Vec::new();
    for (Guard { package, example, work, bound }, cost) in guards.iter().zip(&costs) {
        println!("  {example:<16} {work:<16} {cost:>6} instructions, bound {bound}");
        if cost > bound {
            slower.push(format!("{package} {example} {work}: {cost} instructions, bound {bound}"));
        }
    }
    if update {
        let mut new =
            guards.iter().zip(&costs).map(|(Guard { package, example, work, .. }, cost)| {
                format!("{package} {example} {work} {}\n", cost + cost * ROOM_PERCENT / 100)
            });
        let line = |line: &str| {
            let bound = if is_guard(&line) { new.next() } else { None };
            bound.unwrap_or_else(|| format!("{line}\n"))
        };
        return std::fs::write(root.join(BOUNDS), text.lines().map(line).collect::<String>())
            .map_err(|e| format!("cannot write {BOUNDS}: {e}"));
    }
    if slower.is_empty() { Ok(()) } else { Err(slower.join("\n")) }
}

/// The cost of one repetition of each workload, in instructions.
fn costs(root: &Path, guards: &[Guard<'_>]) -> Result<Vec<u64>, String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(guard) = guards.get(at) else { return done };
            done.push((at, cost(root, guard)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, Result<u64, String>)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|one| one.join().expect("counting does not panic")).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, cost)| cost).collect()
}

fn cost(root: &Path, guard: &Guard<'_>) -> Result<u64, String> {
    Ok((count(root, guard, MANY)? - count(root, guard, FEW)?).div_ceil(MANY - FEW))
}

/// One line of the list.
#[derive(Debug, PartialEq)]
struct Guard<'a> {
    package: &'a str,
    example: &'a str,
    work: &'a str,
    bound: u64,
}

fn parse(line: &str) -> Result<Guard<'_>, String> {
    let bad = || format!("{BOUNDS}: '{line}' is not 'PACKAGE EXAMPLE WORK BOUND'");
    let words: Vec<&str> = line.split_whitespace().collect();
    let [package, example, work, bound] = words[..] else { return Err(bad()) };
    Ok(Guard { package, example, work, bound: bound.parse().map_err(|_| bad())? })
}

/// Instructions of one whole run.
fn count(root: &Path, guard: &Guard<'_>, times: u64) -> Result<u64, String> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(root.join("target/release/examples").join(guard.example))
        .args([guard.work, &times.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot start valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&out.stderr);
    let which = format!("{} {}", guard.example, guard.work);
    if !out.status.success() {
        return Err(format!("{which} failed under valgrind:\n{text}"));
    }
    collected(&text).ok_or(format!("valgrind reported no count for {which}:\n{text}"))
}

/// The number in valgrind's line `==pid== Collected : N`.
fn collected(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrind_output_is_parsed() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 123456\n"), Some(123_456));
        assert_eq!(collected("==7== nothing\n"), None);
    }

    #[test]
    fn bounds_are_read() {
        let guard = Guard { package: "p", example: "e", work: "get", bound: 180 };
        assert_eq!(parse("p e get 180"), Ok(guard));
        assert!(parse("p e get").is_err());
        assert!(parse("p e get many").is_err());
    }
}
