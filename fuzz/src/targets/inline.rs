//! Inline requests, compared with a second, simple implementation of the same rules.

use resp::{Args, Framed, LINE_MAX, Limits, ProtocolError, frame};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "inline",
    feed,
    dictionary: &[
        b" ", b"\t", b"\r", b"\x0b", b"\x0c", b"\"", b"'", b"\\", b"\\\"", b"\\'", b"\\\\", b"\\n",
        b"\\r", b"\\t", b"\\a", b"\\b", b"\\x", b"\\x4", b"\\x41", b"\\xfF", b"\\xg1", b"\"\"",
        b"''", b"\"a b\"", b"'a b'", b"word", b"\0", b"\xff",
    ],
};

fn feed(input: &[u8]) {
    let mut line: Vec<u8> = input.iter().copied().filter(|byte| *byte != b'\n').collect();
    line.truncate(LINE_MAX);
    if line.first() == Some(&b'*') {
        line[0] = b' ';
    }
    let expected = words(&line);
    line.push(b'\n');
    assert_eq!(framed(&line), expected);
    if let Ok(words) = expected {
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let line = quoted.join("\t") + "\r\n";
        if line.len() <= LINE_MAX {
            assert_eq!(framed(line.as_bytes()), Ok(words), "quoted words parse to the same words");
        }
    }
}

fn framed(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let (mut spans, mut blobs) = (Vec::new(), Vec::new());
    match frame(line, 0, &mut spans, &mut blobs, &Limits::default()) {
        Framed::Complete { end } | Framed::Empty { end } => assert_eq!(end, line.len()),
        Framed::Error(error) => return Err(error),
        other => panic!("a whole line is {other:?}"),
    }
    Ok(Args::new(line, &spans, &blobs).iter().map(<[u8]>::to_vec).collect())
}

/// Every byte as an escape.
fn quote(word: &[u8]) -> String {
    let escapes: Vec<String> = word.iter().map(|byte| format!("\\x{byte:02X}")).collect();
    format!("\"{}\"", escapes.concat())
}

/// The state of the parser before the next byte.
enum State {
    Between,
    Plain,
    Single,
    Double,
    /// After a closing quote.
    Closed,
}

fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut word = Vec::new();
    let mut state = State::Between;
    let mut at = 0;
    while at < line.len() {
        let byte = line[at];
        at += 1;
        // Vertical tabs and form feeds do not end a plain word, though they are spaces elsewhere.
        let ends_plain = matches!(byte, b' ' | b'\t' | b'\r');
        let space = ends_plain || matches!(byte, 0x0b | 0x0c);
        state = match (state, byte) {
            (State::Between, _) if space => State::Between,
            (State::Closed, _) if space => {
                words.push(std::mem::take(&mut word));
                State::Between
            }
            (State::Closed, _) => return Err(ProtocolError::UnbalancedQuotes),
            (State::Between | State::Plain, b'"') => State::Double,
            (State::Between | State::Plain, b'\'') => State::Single,
            (State::Plain, _) if ends_plain => {
                words.push(std::mem::take(&mut word));
                State::Between
            }
            (State::Between | State::Plain, _) => {
                word.push(byte);
                State::Plain
            }
            (State::Double, b'"') | (State::Single, b'\'') => State::Closed,
            (State::Single, b'\\') if line.get(at) == Some(&b'\'') => {
                word.push(b'\'');
                at += 1;
                State::Single
            }
            (State::Double, b'\\') if at < line.len() => {
                at += escape(&line[at..], &mut word);
                State::Double
            }
            (state, _) => {
                word.push(byte);
                state
            }
        };
    }
    match state {
        State::Single | State::Double => return Err(ProtocolError::UnbalancedQuotes),
        State::Plain | State::Closed => words.push(word),
        State::Between => {}
    }
    Ok(words)
}

/// Appends the byte of an escape, given the text after its backslash; returns the escape's length.
fn escape(rest: &[u8], word: &mut Vec<u8>) -> usize {
    let hex = rest.get(1..3).filter(|hex| rest[0] == b'x' && hex.iter().all(u8::is_ascii_hexdigit));
    if let Some(hex) = hex {
        let text = std::str::from_utf8(hex).expect("digits are ASCII");
        word.push(u8::from_str_radix(text, 16).expect("two digits"));
        return 3;
    }
    let plain = b"nrtba".iter().position(|letter| *letter == rest[0]);
    word.push(plain.map_or(rest[0], |index| b"\n\r\t\x08\x07"[index]));
    1
}
