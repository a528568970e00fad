//! Natural numbers of any size, just enough for exact decimal <-> binary conversion: at most some
//! 25,000 bits, so plain quadratic methods are fine.

use std::cmp::Ordering;

/// Limbs of 32 bits, least significant first, no zero limb at the top; zero has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigNat(Vec<u32>);

/// Powers of five are multiplied in this many at a time: 5^13 is the last below 2^32.
const FIVES_STEP: u32 = 13;

/// Decimal digits are read and written this many at a time.
const DIGITS_STEP: usize = 9;

/// Groups of digits that one pass over the limbs yields.
const GROUPS_STEP: usize = 4;

impl BigNat {
    /// The number 1.
    pub fn one() -> Self {
        Self(vec![1])
    }

    /// The number that these ASCII digits spell.
    pub fn from_digits(digits: &[u8]) -> Self {
        let mut number = Self(Vec::with_capacity(digits.len() / 9 + 1));
        for group in digits.chunks(DIGITS_STEP) {
            let value = group.iter().fold(0, |value, &digit| value * 10 + u32::from(digit - b'0'));
            number.multiply_add(10u32.pow(group.len() as u32), value);
        }
        number
    }

    /// `mantissa * 2^shift`.
    pub fn shifted(mantissa: u64, shift: u32) -> Self {
        let mut number = Self(vec![mantissa as u32, (mantissa >> 32) as u32]);
        number.trim();
        number.shift_left(shift);
        number
    }

    /// Multiplies by `5^power`.
    pub fn multiply_by_five_to(&mut self, mut power: u32) {
        while power > 0 {
            let step = power.min(FIVES_STEP);
            self.multiply_add(5u32.pow(step), 0);
            power -= step;
        }
    }

    /// Number of significant bits; 0 for zero.
    pub fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    /// `self <<= shift`.
    pub fn shift_left(&mut self, shift: u32) {
        if self.0.is_empty() {
            return;
        }
        let part = shift % 32;
        if part > 0 {
            let mut carry = 0;
            for limb in &mut self.0 {
                let wide = u64::from(*limb) << part | carry;
                *limb = wide as u32;
                carry = wide >> 32;
            }
            if carry > 0 {
                self.0.push(carry as u32);
            }
        }
        self.0.splice(0..0, std::iter::repeat_n(0, (shift / 32) as usize));
    }

    /// The leading bits, at most 128, how many bits stand below them, and whether one of those is
    /// set.
    pub fn leading(&self) -> (u128, u32, bool) {
        let below = self.bits().saturating_sub(128);
        let (limbs, part) = ((below / 32) as usize, below % 32);
        let mut top = 0u128;
        for (index, &limb) in self.0[limbs..].iter().enumerate() {
            let place = index as u32 * 32;
            // The lowest limb loses its bits below the cut; the others slide down.
            top |= if index == 0 {
                u128::from(limb >> part)
            } else {
                u128::from(limb) << (place - part)
            };
        }
        let lost = self.0[..limbs].iter().any(|&limb| limb != 0)
            || (part > 0 && self.0[limbs] & ((1 << part) - 1) != 0);
        (top, below, lost)
    }

    /// `floor(self / divisor * 2^scale)` with 67 or 68 significant bits, the `scale` that gives
    /// this many bits, and whether there is a remainder. Both numbers must not be zero.
    pub fn quotient(mut self, mut divisor: Self) -> (u128, i64, bool) {
        const BITS: u32 = 68;
        let ahead = i64::from(divisor.bits()) - i64::from(self.bits());
        match u32::try_from(ahead) {
            Ok(behind) => self.shift_left(behind),
            Err(_) => divisor.shift_left(ahead.unsigned_abs() as u32),
        }
        // Same number of bits now, so the quotient is between 1/2 and 2: one bit at a time.
        let mut quotient = 0u128;
        for _ in 0..BITS {
            quotient <<= 1;
            if self.compare(&divisor) != Ordering::Less {
                self.subtract(&divisor);
                quotient |= 1;
            }
            self.shift_left(1);
        }
        (quotient, ahead + i64::from(BITS) - 1, !self.0.is_empty())
    }

