//! Kinds of settings and their values: how each is parsed and shown, with the error texts of Redis
//! for values that do not fit.

use super::db_limit::parse_db_limits;
use super::ingest::{INGEST_LISTENERS_MAX, IngestListen};
use super::retention::Retention;
use super::schedule::Schedule;
use base::num::parse_i64;
use std::fmt::Write as _;

/// Maximum number of addresses of `bind`.
pub const BIND_MAX: usize = 16;
/// Length at which a host name is too long, in bytes.
pub const HOSTNAME_MAX: usize = 256;
/// Maximum length of the text of a memory size.
const MEMORY_TEXT_MAX: usize = 127;
/// Smallest replication backlog: a smaller one is raised to it.
const BACKLOG_MIN: u64 = 16_384;

/// What a setting's value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A whole number, both ends included.
    Int(i64, i64),
    /// A whole number: any in `0..=i32::MAX` is accepted and then clamped to this range.
    Clamped(i64, i64),
    /// File permissions in octal, at most `0777`.
    Octal,
    /// Bytes, with units `b k kb m mb g gb`, both ends included.
    Memory(u64, u64),
    /// Bytes; smaller values are raised to the smallest backlog.
    Backlog,
    /// Bytes, or a percentage of `maxmemory`.
    Share,
    /// Bytes, or a percentage of the memory that the process may use.
    MachineShare,
    /// Nothing, a size or a time: how much of something old is kept.
    Retention,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Some of these words; the first one means "none of the others".
    Flags(&'static [&'static str]),
    /// Any text.
    Text,
    /// The name of a file, without a folder.
    FileName,
    /// The name of something that Redis calls so, without a folder, and not empty.
    NameOf(&'static str),
    /// A host name.
    Hostname,
    /// A template of the process title.
    Title,
    /// Addresses to listen on.
    Addresses,
    /// Listeners of message ingest.
    Listeners,
    /// Limits of databases.
    DbLimits,
    /// A host and a port, or nothing.
    Peer,
    /// Output buffer limits per class of client.
    Limits,
    /// Percentiles.
    Percentiles,
    /// Pairs of seconds and changes.
    SavePoints,
    /// When something recurs: an interval, or the fields of cron; or nothing.
    Schedule,
    /// Classes of keyspace events.
    Events,
    /// Three scores for the kernel's out-of-memory killer.
    Scores,
}

/// Hard and soft limit of one class of clients; 0 = none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BufferLimit {
    /// Unsent bytes at which a client is closed at once.
    pub hard_bytes: u64,
    /// Unsent bytes at which it is closed if it stays there for `soft_seconds`.
    pub soft_bytes: u64,
    /// How long it may stay above the soft limit.
    pub soft_seconds: u64,
}

/// Names of the classes, in the order in which they are shown.
pub const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `yes` or `no`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Permissions.
    Octal(u32),
    /// Bytes.
    Bytes(u64),
    /// A percentage of another amount of memory.
    Percent(u64),
    /// One word of a choice.
    Word(&'static str),
    /// Chosen flags, one bit for each word after the first.
    Flags(&'static [&'static str], u32),
    /// Text.
    Text(Vec<u8>),
    /// Words.
    Words(Vec<Vec<u8>>),
    /// Limits of the classes that were named.
    Limits([Option<BufferLimit>; 3]),
    /// Percentiles.
    Percentiles(Vec<f64>),
    /// Pairs of seconds and changes.
    SavePoints(Vec<(u64, u64)>),
    /// Canonical letters of event classes.
    Events(Events),
    /// Scores.
    Scores([i32; 3]),
}

impl Value {
    /// The flag; false for a value of another kind, which a test of the table rules out.
    pub fn bool(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The number, permissions or bytes; 0 for a value of another kind.
    pub fn number(&self) -> i128 {
        match self {
            Value::Int(n) => i128::from(*n),
            Value::Octal(n) => i128::from(*n),
            Value::Bytes(n) => i128::from(*n),
            _ => 0,
        }
    }

    /// Whether this word was chosen of several; false for a value of another kind.
    pub fn has_flag(&self, word: &str) -> bool {
        let Value::Flags(known, set) = self else { return false };
        known[1..].iter().enumerate().any(|(i, w)| *w == word && set & (1 << i) != 0)
    }

    /// The text as bytes; empty for a value of another kind.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Text(t) => t,
            Value::Word(w) => w.as_bytes(),
            _ => &[],
        }
    }

    /// The words; none for a value of another kind.
    pub fn words(&self) -> &[Vec<u8>] {
        match self {
            Value::Words(w) => w,
            _ => &[],
        }
    }
}

