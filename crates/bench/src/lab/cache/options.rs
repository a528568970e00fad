//! What can be asked of the experiment, and what it says.

use std::path::{Path, PathBuf};

use crate::analysis::texts::Texts;
use crate::lab::{Error, Setup};

use super::generate::{Distribution, Extent};
use super::trace::Trace;

/// The name in findings.
pub const NAME: &str = "cache";
/// What it says.
pub const TEXTS: Texts = Texts(include_str!("text.txt"));

/// Seconds that each trace is spread over.
const SECONDS: f64 = 300.0;
/// The same in the short form.
const SECONDS_SHORT: f64 = 5.0;
/// Entries that the cache holds, and the same in the short form.
const ENTRIES: (u64, u64) = (5_000, 1_000);
/// Most entries: their numbers have 32 bits, also in a loop and with as many keys as ten times.
const ENTRIES_MAX: u64 = 10_000_000;
/// Most keys.
const KEYS_MAX: u64 = 1_000_000_000;
/// Most reads of a trace that is made.
const ACCESSES_MAX: usize = 1_000_000_000;

/// What can be set.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Trace to play, a file or one of: zipf-EXPONENT, scan, moving, loop, sizes; repeat the option
    /// for more [default: zipf-0.7, zipf-0.9, zipf-1.0, zipf-1.2 and the other four; short form:
    /// zipf-0.9 and scan]
    #[arg(long, value_name = "TRACE")]
    pub trace: Vec<String>,
    /// Entries that each cache holds: maxmemory of a server that is started is set so that it holds
    /// as many [default: 5000; short form: 1000]
    #[arg(long, value_name = "N")]
    pub entries: Option<u64>,
    /// Start servers with this maxmemory in bytes instead. Who needs less memory for an entry then
    /// holds more of them
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// Keys of a trace that is made [default: ten times the entries]
    #[arg(long, value_name = "N")]
    pub keys: Option<u64>,
    /// Reads of a trace that is made [default: fifty times the entries]
    #[arg(long, value_name = "N")]
    pub accesses: Option<usize>,
    /// Size of a value in bytes, where the trace has none
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    pub data_size: u32,
    /// Eviction policy to set; repeat the option for more [default: allkeys-lru and allkeys-lfu]
    #[arg(long, value_name = "POLICY")]
    pub policy: Vec<String>,
    /// maxmemory-samples to set; repeat the option for more [default: the server's own]
    #[arg(long, value_name = "N")]
    pub samples: Vec<u32>,
    /// Connections, each of which takes the next reads of the trace
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub connections: usize,
    /// Reads that a connection sends together
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub pipeline: usize,
    /// Play as fast as it goes, instead of over --seconds. Servers which keep the seconds of last
    /// uses cannot tell keys apart then
    #[arg(long)]
    pub unpaced: bool,
    /// Servers that are played to at the same time [default: 32; with --unpaced: 1]
    #[arg(long, value_name = "N")]
    pub at_once: Option<usize>,
    /// Only simulate policies, without a server
    #[arg(long)]
    pub simulate: bool,
    /// Seed of the traces that are made
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    pub seed: u64,
    /// Write the trace to this file; there must be one trace
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        crate::cli::defaults()
    }
}

impl Options {
    /// Checks what can be checked before anything is started.
    pub fn check(&self, setup: &Setup) -> Result<(), Error> {
        let entries = self.entries(setup);
        let wrong = if entries == 0 || entries > ENTRIES_MAX {
            format!("entries are 1 to {ENTRIES_MAX}")
        } else if self.keys(setup) == 0 || self.keys(setup) > KEYS_MAX {
            format!("keys are 1 to {KEYS_MAX}")
        } else if self.accesses(setup) == 0 || self.accesses(setup) > ACCESSES_MAX {
            format!("accesses are 1 to {ACCESSES_MAX}")
        } else if self.data_size > 16 << 20 {
            "the size of a value is 0 to 16777216 bytes".to_owned()
        } else if !(1..=1_000).contains(&self.connections) || !(1..=1_000).contains(&self.pipeline)
        {
            "connections and pipeline are 1 to 1000".to_owned()
        } else if self.at_once == Some(0) {
            "at least one server is played to at a time".to_owned()
        } else if self.unpaced && setup.seconds.is_some() {
            "--unpaced and --seconds exclude each other".to_owned()
        } else if self.simulate && !setup.targets.is_empty() {
            "--simulate plays to no server: leave --target out".to_owned()
        } else if self.record.is_some() && self.names(setup).len() != 1 {
            "--record needs exactly one --trace".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::Machine(wrong))
    }

    /// Entries that each cache holds.
    pub fn entries(&self, setup: &Setup) -> u64 {
        self.entries.unwrap_or(if setup.short { ENTRIES.1 } else { ENTRIES.0 })
    }

    fn keys(&self, setup: &Setup) -> u64 {
        self.keys.unwrap_or(self.entries(setup).saturating_mul(10))
    }

    fn accesses(&self, setup: &Setup) -> usize {
        self.accesses.unwrap_or(self.entries(setup).saturating_mul(50) as usize)
    }

    /// Seconds that each trace is spread over; 0 for as fast as it goes.
    pub fn seconds(&self, setup: &Setup) -> f64 {
        if self.unpaced { 0.0 } else { setup.seconds(SECONDS, SECONDS_SHORT) }
    }

    /// The policies to set.
    pub fn policies(&self) -> Vec<String> {
        if self.policy.is_empty() {
            return ["allkeys-lru", "allkeys-lfu"].map(str::to_owned).to_vec();
        }
        self.policy.clone()
    }

    /// The samples to set; one that is not known leaves the server its own.
    pub fn samples(&self) -> Vec<Option<u32>> {
        if self.samples.is_empty() {
            return vec![None];
        }
        self.samples.iter().copied().map(Some).collect()
    }

    fn names(&self, setup: &Setup) -> Vec<String> {
        match (self.trace.is_empty(), setup.short) {
            (false, _) => self.trace.clone(),
            (true, true) => ["zipf-0.9", "scan"].map(str::to_owned).to_vec(),
            (true, false) => Distribution::USUAL.map(Distribution::name).to_vec(),
        }
    }

    /// The traces, made or read.
    pub fn traces(&self, setup: &Setup) -> Result<Vec<Trace>, Error> {
        let extent = Extent {
            entries: self.entries(setup),
            keys: self.keys(setup),
            accesses: self.accesses(setup),
            size: self.data_size,
            seed: self.seed,
        };
        let traces: Vec<Trace> = self
            .names(setup)
            .iter()
            .map(|name| match Distribution::named(name) {
                Some(distribution) => Ok(distribution.generate(extent)),
                None => self.read(name),
            })
            .collect::<Result<_, String>>()
            .map_err(Error::Machine)?;
        if let (Some(path), [trace]) = (&self.record, &traces[..]) {
            let made = format!("{}, sheafdb-bench cache, seed {}", trace.name, self.seed);
            std::fs::write(path, trace.render(&[made])).map_err(|error| {
                Error::Machine(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        Ok(traces)
    }

    fn read(&self, path: &str) -> Result<Trace, String> {
        let bytes = std::fs::read(path).map_err(|error| {
            format!("'{path}' is no distribution, and no file that can be read: {error}")
        })?;
        let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = stem.unwrap_or_else(|| path.to_owned());
        Trace::parse(&name, &String::from_utf8_lossy(&bytes), self.data_size)
    }
}
