//! Freeing large values in the background.
//!
//! A value of more than [`NODES_MAX`] allocations that leaves the keyspace goes to the queue of the
//! [`Reclaimer`], whose thread frees it ([`Reclaimer::serve`]). While no thread serves, and when
//! [`PENDING_BYTES_MAX`] wait already, the worker frees the value itself, after its locks.

use base::Blob;
use base::sync::hint::{AtomicI64, AtomicU64, Ordering};
use base::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use value::Big;

/// A value of at most so many allocations is freed where it is dropped.
pub(crate) const NODES_MAX: usize = 64;
/// The most bytes that wait to be freed; a worker that would exceed them frees its value itself.
const PENDING_BYTES_MAX: i64 = 1 << 30;

/// Where values of many parts are freed.
#[derive(Debug, Default)]
pub struct Reclaimer {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Bytes of what waits.
    bytes: AtomicI64,
    /// Values that wait or are being freed.
    pending: AtomicI64,
    /// Values that were freed.
    freed: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    values: VecDeque<Garbage>,
    /// A thread takes from it.
    is_served: bool,
    is_closed: bool,
}

/// Something else with many allocations that the reclaimer can free.
pub trait Parts: Send + 'static {
    /// Its approximate size in bytes.
    fn memory(&self) -> usize;
}

/// What waits to be freed.
enum Garbage {
    Value(Big),
    String(Blob),
    Parts(Box<dyn Parts>),
}

impl std::fmt::Debug for Garbage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.memory())
    }
}

impl Garbage {
    fn memory(&self) -> usize {
        match self {
            Self::Value(value) => value.memory(),
            Self::String(string) => string.capacity(),
            Self::Parts(parts) => parts.memory(),
        }
    }

    /// How many values of keys it counts as.
    fn values(&self) -> u64 {
        matches!(self, Self::Value(_) | Self::String(_)).into()
    }
}

impl Reclaimer {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic while the queue is held")
    }

    /// Frees a value, now or soon. A reference which is not the last one is dropped at once:
    /// whoever gives up parts of the value gives them up for good then.
    pub fn reclaim(&self, mut value: Big) {
        if value.node_count() > NODES_MAX {
            if value.release_if_shared() {
                self.freed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            self.queue_or_free(Garbage::Value(value));
        }
    }

    /// Frees a string, as [`Reclaimer::reclaim`].
    pub fn reclaim_string(&self, string: Blob) {
        if string.page_count() > NODES_MAX {
            match string.drop_if_shared() {
                Some(last) => self.queue_or_free(Garbage::String(last)),
                None => _ = self.freed.fetch_add(1, Ordering::Relaxed),
            }
        }
    }

    /// Frees something else with many allocations, now or soon.
    pub fn reclaim_parts(&self, parts: Box<dyn Parts>) {
        self.queue_or_free(Garbage::Parts(parts));
    }

    #[cold]
    fn queue_or_free(&self, value: Garbage) {
        let bytes = value.memory() as i64;
        let mut queue = self.queue();
        let has_room = self.bytes.load(Ordering::Relaxed) + bytes <= PENDING_BYTES_MAX;
        if !queue.is_served || queue.is_closed || !has_room {
            drop(queue);
            self.freed.fetch_add(value.values(), Ordering::Relaxed);
            drop(value);
            return;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.pending.fetch_add(1, Ordering::Relaxed);
        queue.values.push_back(value);
        drop(queue);
        self.wake.notify_one();
    }

    /// Frees what is queued until [`Reclaimer::close`]; the body of the reclaimer's thread.
    pub fn serve(&self) {
        let mut queue = self.queue();
        queue.is_served = true;
        loop {
            if let Some(value) = queue.values.pop_front() {
                drop(queue);
                let (bytes, values) = (value.memory() as i64, value.values());
                drop(value);
                self.bytes.fetch_sub(bytes, Ordering::Relaxed);
                self.freed.fetch_add(values, Ordering::Relaxed);
                self.pending.fetch_sub(1, Ordering::Relaxed);
                queue = self.queue();
            } else if queue.is_closed {
                return;
            } else {
                queue = self.wake.wait(queue).expect("no panic while the queue is held");
            }
        }
    }

    /// Makes [`Reclaimer::serve`] return when the queue is empty.
    pub fn close(&self) {
        self.queue().is_closed = true;
        self.wake.notify_all();
    }

    /// Values that wait or are being freed.
    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed).max(0) as u64
    }

    /// Bytes of what waits or is being freed.
    pub fn pending_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Counts values of a flush, whose tables are freed in steps.
    pub fn count_freed(&self, values: u64) {
        self.freed.fetch_add(values, Ordering::Relaxed);
    }

    /// Values of many parts that were freed so far, and those of flushes in the background.
    pub fn freed(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }
}

/// A snapshot of a value, or a new value, that is used without its guard. When it is dropped, the
/// reclaimer frees what nobody else refers to.
#[derive(Debug)]
pub struct Captured {
    value: Option<Big>,
    to: Arc<Reclaimer>,
}

impl Captured {
    pub(crate) fn new(value: Big, to: Arc<Reclaimer>) -> Self {
        Self { value: Some(value), to }
    }

    /// The value, to change: for one that is being built.
    pub fn value_mut(&mut self) -> &mut Big {
        self.value.as_mut().expect("a value until the end")
    }

    /// The value, which its new owner frees.
    pub fn into_value(mut self) -> Big {
        self.value.take().expect("a value until the end")
    }
}

impl std::ops::Deref for Captured {
    type Target = Big;

    fn deref(&self) -> &Big {
        self.value.as_ref().expect("a value until the end")
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.to.reclaim(value);
        }
    }
}

/// Something with many allocations that a command builds in steps. When it is dropped, the
/// reclaimer frees it.
#[derive(Debug)]
pub struct ReclaimOnDrop<T: Parts> {
    value: Option<Box<T>>,
    to: Arc<Reclaimer>,
}

impl<T: Parts> ReclaimOnDrop<T> {
    pub(crate) fn new(value: T, to: Arc<Reclaimer>) -> Self {
        Self { value: Some(Box::new(value)), to }
    }

    /// The contents, which the caller frees.
    pub fn into_inner(mut self) -> T {
        *self.value.take().expect("it is there until the end")
    }
}

impl<T: Parts> std::ops::Deref for ReclaimOnDrop<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is there until the end")
    }
}

impl<T: Parts> std::ops::DerefMut for ReclaimOnDrop<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is there until the end")
    }
}

impl<T: Parts> Drop for ReclaimOnDrop<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.to.queue_or_free(Garbage::Parts(value));
        }
    }
}
