//! Inline requests: words on a line, for people with a terminal.
//!
//! Words are separated by spaces. A word may end with a quoted part: in `"..."` the escapes `\n \r
//! \t \b \a \xHH` mean a byte and a backslash before any other byte means that byte; in `'...'`
//! only `\'` does. Behind the closing quote a space must follow, or the end of the line.

use base::Blob;

use crate::args::{BigArg, Span};
use crate::error::ProtocolError;

/// Splits `buf[at..end]`, a line without its ending. A word without quotes becomes a span of `buf`,
/// one with quotes a blob of its own.
pub(crate) fn split(
    buf: &[u8],
    at: usize,
    end: usize,
    spans: &mut Vec<Span>,
    blobs: &mut Vec<BigArg>,
) -> Result<(), ProtocolError> {
    let line = &buf[..end];
    let mut pos = at;
    loop {
        pos += line[pos..].iter().take_while(|byte| is_space(**byte)).count();
        if pos == end {
            return Ok(());
        }
        let plain = line[pos..].iter().take_while(|byte| !ends_plain(**byte)).count();
        let stop = pos + plain;
        if matches!(line.get(stop), Some(b'"' | b'\'')) {
            let (word, next) = quoted_word(line, pos, stop)?;
            spans.push(Span::of_blob(blobs.len()));
            blobs.push(Blob::new(word).into());
            pos = next;
        } else {
            spans.push(Span { start: pos as u32, len: plain as u32 });
            pos = stop;
        }
    }
}

/// The word that starts at `start` and has its opening quote at `quote`; and where it ends.
fn quoted_word(line: &[u8], start: usize, quote: usize) -> Result<(Vec<u8>, usize), ProtocolError> {
    let mut word = line[start..quote].to_vec();
    let end = if line[quote] == b'"' {
        double_quoted(line, quote + 1, &mut word)?
    } else {
        single_quoted(line, quote + 1, &mut word)?
    };
    match line.get(end) {
        Some(byte) if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok((word, end)),
    }
}

/// Appends what stands from `pos` to the closing `"`; returns the position behind it.
fn double_quoted(line: &[u8], mut pos: usize, word: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    loop {
        match line[pos..] {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', ..] => return Ok(pos + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex(high) << 4 | hex(low));
                pos += 4;
            }
            [b'\\', escaped, ..] => {
                word.push(unescape(escaped));
                pos += 2;
            }
            [byte, ..] => {
                word.push(byte);
                pos += 1;
            }
        }
    }
}

/// Appends what stands from `pos` to the closing `'`; returns the position behind it.
fn single_quoted(line: &[u8], mut pos: usize, word: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    loop {
        match line[pos..] {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', ..] => return Ok(pos + 1),
            [b'\\', b'\'', ..] => {
                word.push(b'\'');
                pos += 2;
            }
            [byte, ..] => {
                word.push(byte);
                pos += 1;
            }
        }
    }
}

/// What separates words and may follow a closing quote.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// What ends a word outside of quotes, or opens its quoted part. Two of the spaces do not.
fn ends_plain(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'')
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
