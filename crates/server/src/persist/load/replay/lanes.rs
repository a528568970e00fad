//! What stands between the worker that reads a file of commands and the threads that run them.
//!
//! ```text
//! worker 0 --- blocks of 1 MiB ---> dispatcher ---> batches ---> lane of each thread
//!      <--- Message::Loading: room again, or over ---      '--> alone, between two batches
//! ```
//!
//! Each thread takes the next piece of work: it reads and sorts a block while little is queued, and
//! else runs the next chunk of its own lane. So the commands of a slot run in the order of the
//! file. A chunk that runs alone waits until every lane is empty and nobody runs, and nothing
//! behind it reaches a lane before it has run. What is under way is bounded: the blocks that worker
//! 0 reads ahead, and [`QUEUED_MAX`] bytes of commands, beyond which no block is sorted. A command
//! or a transaction which is longer than a block is kept whole.

use crate::persist::load::fault::LoadError;
use crate::persist::load::replay::chunk::Chunk;
use crate::persist::load::replay::dispatch::{Batch, Dispatcher, KEPT_BYTES, Replayed};
use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;

/// While fewer bytes are queued, reading comes first, so that nobody waits for it.
const QUEUED_LOW: usize = 2 << 20;
/// While more bytes are queued, nobody reads.
const QUEUED_MAX: usize = 8 << 20;
/// Chunks that are kept to be filled again, for each thread.
const SPARE_MAX: usize = 8;

/// The queues.
pub(crate) struct Lanes {
    state: Mutex<State>,
    changed: Condvar,
    is_cancelled: Arc<AtomicBool>,
}

struct State {
    /// Read, and not sorted.
    blocks: VecDeque<Vec<u8>>,
    /// No more blocks come.
    is_read: bool,
    dispatcher: Option<Box<Dispatcher>>,
    /// How reading ended.
    read: Option<Replayed>,
    /// Sorted, and not in a lane.
    batches: VecDeque<Batch>,
    lanes: Vec<VecDeque<Chunk>>,
    /// Bytes in batches and lanes.
    queued: usize,
    /// Chunks that are being run.
    running: usize,
    /// One of them runs alone.
    is_alone: bool,
    spare: Vec<Chunk>,
    /// The error which stands first in the file.
    error: Option<LoadError>,
    /// Threads that have not ended.
    threads: usize,
}

/// A piece of work.
pub(crate) enum Work {
    /// Sort this block, or what is left behind the last one.
    Read(Box<Dispatcher>, Option<Vec<u8>>, Vec<Chunk>),
    /// Run these commands.
    Run(Chunk),
    /// There is nothing more to do.
    End,
}

impl Lanes {
    /// For so many threads.
    pub(crate) fn new(threads: usize, dispatcher: Dispatcher) -> Self {
        let state = State {
            blocks: VecDeque::new(),
            is_read: false,
            dispatcher: Some(Box::new(dispatcher)),
            read: None,
            batches: VecDeque::new(),
            lanes: (0..threads).map(|_| VecDeque::new()).collect(),
            queued: 0,
            running: 0,
            is_alone: false,
            spare: Vec::new(),
            error: None,
            threads,
        };
        let is_cancelled = Arc::new(AtomicBool::new(false));
        Self { state: Mutex::new(state), changed: Condvar::new(), is_cancelled }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the queues are held")
    }

    /// The next block of the file.
    pub(crate) fn add(&self, block: Vec<u8>) {
        self.state().blocks.push_back(block);
        self.changed.notify_all();
    }

    /// The last block was added.
    pub(crate) fn end_of_file(&self) {
        self.state().is_read = true;
        self.changed.notify_all();
    }

    /// Blocks which are not sorted yet.
    pub(crate) fn queued(&self) -> usize {
        self.state().blocks.len()
    }

