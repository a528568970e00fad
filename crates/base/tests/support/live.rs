//! Starts a redis-server on a unix socket and speaks the necessary part of its protocol. For
//! comparing tests in crates on which the `tests` crate depends.
#![allow(dead_code)] // each test file uses a part of it

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long the server may take to start listening.
const START_MAX: Duration = Duration::from_secs(120);

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Answer>),
}

impl Answer {
    /// The bytes of a bulk string which is not null.
    pub fn bytes(self) -> Vec<u8> {
        let Self::Bulk(Some(bytes)) = self else { panic!("no bulk: {self:?}") };
        bytes
    }

    /// The bytes of all elements.
    pub fn all(self) -> Vec<Vec<u8>> {
        let Self::Array(all) = self else { panic!("no array: {self:?}") };
        all.into_iter().map(Self::bytes).collect()
    }
}

/// The server with one connection. Dropping it stops the server.
pub struct Live {
    child: Child,
    dir: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Live {
    /// `None` if no redis-server is installed (and `CI` is not set).
    pub fn start() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!(
            "live-{}-{}-{number}",
            env!("CARGO_PKG_NAME"),
            std::process::id()
        ));
        std::fs::create_dir_all(&dir).expect("a folder for the socket");
        let socket = dir.join("s");
        let server = std::env::var_os("SHEAFDB_LIVE_SERVER");
        let child = Command::new(server.unwrap_or_else(|| "redis-server".into()))
            .args(["--port", "0", "--save", "", "--enable-debug-command", "yes"])
            // A malformed payload must be refused with an error and not crash the server.
            .args(["--sanitize-dump-payload", "yes", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(&dir)
            .stdout(Stdio::null())
            .spawn();
        match child {
            Ok(child) => {
                let stream = BufReader::new(connect(&socket));
                Some(Self { child, dir, stream })
            }
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "redis-server: {error}");
                eprintln!("skipped: redis-server: {error}");
                let _ = std::fs::remove_dir_all(&dir);
                None
            }
        }
    }

    /// Sends one command and reads its answer.
    pub fn call(&mut self, args: &[&[u8]]) -> Answer {
        let mut request = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            request.extend_from_slice(arg);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&request).expect("the server reads");
        self.read()
    }

    /// Sends a command which must not fail.
    pub fn done(&mut self, args: &[&[u8]]) -> Answer {
        let answer = self.call(args);
        assert!(!matches!(answer, Answer::Error(_)), "{answer:?}");
        answer
    }

    /// Changes a setting.
    pub fn set(&mut self, name: &str, value: &str) {
        self.done(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]);
    }

    fn read(&mut self) -> Answer {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).expect("the server answers");
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_suffix("\r\n").expect("a whole line");
        let (kind, rest) = line.split_at(1);
        let integer = || rest.parse::<i64>().expect("an integer");
        match kind {
            "+" => Answer::Simple(rest.into()),
            "-" => Answer::Error(rest.into()),
            ":" => Answer::Integer(integer()),
            "$" => Answer::Bulk(usize::try_from(integer()).ok().map(|len| {
                let mut bytes = vec![0; len + 2];
                self.stream.read_exact(&mut bytes).expect("the bytes announced");
                bytes.truncate(len);
                bytes
            })),
            "*" => Answer::Array((0..integer()).map(|_| self.read()).collect()),
            _ => panic!("a reply: {line}"),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn connect(socket: &Path) -> UnixStream {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(error) => assert!(start.elapsed() < START_MAX, "redis-server: {error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
