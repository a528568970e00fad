//! The laboratory: experiments that show why a server is fast or slow. Each puts loads on targets,
//! interleaved in one run, and tells what it saw as measurements, findings and a section of a
//! report. `docs/laboratory.md` tells the story of each.

pub mod acks;
pub mod all;
pub mod cache;
pub mod concurrency;
mod experiment;
pub mod io;
mod measure;
pub mod pipelining;
pub mod ramp;
mod record;
pub mod single_connection;
pub(crate) mod subject;
pub mod target;

pub use experiment::{Error, Output, Setup};
pub(crate) use measure::fault;
pub use subject::Data;
