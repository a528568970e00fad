//! The helper thread of one driver: file operations as system calls that block, one after the
//! other. It starts with the first operation and ends with the driver.
//!
//! ```text
//! worker                                  thread "files"
//!   submit  ---> queue (mutex, condvar) --->  calls::run
//!   take_completed  <--- mailbox  <---------  post; wakes the worker if it sleeps
//! ```
//!
//! A driver that ends does not wait for a call which the thread is in: the thread owns everything
//! that the call uses, and ends after it. Calls which it has not begun are dropped.

use super::calls::{self, SystemFile};
use super::raw::{RawDone, RawOp};
use crate::mailbox::{Mailbox, MailboxSender, Waker};
use crate::poller::Wait;
use crate::process::spawn_helper;
use base::sync::{Arc, Condvar, Mutex, MutexGuard};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The name of the thread.
pub const THREAD: &str = "files";

type Done = RawDone<SystemFile>;

/// The worker's end.
pub struct FileThread {
    queue: Arc<Queue>,
    completed: Mailbox<Done>,
    is_started: bool,
    /// Submitted calls whose completions were not taken.
    in_flight: usize,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u32, RawOp<SystemFile>)>,
    /// The driver is gone.
    is_over: bool,
}

impl FileThread {
    /// No thread yet. `waker` wakes the worker from the wait that [`FileThread::before_wait`]
    /// announces.
    pub fn new(waker: Box<dyn Waker>) -> Self {
        let (queue, completed) = (Arc::default(), Mailbox::new(waker));
        Self { queue, completed, is_started: false, in_flight: 0 }
    }

    /// Hands a call to the thread. If the system has no thread for it, it fails with the system's
    /// error.
    pub fn submit(&mut self, number: u32, op: RawOp<SystemFile>) {
        self.in_flight += 1;
        if let Err(error) = self.start() {
            let result = Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN));
            self.completed.sender().post(RawDone { number, buffer: Vec::new(), result });
            return;
        }
        self.queue.state().waiting.push_back((number, op));
        self.queue.changed.notify_one();
    }

    fn start(&mut self) -> std::io::Result<()> {
        if !self.is_started {
            let (queue, completed) = (Arc::clone(&self.queue), self.completed.sender());
            spawn_helper(THREAD, move || queue.serve(&completed))?;
            self.is_started = true;
        }
        Ok(())
    }

    /// The wait that a poll may make: none if a completion is there.
    #[inline]
    pub fn before_wait(&self, wait: Wait) -> Wait {
        if self.in_flight == 0 || wait == Wait::NoWait || self.completed.prepare_sleep() {
            wait
        } else {
            Wait::NoWait
        }
    }

    /// The wait is over. True if a completion is there.
    #[inline]
    pub fn after_wait(&self) -> bool {
        self.in_flight > 0 && {
            self.completed.awake();
            !self.completed.is_empty()
        }
    }

    /// Appends what has completed.
    pub fn take_completed(&mut self, into: &mut Vec<Done>) {
        let mut completed = VecDeque::new();
        self.completed.take_all(&mut completed);
        self.in_flight -= completed.len();
        into.extend(completed);
    }
}

impl Drop for FileThread {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.is_over = true;
        state.waiting.clear();
        drop(state);
        self.queue.changed.notify_one();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the queue is held")
    }

    /// The thread: runs calls until the driver is gone.
    fn serve(&self, completed: &MailboxSender<Done>) {
        while let Some((number, op)) = self.next() {
            // The worker waits for a completion in any case.
            let run = catch_unwind(AssertUnwindSafe(|| calls::run(op)));
            let (buffer, result) = run.unwrap_or_else(|_| (Vec::new(), Err(Errno::IO)));
            completed.post(RawDone { number, buffer, result });
        }
    }

    fn next(&self) -> Option<(u32, RawOp<SystemFile>)> {
        let mut state = self.state();
        while !state.is_over {
            if let Some(call) = state.waiting.pop_front() {
                return Some(call);
            }
            state = self.changed.wait(state).expect("no panic while the queue is held");
        }
        None
    }
}