impl Kind {
    /// Whether the value consists of several words.
    pub fn multiple(self) -> bool {
        matches!(
            self,
            Kind::Flags(_)
                | Kind::Addresses
                | Kind::Listeners
                | Kind::DbLimits
                | Kind::Peer
                | Kind::Limits
                | Kind::Percentiles
                | Kind::SavePoints
                | Kind::Schedule
                | Kind::Scores
        )
    }

    /// Reads a value from words, as a configuration file gives them.
    pub fn parse_words(self, words: &[Vec<u8>]) -> Result<Value, String> {
        match words {
            [one] => self.parse(one),
            _ if self.multiple() => self.parse_many(words),
            _ => Err("wrong number of arguments".to_owned()),
        }
    }

    /// Reads a value from one text, as CONFIG SET gives it.
    pub fn parse(self, text: &[u8]) -> Result<Value, String> {
        if self.multiple() {
            let words: Vec<Vec<u8>> = if text.is_empty() {
                Vec::new()
            } else {
                text.split(|b| *b == b' ').map(<[u8]>::to_vec).collect()
            };
            return self.parse_many(&words);
        }
        match self {
            Kind::Bool => parse_bool(text),
            Kind::Int(min, max) => parse_int(text, min, max).map(Value::Int),
            Kind::Clamped(low, high) => {
                let n = parse_int(text, 0, i64::from(i32::MAX))?;
                Ok(Value::Int(n.clamp(low, high)))
            }
            Kind::Octal => parse_octal(text),
            Kind::Memory(min, max) => parse_memory_in(text, min, max).map(Value::Bytes),
            Kind::Backlog => parse_memory_in(text, 1, i64::MAX as u64)
                .map(|bytes| Value::Bytes(bytes.max(BACKLOG_MIN))),
            Kind::MachineShare if !text.ends_with(b"%") => {
                parse_memory_in(text, 0, u64::MAX).map(Value::Bytes)
            }
            Kind::Share | Kind::MachineShare => parse_share(text),
            Kind::Choice(words) => words
                .iter()
                .find(|w| w.as_bytes().eq_ignore_ascii_case(text))
                .map(|w| Value::Word(w))
                .ok_or_else(|| one_of(words)),
            Kind::Retention => parse_retention(text),
            Kind::NameOf(_) if text.is_empty() => Err("can't be empty".to_owned()),
            Kind::NameOf(what) if text.contains(&b'/') => {
                Err(format!("can't be a path, just a {what}"))
            }
            Kind::FileName => {
                if text.contains(&b'/') {
                    return Err("can't be a path, just a filename".to_owned());
                }
                Ok(Value::Text(text.to_vec()))
            }
            Kind::Hostname => parse_hostname(text),
            Kind::Title => parse_title(text),
            Kind::Events => parse_events(text),
            _ => Ok(Value::Text(text.to_vec())),
        }
    }

    fn parse_many(self, words: &[Vec<u8>]) -> Result<Value, String> {
        match self {
            Kind::Flags(known) => parse_flags(known, words),
            Kind::Addresses if words.len() > BIND_MAX => {
                Err("Too many bind addresses specified.".to_owned())
            }
            Kind::Listeners => parse_listeners(words),
            Kind::DbLimits => parse_db_limits(words),
            Kind::Limits => parse_limits(words),
            Kind::Percentiles => parse_percentiles(words),
            Kind::SavePoints => parse_save_points(words),
            Kind::Schedule => parse_schedule(words),
            Kind::Scores => parse_scores(words),
            Kind::Peer
                if words.len() != 2
                    && !matches!(words, [w] if w.is_empty())
                    && !words.is_empty() =>
            {
                Err("wrong number of arguments".to_owned())
            }
            // In a file one empty word means "none".
            _ if matches!(words, [w] if w.is_empty()) => Ok(Value::Words(Vec::new())),
            _ => Ok(Value::Words(words.to_vec())),
        }
    }
}

