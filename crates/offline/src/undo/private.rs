//! A server of this program's own, which holds old data while it is compared.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Address, Value};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::REPLY;
use crate::connection::{Asked, Failure, Login};
use crate::restore::about;

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
        use std::os::unix::ffi::OsStrExt;
        let log = self.path.join("log");
        let program = std::env::current_exe().map_err(|error| format!("the program: {error}"))?;
        let out = File::create(&log).map_err(|error| about(&log, &error))?;
        let errors = out.try_clone().map_err(|error| about(&log, &error))?;
        let socket = self.path.join("s");
        let mut command = Command::new(&program);
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
