//! The grammar of floating point text that a client may send, and rounding to a binary precision.
//!
//! `[+-]` then one of: decimal digits with at most one point and an optional exponent; `0x` and
//! hexadecimal digits with an optional binary exponent; `inf` or `infinity` in any case. Nothing
//! else before or after it: no spaces, no zero byte, no `nan`.

/// A scanned number; `negative` is separate because zero has a sign, too.
#[derive(Debug, PartialEq, Eq)]
pub struct Numeral<'a> {
    /// Written with a minus sign.
    pub negative: bool,
    /// The part after the sign.
    pub magnitude: Magnitude<'a>,
}

/// The unsigned part of a [`Numeral`].
#[derive(Debug, PartialEq, Eq)]
pub enum Magnitude<'a> {
    /// `inf` or `infinity`.
    Infinite,
    /// `whole . fraction * 10^exponent`, all digits ASCII.
    Decimal {
        /// Digits in front of the point.
        whole: &'a [u8],
        /// Digits behind the point.
        fraction: &'a [u8],
        /// Power of ten; saturated, so a number beyond every range stays beyond it.
        exponent: i64,
    },
    /// `(mantissa + something below one if sticky) * 2^exponent`.
    Binary {
        /// Leading bits; at least 120 of them if `sticky`.
        mantissa: u128,
        /// Non-zero digits were left out below the mantissa.
        sticky: bool,
        /// Power of two, saturated.
        exponent: i64,
    },
}

/// Exponents saturate here: far beyond every format, and sums of a few of them cannot overflow.
const EXPONENT_MAX: i64 = 1 << 40;

/// Scans the whole of `text`; `None` if it is not a number by the grammar above.
pub fn scan(text: &[u8]) -> Option<Numeral<'_>> {
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    let magnitude = match rest {
        [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits)?,
        [b'i' | b'I', ..] => {
            let infinite =
                rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity");
            if !infinite {
                return None;
            }
            Magnitude::Infinite
        }
        _ => decimal(rest)?,
    };
    Some(Numeral { negative, magnitude })
}

fn decimal(text: &[u8]) -> Option<Magnitude<'_>> {
    let (whole, fraction, rest) = around_point(text, u8::is_ascii_digit)?;
    let exponent = exponent(rest, b'e')?;
    Some(Magnitude::Decimal { whole, fraction, exponent })
}

fn hexadecimal(text: &[u8]) -> Option<Magnitude<'_>> {
    let (whole, fraction, rest) = around_point(text, u8::is_ascii_hexdigit)?;
    let mut exponent = exponent(rest, b'p')?;
    let (mut mantissa, mut sticky) = (0u128, false);
    for (behind_point, digits) in [(false, whole), (true, fraction)] {
        for &byte in digits {
            let digit = u128::from((byte as char).to_digit(16).expect("a hexadecimal digit"));
            let room = mantissa >> 124 == 0;
            if room {
                mantissa = mantissa << 4 | digit;
            } else {
                sticky |= digit != 0;
            }
            // A digit used after the point lowers the unit; a digit dropped before the point raises
            // it.
            exponent += match (room, behind_point) {
                (true, true) => -4,
                (false, false) => 4,
                _ => 0,
            };
        }
    }
    Some(Magnitude::Binary { mantissa, sticky, exponent })
}

