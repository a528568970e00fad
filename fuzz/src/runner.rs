//! Runs a target and keeps the inputs on which it fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::{Mutator, Target};

/// An input on which its target panicked.
#[derive(Debug)]
pub struct Failure {
    /// Its file in the corpus.
    pub path: PathBuf,
    /// Its bytes.
    pub input: Vec<u8>,
}

/// The folder with the corpus of a target.
pub fn corpus_dir(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// The corpus of a target, in a fixed order.
fn corpus(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<(PathBuf, Vec<u8>)> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let bytes = std::fs::read(&path).ok()?;
            Some((path, bytes))
        })
        .collect();
    files.sort();
    files
}

fn breaks(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.feed)(input))).is_err()
}

/// Runs the target on its whole corpus; returns the number of inputs.
pub fn replay(target: &Target, dir: &Path) -> Result<usize, Failure> {
    let files = corpus(dir);
    let count = files.len();
    match files.into_iter().find(|(_, input)| breaks(target, input)) {
        Some((path, input)) => Err(Failure { path, input }),
        None => Ok(count),
    }
}

/// Runs the target on `count` new inputs from `seed`. The first on which it panics is kept in
/// `dir`.
pub fn run(target: &Target, dir: &Path, seed: u64, count: u64) -> Result<(), Failure> {
    let corpus: Vec<Vec<u8>> = corpus(dir).into_iter().map(|(_, bytes)| bytes).collect();
    let mut mutator = Mutator::new(seed, &corpus, target.dictionary);
    for _ in 0..count {
        let input = mutator.next_input();
        if breaks(target, &input) {
            let input = smaller(target, input);
            let sum = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
            let path = dir.join(format!("broke-{sum:016x}"));
            // The failure holds the bytes as well, in case the folder is not writable.
            let _ = std::fs::write(&path, &input);
            return Err(Failure { path, input });
        }
    }
    Ok(())
}

/// Removes pieces of a failing input as long as it still fails.
fn smaller(target: &Target, mut input: Vec<u8>) -> Vec<u8> {
    let mut piece = input.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut cut = input.clone();
            cut.drain(at..(at + piece).min(cut.len()));
            if breaks(target, &cut) {
                input = cut;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_found_kept_and_replayed() {
        let dir = std::env::temp_dir().join(format!("sheafdb-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary folder");
        std::fs::write(dir.join("seed"), b"harmless").expect("writable");
        let target = Target {
            name: "broken",
            feed: |input| assert!(!input.windows(4).any(|four| four == b"BOOM"), "boom"),
            dictionary: &[b"BOOM"],
        };
        assert_eq!(replay(&target, &dir).expect("the seed is harmless"), 1);
        let failure = run(&target, &dir, 1, 10_000).expect_err("the dictionary has it");
        assert!(failure.path.exists());
        assert_eq!(failure.input, b"BOOM", "made as small as it can be");
        replay(&target, &dir).expect_err("it stays in the corpus");
        std::fs::remove_dir_all(dir).expect("ours");
    }
}
