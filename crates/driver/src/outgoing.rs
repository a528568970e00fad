//! A connection that this server opens itself, for a helper thread: it blocks, and each wait is
//! bounded. Workers have no use for it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The longest line that [`Outgoing::line`] reads.
pub const LINE_MAX: usize = 64 * 1024;
/// Received at a time.
const CHUNK: usize = 4096;

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// The name has no address.
    Resolve,
    /// The address did not accept the connection, or not in time.
    Connect(io::Error),
}

/// A connection to another server.
#[derive(Debug)]
pub struct Outgoing {
    stream: TcpStream,
    input: Vec<u8>,
    read: usize,
}

impl Outgoing {
    /// Connects to the first address of `host` that answers; each of them, and each later wait, has
    /// `timeout`, which is above 0. Resolving a name takes as long as the system's resolver does.
    pub fn connect(host: &str, port: u16, timeout: Duration) -> Result<Self, ConnectError> {
        let addrs = (host, port).to_socket_addrs().map_err(|_| ConnectError::Resolve)?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for addr in addrs {
            match TcpStream::connect_timeout(&addr, timeout) {
                Ok(stream) => return Self::new(stream, timeout).map_err(ConnectError::Connect),
                Err(e) => last = e,
            }
        }
        Err(ConnectError::Connect(last))
    }

    fn new(stream: TcpStream, timeout: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self { stream, input: Vec::new(), read: 0 })
    }

    /// Sends everything; an error if the other side takes nothing for the length of the timeout.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next line, without its CR LF; an error if it is too long, if none comes for the length
    /// of the timeout, or if the other side closes.
    pub fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let left = &self.input[self.read..];
            if let Some(at) = left[searched..].iter().position(|b| *b == b'\n') {
                let end = searched + at;
                let line = left[..end].strip_suffix(b"\r").unwrap_or(&left[..end]).to_vec();
                self.read += end + 1;
                return Ok(line);
            }
            searched = left.len();
            if searched > LINE_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.input.drain(..self.read);
            self.read = 0;
            let mut chunk = [0; CHUNK];
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => self.input.extend_from_slice(&chunk[..n]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const SOON: Duration = Duration::from_millis(50);

    #[test]
    fn lines_are_reassembled_and_bounded_in_time_and_length() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let mut ours = Outgoing::connect("localhost", port, SOON)
            .or_else(|_| Outgoing::connect("127.0.0.1", port, SOON))
            .expect("it listens");
        let (mut theirs, _) = listener.accept().expect("it connected");
        ours.send(b"PING\r\n").expect("there is room");
        theirs.write_all(b"+one\r\n-two\n+thr").expect("there is room");
        assert_eq!(ours.line().expect("a line"), b"+one");
        assert_eq!(ours.line().expect("a line"), b"-two");
        ours.line().expect_err("half a line is none");
        theirs.write_all(b"ee\r\n").expect("there is room");
        assert_eq!(ours.line().expect("a line"), b"+three");
        let big = vec![b'x'; 64 << 20];
        ours.send(&big).expect_err("nobody reads");
        theirs.write_all(&big[..2 * LINE_MAX]).expect("it is read or buffered");
        assert_eq!(ours.line().expect_err("too long").kind(), io::ErrorKind::InvalidData);
        drop(theirs);
        drop(listener);
        assert!(matches!(
            Outgoing::connect("127.0.0.1", port, SOON),
            Err(ConnectError::Connect(_))
        ));
        assert!(matches!(
            Outgoing::connect("no name at all", port, SOON),
            Err(ConnectError::Resolve)
        ));
    }
}
