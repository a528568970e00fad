//! Small servers with known behaviour, in this process, on free ports.

#![allow(dead_code)] // each test file uses a part of it

pub mod acceptor;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use acceptor::Acceptor;
use bench::load::{Address, Spec};
use client::{Decoder, Value};

/// What a server does on the n-th request of a connection.
pub type Answer = dyn Fn(u64, &[Vec<u8>]) -> Reply + Send + Sync;

/// The reaction to a request.
pub enum Reply {
    /// Sends these bytes.
    Bytes(Vec<u8>),
    /// Never replies.
    Nothing,
    /// Sends the replies so far and closes the connection.
    Close,
}

/// A server with a thread per connection. It ends when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    _acceptor: Acceptor,
}

impl Server {
    pub fn start(answer: impl Fn(u64, &[Vec<u8>]) -> Reply + Send + Sync + 'static) -> Self {
        let acceptor = Acceptor::start(move |stream| serve(stream, &answer));
        Self { address: acceptor.address, _acceptor: acceptor }
    }

    /// A load for this server: one connection, so that its requests are numbered.
    pub fn spec(&self) -> Spec {
        Spec { address: Address::Tcp(self.address), connections: 1, ..Spec::default() }
    }
}

/// Requests are arrays of bulk strings, which the reply decoder reads, too. Requests received
/// together are answered together.
fn serve(stream: TcpStream, answer: &Answer) {
    stream.set_nodelay(true).expect("a TCP socket");
    let mut writer = stream.try_clone().expect("another handle");
    let mut decoder = Decoder::new(stream);
    let (mut number, mut out) = (0, Vec::new());
    while let Ok(Value::Array(args)) = decoder.read() {
        let args: Vec<Vec<u8>> =
            args.iter().map(|arg| arg.as_bytes().expect("a bulk string").to_vec()).collect();
        match answer(number, &args) {
            Reply::Bytes(bytes) => out.extend(bytes),
            Reply::Nothing => {}
            Reply::Close => {
                let _ = writer.write_all(&out);
                return;
            }
        }
        number += 1;
        if decoder.buffered().is_empty() {
            if writer.write_all(&out).is_err() {
                return;
            }
            out.clear();
        }
    }
    let _ = decoder.source_mut().read(&mut [0]);
}

pub fn ok() -> Reply {
    Reply::Bytes(b"+OK\r\n".to_vec())
}

pub fn bulk(bytes: &[u8]) -> Reply {
    Reply::Bytes([format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}
