//! The operations in flight on a disk: when each takes effect, and whose it is.
//!
//! An operation takes effect when it completes, at a time that is drawn when it is submitted. So
//! operations overtake each other, and one that is in flight at a crash may or may not have
//! happened. A sync covers the changes that were complete when it was submitted, and no others.

use super::SimFile;
use super::store::{Handle, Process, Status, Store};
use super::survival::Fate;
use crate::files::raw::{RawDone, RawOp, RawValue};
use base::MonoNs;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// When an operation completes: the time, a draw that orders those of the same time, and a number
/// that makes it unique.
type Due = (u64, u64, u64);

#[derive(Debug)]
struct Flight {
    process: Process,
    number: u32,
    op: RawOp<SimFile>,
    /// Changes below this number existed when it was submitted.
    changes_end: u64,
}

/// Operations that have left the queue. The caller drops them when the disk is no longer locked,
/// because a dropped file locks the disk to close itself.
pub type Spent = Vec<RawOp<SimFile>>;

/// A disk with its queue.
#[derive(Debug)]
pub struct Queue {
    pub store: Store,
    flights: BTreeMap<Due, Flight>,
    /// Completed operations of every process that lives, in the order of their completion.
    done: BTreeMap<Process, Vec<RawDone<Handle>>>,
    /// Nothing completes before this time.
    hung_until: u64,
    submitted: u64,
    /// Operations that still complete; then the disk has stopped.
    left: u64,
}

impl Queue {
    pub fn new(store: Store) -> Self {
        let (flights, done) = (BTreeMap::new(), BTreeMap::new());
        Self { store, flights, done, hung_until: 0, submitted: 0, left: u64::MAX }
    }

    pub fn add_process(&mut self) -> Process {
        let process = self.store.add_process();
        self.done.insert(process, Vec::new());
        process
    }

    /// Ends a process: its operations in flight happen or not, and its files are closed.
    pub fn end_process(&mut self, process: Process) -> Spent {
        let spent = self.abandon(None, |flight| flight.process == process);
        self.done.remove(&process);
        self.store.end_process(process);
        spent
    }

    /// The machine crashes: its processes end, and what is not durable is at stake.
    pub fn crash(&mut self, fate: Fate) -> Spent {
        let spent = self.abandon(fate.in_flight, |_| true);
        self.done.clear();
        self.store.crash(fate);
        (self.hung_until, self.left) = (0, u64::MAX);
        spent
    }

    /// So many operations complete, and no more until the machine crashes or the next call.
    pub fn stop_after(&mut self, operations: u64) {
        self.left = operations;
    }

    /// True if an operation waits on a disk that has stopped.
    pub fn has_stopped(&self) -> bool {
        self.left == 0 && !self.flights.is_empty()
    }

    /// Lets the operations in flight which `ended` selects happen or not, in any order.
    fn abandon(&mut self, happen: Option<bool>, ended: impl Fn(&Flight) -> bool) -> Spent {
        let due = self.flights.iter().filter(|(_, f)| ended(f)).map(|(due, _)| *due);
        let mut due: Vec<Due> = due.collect();
        self.store.shuffle(&mut due);
        let mut spent = Spent::new();
        for due in due {
            let mut flight = self.flights.remove(&due).expect("it was found above");
            if happen.unwrap_or_else(|| self.store.happens(2)) {
                self.store.counts.in_flight_done += 1;
                // Nobody learns the result.
                let _ = self.perform(&mut flight);
            } else {
                self.store.counts.in_flight_dropped += 1;
            }
            spent.push(flight.op);
        }
        spent
    }

    /// Submits an operation at `now`. One of a process that has ended is ignored.
    pub fn submit(
        &mut self,
        now: MonoNs,
        process: Process,
        number: u32,
        op: RawOp<SimFile>,
    ) -> Spent {
        if !self.done.contains_key(&process) {
            return vec![op];
        }
        let store = &mut self.store;
        let mut due = now.0 + store.draw_up_to(store.faults.delay_ns_max);
        if store.happens(store.faults.slow_one_in) {
            store.counts.slow += 1;
            due += store.draw_up_to(store.faults.slow_ns_max);
        }
        if store.happens(store.faults.hang_one_in) {
            store.counts.hangs += 1;
            let until = now.0 + store.draw_up_to(store.faults.hang_ns_max);
            self.hung_until = self.hung_until.max(until);
        }
        self.submitted += 1;
        let changes_end = store.changes_end();
        let due = (due, store.prng.draw(), self.submitted);
        self.flights.insert(due, Flight { process, number, op, changes_end });
        Spent::new()
    }

