//! Parses a golden file: what to send and what to expect. All other text is kept verbatim.

use std::fmt;

use crate::quote;

/// What a block sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// `> WORDS`: a command, and its reply.
    Command(Vec<Vec<u8>>),
    /// `send> WORDS`: a command whose reply a later `recv` reads.
    Send(Vec<Vec<u8>>),
    /// `raw> "BYTES"`: these bytes, and one reply.
    Raw(Vec<u8>),
    /// `recv`: one more reply.
    #[default]
    Receive,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(args) => write!(f, "> {}", quote::line(args)),
            Self::Send(args) => write!(f, "send> {}", quote::line(args)),
            Self::Raw(bytes) => write!(f, "raw> {}", quote::quoted(bytes)),
            Self::Receive => f.write_str("recv"),
        }
    }
}

/// The lines expected in RESP2 and in RESP3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    resp2: Vec<String>,
    resp3: Vec<String>,
}

impl Expected {
    /// For one protocol.
    pub fn of(&self, proto: u8) -> &[String] {
        if proto == 3 { &self.resp3 } else { &self.resp2 }
    }

    /// Replaces the expected lines by those received.
    pub fn learn(&mut self, proto: u8, got: &[String]) {
        let lines = if proto == 3 { &mut self.resp3 } else { &mut self.resp2 };
        *lines = got.to_vec();
    }
}

/// Why a block is not run on the reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excuse {
    /// The release it applies to; `None`: every release.
    release: Option<String>,
}

impl Excuse {
    /// A reason whose first word is a release, such as `7.0`, applies to that release.
    fn new(why: &str) -> Self {
        let first = why.split_whitespace().next().unwrap_or_default();
        let is_release = first.split('.').count() == 2
            && first.split('.').all(|part| part.parse::<u32>().is_ok());
        Self { release: is_release.then(|| first.into()) }
    }

    /// Whether it applies to a reference of this release.
    pub fn excuses(&self, release: &str) -> bool {
        self.release.as_deref().is_none_or(|only| only == release)
    }
}

/// One action, and the lines before it in the file.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Comments, blank lines and directives before it, verbatim.
    pub before: Vec<String>,
    /// Its text, verbatim, and what it means.
    pub text: String,
    /// What to send; see [`Action`].
    pub action: Action,
    /// The replies to expect.
    pub expected: Expected,
    /// Line number of the command.
    pub line: usize,
    /// The connection it uses.
    pub conn: u32,
    /// Run FLUSHALL and open new connections first.
    pub reset: bool,
    /// Wait this long first.
    pub sleep_ms: u64,
    /// The lines of the reply may come in any order.
    pub unordered: bool,
    /// The reference answers something else.
    pub differs_from_redis: Option<Excuse>,
}

impl Block {
    /// Whether the block expects these lines in that protocol.
    pub fn accepts(&self, proto: u8, got: &[String]) -> bool {
        let expected = self.expected.of(proto);
        if !self.unordered {
            return matches(expected, got);
        }
        let sorted = |lines: &[String]| {
            let mut lines = lines.to_vec();
            lines.sort();
            lines
        };
        matches(&sorted(expected), &sorted(got))
    }
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The blocks, in order.
    pub blocks: Vec<Block>,
    /// Lines after the last block.
    after: Vec<String>,
    /// From `@server` directives.
    server: Vec<String>,
    /// From an `@only-ours` directive: the reference does not know these commands.
    pub only_ours: Option<Excuse>,
}

impl Script {
    /// Reads a file; an error starts with its line number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        let mut next = Block { conn: 1, ..Block::default() };
        let mut conn = 1;
        for (at, line) in text.lines().enumerate() {
            let fail = |why: &str| format!("{}: {why}: {line}", at + 1);
            if let Some(directive) = line.strip_prefix('@') {
                let (name, value) = directive.split_once(' ').unwrap_or((directive, ""));
                let number = || value.trim().parse().map_err(|_| fail("not a number"));
                match name {
                    "conn" => conn = u32::try_from(number()?).map_err(|_| fail("too big"))?,
                    "reset" => {
                        next.reset = true;
                        conn = 1;
                    }
                    "sleep" => next.sleep_ms = number()?,
                    "unordered" => next.unordered = true,
                    "redis-differs" | "only-ours" if value.trim().is_empty() => {
                        return Err(fail("the reason is missing"));
                    }
                    "only-ours" => script.only_ours = Some(Excuse::new(value)),
                    "redis-differs" => next.differs_from_redis = Some(Excuse::new(value)),
                    "server" => script.server.extend(value.split_whitespace().map(Into::into)),
                    _ => return Err(fail("unknown directive")),
                }
                next.before.push(line.into());
            } else if let Some(action) = parse_action(line).map_err(|e| fail(&e))? {
                let block = std::mem::take(&mut next);
                let (text, line) = (line.into(), at + 1);
                script.blocks.push(Block { text, action, line, conn, ..block });
            } else if line.trim().is_empty() || line.starts_with('#') {
                next.before.push(line.into());
            } else {
                let block = script.blocks.last_mut().ok_or(fail("no command before it"))?;
                if !next.before.is_empty() {
                    return Err(fail("an expected line stands apart from its command"));
                }
                match (line.strip_prefix("2| "), line.strip_prefix("3| ")) {
                    (Some(two), _) => block.expected.resp2.push(two.into()),
                    (_, Some(three)) => block.expected.resp3.push(three.into()),
                    _ => {
                        block.expected.resp2.push(line.into());
                        block.expected.resp3.push(line.into());
                    }
                }
            }
        }
        script.after = next.before;
        Ok(script)
    }

    /// Arguments for the server of this file.
    pub fn server_args(&self) -> Vec<&str> {
        self.server.iter().map(String::as_str).collect()
    }
}

