//! `cargo xtask sim`: whole servers in a simulated world (`crates/sim`), built under `--cfg sim`.

use std::path::Path;
use std::process::Command;

use crate::run::{cargo, check};

/// Another build of everything, so it has a target folder of its own.
const TARGET: &str = "target/sim";
/// Seeds of the step in the whole check.
const SEEDS: &str = "0..2000";
/// Seeds that found something once; they run first.
const KEPT: &str = "crates/sim/seeds.txt";

/// Builds the program, and runs it with these arguments.
pub fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let package = ["--package", "sheafdb-sim", "--target-dir", TARGET];
    check(cargo(root, &["build", "--quiet"]).args(package).env("RUSTFLAGS", "--cfg sim"))?;
    let program = root.join(TARGET).join("debug/sheafdb-sim");
    check(Command::new(program).args(args).current_dir(root))
}

/// The step of the whole check: the tests of the crate, and then many seeds.
pub fn step(root: &Path) -> Result<(), String> {
    let tests = ["test", "--quiet", "--package", "sheafdb-sim", "--target-dir", TARGET];
    check(cargo(root, &tests).env("RUSTFLAGS", "--cfg sim"))?;
    run(root, &["--seeds", SEEDS, "--kept", KEPT])
}
