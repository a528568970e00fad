//! The 80-bit extended number of x87 (64-bit mantissa, 15-bit exponent) in integer arithmetic,
//! as INCRBYFLOAT and HINCRBYFLOAT show it to clients: reading, adding, and writing with 17 digits
//! behind the point. Every operation rounds to nearest, ties to even.
//!
//! Cost: tens of nanoseconds for everyday operands; a number near the ends of the range (4,932
//! digits) takes 40 to 170 us of exact big arithmetic.

use crate::bignat::BigNat;
use crate::numeral::{self, Magnitude, Numeral};

/// Maximum length of a number's text; longer text is not a number.
pub const TEXT_MAX: usize = 5 * 1024 - 1;

/// Longest text that [`LongDouble::write`] makes: sign, 4,933 digits (a fraction needs a small
/// whole part, so both ends never meet).
pub const WRITTEN_MAX: usize = 1 + 4933;

/// Bits of the mantissa.
const PRECISION: u32 = 64;

/// The smallest number is 2 to this power; every number is a multiple of it.
const UNIT_MIN: i64 = -16_445;

/// Every finite number is below 2 to this power.
const EXPONENT_END: i64 = 16_384;

/// Digits written behind the point.
const FRACTION_DIGITS: u32 = 17;

/// An extended number; never NaN. Infinity comes only from text that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Zero,
    /// `mantissa * 2^unit` with the top bit of `mantissa` set (denormals too: the rounding step
    /// keeps them multiples of the smallest number).
    Finite {
        mantissa: u64,
        unit: i32,
    },
    Infinite,
}

impl LongDouble {
    /// Positive zero, the value of a missing key.
    pub const ZERO: Self = Self { negative: false, size: Size::Zero };

    /// The greatest finite number.
    pub const MAX: Self =
        Self { negative: false, size: Size::Finite { mantissa: u64::MAX, unit: 16_320 } };

    /// The number nearest to what `text` says. `None` if it is not a number, is longer than
    /// [`TEXT_MAX`], or would overflow to infinity or underflow to zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_MAX {
            return None;
        }
        let Numeral { negative, magnitude } = numeral::scan(text)?;
        let size = match magnitude {
            Magnitude::Infinite => Size::Infinite,
            Magnitude::Binary { mantissa: 0, .. } => Size::Zero,
            Magnitude::Binary { mantissa, sticky, exponent } => {
                in_range(mantissa, sticky, exponent)?
            }
            Magnitude::Decimal { whole, fraction, exponent } => decimal(whole, fraction, exponent)?,
        };
        Some(Self { negative, size })
    }

    /// True unless it is an infinity.
    pub fn is_finite(self) -> bool {
        self.size != Size::Infinite
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { negative: !self.negative, ..self }
    }

    /// True if it is less than `other`.
    pub fn is_below(self, other: Self) -> bool {
        let sign = |number: Self| match number.size {
            Size::Zero => 0,
            _ if number.negative => -1,
            _ => 1,
        };
        let size = |number: Self| match number.size {
            Size::Zero => (i32::MIN, 0),
            Size::Finite { mantissa, unit } => (unit, mantissa),
            Size::Infinite => (i32::MAX, 0),
        };
        let (a, b) = (sign(self), sign(other));
        if a != b {
            return a < b;
        }
        if a < 0 { size(other) < size(self) } else { size(self) < size(other) }
    }

    /// The sum, or `None` if it would be infinite or no number.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (a, b) = match (self.size, other.size) {
            (Size::Infinite, _) | (_, Size::Infinite) => return None,
            (Size::Zero, Size::Zero) => {
                return Some(Self { negative: self.negative && other.negative, size: Size::Zero });
            }
            (Size::Zero, _) => return Some(other),
            (_, Size::Zero) => return Some(self),
            (Size::Finite { unit: a, .. }, Size::Finite { unit: b, .. }) => (a, b),
        };
        let (big, small) = if a >= b { (self, other) } else { (other, self) };
        let apart = a.abs_diff(b);
        // 62 spare bits below and one above. Bits of the smaller operand beyond them are folded
        // into its last bit, which is enough to round correctly: a cancellation of more than one
        // bit needs exponents so close that no bits are beyond.
        const SPARE: u32 = 62;
        let wide = u128::from(big.mantissa()) << SPARE;
        let aligned = shift_right_sticky(u128::from(small.mantissa()) << SPARE, apart);
        let (sum, negative) = if big.negative == small.negative {
            (wide + aligned, big.negative)
        } else if wide >= aligned {
            (wide - aligned, big.negative)
        } else {
            (aligned - wide, small.negative)
        };
        if sum == 0 {
            return Some(Self::ZERO);
        }
        let unit = i64::from(a.max(b)) - i64::from(SPARE);
        // A sum of multiples of the smallest number is one too: it cannot vanish.
        Some(Self { negative, size: in_range(sum, false, unit)? })
    }

    /// Appends it in plain decimal: up to 17 digits behind the point, no zeros at the end, never an
    /// exponent, never `-0`. Infinity is `inf`.
    pub fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        match self.size {
            Size::Zero => out.push(b'0'),
            Size::Infinite => out.extend_from_slice(b"inf"),
            Size::Finite { mantissa, unit: unit @ 0.. } => {
                BigNat::shifted(mantissa, unit as u32).write(out);
            }
            Size::Finite { mantissa, unit } => write_fraction(mantissa, unit.unsigned_abs(), out),
        }
        if &out[start..] == b"-0" {
            out.remove(start);
        }
    }

    fn mantissa(self) -> u64 {
        match self.size {
            Size::Finite { mantissa, .. } => mantissa,
            Size::Zero | Size::Infinite => 0,
        }
    }
}