    /// Appends the decimal digits.
    pub fn write(mut self, out: &mut Vec<u8>) {
        let mut groups = Vec::with_capacity(self.0.len() * 32 / 29 + GROUPS_STEP);
        while !self.0.is_empty() {
            groups.extend(self.divide_by_groups());
        }
        while groups.last() == Some(&0) {
            groups.pop();
        }
        crate::num::write_u64(out, u64::from(groups.pop().unwrap_or(0)));
        for group in groups.into_iter().rev() {
            let mut text = [b'0'; DIGITS_STEP];
            let mut rest = group;
            for digit in text.iter_mut().rev() {
                *digit += (rest % 10) as u8;
                rest /= 10;
            }
            out.extend_from_slice(&text);
        }
    }

    /// Divides by 10^9 in place, [`GROUPS_STEP`] times over; returns the remainders in that order.
    /// One pass does all of them: each division waits for the remainder of the limb above, so
    /// several independent chains overlap.
    fn divide_by_groups(&mut self) -> [u32; GROUPS_STEP] {
        const GROUP: u64 = 10u64.pow(DIGITS_STEP as u32);
        let mut rests = [0u64; GROUPS_STEP];
        for limb in self.0.iter_mut().rev() {
            for rest in &mut rests {
                let wide = *rest << 32 | u64::from(*limb);
                *limb = (wide / GROUP) as u32;
                *rest = wide % GROUP;
            }
        }
        self.trim();
        rests.map(|rest| rest as u32)
    }

    /// `self * factor + addend`.
    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.0 {
            let wide = u64::from(*limb) * u64::from(factor) + carry;
            *limb = wide as u32;
            carry = wide >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// `self -= other`, which is not greater.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (index, limb) in self.0.iter_mut().enumerate() {
            let take = other.0.get(index).copied().unwrap_or(0);
            let (less, under) = limb.overflowing_sub(take);
            let (less, under_again) = less.overflowing_sub(u32::from(borrow));
            *limb = less;
            borrow = under | under_again;
        }
        assert!(!borrow, "the subtrahend is not greater");
        self.trim();
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(number: BigNat) -> String {
        let mut out = Vec::new();
        number.write(&mut out);
        String::from_utf8(out).expect("digits")
    }

    fn big(value: u128) -> BigNat {
        BigNat::from_digits(value.to_string().as_bytes())
    }

    #[test]
    fn powers_are_written_exactly() {
        assert_eq!(text(BigNat::shifted(1, 200)), {
            // 2^200, computed by hand from 2^100 squared
            "1606938044258990275541962092341162602522202993782792835301376"
        });
        let mut five = BigNat::one();
        five.multiply_by_five_to(40);
        assert_eq!(text(five), 5u128.pow(40).to_string());
        assert_eq!(text(BigNat::from_digits(b"000")), "0");
    }

    proptest! {
        #[test]
        fn digits_round_trip(digits in "[1-9][0-9]{0,200}") {
            prop_assert_eq!(text(BigNat::from_digits(digits.as_bytes())), digits);
        }

        #[test]
        fn leading_bits_are_exact_or_marked_as_truncated(value: u64, shift in 0u32..300) {
            let (top, below, lost) = BigNat::shifted(value | 1, shift).leading();
            prop_assert!(!lost);
            prop_assert_eq!(top.ilog2() + below, (value | 1).ilog2() + shift);
            prop_assert_eq!(top >> top.trailing_zeros(), u128::from(value | 1));
            let mut odd = BigNat::shifted(value | 1, shift + 129);
            odd.multiply_add(1, 1);
            let (same, _, lost) = odd.leading();
            prop_assert!(lost);
            prop_assert_eq!(same >> same.trailing_zeros(), u128::from(value | 1));
        }

        #[test]
        fn quotients_have_68_bits_and_a_remainder_flag(a in 1u128.., b in 1u128..(1 << 60)) {
            let (quotient, scale, rest) = big(a).quotient(big(b));
            prop_assert!((67..=68).contains(&(128 - quotient.leading_zeros())));
            // Compare with the integer quotient where both are exact.
            let whole = if scale >= 0 { quotient >> scale.min(127) } else { quotient };
            if scale >= 0 {
                prop_assert_eq!(whole, a / b);
            } else {
                prop_assert_eq!(quotient, (a / b) >> -scale);
            }
            if a % b == 0 && scale >= 0 {
                prop_assert!(!rest);
            }
        }
    }
}
