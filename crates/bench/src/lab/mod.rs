//! The laboratory: experiments that show why a server is fast or slow. Each puts loads on targets,
//! interleaved in one run, and tells what it saw as measurements, findings and a section of a
//! report. `docs/laboratory.md` tells the story of each.

pub mod acks;
pub mod all;
pub mod concurrency;
pub mod io;
mod measure;
pub(crate) use measure::fault;
pub mod pipelining;
pub mod ramp;
mod record;
pub mod single_connection;
pub(crate) mod subject;
pub mod target;

use crate::report::Section;
use crate::result::{Finding, Measurement};
use std::fmt;
use target::Target;

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

/// What an experiment leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Told {
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
