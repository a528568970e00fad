//! The log of the server: one line per event, in the format of Redis, as logfmt or as JSON, to
//! standard output or a file.
//!
//! Nothing on the data path logs: lines come from start, end, configuration, and from what went
//! wrong. The file is opened for each line, so that it can be moved away under the server.

pub mod local_time;

use crate::log::local_time::LocalTime;
use base::sync::atomic::{AtomicU8, Ordering};
use base::sync::{Mutex, OnceLock, PoisonError};
use config::{Config, LogFormat, LogLevel, LogTimes};
use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of the text of one line at most.
pub const TEXT_BYTES_MAX: usize = 4000;

/// Where lines go, and which.
#[derive(Debug)]
pub struct Log {
    level: AtomicU8,
    look: Mutex<Look>,
    file: Option<PathBuf>,
    /// Lines are written one at a time.
    turn: Mutex<()>,
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    format: LogFormat,
    times: LogTimes,
}

static LOG: OnceLock<Log> = OnceLock::new();

impl Log {
    /// A log to a file, or to standard output.
    pub fn new(level: LogLevel, file: Option<PathBuf>) -> Self {
        let look = Mutex::default();
        Log { level: AtomicU8::new(rank(level)), look, file, turn: Mutex::new(()) }
    }

    /// Whether a line of this level is written.
    pub fn enabled(&self, level: LogLevel) -> bool {
        level != LogLevel::Nothing && rank(level) >= self.level.load(Ordering::Relaxed)
    }

    /// Changes how much is logged.
    pub fn set_level(&self, level: LogLevel) {
        self.level.store(rank(level), Ordering::Relaxed);
    }

    /// Takes over what the settings say, but for the file.
    pub fn follow(&self, config: &Config) {
        self.set_level(config.loglevel);
        let look = Look { format: config.log_format, times: config.log_times };
        *self.look.lock().unwrap_or_else(PoisonError::into_inner) = look;
    }

    /// Writes a line. A line that cannot be written is lost: there is nobody to tell.
    pub fn write(&self, level: LogLevel, unix_ms: i64, text: Arguments<'_>) {
        if !self.enabled(level) {
            return;
        }
        let look = *self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line(look, level, unix_ms, text);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
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

/// One line. Characters which would break it become blanks, or are escaped as the format does it.
fn line(look: Look, level: LogLevel, unix_ms: i64, text: Arguments<'_>) -> Vec<u8> {
    let (mark, word) = match level {
        LogLevel::Debug => ('.', "debug"),
        LogLevel::Verbose => ('-', "verbose"),
        LogLevel::Notice | LogLevel::Nothing => ('*', "notice"),
        LogLevel::Warning => ('#', "warning"),
    };
    let time = LocalTime::from_unix_ms(unix_ms);
    let time = match look.times {
        LogTimes::Legacy => time.to_string(),
        LogTimes::Iso8601 => time.iso8601(),
        LogTimes::Milliseconds => unix_ms.to_string(),
    };
    let pid = std::process::id();
    // Cut before a whole character.
    let text = text.to_string();
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end));
    let text = text[..end.unwrap_or(0)].replace(|c: char| c.is_ascii_control(), " ");
    match look.format {
        LogFormat::Legacy => format!("{pid}:M {time} {mark} {text}\n"),
        LogFormat::Logfmt => {
            let (time, text) = (escaped(&time), escaped(&text));
            format!("pid={pid} role=primary timestamp=\"{time}\" level={word} message=\"{text}\"\n")
        }
        LogFormat::Json => {
            let (time, text) = (escaped(&time), escaped(&text));
            format!(
                "{{\"pid\":{pid},\"role\":\"primary\",\"timestamp\":\"{time}\",\
                 \"level\":\"{word}\",\"message\":\"{text}\"}}\n"
            )
        }
    }
    .into_bytes()
}

/// Text without control characters between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Starts the log of this process; before, lines go to standard output. Once only.
pub fn start(config: &Config) {
    let log = Log::new(config.loglevel, config.logfile.clone());
    log.follow(config);
    let _ = LOG.set(log);
}

/// Takes over what the settings say of the log of this process, but for the file.
pub fn follow(config: &Config) {
    if let Some(log) = LOG.get() {
        log.follow(config);
    }
}

fn write(level: LogLevel, text: Arguments<'_>) {
    if base::sync::is_simulated() && level != LogLevel::Warning {
        return; // several servers share this process
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_ms = now.map_or(0, |d| d.as_millis() as i64);
    match LOG.get() {
        Some(log) => log.write(level, unix_ms, text),
        None => Log::new(LogLevel::Notice, None).write(level, unix_ms, text),
    }
}

/// Logs what only developers need.
pub fn debug(text: Arguments<'_>) {
    write(LogLevel::Debug, text);
}

/// Logs what is rarely useful.
pub fn verbose(text: Arguments<'_>) {
    write(LogLevel::Verbose, text);
}

/// Logs what matters in production.
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
    fn the_legacy_format_has_pid_role_time_and_level() {
        let text = String::from_utf8(line(
            Look::default(),
            LogLevel::Notice,
            7,
            format_args!("a {}\r\nb", 1),
        ));
        let text = text.expect("text");
        let start = format!("{}:M ", std::process::id());
        assert!(text.starts_with(&start) && text.ends_with(".007 * a 1  b\n"), "{text:?}");
        for (level, mark) in
            [(LogLevel::Debug, " . x"), (LogLevel::Verbose, " - x"), (LogLevel::Warning, " # x")]
        {
            let text = line(Look::default(), level, 0, format_args!("x"));
            assert!(String::from_utf8_lossy(&text).trim_end().ends_with(mark));
        }
    }

    #[test]
    fn a_long_message_is_truncated() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        for format in [LogFormat::Legacy, LogFormat::Logfmt, LogFormat::Json] {
            let look = Look { format, times: LogTimes::Legacy };
            let line = line(look, LogLevel::Notice, 0, format_args!("{long}"));
            assert!((TEXT_BYTES_MAX..TEXT_BYTES_MAX + 200).contains(&line.len()));
        }
    }

    /// A parser of these formats gets the original text back.
    #[test]
    fn logfmt_and_json_lines_quote_the_message() {
        let pid = std::process::id();
        let said = |format, times| {
            let look = Look { format, times };
            let text =
                line(look, LogLevel::Warning, 1_700_000_000_007, format_args!("a \"b\"\n\\ é"));
            String::from_utf8(text).expect("text")
        };
        assert_eq!(
            said(LogFormat::Logfmt, LogTimes::Milliseconds),
            format!(
                "pid={pid} role=primary timestamp=\"1700000000007\" level=warning \
                 message=\"a \\\"b\\\" \\\\ é\"\n"
            )
        );
        let json = said(LogFormat::Json, LogTimes::Iso8601);
        let read: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(read["message"], "a \"b\" \\ é");
        assert_eq!((&read["level"], &read["pid"]), (&"warning".into(), &pid.into()));
        let time = read["timestamp"].as_str().expect("text");
        let (moment, offset) = time.split_at(23);
        assert!(moment.starts_with("2023-11-1") && moment.ends_with(".007"), "{time}");
        assert!(offset.len() == 6 && offset.starts_with(['+', '-']), "{time}");
    }

    #[test]
    fn levels_filter_lines_and_a_moved_file_is_recreated() {
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
        std::fs::remove_dir_all(dir).expect("a temporary folder");
    }
}
