//! The interface of a producer.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::ledger::{Bounds, Ledger};
use crate::state::{Bye, Shared};
use crate::{Error, Options, link};

/// A producer of one key. Dropping it ends it at once: messages that are not acknowledged by then
/// may or may not be in the key.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    timeout: Duration,
    attempt_timeout: Duration,
}

impl Producer {
    /// Connects and waits for the Welcome. Numbers continue behind those that the server holds
    /// ([`Self::acknowledged`]).
    pub fn connect(options: Options) -> Result<Self, Error> {
        let hellos = [options.hello(options.resume)?, options.hello(true)?];
        let bounds = Bounds {
            bytes: options.buffer_bytes,
            messages: options.buffer_messages,
            frame_bytes: options.frame_bytes,
        };
        let shared = Arc::new(Shared::new(Ledger::new(bounds)));
        let (timeout, attempt_timeout) = (options.timeout, options.attempt_timeout);
        let producer = Self { shared: Arc::clone(&shared), timeout, attempt_timeout };
        let connect_timeout = options.connect_timeout;
        thread::Builder::new()
            .name("sheafdb-producer".into())
            .spawn(move || link::run(&shared, &options, &hellos))
            .map_err(|error| Error::Thread(error.to_string()))?;
        producer.until(connect_timeout, |connections, _| connections > 0)?;
        Ok(producer)
    }

    /// Accepts a message and returns its number. Waits while too much is unacknowledged;
    /// [`Error::WouldBlock`] if that takes longer than [`Options::timeout`].
    pub fn send(&self, payload: &[u8]) -> Result<u64, Error> {
        self.send_within(payload, self.timeout)
    }

    /// As [`Self::send`], without waiting.
    pub fn try_send(&self, payload: &[u8]) -> Result<u64, Error> {
        self.send_within(payload, Duration::ZERO)
    }

    /// The same with a limit of its own.
    pub fn send_within(&self, payload: &[u8], limit: Duration) -> Result<u64, Error> {
        let size = payload.len();
        let state = self.shared.lock();
        state.check()?;
        let (mut state, room) = self.shared.wait(state, limit, |state| {
            size > state.ledger.message_max() || state.ledger.has_room(size)
        })?;
        let max = state.ledger.message_max();
        if size > max {
            return Err(Error::TooLarge { size, max });
        }
        if !room {
            return Err(Error::WouldBlock);
        }
        let id = state.ledger.add(payload)?;
        self.shared.wake(&mut state);
        Ok(id)
    }

    /// Waits until all messages so far are acknowledged, and returns the number of the last one.
    pub fn flush(&self) -> Result<u64, Error> {
        self.flush_within(self.timeout)
    }

    /// The same with a limit of its own.
    pub fn flush_within(&self, limit: Duration) -> Result<u64, Error> {
        let goal = {
            let mut state = self.shared.lock();
            state.flush = state.ledger.last();
            self.shared.wake(&mut state);
            state.flush
        };
        self.until(limit, |_, acknowledged| acknowledged >= goal)?;
        Ok(goal)
    }

    /// Waits until all messages are acknowledged, sends Bye and ends. After an error, too, the
    /// producer is closed: [`Self::unacknowledged`] returns what is left.
    pub fn close(&self) -> Result<(), Error> {
        self.close_within(self.timeout)
    }

    /// The same with a limit of its own.
    pub fn close_within(&self, limit: Duration) -> Result<(), Error> {
        let flushed = self.flush_within(limit);
        if flushed.is_ok() {
            let mut state = self.shared.lock();
            if state.failure.is_none() && !state.stopping {
                state.bye = Bye::Wanted;
                self.shared.wake(&mut state);
                // Everything is acknowledged, so the Bye may fail.
                self.shared.wait_end(state, self.attempt_timeout);
            }
        }
        self.stop();
        flushed.map(|_| ())
    }

    /// The error that has ended the producer, if one has.
    pub fn check(&self) -> Result<(), Error> {
        self.shared.lock().check()
    }

    /// The number of the last message.
    pub fn last(&self) -> u64 {
        self.shared.lock().ledger.last()
    }

    /// Everything up to this number is in the key.
    pub fn acknowledged(&self) -> u64 {
        self.shared.lock().ledger.acknowledged()
    }

    /// Everything up to this number is fsynced.
    pub fn durable(&self) -> u64 {
        self.shared.lock().ledger.durable()
    }

    /// How often the producer has reconnected.
    pub fn reconnects(&self) -> u64 {
        self.shared.lock().connections.saturating_sub(1)
    }

    /// The unacknowledged messages with their numbers: for a new producer, after an error.
    pub fn unacknowledged(&self) -> Vec<(u64, Vec<u8>)> {
        let state = self.shared.lock();
        state.ledger.unacknowledged().map(|(id, payload)| (id, payload.to_vec())).collect()
    }

    /// Waits until `reached` is true of the connections so far and the acknowledged number.
    fn until(&self, limit: Duration, reached: impl Fn(u64, u64) -> bool) -> Result<(), Error> {
        let (state, done) = self.shared.wait(self.shared.lock(), limit, |state| {
            reached(state.connections, state.ledger.acknowledged())
        })?;
        if done { Ok(()) } else { Err(Error::Timeout(state.lost.clone())) }
    }

    fn stop(&self) {
        let mut state = self.shared.lock();
        state.stopping = true;
        state.hang_up();
        self.shared.wake(&mut state);
        self.shared.notify_callers();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.stop();
    }
}
