//! Finding the first bit of a kind.

use super::bit::bit;

/// Bytes that are compared at once.
const BLOCK: usize = 64;

/// The first bit with this value from bit `from` up to, not including, bit `to`, both within the
/// text.
pub fn first(bytes: &[u8], wanted: bool, from: u64, to: u64) -> Option<u64> {
    let mut at = from;
    while at < to && at & 7 != 0 {
        if bit(bytes, at) == wanted {
            return Some(at);
        }
        at += 1;
    }
    if at >= to {
        return None;
    }
    let whole = &bytes[(at >> 3) as usize..to.div_ceil(8) as usize];
    let found = at + in_bytes(whole, wanted)?;
    (found < to).then_some(found)
}

/// The first bit with this value among whole bytes.
fn in_bytes(bytes: &[u8], wanted: bool) -> Option<u64> {
    let skip = if wanted { 0x00 } else { 0xff };
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let skipped = blocks.iter().take_while(|block| block.iter().all(|byte| *byte == skip)).count();
    let rest = &bytes[skipped * BLOCK..];
    let byte = rest.iter().position(|byte| *byte != skip)?;
    let inside = (rest[byte] ^ skip).leading_zeros();
    Some((skipped * BLOCK + byte) as u64 * 8 + u64::from(inside))
}

#[cfg(test)]
mod tests {
    use super::super::bit::bits;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_bit_agrees_with_a_linear_search(
            fill in prop_oneof![Just(0u8), Just(0xff), any::<u8>()],
            len in 1usize..400,
            odd in proptest::collection::vec((0usize..3200, any::<u8>()), 0..3),
            a: usize,
            b: usize,
            wanted: bool,
        ) {
            let mut bytes = vec![fill; len];
            for (at, byte) in odd {
                bytes[at % len] = byte;
            }
            let total = bytes.len() * 8 + 1;
            let (a, b) = (a % total, b % total);
            let (from, to) = (a.min(b), a.max(b));
            let all = bits(&bytes);
            let walked = (from..to).find(|at| all[*at] == wanted).map(|at| at as u64);
            prop_assert_eq!(first(&bytes, wanted, from as u64, to as u64), walked);
        }
    }
}
