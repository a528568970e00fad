//! Switches of `DEBUG`, for the whole process.

use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicBool, AtomicUsize};

/// Bytes from which on an element of a list is a node by itself, by default.
const PLAIN_FROM: usize = 1 << 30;

static SKIPS_CHECKSUMS: AtomicBool = AtomicBool::new(false);
static PLAIN_BYTES: AtomicUsize = AtomicUsize::new(PLAIN_FROM);

/// Accepts payloads with a wrong checksum, or refuses them again.
pub fn skip_checksums(on: bool) {
    SKIPS_CHECKSUMS.store(on, Relaxed);
}

/// True if payloads with a wrong checksum are accepted.
pub(crate) fn skips_checksums() -> bool {
    SKIPS_CHECKSUMS.load(Relaxed)
}

/// Writes elements of so many bytes or more as nodes by themselves; 0 is the default again.
pub fn write_plain_from(bytes: usize) {
    PLAIN_BYTES.store(if bytes == 0 { PLAIN_FROM } else { bytes }, Relaxed);
}

/// Bytes from which on an element is a node by itself. A writer reads the switch once, because both
/// of its walks must place elements alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainFrom(pub usize);

impl Default for PlainFrom {
    fn default() -> Self {
        Self(PLAIN_BYTES.load(Relaxed))
    }
}
