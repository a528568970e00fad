//! The state that callers and the two threads share: the ledger, the present connection, and how
//! the producer ends.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ingest::v2::{Fault, Reader, ServerFrame, write_bye, write_flush};

use crate::ledger::Ledger;
use crate::{Error, ServerError};

/// Why a connection ended.
#[derive(Debug)]
pub enum End {
    /// The producer may reconnect.
    Lost(String),
    /// The producer ends.
    Failed(Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The state of the Bye frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bye {
    /// Not requested.
    No,
    /// Sent when everything is acknowledged.
    Wanted,
    /// Sent.
    Said,
}

/// Guarded by the mutex of [`Shared`].
#[derive(Debug)]
pub struct State {
    /// Messages and numbers.
    pub ledger: Ledger,
    /// How often a server sent Welcome.
    pub connections: u64,
    /// What ended the producer.
    pub failure: Option<Error>,
    /// Why the last connection ended.
    pub lost: String,
    /// The number up to which a caller waits.
    pub flush: u64,
    /// The producer ends: it does not reconnect.
    pub stopping: bool,
    /// The state of the Bye frame.
    pub bye: Bye,
    /// The present connection, to be shut down by [`State::hang_up`].
    pub stream: Option<Arc<TcpStream>>,
    /// The server has sent Welcome on it.
    pub greeted: bool,
    /// Nothing more is read from it.
    pub broken: bool,
    /// When bytes were read from it, or when it began to owe acknowledgements.
    pub last_progress: Instant,
    /// The number up to which a Flush was sent on it.
    flushed: u64,
    /// The writing thread sleeps and must be woken.
    asleep: bool,
}

impl State {
    fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            connections: 0,
            failure: None,
            lost: String::new(),
            flush: 0,
            stopping: false,
            bye: Bye::No,
            stream: None,
            greeted: false,
            broken: false,
            last_progress: Instant::now(),
            flushed: 0,
            asleep: false,
        }
    }

    /// Begins a new TCP connection.
    pub fn connected(&mut self, stream: Arc<TcpStream>) {
        self.stream = Some(stream);
        (self.greeted, self.broken, self.flushed) = (false, false, 0);
        self.last_progress = Instant::now();
    }

    /// Shuts the connection down, which ends reading and writing.
    pub fn hang_up(&self) {
        if let Some(stream) = &self.stream {
            // It fails only if the connection has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The error for callers when the producer has ended.
    pub fn check(&self) -> Result<(), Error> {
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None if self.stopping || self.bye != Bye::No => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Appends the frames to send next; false if there are none.
    fn output(&mut self, out: &mut Vec<u8>) -> bool {
        let owed = self.ledger.is_owed();
        if self.ledger.next_frame(out) {
            if !owed {
                self.last_progress = Instant::now(); // from now on it owes an acknowledgement
            }
            return true;
        }
        let (acknowledged, last) = (self.ledger.acknowledged(), self.ledger.last());
        if self.ledger.is_all_framed() && self.flush > acknowledged.max(self.flushed) {
            self.flushed = last;
            write_flush(out);
        } else if self.bye == Bye::Wanted && acknowledged == last {
            self.bye = Bye::Said;
            write_bye(out);
        }
        !out.is_empty()
    }

    fn on_frame(&mut self, frame: ServerFrame<'_>) -> Result<(), End> {
        match frame {
            ServerFrame::Error { code, id, text } => {
                let text = String::from_utf8_lossy(text).into_owned();
                let again = match Fault::from_code(code) {
                    Some(Fault::Shutdown | Fault::Idle) => true,
                    Some(Fault::Limit) => self.connections > 0, // our previous connection may still count
                    _ => false,
                };
                return Err(if again {
                    End::Lost(text)
                } else {
                    Error::Server(ServerError { code, id, text }).into()
                });
            }
            ServerFrame::Welcome(welcome) if !self.greeted => {
                self.ledger.begin(&welcome, self.connections == 0)?;
                self.greeted = true;
                self.connections += 1;
            }
            ServerFrame::Ack(ack) if self.greeted => self.ledger.ack(ack.id, ack.durable)?,
            ServerFrame::Credit(limit) if self.greeted => self.ledger.grant(limit),
            _ => return Err(Error::Protocol("an unexpected frame").into()),
        }
        Ok(())
    }
}

/// One producer.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// Callers wait here for room, acknowledgements and the end.
    changed: Condvar,
    /// The writing thread waits here for something to do.
    work: Condvar,
}

impl Shared {
    /// A producer without a connection.
    pub fn new(ledger: Ledger) -> Self {
        Self {
            state: Mutex::new(State::new(ledger)),
            changed: Condvar::new(),
            work: Condvar::new(),
        }
    }

    /// The state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this mutex leaves a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the writing thread if it waits.
    pub fn wake(&self, state: &mut State) {
        if std::mem::take(&mut state.asleep) {
            self.work.notify_one();
        }
    }

    /// Wakes callers.
    pub fn notify_callers(&self) {
        self.changed.notify_all();
    }

    /// Waits until `reached`, no longer than `limit`; false if it is not.
    pub fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit: Duration,
        mut reached: impl FnMut(&State) -> bool,
    ) -> Result<(MutexGuard<'a, State>, bool), Error> {
        // A limit that an Instant cannot represent is no limit.
        let until = Instant::now().checked_add(limit);
        while !reached(&state) {
            state.check()?;
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Ok((state, false)),
                Some(left) => left,
                None => Duration::from_secs(3600),
            };
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok((state, true))
    }

    /// Waits until the producer has ended, no longer than `limit`.
    pub fn wait_end(&self, state: MutexGuard<'_, State>, limit: Duration) {
        let is_running = |state: &mut State| !state.stopping;
        drop(self.changed.wait_timeout_while(state, limit, is_running));
    }

    /// The writing thread waits until it is woken, no longer than `limit`.
    pub fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        state.asleep = true;
        let mut state = match limit {
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.work.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.asleep = false;
        state
    }

    /// Waits for frames to send and appends them. False if this connection can send no more.
    pub fn next_output(&self, out: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        loop {
            if state.broken || state.stopping {
                return false;
            }
            if state.output(out) {
                return true;
            }
            state = self.sleep(state, None);
        }
    }

    /// Handles bytes that were read.
    pub fn on_input(&self, reader: &mut Reader, mut input: &[u8]) -> Result<(), End> {
        let mut state = self.lock();
        state.last_progress = Instant::now();
        let mut result = Ok(());
        while let Some(frame) = reader.next(&mut input) {
            result = frame
                .map_err(|fault| Error::Protocol(fault.text()).into())
                .and_then(|frame| state.on_frame(frame));
            if result.is_err() {
                break;
            }
        }
        self.wake(&mut state);
        self.notify_callers();
        result
    }
}
