//! Listening sockets and the acceptor, which is a thread of its own in every model. Its queue may
//! be short (`--backlog`) and it may be slow (`--accept-every`), to see connections overflow.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, sockopt,
};

use super::Options;
use super::context::Context;

/// Pause after a connection could not be accepted because descriptors or memory ran out.
const RETRY: Duration = Duration::from_millis(20);

/// The listening sockets of a model.
#[derive(Debug)]
pub struct Listener {
    tcp: OwnedFd,
    address: SocketAddr,
    unix: Option<(OwnedFd, PathBuf)>,
}

impl Listener {
    /// Opens them.
    pub fn open(options: &Options) -> io::Result<Self> {
        let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
        let tcp = open_tcp(SocketAddr::new(options.bind, options.port), backlog)?;
        let address = SocketAddr::try_from(net::getsockname(&tcp)?)?;
        let unix = match &options.unixsocket {
            Some(path) => Some((open_unix(path, backlog)?, path.clone())),
            None => None,
        };
        Ok(Self { tcp, address, unix })
    }

    /// The TCP address, with the port that was chosen if 0 was asked for.
    pub fn tcp(&self) -> SocketAddr {
        self.address
    }

    /// The path of the unix socket.
    pub fn unix(&self) -> Option<&Path> {
        self.unix.as_ref().map(|(_, path)| path.as_path())
    }

    /// Connection attempts that found the TCP queue full.
    pub fn overflows(&self) -> u64 {
        driver::socket_drops(self.tcp.as_fd())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.unix {
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Connections as they come, until the model ends.
pub struct Accepted<'a> {
    context: &'a Context,
    first: bool,
}

/// Connections as they come, until the model ends.
pub fn accepted(context: &Context) -> Accepted<'_> {
    Accepted { context, first: true }
}

impl Iterator for Accepted<'_> {
    type Item = OwnedFd;

    fn next(&mut self) -> Option<OwnedFd> {
        let options = &self.context.options;
        if !std::mem::take(&mut self.first) {
            self.pause(Duration::from_millis(options.accept_every));
        }
        loop {
            self.wait();
            if self.context.is_stopped() {
                return None;
            }
            match self.accept() {
                Ok(Some(fd)) => return Some(fd),
                Ok(None) => {}
                Err(_) => self.pause(RETRY),
            }
        }
    }
}

impl Accepted<'_> {
    /// Waits for a connection or the end.
    fn wait(&self) {
        let listener = &self.context.listener;
        let stop = self.context.stop_fd();
        let mut fds = vec![
            PollFd::new(&listener.tcp, PollFlags::IN),
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
        ];
        if let Some((unix, _)) = &listener.unix {
            fds.push(PollFd::new(unix, PollFlags::IN));
        }
        // A failed wait is an interrupted one; the caller looks either way.
        let _ = poll(&mut fds, None);
    }

    /// Sleeps, or returns early at the end.
    fn pause(&self, time: Duration) {
        if time.is_zero() {
            return;
        }
        let stop = self.context.stop_fd();
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut fds = [PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&timeout));
    }

    fn accept(&self) -> Result<Option<OwnedFd>, Errno> {
        let listener = &self.context.listener;
        if let Some(fd) = accept_one(&listener.tcp)? {
            // The peer may be gone already, which its first read will tell.
            let _ = sockopt::set_tcp_nodelay(&fd, self.context.options.nodelay);
            return Ok(Some(fd));
        }
        match &listener.unix {
            Some((unix, _)) => accept_one(unix),
            None => Ok(None),
        }
    }
}

fn accept_one(listener: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    match accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_tcp(at: SocketAddr, backlog: i32) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::STREAM, flags(), None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    net::bind(&fd, &at)?;
    net::listen(&fd, backlog)?;
    Ok(fd)
}

fn open_unix(path: &Path, backlog: i32) -> io::Result<OwnedFd> {
    // What an earlier run left behind; nothing but a socket is removed.
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None)?;
    net::bind(&fd, &SocketAddrUnix::new(path)?)?;
    net::listen(&fd, backlog)?;
    Ok(fd)
}

fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}
