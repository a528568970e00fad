//! Starts a server for a test, on a free port and in its own folder; it is killed when dropped.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::in_time::LIMIT;
use crate::ports::free_addr;
use crate::wire::{Value, Wire};

/// Attempts to start: another program may take the port which was found free.
const TRIES: usize = 3;

/// Which server a binary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The reference.
    Redis,
    /// Ours.
    SheafDb,
}

impl Kind {
    /// Which server this program is, from its `--version`; its file name does not matter.
    fn of(path: &Path) -> Self {
        let told = Command::new(path).arg("--version").stdin(Stdio::null()).output();
        let told = told.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = String::from_utf8_lossy(&told.stdout).to_ascii_lowercase();
        if text.starts_with("sheafdb") { Self::SheafDb } else { Self::Redis }
    }
}

/// A server program.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Its path.
    pub path: PathBuf,
    /// Which server it is.
    pub kind: Kind,
}

impl Binary {
    /// The reference: `SHEAFDB_ORACLE`, or redis-server from PATH.
    pub fn redis() -> Self {
        let path = std::env::var_os("SHEAFDB_ORACLE").filter(|path| !path.is_empty());
        Self { path: path.unwrap_or_else(|| "redis-server".into()).into(), kind: Kind::Redis }
    }

    /// The release of Redis that it reports, such as `7.0`: what `INFO` calls `redis_version`.
    ///
    /// # Panics
    /// If it does not start or reports no version.
    pub fn release(&self) -> String {
        let server = ServerProcess::start(self, &[]);
        let info = server.connect().command(&["INFO", "server"]).expect("INFO is answered");
        let (Value::Bulk(info) | Value::Verbatim(info)) = info else { panic!("INFO is {info:?}") };
        let info = String::from_utf8_lossy(&info).into_owned();
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
        let mut parts = version.expect("INFO says its version").split('.');
        let mut part = || parts.next().expect("a version has two parts");
        format!("{}.{}", part(), part())
    }

    /// The server under test: `SHEAFDB_SERVER`, or the workspace's own, built first if it is not
    /// current. `SHEAFDB_PROFILE=release` takes the release build.
    pub fn under_test() -> Self {
        static CHOSEN: OnceLock<Binary> = OnceLock::new();
        let choose = || {
            let path = std::env::var_os("SHEAFDB_SERVER").map_or_else(build, PathBuf::from);
            Self { kind: Kind::of(&path), path }
        };
        CHOSEN.get_or_init(choose).clone()
    }
}

/// The back end of every server under test: `SHEAFDB_IO_BACKEND`, a value of `io-backend`. Without
/// it the servers choose.
pub fn io_backend() -> Option<String> {
    std::env::var("SHEAFDB_IO_BACKEND").ok().filter(|name| !name.is_empty())
}

/// Builds the server in the profile asked for and returns its path.
fn build() -> PathBuf {
    let release = std::env::var("SHEAFDB_PROFILE").is_ok_and(|profile| profile == "release");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("inside the workspace");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "sheafdb-server"]).current_dir(root);
    command.args(release.then_some("--release")).stdin(Stdio::null());
    let status = command.status().expect("cargo runs");
    assert!(status.success(), "the server does not build");
    // This test program is TARGET/PROFILE/deps/NAME.
    let here = std::env::current_exe().expect("a program has a path");
    let target = here.ancestors().nth(3).expect("below the target folder");
    target.join(if release { "release" } else { "debug" }).join("sheafdb")
}

/// Servers of this test program that start later get small pages alone: with huge ones, a byte more
/// can add two megabytes of resident memory.
///
/// # Panics
/// If the kernel refuses.
pub fn without_huge_pages() {
    rustix::thread::disable_transparent_huge_pages(true).expect("a process may do without them");
}

/// A running server.
pub struct ServerProcess {
    child: Child,
    /// Its TCP address.
    pub addr: SocketAddr,
    /// Which server it is.
    pub kind: Kind,
    dir: PathBuf,
}

impl ServerProcess {
    /// Starts it with the tests' settings and `extra` ones, and waits until it answers.
    ///
    /// # Panics
    /// If it does not start; the text holds what it logged.
    pub fn start(binary: &Binary, extra: &[&str]) -> Self {
        Self::start_with(binary, extra, |_| ())
    }

    /// The same; `prepare` sees the command before it is run.
    ///
    /// # Panics
    /// If it does not start; the text holds what it logged.
    pub fn start_with(binary: &Binary, extra: &[&str], prepare: impl Fn(&mut Command)) -> Self {
        let mut last = String::new();
        for _ in 0..TRIES {
            match Self::try_start(binary, extra, &prepare) {
                Ok(server) => return server,
                Err(why) => last = why,
            }
        }
        panic!("{} did not start: {last}", binary.path.display());
    }