    /// Ends the threads at their next command: the server ends.
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
        self.state().fail(error);
        self.changed.notify_all();
    }

    /// Waits for the next piece of work of a thread.
    pub(crate) fn take(&self, thread: usize) -> Work {
        let mut state = self.state();
        loop {
            if self.is_cancelled() {
                return Work::End;
            }
            if let Some(work) = state.next(thread) {
                return work;
            }
            state = self.changed.wait(state).expect("no panic while the queues are held");
        }
    }

    /// Returns the dispatcher, with what it has sorted, and how reading ended.
    pub(crate) fn sorted(
        &self,
        mut dispatcher: Box<Dispatcher>,
        end: Result<Option<Replayed>, LoadError>,
    ) {
        let batches = dispatcher.take();
        let mut state = self.state();
        state.queued += batches.iter().map(Batch::len).sum::<usize>();
        state.batches.extend(batches);
        match end {
            Ok(end) => {
                state.read = end;
                state.dispatcher = Some(dispatcher);
            }
            Err(error) => state.fail(error),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A chunk has run.
    pub(crate) fn ran(&self, mut chunk: Chunk) {
        let bytes = chunk.len();
        chunk.clear(KEPT_BYTES);
        let mut state = self.state();
        state.running -= 1;
        state.queued -= bytes;
        state.is_alone = false;
        if state.spare.len() < SPARE_MAX * state.lanes.len() {
            state.spare.push(chunk);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A thread ends; true for the last one.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.state();
        state.threads -= 1;
        state.threads == 0
    }

    /// How it ended, once all threads have: `None` before, and if it was cancelled.
    pub(crate) fn end(&self) -> Option<Result<Replayed, LoadError>> {
        let mut state = self.state();
        if state.threads > 0 || self.is_cancelled() {
            return None;
        }
        state.error.take().map(Err).or_else(|| state.read.take().map(Ok))
    }
}

impl State {
    fn fail(&mut self, error: LoadError) {
        if self.error.as_ref().is_none_or(|first| error.offset < first.offset) {
            self.error = Some(error);
        }
    }

    fn next(&mut self, thread: usize) -> Option<Work> {
        if self.error.is_some() {
            return Some(Work::End);
        }
        self.admit();
        if self.queued < QUEUED_LOW
            && let Some(work) = self.read()
        {
            return Some(work);
        }
        if let Some(chunk) = self.lanes[thread].pop_front() {
            self.running += 1;
            return Some(Work::Run(chunk));
        }
        let is_free = self.running == 0 && self.lanes.iter().all(VecDeque::is_empty);
        if is_free && let Some(Batch::Alone(_)) = self.batches.front() {
            let Some(Batch::Alone(chunk)) = self.batches.pop_front() else {
                unreachable!("just seen there");
            };
            self.running += 1;
            self.is_alone = true;
            return Some(Work::Run(chunk));
        }
        if self.queued < QUEUED_MAX
            && let Some(work) = self.read()
        {
            return Some(work);
        }
        (self.read.is_some() && self.batches.is_empty()).then_some(Work::End)
    }

    /// Moves what may run into the lanes.
    fn admit(&mut self) {
        while !self.is_alone && matches!(self.batches.front(), Some(Batch::Beside(_))) {
            let Some(Batch::Beside(chunks)) = self.batches.pop_front() else {
                unreachable!("just seen there");
            };
            let filled = self.lanes.iter_mut().zip(chunks).filter(|(_, chunk)| !chunk.is_empty());
            filled.for_each(|(lane, chunk)| lane.push_back(chunk));
        }
    }

    /// A block to sort, if there is one and nobody reads.
    fn read(&mut self) -> Option<Work> {
        let can_read = self.read.is_none() && (self.is_read || !self.blocks.is_empty());
        let dispatcher = self.dispatcher.take_if(|_| can_read)?;
        let spare = std::mem::take(&mut self.spare);
        Some(Work::Read(dispatcher, self.blocks.pop_front(), spare))
    }
}

#[cfg(test)]
mod tests;
