//! Listening sockets.

use crate::socket::{ListenAddr, ListenError, ListenOptions};
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::path::Path;

/// One of them.
pub struct Listener {
    /// The socket.
    pub fd: OwnedFd,
    /// The path of a unix socket, empty for TCP.
    pub path: std::path::PathBuf,
}

/// Opens one.
pub fn open(at: &ListenAddr, options: &ListenOptions) -> Result<Listener, ListenError> {
    let result = match at {
        ListenAddr::Tcp(addr) => tcp(*addr, options),
        ListenAddr::Unix { path, permissions } => unix(path, *permissions, options),
    };
    result.map_err(|e| ListenError(e.into()))
}

fn tcp(addr: SocketAddr, options: &ListenOptions) -> Result<Listener, Errno> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::STREAM, flags(), None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if addr.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, true)?;
    }
    net::bind(&fd, &addr)?;
    net::listen(&fd, options.backlog as i32)?;
    Ok(Listener { fd, path: Default::default() })
}

fn unix(path: &Path, permissions: Option<u32>, options: &ListenOptions) -> Result<Listener, Errno> {
    // A socket file left by an earlier run would make bind fail.
    let _ = rustix::fs::unlink(path);
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None)?;
    net::bind(&fd, &SocketAddrUnix::new(path)?)?;
    if let Some(mode) = permissions {
        rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
    }
    net::listen(&fd, options.backlog as i32)?;
    Ok(Listener { fd, path: path.to_owned() })
}

fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}
