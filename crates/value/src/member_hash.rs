//! The hash of members and fields, by which big collections order them.

use base::hash::KeyHasher;
use base::sync::OnceLock;

/// Set once, before the first member is hashed, or never: the order of members must not change
/// while there are some.
static HASHER: OnceLock<KeyHasher> = OnceLock::new();

/// Sets the secret of the hash for this process; false if members have been hashed already, or a
/// secret was set before. A server sets it at its start. Tests and the simulation do not, so that
/// each of their runs has the same order.
pub fn set_secret(secret: u128) -> bool {
    HASHER.set(KeyHasher::new(secret)).is_ok()
}

/// The hash of a member or a field: one function for the whole process. A tree is ordered by it, so
/// equal hashes do not make it slow; but SCAN returns members with equal hashes together, so
/// clients must not be able to choose them.
#[inline]
pub fn hash32(member: &[u8]) -> u32 {
    (HASHER.get_or_init(|| KeyHasher::new(0)).hash(member) >> 32) as u32
}
