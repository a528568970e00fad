//! How much of something old is kept: nothing, so many bytes, or so long.
//!
//! ```text
//! 0                              nothing
//! 500mb  1gb  1073741824         a size: a number with b, k, kb, m, mb, g or gb, or without a unit
//! 90s  30min  12h  7d            a time: a number with s, min, h or d
//! ```
//!
//! `m` is a size, as in all other settings; minutes are `min`.

use super::value::parse_memory;
use base::num::parse_u64;

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// Nothing.
    #[default]
    Nothing,
    /// So many bytes at most.
    Bytes(u64),
    /// So many milliseconds.
    Ms(u64),
}

impl Retention {
    /// Reads a size or a time, in upper or lower case; `None` if it is neither.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, unit) = text.split_at(digits);
        let ms: u64 = match unit.to_ascii_lowercase().as_slice() {
            b"s" => 1000,
            b"min" => 60 * 1000,
            b"h" => 3600 * 1000,
            b"d" => 24 * 3600 * 1000,
            _ => 0,
        };
        let number = parse_u64(number)?;
        match (ms, parse_memory(text)) {
            (0, None) => None,
            (0, Some(bytes)) if bytes > 0 => Some(Self::Bytes(bytes)),
            _ if number == 0 => Some(Self::Nothing),
            (ms, _) => Some(Self::Ms(number.saturating_mul(ms))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_is_a_size_or_a_time() {
        let parse = |text: &str| Retention::parse(text.as_bytes());
        for nothing in ["0", "0gb", "0d", "0MIN"] {
            assert_eq!(parse(nothing), Some(Retention::Nothing), "{nothing}");
        }
        let sizes = [("1", 1), ("10b", 10), ("2k", 2000), ("30m", 30_000_000), ("1GB", 1 << 30)];
        for (text, bytes) in sizes {
            assert_eq!(parse(text), Some(Retention::Bytes(bytes)), "{text}");
        }
        let times =
            [("90s", 90), ("30min", 1800), ("12h", 43_200), ("7d", 604_800), ("1D", 86_400)];
        for (text, seconds) in times {
            assert_eq!(parse(text), Some(Retention::Ms(seconds * 1000)), "{text}");
        }
        assert_eq!(parse("18446744073709551615d"), Some(Retention::Ms(u64::MAX)));
        for wrong in
            ["", "d", "gb", "-1", "01d", "1.5gb", "7 d", "7days", "7w", "99999999999999999999d"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
