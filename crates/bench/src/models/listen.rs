//! Listening sockets. Their queue may be short (`--backlog`), to see connections overflow.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::options::Options;

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

    /// The descriptors: TCP first, then that of the unix socket if there is one.
    pub fn fds(&self) -> impl Iterator<Item = &OwnedFd> {
        [&self.tcp].into_iter().chain(self.unix.as_ref().map(|(fd, _)| fd))
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
