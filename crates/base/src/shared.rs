//! A counted reference without weak ones; it links the nodes of big collections.
//!
//! ```text
//! count usize | value
//! ```
//! Compared with `Arc` it saves a word per value, and the test whether a value is shared is one
//! plain load instead of a locked instruction: without weak references, a count of one cannot rise
//! while its only holder looks at it.
#![allow(unsafe_code)]

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// Counts above this are a leak of references: the process ends before the count can wrap.
const COUNT_MAX: usize = isize::MAX as usize;

/// A reference to a value that is freed with the last one.
pub struct Shared<T> {
    at: NonNull<Counted<T>>,
    owns: PhantomData<Counted<T>>,
}

struct Counted<T> {
    count: AtomicUsize,
    value: T,
}

/// Bytes in front of the value.
pub const COUNT_BYTES: usize = size_of::<usize>();

thread_local! {
    /// See [`take_copied`].
    static COPIED: Cell<u64> = const { Cell::new(0) };
    /// See [`take_returned`].
    static RETURNED: Cell<u64> = const { Cell::new(0) };
    /// See [`set_copy_epoch`].
    static EPOCH: Cell<u32> = const { Cell::new(0) };
}

/// Bytes which this thread has copied, since the last call, because somebody else refers to the
/// value that it was about to change: what it costs that a snapshot or a reader holds old values.
#[must_use]
pub fn take_copied() -> u64 {
    COPIED.take()
}

/// Adds to [`take_copied`]: for who replaces what is shared without [`Shared::make_mut`].
#[cold]
pub fn note_copied(bytes: usize) {
    COPIED.set(COPIED.get() + bytes as u64);
}

/// Begins to count for another purpose, which has this number: a new snapshot, or 0 if there is
/// none. What was copied in one epoch is not returned in another one.
pub fn set_copy_epoch(epoch: u32) {
    EPOCH.set(epoch);
}

/// The epoch of this thread.
#[must_use]
pub fn copy_epoch() -> u32 {
    EPOCH.get()
}

/// Of the bytes that were copied in this epoch, those which this thread has freed since the last
/// call, because what they had been copied from is not shared any more.
#[must_use]
pub fn take_returned() -> u64 {
    RETURNED.take()
}

/// Adds to [`take_returned`], if the bytes were copied in this epoch.
#[cold]
pub fn note_returned(bytes: usize, epoch: u32) {
    if epoch == copy_epoch() {
        RETURNED.set(RETURNED.get() + bytes as u64);
    }
}

// SAFETY: as for `Arc`: the value is reached from every thread that has a reference, so it must be
// `Sync`, and dropped on the thread of the last one, so it must be `Send`. The count is atomic.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above: a `&Shared<T>` gives a `&T` and, cloned, a `Shared<T>`.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The first reference to a value.
    #[inline]
    pub fn new(value: T) -> Self {
        let counted = Box::new(Counted { count: AtomicUsize::new(1), value });
        Self { at: NonNull::from(Box::leak(counted)), owns: PhantomData }
    }

    #[inline]
    fn counted(&self) -> &Counted<T> {
        // SAFETY: `at` came from a leaked box, which is freed only when the last reference is
        // dropped; this is one.
        unsafe { self.at.as_ref() }
    }

    /// Where the allocation begins, for prefetching.
    #[inline]
    pub fn address(&self) -> usize {
        self.at.as_ptr().addr()
    }

    /// True if there is another reference to the value. `false` is reliable: only the caller could
    /// create another reference.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // Acquire: all accesses of other holders before they dropped their references are visible.
        self.counted().count.load(Ordering::Acquire) != 1
    }

    /// The value, to change; `None` if it is shared.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if self.is_shared() {
            return None;
        }
        // SAFETY: this is the only reference: the count is 1, only a holder of a reference can
        // raise it, and the only one is borrowed mutably as long as the result lives. Its former
        // holders' reads have happened (Acquire above, Release in `drop`).
        Some(unsafe { &mut self.at.as_mut().value })
    }

    /// Drops this reference, unless it is the last one, which is returned: so this never frees the
    /// value, whatever other holders do at the same time.
    pub fn drop_if_shared(self) -> Option<Self> {
        let count = &self.counted().count;
        let mut now = count.load(Ordering::Relaxed);
        while now > 1 {
            // Release: as in `drop`.
            match count.compare_exchange_weak(now, now - 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => {
                    std::mem::forget(self);
                    return None;
                }
                Err(other) => now = other,
            }
        }
        Some(self)
    }
}

