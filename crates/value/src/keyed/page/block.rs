//! The memory of a page: one allocation, in a size which the allocator does not round up.

/// The unit of a block: the bytes of one slot.
pub type Word = [u8; 8];

/// Bytes of a slot.
pub const SLOT: usize = size_of::<Word>();

/// A block of zeros.
pub fn blank(bytes: usize) -> Box<[Word]> {
    vec![[0; SLOT]; bytes / SLOT].into_boxed_slice()
}

/// The next size that the allocator does not round up: four steps from one power of two to the
/// next.
pub fn size_class(bytes: usize) -> usize {
    if bytes <= 128 {
        bytes.next_multiple_of(16)
    } else {
        bytes.next_multiple_of(1 << ((bytes - 1).ilog2() - 2))
    }
}
