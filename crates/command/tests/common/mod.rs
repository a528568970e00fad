//! Shared by the tests of this crate: requests from words, replies as values, a live redis-server.
#![allow(dead_code)] // each test file uses a part of it

pub mod pair;
pub mod requests;
pub mod session;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base::Blob;
use command::Error;
use resp::{Args, BigArg, OutBuf, Proto, Reply, Span};

/// A longer argument arrives in a buffer of its own.
const BIG_BULK: usize = 32 * 1024;

/// Calls `f` with a request of these arguments; long ones stand in buffers of their own.
pub fn with_args<T>(words: &[&[u8]], f: impl FnOnce(Args<'_>) -> T) -> T {
    let (mut base, mut spans, mut big) = (Vec::new(), Vec::new(), Vec::new());
    for word in words {
        if word.len() >= BIG_BULK {
            spans.push(Span { start: Span::BLOB | big.len() as u32, len: 0 });
            big.push(BigArg::from(Blob::from(*word)));
        } else {
            spans.push(Span { start: base.len() as u32, len: word.len() as u32 });
            base.extend_from_slice(word);
        }
    }
    f(Args::new(&base, &spans, &big))
}

/// The words of a line. `""` is an empty word.
pub fn words(line: &str) -> Vec<&[u8]> {
    line.split_ascii_whitespace()
        .map(|word| if word == "\"\"" { &b""[..] } else { word.as_bytes() })
        .collect()
}

/// Whether this build has the command that a request starts with.
pub fn is_built(request: &[&[u8]]) -> bool {
    request.first().is_some_and(|name| command::lookup(name).is_some())
}

/// The bytes which `f` replies. An error becomes an error reply.
pub fn reply_of(proto: Proto, f: impl FnOnce(&mut Reply<'_>) -> Result<(), Error>) -> Vec<u8> {
    let mut out = OutBuf::new();
    let mut reply = Reply::new(&mut out, proto);
    if let Err(error) = f(&mut reply) {
        reply.error_bytes(&error.text());
    }
    assert!(out.blobs.is_empty());
    out.bytes
}

/// A reply, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    Integer(i64),
    Bulk(String),
    Simple(String),
    Error(String),
    Array(Vec<Value>),
    Set(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// Reads one value.
    pub fn read(from: &mut impl BufRead) -> Value {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line).expect("the server answers");
        assert!(line.ends_with(b"\r\n"), "a broken line: {:?}", String::from_utf8_lossy(&line));
        let text = String::from_utf8_lossy(&line[1..line.len() - 2]).into_owned();
        let number = || text.parse::<i64>().expect("a number");
        match line[0] {
            b'_' => Value::Null,
            b':' => Value::Integer(number()),
            b'+' => Value::Simple(text),
            b'-' => Value::Error(text),
            b'$' | b'*' if number() < 0 => Value::Null,
            b'$' => {
                let mut bytes = vec![0; number() as usize + 2];
                from.read_exact(&mut bytes).expect("the bulk is complete");
                bytes.truncate(bytes.len() - 2);
                Value::Bulk(String::from_utf8_lossy(&bytes).into_owned())
            }
            b'*' => Value::Array((0..number()).map(|_| Value::read(from)).collect()),
            b'~' => Value::Set((0..number()).map(|_| Value::read(from)).collect()),
            b'%' => {
                Value::Map((0..number()).map(|_| (Value::read(from), Value::read(from))).collect())
            }
            lead => panic!("unexpected type {:?}", lead as char),
        }
    }

    /// Parses bytes that are exactly one value.
    pub fn parse(mut bytes: &[u8]) -> Value {
        let value = Value::read(&mut bytes);
        assert!(bytes.is_empty(), "bytes behind the reply");
        value
    }

    /// The text of a bulk or simple string.
    pub fn text(&self) -> &str {
        match self {
            Value::Bulk(text) | Value::Simple(text) => text,
            other => panic!("no text: {other:?}"),
        }
    }
}

/// A redis-server of its own on a unix socket, stopped when dropped.
pub struct Oracle {
    child: Child,
    dir: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Oracle {
    /// Starts it.
    pub fn start() -> Oracle {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("sheafdb-command-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("a folder for the socket");
        let socket = dir.join("redis.sock");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--enable-debug-command", "yes"])
            .arg("--dir")
            .arg(&dir)
            .arg("--unixsocket")
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is on the PATH: `make deps` installs it");
        let deadline = Instant::now() + Duration::from_secs(120);
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "redis-server: {error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Oracle { child, dir, stream: BufReader::new(stream) }
    }

    /// Sends a request and returns the reply.
    pub fn ask(&mut self, request: &[&[u8]]) -> Value {
        let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
        for arg in request {
            write!(bytes, "${}\r\n", arg.len()).expect("writing to a Vec does not fail");
            bytes.extend_from_slice(arg);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&bytes).expect("the server takes the request");
        let mut reply = Value::read(&mut self.stream);
        // The last line of a help text, which 7.2 words differently than 7.0.
        if let Value::Array(lines) = &mut reply
            && let Some(Value::Simple(last)) = lines.last_mut()
            && last.as_str() == "    Prints this help."
        {
            *last = "    Print this help.".into();
        }
        reply
    }

    /// The connection, with no reply outstanding.
    pub fn stream(&mut self) -> &mut UnixStream {
        assert!(self.stream.buffer().is_empty());
        self.stream.get_mut()
    }

    /// Like `ask`, with the words of a line.
    pub fn ask_line(&mut self, line: &str) -> Value {
        self.ask(&words(line))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
