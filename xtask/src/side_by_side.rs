//! Runs steps concurrently. Suites spend half of their time waiting for timers and sockets, and a
//! build ends with a single linking thread: one step more than there are processors keeps all of
//! them busy. Each step runs in its own process, as `cargo xtask ci NAME`. Its output is printed
//! when it ends, so that lines of different steps do not mix, and is kept in `target/ci/NAME.log`.
//! Its last lines are repeated at the very end if it fails: others may see no more of the output.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};

/// Maximum number of concurrent steps; more would exhaust memory, as some suites hold gigabytes.
const RUNNERS_MAX: usize = 3;
/// The folder for the output of each step.
const LOGS: &str = "target/ci";
/// How many lines of a failed step are repeated.
const LAST_LINES: usize = 40;
/// How many characters of each.
const LINE_MAX: usize = 240;

/// The steps in their start order, each with the steps which must have passed before.
pub struct Plan(pub Vec<(&'static str, &'static [&'static str])>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Passed,
}

/// The state of all steps.
struct Progress {
    states: Vec<State>,
    failed: Option<String>,
}

impl Progress {
    fn new(plan: &Plan) -> Self {
        Self { states: vec![State::Waiting; plan.0.len()], failed: None }
    }

    /// Whether no step is left to start.
    fn is_over(&self) -> bool {
        self.failed.is_some() || !self.states.contains(&State::Waiting)
    }

    /// The first step which is ready to start.
    fn ready(&self, plan: &Plan) -> Option<usize> {
        let passed = |need: &&str| {
            plan.0
                .iter()
                .zip(&self.states)
                .any(|((name, _), s)| name == need && *s == State::Passed)
        };
        (0..plan.0.len())
            .find(|at| self.states[*at] == State::Waiting && plan.0[*at].1.iter().all(passed))
    }
}

/// Runs all steps; the first failure is the error, and no step is started after it.
pub fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    let logs = root.join(LOGS);
    std::fs::create_dir_all(&logs).map_err(|e| format!("cannot make {LOGS}: {e}"))?;
    let program = std::env::current_exe().map_err(|e| format!("where is this program? {e}"))?;
    let one = |name: &'static str| -> Result<(), String> {
        println!("== {name} starts");
        let log = logs.join(format!("{name}.log"));
        let passed = apart(&program, name, &log)?;
        // One write: lines of two steps do not mix.
        let printed =
            std::fs::read(&log).map_err(|e| format!("cannot read {}: {e}", log.display()))?;
        let printed = String::from_utf8_lossy(&printed);
        print!("{printed}");
        if passed {
            Ok(())
        } else {
            let end = end_of(&printed);
            Err(format!("{end}== {name} failed; its output is {LOGS}/{name}.log, its end is above"))
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let runners = (processors + 1).min(RUNNERS_MAX);
    all(plan, runners, one)
}

/// Runs the steps on this many runner threads.
fn all(
    plan: &Plan,
    runners: usize,
    one: impl Fn(&'static str) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let (progress, changed) = (Mutex::new(Progress::new(plan)), Condvar::new());
    let held = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let runner = || loop {
        let mut now = held();
        let at = loop {
            if now.is_over() {
                return;
            }
            if let Some(at) = now.ready(plan) {
                break at;
            }
            now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        };
        now.states[at] = State::Running;
        drop(now);
        let outcome = one(plan.0[at].0);
        let mut now = held();
        match outcome {
            Ok(()) => now.states[at] = State::Passed,
            Err(why) => now.failed = Some(now.failed.take().unwrap_or(why)),
        }
        changed.notify_all();
    };
    std::thread::scope(|scope| {
        for _ in 0..runners {
            scope.spawn(runner);
        }
    });
    held().failed.take().map_or(Ok(()), Err)
}

/// The last lines, without empty ones, each with its end.
fn end_of(text: &str) -> String {
    let mut last: Vec<&str> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES).collect();
    last.reverse();
    last.iter().flat_map(|line| line.chars().take(LINE_MAX).chain(['\n'])).collect()
}

/// Runs one step in its own process with its output in `log`; returns whether it passed.
fn apart(program: &Path, name: &str, log: &Path) -> Result<bool, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", log.display());
    let out = File::create(log).map_err(failed)?;
    let errors = out.try_clone().map_err(failed)?;
    let mut step = Command::new(program);
    step.args(["ci", name]).stdin(Stdio::null()).stdout(out).stderr(errors);
    let status = step.status().map_err(|e| format!("cannot start {}: {e}", program.display()))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: [(&str, &[&str]); 5] =
        [("a", &[]), ("b", &["a"]), ("c", &[]), ("d", &["b", "c"]), ("e", &[])];

    fn order(runners: usize, failing: &str) -> (Vec<&'static str>, Result<(), String>) {
        let begun = Mutex::new(Vec::new());
        let one = |name: &'static str| {
            begun.lock().expect("nobody panicked").push(name);
            if name == failing { Err(name.to_owned()) } else { Ok(()) }
        };
        let outcome = all(&Plan(PLAN.to_vec()), runners, one);
        (begun.into_inner().expect("nobody panicked"), outcome)
    }

    #[test]
    fn the_end_of_an_output_has_its_last_lines() {
        let text = "a\n\nb\n".repeat(50);
        let end = end_of(&format!("{text}{}", "é".repeat(1000)));
        assert_eq!(end.lines().count(), LAST_LINES);
        assert_eq!(end.lines().next(), Some("b"));
        assert_eq!(end.lines().last(), Some(&*"é".repeat(LINE_MAX)));
        assert_eq!((end_of(""), end_of("a")), (String::new(), "a\n".into()));
    }

    #[test]
    fn one_runner_starts_steps_in_order() {
        assert_eq!(order(1, ""), (vec!["a", "b", "c", "d", "e"], Ok(())));
    }

    #[test]
    fn a_step_starts_after_the_steps_it_needs() {
        for _ in 0..100 {
            let (begun, outcome) = order(2, "");
            let at = |name| begun.iter().position(|begun| *begun == name).expect("it ran");
            assert_eq!((begun.len(), outcome), (5, Ok(())));
            assert!(at("a") < at("b") && at("b") < at("d") && at("c") < at("d"), "{begun:?}");
        }
    }

    #[test]
    fn no_step_starts_after_a_failure() {
        assert_eq!(order(1, "b"), (vec!["a", "b"], Err("b".into())));
        let (begun, outcome) = order(2, "a");
        assert_eq!(outcome, Err("a".into()));
        assert!(!begun.contains(&"b"), "{begun:?}");
    }

    #[test]
    fn independent_steps_run_concurrently() {
        // Two runners: 'a' ends only after 'c' has begun.
        let (started, changed) = (Mutex::new(false), Condvar::new());
        let one = |name: &'static str| {
            if name == "c" {
                *started.lock().expect("nobody panicked") = true;
                changed.notify_all();
            } else if name == "a" {
                let waiting = started.lock().expect("nobody panicked");
                drop(changed.wait_while(waiting, |started| !*started).expect("it begins"));
            }
            Ok(())
        };
        assert_eq!(all(&Plan(PLAN.to_vec()), 2, one), Ok(()));
    }
}
