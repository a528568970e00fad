//! Passwords are compared in a time that does not tell how much of them is right.

/// True if both are the same; how long that takes depends on the lengths alone.
pub(crate) fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}
