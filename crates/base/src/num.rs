//! Integers as text. Parsing is as strict as the keyspace is with integer values: it accepts only
//! what the writer below writes. No spaces, no `+`, no leading zeros, no `-0`.

/// Longest text of an `i64`: a sign and 19 digits.
pub const I64_TEXT_MAX: usize = 20;

/// A number of up to this many digits always fits a `u64`, so no step needs an overflow check.
const DIGITS_SAFE: usize = 19;

/// Longest text of a `u64`.
pub const U64_TEXT_MAX: usize = 20;

/// The integer that `text` spells, or `None` if it is not exactly how that integer is written.
///
/// ```
/// use base::num::parse_i64;
/// assert_eq!(parse_i64(b"-12"), Some(-12));
/// assert_eq!(parse_i64(b"012"), None);
/// ```
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', rest @ ..] => {
            let magnitude = parse_u64(rest)?;
            // "-0" is not the written form of zero.
            if magnitude == 0 || magnitude > i64::MIN.unsigned_abs() {
                return None;
            }
            Some((magnitude as i64).wrapping_neg())
        }
        _ => i64::try_from(parse_u64(text)?).ok(),
    }
}

/// The unsigned integer that `text` spells, by the same strict rule.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    match text {
        [b'0'] => return Some(0),
        [b'1'..=b'9', ..] if text.len() <= U64_TEXT_MAX => {}
        _ => return None,
    }
    let (head, tail) = text.split_at(text.len().min(DIGITS_SAFE));
    let mut value = 0u64;
    for &byte in head {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    match tail {
        [] => Some(value),
        &[byte @ b'0'..=b'9'] => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    }
}

/// Appends `value` in decimal.
#[inline]
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    let mut text = [0u8; I64_TEXT_MAX];
    out.extend_from_slice(format_i64(&mut text, value));
}

/// Appends `value` in decimal.
#[inline]
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    let mut text = [0u8; U64_TEXT_MAX];
    let start = fill_back(&mut text, value);
    out.extend_from_slice(&text[start..]);
}

/// `value` in decimal, in a buffer on the caller's stack.
#[inline]
pub fn format_i64(text: &mut [u8; I64_TEXT_MAX], value: i64) -> &[u8] {
    let mut start = fill_back(text, value.unsigned_abs());
    if value < 0 {
        start -= 1; // a negative value has at most 19 digits, so there is room
        text[start] = b'-';
    }
    &text[start..]
}

/// `value` in decimal, in a buffer on the caller's stack.
#[inline]
pub fn format_u64(text: &mut [u8; U64_TEXT_MAX], value: u64) -> &[u8] {
    let start = fill_back(text, value);
    &text[start..]
}

/// Number of decimal digits of `value`; 0 has one.
#[inline]
pub fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Length of the text of `value`, sign included.
#[inline]
pub fn text_len(value: i64) -> usize {
    digits(value.unsigned_abs()) + usize::from(value < 0)
}

/// `"00" "01" .. "99"`, so that one division yields two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + n as u8 / 10, b'0' + n as u8 % 10];
        n += 1;
    }
    pairs
};

/// Writes the digits of `value` to the end of `text`, which has room for them; returns where they
/// start.
///
/// # Panics
/// If `text` is shorter than the digits.
#[inline(always)]
pub fn fill_back(text: &mut [u8], mut value: u64) -> usize {
    let mut at = text.len();
    while value >= 100 {
        let pair = PAIRS[(value % 100) as usize];
        value /= 100;
        at -= 2;
        text[at..at + 2].copy_from_slice(&pair);
    }
    if value >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[value as usize]);
    } else {
        at -= 1;
        text[at] = b'0' + value as u8;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: i64) -> Vec<u8> {
        let mut out = b"x".to_vec();
        write_i64(&mut out, value);
        out.split_off(1)
    }

    #[test]
    fn only_the_canonical_form_is_parsed() {
        for refused in [
            "",
            "-",
            "+1",
            " 1",
            "1 ",
            "01",
            "-01",
            "-0",
            "00",
            "1.0",
            "1e3",
            "0x10",
            "--1",
            "1-",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "18446744073709551616",
            "100000000000000000000",
            "1234567890123456789a",
            "\u{663}",
            "12345678901234567890123456789012345678901234567890",
        ] {
            assert_eq!(parse_i64(refused.as_bytes()), None, "{refused:?}");
        }
        for value in [0, 1, -1, 9, 10, 99, 100, 12345, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }
    }

    #[test]
    fn unsigned_parsing_covers_its_whole_range() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"18446744073709551620"), None);
        assert_eq!(parse_u64(b"99999999999999999999"), None);
        assert_eq!(parse_u64(b"-1"), None);
        let mut out = Vec::new();
        write_u64(&mut out, u64::MAX);
        assert_eq!(out, b"18446744073709551615");
    }

    #[test]
    fn digits_are_counted_at_every_power_of_ten() {
        assert_eq!(digits(0), 1);
        let mut power = 1u64;
        for count in 1..=19 {
            assert_eq!((digits(power), digits(power - 1)), (count, (count - 1).max(1)));
            power = power.saturating_mul(10);
        }
        assert_eq!(digits(u64::MAX), 20);
        assert_eq!((text_len(i64::MIN), text_len(-1), text_len(0)), (20, 2, 1));
    }

    proptest! {
        #[test]
        fn writing_agrees_with_the_standard_library(value: i64, shift in 0u32..64) {
            for value in [value, value >> shift] {
                let text = written(value);
                prop_assert_eq!(&text, &value.to_string().into_bytes());
                prop_assert_eq!(text.len(), text_len(value));
                prop_assert_eq!(parse_i64(&text), Some(value));
            }
        }

        #[test]
        fn parsing_accepts_only_the_canonical_form(text in "[-+ 0-9a]{0,22}") {
            let standard = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), standard);
        }

        #[test]
        fn unsigned_parsing_agrees_with_the_standard_library(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(parse_u64(value.to_string().as_bytes()), Some(value));
            prop_assert_eq!(digits(value), value.to_string().len());
        }
    }
}
