//! Messages between workers: many senders, one receiver; posting never blocks and never fails.
//!
//! A short lock guards the queue; a counter lets the receiver look without it. The receiver says that it is about
//! to sleep *before* it looks a last time; a sender pushes *before* it looks whether the receiver sleeps.
//! One of the two sees the other (both are sequentially consistent), so no wake-up is lost. Only a sleeping
//! receiver costs its sender a system call.

use base::sync::Arc;
use base::sync::Mutex;
use base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::fmt;

/// Wakes a sleeping worker.
pub trait Waker: Send + Sync + 'static {
    /// Makes the worker's wait return.
    fn wake(&self);
}

struct Inner<M> {
    queue: Mutex<VecDeque<M>>,
    len: AtomicUsize,
    sleeping: AtomicBool,
    waker: Box<dyn Waker>,
}

/// The receiving end.
pub struct Mailbox<M> {
    inner: Arc<Inner<M>>,
}

/// A sending end; clones post to the same mailbox.
pub struct MailboxSender<M> {
    inner: Arc<Inner<M>>,
}

impl<M> Clone for MailboxSender<M> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<M> fmt::Debug for MailboxSender<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MailboxSender")
    }
}

impl<M> fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailbox")
    }
}

impl<M> Mailbox<M> {
    /// An empty mailbox whose sleeping owner is woken by `waker`.
    pub fn new(waker: Box<dyn Waker>) -> Self {
        let inner = Inner {
            queue: Mutex::new(VecDeque::new()),
            len: AtomicUsize::new(0),
            sleeping: AtomicBool::new(false),
            waker,
        };
        Self { inner: Arc::new(inner) }
    }

    /// A sending end.
    pub fn sender(&self) -> MailboxSender<M> {
        MailboxSender { inner: self.inner.clone() }
    }

    /// True if nothing waits; one load of a line that senders write rarely.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inner.len.load(Ordering::SeqCst) == 0
    }

    /// The oldest message.
    pub fn take(&mut self) -> Option<M> {
        if self.is_empty() {
            return None;
        }
        let message = self.inner.queue.lock().expect("nothing panics under this lock").pop_front();
        if message.is_some() {
            self.inner.len.fetch_sub(1, Ordering::SeqCst);
        }
        message
    }

    /// Announces sleep; `false` if a message is there already and sleep must not happen.
    pub fn prepare_sleep(&self) -> bool {
        self.inner.sleeping.store(true, Ordering::SeqCst);
        if self.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// Sleep is over.
    pub fn awake(&self) {
        self.inner.sleeping.store(false, Ordering::SeqCst);
    }
}

impl<M> MailboxSender<M> {
    /// Posts a message and wakes the receiver if it sleeps.
    pub fn post(&self, message: M) {
        self.inner.queue.lock().expect("nothing panics under this lock").push_back(message);
        self.inner.len.fetch_add(1, Ordering::SeqCst);
        if self.inner.sleeping.swap(false, Ordering::SeqCst) {
            self.inner.waker.wake();
        }
    }
}
