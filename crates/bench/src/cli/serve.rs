//! `sheafdb-bench serve MODEL`: runs a model alone, until SIGINT or SIGTERM.

use std::fmt;
use std::io::{self, Write};

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Done;
use crate::models::{self, Model, Options, Running};

/// Run a model: a small server with one design, to compare real servers with
#[derive(Clone, Debug, Parser)]
#[command(name = "serve")]
pub struct Serve {
    /// The design of the server
    pub model: Model,
    /// How
    #[command(flatten)]
    pub options: Options,
}

/// The line that says it is ready begins with this word.
pub const READY: &str = "ready";

/// Runs it. Prints a line when connections are taken (`ready tcp=ADDR:PORT pid=N`), and its
/// counters at the end (`done requests=N reads=N ...`).
pub fn run(serve: &Serve) -> Done {
    serve_until_signal(serve).map(|()| true).map_err(|error| error.to_string())
}

fn serve_until_signal(serve: &Serve) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let running = models::serve(serve.model, &serve.options)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{READY}{}", Ready(&running))?;
    out.flush()?;
    // The iterator ends only if its handle is closed, and there is none.
    signals.forever().next();
    let (totals, overflows) = (running.totals(), running.overflows());
    running.stop();
    write!(out, "done")?;
    for (name, value) in totals.pairs() {
        write!(out, " {name}={value}")?;
    }
    writeln!(out, " overflows={overflows}")
}

/// Where it listens and who it is.
struct Ready<'a>(&'a Running);

impl fmt::Display for Ready<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " tcp={}", self.0.address)?;
        if let Some(path) = self.0.unix() {
            write!(f, " unix={}", path.display())?;
        }
        write!(f, " pid={}", std::process::id())
    }
}
