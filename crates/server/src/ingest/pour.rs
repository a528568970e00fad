//! Writes messages of ingest connections, of either protocol, into a list or a stream.
//!
//! A block of messages is one change of its key: one lookup, one undo record, one line for MONITOR
//! (`[DB ingest] "INGEST" "stream:KEY" "COUNT"`). Clients which wait for the key are served under
//! the same lock, as behind XADD and RPUSH. A long block is written in parts; the lock is released
//! between them.

use crate::execute::budgets::Affected;
use crate::execute::caller::Caller;
use crate::execute::finish::Notice;
use crate::execute::gates::closed;
use crate::sessions::monitors;
use crate::worker::core::Core;
use base::DbIndex;
use base::sync::atomic::AtomicU64;
use base::sync::atomic::Ordering::{Relaxed, Release};
use command::{Error, list, stream};
use driver::ConnId;
use ingest::{Messages, Sink, Target};
use journal::producer::{SinkKind, write_line};
use keyspace::{Access, Guard, Intent, Key, Parked};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Messages which are written under one lock at most: as many empty ones as one read brings.
const AT_ONCE_MAX: usize = 4096;
/// Bytes of messages which are written under one lock at most, without the last one.
const AT_ONCE_BYTES_MAX: usize = 128 * 1024;

/// How the writing of a block of messages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poured {
    /// Every message is in the key, and clients which waited for it are served.
    All,
    /// The World gate is closed, or the slot is held for long or frozen. [`Message::Retry`] says
    /// when to retry.
    Later {
        /// So many messages are in.
        taken: usize,
    },
    /// `maxmemory` is reached, CLIENT PAUSE holds writes back, or a file is being loaded. Nothing
    /// says when to retry, so
    /// that is polled.
    Full {
        /// So many messages are in.
        taken: usize,
    },
    /// The key holds a value of another type.
    WrongType {
        /// So many messages are in.
        taken: usize,
    },
    /// The ids of the stream are used up.
    NoMoreIds {
        /// So many messages are in.
        taken: usize,
    },
    /// There is no such database.
    NoDb,
    /// A panic was caught and rolled back; the connection is to be closed.
    Broken {
        /// So many messages are in.
        taken: usize,
    },
}

/// What keeps the number of a producer beside its messages.
#[derive(Clone, Copy)]
pub struct Keeper<'a> {
    /// What its messages become.
    pub kind: SinkKind,
    /// Its name, as a line of a file has it.
    pub quoted: &'a str,
    /// Raised together with the change of the key.
    pub in_key: &'a AtomicU64,
}

/// Messages which are written under one lock.
#[derive(Clone)]
struct Block<'a> {
    messages: Messages<'a>,
    count: usize,
    keeper: Option<Keeper<'a>>,
}

impl Block<'_> {
    /// The number of the message which is the last of so many.
    fn last(&self, count: usize) -> u64 {
        let first = self.messages.clone().next().map_or(0, |(number, _)| number);
        first + (count as u64 - 1)
    }
}

