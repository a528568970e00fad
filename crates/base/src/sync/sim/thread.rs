//! Threads: those which a thread of a world starts belong to its group.

use super::baton::{self, On, Thread};
use std::panic::Location;
use std::time::Duration;

pub use std::thread::{Result, panicking};

/// As std's.
#[derive(Debug)]
pub struct JoinHandle<T> {
    inner: std::thread::JoinHandle<T>,
    thread: Option<&'static Thread>,
}

impl<T> JoinHandle<T> {
    /// As std's.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        if let Some(thread) = self.thread {
            baton::join(thread, Location::caller());
        }
        // In a world the thread has passed the baton on for the last time and really ends by
        // itself.
        self.inner.join()
    }

    /// As std's.
    pub fn is_finished(&self) -> bool {
        self.thread.map_or_else(|| self.inner.is_finished(), baton::is_finished)
    }
}

/// As std's.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

impl Builder {
    /// As std's.
    pub fn new() -> Self {
        Self::default()
    }

    /// As std's.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// As std's.
    #[track_caller]
    pub fn spawn<T: Send + 'static>(
        self,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        let name = self.name.unwrap_or_else(|| "thread".into());
        if let Some(group) = baton::current_group() {
            return baton::spawn(group, name, run);
        }
        let inner = std::thread::Builder::new().name(name).spawn(run)?;
        Ok(JoinHandle { inner, thread: None })
    }
}

impl<T> JoinHandle<T> {
    pub(super) fn of(inner: std::thread::JoinHandle<T>, thread: &'static Thread) -> Self {
        Self { inner, thread: Some(thread) }
    }
}

/// As std's.
#[track_caller]
pub fn spawn<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(run).expect("the system has room for a thread")
}

/// As std's; not for threads of a world.
pub fn scope<'env, R>(
    run: impl for<'scope> FnOnce(&'scope std::thread::Scope<'scope, 'env>) -> R,
) -> R {
    assert!(!baton::is_active(), "scoped threads would run beside the baton");
    std::thread::scope(run)
}

/// As std's. In a world, time passes.
#[track_caller]
pub fn yield_now() {
    if !baton::spin(Location::caller()) {
        std::thread::yield_now();
    }
}

/// As std's; in a world, simulated time.
#[track_caller]
pub fn sleep(time: Duration) {
    match baton::now_ns() {
        Some(now) => {
            let until = now.saturating_add(baton::nanoseconds(time));
            baton::block_at(On::Sleep, 0, Some(until), Location::caller());
        }
        None => std::thread::sleep(time),
    }
}
