//! Fuzz targets and a runner for them which needs only the stable compiler.
//!
//! A target takes any bytes and panics when it detects a defect. The runner replays the target's
//! corpus (`fuzz/corpus/NAME/*`) and then generates new inputs from it: it flips bits, duplicates,
//! removes and splices pieces, and inserts words of a dictionary. An input which panics is written
//! to the corpus, where it stays as a regression test.

mod mutate;
mod runner;
pub mod targets;

pub use mutate::Mutator;
pub use runner::{Failure, corpus_dir, replay, run};

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the target and of its corpus.
    pub name: &'static str,
    /// Runs one input; panics if it detects a defect.
    pub feed: fn(&[u8]),
    /// Words of the input format, which random changes would hardly produce.
    pub dictionary: &'static [&'static [u8]],
}
