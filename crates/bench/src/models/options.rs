//! How a model is started: the options of `sheafdb-bench serve`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Ready descriptors that an event loop takes per poll, at most.
pub const EVENTS_MAX: usize = 256;
/// Most threads that can be asked for.
const THREADS_MAX: u64 = 4096;

/// How to start a model. An option that means nothing to a model is not looked at.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Address to listen on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDR")]
    pub bind: IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub port: u16,
    /// Listen on this unix socket too
    #[arg(long, value_name = "PATH")]
    pub unixsocket: Option<PathBuf>,
    /// Threads of the pool (16), event loops (one per core)
    #[arg(long, visible_alias = "size", value_name = "N",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=THREADS_MAX))]
    pub threads: Option<usize>,
    /// Length of the queue of connections that were not accepted yet
    #[arg(long, default_value_t = 511, value_name = "N")]
    pub backlog: u32,
    /// Accept a connection only every so many milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub accept_every: u64,
    /// Send small replies at once (TCP_NODELAY)
    #[arg(long, default_value = "yes", action = ArgAction::Set, value_name = "yes|no",
        value_parser = yes_or_no)]
    pub nodelay: bool,
    /// When replies are sent
    #[arg(long, default_value = "idle", value_name = "WHEN")]
    pub flush: Flush,
    /// Bytes of replies that make `size` and `strand` send, at most 262144
    #[arg(long, default_value_t = 16 << 10, value_name = "BYTES")]
    pub flush_bytes: usize,
    /// Ready connections that an event loop takes per poll, at most
    #[arg(long, default_value_t = EVENTS_MAX, value_name = "N",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=EVENTS_MAX as u64))]
    pub events: usize,
    /// When an event loop reads a connection
    #[arg(long, default_value = "polled", value_name = "WHEN")]
    pub read: Reading,
    /// Who reads the connections of a single writer
    #[arg(long, default_value = "threads", value_name = "WHO")]
    pub front: Front,
}

impl Default for Options {
    fn default() -> Self {
        crate::cli::defaults::defaults()
    }
}

/// When replies are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Flush {
    /// Each by itself: a system call per reply.
    Reply,
    /// When there is nothing left to read: one send for what one wake-up brought.
    Idle,
    /// At `--flush-bytes`, and what is left when there is nothing left to read.
    Size,
    /// At `--flush-bytes` only: the rest stays here until more requests come, or the end. A defect,
    /// here to be seen.
    Strand,
}

/// When an event loop reads a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reading {
    /// When a poll says that there is something.
    Polled,
    /// Those that have just brought something also before the next poll, on the chance that their
    /// next request is there already.
    First,
}

/// Who reads the connections of a single writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Front {
    /// A thread for each connection.
    Threads,
    /// Event loops.
    Loops,
}

/// Reads a switch.
fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "on" | "true" | "1" => Ok(true),
        "no" | "off" | "false" | "0" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}