/// Digits in front of a point, digits behind it, and the rest; `None` without any digit.
fn around_point(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<(&[u8], &[u8], &[u8])> {
    let split = |text: &'_ [u8]| text.iter().take_while(|&byte| is_digit(byte)).count();
    let (whole, mut rest) = text.split_at(split(text));
    let mut fraction: &[u8] = &[];
    if let [b'.', behind @ ..] = rest {
        (fraction, rest) = behind.split_at(split(behind));
    }
    (!whole.is_empty() || !fraction.is_empty()).then_some((whole, fraction, rest))
}

/// Nothing (0), or `mark` in either case, a sign if any and at least one digit up to the end.
fn exponent(text: &[u8], mark: u8) -> Option<i64> {
    let [first, rest @ ..] = text else { return Some(0) };
    if first.to_ascii_lowercase() != mark {
        return None;
    }
    let (negative, digits) = match rest {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0i64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = (value * 10 + i64::from(byte - b'0')).min(EXPONENT_MAX);
    }
    Some(if negative { -value } else { value })
}

/// The number nearest to `(mantissa + sticky) * 2^exponent`, ties to even, that has at most
/// `precision` (<= 64) bits and is a multiple of `2^unit_min`. Returns `(m, e)` for `m * 2^e`;
/// `m` may come with leading zeros.
pub fn round(
    mantissa: u128,
    sticky: bool,
    exponent: i64,
    precision: u32,
    unit_min: i64,
) -> (u64, i64) {
    debug_assert!(!sticky || mantissa >> (precision + 1) != 0, "a sticky bit lies below the unit");
    let bits = i64::from(u128::BITS - mantissa.leading_zeros());
    let shift = (bits - i64::from(precision)).max(unit_min.saturating_sub(exponent));
    if shift <= 0 || mantissa == 0 {
        return (mantissa as u64, exponent);
    }
    if shift > bits {
        return (0, unit_min); // less than half of the unit
    }
    let unit = exponent + shift;
    let half = 1u128 << (shift - 1);
    // `shift` is 128 when all 128 bits of the mantissa are below the unit: no bits remain then.
    let kept = mantissa.checked_shr(shift as u32).unwrap_or(0) as u64;
    let below = mantissa & (half | (half - 1));
    let up = below > half || (below == half && (sticky || kept & 1 == 1));
    match kept.checked_add(u64::from(up)) {
        Some(rounded) if precision == 64 || rounded >> precision == 0 => (rounded, unit),
        _ => (1 << (precision - 1), unit + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numerals_are_refused() {
        for text in [
            "",
            "+",
            "-",
            ".",
            "-.",
            "e5",
            ".e5",
            "1e",
            "1e+",
            "1e-",
            "1e+-5",
            "1 ",
            " 1",
            "1\0",
            "\t1",
            "--1",
            "+-1",
            "0x",
            "0x.",
            "0xg",
            "0x1p",
            "0x1p+",
            "0x1e+5",
            "x10",
            "1d",
            "1L",
            "1_0",
            "1,5",
            "infin",
            "infinityx",
            "i",
            "nan",
            "NaN",
            "-nan",
            "nan(1)",
            "1.2.3",
            "1e5.",
        ] {
            assert_eq!(scan(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_numeral_is_split_into_its_parts() {
        let decimal = |whole: &'static str, fraction: &'static str, exponent| Magnitude::Decimal {
            whole: whole.as_bytes(),
            fraction: fraction.as_bytes(),
            exponent,
        };
        for (text, negative, magnitude) in [
            ("-12.50e-3", true, decimal("12", "50", -3)),
            ("+.5E+07", false, decimal("", "5", 7)),
            ("1.", false, decimal("1", "", 0)),
            ("1e99999999999999999999", false, decimal("1", "", EXPONENT_MAX)),
            ("-INFinity", true, Magnitude::Infinite),
            (
                "0XfF.8P-2",
                false,
                Magnitude::Binary { mantissa: 0xff8, sticky: false, exponent: -6 },
            ),
        ] {
            assert_eq!(scan(text.as_bytes()), Some(Numeral { negative, magnitude }), "{text}");
        }
    }

    #[test]
    fn long_hexadecimal_keeps_its_scale() {
        let text = format!("0x1{}.{}1p4", "0".repeat(40), "0".repeat(40));
        let Some(Numeral { magnitude: Magnitude::Binary { mantissa, sticky, exponent }, .. }) =
            scan(text.as_bytes())
        else {
            panic!("a number")
        };
        // At most 32 digits fit: here the one and 31 zeros (the top digit uses one of its four
        // bits).
        assert!(sticky);
        assert_eq!(mantissa.ilog2() as i64 + exponent, 160 + 4);
    }

    #[test]
    fn rounding_handles_ties_carries_and_denormals() {
        assert_eq!(round(0b1011, false, 0, 3, -100), (0b110, 1)); // tie: 5.5 -> 6 even
        assert_eq!(round(0b1001, false, 0, 3, -100), (0b100, 1)); // tie: 4.5 -> 4 even
        assert_eq!(round(0b10010, true, 0, 3, -100), (0b101, 2)); // above the tie
        assert_eq!(round(0b1111, false, 0, 3, -100), (0b100, 2)); // carry into a new bit
        assert_eq!(round(1, false, -11, 3, -10), (0, -10)); // tie with zero
        assert_eq!(round(3, false, -12, 3, -10), (1, -10));
        assert_eq!(round(u128::MAX, false, -138, 64, -10), (1, -10)); // all bits below the unit
        assert_eq!(round(u128::MAX, false, -140, 64, -10), (0, -10));
        assert_eq!(round(u128::MAX, true, 0, 64, -100), (1 << 63, 65));
        assert_eq!(round(1, false, -(1 << 40), 64, -100), (0, -100));
    }
}
