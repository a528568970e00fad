//! Runs all checks in steps; the first failure ends the run and names the step to repeat.

use std::path::Path;
use std::time::Instant;

use crate::run::{cargo, cargo_cfg, check, cpu_s, output, passed};
use crate::side_by_side::{self, Plan};
use crate::watchdog::{self, watch};
use crate::{guards, lines, release, sim, tidy};

/// A step: its name, the steps which must have passed before, and its function. The order only
/// saves time: each step builds the programs it needs.
type Step = (&'static str, &'static [&'static str], fn(&Path) -> Result<(), String>);

/// Needed by steps which run programs of the test build.
const BUILT: &[&str] = &["build"];
/// Needed by steps which also run programs of the release build.
const RELEASED: &[&str] = &["build", "release"];

/// Cheap steps first, then the builds, then the suites, longest first: the last steps are short, so
/// that all processors finish at about the same time.
#[rustfmt::skip]
const STEPS: &[Step] = &[
    ("fmt", &[], |root| check(&mut cargo(root, &["fmt", "--all", "--check"]))),
    ("tidy", &[], |root| tidy::run(root, &[])),
    ("clippy", &[], clippy),
    ("release", &[], release::run),
    ("shuttle", &[], shuttle),
    ("baton", &[], baton),
    ("sim", &["baton"], sim::step),
    ("build", &["clippy"], build),
    ("unit", BUILT, unit),
    ("harness", BUILT, harness),
    ("stalls", RELEASED, |root| suite(root, "stalls", RELEASE)),
    ("crash", BUILT, |root| suite(root, "crash", &[])),
    ("ingest_crash", BUILT, |root| suite(root, "ingest_crash", &[])),
    ("guards", &["release"], |root| guards::run(root, false)),
    ("admin", RELEASED, |root| suite(root, "admin", RELEASE)),
    ("producers", BUILT, |root| both(root, "producers", &[])),
    ("lines", BUILT, |root| lines::run(root, &[])),
    ("ingest", BUILT, |root| both(root, "ingest", &[])),
    ("eviction", BUILT, |root| suite(root, "eviction", &[])),
    ("db_limit", BUILT, |root| suite(root, "db_limit", &[])),
    ("memory", BUILT, |root| suite(root, "memory", &[])),
    ("defrag", BUILT, |root| both(root, "defrag", &[])),
    ("slow_reader", RELEASED, |root| both(root, "slow_reader", RELEASE)),
    ("differential", BUILT, |root| suite(root, "differential", &[])),
    ("examples", RELEASED, |root| suite(root, "examples", RELEASE)),
    ("clients", RELEASED, |root| both(root, "clients", RELEASE)),
    ("robust", RELEASED, |root| both(root, "robust", RELEASE)),
    ("golden", BUILT, |root| suite(root, "golden", &[])),
    ("sizes", RELEASED, |root| suite(root, "sizes", RELEASE)),
    ("packaging", RELEASED, |root| program(root, "packaging", RELEASE)),
    ("scale", RELEASED, |root| both(root, "scale", RELEASE)),
    ("migrate", BUILT, |root| both(root, "migrate", &[])),
    ("gone", BUILT, |root| both(root, "gone", &[])),
    ("stress", BUILT, |root| suite(root, "stress", &[])),
    ("fence", BUILT, |root| suite(root, "fence", &[])),
    ("holds", BUILT, |root| both(root, "holds", &[])),
    ("server", BUILT, |root| both(root, "server", &[])),
    ("holders", BUILT, |root| suite(root, "holders", &[])),
    ("moving", BUILT, |root| both(root, "moving", &[])),
    ("debug", BUILT, |root| suite(root, "debug", &[])),
    ("cli", RELEASED, |root| suite(root, "cli", RELEASE)),
    ("fuzz", BUILT, |root| program(root, "bounded", &[])),
    ("client_memory", BUILT, |root| both(root, "client_memory", &[])),
    ("ingest2", BUILT, |root| both(root, "ingest2", &[])),
    ("ingest_sinks", BUILT, |root| both(root, "ingest_sinks", &[])),
    ("blocking", BUILT, |root| suite(root, "blocking", &[])),
    ("trouble", BUILT, |root| suite(root, "trouble", &[])),
    ("due", BUILT, |root| suite(root, "due", &[])),
    ("nets", BUILT, |root| both(root, "nets", &[])),
    ("serializable", BUILT, |root| suite(root, "serializable", &[])),
    ("serving", BUILT, |root| suite(root, "serving", &[])),
    ("hotkeys", BUILT, |root| suite(root, "hotkeys", &[])),
    ("info", BUILT, |root| suite(root, "info", &[])),
    ("monitor", BUILT, |root| suite(root, "monitor", &[])),
    ("pubsub", BUILT, |root| both(root, "pubsub", &[])),
    ("key_events", BUILT, |root| both(root, "key_events", &[])),
    ("tracking", BUILT, |root| both(root, "tracking", &[])),
    ("messages", RELEASED, |root| suite(root, "messages", RELEASE)),
    ("io_backend", BUILT, |root| suite(root, "io_backend", &[])),
    ("traffic", BUILT, |root| both(root, "traffic", &[])),
    ("flooding", BUILT, |root| both(root, "flooding", &[])),
    ("figures", BUILT, |root| suite(root, "figures", &[])),
    ("start", BUILT, |root| suite(root, "start", &[])),
    ("streams", BUILT, |root| suite(root, "streams", &[])),
    ("rdb_files", BUILT, |root| suite(root, "rdb_files", &[])),
    ("aof_load", BUILT, |root| suite(root, "aof_load", &[])),
    ("aof_history", BUILT, |root| suite(root, "aof_history", &[])),
    ("aof_offset", BUILT, |root| suite(root, "aof_offset", &[])),
    ("aof_reload", BUILT, |root| suite(root, "aof_reload", &[])),
    ("aof_settings", BUILT, |root| suite(root, "aof_settings", &[])),
    ("waitaof", BUILT, |root| suite(root, "waitaof", &[])),
    ("check_aof", BUILT, |root| suite(root, "check_aof", &[])),
    ("loading", BUILT, |root| suite(root, "loading", &[])),
    ("saving", BUILT, |root| suite(root, "saving", &[])),
    ("limits", BUILT, |root| both(root, "limits", &[])),
    ("captured", BUILT, |root| suite(root, "captured", &[])),
    ("supervisor", BUILT, |root| suite(root, "supervisor", &[])),
    ("snapshots", BUILT, |root| suite(root, "snapshots", &[])),
    ("backup", BUILT, |root| suite(root, "backup", &[])),
    ("backup_schedule", BUILT, |root| suite(root, "backup_schedule", &[])),
    ("point_in_time", BUILT, |root| suite(root, "point_in_time", &[])),
    ("moment", BUILT, |root| suite(root, "moment", &[])),
    ("clock", BUILT, |root| suite(root, "clock", &[])),
    ("intset", BUILT, |root| suite(root, "intset", &[])),
    ("table", BUILT, |root| suite(root, "command_table", &[])),
];

/// Suites about speed, memory and real clients run the release binary.
const RELEASE: &[(&str, &str)] = &[("SHEAFDB_PROFILE", "release")];

/// The crates with model tests, and a part of the paths of these tests.
const MODELLED: &[(&str, &str)] =
    &[("sheafdb-base", "sync::"), ("sheafdb-driver", "mailbox::"), ("sheafdb-keyspace", "models")];

/// The crates with tests of simulated worlds, and what these have in their paths.
const SIMULATED: &[(&str, &str)] = &[("sheafdb-base", "sync::")];

/// The names of all steps.
pub fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|(name, ..)| *name).collect()
}

