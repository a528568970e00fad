//! The whole check, step by step; the first failure ends it and names the step to repeat.

use std::path::Path;
use std::time::Instant;

use crate::run::{cargo, check, output};
use crate::{guards, lines, tidy};

type Step = (&'static str, fn(&Path) -> Result<(), String>);

/// Cheap ones first.
const STEPS: &[Step] = &[
    ("fmt", |root| check(&mut cargo(root, &["fmt", "--all", "--check"]))),
    ("tidy", |root| tidy::run(root, &[])),
    ("clippy", clippy),
    ("unit", unit),
    ("shuttle", shuttle),
    ("harness", |root| suite(root, "harness", &[])),
    ("golden", |root| both(root, "golden", &[])),
    ("io_backend", |root| suite(root, "io_backend", &[])),
    ("server", |root| both(root, "server", &[])),
    ("figures", |root| both(root, "figures", &[])),
    ("traffic", |root| both(root, "traffic", &[])),
    ("debug", |root| both(root, "debug", &[])),
    ("start", |root| both(root, "start", &[])),
    ("memory", |root| both(root, "memory", &[])),
    ("moment", |root| both(root, "moment", &[])),
    ("client_memory", |root| both(root, "client_memory", &[])),
    ("intset", |root| both(root, "intset", &[])),
    ("migrate", |root| both(root, "migrate", &[])),
    ("info", |root| both(root, "info", &[])),
    ("monitor", |root| both(root, "monitor", &[])),
    ("streams", |root| both(root, "streams", &[])),
    ("ingest", |root| both(root, "ingest", &[])),
    ("ingest_sinks", |root| both(root, "ingest_sinks", &[])),
    ("ingest2", |root| both(root, "ingest2", &[])),
    ("producers", |root| both(root, "producers", &[])),
    ("table", |root| suite(root, "command_table", &[])),
    ("differential", |root| both(root, "differential", &[])),
    ("stress", |root| both(root, "stress", &[])),
    ("serializable", |root| both(root, "serializable", &[])),
    ("trouble", |root| both(root, "trouble", &[])),
    ("blocking", |root| both(root, "blocking", &[])),
    ("serving", |root| both(root, "serving", &[])),
    ("nets", |root| both(root, "nets", &[])),
    ("due", |root| both(root, "due", &[])),
    ("fence", |root| both(root, "fence", &[])),
    ("gone", |root| both(root, "gone", &[])),
    ("holders", |root| both(root, "holders", &[])),
    ("holds", |root| both(root, "holds", &[])),
    ("flooding", |root| both(root, "flooding", &[])),
    ("clock", |root| both(root, "clock", &[])),
    ("fuzz", |root| check(&mut cargo(root, &["test", "--quiet", "-p", "sheafdb-fuzz"]))),
    ("release", |root| check(&mut cargo(root, &["build", "--release", "-p", "sheafdb-server"]))),
    ("robust", |root| both(root, "robust", RELEASE)),
    ("scale", |root| both(root, "scale", RELEASE)),
    ("stalls", |root| both(root, "stalls", RELEASE)),
    ("sizes", |root| both(root, "sizes", RELEASE)),
    ("admin", |root| both(root, "admin", RELEASE)),
    ("clients", |root| both(root, "clients", RELEASE)),
    ("cli", |root| both(root, "cli", RELEASE)),
    ("examples", |root| both(root, "examples", RELEASE)),
    ("packaging", |root| suite(root, "packaging", RELEASE)),
    ("guards", |root| guards::run(root, false)),
    ("lines", |root| lines::run(root, &[])),
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

/// One suite on every back end that this system allows.
fn both(root: &Path, name: &str, settings: &[(&str, &str)]) -> Result<(), String> {
    for back_end in io_backends(root)? {
        println!("== {name} on {back_end}");
        let since = Instant::now();
        let chosen = [settings, &[("SHEAFDB_IO_BACKEND", back_end)]].concat();
        suite(root, name, &chosen).map_err(|e| format!("on {back_end}: {e}"))?;
        println!("== {name} on {back_end}: {:.1} s", since.elapsed().as_secs_f64());
    }
    Ok(())
}

/// epoll, and io_uring unless it is forbidden here: a server that is told to use it would quietly use epoll again.
fn io_backends(root: &Path) -> Result<&'static [&'static str], String> {
    let args = ["test", "--package", "sheafdb-tests", "--lib", "--", "--nocapture"];
    let told = output(cargo(root, &args).arg("whether_io_uring_is_allowed_is_told"))?;
    if told.contains("io_uring is allowed") {
        Ok(&["epoll", "io_uring"])
    } else if told.contains("io_uring is forbidden") {
        println!("== io_uring is forbidden here: only on epoll");
        Ok(&["epoll"])
    } else {
        Err(format!("whether io_uring is allowed was not told:\n{told}"))
    }
}

/// Model tests need another build of everything, so they have a target folder of their own. One command for all crates:
/// what they share is built once.
fn shuttle(root: &Path) -> Result<(), String> {
    let mut command = cargo(root, &["test", "--lib", "--quiet", "--target-dir", "target/shuttle"]);
    for (package, _) in MODELLED {
        command.args(["--package", package]);
    }
    command.arg("--").args(MODELLED.iter().map(|(_, filter)| filter));
    command.env("RUSTFLAGS", "--cfg shuttle");
    let told = output(&mut command)?;
    print!("{told}");
    let crates = passed(&told).into_iter().filter(|count| *count > 0).count();
    if crates < MODELLED.len() {
        return Err(format!("of {} crates only {crates} have model tests", MODELLED.len()));
    }
    Ok(())
}

/// How many tests of each program passed, from the lines `test result: ok. N passed; ...`.
fn passed(told: &str) -> Vec<u32> {
    let count =
        |line: &str| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok();
    told.lines().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A suite that no step runs would be green for ever.
    #[test]
    fn every_suite_has_a_step() {
        let suites = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/tests");
        for file in std::fs::read_dir(suites).expect("it is there") {
            let path = file.expect("it can be read").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let step = if name == "command_table" { "table" } else { name };
            assert!(step_names().contains(&step), "no step runs the suite {name}");
        }
    }

    #[test]
    fn an_unknown_step_is_told() {
        let told = run(Path::new("."), &["everything"]).expect_err("there is no such step");
        assert!(told.contains("no step 'everything'"), "{told}");
    }

    #[test]
    fn passed_tests_are_counted() {
        let line = |n| format!("test result: ok. {n} passed; 0 failed; 3 filtered out\n");
        assert_eq!(passed(&format!("running\n{}{}", line(4), line(11))), [4, 11]);
        assert_eq!(passed(&line(0)), [0]);
    }
}