fn parse_action(line: &str) -> Result<Option<Action>, String> {
    if let Some(words) = line.strip_prefix("> ") {
        return quote::split(words).map(|args| Some(Action::Command(args)));
    }
    if let Some(words) = line.strip_prefix("send> ") {
        return quote::split(words).map(|args| Some(Action::Send(args)));
    }
    if let Some(words) = line.strip_prefix("raw> ") {
        return quote::split(words).map(|parts| Some(Action::Raw(parts.concat())));
    }
    Ok((line.trim_end() == "recv").then_some(Action::Receive))
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for block in &self.blocks {
            for line in block.before.iter().chain([&block.text]) {
                writeln!(f, "{line}")?;
            }
            if block.expected.resp2 == block.expected.resp3 {
                for line in &block.expected.resp2 {
                    writeln!(f, "{line}")?;
                }
            } else {
                for line in &block.expected.resp2 {
                    writeln!(f, "2| {line}")?;
                }
                for line in &block.expected.resp3 {
                    writeln!(f, "3| {line}")?;
                }
            }
        }
        self.after.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Whether the received lines match the expected ones. In an expected line `<int>` is any integer,
/// `<int A..B>` an integer in that range, `<any>` any text; the line `...` is any number of lines.
pub fn matches(expected: &[String], got: &[String]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=got.len()).any(|skipped| matches(rest, &got[skipped..]))
        }
        Some((first, rest)) => got
            .split_first()
            .is_some_and(|(line, tail)| matches_line(first, line) && matches(rest, tail)),
    }
}

fn matches_line(pattern: &str, text: &str) -> bool {
    let Some(open) = pattern.find('<').filter(|open| {
        ["<any>", "<int>", "<int "].iter().any(|mark| pattern[*open..].starts_with(mark))
    }) else {
        return pattern == text;
    };
    let Some(close) = pattern[open..].find('>').map(|at| open + at) else { return false };
    let Some(text) = text.strip_prefix(&pattern[..open]) else { return false };
    let (mark, rest) = (&pattern[open + 1..close], &pattern[close + 1..]);
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|end| {
        let taken = &text[..end];
        (mark == "any" || in_range(mark, taken)) && matches_line(rest, &text[end..])
    })
}

fn in_range(mark: &str, text: &str) -> bool {
    let Ok(n) = text.parse::<i64>() else { return false };
    match mark.strip_prefix("int ").and_then(|range| range.split_once("..")) {
        Some((low, high)) => {
            let bound = |text: &str| text.trim().parse::<i64>().ok();
            bound(low).is_some_and(|low| low <= n) && bound(high).is_some_and(|high| n <= high)
        }
        None => mark == "int",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).into()).collect()
    }

    #[test]
    fn a_parsed_file_is_written_back_unchanged() {
        let text = "# about\n@server --databases 4\n\n> SET k \"a b\"\n+OK\n@conn 2\n@reset\n\
                    > GET k\n2| null-bulk\n3| null\nsend> PING\nrecv\n+PONG\nraw> \"*1\\r\\n\"\n# end\n";
        let script = Script::parse(text).expect("well formed");
        assert_eq!(script.to_string(), text);
        assert_eq!(script.blocks[1].expected.of(3), ["null"]);
        assert!(script.blocks[1].reset);
        assert_eq!(script.server_args(), ["--databases", "4"]);
    }

    #[test]
    fn patterns_in_expected_lines() {
        let yes = |pattern: &str, text: &str| assert!(matches_line(pattern, text), "{pattern}");
        let no = |pattern: &str, text: &str| assert!(!matches_line(pattern, text), "{pattern}");
        yes(":<int>", ":-12");
        no(":<int>", ":x");
        no(":<int 1..3>", ":4");
        yes("-ERR <any> here", "-ERR something not here");
        no("-ERR <any> here", "-ERR something there");
        yes("a<b", "a<b");
        assert!(matches(&list(&["*9", "..."]), &list(&["*9", ":1", ":2"])));
        assert!(!matches(&list(&["*9"]), &list(&["*9", ":1"])));
    }

    #[test]
    fn order_matters_unless_marked_unordered() {
        let block = |directive: &str| {
            let text = format!("{directive}> KEYS *\n*2\n  \"a\"\n  \"b\"\n");
            Script::parse(&text).expect("well formed").blocks.remove(0)
        };
        let got = list(&["*2", "  \"b\"", "  \"a\""]);
        assert!(!block("").accepts(2, &got));
        assert!(block("@unordered\n").accepts(2, &got));
        assert!(!block("@unordered\n").accepts(2, &list(&["*2", "  \"b\"", "  \"b\""])));
    }

    #[test]
    fn a_reason_that_begins_with_a_release_is_about_that_one() {
        assert!(Excuse::new("7.0 writes 17 digits").excuses("7.0"));
        assert!(!Excuse::new("7.0 writes 17 digits").excuses("7.2"));
        assert!(Excuse::new("there is no file").excuses("7.2"));
    }

    #[test]
    fn parse_errors_name_their_line() {
        for bad in ["@what\n", "+OK\n", "> SET \"x\n", "@redis-differs\n", "> PING\n\n+PONG\n"] {
            assert!(Script::parse(bad).is_err(), "{bad}");
        }
    }
}
