//! Models: small servers that embody one decision each, so that an experiment can show what the
//! decision does. They answer the same commands on a simple table; they differ in who waits for
//! whom.
//!
//! The decisions are explained where they are made: `threads`, `event_loops`, `single_writer`,
//! `null_reader`, `echo_ack`, `ack_each_read`. What the models share: [`Options`], listening
//! (`listen`) and the acceptor (`accept`), the conversation without its socket (`session`,
//! `commands`, `table`), serving by a thread that waits (`blocking`) or by an event loop
//! (`reactor`), when replies leave (`output`), and counters.

mod accept;
mod ack_each_read;
mod blocking;
mod commands;
mod context;
mod counters;
mod echo_ack;
mod event_loops;
mod input;
mod listen;
mod null_reader;
mod options;
mod output;
mod reactor;
mod session;
mod single_writer;
mod table;
mod threads;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use clap::ValueEnum;

pub(crate) use commands::Local;
use context::{Context, Serve};
pub use counters::Totals;
pub(crate) use input::Input;
pub use options::{Flush, Front, Options, Reading};
pub(crate) use session::{RespSession, Session, Step};
pub(crate) use table::{SHARED, Table};

/// Connections that a model makes room for.
const CONNECTIONS: u32 = 20_000;

/// The models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Model {
    /// One connection at a time: the second waits until the first is closed
    Sequential,
    /// One thread per connection
    ThreadPerConnection,
    /// A fixed pool of threads, each of which serves one connection until it is closed
    Pool,
    /// One event loop for all connections
    EventLoop,
    /// Several event loops which share one table
    EventLoops,
    /// One thread owns the data; requests and replies are messages to it and from it
    SingleWriter,
    /// Reads and discards all bytes; no protocol
    NullReader,
    /// Acknowledges each message of classic ingest by its id, in one event loop
    EchoAck,
    /// Parses ingest protocol 2, counts messages and acknowledges each read
    AckEachRead,
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
    let serve: Serve = match model {
        Model::Sequential => Box::new(threads::sequential),
        Model::ThreadPerConnection => Box::new(threads::per_connection),
        Model::Pool => Box::new(threads::pool),
        Model::NullReader => Box::new(|context| null_reader::run(context)),
        Model::AckEachRead => Box::new(|context| ack_each_read::run(context)),
        Model::EventLoop => Box::new(event_loops::one(&context)?),
        Model::EventLoops => Box::new(event_loops::several(&context)?),
        Model::EchoAck => Box::new(echo_ack::prepare(&context)?),
        Model::SingleWriter => single_writer::prepare(&context)?,
    };
    let address = context.listener.tcp();
    let shared = Arc::clone(&context);
    let thread =
        thread::Builder::new().name("acceptor".to_owned()).spawn(move || serve(&shared))?;
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
        // A panic was reported on stderr, and unwinding must not panic again.
        let _ = self.end();
    }
}
