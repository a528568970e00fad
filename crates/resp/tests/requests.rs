//! Raw requests compared with recorded answers: `data/requests.txt`, and the server it was recorded
//! from.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Handler, by_assembler, by_session};
use resp::{Args, BULK_MAX_DEFAULT, Limits, OutBuf, Proto, Reply};

/// A server which is silent for this long is taken to have sent everything.
const SILENCE: Duration = Duration::from_millis(150);

/// Cases which run concurrently.
const TOGETHER: usize = 16;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    bytes: Vec<u8>,
    closed: bool,
}

#[derive(Debug)]
struct Case {
    name: String,
    password: bool,
    sent: Vec<u8>,
    recorded: Answer,
    /// This crate's answer where it differs.
    here: Option<Answer>,
}

#[test]
fn requests_are_answered_as_recorded() {
    for case in cases() {
        let expected = case.here.as_ref().unwrap_or(&case.recorded);
        for piece in [usize::MAX, 16 * 1024, 4_099, 7, 1] {
            let pieces = || case.sent.chunks(piece.min(case.sent.len()));
            let limits = Limits::new(BULK_MAX_DEFAULT, !case.password);
            let server = || Server { authenticated: !case.password, out: OutBuf::new() };
            let name = format!("{}, in pieces of {piece}", case.name);
            compare(&name, &answer(by_session(pieces(), limits, server())), expected);
            compare(&name, &answer(by_assembler(pieces(), limits, server())), expected);
        }
    }
}

#[test]
fn every_listed_difference_exists() {
    for case in cases() {
        assert_ne!(case.here.as_ref(), Some(&case.recorded), "{}", case.name);
    }
}

/// The recorded answers match the installed server, if it has the version they were recorded from.
#[test]
fn recorded_answers_match_redis() {
    let open = Redis::start(&[]);
    let closed = Redis::start(&["--requirepass", "pw"]);
    if !open.version().starts_with("7.0.") {
        eprintln!("recorded from redis-server 7.0, not compared with {}", open.version());
        return;
    }
    let mut cases = cases();
    // Nearly all the time is spent waiting for silence, so many cases wait concurrently.
    for some in cases.chunks_mut(TOGETHER) {
        std::thread::scope(|scope| {
            for case in some {
                let server = if case.password { &closed } else { &open };
                scope.spawn(|| {
                    let answer = server.exchange(&case.sent);
                    if std::env::var_os("RECORD").is_none() {
                        compare(&case.name, &answer, &case.recorded);
                    }
                    case.recorded = answer;
                });
            }
        });
    }
    if std::env::var_os("RECORD").is_some() {
        record(&cases);
    }
}

fn compare(name: &str, answer: &Answer, expected: &Answer) {
    let show = |answer: &Answer| format!("{} {}", answer.bytes.escape_ascii(), answer.closed);
    assert_eq!(show(answer), show(expected), "{name}");
}

/// The part of a server which the cases need.
struct Server {
    authenticated: bool,
    out: OutBuf,
}

impl Handler for Server {
    fn request(&mut self, args: Args<'_>) -> Option<Limits> {
        let mut reply = Reply::new(&mut self.out, Proto::Resp2);
        match (args.get(0), args.len()) {
            (b"AUTH", 2) => {
                reply.ok();
                self.authenticated = true;
                return Some(Limits::default());
            }
            // The number of arguments is checked before the authentication.
            (b"ECHO", count) if count != 2 => {
                reply.error("ERR wrong number of arguments for 'echo' command");
            }
            _ if !self.authenticated => reply.error("NOAUTH Authentication required."),
            (b"PING", 1) => reply.simple("PONG"),
            (b"ECHO", 2) => reply.bulk(args.get(1)),
            (b"EVAL", 3..) => {
                reply.array(args.len() - 3);
                args.from(3).iter().for_each(|arg| reply.bulk(arg));
            }
            (name, _) => panic!("no case asks for {}", name.escape_ascii()),
        }
        None
    }
}

