//! Opening connections: socket, protocol version, password, database.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use client::{Decoder, Value};

use super::error::Error;
use super::spec::{Address, Spec};

/// An open connection.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Stream {
    /// Connects and greets as `spec` says. Blocking; waits for `timeout_s` at most.
    pub fn open(spec: &Spec, made: usize) -> Result<Self, Error> {
        let failed = |cause| Error::Connect { address: spec.address.to_string(), made, cause };
        let timeout = Duration::from_secs_f64(spec.timeout_s);
        let mut stream = connected(spec, timeout).map_err(failed)?;
        stream.set_timeouts(Some(timeout)).map_err(failed)?;
        greet(&mut stream, spec)?;
        Ok(stream)
    }

    /// From now on no call waits.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }
}

impl Read for &mut Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buf),
            Stream::Unix(stream) => stream.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buf),
            Self::Unix(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn connected(spec: &Spec, timeout: Duration) -> io::Result<Stream> {
    match &spec.address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, timeout)?;
            stream.set_nodelay(spec.no_delay)?;
            Ok(Stream::Tcp(stream))
        }
        Address::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
    }
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