/// Rounds to a finite number that is not zero, else `None`.
fn in_range(mantissa: u128, sticky: bool, exponent: i64) -> Option<Size> {
    let (mantissa, unit) = numeral::round(mantissa, sticky, exponent, PRECISION, UNIT_MIN);
    if mantissa == 0 {
        return None;
    }
    let unit = unit - i64::from(mantissa.leading_zeros());
    let mantissa = mantissa << mantissa.leading_zeros();
    (unit + i64::from(PRECISION) <= EXPONENT_END)
        .then_some(Size::Finite { mantissa, unit: unit as i32 })
}

/// The number nearest to `whole.fraction * 10^exponent`.
fn decimal(whole: &[u8], fraction: &[u8], exponent: i64) -> Option<Size> {
    /// Decimal places of the first digit outside of which no finite number lies.
    const PLACES: std::ops::RangeInclusive<i64> = -4_960..=4_940;
    let mut digits = Vec::with_capacity(whole.len() + fraction.len());
    digits.extend(whole.iter().chain(fraction).skip_while(|&&digit| digit == b'0'));
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    if significant == 0 {
        return Some(Size::Zero);
    }
    // The value is 0.DIGITS * 10^point, so its first digit stands at place point - 1.
    let point = exponent - fraction.len() as i64 + digits.len() as i64;
    if !PLACES.contains(&(point - 1)) {
        return None;
    }
    digits.truncate(significant);
    let power = point - significant as i64;
    let fives = power.unsigned_abs() as u32;
    if let Some((mantissa, exponent)) = small_decimal(&digits, power) {
        return in_range(mantissa, false, exponent);
    }
    let number = BigNat::from_digits(&digits);
    if power >= 0 {
        let mut number = number;
        number.multiply_by_five_to(fives);
        let (top, below, lost) = number.leading();
        in_range(top, lost, power + i64::from(below))
    } else {
        let mut divisor = BigNat::one();
        divisor.multiply_by_five_to(fives);
        let (quotient, scale, rest) = number.quotient(divisor);
        in_range(quotient, rest, power - scale)
    }
}

