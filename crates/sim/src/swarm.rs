//! Many seeds: each runs in a process of its own, so that nothing of it can touch the next.

use crate::run::Outcome;
use crate::world::Tally;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Failed seeds of a range that are shown whole.
const SHOWN_MAX: usize = 3;
/// A range stops after so many failed seeds.
const FAILED_MAX: usize = 20;

/// Which seeds run, and how.
#[derive(Clone, Debug)]
pub struct Range {
    /// The first.
    pub from: u64,
    /// One past the last.
    pub to: u64,
    /// How long clients make requests, simulated milliseconds.
    pub time_ms: u64,
    /// Each seed has an append-only file.
    pub journal: bool,
    /// Processes at a time.
    pub jobs: usize,
    /// No new seed starts after this time.
    pub limit: Option<Duration>,
    /// A file of seeds that run before the range: `SEED  # what it found`.
    pub kept: Option<String>,
}

/// What all seeds have shown.
#[derive(Debug, Default)]
struct Totals {
    seeds: u64,
    simulated_ns: u64,
    tally: BTreeMap<String, u64>,
    failed: Vec<(u64, String)>,
}

/// Writes what a run has counted, for the process that started it.
pub fn print_outcome(seed: u64, outcome: &Outcome) {
    println!("seed {seed} digest {:016x} simulated_ns {}", outcome.digest, outcome.simulated_ns);
    let tally: &Tally = &outcome.tally;
    for (kind, count) in tally {
        println!("counted {count} {kind}");
    }
}

/// Runs all seeds of a range and prints the totals.
pub fn run(range: &Range) -> ExitCode {
    let started = Instant::now();
    let kept = match range.kept.as_deref().map(read_kept).transpose() {
        Ok(kept) => kept.unwrap_or_default(),
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let (next, totals) = (AtomicU64::new(0), Mutex::new(Totals::default()));
    thread::scope(|scope| {
        for _ in 0..range.jobs {
            scope.spawn(|| work(range, &kept, &next, &totals, started));
        }
    });
    let totals = totals.into_inner().expect("no thread panics while it holds the totals");
    print(&totals, started.elapsed());
    if totals.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The seeds of a file.
fn read_kept(path: &str) -> Result<Vec<u64>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let seed = line.split_whitespace().next().and_then(|word| word.parse().ok());
            seed.ok_or_else(|| format!("{path}: '{line}' does not begin with a seed"))
        })
        .collect()
}

fn work(range: &Range, kept: &[u64], next: &AtomicU64, totals: &Mutex<Totals>, started: Instant) {
    loop {
        let number = next.fetch_add(1, Relaxed);
        let seed = match kept.get(number as usize) {
            Some(seed) => *seed,
            None => range.from + (number - kept.len() as u64),
        };
        let is_late = range.limit.is_some_and(|limit| started.elapsed() >= limit);
        if seed >= range.to && number >= kept.len() as u64 || is_late {
            return;
        }
        let output = child(seed, range);
        let mut totals = totals.lock().expect("no thread panics while it holds the totals");
        totals.add(seed, &output);
        if totals.failed.len() >= FAILED_MAX {
            return;
        }
    }
}

/// Runs one seed.
fn child(seed: u64, range: &Range) -> std::io::Result<Output> {
    Command::new(std::env::current_exe()?)
        .args(["--seed", &seed.to_string(), "--time", &range.time_ms.to_string()])
        .args(range.journal.then_some("--journal"))
        .stdin(Stdio::null())
        .output()
}

impl Totals {
    fn add(&mut self, seed: u64, output: &std::io::Result<Output>) {
        self.seeds += 1;
        let output = match output {
            Ok(output) => output,
            Err(why) => return self.failed.push((seed, format!("cannot run: {why}"))),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        for line in text.lines() {
            if let Some(counted) = line.strip_prefix("counted ")
                && let Some((count, kind)) = counted.split_once(' ')
            {
                *self.tally.entry(kind.to_owned()).or_default() += count.parse().unwrap_or(0);
            } else if let Some((_, ns)) = line.split_once(" simulated_ns ") {
                self.simulated_ns += ns.parse().unwrap_or(0);
            }
        }
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let failed = format!("{text}{errors}\nended with {}", output.status);
            if self.failed.len() < SHOWN_MAX {
                println!("{failed}\n== seed {seed} failed, number {} of this range\n", self.seeds);
            }
            self.failed.push((seed, failed));
        }
    }
}

fn print(totals: &Totals, took: Duration) {
    let hours = totals.simulated_ns as f64 / 3.6e12;
    println!("{} seeds, {hours:.3} simulated hours, in {:.1} s", totals.seeds, took.as_secs_f64());
    for (kind, count) in &totals.tally {
        println!("{count:>12}  {kind}");
    }
    for (seed, text) in &totals.failed {
        let prefix = format!("seed {seed}: ");
        let what = text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or("no report");
        println!("FAILED seed {seed}: {what}");
    }
}