impl Core {
    /// Writes `count` messages into a sink, in their order. `conn` gets [`Message::Retry`]. The
    /// worker must be outside its section, which is entered and left here. With a keeper messages
    /// are numbered, and the number of the last one is kept with them.
    pub fn pour(
        &mut self,
        access: &mut Access,
        conn: ConnId,
        sink: &Sink,
        mut messages: Messages<'_>,
        (count, keeper): (usize, Option<Keeper<'_>>),
    ) -> Poured {
        if sink.is_null() {
            return Poured::All;
        }
        if sink.db >= u32::from(self.settings.command.databases) {
            return Poured::NoDb;
        }
        let mut taken = 0;
        while taken < count {
            self.make_room_if_needed(access);
            let db = DbIndex::new(sink.db as u16);
            self.make_room_in_databases(access, Affected::One(db));
            let inside = access.enter();
            self.follow();
            let is_full = self.is_full() || self.is_database_full(db);
            if is_full || self.are_writes_paused() || self.shared.load.is_on() {
                access.leave();
                return Poured::Full { taken };
            }
            let (mut part, mut len) = (messages.clone(), count - taken);
            if len > AT_ONCE_MAX || part.remaining().len() > AT_ONCE_BYTES_MAX {
                (part, len) = messages.split_off(AT_ONCE_MAX, AT_ONCE_BYTES_MAX);
            }
            let mut committed = 0;
            let block = Block { messages: part, count: len, keeper };
            let run =
                AssertUnwindSafe(|| self.pour_inside(access, inside, sink, &block, &mut committed));
            let result = catch_unwind(run);
            access.leave();
            taken += committed;
            match result {
                Ok(Ok(Ok(()))) if committed == len => {}
                Ok(Ok(Ok(()))) => return Poured::NoMoreIds { taken },
                Ok(Ok(Err(_))) => return Poured::WrongType { taken },
                Ok(Err(parked)) => {
                    self.retry_when_free(access, parked, conn);
                    return Poured::Later { taken };
                }
                Err(_) => {
                    crate::log::warning(format_args!(
                        "Panic while messages were written to {sink}; the change was rolled back"
                    ));
                    return Poured::Broken { taken };
                }
            }
        }
        Poured::All
    }

    /// True while memory is full, so that no sink accepts messages. What ingest connections hold
    /// does not count: it is there already, and leaves them when it is written.
    pub(crate) fn is_full(&self) -> bool {
        let max = self.settings.memory_limit;
        let held = || self.shared.ingest_memory(); // read last: others may add to it meanwhile
        max > 0 && self.may_be_full() && self.shared.used_memory().saturating_sub(held()) > max
    }

    /// True while connections of ingest hold more than half of what is allowed.
    pub(crate) fn is_half_held_by_ingest(&self) -> bool {
        let max = self.settings.memory_limit;
        max > 0 && self.shared.ingest_memory() > max / 2
    }

    /// True while CLIENT PAUSE or a save holds writes back, or writes stop because saves fail or
    /// the append-only file cannot be written.
    pub(crate) fn are_writes_paused(&self) -> bool {
        let is_refused = || self.gates & closed::UNSAVED != 0 || self.shared.journal.has_trouble();
        self.gates & (closed::UNSAVED | closed::UNWRITTEN) != 0 && is_refused()
            || self.are_writes_held()
    }

    /// True while CLIENT PAUSE or a save holds writes back.
    pub(crate) fn are_writes_held(&self) -> bool {
        let is_paused = || {
            self.shared.pause.until_ms.load(Relaxed) > self.turn.unix_ms().0
                || self.are_writes_held_back()
        };
        self.gates & closed::WAITS != 0 && is_paused()
    }

    /// Locks the needed slots and writes. `committed` counts the messages which stay in the key
    /// whatever happens afterwards.
    fn pour_inside(
        &mut self,
        access: &mut Access,
        inside: bool,
        sink: &Sink,
        block: &Block<'_>,
        committed: &mut usize,
    ) -> Result<Result<(), Error>, Parked> {
        if !inside {
            return Err(Parked::Gate);
        }
        let key = self.shared.keyspace.key(&sink.key);
        let guard = access.lock_one(key.slot, self.turn.unix_ms(), Intent::Write)?;
        if sink.kind != Target::List || !guard.slot_has_movers(key.slot) {
            return Ok(self.pour_locked(guard, sink, &key, block, committed));
        }
        drop(guard);
        let guard =
            access.lock_to_fill(&[key.slot], false, self.turn.unix_ms(), || vec![key.bytes])?;
        Ok(self.pour_locked(guard, sink, &key, block, committed))
    }

    fn pour_locked(
        &mut self,
        mut guard: Guard<'_>,
        sink: &Sink,
        key: &Key<'_>,
        block: &Block<'_>,
        committed: &mut usize,
    ) -> Result<(), Error> {
        if self.gates & closed::ARMED != 0 {
            self.arm_pour(&mut guard, sink);
        }
        let caller = Caller::of_ingest(DbIndex(sink.db));
        caller.apply_to(&mut guard);
        let (at, settings) = ((caller.db, key), &self.settings.command);
        let (messages, count) = (block.messages.clone(), block.count);
        let result = if sink.kind == Target::List {
            let payloads = messages.map(|(_, payload)| payload);
            list::pour(&mut guard, at, settings, &mut self.tally, payloads).map(|()| count)
        } else {
            let bound = sink.maxlen.map(|max| stream::Bound { count: max.count, exact: max.exact });
            let written =
                stream::pour(&mut guard, at, settings, self.turn.unix_ms(), bound, messages);
            written.map(|written| written as usize)
        };
        let count = *result.as_ref().unwrap_or(&0);
        if result.is_err() {
            guard.rollback();
        }
        if self.has_monitors() && caller.is_monitored && count > 0 {
            self.attach_monitor_line(&mut guard, sink, count);
        }
        let kept = block.keeper.filter(|_| count > 0).map(|keeper| (keeper, block.last(count)));
        if let Some((keeper, last)) = kept {
            guard.annotate(|line| write_line(line, keeper.kind, last, keeper.quoted));
        }
        guard.finish();
        *committed = count;
        if let Some((keeper, last)) = kept {
            keeper.in_key.store(last, Release);
        }
        let hold = self.finish_noted(&mut guard);
        guard.take_drawn(); // no client's
        self.poured = self.poured.max(hold);
        result.map(|_| ())
    }

    /// DEBUG PANIC-IN-COMMAND concerns messages, too, as the command which they stand for.
    #[cold]
    fn arm_pour(&mut self, guard: &mut Guard<'_>, sink: &Sink) {
        let name: &[u8] = if sink.kind == Target::List { b"rpush" } else { b"xadd" };
        self.arm(guard, command::lookup(name));
        self.running.fails = false; // a block has no error to reply with: it panics
    }

    /// Attaches a line for monitors to the change.
    #[cold]
    fn attach_monitor_line(&mut self, guard: &mut Guard<'_>, sink: &Sink, count: usize) {
        let unix_us = self.clock.unix_us(self.turn.now(), self.turn.unix_ms());
        let kind: &[u8] = if sink.kind == Target::List { b"list:" } else { b"stream:" };
        let (to, count) = ([kind, &sink.key].concat(), count.to_string());
        let line = monitors::line(unix_us, sink.db, "ingest", &[b"INGEST", &to, count.as_bytes()]);
        guard.note(Box::new(Notice::Monitor(line)));
    }
}
