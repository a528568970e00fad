//! The same seed gives the same run, in another process too.
#![cfg(sim)]

use std::process::Command;

/// The line with the digest of all events and the simulated time, and whether the run passed.
fn run(seed: u64) -> (String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_sheafdb-sim"))
        .args(["--seed", &seed.to_string(), "--time", "100"])
        .output()
        .expect("the program can be started");
    let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
    let prefix = format!("seed {seed} digest ");
    let line = text.lines().find(|line| line.starts_with(&prefix)).expect("it tells its digest");
    (line[prefix.len()..].to_owned(), output.status.success())
}

#[test]
fn a_seed_is_one_run() {
    let seeds = [3, 11, 20, 33, 40, 47];
    let digests: Vec<String> = seeds
        .iter()
        .map(|seed| {
            let (first, passed) = run(*seed);
            assert!(passed, "seed {seed}");
            assert_eq!(run(*seed).0, first, "seed {seed}");
            first
        })
        .collect();
    let mut different = digests.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), digests.len(), "{digests:?}");
}
