//! A redis-server of our own on a unix socket, and just enough of its protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long the server may take to listen.
const START_MAX: Duration = Duration::from_secs(20);

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Simple,
    Error(String),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Answer>),
}

/// The server with one connection; ends with this value.
pub struct Live {
    child: Child,
    dir: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Live {
    /// `None` if there is no redis-server here (and this is not CI).
    pub fn start() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("live-config-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder for the socket");
        let socket = dir.join("s");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
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

    fn read(&mut self) -> Answer {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).expect("the server answers");
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_suffix("\r\n").expect("a whole line");
        let (kind, rest) = line.split_at(1);
        let integer = || rest.parse::<i64>().expect("an integer");
        match kind {
            "+" => Answer::Simple,
            "-" => Answer::Error(rest.into()),
            ":" => Answer::Integer(integer()),
            "$" => Answer::Bulk(usize::try_from(integer()).ok().map(|len| {
                let mut bytes = vec![0; len + 2];
                self.stream.read_exact(&mut bytes).expect("the bytes announced");
                bytes.truncate(len);
                bytes
            })),
            "*" => {
                let len = usize::try_from(integer()).expect("not a null array");
                Answer::Array((0..len).map(|_| self.read()).collect())
            }
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
