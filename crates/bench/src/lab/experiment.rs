//! What an experiment is given, what it leaves behind, and why it could not be made.

use super::target::{self, Target};
use crate::report::Section;
use crate::result::{Finding, Measurement};
use std::fmt;

/// What every experiment is given.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who is measured, in this order at every point; empty for the experiment's own choice.
    pub targets: Vec<Target>,
    /// Seconds of load per point; `None` for the experiment's own choice.
    pub seconds: Option<f64>,
    /// The short form, for `lab all` and for checks: fewer points, less time each; every finding
    /// can still be made.
    pub short: bool,
    /// Repetitions of each point, targets in turn.
    pub repetitions: usize,
}

impl Setup {
    /// Levels in ascending order: those that were asked for, else those of the long or the short
    /// form.
    pub fn levels(&self, asked: &[usize], long: &[usize], short: &[usize]) -> Vec<usize> {
        let choice = if self.short { short } else { long };
        let mut levels = if asked.is_empty() { choice } else { asked }.to_vec();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    /// Seconds of load per point: those that were asked for, else those of the long or the short
    /// form.
    pub fn seconds(&self, long: f64, short: f64) -> f64 {
        self.seconds.unwrap_or(if self.short { short } else { long })
    }
}

/// What an experiment leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// All that was measured.
    pub measurements: Vec<Measurement>,
    /// What was found, `none` for a target without a defect.
    pub findings: Vec<Finding>,
    /// The report's part: prose, plots, tables, the findings again.
    pub sections: Vec<Section>,
    /// Further files, in forms of their own: name without a folder, and text.
    pub files: Vec<(String, String)>,
    /// What must not be and makes the command fail once all files are written, a sentence each:
    /// replies that break the protocol, an experiment that could not be made.
    pub failed: Vec<String>,
}

impl Output {
    /// An experiment with one section, whose findings are its own.
    pub fn of<'a>(section: Section, measurements: impl Iterator<Item = &'a Measurement>) -> Self {
        let (measurements, findings) = (measurements.cloned().collect(), section.findings.clone());
        Self { measurements, findings, sections: vec![section], ..Self::default() }
    }
}

/// Why an experiment could not be made. A defect of a target is a finding, not an error.
#[derive(Debug)]
pub enum Error {
    /// A target did not start.
    Target(target::Error),
    /// A load could not be put on.
    Load(crate::load::Error),
    /// The machine refused something, in a sentence.
    Machine(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(e) => e.fmt(f),
            Self::Load(e) => e.fmt(f),
            Self::Machine(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<target::Error> for Error {
    fn from(e: target::Error) -> Self {
        Self::Target(e)
    }
}

impl From<crate::acks::Error> for Error {
    fn from(e: crate::acks::Error) -> Self {
        Self::Machine(e.to_string())
    }
}

impl From<crate::load::Error> for Error {
    fn from(e: crate::load::Error) -> Self {
        Self::Load(e)
    }
}
