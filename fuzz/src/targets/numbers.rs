//! Numbers: a formatted number parses to the same number, and a parsed text is formatted the same.

use base::longdouble::LongDouble;
use base::{double, num};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "numbers",
    feed,
    dictionary: &[
        b"0",
        b"-",
        b"+",
        b".",
        b"e",
        b"E",
        b"e-",
        b"inf",
        b"-inf",
        b"nan",
        b"0x",
        b"1e400",
        b"5e-324",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"1.7976931348623157e308",
        b"4940",
        b" ",
    ],
};

fn feed(bytes: &[u8]) {
    if let Some(value) = num::parse_i64(bytes) {
        let mut text = Vec::new();
        num::write_i64(&mut text, value);
        assert_eq!(text, bytes, "an integer has one text");
    }
    if let Some(value) = double::parse(bytes) {
        let mut text = Vec::new();
        double::write(&mut text, value);
        let again = double::parse(&text).expect("what is written can be read");
        assert!(again.to_bits() == value.to_bits() || value == 0.0 || value.is_nan(), "{value}");
    }
    if let Some(value) = LongDouble::parse(bytes).filter(|value| value.is_finite()) {
        let text = written(value);
        let zero = LongDouble::parse(b"0").expect("zero is a number");
        let sum = value.checked_add(zero).expect("adding nothing stays in range");
        // Only the sign of zero may be lost.
        assert_eq!(written(sum), if text == b"-0" { b"0".to_vec() } else { text });
    }
}

fn written(value: LongDouble) -> Vec<u8> {
    let mut text = Vec::new();
    value.write(&mut text);
    text
}
