//! Listening sockets.

use crate::socket::{ListenAddr, ListenOptions};
use base::sync::thread;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, Stat, lstat, unlink};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A listening socket. Dropping it removes a unix socket's file.
pub struct Listener {
    /// The socket.
    pub fd: OwnedFd,
    /// The file of a unix socket.
    file: Option<SocketFile>,
}

struct SocketFile {
    path: PathBuf,
    made: Option<Stat>,
}

impl Listener {
    /// Opens a listening socket.
    pub fn open(at: &ListenAddr, options: ListenOptions) -> Result<Self, Errno> {
        let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
        match at {
            ListenAddr::Tcp(addr) => patiently(|| tcp(*addr, backlog)),
            ListenAddr::Unix { path, permissions } => unix(path, *permissions, backlog),
        }
    }

    /// The path of a unix socket, empty for TCP.
    pub fn path(&self) -> &Path {
        self.file.as_ref().map_or(Path::new(""), |f| &f.path)
    }

    /// Removes a unix socket's file and returns the socket.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// True for a unix socket.
    pub fn is_unix(&self) -> bool {
        self.file.is_some()
    }
}

/// How long to retry while an address is in use.
const PATIENCE: Duration = Duration::from_millis(500);

/// Retries while the address is in use. The kernel closes the rings of a killed process, and with
/// them its listening sockets, 5 to 14 ms after `wait` has returned. Without the retry a server
/// that replaces a killed one with io_uring would find its ports in use.
fn patiently<T>(listen: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    let until = Instant::now() + PATIENCE;
    loop {
        match listen() {
            Err(Errno::ADDRINUSE) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
}

fn tcp(addr: SocketAddr, backlog: i32) -> Result<Listener, Errno> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::STREAM, flags(), None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if addr.is_ipv6() {
        // Allows the same port in both address families.
        sockopt::set_ipv6_v6only(&fd, true)?;
    }
    net::bind(&fd, &addr)?;
    net::listen(&fd, backlog)?;
    Ok(Listener { fd, file: None })
}

fn unix(path: &Path, permissions: Option<u32>, backlog: i32) -> Result<Listener, Errno> {
    let addr = SocketAddrUnix::new(path)?;
    // A socket file left by an earlier run would make bind fail. Only sockets are removed.
    if lstat(path).is_ok_and(|s| FileType::from_raw_mode(s.st_mode).is_socket()) {
        unlink(path)?;
    }
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None)?;
    net::bind(&fd, &addr)?;
    let file = SocketFile { path: path.to_owned(), made: lstat(path).ok() };
    let listener = Listener { fd, file: Some(file) };
    if let Some(mode) = permissions {
        rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
    }
    net::listen(&listener.fd, backlog)?;
    Ok(listener)
}

fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have replaced the file by its own socket.
        let made = self.made.as_ref().map(|s| (s.st_dev, s.st_ino));
        if made.is_some() && made == lstat(&self.path).ok().map(|s| (s.st_dev, s.st_ino)) {
            let _ = unlink(&self.path);
        }
    }
}
