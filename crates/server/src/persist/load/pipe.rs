//! What stands between the worker that reads the file and the threads that load it.
//!
//! ```text
//! worker 0 --- blocks of 1 MiB, in order ---> scanner --- chunks of whole keys ---> builders
//!      <--- Message::Loading: room again, or over ---
//! ```
//!
//! The threads are all alike. Each takes the next piece of work: it scans a block while few chunks
//! are ready, and builds a chunk otherwise. One thread scans at a time, and one builds a long value
//! at a time, whose parts are in order; chunks of whole keys have no order. What is under way is
//! bounded: [`BLOCKS_AHEAD`] blocks, what the scanner holds, and the chunks of one block beyond
//! [`CHUNKS_AHEAD`] per thread.

use crate::persist::load::builder::LongValue;
use crate::persist::load::fault::LoadError;
use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex, MutexGuard};
use rdb::file::{Keys, LongChunk, Scanner, Summary};
use std::collections::VecDeque;

/// While each thread has so many chunks ahead, nobody scans.
const CHUNKS_AHEAD: usize = 2;

/// The queue.
pub(crate) struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
    is_cancelled: Arc<AtomicBool>,
    threads: usize,
}

struct State {
    /// Read, and not scanned.
    blocks: VecDeque<Vec<u8>>,
    /// No more blocks come.
    is_read: bool,
    scanner: Option<Box<Scanner>>,
    scanned: Option<Result<Summary, LoadError>>,
    chunks: VecDeque<Chunk>,
    long: Long,
    /// The error which stands first in the file.
    error: Option<LoadError>,
    /// Threads that have not ended.
    running: usize,
}

/// What is built.
pub(crate) enum Chunk {
    /// Whole keys.
    Keys(Keys),
    /// A part of a long value.
    Long(LongChunk),
}

/// The long value whose parts come.
enum Long {
    Home(Option<Box<LongValue>>),
    /// A thread has it.
    Out,
}

/// A piece of work.
pub(crate) enum Work {
    /// Scan this block, or behind the last one.
    Scan(Box<Scanner>, Option<Vec<u8>>),
    /// Build these keys.
    Keys(Keys),
    /// Build this part of a long value.
    Long(Option<Box<LongValue>>, LongChunk),
    /// There is nothing more to do.
    End,
}

impl Pipe {
    /// For so many threads.
    pub(crate) fn new(threads: usize) -> Self {
        let state = State {
            blocks: VecDeque::new(),
            is_read: false,
            scanner: None,
            scanned: None,
            chunks: VecDeque::new(),
            long: Long::Home(None),
            error: None,
            running: threads,
        };
        let is_cancelled = Arc::new(AtomicBool::new(false));
        Self { state: Mutex::new(state), changed: Condvar::new(), is_cancelled, threads }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the queue is held")
    }

    /// The file is open.
    pub(crate) fn begin(&self, scanner: Scanner) {
        self.state().scanner = Some(Box::new(scanner));
        self.changed.notify_all();
    }

    /// The next block of the file.
    pub(crate) fn add(&self, block: Vec<u8>) {
        self.state().blocks.push_back(block);
        self.changed.notify_one();
    }

    /// The last block was added.
    pub(crate) fn end_of_file(&self) {
        self.state().is_read = true;
        self.changed.notify_all();
    }

    /// Blocks which are not scanned yet.
    pub(crate) fn queued(&self) -> usize {
        self.state().blocks.len()
    }

    /// Ends the threads at their next key, and a scan at its next item: the server ends.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Relaxed);
        let _state = self.state(); // nobody is between its test and its wait
        self.changed.notify_all();
    }

    /// True if nothing more is to be done.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    /// Set when nothing more is to be done, for loops within a piece of work.
    pub(crate) fn cancellation(&self) -> Arc<AtomicBool> {
        self.is_cancelled.clone()
    }

    /// Ends everything with an error.
    pub(crate) fn fail(&self, error: LoadError) {
        let mut state = self.state();
        if state.error.as_ref().is_none_or(|first| error.offset < first.offset) {
            state.error = Some(error);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the next piece of work.
    pub(crate) fn take(&self) -> Work {
        let mut state = self.state();
        loop {
            if self.is_cancelled() || state.error.is_some() {
                return Work::End;
            }
            if let Some(work) = state.next(self.threads * CHUNKS_AHEAD) {
                return work;
            }
            state = self.changed.wait(state).expect("no panic while the queue is held");
        }
    }

    /// Returns the scanner, with what it has found.
    pub(crate) fn scanned(
        &self,
        scanner: Box<Scanner>,
        chunks: Vec<Chunk>,
        end: Option<Result<Summary, LoadError>>,
    ) {
        let mut state = self.state();
        state.chunks.extend(chunks);
        state.scanned = end;
        state.scanner = Some(scanner);
        drop(state);
        self.changed.notify_all();
    }

    /// Returns a long value that is not complete.
    pub(crate) fn return_long(&self, long: Option<Box<LongValue>>) {
        self.state().long = Long::Home(long);
        self.changed.notify_all();
    }

    /// A thread ends; true for the last one.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.state();
        state.running -= 1;
        state.running == 0
    }

    /// How it ended, once all threads have: `None` before, and if it was cancelled. An error of the
    /// scanner is reported only if all keys before it are good.
    pub(crate) fn end(&self) -> Option<Result<Summary, LoadError>> {
        let mut state = self.state();
        if state.running > 0 || self.is_cancelled() {
            return None;
        }
        state.error.take().map(Err).or_else(|| state.scanned.take())
    }
}

impl State {
    fn next(&mut self, enough: usize) -> Option<Work> {
        let can_scan = self.scanned.is_none() && (self.is_read || !self.blocks.is_empty());
        if can_scan
            && self.chunks.len() < enough
            && let Some(scanner) = self.scanner.take()
        {
            return Some(Work::Scan(scanner, self.blocks.pop_front()));
        }
        if let Some(work) = self.next_chunk() {
            return Some(work);
        }
        (self.scanned.is_some() && self.chunks.is_empty()).then_some(Work::End)
    }

    /// The first chunk which can be built now: parts of long values one after the other.
    fn next_chunk(&mut self) -> Option<Work> {
        let first_long = self.chunks.iter().position(|c| matches!(c, Chunk::Long(_)));
        if let Some(at) = first_long
            && let Long::Home(long) = &mut self.long
        {
            let long = long.take();
            self.long = Long::Out;
            let Some(Chunk::Long(part)) = self.chunks.remove(at) else {
                unreachable!("just found there");
            };
            return Some(Work::Long(long, part));
        }
        let at = self.chunks.iter().position(|c| matches!(c, Chunk::Keys(_)))?;
        let Some(Chunk::Keys(keys)) = self.chunks.remove(at) else {
            unreachable!("just found there");
        };
        Some(Work::Keys(keys))
    }
}

#[cfg(test)]
mod tests;
