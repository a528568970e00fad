//! What the server knows about itself: counters, histograms, the slow log and statistics per
//! command and per error. Nothing here does I/O or reads a clock: callers pass times.
//!
//! Every worker writes its own copies and readers add them up, so counting is one load and one
//! store on a cache line that no other thread writes.

pub mod command_stats;
pub mod counter;
pub mod error_stats;
pub mod heat;
pub mod histogram;
pub mod hot;
pub mod latency;
pub mod slowlog;
pub mod spikes;

pub use command_stats::{CommandStats, CommandTotals, Longest};
pub use counter::Counter;
pub use error_stats::ErrorStats;
pub use heat::{HeatMap, Unfolded};
pub use histogram::{Histogram, HistogramTotals};
pub use latency::{Latency, LatencyTotals, ServiceTimes};
pub use slowlog::{Entry, Slowlog};
pub use spikes::{Series, SeriesFacts, Spike, SpikeEvent, Spikes};