    /// Starts it once, or again if another program has taken its port. The error holds what it
    /// logged if it ended.
    pub fn start_once(binary: &Binary, extra: &[&str]) -> Result<Self, String> {
        let mut started = Self::try_start(binary, extra, |_| ());
        for _ in 1..TRIES {
            if !started.as_ref().is_err_and(|why| why.contains("Address already in use")) {
                break;
            }
            started = Self::try_start(binary, extra, |_| ());
        }
        started
    }

    fn try_start(
        binary: &Binary,
        extra: &[&str],
        prepare: impl Fn(&mut Command),
    ) -> Result<Self, String> {
        let addr = free_addr().map_err(|e| format!("no free port: {e}"))?;
        let dir = fresh_dir().map_err(|e| format!("no folder: {e}"))?;
        let log = File::create(dir.join("log")).map_err(|e| format!("no log: {e}"))?;
        let errors = log.try_clone().map_err(|e| format!("no log: {e}"))?;
        let port = addr.port().to_string();
        let mut command = Command::new(&binary.path);
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.args(["--enable-debug-command", "yes"]).arg("--dir").arg(&dir);
        command.arg("--unixsocket").arg(dir.join("sock"));
        if binary.kind == Kind::SheafDb {
            // Tests run side by side; a test that needs the port sets its own after this one.
            command.args(["--admin-port", "0"]);
        }
        if let Some(back_end) = io_backend().filter(|_| binary.kind == Kind::SheafDb) {
            command.args(["--io-backend", &back_end]);
        }
        command.args(extra);
        // SORT ALPHA follows the locale.
        command.env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        prepare(&mut command);
        let child = command.spawn().map_err(|e| e.to_string())?;
        let mut server = Self { child, addr, kind: binary.kind, dir };
        // Another test's server may have taken the port meanwhile, and answer. Only its own one
        // makes the unix socket here, and it has the port then.
        let socket = (!extra.contains(&"--unixsocket")).then(|| server.unix_socket());
        server.wait_ready(socket.as_deref())?;
        Ok(server)
    }

    fn wait_ready(&mut self, socket: Option<&Path>) -> Result<(), String> {
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            let is_there = socket.is_none_or(Path::exists);
            let reply = Wire::connect(self.addr).and_then(|mut wire| wire.command(&["PING"]));
            // With a password it is another error.
            let loads =
                |reply: &Value| matches!(reply, Value::Error(e) if e.starts_with(b"LOADING"));
            if is_there && reply.is_ok_and(|reply| !loads(&reply)) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}:\n{}", self.log()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("no answer in {LIMIT:?}:\n{}", self.log()))
    }

    /// A new connection.
    ///
    /// # Panics
    /// If it refuses.
    pub fn connect(&self) -> Wire {
        Wire::connect(self.addr).expect("the server accepts connections")
    }

    /// Its unix socket.
    pub fn unix_socket(&self) -> PathBuf {
        self.dir.join("sock")
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The file of its log.
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory of the process in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// Resident memory which no other process shares and which is in no file, in bytes. (How many
    /// pages of the program are resident depends on what else the machine has read.)
    pub fn private_bytes(&self) -> u64 {
        self.status_bytes("RssAnon:")
    }

    fn status_bytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .expect("the server runs");
        let line = status.lines().find(|line| line.starts_with(field)).expect("Linux has it");
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|word| word.parse().ok())
            .expect("the name is followed by a number");
        kib * 1024
    }

    /// Whether it runs and answers PING.
    pub fn answers(&mut self) -> bool {
        let runs = matches!(self.child.try_wait(), Ok(None));
        let pong = Value::Simple(b"PONG".to_vec());
        runs && Wire::connect(self.addr)
            .is_ok_and(|mut wire| wire.command(&["PING"]).is_ok_and(|reply| reply == pong))
    }

    /// Sends it SIGTERM.
    ///
    /// # Panics
    /// If it has ended.
    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the server runs");
    }

    /// Kills it with SIGKILL, and waits until it has ended. Returns its log.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn kill(mut self) -> String {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().expect("it is waited for once");
        self.log()
    }

    /// Sends it SIGINT.
    ///
    /// # Panics
    /// If it has ended.
    pub fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("the server runs");
    }

    /// Sends it SIGTERM, and waits until it has ended: what it has in memory is written by then.
    ///
    /// # Panics
    /// If it goes on for [`LIMIT`].
    pub fn end(mut self) {
        self.terminate();
        assert!(self.wait_exit(LIMIT).is_some(), "it goes on:\n{}", self.log());
    }

    /// Waits until it ends, at most `limit`; `None` if it still runs.
    pub fn wait_exit(&mut self, limit: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if started.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.log());
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn fresh_dir() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("sheafdb-test-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}
