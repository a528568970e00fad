//! One bit.

/// The bit at an offset; 0 beyond the end.
#[inline]
pub fn bit(bytes: &[u8], offset: u64) -> bool {
    bytes.get((offset >> 3) as usize).is_some_and(|byte| byte & mask(offset) != 0)
}

/// The bit of an offset within its byte.
#[inline]
pub const fn mask(offset: u64) -> u8 {
    0x80 >> (offset & 7)
}

/// A naive view of some bits, for comparing.
#[cfg(test)]
pub(super) fn bits(bytes: &[u8]) -> Vec<bool> {
    (0..bytes.len() as u64 * 8).map(|at| bit(bytes, at)).collect()
}
