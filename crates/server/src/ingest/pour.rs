//! Messages of ingest connections on their way into a list or a stream, whatever protocol they came
//! by.
//!
//! A block of messages is one change of its key: one look at it, one undo record, one line for
//! MONITOR (`[DB ingest] "INGEST" "stream:KEY" "COUNT"`). Who waits for the key is served as behind
//! XADD and RPUSH, under the same lock. A long block is poured in parts with the lock dropped
//! between them.

use crate::execute::caller::Caller;
use crate::execute::finish::Notice;
use crate::execute::gates::closed;
use crate::sessions::monitors;
use crate::worker::core::Core;
use base::DbIndex;
use base::sync::atomic::Ordering::Relaxed;
use command::{Error, list, stream};
use driver::ConnId;
use ingest::{Messages, Sink, Target};
use keyspace::{Access, Guard, Intent, Key, Parked};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Messages that are poured under one lock: with empty payloads, what one read brings.
const AT_ONCE_MAX: usize = 4096;
/// Bytes of messages likewise, but for the last one.
const AT_ONCE_BYTES_MAX: usize = 128 * 1024;

/// What became of a block of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poured {
    /// Every message is in the key, and readers that waited for it are woken.
    All,
    /// The World gate is closed, the slot is held for long, or frozen: [`Message::Retry`] says when
    /// to try again.
    Later {
        /// So many messages are in.
        taken: usize,
    },
    /// `maxmemory` is reached, or CLIENT PAUSE holds writes back: nobody says when to try again, so
    /// it is to be tried every few milliseconds.
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
    /// A panic was caught and what it left undone; the connection is to be closed.
    Broken {
        /// So many messages are in.
        taken: usize,
    },
}

impl Core {
    /// Puts `count` messages into a sink, in their order. `conn` is who is told to try again.
    /// Nobody is inside of the worker's section meanwhile; it is entered and left here.
    pub fn pour(
        &mut self,
        access: &mut Access,
        conn: ConnId,
        sink: &Sink,
        mut messages: Messages<'_>,
        count: usize,
    ) -> Poured {
        if sink.is_null() {
            return Poured::All;
        }
        if sink.db >= u32::from(self.settings.command.databases) {
            return Poured::NoDb;
        }
        let mut taken = 0;
        while taken < count {
            let inside = access.enter();
            self.follow();
            if self.is_full() || self.are_writes_paused() {
                access.leave();
                return Poured::Full { taken };
            }
            let (mut part, mut len) = (messages.clone(), count - taken);
            if len > AT_ONCE_MAX || part.remaining().len() > AT_ONCE_BYTES_MAX {
                (part, len) = messages.split_off(AT_ONCE_MAX, AT_ONCE_BYTES_MAX);
            }
            let mut came = 0;
            let run = AssertUnwindSafe(|| {
                self.pour_inside(access, inside, sink, part.clone(), len, &mut came)
            });
            let result = catch_unwind(run);
            access.leave();
            taken += came;
            match result {
                Ok(Ok(Ok(()))) if came == len => {}
                Ok(Ok(Ok(()))) => return Poured::NoMoreIds { taken },
                Ok(Ok(Err(_))) => return Poured::WrongType { taken },
                Ok(Err(parked)) => {
                    self.retry_when_free(access, parked, conn);
                    return Poured::Later { taken };
                }
                Err(_) => {
                    crate::log::warning(format_args!(
                        "Messages for {sink} made a panic; what it had begun was undone"
                    ));
                    return Poured::Broken { taken };
                }
            }
        }
        Poured::All
    }

    /// True while no sink takes messages. What their connections hold is no reason: it is there
    /// already, and leaves them as it goes into a sink.
    pub(crate) fn is_full(&self) -> bool {
        let max = self.settings.maxmemory;
        let held = || self.shared.ingest_memory(); // others go on: it may be more than was counted before
        max > 0 && self.shared.used_memory().saturating_sub(held()) > max
    }

