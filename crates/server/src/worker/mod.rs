//! A worker: one thread, one event loop, its own connections, and the whole keyspace. The same code
//! runs on every driver.
//!
//! | part of a turn | file |
//! |---|---|
//! | wait for events, or until something is due | here, `timers`, `tasks` |
//! | retry what was put off | `background` |
//! | frame what has arrived into the window | `framing`, `recent` |
//! | execute the window whenever it is full | here, then `crate::execute` |
//! | send every session's replies at once, count their requests | `sending`, `service` |
//! | ingest connections: deadlines, messages that wait for memory | `crate::ingest::events` |
//! | start operations on files, pass their outcomes on | `files` |
//! | sessions whose share of the time is used up go on, one in a turn | `quotas` |
//! | a client of a busy worker moves to an idle one | `load`, `moving` |
//! | one step of everything that goes on in steps | `background`, `expiry`, `releases`, `retry` |
//!
//! How it ends is in `ending`. What a worker keeps is parted by how long it lives: `core`.

pub mod background;
pub(crate) mod batch;
pub mod core;
pub(crate) mod ending;
pub mod expiry;
pub(crate) mod files;
pub(crate) mod framing;
pub mod left;
pub mod load;
pub(crate) mod memory;
pub mod message;
pub mod moving;
pub(crate) mod quotas;
pub(crate) mod recent;
pub mod releases;
pub mod retry;
pub(crate) mod sending;
pub(crate) mod service;
pub(crate) mod shutdown;
pub mod tasks;
pub(crate) mod tending;
pub mod timers;
pub mod turn;
pub(crate) mod warm;

use crate::execute::gates::closed;
use crate::execute::window::Window;
use crate::ingest::connection::Ingest;
use crate::sessions::output::ARENA_FLUSH_BYTES;
use crate::shared::{PanicAt, Shared};
use crate::worker::batch::After;
use crate::worker::core::Core;
use base::sync::Arc;
use driver::{ConnId, Driver, Event, ListenerId};
use keyspace::Access;
use message::Message;

/// A worker on a driver. Aligned so that no two workers share a cache line.
#[repr(align(128))]
pub struct Worker<D: Driver<Message = Message>> {
    pub(crate) driver: D,
    pub(crate) access: Access,
    pub(crate) core: Core,
    pub(crate) window: Window,
    /// Connections that are no sessions.
    pub(crate) ingest: Ingest,
    /// The spin that the driver was told.
    pub(crate) busy_poll_us: u32,
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// A worker; `listeners` are the ones it accepts on (the acceptor has them all, the others
    /// none).
    pub fn new(mut driver: D, shared: Arc<Shared>, id: usize, listeners: Vec<ListenerId>) -> Self {
        let mut access = Access::new(shared.keyspace.clone(), id);
        let core = Core::new(&mut driver, shared, id, listeners);
        access.tell_events_to(core.key_events.clone());
        let busy_poll_us = core.settings.busy_poll_us;
        let ingest = Ingest::default();
        let mut worker = Self { driver, access, core, window: Window::new(), ingest, busy_poll_us };
        worker.begin_loading();
        worker
    }

    /// Turns until shutdown.
    pub fn run(mut self) {
        self.driver.refresh_now(); // the start is no turn
        while !self.is_done() {
            self.turn();
        }
    }

    /// True when the worker has ended.
    pub fn is_done(&self) -> bool {
        self.core.shutdown.is_done
    }

    /// The driver, for tests that play the network.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    /// One turn of the loop.
    pub fn turn(&mut self) {
        self.wait();
        self.core.wake_journal();
        self.run_retries();
        self.handle_events();
        self.deliver_due();
        self.flush(); // before anything that a client would have to wait for
        self.sweep_ingest();
        self.background();
        self.deliver_due();
        self.flush();
    }

    /// Waits for events, or until something is due, and begins the turn.
    fn wait(&mut self) {
        let mut until = self.ingest.next_wake(self.core.next_wake());
        if !self.core.quotas.is_idle() {
            until = self.continue_left(until);
        }
        self.driver.wait(until);
        self.core.begin_turn(self.driver.now(), self.driver.unix_ms());
        if self.core.gates & closed::ARMED != 0
            && self.core.disarm(|at| at == PanicAt::Turn).is_some()
        {
            panic!("a panic was asked for, outside of any command");
        }
        if self.core.settings.busy_poll_us != self.busy_poll_us {
            self.busy_poll_us = self.core.settings.busy_poll_us;
            self.driver.set_busy_poll_us(self.busy_poll_us);
        }
    }

    /// Frames what has arrived, and executes it.
    fn handle_events(&mut self) {
        while let Some(event) = self.driver.next() {
            self.on_event(event);
        }
        self.run_window();
        self.driver.rewind();
    }

    #[inline(never)] // the loop around it keeps its registers
    fn on_event(&mut self, event: Event<Message>) {
        match event {
            Event::Data { conn, start, end } => self.on_data(conn, start, end),
            Event::Bulk { conn, most } => self.on_bulk(conn, most),
            Event::AreaFull => {
                self.run_window();
                self.driver.rewind();
            }
            Event::Drained { conn } => self.on_drained(conn),
            Event::Hangup { conn, unread } => self.on_hangup(conn, unread),
            Event::Closed { conn, why } => self.on_closed(conn, why),
            Event::Accepted { listener, socket, peer } => self.on_accepted(listener, socket, peer),
            Event::Message(message) => self.on_message(message),
            Event::Signal(signal) => self.core.on_signal(signal),
            Event::File(done) => self.on_file(*done),
        }
    }

    /// Executes what was framed.
    pub(crate) fn run_window(&mut self) {
        if self.window.is_empty() {
            return;
        }
        if self.core.settings.limits_memory {
            self.core.make_room_for(&mut self.access, &self.window);
        }
        let (input, out) = self.driver.io();
        self.core.execute_window(&mut self.access, &mut self.window, input, out);
        let arena = out.bytes.len();
        if !self.core.batch.after.is_empty() {
            self.apply_after();
        }
        if arena > ARENA_FLUSH_BYTES {
            self.flush();
        }
    }

    pub(crate) fn apply_after(&mut self) {
        let mut after = std::mem::take(&mut self.core.batch.after);
        for next in after.drain(..) {
            match next {
                After::Stop { conn, from, to } => {
                    if from < to {
                        self.keep(conn, from, to);
                    }
                    self.driver.pause(conn);
                }
                After::Deliver => {
                    self.core.tell_touched();
                    self.core.pubsub.is_due = true;
                }
            }
        }
        self.core.batch.after = after;
    }

    /// Puts input back that may hold complete requests: they have been received.
    pub(crate) fn keep(&mut self, conn: ConnId, from: usize, to: usize) {
        self.put_back(conn, from, to);
        if let Some(session) = self.core.session_mut(conn) {
            session.unanswered.keep_input();
        }
    }

    /// Puts input back, to be delivered in front of the next.
    pub(crate) fn put_back(&mut self, conn: ConnId, from: usize, to: usize) {
        self.driver.put_back(conn, from, to);
        if let Some(session) = self.core.session_mut(conn) {
            session.count_input((to - from) as u64);
        }
    }
}
