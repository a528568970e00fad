//! Runs client programs, with a time limit.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No program takes longer, not even on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("inside the workspace").into()
}

/// Python with redis-py, as `make deps` installs it.
pub fn python() -> Command {
    Command::new(root().join(".venv/bin/python"))
}

/// Node with ioredis, as `make deps` installs it.
pub fn node() -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", root().join("tests/clients/node_modules"));
    command
}

/// Copies a program that is to be executed from its new place.
///
/// The copy is written by another process: a child which another test starts meanwhile would
/// inherit a descriptor that writes here, and until that child executes its own program the
/// system refuses to execute the copy (`ETXTBSY`).
///
/// # Panics
/// If it cannot be copied.
pub fn copy(from: &Path, to: &Path) {
    let out = finish(spawn(Command::new("cp").arg(from).arg(to)));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Starts a program in the root of the repository with its output in pipes.
///
/// # Panics
/// If it does not start.
pub fn spawn(command: &mut Command) -> Child {
    command.current_dir(root()).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}: make deps"))
}

/// Waits until a program ends; kills it at [`LIMIT`].
///
/// # Panics
/// If it can neither be waited for nor be killed.
pub fn finish(mut child: Child) -> Output {
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if started.elapsed() > LIMIT {
            child.kill().expect("it runs");
            break child.wait().expect("it is our child");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let join = |thread: JoinHandle<Vec<u8>>| thread.join().expect("reading ends");
    Output { status, stdout: join(stdout), stderr: join(stderr) }
}

/// Reads the output of a program until `is_enough` accepts it, or until [`LIMIT`]; then kills the
/// program.
///
/// # Panics
/// If it does not start or ends by itself.
pub fn output_until(command: &mut Command, is_enough: impl Fn(&str) -> bool) -> String {
    let mut child = spawn(command);
    let (reader, parts) = read_parts(&mut child);
    let (started, mut bytes) = (Instant::now(), Vec::new());
    while !is_enough(&String::from_utf8_lossy(&bytes)) {
        match parts.recv_timeout(LIMIT.saturating_sub(started.elapsed())) {
            Ok(part) => bytes.extend(part),
            Err(_) => break,
        }
    }
    child.kill().expect("it still runs");
    child.wait().expect("it is our child");
    reader.join().expect("reading ends");
    bytes.extend(parts.into_iter().flatten());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the standard output of a program in another thread, and sends each part of it.
fn read_parts(child: &mut Child) -> (JoinHandle<()>, Receiver<Vec<u8>>) {
    let mut stdout = child.stdout.take().expect("it has a pipe");
    let (sender, parts) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = stdout.read(&mut chunk) {
            let _ = sender.send(chunk[..n].to_vec());
        }
    });
    (reader, parts)
}

/// A program on a terminal of 24 lines. What is typed before it asks may be lost, so each input
/// waits for the text behind which the program listens.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    parts: Receiver<Vec<u8>>,
    shown: String,
    /// Up to here it was waited for.
    seen: usize,
}

impl Terminal {
    /// Starts a command of the shell.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(command: &str) -> Self {
        let shell = format!("stty cols 80 rows 24; {command}");
        let mut script = Command::new("script");
        let mut child = spawn(script.args(["-qec", &shell, "/dev/null"]).env("TERM", "xterm"));
        let keys = child.stdin.take().expect("it has a pipe");
        let (_, parts) = read_parts(&mut child);
        Self { child, keys, parts, shown: String::new(), seen: 0 }
    }

    /// Types.
    ///
    /// # Panics
    /// If the program has ended.
    pub fn enter(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it listens");
    }

    /// Waits until each of the texts is shown, one behind the other.
    ///
    /// # Panics
    /// If one does not come within [`LIMIT`].
    pub fn wait_for(&mut self, texts: &[&str]) {
        let began = Instant::now();
        for text in texts {
            while !self.shown[self.seen..].contains(text) {
                let left = LIMIT.saturating_sub(began.elapsed());
                let part = self.parts.recv_timeout(left);
                let part = part.unwrap_or_else(|_| panic!("no '{text}' in {:?}", self.shown));
                self.shown += &String::from_utf8_lossy(&part);
            }
            self.seen += self.shown[self.seen..].find(text).expect("it is there") + text.len();
        }
    }

    /// Waits for the end of the program.
    ///
    /// # Panics
    /// If it can neither be waited for nor be killed.
    pub fn end(self) -> Output {
        drop(self.keys);
        finish(self.child)
    }
}

/// Reads a stream to its end in another thread.
fn drain(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // On an error, the bytes read before it are the result.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Runs a program with this input and returns everything it printed.
///
/// # Panics
/// If it does not succeed.
pub fn run(command: &mut Command, input: &[u8]) -> String {
    let mut child = spawn(command);
    let mut stdin = child.stdin.take().expect("it has a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // If the client ends early, its exit status reports it.
        let _ = stdin.write_all(&input);
    });
    let out = finish(child);
    writer.join().expect("writing ends");
    let text =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?} ended with {}:\n{text}", out.status);
    text
}