fn answer((mut server, error): (Server, Option<resp::ProtocolError>)) -> Answer {
    if let Some(error) = error {
        Reply::new(&mut server.out, Proto::Resp2).protocol_error(error);
    }
    Answer { bytes: server.out.to_vec(), closed: error.is_some() }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/requests.txt")
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(data()).expect("the recorded answers are in the repository");
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "case" {
            let name = rest.strip_suffix(" password");
            cases.push(Case {
                name: name.unwrap_or(rest).to_owned(),
                password: name.is_some(),
                sent: Vec::new(),
                recorded: Answer { bytes: Vec::new(), closed: false },
                here: None,
            });
            continue;
        }
        let case = cases.last_mut().expect("a case comes first");
        let here = || Answer { bytes: Vec::new(), closed: false };
        match word {
            "send" => case.sent.extend(unescape(rest)),
            "recv" => case.recorded.bytes = unescape(rest),
            "then" => case.recorded.closed = rest == "close",
            "here" => case.here.get_or_insert_with(here).bytes = unescape(rest),
            "here-then" => case.here.get_or_insert_with(here).closed = rest == "close",
            _ => {
                let times = word.strip_prefix("send*").and_then(|times| times.parse().ok());
                let times = times.unwrap_or_else(|| panic!("unknown line: {line}"));
                case.sent.extend(unescape(rest).repeat(times));
            }
        }
    }
    assert!(cases.len() > 100, "the file is read");
    cases
}

/// Writes the recorded answers into the file and keeps the rest.
fn record(cases: &[Case]) {
    let text = std::fs::read_to_string(data()).expect("it was read before");
    let mut recorded = String::new();
    let mut cases = cases.iter();
    let mut answer = None;
    for line in text.lines() {
        if line.starts_with("case ") {
            answer = cases.next().map(|case| &case.recorded);
        }
        match (line.split(' ').next(), answer) {
            (Some("recv"), Some(answer)) => {
                let line = format!("recv {}", escape(&answer.bytes));
                writeln!(recorded, "{}", line.trim_end())
            }
            (Some("then"), Some(answer)) => {
                writeln!(recorded, "then {}", if answer.closed { "close" } else { "open" })
            }
            _ => writeln!(recorded, "{line}"),
        }
        .expect("writing to a string");
    }
    std::fs::write(data(), recorded).expect("the file can be written");
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => write!(text, "\\x{byte:02x}").expect("writing to a string"),
        }
    }
    text
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match (byte, if byte == b'\\' { rest.next() } else { None }) {
            (_, Some(b'r')) => b'\r',
            (_, Some(b'n')) => b'\n',
            (_, Some(b't')) => b'\t',
            (_, Some(b'\\')) => b'\\',
            (_, Some(b'x')) => {
                let hex: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&hex, 16).expect("two digits follow \\x")
            }
            (_, Some(other)) => panic!("unknown escape \\{}", char::from(other)),
            (byte, None) => byte,
        });
    }
    bytes
}

/// A redis-server of its own, stopped when dropped.
struct Redis {
    process: Child,
    folder: PathBuf,
}

impl Redis {
    fn start(options: &[&str]) -> Self {
        let name = format!("resp-requests-{}-{}", std::process::id(), options.len());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(folder.join("socket"))
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed: make deps");
        let redis = Self { process, folder };
        let start = Instant::now();
        while redis.connect().is_err() {
            assert!(start.elapsed() < START, "redis-server does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        redis
    }

    fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.folder.join("socket"))
    }

    fn version(&self) -> String {
        let info = self.exchange(b"INFO server\r\n").bytes;
        let info = String::from_utf8_lossy(&info).into_owned();
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
        version.unwrap_or("an unknown version").to_owned()
    }

    /// Sends everything, then receives until the server closes or is silent.
    fn exchange(&self, sent: &[u8]) -> Answer {
        let mut stream = self.connect().expect("the server runs");
        stream.set_read_timeout(Some(SILENCE)).expect("a time above zero");
        // It may have answered and closed before it has received everything.
        let _ = stream.write_all(sent);
        let mut answer = Answer { bytes: Vec::new(), closed: false };
        let mut buf = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut buf) {
                Ok(0) => answer.closed = true,
                Ok(n) => {
                    answer.bytes.extend_from_slice(&buf[..n]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => answer.closed = true,
                Err(_) => {}
            }
            return answer;
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