/// Words that describe listeners; one empty word means "none".
fn parse_listeners(words: &[Vec<u8>]) -> Result<Value, String> {
    if matches!(words, [w] if w.is_empty()) {
        return Ok(Value::Words(Vec::new()));
    }
    let listeners = IngestListen::parse_all(words)?;
    if listeners.len() > INGEST_LISTENERS_MAX {
        return Err(format!("more than {INGEST_LISTENERS_MAX} listeners"));
    }
    Ok(Value::Words(words.to_vec()))
}

/// Words of a schedule; one empty word means "none".
fn parse_schedule(words: &[Vec<u8>]) -> Result<Value, String> {
    if matches!(words, [] | [_]) && words.concat().is_empty() {
        return Ok(Value::Words(Vec::new()));
    }
    Schedule::parse(words)?;
    Ok(Value::Words(words.to_vec()))
}

fn parse_bool(text: &[u8]) -> Result<Value, String> {
    if text.eq_ignore_ascii_case(b"yes") {
        Ok(Value::Bool(true))
    } else if text.eq_ignore_ascii_case(b"no") {
        Ok(Value::Bool(false))
    } else {
        Err("argument must be 'yes' or 'no'".to_owned())
    }
}

fn parse_int(text: &[u8], min: i64, max: i64) -> Result<i64, String> {
    let n =
        parse_i64(text).ok_or_else(|| "argument couldn't be parsed into an integer".to_owned())?;
    if n < min || n > max { Err(between(&min, &max)) } else { Ok(n) }
}

fn parse_octal(text: &[u8]) -> Result<Value, String> {
    const PERMISSIONS_MAX: u64 = 0o777;
    let digits = !text.is_empty() && text.iter().all(|b| (b'0'..=b'7').contains(b));
    if !digits {
        return Err("argument couldn't be parsed as an octal number".to_owned());
    }
    let n = text.iter().fold(0u64, |n, b| n.saturating_mul(8).saturating_add(u64::from(b - b'0')));
    if n > PERMISSIONS_MAX {
        return Err("argument must be between 0 and 777 inclusive".to_owned());
    }
    Ok(Value::Octal(n as u32))
}

/// Bytes with a unit: `1k` is 1000, `1kb` is 1024. A number that is too big saturates.
pub fn parse_memory(text: &[u8]) -> Option<u64> {
    if text.len() > MEMORY_TEXT_MAX {
        return None;
    }
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let n =
        number.iter().fold(0u64, |n, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0')));
    Some(n.saturating_mul(factor))
}

fn parse_memory_in(text: &[u8], min: u64, max: u64) -> Result<u64, String> {
    let n = parse_memory(text).ok_or_else(|| "argument must be a memory value".to_owned())?;
    if n < min || n > max { Err(between(&min, &max)) } else { Ok(n) }
}

fn parse_share(text: &[u8]) -> Result<Value, String> {
    let bad = || "argument must be a memory or percent value".to_owned();
    let Some(number) = text.strip_suffix(b"%") else {
        return parse_memory(text).map(Value::Bytes).ok_or_else(bad);
    };
    match parse_i64(number) {
        Some(n) if n > 100 => Err("percentage argument must be less or equal to 100".to_owned()),
        // A share of 0 % means no limit and is shown as 0.
        Some(0) => Ok(Value::Bytes(0)),
        Some(n) if n > 0 => Ok(Value::Percent(n as u64)),
        _ => Err(bad()),
    }
}

fn parse_retention(text: &[u8]) -> Result<Value, String> {
    let wrong = || "argument must be 0, a size (1gb) or a time (7d, 12h, 30min, 90s)".to_owned();
    Retention::parse(text).ok_or_else(wrong)?;
    Ok(Value::Text(text.to_vec()))
}

fn parse_flags(known: &'static [&'static str], words: &[Vec<u8>]) -> Result<Value, String> {
    let mut set = 0u32;
    if words.is_empty() {
        return Err(one_of(known));
    }
    for word in words {
        let at = known
            .iter()
            .position(|k| k.as_bytes().eq_ignore_ascii_case(word))
            .ok_or_else(|| one_of(known))?;
        set |= if at == 0 { 0 } else { 1 << (at - 1) };
    }
    let both = |a: &str, b: &str| {
        let has = |w| known.iter().position(|k| *k == w).is_some_and(|i| set & (1 << (i - 1)) != 0);
        has(a) && has(b)
    };
    if both("save", "nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
    }
    Ok(Value::Flags(known, set))
}

