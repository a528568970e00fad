//! Integers of 1 to 64 bits at any bit of a text, most significant bit first.

/// Bytes that the longest field can touch: 64 bits that begin at the last bit of a byte.
pub const WINDOW_MAX: usize = 9;

/// What happens to a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overflow {
    /// Its low bits stay.
    #[default]
    Wrap,
    /// It becomes the nearest one that fits.
    Sat,
    /// Nothing is changed.
    Fail,
}

/// The type of a field: `i1` to `i64`, `u1` to `u63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    signed: bool,
    bits: u8,
}

impl Field {
    /// A field of this width, if there is such a type.
    pub const fn new(signed: bool, bits: u8) -> Option<Field> {
        let most = if signed { 64 } else { 63 };
        if bits == 0 || bits > most { None } else { Some(Field { signed, bits }) }
    }

    /// Its width.
    pub const fn bits(self) -> u64 {
        self.bits as u64
    }

    /// The smallest value that fits.
    pub const fn min(self) -> i64 {
        if self.signed { -1 << (self.bits - 1) } else { 0 }
    }

    /// The largest value that fits.
    pub const fn max(self) -> i64 {
        let bits = if self.signed { self.bits - 1 } else { self.bits };
        ((1u64 << bits) - 1) as i64
    }

    /// The bytes that a field at this bit touches: the first, and how many.
    pub const fn window(self, offset: u64) -> (u64, usize) {
        let first = offset >> 3;
        let last = (offset + self.bits() - 1) >> 3;
        (first, (last - first + 1) as usize)
    }

    /// The value at a bit; bits beyond the end are zero.
    pub fn get(self, bytes: &[u8], offset: u64) -> i64 {
        let first = usize::try_from(offset >> 3).unwrap_or(usize::MAX).min(bytes.len());
        let there = &bytes[first..bytes.len().min(first + WINDOW_MAX)];
        let mut window = [0; 16];
        window[..there.len()].copy_from_slice(there);
        let aligned = u128::from_be_bytes(window) << (offset & 7);
        let high = (aligned >> 64) as u64;
        if self.signed {
            high as i64 >> (64 - u32::from(self.bits))
        } else {
            (high >> (64 - u32::from(self.bits))) as i64
        }
    }

    /// Writes a value's low bits into the bytes of its [`Field::window`].
    pub fn put(self, window: &mut [u8], offset: u64, value: i64) {
        let mut whole = [0; 16];
        whole[..window.len()].copy_from_slice(window);
        let shift = 128 - u32::from(self.bits) - (offset & 7) as u32;
        let mask = u128::from(u64::MAX >> (64 - u32::from(self.bits)));
        let kept = u128::from_be_bytes(whole) & !(mask << shift);
        let new = kept | (u128::from(value as u64) & mask) << shift;
        window.copy_from_slice(&new.to_be_bytes()[..window.len()]);
    }

    /// What a SET of `value` stores; none if it does not fit and must.
    pub fn fit(self, value: i64, overflow: Overflow) -> Option<i64> {
        // An unsigned field reads its argument as unsigned: a negative one is too large.
        let wide = if self.signed { i128::from(value) } else { i128::from(value as u64) };
        self.bound(wide, overflow)
    }

    /// What an INCRBY stores where `old` stands; none if it does not fit and must.
    pub fn add(self, old: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.bound(i128::from(old) + i128::from(increment), overflow)
    }

    fn bound(self, wide: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = (self.min(), self.max());
        if wide >= i128::from(min) && wide <= i128::from(max) {
            return Some(wide as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.wrap(wide as i64)),
            Overflow::Sat => Some(if wide < 0 { min } else { max }),
            Overflow::Fail => None,
        }
    }

    /// The low bits as a value of this type.
    fn wrap(self, value: i64) -> i64 {
        let free = 64 - u32::from(self.bits);
        if self.signed { value << free >> free } else { ((value as u64) << free >> free) as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bit::{bit, bits};
    use super::*;
    use proptest::prelude::*;

    fn any_field() -> impl Strategy<Value = Field> {
        (any::<bool>(), 1u8..=64).prop_filter_map("a type", |(signed, n)| Field::new(signed, n))
    }

    #[test]
    fn field_types_have_their_bounds() {
        let of = |signed, n| Field::new(signed, n).map(|field| (field.min(), field.max()));
        assert_eq!(of(true, 64), Some((i64::MIN, i64::MAX)));
        assert_eq!(of(false, 63), Some((0, i64::MAX)));
        assert_eq!(of(true, 1), Some((-1, 0)));
        assert_eq!(of(false, 1), Some((0, 1)));
        assert_eq!((of(true, 65), of(false, 64), of(true, 0)), (None, None, None));
    }

    proptest! {
        #[test]
        fn a_field_agrees_with_its_single_bits(
            field in any_field(),
            mut bytes in proptest::collection::vec(any::<u8>(), 0..24),
            offset in 0u64..128,
            value: i64,
        ) {
            let (first, len) = field.window(offset);
            let mut naive = (0..field.bits()).fold(0i128, |sum, i| {
                sum << 1 | i128::from(bit(&bytes, offset + i))
            });
            if naive > i128::from(field.max()) {
                naive -= 1 << field.bits();
            }
            prop_assert_eq!(i128::from(field.get(&bytes, offset)), naive);

            bytes.resize(bytes.len().max(first as usize + len), 0);
            let before = bits(&bytes);
            field.put(&mut bytes[first as usize..][..len], offset, value);
            for (at, (old, new)) in before.into_iter().zip(bits(&bytes)).enumerate() {
                let inside = (at as u64).checked_sub(offset).filter(|i| *i < field.bits());
                let wanted = inside.map_or(old, |i| value >> (field.bits() - 1 - i) & 1 == 1);
                prop_assert_eq!(new, wanted, "bit {}", at);
            }
            prop_assert_eq!(field.get(&bytes, offset), field.wrap(value));
        }

        #[test]
        fn sums_wrap_saturate_or_fail_on_overflow(field in any_field(), old: i64, increment: i64) {
            let old = field.wrap(old);
            let sum = i128::from(old) + i128::from(increment);
            let fits = (i128::from(field.min())..=i128::from(field.max())).contains(&sum);
            let exact = fits.then_some(sum as i64);
            prop_assert_eq!(field.add(old, increment, Overflow::Fail), exact);
            let sat = if sum < 0 { field.min() } else { field.max() };
            prop_assert_eq!(field.add(old, increment, Overflow::Sat), exact.or(Some(sat)));
            let wrapped = field.add(old, increment, Overflow::Wrap).expect("wraps always");
            let span = 1i128 << field.bits();
            prop_assert_eq!((sum - i128::from(wrapped)).rem_euclid(span), 0);
            prop_assert!(wrapped >= field.min() && wrapped <= field.max());
        }
    }
}
