//! Doubles as text: parses what Redis 7.2 accepts, and writes the shortest text that reads back as
//! the same number, in the layout of Redis.
//!
//! Layout of `n` digits times `10^k`, whose first digit has the weight `10^x`: without a point if
//! `k >= 0` and `|x| < n + 7`; plain with a point if `k < 0` and (`k > -7` or `|x| < 4`); else
//! `d.ddde+x`. Whole numbers up to 2^62 are written as integers, exactly. So `3`, `0.1`,
//! `1700000000123456768`, `123456789012345680000`, `1e+20`, `0.00001`, `1e-7`.

use crate::num;
use crate::numeral::{self, Magnitude, Numeral};

/// Longest text that [`write()`] makes: a sign, 17 digits, a point and `e-308` or zeros.
pub const TEXT_MAX: usize = 32;

/// The number nearest to what `text` says. `None` if it is not a number, or if it would overflow to
/// infinity or underflow to zero. `inf` itself is a number, `nan` is not.
pub fn parse(text: &[u8]) -> Option<f64> {
    if let Some(value) = whole(text) {
        return Some(value);
    }
    let Numeral { negative, magnitude } = numeral::scan(text)?;
    let value = match magnitude {
        Magnitude::Infinite => f64::INFINITY,
        Magnitude::Binary { mantissa: 0, .. } => 0.0,
        Magnitude::Binary { mantissa, sticky, exponent } => binary(mantissa, sticky, exponent)?,
        Magnitude::Decimal { whole, fraction, .. } => {
            let text = std::str::from_utf8(text).expect("scanned numbers are ASCII");
            // std reads this grammar and rounds correctly, but overflows and underflows silently.
            let value = text.parse::<f64>().ok()?.abs();
            let vanished = value == 0.0 && whole.iter().chain(fraction).any(|&digit| digit != b'0');
            if value.is_infinite() || vanished {
                return None;
            }
            value
        }
    };
    Some(if negative { -value } else { value })
}

/// The fast path for most scores: a whole number of at most 15 digits, which a double represents
/// exactly.
#[inline]
fn whole(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut value = 0_u64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(if negative { -(value as f64) } else { value as f64 })
}

/// `mantissa * 2^exponent`, rounded; `None` outside the range.
fn binary(mantissa: u128, sticky: bool, exponent: i64) -> Option<f64> {
    const EXPONENT_END: i64 = 1024;
    const UNIT_MIN: i64 = -1074;
    let (mantissa, unit) =
        numeral::round(mantissa, sticky, exponent, f64::MANTISSA_DIGITS, UNIT_MIN);
    let bits = i64::from(u64::BITS - mantissa.leading_zeros());
    if mantissa == 0 || unit + bits > EXPONENT_END {
        return None;
    }
    let power = if unit >= i64::from(f64::MIN_EXP - 1) {
        ((unit + 1023) as u64) << 52
    } else {
        1 << (unit - UNIT_MIN)
    };
    // Both factors and the product are doubles: nothing rounds here.
    Some(mantissa as f64 * f64::from_bits(power))
}

/// Appends `value`.
pub fn write(out: &mut Vec<u8>, value: f64) {
    const WHOLE_MAX: f64 = (1u64 << 62) as f64;
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    if value.is_infinite() {
        out.extend_from_slice(b"inf");
    } else if value <= WHOLE_MAX && value.fract() == 0.0 {
        num::write_u64(out, value as u64);
    } else {
        Shortest::of(value).lay_out(out);
    }
}

/// The fewest digits that read back as the number, which is `digits * 10^power`.
struct Shortest {
    digits: [u8; Shortest::DIGITS_MAX],
    len: usize,
    power: i32,
}

impl Shortest {
    const DIGITS_MAX: usize = 17;

