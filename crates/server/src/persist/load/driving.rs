//! Loading as worker 0 sees it: it reads the file, keeps the threads supplied, reports progress,
//! and opens the server at the end, or ends it.
//!
//! At the start the keys are built at once. Later the file must first be open and begin like a
//! snapshot, or an append-only file must be found; then World is taken, what is there is removed,
//! and the same follows.

use crate::log;
use crate::persist::load::builder::Rules;
use crate::persist::load::fault::LoadError;
use crate::persist::load::finding::Finding;
use crate::persist::load::loading::{End, Feed, Loading, Stage};
use crate::persist::load::parts::Parts;
use crate::persist::load::pipe::Pipe;
use crate::persist::load::reading::{Read, Reading};
use crate::persist::load::state::{News, Plan, Reload};
use crate::persist::load::{report, threads};
use crate::worker::Worker;
use crate::worker::message::Message;
use crate::worker::retry::Work;
use crate::worker::tasks::FileUser;
use base::sync::Arc;
use base::sync::atomic::Ordering::Acquire;
use driver::{Driver, FileDone, FileOp, FileValue};
use rdb::file::{ScanOptions, Scanner};

const S: u64 = 1_000_000_000;
/// How a snapshot file begins.
const SIGNATURES: [&[u8]; 2] = [b"REDIS", b"VALKEY"];
/// How often the log and a supervisor are told of progress.
const REPORT_NS: u64 = 5 * S;

impl<D: Driver<Message = Message>> Worker<D> {
    /// Begins to load, if a file is to be loaded and this is worker 0.
    pub(crate) fn begin_loading(&mut self) {
        let shared = self.core.shared.clone();
        // Behind the end of loading (`cancel_loading`) nobody would stop its threads.
        if self.core.id != 0 || !shared.load.is_on() || self.core.shutdown.has_begun() {
            return;
        }
        let (now, plan) = (self.core.turn.now(), shared.load.planned());
        shared.load.begin(now, self.core.turn.unix_ms());
        shared.load.keep_producers(self.core.settings.ingest_producers_max);
        self.core.tasks.loadings += 1;
        let ((reading, open), path) = (Reading::begin(plan.path.clone(), 0), plan.path);
        let (parts, stage, first) = match plan.place {
            Some(place) => {
                let (finding, first) = Finding::begin(place, true);
                (Some(Box::new(Parts::of(finding))), Stage::Finding, first)
            }
            None => (None, Stage::Opening, open),
        };
        let loading = Loading {
            path,
            reading,
            feed: Feed::None,
            is_read: false,
            number: self.core.tasks.loadings,
            stage,
            began: now,
            report_at: now,
            parts,
        };
        let token = loading.token(0);
        self.core.tasks.loading = Some(Box::new(loading));
        if stage == Stage::Opening {
            self.start_threads();
        }
        self.driver.file(FileUser::Loading.token(token), first);
        self.core.timers.is_busy = true; // progress is reported
    }

    /// Starts the threads that build the keys of a snapshot.
    fn start_threads(&mut self) {
        let shared = self.core.shared.clone();
        let plan = shared.load.planned();
        let count = threads::count(shared.workers.len());
        let pipe = Arc::new(Pipe::new(count));
        let rules = Rules {
            replaces: plan.reload.is_some(),
            now: self.core.turn.unix_ms(),
            // The file of commands says when a key is removed: DEBUG RELOAD beside one leaves that
            // to whoever finds the key.
            keeps_due: plan.place.is_some() || shared.keyspace.journal().is_recording(),
        };
        threads::start(&pipe, count, &mut self.access, &shared, rules);
        if let Some(loading) = &mut self.core.tasks.loading {
            loading.feed = Feed::Snapshot(pipe);
        }
    }

    /// Starts the threads that build the keys of a file which is open.
    pub(crate) fn start_builders(&mut self) {
        self.start_threads();
        self.begin_building();
    }

