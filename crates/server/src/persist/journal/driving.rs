//! The append-only file as worker 0 drives it: once a turn it takes what was handed over, starts
//! operations on files, and publishes what is durable.

use crate::log;
use crate::persist::journal::writer::{Fsync, Part, Terms, Writer};
use crate::persist::journal::{Journal, Whole};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::MonoNs;
use base::sync::Arc;
use base::sync::atomic::Ordering::{Relaxed, SeqCst};
use config::AppendFsync;
use config::load::io_text;
use driver::{Driver, FileDone, FileError, FileValue};
use observe::SpikeEvent;

/// The part of `disk-wait-ms` behind which an operation counts as a hang: from then on a read is
/// looked at before its reply is written, which cannot be taken back.
const HANG_PART: u64 = 10;

impl Core {
    /// The settings that the writer follows.
    pub(crate) fn journal_terms(&self) -> Terms {
        let fsync = match self.settings.appendfsync {
            AppendFsync::Always => Fsync::Always,
            AppendFsync::EverySecond => Fsync::EverySecond,
            AppendFsync::No => Fsync::No,
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
        journal.take(handover);
        // Read behind that: nothing which was taken is younger.
        let (now, unix_ms) = (self.turn.now(), unix_ms());
        // (So does DEBUG LOADAOF, whose file must have everything.)
        let is_ending =
            self.shutdown.has_begun() || journal.is_ending || self.tasks.aof_asker.is_some();
        journal.writer.proceed(terms, now, unix_ms, is_ending);
        if terms.fsync == Fsync::No && !is_ending {
            journal.writer.forget_written();
        }
        for batch in journal.writer.take_done() {
            handover.give_back(batch);
        }
        let user = |part| match part {
            Part::Step => FileUser::JournalStep,
            Part::Takeover => FileUser::JournalTakeover,
            Part::Write => FileUser::JournalWrite,
            Part::Sync => FileUser::JournalSync,
        };
        let ops = journal.writer.take_ops().into_iter();
        self.tasks.file_ops.extend(ops.map(|(part, op)| (user(part), op)));
        let advice = journal.writer.take_advice();
        self.tasks.file_ops.extend(advice.map(|op| (FileUser::JournalUnawaited, op)));
        let next = journal.writer.next_wake(terms, now);
        let patience = self.watch_trouble(&mut journal, terms);
        let late = journal.writer.late_at(terms).filter(|at| *at > now);
        let times = [next, Some(journal.check_at), patience, late];
        journal.wake_at = times.into_iter().flatten().min();
        self.publish_journal(&journal, terms);
        self.follow_wholeness(&mut journal, terms);
        self.note_takeover(&mut journal);
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
        shared.stream.publish(writer.offset());
        let backlog = status.publish(journal, shared.keyspace.journal().bytes(), self.turn.now());
        let (holds, is_changed) = self.publish_durable(writer, terms);
        let is_news = status.holds_replies.swap(holds, Relaxed) != holds;
        let is_whole = writer.is_complete() && !journal.is_ending;
        let is_awaited = status.publish_synced(is_whole.then(|| writer.synced()));
        if is_changed || is_news || is_awaited {
            shared.post_others(self.id, || Message::Released);
        }
        if is_awaited {
            shared.post(self.id, Message::Released); // its clients, too, in a turn of their own
        }
        // (While the disk fails writes are refused.)
        let late_at = writer.late_at(terms).filter(|_| writer.trouble().is_none());
        let is_late = late_at.is_some_and(|at| at <= self.turn.now());
        status.hold_writes(if writer.trouble().is_none() { backlog } else { 0 }, is_late);
        status.is_lost.store(writer.is_lost(), Relaxed);
        self.note_trouble(journal);
    }

    /// Publishes up to which number replies may leave. Returns whether they are held at all, and
    /// whether the number is another one.
    fn publish_durable(&self, writer: &Writer, terms: Terms) -> (bool, bool) {
        let safe_seq = &self.shared.safe_seq;
        let publish = |safe: u64| safe_seq.swap(safe, SeqCst) != safe;
        if !writer.is_complete() {
            return (false, publish(u64::MAX));
        }
        let durable = writer.durable().0;
        if terms.fsync == Fsync::Always {
            return (true, publish(durable));
        }
        if !self.shared.are_replies_held() {
            return (false, false);
        }
        // They are, by a CONFIG SET that this worker has not followed yet, or has just followed.
        let config = self.shared.config.lock().expect("no panic while the configuration is held");
        let holds = config.appendfsync == AppendFsync::Always;
        (holds, publish(if holds { durable } else { u64::MAX }))
    }

    /// Finds out when everything that was acknowledged is in the files. Workers hold replies once
    /// they have passed a fence behind the end of the first base; what they had acknowledged
    /// before that has a number by then, and is whole when that is durable.
    fn follow_wholeness(&mut self, journal: &mut Journal, terms: Terms) {
        let before = journal.whole;
        if journal.whole == Whole::No && journal.writer.is_complete() {
            journal.whole = if terms.fsync == Fsync::Always && !journal.opens_server {
                self.publish_fence();
                Whole::Fence(self.shared.keyspace.fences().latest())
            } else {
                Whole::Yes // nobody was promised more, or nobody is served yet
            };
        }
        if let Whole::Fence(no) = journal.whole
            && self.shared.keyspace.fences().passed() >= no
        {
            journal.whole = Whole::Behind(self.shared.keyspace.numbers().last());
        }
        if let Whole::Behind(number) = journal.whole
            && (journal.writer.durable() >= number
                || journal.is_flushed(self.shared.keyspace.journal()))
        {
            journal.whole = Whole::Yes;
        }
        if journal.whole != before {
            self.shared
                .journal
                .is_whole
                .store(journal.whole == Whole::Yes && !journal.is_ending, Relaxed);
        }
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
            Part::Step | Part::Takeover => self.record_spike(SpikeEvent::AofRename, ns),
        }
    }

