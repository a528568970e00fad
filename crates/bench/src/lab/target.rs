//! Who is measured: a server that the laboratory starts and ends, or one that runs already.
//!
//! | text | meaning |
//! |---|---|
//! | `sheafdb`, `redis-server`, `valkey-server`, `pogocache` | that server, and further arguments |
//! | `HOST:PORT` | a server that runs |
//! | `unix:PATH`, or the path of a socket | the same |
//! | `model:NAME[,option=value]...` | a model, with the options of `sheafdb-bench serve` |
//! | anything else | a program by its command line; see below |
//!
//! In a command line `{port}`, `{port+1}` to `{port+7}`, `{sock}` and `{dir}` stand for what the
//! program is given.
//!
//! `LABEL=` in front of any of these names it.

mod launch;
mod words;

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fmt, fs, io};

use clap::Parser;
use std::os::unix::fs::FileTypeExt;

use crate::cli::serve::Serve;
use crate::models::{Flush, Model};
pub use launch::Started;

/// A server to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    name: String,
    kind: Kind,
    /// Processors that it is started on, as `taskset` wants them; any if there are none.
    cpus: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A server whose settings are known, and further arguments.
    Server(&'static Server, Vec<String>),
    /// A model, and its arguments for `serve`.
    Model(Vec<String>, Awaits),
    /// A program and its arguments, with placeholders.
    Program(Vec<String>),
    Tcp(String),
    Unix(PathBuf),
}

/// A server whose settings are known.
#[derive(Debug, PartialEq, Eq)]
struct Server {
    program: &'static str,
    settings: &'static str,
}

/// Those servers, with settings fit for measuring.
const SERVERS: [Server; 4] = [
    Server {
        program: "sheafdb",
        settings: "--bind 127.0.0.1 --port {port} --unixsocket {sock} --dir {dir} --save '' \
                   --maxclients 20000",
    },
    Server { program: "redis-server", settings: REDIS },
    Server { program: "valkey-server", settings: REDIS },
    Server { program: "pogocache", settings: "-h 127.0.0.1 -p {port} -s {sock} --maxconns 20000" },
];
const REDIS: &str = "--bind 127.0.0.1 --port {port} --unixsocket {sock} --dir {dir} --save '' \
                     --appendonly no --daemonize no --maxclients 20000";

/// When a started server counts as ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// It answers PING, with whatever reply.
    Reply,
    /// It says so: some models answer no PING, or not at once.
    Line,
}

/// Why there is no such target.
#[derive(Debug)]
pub enum Error {
    /// The text makes no sense.
    Text(String),
    /// The program is nowhere to be found.
    Missing(String),
    /// It did not start; what it said.
    Failed(String),
    /// The system refused something.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(why) | Self::Failed(why) => f.write_str(why),
            Self::Missing(program) => write!(f, "{program} is not there"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Target {
    /// Reads a target; see the table above.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (label, text) = label(text.trim());
        let kind = kind(text)?;
        let name = label.unwrap_or(text).to_owned();
        Ok(Self { name, kind, cpus: None })
    }

    /// What it is called in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same target with further arguments, if it is a program that is started.
    #[must_use]
    pub fn with_args(mut self, more: &[&str]) -> Self {
        match &mut self.kind {
            Kind::Server(_, args) | Kind::Model(args, _) | Kind::Program(args) => {
                args.extend(more.iter().map(|&arg| arg.to_owned()));
            }
            Kind::Tcp(_) | Kind::Unix(_) => {}
        }
        self
    }

    /// The same target on these processors (`0`, `0,2`, `0-3`), if it is started. Needs `taskset`.
    #[must_use]
    pub fn on_cpus(mut self, cpus: &str) -> Self {
        self.cpus = Some(cpus.to_owned());
        self
    }

    /// True if the laboratory starts it; false if it runs already.
    pub fn is_started_here(&self) -> bool {
        !matches!(self.kind, Kind::Tcp(_) | Kind::Unix(_))
    }

    /// True if its program can be found; a server that runs already is not looked for.
    pub fn is_there(&self) -> bool {
        match &self.kind {
            Kind::Server(server, _) => server.program().is_ok(),
            Kind::Model(..) => own_program().is_ok(),
            Kind::Program(words) => on_path(&words[0]).is_some(),
            Kind::Tcp(_) | Kind::Unix(_) => true,
        }
    }

    /// Starts it on a free port, in a folder of its own, and waits until it is ready. If it runs
    /// already, checks that it accepts connections.
    pub fn start(&self) -> Result<Started, Error> {
        let (program, args, awaits) = match &self.kind {
            Kind::Tcp(text) => return launch::running_tcp(&self.name, resolve(text)?),
            Kind::Unix(path) => return launch::running_unix(&self.name, path),
            Kind::Server(server, more) => {
                let args = words::split(server.settings).map_err(Error::Text)?;
                (server.program()?, [args, more.clone()].concat(), Awaits::Reply)
            }
            Kind::Model(args, awaits) => {
                let place = ["--port", "{port}", "--unixsocket", "{sock}"].map(str::to_owned);
                (own_program()?, [&args[..], &place].concat(), *awaits)
            }
            Kind::Program(words) => {
                let program = on_path(&words[0]).ok_or_else(|| Error::Missing(words[0].clone()))?;
                (program, words[1..].to_vec(), Awaits::Reply)
            }
        };
        match &self.cpus {
            None => launch::start(&self.name, &program, &args, awaits),
            Some(cpus) => {
                let taskset =
                    on_path("taskset").ok_or_else(|| Error::Missing("taskset".to_owned()))?;
                let program = program.to_string_lossy().into_owned();
                let place = ["-c".to_owned(), cpus.clone(), program];
                launch::start(&self.name, &taskset, &[&place[..], &args].concat(), awaits)
            }
        }
    }
}

/// A `LABEL=` in front, and the rest.
fn label(text: &str) -> (Option<&str>, &str) {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.split_once('=') {
        Some((label, rest)) if !label.is_empty() && label.chars().all(plain) => (Some(label), rest),
        _ => (None, text),
    }
}

fn kind(text: &str) -> Result<Kind, Error> {
    if let Some(model) = text.strip_prefix("model:") {
        return parse_model(model);
    }
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Kind::Unix(path.into()));
    }
    let words = words::split(text).map_err(Error::Text)?;
    let Some(first) = words.first() else {
        return Err(Error::Text("a target is a server, HOST:PORT, a path or a program".to_owned()));
    };
    if let Some(server) = Server::named(first) {
        return Ok(Kind::Server(server, words[1..].to_vec()));
    }
    if words.len() == 1 {
        if is_host_and_port(first) {
            return Ok(Kind::Tcp(first.clone()));
        }
        if fs::metadata(first).is_ok_and(|file| file.file_type().is_socket()) {
            return Ok(Kind::Unix(first.into()));
        }
    }
    if words.iter().any(|word| word.contains("{port}") || word.contains("{sock}")) {
        return Ok(Kind::Program(words));
    }
    Err(Error::Text(format!(
        "'{text}' is no server, no HOST:PORT and no socket; the command line of a program must contain {{port}} or {{sock}}"
    )))
}

