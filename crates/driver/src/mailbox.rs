//! Messages between workers: many senders, one receiver. Posting never blocks and never fails.
//!
//! ```text
//! senders: post                                      receiver: take_all
//!    |  node.below = top; compare-and-swap              |  swap top with null: all nodes at once
//!    v                                                  v
//!   top ---> [ m3 | below ]---> [ m2 | below ]---> [ m1 | below ]---> null
//!             newest                                 oldest
//!                            the receiver reverses them: m1, m2, m3
//!
//! sender                     receiver
//!   push the node              sleeping = true        (prepare_sleep)
//!   read `sleeping`            read `top`
//!   true: clear it and wake    not null: do not sleep
//! ```
//!
//! Nodes are never popped one by one from the shared stack, so there is no ABA problem. The four
//! steps on the left and right are sequentially consistent: either the sender sees that the
//! receiver sleeps, or the receiver sees the node. So no wake-up is lost, and only a sleeping
//! receiver costs its sender a system call.
//!
//! A turn handles the messages that its wait took; later ones wait for the next turn. The mailbox
//! has no bound, because a message must not be lost under a slot's lock: senders that produce many
//! messages have bounds of their own.

#![allow(unsafe_code)]

use base::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};
use base::sync::{Arc, CachePadded};
use std::collections::VecDeque;
use std::fmt;
use std::ptr;

/// Wakes a sleeping worker.
pub trait Waker: Send + Sync + 'static {
    /// Makes the worker's wait return, now or when it begins.
    fn wake(&self);
}

struct Node<M> {
    below: *mut Node<M>,
    message: M,
}

struct Shared<M> {
    /// Written by every sender, so alone on its cache line.
    top: CachePadded<AtomicPtr<Node<M>>>,
    sleeping: CachePadded<AtomicBool>,
    waker: Box<dyn Waker>,
}

// SAFETY: the stack owns its nodes, which hold messages only; they move from thread to thread by
// value, which `M: Send` allows. No reference to a message is ever shared.
unsafe impl<M: Send> Send for Shared<M> {}
// SAFETY: as above; everything else in it is atomic or `Sync` itself.
unsafe impl<M: Send> Sync for Shared<M> {}

impl<M> Shared<M> {
    fn push(&self, message: M) {
        let mut top = self.top.load(SeqCst);
        let node = Box::into_raw(Box::new(Node { below: top, message }));
        while let Err(now) = self.top.compare_exchange_weak(top, node, SeqCst, SeqCst) {
            top = now;
            // SAFETY: `node` came from `Box::into_raw` above and is not published: it is ours
            // alone.
            unsafe { (*node).below = top };
        }
    }

    fn take_all(&self, into: &mut VecDeque<M>) {
        let mut node = self.top.swap(ptr::null_mut(), SeqCst);
        let first = into.len();
        while !node.is_null() {
            // SAFETY: every node was made by `Box::into_raw` and published once. The swap took the
            // whole stack from everybody, so each of its nodes is reached here once and by nobody
            // else.
            let taken = unsafe { Box::from_raw(node) };
            node = taken.below;
            into.push_back(taken.message);
        }
        into.make_contiguous()[first..].reverse();
    }
}

impl<M> Drop for Shared<M> {
    fn drop(&mut self) {
        self.take_all(&mut VecDeque::new());
    }
}

/// The receiving end.
pub struct Mailbox<M> {
    shared: Arc<Shared<M>>,
}

/// A sending end; clones post to the same mailbox.
pub struct MailboxSender<M> {
    shared: Arc<Shared<M>>,
}

impl<M> Clone for MailboxSender<M> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
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
        let top = CachePadded(AtomicPtr::new(ptr::null_mut()));
        let sleeping = CachePadded(AtomicBool::new(false));
        Self { shared: Arc::new(Shared { top, sleeping, waker }) }
    }

    /// A sending end.
    pub fn sender(&self) -> MailboxSender<M> {
        MailboxSender { shared: self.shared.clone() }
    }

    /// True if nothing waits; one load of a line that senders write rarely.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shared.top.load(SeqCst).is_null()
    }

    /// Appends all messages, oldest first.
    #[inline]
    pub fn take_all(&mut self, into: &mut VecDeque<M>) {
        if !self.is_empty() {
            self.shared.take_all(into);
        }
    }

    /// Announces sleep. False if a message is there: the receiver must not sleep.
    pub fn prepare_sleep(&self) -> bool {
        self.shared.sleeping.store(true, SeqCst);
        if self.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// Sleep is over.
    pub fn awake(&self) {
        self.shared.sleeping.store(false, SeqCst);
    }
}

impl<M> MailboxSender<M> {
    /// Posts a message and wakes the receiver if it sleeps.
    pub fn post(&self, message: M) {
        self.shared.push(message);
        if self.shared.sleeping.load(SeqCst) && self.shared.sleeping.swap(false, SeqCst) {
            self.shared.waker.wake();
        }
    }
}

/// Runs with threads here, and on many schedules under `--cfg shuttle`.
#[cfg(test)]
mod shuttle_tests {
    use super::*;
    use base::sync::{Condvar, Mutex, thread};

