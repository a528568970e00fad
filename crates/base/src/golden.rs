//! The escaping of recorded bytes in `tests/golden/*.txt`.

/// Plain ASCII stands for itself, any other byte is `\xHH`.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = match (byte, tail) {
            (b'\\', [b'x', high, low, tail @ ..]) => {
                let digit = |c: u8| (c as char).to_digit(16).expect("a hexadecimal digit") as u8;
                out.push(digit(*high) * 16 + digit(*low));
                tail
            }
            (b'\\', _) => panic!("a backslash starts \\xHH: {text}"),
            _ => {
                out.push(byte);
                tail
            }
        };
    }
    out
}
