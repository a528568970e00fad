//! The server as a process: going into the background, the pid file, the working folder, and
//! telling a supervisor.
#![allow(unsafe_code)] // fork

use crate::persist::load::state::Progress;
use config::Supervised;
use config::load::{StartError, io_text};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{Pid, test_kill_process};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where a background server without a `pidfile` leaves its process id.
pub const PIDFILE_DEFAULT: &str = "/var/run/sheafdb.pid";

/// How long a supervisor waits for the next word while the server loads or saves; longer by far
/// than the time between two words.
const EXTENSION: Duration = Duration::from_secs(60);

/// A server in the background which has not reported yet that it is ready. If this is dropped
/// before [`Daemon::ready`], the waiting first process reports that the start failed.
#[derive(Debug)]
pub struct Daemon {
    first: std::io::PipeWriter,
}

/// Puts this process into the background: a session of its own that can never get a terminal.
/// Returns in the background process only. The first process waits until that one is ready or
/// ends, so that whoever started it learns which; until then errors still reach the terminal.
///
/// # Panics
/// Must be called before there are other threads.
pub fn daemonize() -> std::io::Result<Daemon> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    assert_eq!(threads, 1, "only the calling thread lives on after a fork");
    let (mut reader, first) = std::io::pipe()?;
    if fork()? {
        drop(first);
        let mut ready = [0];
        let ok = reader.read_exact(&mut ready).is_ok();
        exit_now(i32::from(!ok));
    }
    drop(reader);
    rustix::process::setsid()?;
    // A second fork: who leads a session could still open a terminal and get it.
    if fork()? {
        exit_now(0);
    }
    Ok(Daemon { first })
}

impl Daemon {
    /// Lets go of the terminal and of the first process, which then ends well.
    pub fn ready(mut self) -> std::io::Result<()> {
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        self.first.write_all(&[1])
    }
}

/// True in the process that was there before.
fn fork() -> std::io::Result<bool> {
    // SAFETY: called while this process has a single thread (asserted by the caller), so the
    // copy has every lock and allocator structure in a state that no other thread held.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => Ok(false),
        _ => Ok(true),
    }
}