impl<T: Clone> Shared<T> {
    /// The value, to change: a copy of its own if it was shared. `heap` says how many bytes a copy
    /// takes besides the value itself.
    #[inline]
    pub fn make_mut(&mut self, heap: impl FnOnce(&T) -> usize) -> &mut T {
        if self.is_shared() {
            self.copy(heap);
        }
        self.get_mut().expect("it is not shared any more")
    }

    #[cold]
    fn copy(&mut self, heap: impl FnOnce(&T) -> usize) {
        *self = Self::new(T::clone(self));
        note_copied(size_of::<Counted<T>>() + heap(self));
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: the new reference comes from one that keeps the value alive.
        if self.counted().count.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
        Self { at: self.at, owns: PhantomData }
    }
}

impl<T> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        // The only holder needs no locked instruction: no other thread reads the count.
        if self.is_shared() {
            if self.counted().count.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        self.free();
    }
}

impl<T> Shared<T> {
    /// Frees the value: the end of the last reference, and of `drop`. Not inlined: the callers of
    /// `drop` on the hot path have no such value in most cases.
    #[inline(never)]
    fn free(&mut self) {
        // SAFETY: `at` came from `Box::leak` in `new`, and only `drop` calls this, for the last
        // reference: the count was 1 while we hold one (nobody can have cloned it), or our
        // subtraction has made it 0, which happens once. All uses by others happened before their
        // Release, which the Acquire load or fence has seen.
        drop(unsafe { Box::from_raw(self.at.as_ptr()) });
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{Arc, thread};

    #[test]
    fn make_mut_copies_only_a_shared_value() {
        let heap = |bytes: &Vec<u8>| bytes.len();
        let mut one = Shared::new(vec![1]);
        let at = one.address();
        one.make_mut(heap).push(2);
        assert_eq!((one.address(), take_copied()), (at, 0));
        let two = one.clone();
        assert!(one.is_shared() && one.get_mut().is_none());
        one.make_mut(heap).push(3);
        assert_eq!((take_copied(), take_copied()), (8 + 24 + 2, 0), "count, vector, two bytes");
        assert_eq!((&*one, &*two), (&vec![1, 2, 3], &vec![1, 2]));
        assert!(!one.is_shared() && !two.is_shared());
        assert_eq!(two.address(), at);
    }

    #[test]
    fn the_value_is_dropped_once_with_its_last_reference() {
        let counter = Arc::new(());
        let one = Shared::new(Arc::clone(&counter));
        let two = one.clone();
        drop(one);
        assert_eq!(Arc::strong_count(&counter), 2);
        drop(two);
        assert_eq!(Arc::strong_count(&counter), 1);
    }

    /// Of holders which all drop their references in this way, exactly one gets the last one back.
    #[test]
    fn the_last_reference_comes_back() {
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        let counter = Arc::new(());
        for _ in 0..rounds {
            let one = Shared::new(Arc::clone(&counter));
            let others = [one.clone(), one.clone()];
            let threads = others.map(|own| thread::spawn(move || own.drop_if_shared()));
            let mut last: Vec<_> = one.drop_if_shared().into_iter().collect();
            last.extend(threads.into_iter().filter_map(|thread| thread.join().expect("no panic")));
            assert_eq!((last.len(), Arc::strong_count(&counter)), (1, 2));
            assert!(!last[0].is_shared());
            drop(last);
            assert_eq!(Arc::strong_count(&counter), 1);
        }
    }

    /// Threads clone, read, change copies and drop concurrently. Under Miri this is the data-race
    /// check.
    #[test]
    fn many_threads_share_one_value() {
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        let counter = Arc::new(());
        let shared = Shared::new((vec![7_u64; 4], Arc::clone(&counter)));
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let mut own = shared.clone();
                thread::spawn(move || {
                    for _ in 0..rounds {
                        let other = own.clone();
                        own.make_mut(|value| value.0.len() * 8).0[0] += n;
                        assert_eq!(other.0[1], 7);
                        drop(other);
                    }
                    own.0[0]
                })
            })
            .collect();
        for (n, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().ok(), Some(7 + (n as u64) * rounds));
        }
        assert!(!shared.is_shared() && shared.0[0] == 7);
        drop(shared);
        assert_eq!(Arc::strong_count(&counter), 1);
    }
}
