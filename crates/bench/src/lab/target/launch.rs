//! Starting a server as a child process, waiting for it, ending it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::{Address, Client};

use super::{Awaits, Error, free_ports};
use crate::cli::serve::READY;

/// Longest wait for a server that starts.
const START: Duration = Duration::from_secs(20);
/// Longest wait for one reply, or for a connection to a server that runs already.
const REPLY: Duration = Duration::from_secs(2);
/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(5);
/// Ports in a row that it is given: `{port}`, `{port+1}` and so on.
const ROW: u16 = 8;
/// A port may be taken between finding it free and using it: so many tries.
const TRIES: usize = 3;
/// End of a log that an error shows, bytes.
const LOG_SHOWN: usize = 2000;

/// A server that runs. One that was started here ends with this value.
#[derive(Debug)]
pub struct Started {
    /// What it is called in tables.
    pub name: String,
    /// Its TCP address.
    pub tcp: Option<SocketAddr>,
    /// Its unix socket.
    pub unix: Option<PathBuf>,
    /// Its process, if it is one of ours.
    pub pid: Option<u32>,
    process: Option<Process>,
}

/// A child and its folder.
#[derive(Debug)]
struct Process {
    child: Child,
    dir: PathBuf,
}

impl Started {
    /// What it wrote to stdout and stderr so far.
    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }

    /// A way to it for [`Client`]: TCP if it has that.
    pub fn address(&self) -> Address {
        match (&self.tcp, &self.unix) {
            (Some(tcp), _) => Address::Tcp(tcp.to_string()),
            (None, Some(path)) => Address::Unix(path.clone()),
            (None, None) => unreachable!("it was reached when it started"),
        }
    }
}

/// A server that runs at a TCP address.
pub fn running_tcp(name: &str, address: SocketAddr) -> Result<Started, Error> {
    TcpStream::connect_timeout(&address, REPLY)
        .map_err(|error| Error::Failed(format!("{name}: {error}")))?;
    Ok(Started { name: name.to_owned(), tcp: Some(address), unix: None, pid: None, process: None })
}

/// A server that runs at a unix socket.
pub fn running_unix(name: &str, path: &Path) -> Result<Started, Error> {
    UnixStream::connect(path).map_err(|error| Error::Failed(format!("{name}: {error}")))?;
    let (name, unix) = (name.to_owned(), Some(path.to_owned()));
    Ok(Started { name, tcp: None, unix, pid: None, process: None })
}

/// Starts `program`; placeholders in `args` are filled in.
pub fn start(
    name: &str,
    program: &Path,
    args: &[String],
    awaits: Awaits,
) -> Result<Started, Error> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match try_start(name, program, args, awaits) {
            Err(Error::Failed(why)) => last = why,
            other => return other,
        }
    }
    Err(Error::Failed(format!("{name} did not start: {last}")))
}

fn try_start(
    name: &str,
    program: &Path,
    args: &[String],
    awaits: Awaits,
) -> Result<Started, Error> {
    let dir = fresh_dir()?;
    let port = free_ports(ROW)?;
    let sock = dir.join("sock");
    let fill = |arg: &String| {
        let more =
            |arg: String, n: u16| arg.replace(&format!("{{port+{n}}}"), &(port + n).to_string());
        (1..ROW)
            .fold(arg.replace("{port}", &port.to_string()), more)
            .replace("{sock}", &sock.to_string_lossy())
            .replace("{dir}", &dir.to_string_lossy())
    };
    let args: Vec<String> = args.iter().map(fill).collect();
    let child = spawn(program, &args, &dir.join("log"));
    let mut process = match child {
        Ok(child) => Process { child, dir },
        Err(error) => {
            remove(&dir);
            return Err(error.into());
        }
    };
    let tcp = SocketAddr::from(([127, 0, 0, 1], port));
    let (tcp, unix) = process.wait_ready(tcp, &sock, awaits).map_err(Error::Failed)?;
    let (name, pid) = (name.to_owned(), Some(process.child.id()));
    Ok(Started { name, tcp, unix, pid, process: Some(process) })
}

fn spawn(program: impl AsRef<OsStr>, args: &[String], log: &Path) -> io::Result<Child> {
    let log = File::create(log)?;
    let errors = log.try_clone()?;
    Command::new(program).args(args).stdin(Stdio::null()).stdout(log).stderr(errors).spawn()
}

impl Process {
    /// Waits until it is ready, and says by which of these ways it can be reached.
    fn wait_ready(
        &mut self,
        tcp: SocketAddr,
        unix: &Path,
        awaits: Awaits,
    ) -> Result<(Option<SocketAddr>, Option<PathBuf>), String> {
        let started = Instant::now();
        while started.elapsed() < START {
            let ways = match awaits {
                Awaits::Line if !self.log().starts_with(READY) => (false, false),
                Awaits::Line => (true, unix.exists()),
                Awaits::Reply => match ask(tcp, unix) {
                    (false, false) => (false, false),
                    // It may have opened one way just behind the question. A server which answers
                    // has opened all.
                    _ => ask(tcp, unix),
                },
            };
            if ways != (false, false) {
                return Ok((ways.0.then_some(tcp), ways.1.then(|| unix.to_owned())));
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}{}", self.log_shown()));
            }
            thread::sleep(LOOK);
        }
        Err(format!("no answer in {} s{}", START.as_secs(), self.log_shown()))
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.dir.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn log_shown(&self) -> String {
        let log = self.log();
        let from = log.len().saturating_sub(LOG_SHOWN);
        let from = (from..=log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(log.len());
        match log[from..].trim() {
            "" => String::new(),
            shown => format!(":\n{shown}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        remove(&self.dir);
    }
}

/// By which ways does it answer?
fn ask(tcp: SocketAddr, unix: &Path) -> (bool, bool) {
    let by_tcp = answers(&Address::Tcp(tcp.to_string()));
    (by_tcp, unix.exists() && answers(&Address::Unix(unix.to_owned())))
}

/// Does it answer PING? Any reply will do: with a password it is an error.
fn answers(address: &Address) -> bool {
    Client::connect(address, REPLY).is_ok_and(|mut client| client.call(&[b"PING"]).is_ok())
}

fn fresh_dir() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("sheafdb-bench-{}-{n}", std::process::id()));
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn remove(dir: &Path) {
    // A leftover in the folder for temporary files harms nobody.
    let _ = fs::remove_dir_all(dir);
}