/// Ends a process that handed everything to its copy: nothing may be flushed or removed twice.
fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` ends the process and touches nothing of it.
    unsafe { libc::_exit(code) }
}

/// The file that holds the process id while this value lives.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    text: String,
}

impl PidFile {
    /// Writes the id of this process.
    pub fn write(path: &Path) -> std::io::Result<Self> {
        let text = format!("{}\n", std::process::id());
        std::fs::write(path, &text)?;
        // The working folder may change; the file stays where it is.
        Ok(PidFile { path: std::path::absolute(path)?, text })
    }
}

impl Drop for PidFile {
    /// Removes the file, unless another process wrote it anew.
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Makes `dir` the working folder, once it is clear that files can be made there.
pub fn enter_dir(dir: &Path) -> Result<(), StartError> {
    let error = |what: &str, e: &std::io::Error, cure: &str| StartError {
        place: format!("dir '{}'", dir.display()),
        problem: format!("{what}: {}", io_text(e)),
        cure: cure.to_owned(),
    };
    let cure = "give a folder that exists with --dir";
    std::env::set_current_dir(dir).map_err(|e| error("cannot be entered", &e, cure))?;
    let needed = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, ".", needed, AtFlags::EACCESS).map_err(|e| {
        let user = rustix::process::geteuid().as_raw();
        let cure = "give another folder with --dir, or the right to write there";
        error(&format!("cannot be written to by user {user}"), &e.into(), cure)
    })
}

/// Who supervises this server, in INFO's words.
pub fn supervisor(supervised: Supervised) -> &'static str {
    let is_set = |name| std::env::var_os(name).is_some();
    match supervised {
        Supervised::Systemd => "systemd",
        Supervised::Upstart => "upstart",
        Supervised::Auto if is_set("NOTIFY_SOCKET") => "systemd",
        Supervised::Auto if is_set("UPSTART_JOB") => "upstart",
        Supervised::No | Supervised::Auto => "no",
    }
}

/// Tells the supervisor that this server is ready. Without one, or if it does not listen, nothing
/// happens.
pub fn notify_ready(supervised: Supervised) {
    let (systemd, upstart) = match supervised {
        Supervised::No => (false, false),
        Supervised::Systemd => (true, false),
        Supervised::Upstart => (false, true),
        Supervised::Auto => (true, true),
    };
    if systemd && let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        let _ = notify(&socket, b"READY=1\n");
    } else if upstart && std::env::var_os("UPSTART_JOB").is_some() {
        let me = rustix::process::getpid();
        let _ = rustix::process::kill_process(me, rustix::process::Signal::STOP);
    }
}

/// Tells systemd that the end takes longer, because the server saves: it waits for so long from now
/// on.
pub fn notify_saving(supervised: Supervised) {
    let text = format!("EXTEND_TIMEOUT_USEC={}\nSTATUS=Saving\n", EXTENSION.as_micros());
    notify_systemd(supervised, text.as_bytes());
}

/// Tells systemd that the start takes longer: it waits for so long from now on, however long it
/// was to wait, and shows how far loading is.
pub fn notify_loading(supervised: Supervised, progress: &Progress) {
    let micros = EXTENSION.as_micros();
    let text = format!("EXTEND_TIMEOUT_USEC={micros}\nSTATUS=Loading: {progress}\n");
    notify_systemd(supervised, text.as_bytes());
}

/// Replaces the status that [`notify_loading`] has shown.
pub fn notify_loaded(supervised: Supervised) {
    notify_systemd(supervised, b"STATUS=Ready to accept connections\n");
}

/// Tells systemd that this server is about to end.
pub fn notify_stopping(supervised: Supervised) {
    notify_systemd(supervised, b"STOPPING=1\n");
}

fn notify_systemd(supervised: Supervised, message: &[u8]) {
    if matches!(supervised, Supervised::Systemd | Supervised::Auto)
        && let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
    {
        let _ = notify(&socket, message);
    }
}

/// Sends a message to a socket with a path, or with a name of its own behind an `@`.
fn notify(socket: &OsStr, message: &[u8]) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address)?;
    Ok(())
}

/// What the name of a temporary file begins with. Those of Redis, `temp-<pid>.rdb`, are kept.
const TEMPORARY: &str = "temp-sheafdb-";
/// And what it ends with.
const TEMPORARY_END: &str = ".rdb";
/// How long nobody has written to a temporary file that is removed.
const IDLE: Duration = Duration::from_secs(60);

/// The name of the temporary file which a process saves to.
pub(crate) fn temporary_name(process: u32) -> String {
    format!("{TEMPORARY}{process}{TEMPORARY_END}")
}

/// Removes the temporary files that killed servers have left in a folder, each as long as the data;
/// returns which. `own` is the number of this process, which has not saved yet.
///
/// Only a file is removed that has the name of ours, of a process that is gone or has our number,
/// and that nobody has written to for a minute. A server in another container may use the same
/// folder, where its process cannot be seen from here; while it saves, it writes more often.
pub(crate) fn remove_leftovers(folder: &Path, own: u32) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let is_left = |path: &PathBuf| {
        let process = path.file_name().and_then(|name| temporary_of(name.to_str()?));
        process.is_some_and(|process| process == own || is_gone(process)) && is_idle(path)
    };
    paths.filter(is_left).filter(|path| std::fs::remove_file(path).is_ok()).collect()
}

/// The process whose temporary file has this name.
fn temporary_of(name: &str) -> Option<u32> {
    let process = name.strip_prefix(TEMPORARY)?.strip_suffix(TEMPORARY_END)?.parse().ok()?;
    (temporary_name(process) == name).then_some(process)
}

fn is_gone(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

fn is_idle(path: &Path) -> bool {
    let written = path.symlink_metadata().and_then(|metadata| metadata.modified());
    let idle = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    idle.is_some_and(|idle| idle >= IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("process-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        path
    }

    #[test]
    fn a_pid_file_is_written_and_removed() {
        let dir = folder("pid");
        let path = dir.join("a.pid");
        let file = PidFile::write(&path).expect("writable");
        let text = std::fs::read_to_string(&path).expect("readable");
        assert_eq!(text, format!("{}\n", std::process::id()));
        drop(file);
        assert!(!path.exists());
        let file = PidFile::write(&path).expect("writable");
        std::fs::write(&path, "1\n").expect("writable");
        drop(file);
        assert!(path.exists(), "it belongs to another process now");
        assert!(PidFile::write(&dir.join("no/a.pid")).is_err());
        std::fs::remove_dir_all(dir).expect("a temporary folder");
    }

    #[test]
    fn a_supervisor_is_notified() {
        let dir = folder("notify");
        let path = dir.join("s");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        notify(path.as_os_str(), b"READY=1\n").expect("sent");
        let mut text = [0; 64];
        let len = socket.recv(&mut text).expect("received");
        assert_eq!(&text[..len], b"READY=1\n");
        let name = format!("sheafdb-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        notify(OsStr::new(&format!("@{name}")), b"STOPPING=1\n").expect("sent");
        let len = socket.recv(&mut text).expect("received");
        assert_eq!(&text[..len], b"STOPPING=1\n");
        std::fs::remove_dir_all(dir).expect("a temporary folder");
    }

    #[test]
    fn only_idle_files_of_processes_that_are_gone_are_removed() {
        let folder = folder("leftovers");
        // Above the largest number of a process.
        let (gone, own, parent) = (1 << 23, 1 << 24, std::os::unix::process::parent_id());
        let put = |name: &str, age: u64| {
            let file = std::fs::File::create(folder.join(name)).expect("room");
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("it is ours");
        };
        let kept = [
            temporary_name(parent),
            format!("temp-{gone}.rdb"),
            format!("temp-sheafdb-0{gone}.rdb"),
            format!("temp-sheafdb-{gone}.rdb2"),
            "temp-sheafdb-.rdb".into(),
            "dump.rdb".into(),
            temporary_name(gone + 1),
        ];
        kept[..6].iter().for_each(|name| put(name, 3600));
        put(&kept[6], 5);
        put(&temporary_name(gone), 3600);
        put(&temporary_name(own), 3600);
        let mut removed = remove_leftovers(&folder, own);
        removed.sort();
        assert_eq!(removed, [folder.join(temporary_name(own)), folder.join(temporary_name(gone))]);
        assert!(kept.iter().all(|name| folder.join(name).exists()));
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
