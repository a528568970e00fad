//! Finds cache lines which two workers write. valgrind's lackey traces every store of
//! `crates/server/examples/shared_lines.rs`, where two workers of one server serve alternately; a
//! line to which both stored while serving is shared. A round is 64 requests. With separate keys
//! and slots no line may be shared. When both read the same keys, only the lines of slots may be
//! shared. When both write the same keys, entries are shared as well, but no key comes twice: a
//! line which both wrote in many rounds is not an entry.
//!
//! It counts stores, not time: the same on every run and every machine.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::run;

const EXAMPLE: &str = "shared_lines";
const LINE: u64 = 64;
const WORKERS: usize = 2;
/// Rounds of each worker.
const ROUNDS: usize = 3;
/// Requests of a round.
const REQUESTS: usize = 64;
/// A worker writes an entry in one round; an adjacent entry in the same line may be written in
/// another round.
const ENTRY_ROUNDS_MAX: usize = 2;

/// The command, whose keys it uses, and which lines may be shared.
const CHECKS: &[(&str, &str, Allowed)] = &[
    ("get", "own", Allowed::Nothing),
    ("set", "own", Allowed::Nothing),
    ("get", "same", Allowed::Slots),
    ("set", "same", Allowed::SlotsAndEntries),
];

/// Lines that may be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Nothing,
    Slots,
    SlotsAndEntries,
}

/// Checks the paths of GET and SET; or, with a command and `own` or `same`, prints which lines that
/// command shares.
pub fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    // The test build: the addresses of stores do not depend on optimisation.
    let build = ["build", "--quiet", "--package", "sheafdb-server", "--example", EXAMPLE];
    run::check(&mut run::cargo(root, &build))?;
    let wanted: Vec<(&str, &str, Allowed)> = match args {
        [] => CHECKS.to_vec(),
        [command, keys] => vec![(command, keys, Allowed::Nothing)],
        _ => return Err("lines [COMMAND own|same]".to_owned()),
    };
    let traced: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let started: Vec<_> = wanted
            .iter()
            .map(|&(command, keys, allowed)| {
                scope.spawn(move || check(root, command, keys, allowed))
            })
            .collect();
        let join =
            |t: std::thread::ScopedJoinHandle<'_, _>| t.join().expect("tracing does not panic");
        started.into_iter().map(join).collect()
    });
    let wrong: Vec<String> = traced.into_iter().filter_map(Result::err).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn check(root: &Path, command: &str, keys: &str, allowed: Allowed) -> Result<(), String> {
    let trace = trace(root, command, keys)?;
    let (slots, others) = trace.shared();
    let per_request = slots.len() as f64 / (REQUESTS * ROUNDS) as f64;
    println!(
        "  {command:<8} {keys:<6} {} lines written; by both workers: {per_request:.2} of a slot per request, {} others",
        trace.lines.len(),
        others.len(),
    );
    let is_wrong = |line: &&Shared| match allowed {
        Allowed::SlotsAndEntries => line.rounds > ENTRY_ROUNDS_MAX,
        Allowed::Nothing | Allowed::Slots => true,
    };
    let mut wrong: Vec<&Shared> = others.iter().filter(is_wrong).collect();
    if allowed == Allowed::Nothing {
        wrong.extend(&slots);
    }
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.sort_by_key(|line| std::cmp::Reverse(line.stores));
    let shared: Vec<String> =
        wrong.iter().take(12).map(|line| trace.describe(root, line)).collect();
    Err(format!(
        "{command} on {keys} keys: {} lines are written by both workers:\n{}",
        wrong.len(),
        shared.join("\n")
    ))
}

/// Addresses in the traced process, as it prints them.
struct Places {
    executable: u64,
    marks: Vec<u64>,
    slots: Range<u64>,
}

impl Places {
    fn parse(text: &str) -> Option<Self> {
        let words: Option<Vec<u64>> =
            text.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok()).collect();
        let words = words.filter(|words| words.len() == WORKERS + 4)?;
        let (marks, rest) = words[1..].split_at(WORKERS + 1);
        Some(Self { executable: words[0], marks: marks.to_vec(), slots: rest[0]..rest[1] })
    }
}