/// `NAME[,option=value]...`, in the words of `serve`.
fn parse_model(text: &str) -> Result<Kind, Error> {
    let mut parts = text.split(',');
    let mut args = vec!["serve".to_owned()];
    args.extend(parts.next().map(str::to_owned));
    for part in parts {
        let Some((name, value)) = part.split_once('=') else {
            return Err(Error::Text(format!("'{part}' in 'model:{text}' is no option=value")));
        };
        args.push(format!("--{name}={value}"));
    }
    // Only a check that `serve` understands it; the model is started with a port later.
    let serve = Serve::try_parse_from(&args)
        .map_err(|error| Error::Text(format!("'model:{text}': {error}")))?;
    let silent = matches!(serve.model, Model::NullReader | Model::EchoAck | Model::AckEachRead);
    let strands = serve.options.flush == Flush::Strand;
    Ok(Kind::Model(args, if silent || strands { Awaits::Line } else { Awaits::Reply }))
}

fn is_host_and_port(word: &str) -> bool {
    word.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
    })
}

fn resolve(text: &str) -> Result<SocketAddr, Error> {
    let mut all = text.to_socket_addrs()?;
    all.next().ok_or_else(|| Error::Missing(text.to_owned()))
}

impl Server {
    fn named(word: &str) -> Option<&'static Self> {
        SERVERS.iter().find(|server| server.program == word)
    }

    fn program(&self) -> Result<PathBuf, Error> {
        let name = self.program;
        let ours = (name == "sheafdb").then(|| beside(name)).flatten();
        ours.or_else(|| on_path(name)).ok_or_else(|| Error::Missing(name.to_owned()))
    }
}

/// The program of ours with this name: next to the running one, above a test program, or in
/// `target/release`.
fn beside(name: &str) -> Option<PathBuf> {
    let here = std::env::current_exe().ok();
    let folders = here.iter().flat_map(|here| here.ancestors().skip(1).take(2));
    let built = Path::new("target/release");
    folders.chain([built]).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// This program, which serves models.
fn own_program() -> Result<PathBuf, Error> {
    let name = "sheafdb-bench";
    beside(name).or_else(|| on_path(name)).ok_or_else(|| Error::Missing(name.to_owned()))
}

/// A program: its path if it holds a slash, or looked for in PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The first of so many ports in a row that nobody listens on right now, for servers that need
/// several.
pub fn free_ports(count: u16) -> io::Result<u16> {
    // Below the ports that the system gives clients: of these so many may be in use, or have been a
    // moment ago, that there is no free row.
    const FIRST: u32 = 10_000;
    const LAST: u32 = 32_000;
    const TRIES: usize = 1_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..TRIES {
        let next = NEXT.fetch_add(u32::from(count), Ordering::Relaxed);
        let drawn = std::process::id().wrapping_mul(7919).wrapping_add(next);
        let base = (FIRST + drawn % (LAST - FIRST)) as u16;
        let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if (base..base + count).all(free) {
            return Ok(base);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no {count} free ports in a row")))
}

#[cfg(test)]
mod tests;
