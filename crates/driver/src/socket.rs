//! Sockets: where to listen, who connects, what is set on a connection.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{self, SendFlags, SocketAddrAny};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An accepted connection that no driver has adopted yet.
#[derive(Debug)]
pub struct Socket(pub(crate) Inner);

#[derive(Debug)]
pub(crate) enum Inner {
    /// A real one.
    Fd(OwnedFd),
}

impl Socket {
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(Inner::Fd(fd))
    }

    /// The descriptor's number, for lists of clients.
    pub fn number(&self) -> i64 {
        match &self.0 {
            Inner::Fd(fd) => i64::from(fd.as_raw_fd()),
        }
    }

    /// Says why and closes.
    pub fn refuse(self, why: &[u8]) {
        match self.0 {
            // The client may be gone already; it is refused either way.
            Inner::Fd(fd) => drop(net::send(&fd, why, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)),
        }
    }
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    /// An IPv4 or IPv6 address and port.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix {
        /// Where.
        path: PathBuf,
        /// File mode, if it is to be set.
        permissions: Option<u32>,
    },
}

/// How to listen.
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// Length of the queue of connections that wait to be accepted.
    pub backlog: u32,
}

/// Why listening failed.
#[derive(Debug)]
pub struct ListenError(pub std::io::Error);

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is set on a connection.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Send small segments at once.
    pub nodelay: bool,
    /// Probe a silent peer after so many seconds, 0 for never.
    pub keepalive_s: u32,
}

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAddr {
    /// TCP.
    Tcp(SocketAddr),
    /// A unix socket, by the path that is listened on.
    Unix(PathBuf),
}

impl PeerAddr {
    /// True for the loopback interface and unix sockets.
    pub fn is_local(&self) -> bool {
        match self {
            PeerAddr::Tcp(a) => a.ip().to_canonical().is_loopback(),
            PeerAddr::Unix(_) => true,
        }
    }

    /// True for unix sockets.
    pub fn is_unix(&self) -> bool {
        matches!(self, PeerAddr::Unix(_))
    }

    pub(crate) fn of(addr: Option<SocketAddrAny>, unix: &std::path::Path) -> Self {
        addr.and_then(|a| SocketAddr::try_from(a).ok())
            .map_or_else(|| PeerAddr::Unix(unix.to_owned()), PeerAddr::Tcp)
    }
}

impl fmt::Display for PeerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddr::Tcp(a) => a.fmt(f),
            PeerAddr::Unix(p) => write!(f, "{}:0", p.display()),
        }
    }
}

/// Sets the options; a unix socket has none of them.
pub(crate) fn set_options(fd: BorrowedFd<'_>, options: &SocketOptions) {
    use net::sockopt;
    // A failure means that the peer is gone or that this is a unix socket: both show later or do not matter.
    let _ = sockopt::set_tcp_nodelay(fd, options.nodelay);
    if options.keepalive_s > 0 && sockopt::set_socket_keepalive(fd, true).is_ok() {
        let s = std::time::Duration::from_secs(u64::from(options.keepalive_s));
        let _ = sockopt::set_tcp_keepidle(fd, s);
        let _ = sockopt::set_tcp_keepintvl(fd, (s / 3).max(std::time::Duration::from_secs(1)));
        let _ = sockopt::set_tcp_keepcnt(fd, 3);
    }
}

impl AsFd for Inner {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Inner::Fd(fd) => fd.as_fd(),
        }
    }
}
