//! The slot of an entry: the head of its key, and where its bytes stand. [`super`] draws it.

use super::block::Word;

/// Tail and value of this many bytes together stand by themselves.
pub const FAR_MIN: usize = 255;
/// Both lengths of a far entry's slot.
const FAR: u64 = 0xFFFF;

/// A slot as a number, from which its parts are read.
#[derive(Clone, Copy)]
pub struct Slot(u64);

impl Slot {
    /// The slot of an entry in the heap.
    pub fn near(head: u32, start: usize, tail: usize, value: usize) -> Self {
        debug_assert!(start <= 0xFFFF && tail + value < FAR_MIN);
        Self(u64::from(head) << 32 | (start as u64) << 16 | (tail as u64) << 8 | value as u64)
    }

    /// The slot of a far entry.
    pub fn far(head: u32, place: usize) -> Self {
        Self(u64::from(head) << 32 | (place as u64) << 16 | FAR)
    }

    /// Reads a slot of a block.
    pub fn of(word: Word) -> Self {
        Self(u64::from_le_bytes(word))
    }

    /// The slot as it stands in a block.
    pub fn word(self) -> Word {
        self.0.to_le_bytes()
    }

    /// The head of the key.
    pub fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// True if the entry has an allocation of its own.
    pub fn is_far(self) -> bool {
        self.0 & FAR == FAR
    }

    /// Where the bytes begin, counted backwards from the end of the block; the place of a far
    /// entry.
    pub fn start(self) -> usize {
        (self.0 >> 16 & 0xFFFF) as usize
    }

    /// Length of the tail, of an entry in the heap.
    pub fn tail(self) -> usize {
        (self.0 >> 8 & 0xFF) as usize
    }

    /// Length of the value, of an entry in the heap.
    pub fn value(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    /// Bytes that the entry takes in the heap.
    pub fn size(self) -> usize {
        if self.is_far() { 0 } else { self.tail() + self.value() }
    }
}
