//! A reserved range of addresses. The system provides memory when a page is first touched, and
//! parts of it can be returned while the addresses stay reserved. It is unmapped only when it is
//! dropped.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// The size of a huge page, and the alignment of a range.
pub(crate) const HUGE_PAGE: usize = 2 << 20;
/// The least range worth starting with.
const BYTES_MIN: usize = 64 << 20;

/// Physical memory of the machine in bytes, rounded up to a power of two and clamped to what is
/// worth reserving.
pub(crate) fn machine_bytes() -> usize {
    let info = rustix::system::sysinfo();
    let physical = info.totalram as usize * info.mem_unit as usize;
    physical.max(BYTES_MIN).next_power_of_two()
}

/// Reserved addresses, readable and writable; memory that was never written is zero.
pub(crate) struct Range {
    base: NonNull<u8>,
    bytes: usize,
    #[cfg(not(miri))]
    mapped: (NonNull<u8>, usize),
}

// SAFETY: it is an address and a length; users of the memory synchronise their accesses.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

#[cfg(not(miri))]
impl Range {
    /// Reserves `bytes` (a power of two), or a half, a quarter and so on where the system refuses.
    /// It is aligned to a huge page.
    pub fn reserve(mut bytes: usize) -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        assert!(bytes.is_power_of_two());
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        loop {
            let whole = bytes + HUGE_PAGE;
            // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing.
            match unsafe { mmap_anonymous(std::ptr::null_mut(), whole, access, flags) } {
                Ok(start) => {
                    let start = NonNull::new(start.cast()).expect("mmap does not return null");
                    // SAFETY: the offset is less than a huge page, by which the mapping is longer.
                    let base = unsafe { start.add(start.align_offset(HUGE_PAGE)) };
                    return Self { base, bytes, mapped: (start, whole) };
                }
                Err(error) => {
                    assert!(bytes > BYTES_MIN, "no address space for the data: {error}");
                    bytes /= 2;
                }
            }
        }
    }

    /// Asks for huge pages from `offset` on, and for small ones before it. A failure only costs
    /// speed.
    pub fn prefer_huge_from(&self, offset: usize) {
        let advise = |from: usize, to: usize, advice| {
            if from < to {
                // SAFETY: the part is inside the mapping, which is ours; the advice changes no
                // byte.
                let _ = unsafe {
                    rustix::mm::madvise(self.base.add(from).as_ptr().cast(), to - from, advice)
                };
            }
        };
        let offset = offset.min(self.bytes);
        advise(0, offset, rustix::mm::Advice::LinuxNoHugepage);
        advise(offset, self.bytes, rustix::mm::Advice::LinuxHugepage);
    }

    /// Returns the memory of a part to the system; it reads as zeros afterwards.
    ///
    /// # Safety
    /// The part holds no data, and no other thread accesses it during the call.
    pub unsafe fn discard(&self, offset: usize, len: usize) {
        assert!(offset + len <= self.bytes, "inside the range");
        // SAFETY: inside the mapping and not in use, as the caller guarantees. If the system
        // refuses, the bytes keep their values, on which no caller relies.
        let _ = unsafe {
            let start = self.base.add(offset).as_ptr().cast();
            rustix::mm::madvise(start, len, rustix::mm::Advice::LinuxDontNeed)
        };
    }
}

/// Without `mmap`: a small range from the allocator.
#[cfg(miri)]
impl Range {
    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes, HUGE_PAGE).expect("a small range")
    }

    pub fn reserve(bytes: usize) -> Self {
        let bytes = bytes.min(2 * HUGE_PAGE);
        // SAFETY: the layout is not empty.
        let base = unsafe { std::alloc::alloc_zeroed(Self::layout(bytes)) };
        Self { base: NonNull::new(base).expect("memory"), bytes }
    }

    pub fn prefer_huge_from(&self, _offset: usize) {}

    /// # Safety
    /// The part holds no data, and no other thread accesses it during the call.
    pub unsafe fn discard(&self, offset: usize, len: usize) {
        assert!(offset + len <= self.bytes, "inside the range");
        // SAFETY: inside the range and not in use, as the caller guarantees.
        unsafe { self.base.add(offset).write_bytes(0, len) };
    }
}

impl Range {
    /// The first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        #[cfg(not(miri))]
        // SAFETY: the mapping was made with this start and length, and nothing refers to it any
        // more: whatever does borrows the owner of the range.
        let _ = unsafe { rustix::mm::munmap(self.mapped.0.as_ptr().cast(), self.mapped.1) };
        #[cfg(miri)]
        // SAFETY: allocated with this layout; as above.
        unsafe {
            std::alloc::dealloc(self.base.as_ptr(), Self::layout(self.bytes));
        }
    }
}
