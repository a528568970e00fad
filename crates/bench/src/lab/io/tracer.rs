//! Runs `strace` on a process for a while.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::account::Account;
use super::strace::{POLLS, RECEIVES, SENDS, Trace};
use crate::load::{self, Spec};

/// Longest wait for `strace` to attach, and to let go.
const WAIT: Duration = Duration::from_secs(10);
/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(5);
/// Largest trace that is read, bytes: about five million calls.
const TRACE_BYTES_MAX: u64 = 512 << 20;

/// Puts a load on a process under trace, and counts its calls. The load's figures are no
/// measurement.
pub fn traced(pid: u32, calls: Calls, spec: &Spec) -> Result<Account, String> {
    let tracer = Tracer::attach(pid, calls)?;
    let load = load::run(spec);
    let trace = tracer.finish()?;
    let load = load.map_err(|error| format!("{error}."))?;
    Ok(trace.account(load.requests, calls == Calls::All))
}

/// Which calls are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Polls, receives and sends.
    Io,
    /// Every call.
    All,
}

/// A process under trace. It is let go when this is dropped.
#[derive(Debug)]
pub struct Tracer {
    child: Child,
    file: PathBuf,
}

impl Tracer {
    /// Begins to trace all threads of a process; fails with the reason in a sentence. The process
    /// runs many times slower from now on.
    pub fn attach(pid: u32, calls: Calls) -> Result<Self, String> {
        if pid == std::process::id() {
            return Err("A server inside this program cannot be traced apart from it.".to_owned());
        }
        let file = trace_file();
        let child = Command::new("strace")
            .args(["-f", "-y", "-T", "-s", "0", "-e", &selection(calls)])
            .args(["-p", &pid.to_string(), "-o"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("strace could not be started: {error}."))?;
        let mut tracer = Self { child, file };
        tracer.wait_attached()?;
        Ok(tracer)
    }

    /// Lets the process go and reads the trace.
    pub fn finish(mut self) -> Result<Trace, String> {
        self.detach();
        let size = fs::metadata(&self.file).map_or(0, |file| file.len());
        if size > TRACE_BYTES_MAX {
            return Err(format!("The trace has {size} bytes, too many to be read."));
        }
        let text =
            fs::read(&self.file).map_err(|error| format!("No trace was written: {error}."))?;
        Ok(Trace::of(&String::from_utf8_lossy(&text)))
    }

    fn wait_attached(&mut self) -> Result<(), String> {
        let errors = self.child.stderr.take().expect("it is piped");
        let (to, lines): (_, Receiver<String>) = channel();
        // Reads to the end, so that strace never waits for a reader.
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                // Nobody listens once it is attached.
                let _ = to.send(line);
            }
        });
        let mut last_line = String::new();
        loop {
            match lines.recv_timeout(WAIT) {
                Ok(line) if line.contains(" attached") => return Ok(()),
                Ok(line) => last_line = line,
                Err(RecvTimeoutError::Timeout) => return Err("strace does not attach.".to_owned()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("Tracing is not allowed here: {last_line}."));
                }
            }
        }
    }

    /// Interrupts `strace`, which then detaches, and waits for its end.
    fn detach(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended with the process.
            let _ = kill_process(pid, Signal::INT);
        }
        let since = Instant::now();
        while since.elapsed() < WAIT && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.detach();
            // The kernel detaches what strace did not.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// The expression that selects the calls; those that this processor does not have are passed over.
fn selection(calls: Calls) -> String {
    match calls {
        Calls::All => "trace=all".to_owned(),
        Calls::Io => {
            let names = [POLLS, RECEIVES, SENDS].concat();
            let names: Vec<String> = names.iter().map(|name| format!("?{name}")).collect();
            format!("trace={}", names.join(","))
        }
    }
}

fn trace_file() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("sheafdb-bench-{}-{n}.strace", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracing_itself_or_a_missing_process_is_refused() {
        let own = Tracer::attach(std::process::id(), Calls::Io).expect_err("not itself");
        assert!(own.contains("inside this program"), "{own}");
        // Larger than any process id.
        let gone = Tracer::attach(i32::MAX as u32, Calls::Io).expect_err("nobody");
        assert!(gone.ends_with('.') && gone.len() > 10, "{gone}");
    }
}