/// Stores to one line while a worker served.
#[derive(Clone, Debug, Default)]
struct Line {
    stores: [u64; WORKERS],
    rounds: [usize; WORKERS],
    /// The round of each worker's last store, counted over both.
    last: [usize; WORKERS],
    /// Instructions that stored: the first few.
    by: Vec<u64>,
}

/// A line that both stored to.
#[derive(Clone, Debug)]
struct Shared {
    address: u64,
    stores: u64,
    /// The smaller of the two workers' numbers of rounds.
    rounds: usize,
    by: Vec<u64>,
}

/// The stores of a run.
struct Trace {
    places: Places,
    lines: HashMap<u64, Line>,
}

impl Trace {
    /// The lines to which both stored: those of slots, and others.
    fn shared(&self) -> (Vec<Shared>, Vec<Shared>) {
        let both = self.lines.iter().filter(|(_, line)| line.stores.iter().all(|&n| n > 0));
        let shared = both.map(|(&number, line)| Shared {
            address: number * LINE,
            stores: line.stores.iter().sum(),
            rounds: *line.rounds.iter().min().expect("there are workers"),
            by: line.by.clone(),
        });
        shared.partition(|line| self.places.slots.contains(&line.address))
    }

    /// Describes a line for the report: its address and the code which stored to it.
    fn describe(&self, root: &Path, line: &Shared) -> String {
        let what = if self.places.slots.contains(&line.address) { "slot" } else { "line" };
        let code: Vec<String> = line
            .by
            .iter()
            .map(|pc| source(root, pc.wrapping_sub(self.places.executable)))
            .collect();
        format!("  {what} {:x}: {} stores, by {}", line.address, line.stores, code.join(", "))
    }
}

/// The function and line of an instruction.
fn source(root: &Path, offset: u64) -> String {
    let located = Command::new("addr2line")
        .args(["-C", "-f", "-p", "-s", "-e"])
        .arg(root.join("target/debug/examples").join(EXAMPLE))
        .arg(format!("{offset:x}"))
        .output();
    match located {
        Ok(out) if out.status.success() => String::from_utf8_lossy(&out.stdout).trim().to_owned(),
        _ => format!("{offset:x}"),
    }
}

