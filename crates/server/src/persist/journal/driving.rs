//! The append-only file as worker 0 drives it: once a turn it takes what was handed over, starts
//! operations on files, and publishes what is durable.

use crate::log;
use crate::persist::journal::writer::{Fsync, Part, Terms};
use crate::persist::journal::{BACKLOG_BYTES_MAX, Journal};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::sync::Arc;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use driver::{Driver, FileDone};

impl Core {
    /// The settings that the writer follows.
    pub(crate) fn journal_terms(&self) -> Terms {
        let fsync = match self.settings.appendfsync {
            config::AppendFsync::Always => Fsync::Always,
            config::AppendFsync::EverySecond => Fsync::EverySecond,
            config::AppendFsync::No => Fsync::No,
        };
        let spares_syncs =
            self.settings.no_appendfsync_on_rewrite && self.shared.saves.state().run.is_some();
        Terms { fsync, timestamps: self.settings.aof_timestamp_enabled, spares_syncs }
    }

    /// Takes what was handed over, and does what can be done with it.
    pub(crate) fn drive_journal(&mut self) {
        let Some(mut journal) = self.tasks.journal.take() else { return };
        let terms = self.journal_terms();
        let shared = Arc::clone(&self.shared);
        let handover = shared.keyspace.journal();
        handover.take(&mut journal.taken);
        for batch in journal.taken.drain(..) {
            journal.writer.push(batch);
        }
        let (now, unix_s) = (self.turn.now(), self.turn.unix_ms().0 / 1000);
        let is_ending = self.shutdown.has_begun() || journal.is_ending;
        journal.writer.proceed(terms, now, unix_s, is_ending);
        if terms.fsync == Fsync::No && !is_ending {
            journal.writer.forget_written();
        }
        for batch in journal.writer.take_done() {
            handover.give_back(batch);
        }
        let user = |part| match part {
            Part::Step => FileUser::JournalStep,
            Part::Write => FileUser::JournalWrite,
            Part::Sync => FileUser::JournalSync,
        };
        let ops = journal.writer.take_ops().into_iter();
        self.tasks.file_ops.extend(ops.map(|(part, op)| (user(part), op)));
        let next = journal.writer.next_wake(terms);
        journal.wake_at = [next, Some(journal.check_at)].into_iter().flatten().min();
        self.publish_journal(&journal, terms);
        self.tasks.journal = Some(journal);
    }

    /// Publishes what is durable, what is wrong, and whether writers wait.
    fn publish_journal(&mut self, journal: &Journal, terms: Terms) {
        let shared = Arc::clone(&self.shared);
        let (status, writer) = (&shared.journal, &journal.writer);
        let backlog = status.publish(journal, shared.keyspace.journal().bytes(), self.turn.now());
        let holds = terms.fsync == Fsync::Always && writer.is_complete();
        let safe = if holds { writer.durable().0 } else { u64::MAX };
        let is_news = status.holds_replies.swap(holds, Relaxed) != holds;
        if shared.safe_seq.swap(safe, Release) != safe || is_news {
            shared.post_others(self.id, || Message::Released);
        }
        let syncs = terms.fsync != Fsync::No && writer.is_complete() && !journal.is_ending;
        let fsynced = if syncs { writer.fsynced() } else { None };
        if status.publish_fsynced(fsynced) {
            shared.post_others(self.id, || Message::Released);
            shared.post(self.id, Message::Released);
        }
        let was_holding = status.holds_writes.load(Relaxed);
        let bound = if was_holding { BACKLOG_BYTES_MAX / 2 } else { BACKLOG_BYTES_MAX };
        if (backlog > bound) != was_holding {
            status.holds_writes.store(!was_holding, Relaxed);
            status.held.fetch_add(u64::from(!was_holding), Relaxed);
        }
        self.note_trouble(journal);
    }

    /// Writes that the disk fails, or works again, to the log once.
    fn note_trouble(&self, journal: &Journal) {
        let status = &self.shared.journal;
        let trouble = journal.writer.trouble();
        if trouble.is_some() == status.has_trouble() {
            return;
        }
        status.set_trouble(trouble);
        match (trouble, status.trouble()) {
            (Some(trouble), Some(why)) => log::warning(format_args!(
                "cannot {} in {}: {why}. Writes are refused until it can be written again; \
                 nothing that was acknowledged is lost",
                trouble.what,
                journal.writer.folder().display()
            )),
            _ => log::notice(format_args!("The append-only file is written again")),
        }
    }

    /// The next batch need not wake this worker, which looks for it at the end of its turn.
    #[inline]
    pub(crate) fn wake_journal(&self) {
        if self.tasks.journal.is_some() {
            self.shared.keyspace.journal().stay_awake();
        }
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// One step of the append-only file, at the end of a turn of worker 0.
    #[inline]
    pub(crate) fn step_journal(&mut self) {
        if self.core.tasks.journal.is_some() {
            self.step_open_journal();
        }
    }

    #[cold]
    fn step_open_journal(&mut self) {
        self.core.drive_journal();
        self.check_journal_stage();
        // Between this and the wait nothing is recorded here; what others record wakes it. If there
        // is something already, the next turn takes it: it begins at once.
        if let Some(journal) = &mut self.core.tasks.journal
            && !self.core.shared.keyspace.journal().sleep()
        {
            journal.wake_at = Some(self.core.turn.now());
        }
    }

    /// An operation on its files has completed.
    #[cold]
    pub(crate) fn on_journal_file(&mut self, part: Part, done: FileDone) {
        let now = self.core.turn.now();
        let Some(journal) = &mut self.core.tasks.journal else { return };
        journal.writer.complete(part, done, now);
    }

    /// True once nothing of the journal is left to be written: the worker may end.
    pub(crate) fn is_journal_written(&self) -> bool {
        let others = self.core.shared.stopped_workers.load(Acquire);
        self.core.tasks.journal.as_ref().is_none_or(|journal| {
            others >= self.core.shared.workers.len()
                && self.core.shared.keyspace.journal().bytes() == 0
                && journal.writer.is_idle()
        })
    }
}