/// `digits * 10^power` as `mantissa * 2^exponent`, good for rounding, if 128 bits are enough.
fn small_decimal(digits: &[u8], power: i64) -> Option<(u128, i64)> {
    /// 5^27 is the last power of five below 2^63.
    const FIVES_MAX: u64 = 27;
    let value = crate::num::parse_u64(digits)?;
    if power.unsigned_abs() > FIVES_MAX {
        return None;
    }
    let fives = u128::from(5u64.pow(power.unsigned_abs() as u32));
    if power >= 0 {
        return Some((u128::from(value) * fives, power));
    }
    let shift = 64 + value.leading_zeros();
    let wide = u128::from(value) << shift; // the top bit is set
    // At least 2^127 / 2^63 = 2^64: 65 bits, the last of which decides the rounding. One more says
    // whether anything follows.
    let (quotient, rest) = (wide / fives, wide % fives);
    Some((quotient << 1 | u128::from(rest != 0), power - i64::from(shift) - 1))
}

/// `value >> shift`; the last bit is set if any shifted-out bit was set.
fn shift_right_sticky(value: u128, shift: u32) -> u128 {
    match value.checked_shr(shift) {
        Some(kept) => kept | u128::from(kept << shift != value),
        None => u128::from(value != 0),
    }
}