fn parse_hostname(text: &[u8]) -> Result<Value, String> {
    if text.len() >= HOSTNAME_MAX {
        return Err(format!("Hostnames must be less than {HOSTNAME_MAX} characters"));
    }
    if !text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'.') {
        let text = "Hostnames may only contain alphanumeric characters, hyphens or dots";
        return Err(text.to_owned());
    }
    Ok(Value::Text(text.to_vec()))
}

fn parse_title(text: &[u8]) -> Result<Value, String> {
    const VARIABLES: [&[u8]; 7] = [
        b"title",
        b"listen-addr",
        b"server-mode",
        b"port",
        b"tls-port",
        b"unixsocket",
        b"config-file",
    ];
    let bad = || "template format is invalid or contains unknown variables".to_owned();
    let mut rest = text;
    while let Some(open) = rest.iter().position(|b| *b == b'{') {
        rest = &rest[open + 1..];
        let close = rest.iter().position(|b| *b == b'}').ok_or_else(bad)?;
        if !VARIABLES.contains(&&rest[..close]) {
            return Err(bad());
        }
        rest = &rest[close + 1..];
    }
    if text.is_empty() { Err(bad()) } else { Ok(Value::Text(text.to_vec())) }
}

fn parse_limits(words: &[Vec<u8>]) -> Result<Value, String> {
    if !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut limits = [None; 3];
    for four in words.chunks_exact(4) {
        let class = match four[0].to_ascii_lowercase().as_slice() {
            b"normal" => 0,
            b"slave" | b"replica" => 1,
            b"pubsub" => 2,
            _ => {
                let text = "Invalid client class specified in buffer limit configuration.";
                return Err(text.to_owned());
            }
        };
        let seconds =
            parse_i64(&four[3]).filter(|n| (0..=i64::from(i32::MAX)).contains(n)).map(|n| n as u64);
        let (Some(hard_bytes), Some(soft_bytes), Some(soft_seconds)) =
            (parse_memory(&four[1]), parse_memory(&four[2]), seconds)
        else {
            let text = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
            return Err(text.to_owned());
        };
        limits[class] = Some(BufferLimit { hard_bytes, soft_bytes, soft_seconds });
    }
    Ok(Value::Limits(limits))
}

fn parse_percentiles(words: &[Vec<u8>]) -> Result<Value, String> {
    const NAME: &str = "latency-tracking-info-percentiles";
    if matches!(words, [w] if w.is_empty()) {
        return Ok(Value::Percentiles(Vec::new()));
    }
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        let n = std::str::from_utf8(word)
            .ok()
            .and_then(|w| w.parse::<f64>().ok())
            .filter(|n| !n.is_nan())
            .ok_or_else(|| format!("Invalid {NAME} parameters"))?;
        if !(0.0..=100.0).contains(&n) {
            return Err(format!("{NAME} parameters should sit between [0.0,100.0]"));
        }
        all.push(n);
    }
    Ok(Value::Percentiles(all))
}

fn parse_save_points(words: &[Vec<u8>]) -> Result<Value, String> {
    if matches!(words, [w] if w.is_empty()) {
        return Ok(Value::SavePoints(Vec::new()));
    }
    let bad = || "Invalid save parameters".to_owned();
    if !words.len().is_multiple_of(2) {
        return Err(bad());
    }
    let mut points = Vec::with_capacity(words.len() / 2);
    for pair in words.chunks_exact(2) {
        match (parse_i64(&pair[0]), parse_i64(&pair[1])) {
            (Some(seconds @ 1..), Some(changes @ 0..)) => {
                points.push((seconds as u64, changes as u64));
            }
            _ => return Err(bad()),
        }
    }
    Ok(Value::SavePoints(points))
}

/// Letters of event classes in the order in which they are shown; `A` stands for the first ten.
const EVENT_LETTERS: &[u8] = b"g$lshzxetdnKEm";
const EVENTS_IN_A: usize = 10;