fn trace(root: &Path, command: &str, keys: &str) -> Result<Trace, String> {
    let mut child = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
        .arg(root.join("target/debug/examples").join(EXAMPLE))
        .args([command, keys, &ROUNDS.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start valgrind: {e}"))?;
    let places = OnceLock::new();
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let stderr = child.stderr.take().ok_or("valgrind has no standard error")?;
    let collected = std::thread::scope(|scope| {
        let places = &places;
        let reader = scope.spawn(move || collect(stderr, places));
        // The process waits for a line before the rounds that count, so none of their stores comes
        // before the places.
        let mut printed = String::new();
        if let (Some(stdout), Some(stdin)) = (stdout, &mut stdin) {
            let _ = BufReader::new(stdout).read_line(&mut printed);
            if let Some(found) = Places::parse(&printed) {
                let _ = places.set(found);
            }
            let _ = stdin.write_all(b"\n"); // if it has ended, its status says why
        }
        reader.join().expect("the reader does not panic")
    });
    let (lines, messages) = collected?;
    let status = child.wait().map_err(|e| e.to_string())?;
    match places.into_inner() {
        Some(places) if status.success() && !lines.is_empty() => Ok(Trace { places, lines }),
        _ => {
            Err(format!("{EXAMPLE} {command} {keys} failed under valgrind ({status}):\n{messages}"))
        }
    }
}

/// Reads a trace to its end: the stores in rounds, and all other output.
fn collect(
    trace: impl Read,
    places: &OnceLock<Places>,
) -> Result<(HashMap<u64, Line>, String), String> {
    let mut lines: HashMap<u64, Line> = HashMap::new();
    let (mut messages, mut text) = (String::new(), Vec::new());
    let (mut serving, mut round, mut pc) = (None, 0, 0);
    let mut trace = BufReader::with_capacity(1 << 20, trace);
    loop {
        text.clear();
        match trace.read_until(b'\n', &mut text) {
            Ok(0) => return Ok((lines, messages)),
            Ok(_) => {}
            Err(e) => return Err(format!("the trace ended: {e}")),
        }
        match &text[..] {
            [b'I', b' ', ..] if serving.is_some() => pc = address(&text),
            [b' ', b'S' | b'M', ..] => {
                let Some(places) = places.get() else { continue };
                let at = address(&text);
                if let Some(mark) = places.marks.iter().position(|&mark| mark == at) {
                    serving = Some(mark).filter(|&worker| worker < WORKERS);
                    round += 1;
                } else if let Some(worker) = serving {
                    for number in at / LINE..=(at + size(&text) - 1) / LINE {
                        lines.entry(number).or_default().store(worker, round, pc);
                    }
                }
            }
            [b'I' | b' ', ..] => {}
            _ => messages.push_str(&String::from_utf8_lossy(&text)),
        }
    }
}

impl Line {
    fn store(&mut self, worker: usize, round: usize, pc: u64) {
        self.stores[worker] += 1;
        if self.last[worker] != round {
            self.last[worker] = round;
            self.rounds[worker] += 1;
        }
        if self.by.len() < 4 && !self.by.contains(&pc) {
            self.by.push(pc);
        }
    }
}

/// The address in ` S 1ffeff,8`.
fn address(line: &[u8]) -> u64 {
    let digits = line[3..].iter().map_while(|&b| char::from(b).to_digit(16));
    digits.fold(0, |sum, digit| sum << 4 | u64::from(digit))
}

/// The number of bytes in it, at least one.
fn size(line: &[u8]) -> u64 {
    let digits = line.iter().skip_while(|&&b| b != b',').skip(1);
    let digits = digits.map_while(|&b| char::from(b).to_digit(10));
    digits.fold(0, |sum, digit| sum * 10 + u64::from(digit)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "108000 1000 1080 1100 40000 80000\n";

    fn traced(text: &str) -> Trace {
        let places = OnceLock::from(Places::parse(PRINTED).expect("well formed"));
        let (lines, _) = collect(text.as_bytes(), &places).expect("whole");
        Trace { places: places.into_inner().expect("set"), lines }
    }

    #[test]
    fn lines_written_by_both_workers_are_found() {
        let text = "==1== lackey\nI  0010a000,4\n S 00005000,8\n S 00001000,8\nI  0010a004,3\n S 00005000,8\n M 00040008,4\n\
             \x20S 00006000,8\n S 00001100,8\n S 00007000,8\n S 00001080,8\nI  0010a010,3\n S 00004ffc,8\n S 0004003f,1\n\
             \x20L 00006000,8\n S 00001100,8\n S 00006000,8\n";
        let (slots, others) = traced(text).shared();
        let at = |lines: &[Shared]| lines.iter().map(|l| (l.address, l.stores)).collect::<Vec<_>>();
        assert_eq!((at(&slots), at(&others)), (vec![(0x40000, 2)], vec![(0x5000, 2)]));
        assert_eq!(others[0].by, [0x10_a004, 0x10_a010]);
        assert_eq!(others[0].rounds, 1);
    }

    #[test]
    fn lines_written_by_one_worker_are_not_shared() {
        let text = " S 00001000,8\n S 00005000,8\n S 00001100,8\n S 00001000,8\n S 00005000,8\n S 00001100,8\n";
        let trace = traced(text);
        assert_eq!(trace.lines[&(0x5000 / LINE)].rounds, [2, 0]);
        let (slots, others) = trace.shared();
        assert!(slots.is_empty() && others.is_empty());
    }

    #[test]
    fn malformed_addresses_are_refused() {
        assert!(Places::parse("1 2 3").is_none() && Places::parse("").is_none());
        assert!(Places::parse("1 2 3 4 5 x").is_none());
    }
}
