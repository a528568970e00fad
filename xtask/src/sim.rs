//! `cargo xtask sim`: whole servers in a simulated world (`crates/sim`), built under `--cfg sim`.

use std::path::Path;
use std::process::Command;

use crate::run::{cargo_cfg, check};

/// Seeds of the step in the whole check, and how long their clients make requests, in simulated
/// milliseconds: half of the usual time and few seeds, so that the step takes less than two minutes
/// beside other steps; `make swarm` runs seeds without end. Of the first ones almost every fourth
/// has an append-only file, of the others each.
const SEEDS: &[&[&str]] = &[
    &["--seeds", "0..350", "--time", "250"],
    &["--seeds", "1000..1350", "--time", "250", "--journal"],
];
/// Seeds that found something once; they run first, for the usual time.
const KEPT: &str = "crates/sim/seeds.txt";

/// Builds the program, and runs it with these arguments.
pub fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let build = ["build", "--quiet", "--package", "sheafdb-sim"];
    check(&mut cargo_cfg(root, "sim", &build))?;
    let program = root.join("target/sim/debug/sheafdb-sim");
    check(Command::new(program).args(args).current_dir(root))
}

/// The step of the whole check: the tests of the crate, the seeds that are kept, and many seeds.
pub fn step(root: &Path) -> Result<(), String> {
    let tests = ["test", "--quiet", "--package", "sheafdb-sim"];
    check(&mut cargo_cfg(root, "sim", &tests))?;
    run(root, &["--seeds", "0..0", "--kept", KEPT])?;
    SEEDS.iter().try_for_each(|seeds| run(root, seeds))
}
