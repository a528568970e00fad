//! The array of slots, on memory of its own: from the system's allocator, because the process's
//! allocator may round its regions to huge pages and a server without keys should stay small.
#![allow(unsafe_code)]

use crate::slot::Slot;
use base::SLOTS;
use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// All slots, one cache line each.
pub(crate) struct Slots {
    slots: NonNull<[Slot; SLOTS]>,
    /// What was allocated: the slots begin at its first line.
    memory: NonNull<u8>,
}

// SAFETY: it owns its slots like a box, and slots may be shared and sent.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

/// Room for the slots wherever their first line begins. The alignment is one that the system's
/// allocator has by itself: for a larger one it would write the zeros, and so touch all pages.
const LAYOUT: Layout = match Layout::from_size_align(
    size_of::<[Slot; SLOTS]>() + align_of::<Slot>(),
    align_of::<u64>(),
) {
    Ok(layout) => layout,
    Err(_) => panic!("a small layout"),
};

impl Slots {
    /// Fresh slots.
    pub fn new() -> Self {
        // SAFETY: the layout is not empty.
        let memory = unsafe { System.alloc_zeroed(LAYOUT) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(LAYOUT) };
        // SAFETY: the offset is less than the alignment, by which the allocation is larger than the
        // slots.
        let first = unsafe { memory.add(memory.align_offset(align_of::<Slot>())) };
        let slots = first.cast::<[Slot; SLOTS]>();
        // A fresh slot is all zero: a free lock, an empty table, no number, no cold parts. So a
        // slot that was never used takes no memory. Model-checked atomics are more than their bits.
        #[cfg(shuttle)]
        for i in 0..SLOTS {
            // SAFETY: place `i` is inside the allocation, aligned, and owns nothing yet.
            unsafe { slots.cast::<Slot>().add(i).write(Slot::new()) };
        }
        Self { slots, memory }
    }
}

impl Deref for Slots {
    type Target = [Slot; SLOTS];

    #[inline(always)]
    fn deref(&self) -> &[Slot; SLOTS] {
        // SAFETY: all slots are values since `new` (integers and null pointers are values when all
        // their bits are zero) and live until `drop`.
        unsafe { self.slots.as_ref() }
    }
}

impl DerefMut for Slots {
    fn deref_mut(&mut self) -> &mut [Slot; SLOTS] {
        // SAFETY: as in `deref`; and the borrow is exclusive, as ours is.
        unsafe { self.slots.as_mut() }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the slots are values, nobody refers to them any more, and their memory came from
        // this allocator with this layout.
        unsafe {
            self.slots.drop_in_place();
            System.dealloc(self.memory.as_ptr(), LAYOUT);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn fresh_slots_are_aligned_free_and_empty() {
        let slots = Slots::new();
        assert_eq!(std::ptr::from_ref(&slots[0]).addr() % align_of::<Slot>(), 0);
        for slot in slots.iter() {
            assert!(slot.table_unheld(0).is_some_and(|table| table.len() == 0));
            assert!(slot.table_unheld(1).is_none());
        }
    }
}