/// Runs the named steps one after the other, or all steps, several at a time.
pub fn run(root: &Path, only: &[&str]) -> Result<(), String> {
    if let Some(unknown) = only.iter().find(|name| !step_names().contains(name)) {
        return Err(format!("no step '{unknown}'; there are: {}", step_names().join(" ")));
    }
    let started = Instant::now();
    if only.is_empty() {
        let plan = STEPS.iter().map(|(name, needs, _)| (*name, *needs)).collect();
        watch("the whole check", watchdog::WHOLE, || side_by_side::run(root, &Plan(plan)))?;
    }
    for (name, _, step) in STEPS.iter().filter(|(name, ..)| only.contains(name)) {
        println!("== {name}");
        let (since, used) = (Instant::now(), cpu_s());
        let outcome = watch(name, watchdog::STEP, || step(root));
        outcome.map_err(|e| format!("{e}\n== {name} failed: cargo xtask ci {name}"))?;
        println!(
            "== {name}: {:.1} s, {:.1} s of CPU",
            since.elapsed().as_secs_f64(),
            cpu_s() - used
        );
    }
    if only.len() != 1 {
        println!("== all passed in {:.0} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}

fn clippy(root: &Path) -> Result<(), String> {
    let args = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    check(&mut cargo(root, &args))
}

/// The crates of the product and the tools, without the suites. Cargo unites the features of what
/// it builds together, so that another selection could build the same crates again.
const UNITS: &[&str] =
    &["test", "--workspace", "--exclude", "sheafdb-tests", "--exclude", "sheafdb-fuzz", "--quiet"];

/// The suites, and the runner of the fuzz targets. Together they need the same features of what
/// they share with the product, so that nothing of it is built again.
const SUITES: &[&str] =
    &["test", "--quiet", "--package", "sheafdb-tests", "--package", "sheafdb-fuzz"];

/// Every program that the later steps run: all at once keeps all processors busy.
fn build(root: &Path) -> Result<(), String> {
    check(cargo(root, UNITS).args(["--tests", "--no-run"]))?;
    check(&mut cargo(root, &["build", "--quiet", "--package", "sheafdb-server"]))?;
    check(cargo(root, SUITES).arg("--no-run"))
}

/// Without the examples: clippy compiles them, and steps which run one build it.
fn unit(root: &Path) -> Result<(), String> {
    check(cargo(root, UNITS).args(["--tests", "--no-fail-fast"]))?;
    check(cargo(root, UNITS).args(["--doc", "--no-fail-fast"]))
}

/// The tests of the test harness and of the fuzz runner, and then how the harness judges damaged
/// replies.
fn harness(root: &Path) -> Result<(), String> {
    check(cargo(root, SUITES).arg("--lib"))?;
    suite(root, "harness", &[])
}

/// One suite of the tests crate: the others are in the same program.
fn suite(root: &Path, name: &str, settings: &[(&str, &str)]) -> Result<(), String> {
    let mut command = cargo(root, SUITES);
    command.args(["--test", "all", "--", "--nocapture", &format!("suite::{name}::")]);
    command.envs(settings.iter().copied());
    check(&mut command)
}

/// A suite which is a program of its own.
fn program(root: &Path, name: &str, settings: &[(&str, &str)]) -> Result<(), String> {
    let mut command = cargo(root, SUITES);
    command.args(["--test", name, "--", "--nocapture"]);
    command.envs(settings.iter().copied());
    check(&mut command)
}

/// One suite on every back end which this system allows: for suites about connections and buffers.
/// A suite about the results of commands runs once, on the back end which the server chooses.
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

/// epoll, and io_uring unless it is forbidden here: a server configured for io_uring would fall
/// back to epoll.
fn io_backends(root: &Path) -> Result<&'static [&'static str], String> {
    let mut command = cargo(root, SUITES);
    command.args(["--lib", "--", "--nocapture", "reports_whether_io_uring_is_allowed"]);
    let text = output(&mut command)?;
    if text.contains("io_uring is allowed") {
        Ok(&["epoll", "io_uring"])
    } else if text.contains("io_uring is forbidden") {
        println!("== io_uring is forbidden here: only on epoll");
        Ok(&["epoll"])
    } else {
        Err(format!("the test did not report whether io_uring is allowed:\n{text}"))
    }
}

fn shuttle(root: &Path) -> Result<(), String> {
    library_tests(root, "shuttle", MODELLED)
}

/// The baton's own tests, and whole servers in worlds of it.
fn baton(root: &Path) -> Result<(), String> {
    library_tests(root, "sim", SIMULATED)?;
    let worlds = ["test", "--quiet", "--package", "sheafdb-server", "--test", "baton"];
    check(&mut cargo_cfg(root, "sim", &worlds))
}

/// The chosen unit tests of some crates under `--cfg NAME`. One command for all crates: what they
/// share is built once.
fn library_tests(root: &Path, cfg: &str, chosen: &[(&str, &str)]) -> Result<(), String> {
    let mut command = cargo_cfg(root, cfg, &["test", "--lib", "--quiet"]);
    for (package, _) in chosen {
        command.args(["--package", package]);
    }
    command.arg("--").args(chosen.iter().map(|(_, filter)| filter));
    let text = output(&mut command)?;
    print!("{text}");
    let crates = passed(&text).into_iter().filter(|count| *count > 0).count();
    if crates < chosen.len() {
        return Err(format!("of {} crates only {crates} have such tests", chosen.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A suite which no step runs could fail unnoticed, as could a step which finds no tests.
    #[test]
    fn every_suite_has_a_step() {
        let suites = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/tests"));
        let all = std::fs::read_to_string(suites.join("all.rs")).expect("it is there");
        for file in std::fs::read_dir(suites).expect("it is there") {
            let path = file.expect("it can be read").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            if name == "all" {
                continue;
            }
            let step = if name == "command_table" { "table" } else { name };
            assert!(step_names().contains(&step), "no step runs the suite {name}");
            let is_in_it = all.contains(&format!("    mod {name};\n"));
            assert_eq!(is_in_it, name != "packaging", "the suite {name} and tests/tests/all.rs");
        }
    }

    /// A step which needs a later or a missing step would wait for ever.
    #[test]
    fn a_step_comes_after_the_steps_it_needs() {
        for (at, (name, needs, _)) in STEPS.iter().enumerate() {
            for need in *needs {
                assert!(step_names()[..at].contains(need), "{name} needs {need}");
            }
        }
    }

    #[test]
    fn an_unknown_step_is_an_error() {
        let text = run(Path::new("."), &["everything"]).expect_err("there is no such step");
        assert!(text.contains("no step 'everything'"), "{text}");
    }
}
