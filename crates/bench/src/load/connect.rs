//! Opening connections: socket, protocol version, password, database.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use client::{Decoder, Value};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use super::error::Error;
use super::spec::{Address, Spec};

/// An open connection of either kind: the standard library's type for TCP reads, writes and times
/// out any stream socket.
#[derive(Debug)]
pub struct Stream(TcpStream);

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Stream {
    /// Connects and greets as `spec` says. Blocking; waits for `timeout_s` at most.
    pub fn open(spec: &Spec, made: usize) -> Result<Self, Error> {
        let failed = |cause| Error::Connect { address: spec.address.to_string(), made, cause };
        let timeout = Duration::from_secs_f64(spec.timeout_s);
        let mut stream = connected(spec, made, timeout).map_err(failed)?;
        stream.set_timeouts(Some(timeout)).map_err(failed)?;
        greet(&mut stream, spec)?;
        Ok(stream)
    }

    /// Connects without a word; waits for `timeout` at most.
    pub fn to(address: &Address, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Tcp(to) => TcpStream::connect_timeout(to, timeout).map(Self),
            Address::Unix(path) => Ok(Self(OwnedFd::from(UnixStream::connect(path)?).into())),
        }
    }

    /// From now on no call waits.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        self.0.set_nonblocking(true)
    }

    /// How long reads and writes wait.
    pub fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(timeout)?;
        self.0.set_write_timeout(timeout)
    }
}

impl Read for &mut Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Connections from one address of this machine: it has some 28,000 ports for each address that it
/// connects to.
const PER_SOURCE: usize = 20_000;

/// Where connection number `made` comes from, if that must be said: over loopback every 127.x.y.z
/// is this machine.
fn source(to: &SocketAddr, made: usize) -> Option<SocketAddr> {
    let number = u16::try_from(made / PER_SOURCE).ok().filter(|&n| n > 0)?;
    let [high, low] = number.to_be_bytes();
    matches!(to, SocketAddr::V4(to) if to.ip().is_loopback())
        .then(|| SocketAddr::from(([127, 1, high, low], 0)))
}

fn connect_from(from: &SocketAddr, to: &SocketAddr) -> io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, from)?;
    connect(&socket, to)?;
    Ok(socket.into())
}

fn connected(spec: &Spec, made: usize, timeout: Duration) -> io::Result<Stream> {
    let Address::Tcp(address) = &spec.address else { return Stream::to(&spec.address, timeout) };
    let stream = match source(address, made) {
        Some(from) => Stream(connect_from(&from, address)?),
        None => Stream::to(&spec.address, timeout)?,
    };
    stream.0.set_nodelay(spec.no_delay)?;
    Ok(stream)
}

/// HELLO, AUTH and SELECT, as far as they are needed.
fn greet(stream: &mut Stream, spec: &Spec) -> Result<(), Error> {
    let user = spec.user.as_deref();
    let password = spec.password.as_deref();
    let db = spec.db.to_string();
    let mut requests: Vec<Vec<&str>> = Vec::new();
    if spec.resp3 {
        let mut hello = vec!["HELLO", "3"];
        if let Some(password) = password {
            hello.extend(["AUTH", user.unwrap_or("default"), password]);
        }
        requests.push(hello);
    } else if let Some(password) = password {
        let words = ["AUTH"].into_iter().chain(user).chain([password]);
        requests.push(words.collect());
    }
    if spec.db != 0 {
        requests.push(vec!["SELECT", &db]);
    }
    for request in requests {
        let args: Vec<&[u8]> = request.iter().map(|word| word.as_bytes()).collect();
        let name = request[0];
        stream
            .write_all(&client::encode(&args))
            .map_err(|error| Error::Handshake(format!("{name}: {error}")))?;
        match Decoder::new(&mut *stream).read() {
            Ok(Value::Error(text)) => {
                return Err(Error::Handshake(format!("{name}: {}", text.escape_ascii())));
            }
            Ok(_) => {}
            Err(error) => return Err(Error::Handshake(format!("{name}: {error}"))),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn many_connections_use_several_source_addresses() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("it has one");
        assert_eq!(source(&to, PER_SOURCE - 1), None);
        let from = source(&to, 2 * PER_SOURCE + 5).expect("another one");
        assert_eq!(from.ip().to_string(), "127.1.0.2");
        let _stream = connect_from(&from, &to).expect("it listens");
        let (_, peer) = listener.accept().expect("a connection");
        assert_eq!(peer.ip(), from.ip());
        let elsewhere: SocketAddr = "10.0.0.1:6379".parse().expect("an address");
        assert_eq!(
            source(&elsewhere, 10 * PER_SOURCE),
            None,
            "the others' ports are the system's business"
        );
    }
}
