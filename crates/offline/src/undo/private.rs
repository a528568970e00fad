//! A server of this program's own, which holds old data while it is compared. It ends with this
//! program, also if that is killed: before it becomes a server, its process asks the kernel for
//! that.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Address, Value};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::REPLY;
use crate::connection::{Asked, Failure, Login};
use crate::restore::about;

/// With this argument `sheafdb undo` becomes the server of the process whose number follows.
pub const SERVE: &str = "--serve-for";
/// How often the server is asked whether it has loaded its data.
const POLL: Duration = Duration::from_millis(20);
/// Lines of its log that are shown when it does not start.
const LOG_LINES: usize = 5;

/// A folder that only this user can read, and the server which works in it. Both are gone when it
/// is dropped, and when a signal ends the program.
pub struct Private {
    path: PathBuf,
    child: Arc<Mutex<Option<Child>>>,
    signals: Handle,
}

impl Private {
    /// Makes the folder.
    pub fn new(parent: &Path) -> Result<Self, Failure> {
        let random = RandomState::new().hash_one(std::process::id());
        // The server has another working folder.
        let parent = fs::canonicalize(parent).map_err(|error| about(parent, &error))?;
        let path = parent.join(format!("sheafdb-undo-{random:016x}"));
        let child = Arc::new(Mutex::new(None));
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
            .map_err(|error| format!("signals cannot be handled: {error}"))?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| about(&path, &error))?;
        let private = Self { path: path.clone(), child: child.clone(), signals: signals.handle() };
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _none_starts = remove(&path, &child);
                std::process::exit(128 + signal);
            }
        });
        Ok(private)
    }

    /// Where the data directory is to be made.
    pub fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Starts the server on its data directory, and waits until it has loaded it.
    pub fn start(
        &self,
        folder: Option<&OsStr>,
        name: Option<&[u8]>,
        databases: &[u8],
    ) -> Result<Asked, Failure> {
        let log = self.path.join("log");
        let program = std::env::current_exe().map_err(|error| format!("the program: {error}"))?;
        let out = File::create(&log).map_err(|error| about(&log, &error))?;
        let errors = out.try_clone().map_err(|error| about(&log, &error))?;
        let socket = self.path.join("s");
        let mut command = Command::new(&program);
        command.args(["undo", SERVE, &std::process::id().to_string()]);
        command.arg("--dir").arg(self.data()).arg("--unixsocket").arg(&socket);
        command.args(["--unixsocketperm", "700", "--port", "0", "--admin-port", "0"]);
        command.args(["--save", "", "--appendonly", "yes", "--appendfsync", "no"]);
        command.args(["--auto-aof-rewrite-percentage", "0", "--loglevel", "notice"]);
        command.arg("--databases").arg(OsStr::from_bytes(databases));
        if let Some(folder) = folder {
            command.arg("--appenddirname").arg(folder);
        }
        if let Some(name) = name {
            command.arg("--appendfilename").arg(OsStr::from_bytes(name));
        }
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        // A signal finds no child, or this one.
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        *child = Some(command.spawn().map_err(|error| about(&program, &error))?);
        drop(child);
        self.wait(&socket, &log)
    }

    fn wait(&self, socket: &Path, log: &Path) -> Result<Asked, Failure> {
        let address = Address::Unix(socket.to_owned());
        let login = Login { address, user: None, password: None };
        loop {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = child.as_mut().map(Child::try_wait);
            drop(child);
            if let Some(Ok(Some(status))) = ended {
                return Err(format!(
                    "the server with the old data has ended ({status}):\n{}",
                    last_lines(log)
                ));
            }
            if let Ok(mut asked) = Asked::connect(&login, REPLY)
                && matches!(asked.try_call(&[b"PING"]), Ok(Value::Simple(_)))
            {
                return Ok(asked);
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.signals.close();
        drop(remove(&self.path, &self.child));
    }
}

/// Becomes a server with the arguments behind the number of the process for which it works. When
/// that ends, so does the server, whatever it does.
pub fn serve(arguments: &[Vec<u8>]) -> ExitCode {
    let Err(failure) = become_server(arguments);
    eprintln!("sheafdb undo: {failure}");
    ExitCode::FAILURE
}

fn become_server(arguments: &[Vec<u8>]) -> Result<std::convert::Infallible, Failure> {
    let (parent, arguments) =
        arguments.split_first().ok_or_else(|| format!("{SERVE} needs a value"))?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("the end of a process cannot be followed: {error}"))?;
    // It may have ended before that.
    let is_there = getppid().is_some_and(|pid| pid.to_string().as_bytes() == parent.as_slice());
    if !is_there {
        return Err("the process for which this one works has ended".into());
    }
    let program = std::env::current_exe().map_err(|error| format!("the program: {error}"))?;
    let mut command = Command::new(&program);
    command.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    Err(about(&program, &command.exec()))
}

/// Ends the server, and removes the folder. While the guard is held none is started.
fn remove<'c>(path: &Path, child: &'c Mutex<Option<Child>>) -> MutexGuard<'c, Option<Child>> {
    let mut guard = child.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(mut child) = guard.take() {
        // (Its data is only a copy.)
        let _ = child.kill();
        let _ = child.wait();
    }
    // What is written at this moment may need a second attempt.
    for _ in 0..10 {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(POLL),
            _ => break,
        }
    }
    guard
}

/// The end of a log.
fn last_lines(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
