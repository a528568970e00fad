//! Reads while the append-only file cannot be written, or the disk does not answer, with
//! `appendfsync always`.
//!
//! A reply shows nothing that a crash would undo, so it waits until that is durable (its hold).
//! While the disk fails or hangs that may take for ever. So the gate [`closed::UNWRITTEN`] has
//! every read looked at before its reply is written to the arena:
//!
//! | what it shows | that is so for `disk-wait-ms` | otherwise |
//! |---|---|---|
//! | is durable | is answered | is answered |
//! | is not | is refused: MISCONF | the session waits; the command is run again |
//!
//! A reply which was written before the failure was noticed stays where it is, like those of the
//! writes beside it: its session may have been answered in part.

use crate::execute::call::reads_everything;
use crate::execute::gates::{closed, misconfigured_journal};
use crate::execute::outcome::{Called, Outcome};
use crate::execute::request::Command;
use crate::persist::journal::status::{DiskState, NO_ANSWER};
use crate::sessions::session::{Multi, Suspended};
use crate::worker::core::Core;
use base::SeqNo;
use base::sync::atomic::Ordering::{Acquire, Relaxed};
use command::spec::{Flags, LockClass};
use command::{Done, Error};
use keyspace::{Guard, Mark, Numbers};
use resp::OutBuf;

/// What becomes of a read.
#[derive(Debug)]
pub(crate) enum Shown {
    /// What it shows is durable.
    Yes,
    /// Its session waits.
    Later,
    /// It is refused.
    Never(Error),
}

impl Core {
    pub(super) fn disk_state(&self) -> DiskState {
        let journal = &self.shared.journal;
        DiskState {
            safe: SeqNo(self.shared.safe_seq.load(Acquire)),
            is_unwritten: journal.is_unwritten(),
            is_stuck: journal.is_stuck.load(Relaxed),
        }
    }

    /// Whether a change may be shown now.
    fn shown(&mut self, change: SeqNo) -> Shown {
        let state = self.disk_state();
        if change <= state.safe {
            return Shown::Yes;
        }
        if state.is_stuck {
            let why = self.shared.journal.trouble();
            return Shown::Never(misconfigured_journal(why.as_deref().unwrap_or(NO_ANSWER)));
        }
        self.tasks.disk = Some(state);
        Shown::Later
    }

    /// A command was called while the disk fails: what it has read, or why it was refused, may have
    /// to wait. `mark` is where it began.
    #[cold]
    pub(crate) fn look_at_read(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        command: &Command<'_>,
        mark: Mark,
        called: Result<Called, Error>,
    ) -> Result<Called, Error> {
        let Command { caller, id, args, .. } = *command;
        if self.gates & closed::UNWRITTEN == 0 || !id.spec().flags.contains(Flags::READONLY) {
            return called;
        }
        // What a read has cached (PFCOUNT) would be a change. What was due stays removed.
        guard.rollback_to(mark);
        let has_read = matches!(
            called,
            Ok(Called::Left(Done::Replied | Done::Steps(_)) | Called::Over(Outcome::Done)) | Err(_)
        );
        if caller.is_in_exec() || !has_read {
            return called;
        }
        let mut read = guard.seq();
        if read == Numbers::LATEST || reads_everything(id.spec(), args) {
            read = self.shared.keyspace.numbers().last();
        }
        let shown = self.shown(read);
        if matches!(shown, Shown::Yes) {
            return called;
        }
        // Its reply is dropped. (What was due and was removed stays so.)
        guard.finish();
        guard.forget_seen();
        out.truncate(self.running.reply_from());
        if let Shown::Never(error) = shown {
            return Err(error);
        }
        let s = caller.session(self);
        s.end_turn();
        s.suspend(Suspended::Disk);
        Ok(Called::Over(Outcome::Retry))
    }

    /// A transaction has locked all that it may read, and begins. (It writes nothing: then it would
    /// have been refused.)
    pub(crate) fn look_at_queue(&mut self, guard: &Guard<'_>, multi: &Multi) -> Shown {
        if self.gates & closed::UNWRITTEN == 0 {
            return Shown::Yes;
        }
        let reads = |(id, _): &&(command::CommandId, resp::OwnedRequest)| {
            id.spec().flags.contains(Flags::READONLY)
        };
        let mut reads = multi.queue.iter().filter(reads).peekable();
        if reads.peek().is_none() {
            return Shown::Yes;
        }
        // (DBSIZE locks nothing.)
        let everything = reads.any(|(id, request)| {
            id.spec().lock == LockClass::None || reads_everything(id.spec(), request.args())
        });
        let last = self.shared.keyspace.numbers().last();
        self.shown(if everything { last } else { guard.seq() })
    }
}
