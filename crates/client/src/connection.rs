//! A connection: requests out, replies in.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use resp::{OutBuf, Proto, Reply};

use crate::decode::{Decoder, Error};
use crate::reply::Value;

/// Maximum bytes of pipelined requests that are sent before their replies are read. It is less than
/// a socket buffers, so that the two sides never block on each other.
pub const WINDOW_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of pushes queued for [`Client::next_push`].
pub const PUSHES_MAX: usize = 64 * 1024;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port, as in `127.0.0.1:6379` or `[::1]:6379`.
    Tcp(String),
    /// Path of a unix socket.
    Unix(PathBuf),
}

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    decoder: Decoder<Stream>,
    pushes: VecDeque<Value>,
}

impl Client {
    /// Connects within `timeout`, which then bounds each wait for a reply as well.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Self, Error> {
        let stream = match address {
            Address::Tcp(text) => Stream::Tcp(connect_tcp(text, timeout)?),
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
        };
        let mut client = Self { decoder: Decoder::new(stream), pushes: VecDeque::new() };
        client.set_timeout(Some(timeout))?;
        Ok(client)
    }

    /// Sets how long a read of a reply and a write of a request may block; `None`: for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let stream = self.decoder.source();
        stream.set_read_timeout(timeout)?;
        stream.set_write_timeout(timeout)?;
        Ok(())
    }

    /// Sends a request and reads its reply. Pushes that arrive before the reply are queued for
    /// [`Client::next_push`]. So use [`Client::send`] and [`Client::read`] for a request that is
    /// answered by pushes (SUBSCRIBE in RESP3).
    pub fn call(&mut self, args: &[&[u8]]) -> Result<Value, Error> {
        self.send(args)?;
        self.reply()
    }

    /// Sends requests together and reads their replies.
    pub fn pipeline<'r>(
        &mut self,
        requests: impl IntoIterator<Item = &'r [&'r [u8]]>,
    ) -> Result<Vec<Value>, Error> {
        let mut replies = Vec::new();
        let (mut window, mut missing) = (Vec::new(), 0);
        for request in requests {
            let request = encode(request);
            if !window.is_empty() && window.len() + request.len() > WINDOW_BYTES_MAX {
                self.exchange(&mut window, &mut missing, &mut replies)?;
            }
            window.extend(request);
            missing += 1;
        }
        self.exchange(&mut window, &mut missing, &mut replies)?;
        Ok(replies)
    }

    fn exchange(
        &mut self,
        window: &mut Vec<u8>,
        missing: &mut usize,
        replies: &mut Vec<Value>,
    ) -> Result<(), Error> {
        self.send_raw(window)?;
        window.clear();
        for _ in 0..std::mem::take(missing) {
            replies.push(self.reply()?);
        }
        Ok(())
    }

    /// Sends a request without waiting for its reply.
    pub fn send(&mut self, args: &[&[u8]]) -> Result<(), Error> {
        self.send_raw(&encode(args))
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.decoder.source_mut().write_all(bytes)?)
    }

    /// Reads the next value from the server, pushes included.
    pub fn read(&mut self) -> Result<Value, Error> {
        self.decoder.read()
    }

    /// Reads the next reply to a request.
    pub fn reply(&mut self) -> Result<Value, Error> {
        loop {
            match self.decoder.read()? {
                push @ Value::Push(_) if self.pushes.len() < PUSHES_MAX => {
                    self.pushes.push_back(push);
                }
                Value::Push(_) => {
                    return Err(Error::Protocol(format!("more than {PUSHES_MAX} unread pushes")));
                }
                reply => return Ok(reply),
            }
        }
    }

    /// Takes the oldest push that arrived while the client waited for a reply.
    pub fn next_push(&mut self) -> Option<Value> {
        self.pushes.pop_front()
    }

    /// Shuts down the sending side; replies can still be read.
    pub fn finish_sending(&mut self) -> Result<(), Error> {
        Ok(self.decoder.source().shutdown_write()?)
    }
}

/// The bytes of a request.
pub fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut out = OutBuf::new();
    let mut writer = Reply::new(&mut out, Proto::Resp2);
    writer.array(args.len());
    for arg in args {
        writer.bulk(arg);
    }
    out.bytes
}

/// Resolves `text` and connects to the first address that accepts.
fn connect_tcp(text: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, format!("no address for {text}"));
    for address in text.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Either kind of socket.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
            Self::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(timeout),
            Self::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(std::net::Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(std::net::Shutdown::Write),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buf),
            Self::Unix(stream) => stream.read(buf),
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