fn parse_events(text: &[u8]) -> Result<Value, String> {
    let mut set = 0u32;
    for letter in text {
        if *letter == b'A' {
            set |= (1 << EVENTS_IN_A) - 1;
            continue;
        }
        let at = EVENT_LETTERS
            .iter()
            .position(|l| l == letter)
            .ok_or_else(|| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned())?;
        set |= 1 << at;
    }
    Ok(Value::Events(Events(set)))
}

/// What `notify-keyspace-events` selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(u32);

impl Events {
    /// Whether it selects what a letter stands for: a class of events, `K` or `E`.
    pub fn has(self, letter: char) -> bool {
        let at = EVENT_LETTERS.iter().position(|known| char::from(*known) == letter);
        at.is_some_and(|at| self.0 & (1 << at) != 0)
    }

    /// As CONFIG GET replies it.
    fn show(self) -> String {
        let (mut shown, mut set) = (String::new(), self.0);
        let all = (1 << EVENTS_IN_A) - 1;
        if set & all == all {
            shown.push('A');
            // Redis shows `n` only when it lists every class by its letter.
            set &= !(all | 1 << EVENTS_IN_A);
        }
        for (at, letter) in EVENT_LETTERS.iter().enumerate() {
            if set & (1 << at) != 0 {
                shown.push(char::from(*letter));
            }
        }
        shown
    }
}

fn parse_scores(words: &[Vec<u8>]) -> Result<Value, String> {
    const SCORE_MAX: i64 = 2000;
    let [a, b, c] = words else {
        return Err("wrong number of arguments".to_owned());
    };
    let mut scores = [0; 3];
    for (score, word) in scores.iter_mut().zip([a, b, c]) {
        *score = parse_i64(word)
            .filter(|n| (-SCORE_MAX..=SCORE_MAX).contains(n))
            .map(|n| n as i32)
            .ok_or_else(|| {
                "Invalid oom-score-adj-values, elements must be between -2000 and 2000.".to_owned()
            })?;
    }
    Ok(Value::Scores(scores))
}

fn between(min: &dyn std::fmt::Display, max: &dyn std::fmt::Display) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

pub(crate) fn one_of(words: &[&str]) -> String {
    format!("argument(s) must be one of the following: {}", words.join(", "))
}

/// A percentile as Redis prints it: at most six digits after the point.
fn percentile(n: f64) -> String {
    let text = format!("{n:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Value {
    /// The value as CONFIG GET shows it.
    pub fn show(&self) -> Vec<u8> {
        match self {
            Value::Text(text) => text.clone(),
            Value::Words(words) => words.join(&b' '),
            other => other.show_text().into_bytes(),
        }
    }

    fn show_text(&self) -> String {
        match self {
            Value::Bool(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
            Value::Int(n) => n.to_string(),
            Value::Octal(n) => format!("{n:o}"),
            Value::Bytes(n) => n.to_string(),
            Value::Percent(n) => format!("{n}%"),
            Value::Word(word) => (*word).to_owned(),
            Value::Flags(known, 0) => known[0].to_owned(),
            Value::Flags(known, set) => {
                let chosen = known[1..].iter().enumerate().filter(|(i, _)| set & (1 << i) != 0);
                chosen.map(|(_, w)| *w).collect::<Vec<_>>().join(" ")
            }
            Value::Limits(limits) => {
                let mut text = String::new();
                for (class, limit) in CLASSES.iter().zip(limits) {
                    let l = limit.unwrap_or_default();
                    let gap = if text.is_empty() { "" } else { " " };
                    let _ = write!(
                        text,
                        "{gap}{class} {} {} {}",
                        l.hard_bytes, l.soft_bytes, l.soft_seconds
                    );
                }
                text
            }
            Value::Percentiles(all) => {
                all.iter().map(|n| percentile(*n)).collect::<Vec<_>>().join(" ")
            }
            Value::SavePoints(points) => {
                points.iter().map(|(s, c)| format!("{s} {c}")).collect::<Vec<_>>().join(" ")
            }
            Value::Events(events) => events.show(),
            Value::Scores([a, b, c]) => format!("{a} {b} {c}"),
            Value::Text(_) | Value::Words(_) => String::new(),
        }
    }
}
