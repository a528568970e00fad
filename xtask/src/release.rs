//! The release build. Cargo unifies the features of the packages named in one command, and shared
//! dependencies are built again for another set of features. So every build here names the same
//! packages.

use std::path::Path;

use crate::run;

const PACKAGES: &[&str] = &["server", "bench", "resp", "keyspace", "ingest"];

/// The programs for users, and those whose instructions are counted.
const PROGRAMS: &[&str] = &[
    "--bin=sheafdb",
    "--bin=sheafdb-bench",
    "--example=command_path",
    "--example=frame_count",
    "--example=hotpath",
    "--example=intake",
];

/// Builds all of them at once. Each build ends with single-threaded link-time optimisation, so
/// several at a time keep all processors busy.
pub fn run(root: &Path) -> Result<(), String> {
    build(root, PROGRAMS)
}

/// Builds these, each `--bin=NAME` or `--example=NAME`.
pub fn build(root: &Path, programs: &[impl AsRef<str>]) -> Result<(), String> {
    let mut command = run::cargo(root, &["build", "--quiet", "--release"]);
    command.args(PACKAGES.iter().map(|name| format!("--package=sheafdb-{name}")));
    run::check(command.args(programs.iter().map(AsRef::as_ref)))
}
