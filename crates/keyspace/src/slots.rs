//! The array of slots, on memory of its own: from the system's allocator, because the process's allocator
//! may round its regions to huge pages and a server without keys should stay small.
#![allow(unsafe_code)]

use crate::slot::Slot;
use base::SLOTS;
use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;

/// All slots, one cache line each.
pub(crate) struct Slots(NonNull<[Slot; SLOTS]>);

// SAFETY: it owns its slots like a box, and slots may be shared and sent.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

const LAYOUT: Layout = Layout::new::<[Slot; SLOTS]>();

impl Slots {
    /// Fresh slots.
    pub fn new() -> Self {
        // SAFETY: the layout is not empty.
        let memory = unsafe { System.alloc(LAYOUT) };
        #[allow(clippy::cast_ptr_alignment)] // the layout aligns it
        let Some(slots) = NonNull::new(memory.cast::<[Slot; SLOTS]>()) else {
            handle_alloc_error(LAYOUT)
        };
        for i in 0..SLOTS {
            // SAFETY: place `i` is inside the allocation, aligned by the layout, and not a value yet.
            unsafe { slots.cast::<Slot>().add(i).write(Slot::new()) };
        }
        Self(slots)
    }
}

impl Deref for Slots {
    type Target = [Slot; SLOTS];

    #[inline(always)]
    fn deref(&self) -> &[Slot; SLOTS] {
        // SAFETY: all slots were written by `new` and live until `drop`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the slots are values, nobody refers to them any more, and their memory came from
        // this allocator with this layout.
        unsafe {
            self.0.drop_in_place();
            System.dealloc(self.0.as_ptr().cast(), LAYOUT);
        }
    }
}
