//! The buffers between the thread that walks and the worker that writes: a bounded number is under
//! way. The thread waits for a buffer; the worker never waits.

use base::sync::atomic::AtomicU64;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Bytes of the file that are written at a time.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;
/// What a new buffer takes. A large value makes it longer, which is not counted.
const NEW_BYTES: usize = BUFFER_BYTES + BUFFER_BYTES / 8;
/// Buffers which are filled and not written yet, at most.
pub(crate) const BUFFERS_MAX: usize = 4;
/// A buffer which a large value has made longer than this is freed instead of being filled again.
const KEPT_BYTES_MAX: usize = 2 * BUFFER_BYTES;

/// What the thread that walks has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Wait for the moment.
    Wait,
    /// Write.
    #[default]
    Write,
    /// Nobody wants the file any more: end the walk without writing.
    Abort,
    /// The server ends: leave everything as it is.
    Quit,
}

/// Shared by the thread and the worker.
#[derive(Default)]
pub(crate) struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes of the buffers of all pipes of the server.
    memory: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    /// Buffers that were sent and did not come back.
    under_way: usize,
    free: Vec<Vec<u8>>,
    /// Buffers that were made and are not freed.
    made: u64,
    order: Order,
}

impl Pipe {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the buffers are held")
    }

    /// A pipe whose thread waits for its first order.
    pub(crate) fn waiting(memory: &Arc<AtomicU64>) -> Self {
        let mut pipe = Self::default();
        pipe.memory = Arc::clone(memory);
        pipe.state().order = Order::Wait;
        pipe
    }

    /// Waits for the first order.
    pub(crate) fn first_order(&self) -> Order {
        let mut state = self.state();
        while state.order == Order::Wait {
            state = self.changed.wait(state).expect("no panic while the buffers are held");
        }
        state.order
    }

    /// What the thread has to do.
    pub(crate) fn order(&self) -> Order {
        self.state().order
    }

    /// Tells the thread what to do. An order to quit stays.
    pub(crate) fn give_order(&self, order: Order) {
        let mut state = self.state();
        if state.order != Order::Quit {
            state.order = order;
        }
        self.changed.notify_all();
    }

    /// The thread is about to send a buffer. Waits until few enough are under way, and returns an
    /// empty one to go on with; `None` if nothing is to be written any more.
    pub(crate) fn send(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        while state.order == Order::Write && state.under_way >= BUFFERS_MAX {
            state = self.changed.wait(state).expect("no panic while the buffers are held");
        }
        if state.order != Order::Write {
            return None;
        }
        state.under_way += 1;
        let free = state.free.pop();
        Some(free.unwrap_or_else(|| {
            state.made += 1;
            self.memory.fetch_add(NEW_BYTES as u64, Relaxed);
            Vec::with_capacity(NEW_BYTES)
        }))
    }

    /// The worker returns a buffer.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        let mut state = self.state();
        state.under_way -= 1;
        if buffer.capacity() <= KEPT_BYTES_MAX && state.free.len() < BUFFERS_MAX {
            buffer.clear();
            state.free.push(buffer);
        } else if state.made > 0 {
            // (The first one that the thread fills was not made here.)
            state.made -= 1;
            self.memory.fetch_sub(NEW_BYTES as u64, Relaxed);
        }
        self.changed.notify_all();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Ok(state) = self.state.get_mut() {
            self.memory.fetch_sub(state.made * NEW_BYTES as u64, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_buffers_is_under_way() {
        let pipe = Pipe::default();
        for _ in 0..BUFFERS_MAX {
            pipe.send().expect("it writes");
        }
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| pipe.send().expect("it writes").capacity());
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!waiter.is_finished(), "one more than the bound");
            pipe.give_back(Vec::with_capacity(7));
            assert_eq!(waiter.join().expect("no panic"), 7, "it gets what came back");
            let waiter = scope.spawn(|| pipe.send());
            pipe.give_order(Order::Abort);
            assert_eq!(waiter.join().expect("no panic"), None);
        });
        pipe.give_order(Order::Quit);
        pipe.give_order(Order::Abort);
        assert_eq!(pipe.order(), Order::Quit);
        for len in [0, KEPT_BYTES_MAX + 1] {
            pipe.give_back(Vec::with_capacity(len));
        }
        assert_eq!(pipe.state().free.len(), 1, "a large buffer is freed");
    }

    #[test]
    fn buffers_count_until_they_are_freed() {
        let memory = Arc::default();
        let pipe = Pipe::waiting(&memory);
        pipe.give_order(Order::Write);
        let buffers = [pipe.send(), pipe.send()].map(|buffer| buffer.expect("it writes"));
        assert_eq!(memory.load(Relaxed), 2 * NEW_BYTES as u64);
        for buffer in buffers {
            pipe.give_back(buffer);
        }
        assert_eq!(memory.load(Relaxed), 2 * NEW_BYTES as u64, "they are kept");
        pipe.send().expect("it writes");
        pipe.give_back(Vec::with_capacity(KEPT_BYTES_MAX + 1));
        assert_eq!(memory.load(Relaxed), NEW_BYTES as u64, "a large one is freed");
        drop(pipe);
        assert_eq!(memory.load(Relaxed), 0);
    }
}
