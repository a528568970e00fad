//! What all threads of a model share: its options, its listening sockets, its counters, its end.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{Shutdown, shutdown};

use super::counters::Counters;
use super::listen::Listener;
use super::options::Options;

/// The shared part of a running model.
#[derive(Debug)]
pub struct Context {
    /// How it was started.
    pub options: Options,
    /// What it did.
    pub counters: Counters,
    /// Where it listens.
    pub listener: Listener,
    started: Instant,
    stopped: AtomicBool,
    /// Readable once it is to end, for everybody who polls.
    stop: OwnedFd,
    guests: Mutex<HashMap<u64, Arc<OwnedFd>>>,
    next_guest: AtomicU64,
}

/// A connection that a thread serves by waiting for it. The end of the model ends it too.
#[derive(Debug)]
pub struct Guest<'a> {
    context: &'a Context,
    number: u64,
    fd: Arc<OwnedFd>,
}

/// What serves a model until it ends, on the thread that accepts its connections.
pub type Serve = Box<dyn FnOnce(&Arc<Context>) + Send>;

/// A section of INFO: its name and its lines.
pub type Section = (&'static str, Vec<(&'static str, String)>);

impl Context {
    /// Opens the listening sockets.
    pub fn new(options: Options) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            listener: Listener::open(&options)?,
            options,
            counters: Counters::default(),
            started: Instant::now(),
            stopped: AtomicBool::new(false),
            stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            guests: Mutex::default(),
            next_guest: AtomicU64::new(0),
        }))
    }

    /// Event loops to run: as many as were asked for, or one per core.
    pub fn loops(&self) -> usize {
        self.options.threads.unwrap_or_else(driver::cpus_allowed)
    }

    /// Has it ended?
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Readable once it has ended.
    pub fn stop_fd(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Ends everything: wakes threads that poll, shuts down connections of threads that wait.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Only a full counter fails, and that is readable.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        for fd in self.guests().values() {
            // It may have ended by itself.
            let _ = shutdown(&**fd, Shutdown::Both);
        }
    }

    /// Takes a connection that its thread will wait for; not after the end.
    pub fn enter(&self, fd: OwnedFd) -> Option<Guest<'_>> {
        let mut guests = self.guests();
        // Under the lock: `stop` either sees this guest or was seen by it.
        if self.is_stopped() {
            return None;
        }
        let number = self.next_guest.fetch_add(1, Ordering::Relaxed);
        let fd = Arc::new(fd);
        guests.insert(number, Arc::clone(&fd));
        Some(Guest { context: self, number, fd })
    }

    /// What INFO tells of the model; not of its keys.
    pub fn info(&self) -> Vec<Section> {
        let port = self.listener.tcp().port();
        let server = vec![
            ("server_name", "sheafdb-bench".to_owned()),
            ("server_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("process_id", std::process::id().to_string()),
            ("tcp_port", port.to_string()),
            ("uptime_in_seconds", self.started.elapsed().as_secs().to_string()),
        ];
        let totals = self.counters.totals().pairs();
        let mut model: Vec<_> = totals.iter().map(|(name, n)| (*name, n.to_string())).collect();
        model.push(("events_per_poll", self.counters.events_per_poll()));
        model.push(("overflows", self.listener.overflows().to_string()));
        vec![("Server", server), ("Model", model)]
    }

    fn guests(&self) -> MutexGuard<'_, HashMap<u64, Arc<OwnedFd>>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest<'_> {
    /// The connection.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.context.guests().remove(&self.number);
    }
}
