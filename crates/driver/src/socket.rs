//! Sockets: listening addresses, peer addresses and connection options.

use crate::sim::SimSocket;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{self, SendFlags, SocketAddrAny, SocketAddrUnix};
use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An accepted connection that no driver has adopted yet.
#[derive(Debug)]
pub struct Socket(pub(crate) Inner);

#[derive(Debug)]
pub(crate) enum Inner {
    /// A real one.
    Fd(OwnedFd),
    /// One of the simulated network.
    Sim(SimSocket),
}

impl Socket {
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(Inner::Fd(fd))
    }

    /// The number of the descriptor, for CLIENT LIST.
    pub fn number(&self) -> i64 {
        match &self.0 {
            Inner::Fd(fd) => i64::from(fd.as_raw_fd()),
            Inner::Sim(socket) => socket.number(),
        }
    }

    /// The descriptor of a real one, its options set, for a back end on the system's sockets.
    ///
    /// # Panics
    /// If it is one of the simulated network: those never come to a real driver.
    pub(crate) fn into_fd(self, options: SocketOptions) -> OwnedFd {
        let fd = self.into_raw_fd();
        set_options(fd.as_fd(), options);
        fd
    }

    /// The same, with the options that it has.
    ///
    /// # Panics
    /// As above.
    pub(crate) fn into_raw_fd(self) -> OwnedFd {
        match self.0 {
            Inner::Fd(fd) => fd,
            Inner::Sim(_) => panic!("a simulated socket came to a real driver"),
        }
    }

    /// Sends the reason and closes.
    pub fn refuse(self, why: &[u8]) {
        match self.0 {
            // The client may be gone already; it is refused either way.
            Inner::Fd(fd) => drop(net::send(&fd, why, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)),
            Inner::Sim(socket) => drop(socket.send(why)),
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

impl From<SocketAddr> for ListenAddr {
    fn from(addr: SocketAddr) -> Self {
        ListenAddr::Tcp(addr)
    }
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

/// The options of a connection.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Send small segments at once.
    pub nodelay: bool,
    /// Probe a silent peer after so many seconds, 0 for never.
    pub keepalive_s: u32,
    /// Its reads may be delayed so that bytes gather, where measurements show that this makes its
    /// client faster.
    pub gathers: bool,
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

    /// The address of a connection that no longer exists.
    pub(crate) fn unknown() -> Self {
        PeerAddr::Unix(PathBuf::new())
    }

    /// An address from the system; a unix socket without a name has the one that is listened on.
    pub(crate) fn of(addr: Option<SocketAddrAny>, listened: &Path) -> Self {
        let Some(addr) = addr else { return PeerAddr::Unix(listened.to_owned()) };
        if let Ok(tcp) = SocketAddr::try_from(addr.clone()) {
            return PeerAddr::Tcp(tcp);
        }
        let unix = SocketAddrUnix::try_from(addr).ok();
        let name = unix.as_ref().and_then(SocketAddrUnix::path);
        PeerAddr::Unix(name.map_or(listened.to_owned(), |n| OsStr::from_bytes(n.to_bytes()).into()))
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
fn set_options(fd: BorrowedFd<'_>, options: SocketOptions) {
    use net::sockopt;
    // Setting an option fails if the peer is gone, which the next operation reports, or on a unix
    // socket, which does not need it.
    let _ = sockopt::set_tcp_nodelay(fd, options.nodelay);
    if options.keepalive_s > 0 && sockopt::set_socket_keepalive(fd, true).is_ok() {
        let s = std::time::Duration::from_secs(u64::from(options.keepalive_s));
        let _ = sockopt::set_tcp_keepidle(fd, s);
        let _ = sockopt::set_tcp_keepintvl(fd, (s / 3).max(std::time::Duration::from_secs(1)));
        let _ = sockopt::set_tcp_keepcnt(fd, 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_addresses_are_formatted_as_text() {
        let tcp = |text: &str| PeerAddr::Tcp(text.parse().expect("an address"));
        assert_eq!(tcp("127.0.0.1:6379").to_string(), "127.0.0.1:6379");
        assert_eq!(tcp("[::1]:6379").to_string(), "[::1]:6379");
        assert_eq!(PeerAddr::Unix("/tmp/a.sock".into()).to_string(), "/tmp/a.sock:0");
    }

    #[test]
    fn loopback_and_unix_addresses_are_local() {
        let tcp = |text: &str| PeerAddr::Tcp(text.parse().expect("an address"));
        for (addr, local) in [
            (tcp("127.8.0.1:1"), true),
            (tcp("[::1]:1"), true),
            (tcp("[::ffff:127.0.0.1]:1"), true),
            (tcp("192.0.2.1:1"), false),
            (tcp("[2001:db8::1]:1"), false),
            (PeerAddr::Unix("s".into()), true),
        ] {
            assert_eq!(addr.is_local(), local, "{addr}");
        }
    }

    #[test]
    fn socket_options_are_set() {
        use rustix::fd::AsFd;
        use rustix::net::sockopt;
        use std::time::Duration;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("bound");
        let connect = || std::net::TcpStream::connect(addr).expect("it listens");
        let (with, without) = (connect(), connect());
        set_options(
            with.as_fd(),
            SocketOptions { nodelay: true, keepalive_s: 300, gathers: false },
        );
        assert_eq!(sockopt::tcp_nodelay(&with), Ok(true));
        assert_eq!(sockopt::socket_keepalive(&with), Ok(true));
        assert_eq!(sockopt::tcp_keepidle(&with), Ok(Duration::from_secs(300)));
        assert_eq!(sockopt::tcp_keepintvl(&with), Ok(Duration::from_secs(100)));
        assert_eq!(sockopt::tcp_keepcnt(&with), Ok(3));
        set_options(
            without.as_fd(),
            SocketOptions { nodelay: false, keepalive_s: 0, gathers: false },
        );
        assert_eq!(sockopt::tcp_nodelay(&without), Ok(false));
        assert_eq!(sockopt::socket_keepalive(&without), Ok(false));
    }
}
