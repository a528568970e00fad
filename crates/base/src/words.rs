//! Words of a line: the syntax of redis.conf and of the manifest of an append-only file.
//!
//! Words are separated by blanks; `"..."` knows `\n \r \t \b \a \xHH` and `\` before any other
//! byte, `'...'` only `\'`; a closing quote ends its word.

/// Splits a line into words; `None` if a quote is not closed or not followed by a blank.
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|b| is_blank(*b)) {
            at += 1;
        }
        if at == line.len() {
            return Some(words);
        }
        let mut word = Vec::new();
        at = read_word(line, at, &mut word)?;
        words.push(word);
    }
}

/// Reads the word at `at`, returns where it ends.
fn read_word(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' | b'\'' => {
                at = read_quoted(line, at + 1, byte, word)?;
                return line.get(at).is_none_or(|b| is_blank(*b)).then_some(at);
            }
            b if is_blank(b) => return Some(at),
            b => word.push(b),
        }
        at += 1;
    }
    Some(at)
}

/// Reads up to the closing quote, returns the place after it.
fn read_quoted(line: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        let byte = *line.get(at)?;
        if byte == quote {
            return Some(at + 1);
        }
        let next = line.get(at + 1).copied();
        match (byte, next) {
            (b'\\', Some(b'\'')) if quote == b'\'' => {
                word.push(b'\'');
                at += 2;
            }
            (b'\\', Some(escape)) if quote == b'"' => {
                let hex = line.get(at + 2..at + 4).and_then(hex_byte).filter(|_| escape == b'x');
                if let Some(byte) = hex {
                    word.push(byte);
                    at += 4;
                } else {
                    word.push(unescape(escape));
                    at += 2;
                }
            }
            _ => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let nibble = |b: u8| char::from(b).to_digit(16).map(|n| n as u8);
    Some(nibble(digits[0])? << 4 | nibble(digits[1])?)
}

const fn unescape(escape: u8) -> u8 {
    match escape {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

/// Whether a byte separates words.
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0 | 0x0b | 0x0c)
}

/// A text in quotes, such that [`split`] reads it back.
pub fn quoted(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            0x20..=0x7e => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    text
}
