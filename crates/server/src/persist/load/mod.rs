//! Loading the snapshot file at the start, by all workers' worth of threads, while the workers
//! serve clients behind a gate (`-LOADING`). Without a file nothing of this runs.
//!
//! ```text
//! boot        the file exists: Load::plan; the workers start
//! worker 0    opens it, reads blocks ahead through its driver            driving.rs, reading.rs
//!             -> Pipe: blocks in order                                   pipe.rs
//! threads     scan (one at a time) and build, each with an Access        threads.rs, builder.rs
//! worker 0    the last thread has ended: the gate opens, READY=1; or an error ends the process
//! everybody   Load in Shared: is it going on, how far is it              state.rs, report.rs
//! ```
//!
//! Of an append-only file there are several files, which are found first and loaded one after the
//! other (`finding.rs`, `driving_parts.rs`, `mending.rs`). Those of commands are for other threads
//! (`replay/`).
//!
//! A file that is there and cannot be loaded ends the start with one line that names the file, the
//! place and the reason: there is never an empty server beside data. The file is only read.

pub(crate) mod builder;
pub(crate) mod driving;
pub(crate) mod driving_parts;
pub(crate) mod fault;
pub(crate) mod finding;
pub mod folder;
pub(crate) mod functions;
pub mod kept;
pub(crate) mod loading;
pub(crate) mod mending;
pub(crate) mod parts;
pub(crate) mod pipe;
pub(crate) mod reading;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod section;
pub mod state;
pub(crate) mod threads;
