//! Fuzz targets and the runner that feeds them on the stable compiler.
//!
//! A target takes any bytes and panics when something is wrong. The runner replays the target's
//! corpus (`fuzz/corpus/NAME/*`) and then makes new inputs from it: bits flipped, pieces doubled,
//! removed, spliced, words of a dictionary put in. An input that panics is written to the corpus,
//! where it stays as a test after its defect is mended.

mod mutate;
mod runner;
pub mod targets;

pub use mutate::Mutator;
pub use runner::{Failure, corpus_dir, replay, run};

/// Something to be fed.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// Panics if the bytes uncover a defect.
    pub feed: fn(&[u8]),
    /// Words that get further in than chance does.
    pub dictionary: &'static [&'static [u8]],
}