    /// True while connections of ingest hold more than half of what is allowed.
    pub(crate) fn is_half_held_by_ingest(&self) -> bool {
        let max = self.settings.maxmemory;
        max > 0 && self.shared.ingest_memory() > max / 2
    }

    /// True while CLIENT PAUSE holds writes back.
    pub(crate) fn are_writes_paused(&self) -> bool {
        self.gates & closed::PAUSE != 0
            && self.shared.pause.until_ms.load(Relaxed) > self.turn.unix_ms().0
    }

    /// Locks what is needed, and pours; `came` says what is in for good, whatever happens then.
    fn pour_inside(
        &mut self,
        access: &mut Access,
        inside: bool,
        sink: &Sink,
        messages: Messages<'_>,
        count: usize,
        came: &mut usize,
    ) -> Result<Result<(), Error>, Parked> {
        if !inside {
            return Err(Parked::Gate);
        }
        let key = self.shared.keyspace.key(&sink.key);
        let guard = access.lock_one(key.slot, self.turn.unix_ms(), Intent::Write)?;
        if sink.kind != Target::List || !guard.slot_has_movers(key.slot) {
            return Ok(self.pour_locked(guard, sink, &key, messages, count, came));
        }
        drop(guard);
        let guard =
            access.lock_to_fill(&[key.slot], false, self.turn.unix_ms(), || vec![key.bytes])?;
        Ok(self.pour_locked(guard, sink, &key, messages, count, came))
    }

    fn pour_locked(
        &mut self,
        mut guard: Guard<'_>,
        sink: &Sink,
        key: &Key<'_>,
        messages: Messages<'_>,
        count: usize,
        came: &mut usize,
    ) -> Result<(), Error> {
        if self.gates & closed::ARMED != 0 {
            self.arm_pour(&mut guard, sink);
        }
        let caller = Caller::of_ingest(DbIndex(sink.db));
        caller.apply_to(&mut guard);
        let (at, settings) = ((caller.db, key), &self.settings.command);
        let result = if sink.kind == Target::List {
            let payloads = messages.map(|(_, payload)| payload);
            list::pour(&mut guard, at, settings, &mut self.tally, payloads).map(|()| count)
        } else {
            let bound = sink.maxlen.map(|max| stream::Bound { count: max.count, exact: max.exact });
            let came = stream::pour(&mut guard, at, settings, self.turn.unix_ms(), bound, messages);
            came.map(|came| came as usize)
        };
        let count = *result.as_ref().unwrap_or(&0);
        if result.is_err() {
            guard.rollback();
        }
        if self.is_watched() && caller.is_monitored && count > 0 {
            self.note_block(&mut guard, sink, count);
        }
        guard.finish();
        *came = count;
        let hold = self.finish_noted(&mut guard);
        self.poured = self.poured.max(hold);
        result.map(|_| ())
    }

    /// DEBUG PANIC-IN-COMMAND means messages, too, as the command that they stand for.
    #[cold]
    fn arm_pour(&mut self, guard: &mut Guard<'_>, sink: &Sink) {
        let name: &[u8] = if sink.kind == Target::List { b"rpush" } else { b"xadd" };
        self.arm(guard, command::lookup(name));
        self.running.fails = false; // a block has no error to reply with: it panics
    }

    /// Leaves a line on a block for whoever monitors.
    #[cold]
    fn note_block(&mut self, guard: &mut Guard<'_>, sink: &Sink, count: usize) {
        let unix_us = self.clock.unix_us(self.turn.now(), self.turn.unix_ms());
        let kind: &[u8] = if sink.kind == Target::List { b"list:" } else { b"stream:" };
        let (to, count) = ([kind, &sink.key].concat(), count.to_string());
        let line = monitors::line(unix_us, sink.db, "ingest", &[b"INGEST", &to, count.as_bytes()]);
        guard.note(Box::new(Notice::Monitor(line)));
    }
}
