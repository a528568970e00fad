//! The append-only file as worker 0 drives it: once a turn it takes what was handed over, starts
//! operations on files, and publishes what is durable.

use crate::log;
use crate::persist::journal::writer::{Fsync, Part, Terms};
use crate::persist::journal::{BACKLOG_BYTES_MAX, Journal};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::MonoNs;
use base::sync::Arc;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use driver::{Driver, FileDone};
use observe::SpikeEvent;

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
        let timestamps = self.settings.aof_timestamp_enabled;
        Terms { fsync, timestamps, spares_syncs, keep: self.settings.aof_history }
    }

    /// Takes what was handed over, and does what can be done with it. `unix_ms` reads the clock.
    pub(crate) fn drive_journal(&mut self, unix_ms: impl FnOnce() -> i64) {
        let Some(mut journal) = self.tasks.journal.take() else { return };
        let terms = self.journal_terms();
        let shared = Arc::clone(&self.shared);
        let handover = shared.keyspace.journal();
        handover.take(&mut journal.taken);
        for batch in journal.taken.drain(..) {
            journal.writer.push(batch);
        }
        // Read behind that: nothing which was taken is younger.
        let (now, unix_ms) = (self.turn.now(), unix_ms());
        let is_ending = self.shutdown.has_begun() || journal.is_ending;
        journal.writer.proceed(terms, now, unix_ms, is_ending);
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
        let advice = journal.writer.take_advice();
        self.tasks.file_ops.extend(advice.map(|op| (FileUser::JournalUnawaited, op)));
        let next = journal.writer.next_wake(terms, now);
        let patience = self.watch_trouble(&mut journal);
        let times = [next, Some(journal.check_at), patience];
        journal.wake_at = times.into_iter().flatten().min();
        self.publish_journal(&journal, terms);
        if std::mem::take(&mut journal.writer.is_history_too_small) {
            log::warning(format_args!(
                "aof-history is too small for what this rewrite of the append-only file has \
                 replaced: nothing of it is kept"
            ));
        }
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
        let is_whole = writer.is_complete() && !journal.is_ending;
        let is_awaited = status.publish_synced(is_whole.then(|| writer.synced()));
        if shared.safe_seq.swap(safe, Release) != safe || is_news || is_awaited {
            shared.post_others(self.id, || Message::Released);
        }
        if is_awaited {
            shared.post(self.id, Message::Released); // its clients, too, in a turn of their own
        }
        let was_holding = status.holds_writes.load(Relaxed);
        let bound = if was_holding { BACKLOG_BYTES_MAX / 2 } else { BACKLOG_BYTES_MAX };
        if (backlog > bound) != was_holding {
            status.holds_writes.store(!was_holding, Relaxed);
            status.held.fetch_add(u64::from(!was_holding), Relaxed);
        }
        self.note_trouble(journal);
    }

    /// An operation is about to complete: LATENCY has those which took long, under the names that
    /// Redis gives them.
    fn watch_latency(&self, journal: &Journal, part: Part) {
        let part = journal.writer.counts_as(part);
        let ns = journal.writer.took_ns(part, self.turn.now());
        if !self.settings.is_spike(ns) {
            return;
        }
        match part {
            Part::Write => {
                let is_saving = self.shared.saves.state().run.is_some();
                self.record_spike(SpikeEvent::AofWrite, ns);
                self.record_spike(
                    match (journal.writer.is_syncing(), is_saving) {
                        (true, _) => SpikeEvent::AofWritePendingFsync,
                        (_, true) => SpikeEvent::AofWriteActiveChild,
                        _ => SpikeEvent::AofWriteAlone,
                    },
                    ns,
                );
            }
            Part::Sync if self.journal_terms().fsync == Fsync::Always => {
                self.record_spike(SpikeEvent::AofFsyncAlways, ns);
            }
            Part::Sync => {}
            Part::Step => self.record_spike(SpikeEvent::AofRename, ns),
        }
    }

    /// Notes whether the disk fails for longer than readers wait. Returns when that is so, if it is
    /// not yet.
    fn watch_trouble(&self, journal: &mut Journal) -> Option<MonoNs> {
        let now = self.turn.now();
        let was_failing = journal.trouble_since.is_some();
        journal.trouble_since = match journal.writer.trouble() {
            Some(_) => journal.trouble_since.or(Some(now)),
            None => None,
        };
        let since = journal.trouble_since;
        let wait_ns = self.settings.disk_wait_ms * 1_000_000;
        let until = since.filter(|_| wait_ns > 0).map(|since| since.plus(wait_ns));
        let is_stuck = until.is_some_and(|until| until <= now);
        let was_stuck = self.shared.journal.is_stuck.swap(is_stuck, Relaxed);
        if (was_failing, was_stuck) != (since.is_some(), is_stuck) {
            self.shared.post_others(self.id, || Message::Released);
        }
        until.filter(|until| *until > now)
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
        let driver = &self.driver;
        self.core.drive_journal(|| driver.unix_ms().0);
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
        let Some(mut journal) = self.core.tasks.journal.take() else { return };
        self.core.watch_latency(&journal, part);
        journal.writer.complete(part, done, now);
        self.core.tasks.journal = Some(journal);
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
