//! The log of the server: one line per event, in the format of Redis, to standard output or a file.
//!
//! Nothing on the data path logs: lines come from start, end, configuration, and from what went
//! wrong. The file is opened for each line, so that it can be moved away under the server.

use crate::config::LogLevel;
use crate::local_time::LocalTime;
use base::sync::atomic::{AtomicU8, Ordering};
use base::sync::{Mutex, OnceLock};
use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of one line at most.
pub const LINE_BYTES_MAX: usize = 4096;

/// Where lines go, and which.
#[derive(Debug)]
pub struct Log {
    level: AtomicU8,
    file: Option<PathBuf>,
    /// Lines are written one at a time.
    turn: Mutex<()>,
}

static LOG: OnceLock<Log> = OnceLock::new();

impl Log {
    /// A log to a file, or to standard output.
    pub fn new(level: LogLevel, file: Option<PathBuf>) -> Self {
        Log { level: AtomicU8::new(rank(level)), file, turn: Mutex::new(()) }
    }

    /// Whether a line of this level is written.
    pub fn enabled(&self, level: LogLevel) -> bool {
        level != LogLevel::Nothing && rank(level) >= self.level.load(Ordering::Relaxed)
    }

    /// Changes how much is logged.
    pub fn set_level(&self, level: LogLevel) {
        self.level.store(rank(level), Ordering::Relaxed);
    }

    /// Writes a line. A line that cannot be written is lost: there is nobody to tell.
    pub fn write(&self, level: LogLevel, unix_ms: i64, text: Arguments<'_>) {
        if !self.enabled(level) {
            return;
        }
        let line = line(level, unix_ms, text);
        let _turn = match self.turn.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        };
        let _ = match &self.file {
            Some(file) => append(file, &line),
            None => std::io::stdout().lock().write_all(&line),
        };
    }
}

fn append(file: &Path, line: &[u8]) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line)
}

/// Checks that lines can be written to a file.
pub fn check_file(file: &Path) -> std::io::Result<()> {
    append(file, b"")
}

const fn rank(level: LogLevel) -> u8 {
    match level {
        LogLevel::Debug => 0,
        LogLevel::Verbose => 1,
        LogLevel::Notice => 2,
        LogLevel::Warning => 3,
        LogLevel::Nothing => 4,
    }
}

/// `pid:M 21 Nov 2026 01:45:34.234 * text`; what would break the line is shown as a blank.
fn line(level: LogLevel, unix_ms: i64, text: Arguments<'_>) -> Vec<u8> {
    let mark = match level {
        LogLevel::Debug => '.',
        LogLevel::Verbose => '-',
        LogLevel::Notice | LogLevel::Nothing => '*',
        LogLevel::Warning => '#',
    };
    let time = LocalTime::from_unix_ms(unix_ms);
    let mut line = format!("{}:M {time} {mark} {text}", std::process::id()).into_bytes();
    line.truncate(LINE_BYTES_MAX - 1);
    for byte in &mut line {
        if byte.is_ascii_control() {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

/// Starts the log of this process; before, lines go to standard output. Once only.
pub fn start(level: LogLevel, file: Option<PathBuf>) {
    let _ = LOG.set(Log::new(level, file));
}

/// Changes how much this process logs.
pub fn set_level(level: LogLevel) {
    if let Some(log) = LOG.get() {
        log.set_level(level);
    }
}

fn write(level: LogLevel, text: Arguments<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_ms = now.map_or(0, |d| d.as_millis() as i64);
    match LOG.get() {
        Some(log) => log.write(level, unix_ms, text),
        None => Log::new(LogLevel::Notice, None).write(level, unix_ms, text),
    }
}

/// Logs what only a developer wants to know.
pub fn debug(text: Arguments<'_>) {
    write(LogLevel::Debug, text);
}

/// Logs what is rarely useful.
pub fn verbose(text: Arguments<'_>) {
    write(LogLevel::Verbose, text);
}

/// Logs what one wants to know in production.
pub fn notice(text: Arguments<'_>) {
    write(LogLevel::Notice, text);
}

/// Logs what is wrong.
pub fn warning(text: Arguments<'_>) {
    write(LogLevel::Warning, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_look_like_those_of_redis() {
        let text = String::from_utf8(line(LogLevel::Notice, 7, format_args!("a {}\r\nb", 1)));
        let text = text.expect("text");
        let start = format!("{}:M ", std::process::id());
        assert!(text.starts_with(&start) && text.ends_with(".007 * a 1  b\n"), "{text:?}");
        for (level, mark) in
            [(LogLevel::Debug, " . x"), (LogLevel::Verbose, " - x"), (LogLevel::Warning, " # x")]
        {
            let text = line(level, 0, format_args!("x"));
            assert!(String::from_utf8_lossy(&text).trim_end().ends_with(mark));
        }
    }

    #[test]
    fn a_line_has_a_bound() {
        let long = "x".repeat(2 * LINE_BYTES_MAX);
        assert_eq!(line(LogLevel::Notice, 0, format_args!("{long}")).len(), LINE_BYTES_MAX);
    }

    #[test]
    fn levels_decide_and_the_file_may_be_moved_away() {
        let dir = std::env::temp_dir().join(format!("log-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary folder");
        let file = dir.join("a.log");
        check_file(&file).expect("a new file");
        let log = Log::new(LogLevel::Notice, Some(file.clone()));
        log.write(LogLevel::Verbose, 0, format_args!("no"));
        log.write(LogLevel::Notice, 0, format_args!("one"));
        std::fs::rename(&file, dir.join("b.log")).expect("it can be moved");
        log.set_level(LogLevel::Warning);
        log.write(LogLevel::Notice, 0, format_args!("no"));
        log.write(LogLevel::Warning, 0, format_args!("two"));
        log.set_level(LogLevel::Nothing);
        log.write(LogLevel::Warning, 0, format_args!("no"));
        let read = |name| std::fs::read_to_string(dir.join(name)).expect("readable");
        assert!(read("b.log").ends_with("* one\n") && read("b.log").lines().count() == 1);
        assert!(read("a.log").ends_with("# two\n") && read("a.log").lines().count() == 1);
        assert!(check_file(&dir.join("no/a.log")).is_err());
        std::fs::remove_dir_all(dir).expect("ours");
    }
}
