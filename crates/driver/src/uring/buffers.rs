//! Provided buffers: memory that the kernel receives into, one group for all connections of a ring.
//!
//! ```text
//! one mapping
//! +------------------------------+--------------+--------------+- - -+----------------+
//! | 256 descriptors, 4 KiB       | buffer 0     | buffer 1     |     | buffer 255     |
//! +------------------------------+--------------+--------------+- - -+----------------+
//!   ring, shared with the kernel   each STRIDE = 20 KiB: 16 KiB, beginning at another
//!                                  cache line of its first page than its neighbours
//!   descriptor, 16 bytes
//!   0            8         12       14
//!   +------------+---------+--------+------+
//!   | address    | length  | number | tail |   the tail: only that of descriptor 0 is used
//!   +------------+---------+--------+------+   (io_uring_setup_buf_ring(3))
//!
//! a buffer is
//!   provided   in the descriptors [head, tail): the kernel may receive into it
//!      |  a receive completes: `mark_filled`
//!      v
//!   filled     the driver's: in the list of a connection, in order of arrival
//!      |       filled[number] = (bytes, next buffer of the connection, or NONE)
//!      |  all its bytes were read: `release`
//!      +---> provided again, or withheld if there are more than `wanted`
//!   withheld   nobody's; its memory is returned to the system
//! ```
//!
//! The kernel uses provided buffers in turn, so a small load on many buffers would find each one
//! cold in the cache. So there are 16 at first (`wanted`). When a receive finds none, or more than
//! half are filled, their number doubles, up to 256. When 4,096 turns never had a quarter of them
//! filled, it is halved. Buffers begin at different lines of their pages because at the same line
//! they would compete for the same set of the first cache. Pages get memory when a receive first
//! writes to them.
#![allow(unsafe_code)]

use io_uring::types::BufRingEntry;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering::Release};

/// The most buffers of one ring.
pub const BUFFERS: usize = 256;
/// The number of buffers at first, and at least.
pub const BUFFERS_MIN: usize = 16;
/// After so many turns a half of the buffers that was not needed is withheld.
const TURNS: u32 = 4096;
/// Bytes of one: several hundred small commands, or a quarter of what a turn receives.
pub const BUFFER_BYTES: usize = 16 << 10;

/// The end of a list of buffers.
pub const NONE: u16 = u16::MAX;

const RING_BYTES: usize = (BUFFERS * size_of::<BufRingEntry>()).next_multiple_of(4096);
/// From one buffer to the next: a page more than a buffer, which may begin at any line of the
/// first.
const STRIDE: usize = BUFFER_BYTES + PAGE;
const PAGE: usize = 4096;
const LINE: usize = 64;
const MAP_BYTES: usize = RING_BYTES + BUFFERS * STRIDE;
const _: () = assert!(BUFFERS.is_power_of_two() && BUFFERS < NONE as usize);
const _: () = assert!(size_of::<BufRingEntry>() == 16 && RING_BYTES == 4096);

/// The buffers.
pub struct Buffers {
    base: NonNull<u8>,
    tail: u16,
    /// For each buffer: the bytes received into it, and the next buffer of the same connection.
    filled: Vec<(u32, u16)>,
    /// Filled buffers.
    filled_count: usize,
    /// Withheld buffers.
    withheld: Vec<u16>,
    /// How many are to be provided or filled; more may be until they are released.
    wanted: usize,
    /// The most that were filled at the beginning of a turn, since `turns` was 0.
    filled_max: usize,
    turns: u32,
}

