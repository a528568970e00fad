//! The whole check, step by step; the first failure ends it and names the step to repeat.

use std::path::Path;
use std::time::Instant;

use crate::run::{cargo, check, output};
use crate::{guards, tidy};

type Step = (&'static str, fn(&Path) -> Result<(), String>);

/// Cheap ones first.
const STEPS: &[Step] = &[
    ("fmt", |root| check(&mut cargo(root, &["fmt", "--all", "--check"]))),
    ("tidy", tidy::run),
    ("clippy", clippy),
    ("unit", unit),
    ("shuttle", shuttle),
    ("harness", |root| suite(root, "harness", &[])),
    ("golden", |root| suite(root, "golden", &[])),
    ("server", |root| suite(root, "server", &[])),
    ("ingest", |root| suite(root, "ingest", &[])),
    ("table", |root| suite(root, "command_table", &[])),
    ("differential", |root| suite(root, "differential", &[])),
    ("stress", |root| suite(root, "stress", &[])),
    ("blocking", |root| suite(root, "blocking", &[])),
    ("fuzz", |root| check(&mut cargo(root, &["test", "--quiet", "-p", "sheafdb-fuzz"]))),
    ("release", |root| check(&mut cargo(root, &["build", "--release", "-p", "sheafdb-server"]))),
    ("robust", |root| suite(root, "robust", RELEASE)),
    ("clients", |root| suite(root, "clients", RELEASE)),
    ("examples", |root| suite(root, "examples", RELEASE)),
    ("guards", |root| guards::run(root, false)),
];

/// Scenarios about speed, memory and real clients meet the binary that users get.
const RELEASE: &[(&str, &str)] = &[("SHEAFDB_PROFILE", "release")];

/// The crates whose kernels are model-checked, and what their model tests have in their paths.
const MODELLED: &[(&str, &str)] =
    &[("sheafdb-base", "sync::"), ("sheafdb-driver", "mailbox::"), ("sheafdb-keyspace", "models")];

/// The names of all steps.
pub fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|(name, _)| *name).collect()
}

/// Runs the named steps, or all of them.
pub fn run(root: &Path, only: &[&str]) -> Result<(), String> {
    if let Some(unknown) = only.iter().find(|name| !step_names().contains(name)) {
        return Err(format!("no step '{unknown}'; there are: {}", step_names().join(" ")));
    }
    let started = Instant::now();
    for (name, step) in STEPS.iter().filter(|(name, _)| only.is_empty() || only.contains(name)) {
        println!("== {name}");
        let since = Instant::now();
        step(root).map_err(|e| format!("{e}\n== {name} failed: cargo xtask ci {name}"))?;
        println!("== {name}: {:.1} s", since.elapsed().as_secs_f64());
    }
    println!("== all good in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn clippy(root: &Path) -> Result<(), String> {
    let args = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    check(&mut cargo(root, &args))
}

fn unit(root: &Path) -> Result<(), String> {
    check(&mut cargo(
        root,
        &[
            "test",
            "--workspace",
            "--exclude",
            "sheafdb-tests",
            "--exclude",
            "sheafdb-fuzz",
            "--quiet",
            "--no-fail-fast",
        ],
    ))
}

/// One suite of the tests crate.
fn suite(root: &Path, name: &str, settings: &[(&str, &str)]) -> Result<(), String> {
    let mut command =
        cargo(root, &["test", "--quiet", "--package", "sheafdb-tests", "--test", name]);
    command.args(["--", "--nocapture"]);
    command.envs(settings.iter().copied());
    check(&mut command)
}

/// Model tests need another build of everything, so they have a target folder of their own.
fn shuttle(root: &Path) -> Result<(), String> {
    for (package, filter) in MODELLED {
        let mut command = cargo(root, &["test", "--lib", "--quiet", "--package", package]);
        command.args(["--target-dir", "target/shuttle", "--", filter]);
        command.env("RUSTFLAGS", "--cfg shuttle");
        let told = output(&mut command)?;
        print!("{told}");
        if passed(&told) == 0 {
            return Err(format!("{package} has no model test that '{filter}' finds"));
        }
    }
    Ok(())
}

/// How many tests passed, from the lines `test result: ok. N passed; ...`.
fn passed(told: &str) -> u32 {
    told.lines()
        .filter_map(|line| {
            line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u32>().ok()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_step_is_told() {
        let told = run(Path::new("."), &["everything"]).expect_err("there is no such step");
        assert!(told.contains("no step 'everything'"), "{told}");
    }

    #[test]
    fn passed_tests_are_counted() {
        let line = |n| format!("test result: ok. {n} passed; 0 failed; 3 filtered out\n");
        assert_eq!(passed(&format!("running\n{}{}", line(4), line(11))), 15);
        assert_eq!(passed(&line(0)), 0);
    }
}
