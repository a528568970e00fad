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
    /// Port to listen on; 0: any free port
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub port: u16,
    /// Also listen on this unix socket
    #[arg(long, value_name = "PATH")]
    pub unixsocket: Option<PathBuf>,
    /// Threads of the pool [default: 16], or event loops [default: one per core]
    #[arg(long, visible_alias = "size", value_name = "N",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=THREADS_MAX))]
    pub threads: Option<usize>,
    /// Length of the listen queue: connections that are not accepted yet
    #[arg(long, default_value_t = 511, value_name = "N")]
    pub backlog: u32,
    /// Milliseconds between two accepted connections; 0: accept at once
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub accept_every: u64,
    /// Send small replies at once (TCP_NODELAY)
    #[arg(long, default_value = "yes", action = ArgAction::Set, value_name = "yes|no",
        value_parser = yes_or_no)]
    pub nodelay: bool,
    /// When to send replies
    #[arg(long, default_value = "idle", value_name = "WHEN")]
    pub flush: Flush,
    /// Bytes of replies at which `size` and `strand` send, at most 262144
    #[arg(long, default_value_t = 16 << 10, value_name = "BYTES")]
    pub flush_bytes: usize,
    /// Maximum number of ready connections that an event loop takes per poll
    #[arg(long, default_value_t = EVENTS_MAX, value_name = "N",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=EVENTS_MAX as u64))]
    pub events: usize,
    /// When an event loop reads from a connection
    #[arg(long, default_value = "polled", value_name = "WHEN")]
    pub read: Reading,
    /// What reads from the connections of `single-writer`
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
    /// Each at once: one system call per reply.
    Reply,
    /// When there is nothing left to read: one send for all requests of a wake-up.
    Idle,
    /// At `--flush-bytes`, and the rest when there is nothing left to read.
    Size,
    /// At `--flush-bytes` only: the rest waits for more requests. A deliberate defect, to show its
    /// effect.
    Strand,
}

/// When an event loop reads a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reading {
    /// When a poll reports it as readable.
    Polled,
    /// Connections that were just read also before the next poll: their next request may have
    /// arrived.
    First,
}

/// Who reads the connections of a single writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Front {
    /// One thread per connection.
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