    /// An operation on the file has completed.
    pub(crate) fn on_loading_file(&mut self, done: FileDone) {
        let of_token = FileUser::number(done.token);
        let current = self.core.tasks.loading.as_mut();
        let Some((number, loading)) = current.and_then(|l| Some((l.number_of(of_token)?, l)))
        else {
            return self.close_late(&done);
        };
        if matches!(loading.stage, Stage::Finding | Stage::Mending) {
            return self.on_parts_file(done.outcome);
        }
        let load = &self.core.shared.load;
        match loading.reading.on_done(number, done.outcome) {
            Ok(Read::Opened(_)) if loading.parts.is_some() => self.on_part_opened(),
            Ok(Read::Opened(len)) => {
                load.set_total(len);
                if load.planned().reload.is_none() {
                    self.begin_building();
                } else if len == 0 {
                    self.fail_loading(LoadError::no_snapshot());
                }
            }
            Ok(Read::Block) => self.take_blocks(),
            Err(error) => self.fail_loading(error),
        }
        self.tend_loading();
    }

    /// The file at hand cannot be loaded.
    fn fail_loading(&mut self, error: LoadError) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if let Err(error) = loading.feed.fail(error) {
            self.end_part(Err(error)); // without threads nobody says that they have ended
        }
    }

    /// An operation of a loading which is over, or of a file before, has completed. If that could
    /// not start its threads, its file was being opened when it ended.
    fn close_late(&mut self, done: &FileDone) {
        if let Ok(FileValue::Opened { file, .. }) = done.outcome {
            self.driver.file(done.token, FileOp::Close { file });
        }
    }

    /// Passes on what was read.
    fn take_blocks(&mut self) {
        while let Some(loading) = &mut self.core.tasks.loading
            && let Some(block) = loading.reading.take()
        {
            if loading.stage == Stage::Opening {
                let is_snapshot = SIGNATURES.iter().any(|signature| block.starts_with(signature));
                if loading.parts.is_some() {
                    self.begin_feed(is_snapshot);
                } else if is_snapshot {
                    loading.stage = Stage::Emptying;
                } else {
                    return self.fail_loading(LoadError::no_snapshot());
                }
            }
            if let Some(loading) = &self.core.tasks.loading {
                loading.feed.add(block);
            }
        }
    }

    /// Takes World for a moment, before the first key is built by a server which has data. Behind
    /// it, no worker executes anything that needs the data.
    #[inline]
    pub(crate) fn empty_for_loading(&mut self) {
        if self.core.tasks.is_emptying() {
            self.try_empty();
        }
    }

    #[cold]
    fn try_empty(&mut self) {
        let now = self.core.turn.now();
        if self.core.tasks.retries.next(Work::Load, true, now).is_some_and(|at| at > now) {
            return;
        }
        if self.access.try_world().is_err() {
            return self.core.tasks.retries.postpone(Work::Load, now);
        }
        let plan = self.core.shared.load.planned();
        if plan.reload.is_some_and(|reload| reload.flushes) {
            self.access.set_exempt_from_records(true);
            let mut guard = self.access.world(self.core.turn.unix_ms());
            guard.flush_all();
            guard.finish();
            drop(guard);
            self.access.set_exempt_from_records(false);
            self.core.shared.load.forget_functions();
            self.core.tasks.is_reclaiming = true;
        }
        self.access.open_world();
        self.core.release_reload();
        if plan.place.is_some() { self.begin_part(0) } else { self.begin_building() }
    }

    fn begin_building(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        loading.stage = Stage::Building;
        let Feed::Snapshot(pipe) = &loading.feed else { return };
        let shared = &self.core.shared;
        let config = shared.config.lock().expect("no panic while the configuration is held");
        pipe.begin(Scanner::new(ScanOptions {
            length: Some(loading.reading.len()),
            verify: config.rdb_checksum,
            databases: Some(u32::from(config.command.databases)),
            skip_unknown: config.rdb_skip_unknown,
        }));
    }

    /// Reads more, or ends loading once the threads have ended.
    pub(crate) fn tend_loading(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if let Some(end) = loading.feed.end() {
            return if loading.parts.is_some() {
                self.end_part(end);
            } else {
                self.end_loading(end);
            };
        }
        while let Some((number, op)) = loading.reading.next(loading.feed.queued()) {
            self.driver.file(FileUser::Loading.token(loading.token(number)), op);
        }
        if loading.reading.is_complete() && !loading.is_read {
            loading.is_read = true;
            loading.feed.end_of_file();
        }
    }

    /// Reports progress now and then. Called by housekeeping.
    pub(crate) fn report_loading(&mut self) {
        let now = self.core.turn.now();
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if now < loading.report_at {
            return;
        }
        let is_first = loading.report_at == loading.began;
        loading.report_at = now.plus(REPORT_NS);
        let load = &self.core.shared.load;
        let Some(progress) = load.progress(now) else { return };
        if !is_first {
            log::notice(format_args!("Loading {}: {progress}", loading.path.display()));
        }
        if let Err(why) = load.tell(News::Loading(&progress)) {
            log::warning(format_args!("{why}"));
        }
    }

    /// The server ends while it loads: the threads end at their next key.
    pub(crate) fn cancel_loading(&mut self) {
        self.core.tasks.loading = None;
    }

    fn end_loading(&mut self, end: Result<End, LoadError>) {
        let Some(mut loading) = self.core.tasks.loading.take() else { return };
        if let Some(close) = loading.reading.close() {
            self.driver.file(FileUser::Loading.token(loading.token(0)), close);
        }
        let shared = self.core.shared.clone();
        let (load, Plan { path, reload, .. }) = (&shared.load, shared.load.planned());
        load.join();
        report::unread(&path, load);
        let ended = match end {
            Ok(End::Commands(_)) => unreachable!("only parts of an append-only file are commands"),
            Ok(End::Snapshot(summary)) => {
                let seconds = self.core.clock.now().since(loading.began) as f64 / S as f64;
                report::done(&path, load.loaded(), &summary, load.functions().len(), seconds);
                self.restore_producers();
                if reload.is_none_or(|reload| reload.flushes) {
                    // What was loaded is saved already.
                    shared.saves.forget_changes(shared.keyspace.changes());
                }
                load.become_ready()
            }
            Err(e) => Err(format!("{} cannot be loaded: {}", path.display(), e.text)),
        };
        match ended {
            Ok(()) => match reload {
                None => log::notice(format_args!("Ready to accept connections")),
                Some(reload) => {
                    log::notice(format_args!("DB reloaded by DEBUG RELOAD"));
                    self.end_reload(reload, None);
                }
            },
            Err(why) => {
                let kept = reload.filter(|_| loading.stage == Stage::Opening);
                self.fail_load(kept, why, command::Error::ReloadFailed);
            }
        }
    }

    /// A file cannot be loaded. The server ends: a part of the data must neither be saved nor be
    /// changed further. `kept`: nothing was changed for this one, which is answered.
    pub(crate) fn fail_load(&mut self, kept: Option<Reload>, why: String, error: command::Error) {
        let shared = self.core.shared.clone();
        let Some(reload) = kept.filter(|_| !shared.shutting_down.load(Acquire)) else {
            return self.fail_start(why);
        };
        log::warning(format_args!("{why}"));
        shared.load.give_up();
        self.core.release_reload();
        self.end_reload(reload, Some(error));
    }

    /// DEBUG RELOAD or DEBUG LOADAOF is over.
    pub(crate) fn end_reload(&mut self, reload: Reload, error: Option<command::Error>) {
        let (worker, conn) = reload.asker;
        self.core.shared.post(worker, Message::Reloaded(conn, error));
        self.follow_appendonly(); // CONFIG SET has waited
    }

    /// The producers that the files have kept are known from here on.
    pub(crate) fn restore_producers(&mut self) {
        let kept = self.core.shared.load.take_producers();
        if !kept.is_empty() {
            log::notice(format_args!("Numbers of {} producers of ingest are kept", kept.len()));
            self.core.shared.ingest.producers.restore(kept, self.core.turn.now());
        }
    }

    /// The data is there, and the append-only file has begun: the server serves its clients.
    pub(crate) fn open_server(&mut self) {
        let shared = self.core.shared.clone();
        match shared.load.become_ready() {
            Ok(()) => log::notice(format_args!("Ready to accept connections")),
            Err(why) => self.fail_start(why),
        }
    }

    /// The start has failed: the server ends.
    pub(crate) fn fail_start(&mut self, why: String) {
        let shared = &self.core.shared;
        if !shared.shutting_down.load(Acquire) {
            log::warning(format_args!("{why}"));
            shared.load.fail(why);
            shared.begin_shutdown();
        }
    }
}
