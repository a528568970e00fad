//! Provided buffers: memory that the kernel receives into, for all connections of a ring.
//!
//! One mapping: a ring of 16-byte descriptors (address, length, number; its tail in the first one's
//! last two bytes, as io_uring_setup_buf_ring(3) draws it), then the buffers. The kernel takes
//! buffers from the head, the driver gives them back at the tail. Pages are touched first when a
//! receive writes to them, so an idle driver holds the descriptors alone. What a connection has
//! received is a list of buffers in order of arrival, linked through `next`: no allocation per
//! receive.
//!
//! The kernel takes them in turns, so all that it has are written to, however few connections there
//! are: a small load would walk through megabytes and find each buffer cold. So it has few at first
//! and gets as many again when it found none; what was not needed for a while is withheld again,
//! and its memory given back. Buffers begin at different lines of their pages: at the same one they
//! would push each other out of the first cache.
#![allow(unsafe_code)]

use io_uring::types::BufRingEntry;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering::Release};

/// Buffers of one ring at most.
pub const BUFFERS: usize = 256;
/// Those that the kernel has at first, and at least.
pub const BUFFERS_MIN: usize = 16;
/// After so many looks at what was needed, what was not is withheld.
const LOOKS: u32 = 4096;
/// Bytes of one: several hundred small commands, or a quarter of what a turn receives.
pub const BUFFER_BYTES: usize = 16 << 10;

/// The end of a list.
pub const NONE: u16 = u16::MAX;

const RING_BYTES: usize = (BUFFERS * size_of::<BufRingEntry>()).next_multiple_of(4096);
/// From one buffer to the next: a page more, to begin anywhere in the first.
const STRIDE: usize = BUFFER_BYTES + PAGE;
const PAGE: usize = 4096;
const LINE: usize = 64;
const MAP_BYTES: usize = RING_BYTES + BUFFERS * STRIDE;
const _: () = assert!(BUFFERS.is_power_of_two() && BUFFERS < NONE as usize);

/// The buffers.
pub struct Buffers {
    base: NonNull<u8>,
    tail: u16,
    /// Bytes received into each, and the next one of the same connection.
    filled: Vec<(u32, u16)>,
    held: usize,
    /// Buffers that the kernel does not get.
    withheld: Vec<u16>,
    /// How many the kernel and the driver's lists have together, or shall have as soon as enough
    /// came back.
    used: usize,
    /// The most that were held at a look since `looks` was 0.
    held_max: usize,
    looks: u32,
}

// SAFETY: the mapping is reached through this value alone, and by the kernel, which does not care
// which thread asks.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Maps the memory and hands every buffer to the (not yet registered) ring.
    pub fn new() -> Result<Self, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), MAP_BYTES, access, flags) }?;
        // A huge page would make the first receive cost 2 MiB. Where there are none, the advice
        // fails and is not needed. SAFETY: this advice changes no content, and the range is the
        // mapping just made.
        let _ = unsafe { madvise(base, MAP_BYTES, Advice::LinuxNoHugepage) };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        let mut buffers = Self {
            base,
            tail: 0,
            filled: vec![(0, NONE); BUFFERS],
            held: 0,
            withheld: (0..BUFFERS as u16).rev().collect(),
            used: 0,
            held_max: 0,
            looks: 0,
        };
        buffers.add(BUFFERS_MIN);
        Ok(buffers)
    }

    /// Where the ring of descriptors begins.
    pub fn ring_address(&self) -> u64 {
        self.base.as_ptr().addr() as u64
    }

    /// Buffers that were received into and not given back.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.held
    }

    /// True if so many are held that soon none is left.
    pub fn is_crowded(&self) -> bool {
        self.held > self.used / 2
    }

    /// Gives the kernel as many again as there are in use; false if it has all.
    pub fn add_more(&mut self) -> bool {
        self.add(self.used)
    }

    fn add(&mut self, count: usize) -> bool {
        let count = count.min(BUFFERS - self.used);
        self.used += count;
        for _ in 0..count {
            // Fewer, if some that were to be withheld are still held: those simply stay.
            let Some(number) = self.withheld.pop() else { break };
            self.hand_over(number);
        }
        (self.looks, self.held_max) = (0, 0);
        count > 0
    }

    /// A turn begins. Now and then a half that was not needed is withheld.
    #[inline]
    pub fn look(&mut self) {
        self.held_max = self.held_max.max(self.held);
        self.looks += 1;
        if self.looks >= LOOKS {
            if self.used > BUFFERS_MIN && self.held_max < self.used / 4 {
                self.used /= 2;
            }
            (self.looks, self.held_max) = (0, 0);
        }
    }

    /// The kernel received `len` bytes into a buffer: it is the driver's until it is given back.
    #[inline]
    pub fn take(&mut self, number: u16, len: usize) {
        assert!(len <= BUFFER_BYTES, "the kernel writes no more than there is room");
        self.filled[number as usize] = (len as u32, NONE);
        self.held += 1;
    }

    /// What was received into a buffer that was taken.
    #[inline]
    pub fn bytes(&self, number: u16) -> &[u8] {
        let (len, _) = self.filled[number as usize];
        let at = place(number);
        // SAFETY: the index above checked `number`, so `at..at + len` lies in its stride of the
        // mapping (`take` bounds `len`); anonymous memory is initialised. The kernel writes only to
        // buffers that it was given: not to this one before `give_back`, which needs `&mut self`
        // and so ends this borrow.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), len as usize) }
    }

    /// The buffer behind this one in its list.
    #[inline]
    pub fn next(&self, number: u16) -> u16 {
        self.filled[number as usize].1
    }

    /// Puts `number` behind `before` in its list.
    #[inline]
    pub fn link(&mut self, before: u16, number: u16) {
        self.filled[before as usize].1 = number;
    }

    /// The kernel may receive into this buffer again, unless it has enough.
    #[inline]
    pub fn give_back(&mut self, number: u16) {
        assert!((number as usize) < BUFFERS && self.held > 0, "it was taken");
        self.held -= 1;
        if BUFFERS - self.withheld.len() > self.used {
            return self.withhold(number);
        }
        self.hand_over(number);
    }

    #[cold]
    fn withhold(&mut self, number: u16) {
        let at = RING_BYTES + number as usize * STRIDE;
        // SAFETY: the buffer's pages lie in the mapping and hold nothing else. The kernel was not
        // given this buffer since it was taken, and nobody borrows its bytes: that needs a borrow
        // of `self`. Their content is not needed any more.
        let _ =
            unsafe { madvise(self.base.as_ptr().add(at).cast(), STRIDE, Advice::LinuxDontNeed) };
        self.withheld.push(number);
    }

    #[inline]
    fn hand_over(&mut self, number: u16) {
        let at = place(number);
        let entries: *mut BufRingEntry = self.base.as_ptr().cast();
        // SAFETY: the masked index lies in the descriptors at the mapping's start, which are
        // page-aligned and plain integers. The kernel does not look at a descriptor at or behind
        // the tail, and this one is at it: at most BUFFERS are between head and tail, since a
        // buffer comes here only after it was taken or withheld. Only three fields are written, so
        // the tail in the first descriptor stays.
        unsafe {
            let entry = &mut *entries.add(self.tail as usize & (BUFFERS - 1));
            entry.set_addr(self.base.as_ptr().add(at).addr() as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(number);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `entries` is the ring's first descriptor. Its last two bytes are the tail:
        // aligned, written by this driver alone and read by the kernel, so atomic access is right.
        unsafe {
            let tail = AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut());
            tail.store(self.tail, Release);
        }
    }
}