    /// Performs what is due at `now`.
    pub fn run(&mut self, now: MonoNs) -> Spent {
        let mut spent = Spent::new();
        while now.0 >= self.hung_until
            && self.left > 0
            && let Some(entry) = self.flights.first_entry()
            && entry.key().0 <= now.0
        {
            let mut flight = entry.remove();
            self.left -= 1;
            let result = self.perform(&mut flight);
            let buffer = match &mut flight.op {
                RawOp::Read { buffer, .. } => std::mem::take(buffer),
                RawOp::Write { bytes, .. } => std::mem::take(bytes),
                _ => Vec::new(),
            };
            let list = self.done.get_mut(&flight.process).expect("a dead process has none");
            list.push(RawDone { number: flight.number, buffer, result });
            spent.push(flight.op);
        }
        spent
    }

    /// Takes the completed operations of a process.
    pub fn take_done(&mut self, process: Process) -> Vec<RawDone<Handle>> {
        self.done.get_mut(&process).map(std::mem::take).unwrap_or_default()
    }

    /// True if an operation of this process has completed at `now`.
    pub fn has_done(&self, process: Process, now: MonoNs) -> bool {
        let is_due = |((at, ..), f): (&Due, &Flight)| *at <= now.0 && f.process == process;
        self.done.get(&process).is_some_and(|done| !done.is_empty())
            || now.0 >= self.hung_until && self.left > 0 && self.flights.iter().any(is_due)
    }

    /// When the next operation completes that has not completed at `now`.
    pub fn next_arrival(&self, now: MonoNs) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        let due = |(at, ..): &Due| (*at).max(self.hung_until);
        self.flights.keys().map(due).filter(|at| *at > now.0).min()
    }

    fn perform(&mut self, flight: &mut Flight) -> Result<RawValue<Handle>, Errno> {
        let (store, process) = (&mut self.store, flight.process);
        let value = match &mut flight.op {
            RawOp::Open { path, how, is_folder } => {
                RawValue::File(store.open(process, as_path(path), *how, *is_folder)?)
            }
            RawOp::Measure { file } => return store.measure(file.handle()).map(status),
            RawOp::Read { file, at, room, buffer } => {
                let bytes = store.read(file.handle(), *at, *room)?;
                buffer.extend_from_slice(&bytes);
                RawValue::Count(bytes.len())
            }
            RawOp::Write { file, at, bytes, from, room, is_durable } => {
                let to = bytes.len().min(from.saturating_add(*room));
                let (file, piece) = (file.handle(), &bytes[*from..to]);
                RawValue::Count(if *is_durable {
                    store.write_durably(file, *at, piece)?
                } else {
                    store.write(file, *at, piece)?
                })
            }
            RawOp::List { folder } => RawValue::Names(store.list(as_path(folder))?),
            RawOp::Status { path } => return store.status(as_path(path)).map(status),
            op => return perform_plain(store, op, flight.changes_end).map(|()| RawValue::Done),
        };
        Ok(value)
    }
}

/// The operations that return nothing.
fn perform_plain(store: &mut Store, op: &RawOp<SimFile>, changes_end: u64) -> Result<(), Errno> {
    match op {
        RawOp::Truncate { file, to } => store.truncate(file.handle(), *to),
        RawOp::Preallocate { file, from, bytes } => store.preallocate(file.handle(), *from, *bytes),
        RawOp::Sync { file, .. } => store.sync(file.handle(), changes_end),
        RawOp::Forget { file, .. } => store.measure(file.handle()).map(|_| ()),
        RawOp::SetMode { file, mode } => store.set_mode(file.handle(), *mode),
        RawOp::Close { file } => store.close(file.handle()),
        RawOp::Rename { from, to } => store.rename(as_path(from), as_path(to)),
        RawOp::Unlink { path } => store.unlink(as_path(path)),
        RawOp::RemoveFolder { path } => store.remove_folder(as_path(path)),
        RawOp::CreateFolder { path, mode } => store.create_folder(as_path(path), *mode),
        RawOp::Open { .. }
        | RawOp::Measure { .. }
        | RawOp::Read { .. }
        | RawOp::Write { .. }
        | RawOp::List { .. }
        | RawOp::Status { .. } => unreachable!("it returns something"),
    }
}

fn status((len, mode, is_folder): Status) -> RawValue<Handle> {
    RawValue::Status { len, mode, is_folder }
}

fn as_path(path: &CString) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}
