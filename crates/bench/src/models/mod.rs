//! Models: small servers that embody one decision each, so that an experiment can show what the
//! decision does. They answer the same commands on a simple table; they differ in who waits for
//! whom.
//!
//! A model's file tells its decision. What they share: [`Options`], the acceptor (`listen`), the
//! conversation without its socket (`session`, `commands`, `table`), serving by a thread that waits
//! (`blocking`) or by an event loop (`reactor`), when replies leave (`output`), and counters.

mod ack_each_read;
mod blocking;
mod commands;
mod context;
mod counters;
mod echo_ack;
mod event_loop;
mod event_loops;
mod executor;
mod input;
mod listen;
mod null_reader;
mod output;
mod pool;
mod reactor;
mod sequential;
mod session;
mod single_writer;
pub(crate) mod table;
mod thread_per_connection;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use clap::{ArgAction, Args, ValueEnum};

use context::Context;
pub use counters::Totals;
pub use output::{Flush, PENDING_MAX};
pub use pool::{THREADS_DEFAULT as POOL_THREADS_DEFAULT, WAITING_MAX};
pub use reactor::{EVENTS_MAX, LUCK_MAX, Reading};
pub use session::{ARGUMENT_BYTES_MAX, REQUEST_BYTES_MAX};
pub use single_writer::Front;

/// Connections that a model makes room for.
const CONNECTIONS: u32 = 20_000;
/// Most threads that can be asked for.
const THREADS_MAX: u64 = 4096;

/// The models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Model {
    /// One connection after the other: the second waits for the end of the first
    Sequential,
    /// A thread for each connection
    ThreadPerConnection,
    /// A fixed pool of threads, each of which serves a connection to its end
    Pool,
    /// One thread polls all connections
    EventLoop,
    /// Several event loops on one table
    EventLoops,
    /// One thread owns the data, requests and replies are messages
    SingleWriter,
    /// Reads and throws away; no protocol
    NullReader,
    /// Acknowledges each message of classic ingest with its id, from one loop that sleeps
    EchoAck,
    /// Takes ingest protocol 2 apart, counts messages and acknowledges each read
    AckEachRead,
}

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
        crate::cli::defaults()
    }
}

/// A model that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    context: Arc<Context>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a model in threads of this process.
pub fn serve(model: Model, options: &Options) -> io::Result<Running> {
    driver::raise_file_limit(CONNECTIONS);
    let context = Context::new(options.clone())?;
    let thread = match model {
        Model::Sequential => sequential::start(Arc::clone(&context)),
        Model::ThreadPerConnection => thread_per_connection::start(Arc::clone(&context)),
        Model::Pool => pool::start(Arc::clone(&context)),
        Model::EventLoop => event_loop::start(&context),
        Model::EventLoops => event_loops::start(&context),
        Model::SingleWriter => single_writer::start(&context),
        Model::NullReader => null_reader::start(Arc::clone(&context)),
        Model::EchoAck => echo_ack::start(&context),
        Model::AckEachRead => ack_each_read::start(Arc::clone(&context)),
    }?;
    let address = context.listener.tcp();
    Ok(Running { address, context, thread: Some(thread) })
}

impl Running {
    /// The path of its unix socket, if it has one.
    pub fn unix(&self) -> Option<&Path> {
        self.context.listener.unix()
    }

    /// What it did so far.
    pub fn totals(&self) -> Totals {
        self.context.counters.totals()
    }

    /// Connection attempts so far that found the listen queue full.
    pub fn overflows(&self) -> u64 {
        self.context.listener.overflows()
    }

    /// Ends it: connections are closed, threads are joined.
    ///
    /// # Panics
    /// If one of its threads did.
    pub fn stop(mut self) {
        self.end().expect("no thread of a model panics");
    }

    fn end(&mut self) -> thread::Result<()> {
        self.context.stop();
        self.thread.take().map_or(Ok(()), JoinHandle::join)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A panic was told on stderr, and unwinding must not panic again.
        let _ = self.end();
    }
}

/// Starts the thread that owns a model.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Reads a switch.
fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "on" | "true" | "1" => Ok(true),
        "no" | "off" | "false" | "0" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}