// SAFETY: the mapping is reached through this value alone, and by the kernel, which does not care
// which thread asks.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Maps the memory and provides the first buffers.
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
            filled_count: 0,
            withheld: (0..BUFFERS as u16).rev().collect(),
            wanted: 0,
            filled_max: 0,
            turns: 0,
        };
        buffers.add(BUFFERS_MIN);
        Ok(buffers)
    }

    /// Where the ring of descriptors begins.
    pub fn ring_address(&self) -> u64 {
        self.base.as_ptr().addr() as u64
    }

    /// Filled buffers.
    #[cfg(test)]
    fn filled_count(&self) -> usize {
        self.filled_count
    }

    /// True if more than half of the buffers are filled.
    pub fn is_crowded(&self) -> bool {
        self.filled_count > self.wanted / 2
    }

    /// Doubles the number of buffers; false if all are in use.
    pub fn add_more(&mut self) -> bool {
        self.add(self.wanted)
    }

    fn add(&mut self, count: usize) -> bool {
        let count = count.min(BUFFERS - self.wanted);
        self.wanted += count;
        for _ in 0..count {
            // Fewer, if some that were to be withheld are not released yet: they stay.
            let Some(number) = self.withheld.pop() else { break };
            self.provide(number);
        }
        (self.turns, self.filled_max) = (0, 0);
        count > 0
    }

    /// Called at the beginning of each turn. Halves `wanted` if that many were not needed.
    #[inline]
    pub fn begin_turn(&mut self) {
        self.filled_max = self.filled_max.max(self.filled_count);
        self.turns += 1;
        if self.turns >= TURNS {
            if self.wanted > BUFFERS_MIN && self.filled_max < self.wanted / 4 {
                self.wanted /= 2;
            }
            (self.turns, self.filled_max) = (0, 0);
        }
    }

    /// The kernel has received `len` bytes into a buffer, which is the driver's until its release.
    #[inline]
    pub fn mark_filled(&mut self, number: u16, len: usize) {
        assert!(len <= BUFFER_BYTES, "the kernel writes no more than there is room");
        self.filled[number as usize] = (len as u32, NONE);
        self.filled_count += 1;
    }

    /// The bytes of a filled buffer.
    #[inline]
    pub fn bytes(&self, number: u16) -> &[u8] {
        let (len, _) = self.filled[number as usize];
        let at = place(number);
        // SAFETY: the index above checked `number`, so `at..at + len` lies in its stride of the
        // mapping (`mark_filled` bounds `len`); anonymous memory is initialised. The kernel writes
        // only to provided buffers: not to this one before `release`, which needs `&mut self` and
        // so ends this borrow.
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

    /// Provides a filled buffer again, or withholds it if there are enough.
    #[inline]
    pub fn release(&mut self, number: u16) {
        assert!((number as usize) < BUFFERS && self.filled_count > 0, "it was taken");
        self.filled_count -= 1;
        if BUFFERS - self.withheld.len() > self.wanted {
            return self.withhold(number);
        }
        self.provide(number);
    }

    #[cold]
    fn withhold(&mut self, number: u16) {
        let at = RING_BYTES + number as usize * STRIDE;
        // SAFETY: the buffer's pages lie in the mapping and hold nothing else. The kernel was not
        // given this buffer since it was filled, and nobody borrows its bytes: that needs a borrow
        // of `self`. Their content is not needed any more.
        let _ =
            unsafe { madvise(self.base.as_ptr().add(at).cast(), STRIDE, Advice::LinuxDontNeed) };
        self.withheld.push(number);
    }

    #[inline]
    fn provide(&mut self, number: u16) {
        let at = place(number);
        let entries: *mut BufRingEntry = self.base.as_ptr().cast();
        // SAFETY: the masked index lies in the descriptors at the mapping's start, which are
        // page-aligned and plain integers. The kernel does not look at a descriptor at or behind
        // the tail, and this one is at it: at most BUFFERS are between head and tail, since a
        // buffer comes here only after it was filled or withheld. Only three fields are written, so
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

/// The offset of a buffer in the mapping: each begins at another line of its first page.
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
    fn filled_buffers_are_linked_into_lists() {
        let mut buffers = Buffers::new().expect("memory");
        assert_eq!(buffers.filled_count(), 0);
        buffers.mark_filled(3, 5);
        buffers.mark_filled(9, BUFFER_BYTES);
        assert_eq!((buffers.filled_count(), buffers.next(3)), (2, NONE));
        buffers.link(3, 9);
        assert_eq!((buffers.next(3), buffers.next(9)), (9, NONE));
        assert_eq!((buffers.bytes(3), buffers.bytes(9).len()), (&[0; 5][..], BUFFER_BYTES));
        buffers.release(3);
        buffers.release(9);
        assert_eq!(buffers.filled_count(), 0);
    }

    /// The kernel fills these buffers, and they are released.
    fn pass(buffers: &mut Buffers, numbers: std::ops::Range<u16>) {
        for number in numbers.clone() {
            buffers.mark_filled(number, 1);
        }
        numbers.for_each(|number| buffers.release(number));
    }

    #[test]
    fn the_number_of_buffers_grows_and_shrinks_with_demand() {
        let mut buffers = Buffers::new().expect("memory");
        assert_eq!(buffers.withheld.len(), BUFFERS - BUFFERS_MIN);
        for has in [2, 4, 8, 16] {
            assert!(buffers.add_more());
            assert_eq!(BUFFERS - buffers.withheld.len(), has * BUFFERS_MIN);
        }
        assert!(!buffers.add_more(), "that was all");
        for _ in 0..TURNS {
            buffers.begin_turn();
        }
        // Buffers are withheld as they are released.
        assert_eq!(buffers.withheld.len(), 0);
        pass(&mut buffers, 0..BUFFERS as u16);
        assert_eq!(buffers.withheld.len(), BUFFERS / 2);
        // Buffers in use are not withheld.
        let held = BUFFERS as u16 / 8;
        let last = BUFFERS as u16 / 2;
        (last..last + held).for_each(|number| buffers.mark_filled(number, 1));
        for _ in 0..TURNS {
            buffers.begin_turn();
        }
        (last..last + held).for_each(|number| buffers.release(number));
        assert_eq!(buffers.withheld.len(), BUFFERS / 2);
        assert!(buffers.add_more() && buffers.withheld.is_empty());
    }

    #[test]
    fn buffers_do_not_overlap_in_their_mapping() {
        for number in 0..BUFFERS as u16 {
            let (from, to) = (place(number), place(number) + BUFFER_BYTES);
            let stride = RING_BYTES + number as usize * STRIDE;
            assert!(from >= stride && to <= stride + STRIDE && to <= MAP_BYTES);
        }
        assert_ne!(place(1) % PAGE, place(0) % PAGE);
    }

    #[test]
    #[should_panic(expected = "it was taken")]
    fn a_buffer_released_twice_panics() {
        let mut buffers = Buffers::new().expect("memory");
        buffers.mark_filled(1, 1);
        buffers.release(1);
        buffers.release(1);
    }
}
