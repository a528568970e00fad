//! What `DEBUG` switches for the whole process.

use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicBool, AtomicUsize};

/// Bytes of an element of a list that is a node by itself, unless told otherwise.
const PLAIN_FROM: usize = 1 << 30;

static SKIPS_CHECKSUMS: AtomicBool = AtomicBool::new(false);
static PLAIN_BYTES: AtomicUsize = AtomicUsize::new(PLAIN_FROM);

/// Takes payloads whose checksum is wrong, or refuses them again.
pub fn skip_checksums(on: bool) {
    SKIPS_CHECKSUMS.store(on, Relaxed);
}

/// Whether payloads are taken whose checksum is wrong.
pub(crate) fn skips_checksums() -> bool {
    SKIPS_CHECKSUMS.load(Relaxed)
}

/// Writes elements of so many bytes or more as nodes by themselves; 0 is the default again.
pub fn write_plain_from(bytes: usize) {
    PLAIN_BYTES.store(if bytes == 0 { PLAIN_FROM } else { bytes }, Relaxed);
}

/// The bytes of an element that is a node by itself: of a writer, which must not change its mind
/// between two walks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainFrom(pub usize);

impl Default for PlainFrom {
    fn default() -> Self {
        Self(PLAIN_BYTES.load(Relaxed))
    }
}
