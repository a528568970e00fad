//! A minimal HTTP client for the tests of the admin port.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::in_time::until;
use crate::wire::PATIENCE;

/// An HTTP response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code, such as 200.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

/// Requests `path` with these additional header lines, on a new connection.
pub fn get(addr: SocketAddr, path: &str, headers: &[&str]) -> io::Result<Answer> {
    let mut stream = connect(addr)?;
    let lines: String = headers.iter().flat_map(|line| [*line, "\r\n"]).collect();
    let host = if lines.contains("Host:") { String::new() } else { format!("Host: {addr}\r\n") };
    write!(stream, "GET {path} HTTP/1.1\r\n{host}{lines}Connection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, format!("no answer: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(bad)?;
    Ok(Answer { status, head: head.to_lowercase(), body: body.to_owned() })
}

/// The answer of a server that may not listen there yet. A request that was sent so late that the
/// server has closed its connection is sent again.
///
/// # Panics
/// If there is none within the limit of all waits.
pub fn await_answer(addr: SocketAddr, path: &str) -> Answer {
    let mut answer = None;
    until(path, || {
        answer = get(addr, path, &[]).ok();
        answer.is_some()
    });
    answer.expect("it was waited for")
}

/// A connection without a request so far.
pub fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}
