//! The syntax of redis.conf and of the command line, without I/O.
//!
//! A line is empty, a comment (`#` first) or words ([`base::words`]): a name and its values.
//! Comments only start a line: a `#` after values is a value.
//!
//! On the command line `--name` starts a directive; the arguments after it are its values,
//! unparsed.

use base::words::is_blank;
pub use base::words::{quoted, split};

/// Maximum number of bytes of a value that a message shows.
const SHOWN_MAX: usize = 128;

/// One line of a file, or one option of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Its number in the file, from 1; 0 on the command line.
    pub line: usize,
    /// Its name in lower case.
    pub name: Vec<u8>,
    /// Its values.
    pub words: Vec<Vec<u8>>,
}

/// What is wrong with the form of a line or option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The line, from 1; 0 on the command line.
    pub line: usize,
    /// The text of the line or option.
    pub text: String,
    /// What is wrong.
    pub problem: &'static str,
    /// What to do.
    pub cure: &'static str,
}

/// The directives of a file's text.
pub fn file(text: &[u8]) -> Result<Vec<Directive>, Malformed> {
    let mut all = Vec::new();
    for (at, line) in text.split(|b| *b == b'\n').enumerate() {
        let line_number = at + 1;
        let malformed = |problem, cure| Malformed {
            line: line_number,
            text: shown(line.trim_ascii()),
            problem,
            cure,
        };
        if let Some((name, words)) = directive(line).map_err(|Unbalanced| {
            malformed("unbalanced quotes", "close every quote and put a space after it")
        })? {
            all.push(Directive { line: line_number, name, words });
        }
    }
    Ok(all)
}

/// A line as a message may show it: without secrets.
fn shown(line: &[u8]) -> String {
    let name = line.split(|b| is_blank(*b) || matches!(b, b'"' | b'\'')).find(|n| !n.is_empty());
    match name {
        Some(name) if super::is_secret(name) => format!("{} ...", printable(name)),
        _ => printable(line),
    }
}

/// A quote that is not closed, or not followed by a blank.
pub(crate) struct Unbalanced;

/// A name in lower case, and its values.
pub(crate) type Named = (Vec<u8>, Vec<Vec<u8>>);

/// Name and values of one line; `None` for an empty line or a comment.
pub(crate) fn directive(line: &[u8]) -> Result<Option<Named>, Unbalanced> {
    let line = line.trim_ascii();
    if line.first().is_none_or(|b| *b == b'#') {
        return Ok(None);
    }
    let mut words = split(line).ok_or(Unbalanced)?;
    if words.is_empty() {
        return Ok(None);
    }
    let name = words.remove(0).to_ascii_lowercase();
    Ok(Some((name, words)))
}

/// The options of a command line. An argument before the first `--name` is an error.
pub fn options(args: &[Vec<u8>]) -> Result<Vec<Directive>, Malformed> {
    let mut all: Vec<Directive> = Vec::new();
    for arg in args {
        let is_name = arg.len() > 2 && arg.starts_with(b"--");
        match all.last_mut() {
            // A first value may look like an option: passwords do.
            Some(last) if !is_name || (last.words.is_empty() && last.name != b"save") => {
                last.words.push(arg.clone());
            }
            _ if is_name => {
                // `--"name value"` in one argument is a whole line.
                let mut words = split(&arg[2..]).unwrap_or_else(|| vec![arg[2..].to_vec()]);
                if words.is_empty() {
                    words.push(arg[2..].to_vec());
                }
                let name = words.remove(0).to_ascii_lowercase();
                all.push(Directive { line: 0, name, words });
            }
            _ => {
                return Err(Malformed {
                    line: 0,
                    text: printable(arg),
                    problem: "is not an option",
                    cure: "write settings as --name value; see --help",
                });
            }
        }
    }
    for directive in &mut all {
        if directive.name == b"save" && directive.words.is_empty() {
            directive.words.push(Vec::new());
        }
    }
    Ok(all)
}

/// Bytes as a message may show them: on one line, at most [`SHOWN_MAX`] of them.
pub fn printable(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN_MAX)];
    let mut text: String = String::from_utf8_lossy(shown)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if bytes.len() > SHOWN_MAX {
        text.push_str("...");
    }
    text
}