    /// An eventfd: a flag which stays set until a wait consumes it.
    #[derive(Default)]
    struct Bell {
        rung: Mutex<bool>,
        heard: Condvar,
    }

    impl Bell {
        fn wait(&self) {
            let mut rung = self.rung.lock().expect("nobody panics with it");
            while !*rung {
                rung = self.heard.wait(rung).expect("nobody panics with it");
            }
            *rung = false;
        }
    }

    struct Ring(Arc<Bell>);

    impl Waker for Ring {
        fn wake(&self) {
            *self.0.rung.lock().expect("nobody panics with it") = true;
            self.0.heard.notify_one();
        }
    }

    const SENDERS: u32 = 2;
    const EACH: u32 = 2;

    /// Two senders, and a receiver which sleeps by the given protocol until it has received
    /// everything.
    fn exchange(prepare_sleep: fn(&Mailbox<(u32, u32)>) -> bool) {
        let bell = Arc::new(Bell::default());
        let mut mailbox = Mailbox::new(Box::new(Ring(bell.clone())));
        let senders: Vec<_> = (0..SENDERS)
            .map(|who| {
                let sender = mailbox.sender();
                thread::spawn(move || (0..EACH).for_each(|n| sender.post((who, n))))
            })
            .collect();
        let mut got = VecDeque::new();
        loop {
            mailbox.take_all(&mut got);
            if got.len() == (SENDERS * EACH) as usize {
                break;
            }
            if prepare_sleep(&mailbox) {
                bell.wait();
                mailbox.awake();
            }
        }
        for sender in senders {
            sender.join().expect("a sender does not panic");
        }
        for who in 0..SENDERS {
            let of_one: Vec<u32> = got.iter().filter(|m| m.0 == who).map(|m| m.1).collect();
            assert_eq!(of_one, (0..EACH).collect::<Vec<_>>(), "in the order of sending");
        }
    }

    fn check(body: fn()) {
        #[cfg(not(shuttle))]
        (0..200).for_each(|_| body());
        #[cfg(shuttle)]
        shuttle::check_random(body, 5_000);
    }

    #[test]
    fn no_message_and_no_wake_is_lost() {
        check(|| exchange(Mailbox::prepare_sleep));
    }

    /// A receiver which checks the queue before it announces its sleep loses wakes. The model must
    /// find that.
    #[cfg(shuttle)]
    #[test]
    #[should_panic(expected = "deadlock")]
    fn the_model_finds_a_check_before_the_announcement() {
        check(|| {
            exchange(|mailbox| {
                let empty = mailbox.is_empty();
                mailbox.shared.sleeping.store(true, SeqCst);
                if !empty {
                    mailbox.awake();
                }
                empty
            });
        });
    }

    /// A sender which checks for a sleeper before it has pushed loses wakes, too.
    #[cfg(shuttle)]
    #[test]
    #[should_panic(expected = "deadlock")]
    fn the_model_finds_a_sender_which_checks_before_its_push() {
        check(|| {
            let bell = Arc::new(Bell::default());
            let mailbox = Mailbox::new(Box::new(Ring(bell.clone())));
            let sender = mailbox.sender();
            let posting = thread::spawn(move || {
                let asleep = sender.shared.sleeping.swap(false, SeqCst);
                sender.shared.push(1);
                if asleep {
                    sender.shared.waker.wake();
                }
            });
            if mailbox.prepare_sleep() {
                bell.wait();
            }
            posting.join().expect("the sender does not panic");
        });
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use base::sync::atomic::AtomicUsize;

    struct Count(Arc<AtomicUsize>);

    impl Waker for Count {
        fn wake(&self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn counted() -> (Mailbox<Arc<()>>, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        (Mailbox::new(Box::new(Count(wakes.clone()))), wakes)
    }

    #[test]
    fn only_a_sleeping_receiver_is_woken_and_only_once() {
        let (mailbox, wakes) = counted();
        let sender = mailbox.sender();
        sender.post(Arc::default());
        assert_eq!(wakes.load(SeqCst), 0);
        assert!(!mailbox.prepare_sleep(), "there is a message");
        sender.post(Arc::default());
        assert_eq!(wakes.load(SeqCst), 0, "it did not go to sleep");
        let (mailbox, wakes) = counted();
        assert!(mailbox.prepare_sleep());
        mailbox.sender().post(Arc::default());
        mailbox.sender().post(Arc::default());
        assert_eq!(wakes.load(SeqCst), 1);
    }

    #[test]
    fn untaken_messages_are_freed_with_the_mailbox() {
        let (mailbox, _) = counted();
        let message = Arc::new(());
        for _ in 0..3 {
            mailbox.sender().post(message.clone());
        }
        assert_eq!(Arc::strong_count(&message), 4);
        drop(mailbox);
        assert_eq!(Arc::strong_count(&message), 1);
    }

    #[test]
    fn take_all_appends_messages_in_order() {
        let mut mailbox = Mailbox::new(Box::new(Count(Arc::default())));
        let mut got = VecDeque::from([0]);
        mailbox.sender().post(1);
        mailbox.sender().post(2);
        mailbox.take_all(&mut got);
        assert_eq!(got, [0, 1, 2]);
    }
}