/// Writes `mantissa / 2^places`, rounded to 17 digits behind the point.
fn write_fraction(mantissa: u64, places: u32, out: &mut Vec<u8>) {
    const SCALE: u64 = 10u64.pow(FRACTION_DIGITS);
    let whole = mantissa.checked_shr(places).unwrap_or(0);
    let below = match places {
        0..64 => mantissa & ((1 << places) - 1),
        _ => mantissa,
    };
    let scaled = u128::from(below) * u128::from(SCALE); // below 2^121
    // With 122 places or more the value is less than half of the last digit.
    let (digits, _) = match places {
        0..=121 => numeral::round(scaled, false, -i64::from(places), 64, 0),
        _ => (0, 0),
    };
    let carry = u64::from(digits == SCALE);
    crate::num::write_u64(out, whole + carry);
    let mut digits = digits % SCALE;
    if digits == 0 {
        return;
    }
    let mut text = [b'0'; FRACTION_DIGITS as usize];
    for digit in text.iter_mut().rev() {
        *digit += (digits % 10) as u8;
        digits /= 10;
    }
    let significant = text.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    out.push(b'.');
    out.extend_from_slice(&text[..significant]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: LongDouble) -> String {
        let mut out = Vec::new();
        value.write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    fn parse(text: &str) -> LongDouble {
        LongDouble::parse(text.as_bytes()).expect("a number")
    }

    /// The reply of INCRBYFLOAT for a stored text and an increment.
    fn incremented(stored: &str, by: &str) -> String {
        let parsed = (LongDouble::parse(stored.as_bytes()), LongDouble::parse(by.as_bytes()));
        let (Some(stored), Some(by)) = parsed else {
            return "!ERR value is not a valid float".into();
        };
        match stored.checked_add(by) {
            None => "!ERR increment would produce NaN or Infinity".into(),
            Some(sum) => text(sum),
        }
    }

    /// Recorded from INCRBYFLOAT: `stored<TAB>increment<TAB>answer`. Errors start with `!`.
    #[test]
    fn sums_match_a_recording_of_the_real_server() {
        let mut lines = 0;
        for line in include_str!("../tests/golden/incrbyfloat.txt").lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [stored, by, answer] = fields[..] else { panic!("three fields: {line}") };
            assert_eq!(incremented(stored, by), answer, "{line}");
            lines += 1;
        }
        assert!(lines >= 400, "the recording is there: {lines}");
    }

    #[test]
    fn the_length_of_an_operand_is_limited() {
        let longest = "0".repeat(TEXT_MAX - 1) + "1";
        assert_eq!(text(parse(&longest)), "1");
        assert_eq!(LongDouble::parse(format!("0{longest}").as_bytes()), None);
        // The most expensive accepted text: every digit is significant.
        let threes = format!("0.{}", "3".repeat(TEXT_MAX - 2));
        assert_eq!(text(parse(&threes)), "0.33333333333333333");
    }

    #[test]
    fn the_longest_number_has_the_maximum_length() {
        let greatest = text(parse("-1.18973149535723176502e+4932"));
        assert_eq!(greatest.len(), WRITTEN_MAX);
        assert!(greatest.starts_with("-118973149535723176502126385303097020516906332229462420044"));
    }

    #[test]
    fn sums_at_the_ends_of_the_range_are_exact() {
        let greatest = parse("0xffffffffffffffffp16320");
        assert_eq!(greatest.checked_add(greatest), None);
        let half_unit = parse("0x1p16319");
        assert_eq!(greatest.checked_add(half_unit), None, "a tie goes to even, which is infinite");
        assert_eq!(greatest.checked_add(parse("0x1.fffp16318")), Some(greatest));
        let least = parse("0x1p-16445");
        assert_eq!(least.checked_add(least), Some(parse("0x1p-16444")));
        assert_eq!(least.checked_add(parse("-0x1p-16445")), Some(LongDouble::ZERO));
        assert_eq!(greatest.checked_add(least), Some(greatest));
        assert!(!parse("-inf").is_finite() && greatest.is_finite());
        assert_eq!(text(parse("-inf")), "-inf");
    }

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?[0-9]{1,9}(\\.[0-9]{1,9})?",
            "-?[0-9]{1,25}\\.[0-9]{1,25}",
            ("-?[1-9]\\.[0-9]{1,24}", -4_900..4_900).prop_map(|(m, e)| format!("{m}e{e}")),
        ]
    }

    proptest! {
        #[test]
        fn addition_commutes_and_has_an_inverse(a in number(), b in number()) {
            let (a, b) = (parse(&a), parse(&b));
            prop_assert_eq!(a.checked_add(b), b.checked_add(a));
            let opposite = LongDouble { negative: !a.negative, size: a.size };
            prop_assert_eq!(a.checked_add(opposite), Some(LongDouble::ZERO));
        }

        /// Sums of integers of up to 62 bits are exact.
        #[test]
        fn sums_of_integers_are_exact(a in -(1i64 << 62)..(1 << 62), b in -(1i64 << 62)..(1 << 62)) {
            prop_assert_eq!(incremented(&a.to_string(), &b.to_string()), (a + b).to_string());
        }

        #[test]
        fn the_fast_path_agrees_with_the_general_one(digits in 1u64.., power in -27i64..=27) {
            let (mantissa, exponent) = small_decimal(digits.to_string().as_bytes(), power)
                .expect("few digits and a small power");
            let quick = in_range(mantissa, false, exponent);
            let number = BigNat::from_digits(digits.to_string().as_bytes());
            let mut fives = BigNat::one();
            fives.multiply_by_five_to(power.unsigned_abs() as u32);
            let slow = if power >= 0 {
                in_range(u128::from(digits) * 5u128.pow(power as u32), false, power)
            } else {
                let (quotient, scale, rest) = number.quotient(fives);
                in_range(quotient, rest, power - scale)
            };
            prop_assert_eq!(quick, slow);
        }

        #[test]
        fn large_numbers_round_trip(mantissa: u64, exponent in 0u32..16_320) {
            let value = parse(&format!("{:#x}p{exponent}", mantissa | 1 << 63));
            prop_assert_eq!(parse(&text(value)), value);
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes: Vec<u8>) {
            LongDouble::parse(&bytes);
        }
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let order = ["-inf", "-1e4000", "-2.5", "-2", "-1e-4000", "0", "1e-4000", "2", "3", "inf"];
        for (i, a) in order.iter().enumerate() {
            for (j, b) in order.iter().enumerate() {
                assert_eq!(parse(a).is_below(parse(b)), i < j, "{a} < {b}");
            }
        }
        assert!(!parse("-0").is_below(LongDouble::ZERO) && !LongDouble::ZERO.is_below(parse("-0")));
        assert_eq!(LongDouble::MAX, parse("0xffffffffffffffffp16320"));
        assert_eq!(parse("2.5").negated(), parse("-2.5"));
    }
}
