//! The release build. Cargo unites the features of the packages that it is asked for, and another
//! set of features is another build of what they share: every build here must name the same
//! packages.

use std::path::Path;

use crate::run;

const PACKAGES: &[&str] = &["server", "bench", "resp", "keyspace", "ingest"];

/// What users get, and the programs whose instructions are counted.
const PROGRAMS: &[&str] = &[
    "--bin=sheafdb",
    "--bin=sheafdb-bench",
    "--example=command_path",
    "--example=frame_count",
    "--example=hotpath",
    "--example=intake",
];

/// Builds all of them. At the end of each stands one thread that optimises the whole program:
/// several of those at a time keep all processors busy.
pub fn run(root: &Path) -> Result<(), String> {
    build(root, PROGRAMS)
}

/// Builds these, each `--bin=NAME` or `--example=NAME`.
pub fn build(root: &Path, programs: &[impl AsRef<str>]) -> Result<(), String> {
    let mut command = run::cargo(root, &["build", "--quiet", "--release"]);
    command.args(PACKAGES.iter().map(|name| format!("--package=sheafdb-{name}")));
    run::check(command.args(programs.iter().map(AsRef::as_ref)))
}
