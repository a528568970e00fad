//! Command lines as text: words, `"..."` with escapes, `'...'` without.

/// Splits a line into arguments. Escapes inside double quotes are `\r \n \t \\ \" \xHH`; there are
/// none inside single quotes.
pub fn split(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut args = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (arg, tail) = match rest.as_bytes()[0] {
            b'"' => double(&rest[1..]).ok_or(format!("unbalanced quotes in: {line}"))?,
            b'\'' => {
                let end = rest[1..].find('\'').ok_or(format!("unbalanced quotes in: {line}"))?;
                (rest.as_bytes()[1..=end].to_vec(), &rest[end + 2..])
            }
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest.as_bytes()[..end].to_vec(), &rest[end..])
            }
        };
        if !tail.is_empty() && !tail.starts_with(char::is_whitespace) {
            return Err(format!("a quote ends inside a word in: {line}"));
        }
        args.push(arg);
        rest = tail.trim_start();
    }
    Ok(args)
}

/// The bytes up to the closing quote, and what follows it.
fn double(text: &str) -> Option<(Vec<u8>, &str)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((out, &text[at + 1..])),
            b'\\' => {
                let (byte, used) = match *bytes.get(at + 1)? {
                    b'r' => (b'\r', 2),
                    b'n' => (b'\n', 2),
                    b't' => (b'\t', 2),
                    b'x' => (u8::from_str_radix(text.get(at + 2..at + 4)?, 16).ok()?, 4),
                    other => (other, 2),
                };
                out.push(byte);
                at += used;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

/// Bytes in double quotes, from which `split` returns the same bytes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", escaped(bytes))
}

/// Bytes as printable text.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\\' => out.extend(['\\', byte as char]),
            b' '..=b'~' => out.push(byte as char),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.push_str("\\x");
                out.extend(digits.map(char::from));
            }
        }
    }
    out
}

/// A command as one line that `split` understands; long arguments are kept whole.
pub fn line(args: &[Vec<u8>]) -> String {
    let plain = |arg: &[u8]| {
        !arg.is_empty() && arg.iter().all(|b| b.is_ascii_graphic() && !b"\"'\\".contains(b))
    };
    let words: Vec<String> =
        args.iter().map(|arg| if plain(arg) { escaped(arg) } else { quoted(arg) }).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_goes_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        let args = vec![b"SET".to_vec(), Vec::new(), all, b"it's".to_vec(), b"a b".to_vec()];
        assert_eq!(split(&line(&args)), Ok(args));
    }

    #[test]
    fn single_quotes_have_no_escapes() {
        assert_eq!(split(r"a 'b \n' c"), Ok(vec![b"a".into(), br"b \n".into(), b"c".into()]));
    }

    #[test]
    fn unbalanced_lines_are_refused() {
        for bad in ["\"a", "'a", "\"a\"b", "\"\\x1", "\"\\xzz\""] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