/// Where a buffer begins in the mapping: each at another line of its first page.
#[inline]
const fn place(number: u16) -> usize {
    let number = number as usize;
    RING_BYTES + number * STRIDE + number % (PAGE / LINE) * LINE
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`. The ring that received into it was closed before:
        // `Ring` drops it first.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), MAP_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_link_what_was_taken() {
        let mut buffers = Buffers::new().expect("memory");
        assert_eq!(buffers.held(), 0);
        buffers.take(3, 5);
        buffers.take(9, BUFFER_BYTES);
        assert_eq!((buffers.held(), buffers.next(3)), (2, NONE));
        buffers.link(3, 9);
        assert_eq!((buffers.next(3), buffers.next(9)), (9, NONE));
        assert_eq!((buffers.bytes(3), buffers.bytes(9).len()), (&[0; 5][..], BUFFER_BYTES));
        buffers.give_back(3);
        buffers.give_back(9);
        assert_eq!(buffers.held(), 0);
    }

    /// The kernel has `n` more of them, and they come back.
    fn pass(buffers: &mut Buffers, numbers: std::ops::Range<u16>) {
        for number in numbers.clone() {
            buffers.take(number, 1);
        }
        numbers.for_each(|number| buffers.give_back(number));
    }

    #[test]
    fn there_are_more_when_they_are_needed_and_fewer_when_not() {
        let mut buffers = Buffers::new().expect("memory");
        assert_eq!(buffers.withheld.len(), BUFFERS - BUFFERS_MIN);
        for has in [2, 4, 8, 16] {
            assert!(buffers.add_more());
            assert_eq!(BUFFERS - buffers.withheld.len(), has * BUFFERS_MIN);
        }
        assert!(!buffers.add_more(), "that was all");
        for _ in 0..LOOKS {
            buffers.look();
        }
        // It withholds as they come back.
        assert_eq!(buffers.withheld.len(), 0);
        pass(&mut buffers, 0..BUFFERS as u16);
        assert_eq!(buffers.withheld.len(), BUFFERS / 2);
        // What is needed stays.
        let held = BUFFERS as u16 / 8;
        let last = BUFFERS as u16 / 2;
        (last..last + held).for_each(|number| buffers.take(number, 1));
        for _ in 0..LOOKS {
            buffers.look();
        }
        (last..last + held).for_each(|number| buffers.give_back(number));
        assert_eq!(buffers.withheld.len(), BUFFERS / 2);
        assert!(buffers.add_more() && buffers.withheld.is_empty());
    }

    #[test]
    fn buffers_lie_apart_in_their_mapping() {
        for number in 0..BUFFERS as u16 {
            let (from, to) = (place(number), place(number) + BUFFER_BYTES);
            let stride = RING_BYTES + number as usize * STRIDE;
            assert!(from >= stride && to <= stride + STRIDE && to <= MAP_BYTES);
        }
        assert_ne!(place(1) % PAGE, place(0) % PAGE);
    }

    #[test]
    #[should_panic(expected = "it was taken")]
    fn a_buffer_comes_back_once() {
        let mut buffers = Buffers::new().expect("memory");
        buffers.take(1, 1);
        buffers.give_back(1);
        buffers.give_back(1);
    }
}