    /// Of a positive finite number.
    fn of(value: f64) -> Self {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value).as_bytes();
        let mut shortest = Self { digits: [b'0'; Self::DIGITS_MAX], len: 0, power: 0 };
        let mut behind_point = false;
        let mut zeros = 0; // not yet known to stand between digits
        for (at, &byte) in text.iter().enumerate() {
            match byte {
                b'.' => behind_point = true,
                b'e' => {
                    let exponent = text[at + 1..].strip_prefix(b"+").unwrap_or(&text[at + 1..]);
                    let exponent = num::parse_i64(exponent).expect("an exponent is an integer");
                    shortest.power += exponent as i32;
                    break;
                }
                digit => {
                    shortest.power -= i32::from(behind_point);
                    if digit == b'0' {
                        zeros += 1;
                    } else {
                        if shortest.len > 0 {
                            shortest.len += zeros; // they are there already
                        }
                        zeros = 0;
                        shortest.digits[shortest.len] = digit;
                        shortest.len += 1;
                    }
                }
            }
        }
        shortest.power += zeros as i32;
        shortest
    }

    fn lay_out(&self, out: &mut Vec<u8>) {
        let digits = &self.digits[..self.len];
        let len = self.len as i32;
        let first = self.power + len - 1;
        if self.power >= 0 && first.abs() < len + 7 {
            out.extend_from_slice(digits);
            out.extend(std::iter::repeat_n(b'0', self.power as usize));
        } else if self.power < 0 && (self.power > -7 || first.abs() < 4) {
            if let Ok(whole @ 1..) = usize::try_from(len + self.power) {
                out.extend_from_slice(&digits[..whole]);
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            } else {
                out.extend_from_slice(b"0.");
                let zeros = (len + self.power).unsigned_abs() as usize;
                out.extend(std::iter::repeat_n(b'0', zeros));
                out.extend_from_slice(digits);
            }
        } else {
            out.push(digits[0]);
            if len > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            out.extend_from_slice(if first < 0 { b"e-" } else { b"e+" });
            num::write_u64(out, u64::from(first.unsigned_abs()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        write(&mut out, value);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn doubles_are_formatted_as_redis_does() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-17.0, "-17"),
            (0.1, "0.1"),
            (-0.1, "-0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (2.75e-3, "0.00275"),
            (1e15, "1000000000000000"),
            (4_503_599_627_370_495.0, "4503599627370495"),
            (-4_503_599_627_370_496.0, "-4503599627370496"),
            (4.5036e15, "4503600000000000"),
            (1e16, "10000000000000000"),
            (1_700_000_000_123_456_789.0, "1700000000123456768"),
            (-1_700_000_000_123_456_789.0, "-1700000000123456768"),
            (123_456_789_012_345_680.0, "123456789012345680"),
            (-1e17, "-100000000000000000"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"), // 2^62
            (-4_611_686_018_427_387_904.0, "-4611686018427387904"),
            (4_611_686_018_427_388_928.0, "4611686018427389000"), // the next double
            (4.7e18, "4.7e+18"),
            (123_456_789_012_345_678_901.0, "123456789012345680000"),
            (1e20, "1e+20"),
            (1.5e300, "1.5e+300"),
            (0.00001, "0.00001"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-5, "1.25e-5"),
            (0.001_234, "0.001234"),
            (0.000_123_4, "1.234e-4"),
            (0.001_234_567_8, "0.0012345678"),
            (123.456_789_012, "123.456789012"),
            (12_345.678_901_23, "1.234567890123e+4"),
            (12_345.678_9, "12345.6789"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::from_bits(1), "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-f64::NAN, "nan"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    /// Observed with ZADD of a redis-server: which scores it accepts.
    #[test]
    fn the_parser_accepts_what_zadd_accepts() {
        for (text, value) in [
            ("+1", 1.0),
            ("1.", 1.0),
            ("-.5", -0.5),
            ("1E5", 1e5),
            ("0x10", 16.0),
            ("0X1.8P-2", 0.375),
            ("0x.8", 0.5),
            ("0x0p0", 0.0),
            ("0e999999999999", 0.0),
            ("4.9e-324", 5e-324),
            ("0x1p-1074", 5e-324),
            ("0x1.8p-1075", 5e-324),
            ("0x1.fffffffffffff7ffp1023", f64::MAX),
            ("-INFINITY", f64::NEG_INFINITY),
            ("+inf", f64::INFINITY),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "",
            " 1",
            "1 ",
            "nan",
            "-nan",
            "nan()",
            "1e400",
            "-1e400",
            "2e-324",
            "1e-400",
            "0x",
            "0x1p99999",
            "0x1p-1075",
            "0x1.fffffffffffff8p1023",
            "1e",
            "infinit",
            "1\0",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert!(parse(b"-0").is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        assert!(parse(b"-0x0").is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        let long = [b"0.".as_slice(), &b"0".repeat(300), b"1"].concat();
        assert_eq!(parse(&long), Some(1e-301));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn formatted_doubles_round_trip(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            let text = text(value);
            prop_assert!(text.len() <= TEXT_MAX);
            prop_assert_eq!(parse(text.as_bytes()).map(f64::to_bits), Some(bits), "{}", text);
        }

        #[test]
        fn short_decimals_round_trip(whole in -1_000_000i64..1_000_000, places in 0i32..12) {
            let value = whole as f64 / 10f64.powi(places);
            prop_assert_eq!(parse(text(value).as_bytes()), Some(value));
        }

        #[test]
        fn hexadecimal_doubles_are_exact(bits: u64) {
            let value = f64::from_bits(bits & !(1 << 63));
            prop_assume!(value.is_finite());
            let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i64);
            let text = match exponent {
                0 => format!("0x0.{fraction:013x}p-1022"),
                _ => format!("0x1.{fraction:013x}p{}", exponent - 1023),
            };
            prop_assert_eq!(parse(text.as_bytes()), Some(value));
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes: Vec<u8>) {
            parse(&bytes);
        }
    }
}