    /// Notes whether the disk fails, or does not answer, and whether it is so for longer than
    /// readers wait. Returns when that changes although nothing completes.
    fn watch_trouble(&self, journal: &mut Journal, terms: Terms) -> Option<MonoNs> {
        let (now, status) = (self.turn.now(), &self.shared.journal);
        let was_failing = journal.trouble_since.is_some();
        journal.trouble_since = match journal.writer.trouble() {
            Some(_) => journal.trouble_since.or(Some(now)),
            None => None,
        };
        let wait_ns = self.settings.disk_wait_ms * 1_000_000;
        let watches_answers = terms.fsync == Fsync::Always && wait_ns > 0;
        let answers_since = journal.writer.in_flight_since().filter(|_| watches_answers);
        let hangs_at = answers_since.map(|since| since.plus(wait_ns / HANG_PART));
        let hangs = hangs_at.is_some_and(|at| at <= now);
        let since = journal.trouble_since.or(answers_since);
        let stuck_at = since.filter(|_| wait_ns > 0).map(|since| since.plus(wait_ns));
        let is_stuck = stuck_at.is_some_and(|at| at <= now);
        let was_stuck = status.is_stuck.swap(is_stuck, Relaxed);
        let did_hang = status.set_hangs(hangs);
        let is_failing = journal.trouble_since.is_some();
        if (was_failing, was_stuck, did_hang) != (is_failing, is_stuck, hangs) {
            self.shared.post_others(self.id, || Message::Released);
        }
        [hangs_at, stuck_at].into_iter().flatten().filter(|at| *at > now).min()
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
                 everything that was acknowledged is in memory or in the file",
                trouble.what,
                journal.writer.folder().display()
            )),
            _ => log::notice(format_args!("The append-only file is written again")),
        }
    }

    /// Writes to the log once that a base cannot take over, or that it has after all.
    fn note_takeover(&self, journal: &mut Journal) {
        let trouble = journal.writer.takeover_trouble();
        if trouble.is_some() == journal.takeover_fails {
            return;
        }
        journal.takeover_fails = trouble.is_some();
        self.shared.journal.rewrite_failed.store(trouble.is_some(), Relaxed);
        match trouble {
            Some(trouble) => log::warning(format_args!(
                "Background AOF rewrite: cannot {} in {}: {}. It is tried again every second; \
                 until then the files of before are kept and written",
                trouble.what,
                journal.writer.folder().display(),
                io_text(&trouble.errno.into())
            )),
            None => log::notice(format_args!("Background AOF rewrite: its base has taken over")),
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
        self.load_append_only();
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

    /// Whether the file still has its name is known.
    #[cold]
    pub(crate) fn on_journal_look(&mut self, outcome: Result<FileValue, FileError>) {
        let now = self.core.turn.now();
        if let Some(journal) = &mut self.core.tasks.journal {
            journal.writer.on_look(outcome, now);
        }
    }
}
