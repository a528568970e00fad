//! Loading as worker 0 sees it: it reads the file, keeps the threads supplied, reports progress,
//! and opens the server at the end, or ends it.
//!
//! At the start the keys are built at once. Later the file must first be open and begin like a
//! snapshot; then World is taken, what is there is removed, and the same follows.

use crate::log;
use crate::persist::load::fault::LoadError;
use crate::persist::load::loading::{Loading, Stage};
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
use rdb::file::{ScanOptions, Scanner, Summary};

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
        let (now, unix_ms) = (self.core.turn.now(), self.core.turn.unix_ms());
        let plan = shared.load.planned();
        let (reading, open) = Reading::begin(plan.path);
        let count = threads::count(shared.workers.len());
        let pipe = Arc::new(Pipe::new(count));
        shared.load.begin(now, unix_ms);
        threads::start(&pipe, count, &mut self.access, &shared, plan.reload.is_some(), unix_ms);
        self.core.tasks.loadings += 1;
        let loading = Loading {
            reading,
            pipe,
            is_read: false,
            number: self.core.tasks.loadings,
            stage: Stage::Opening,
            began: now,
            report_at: now,
        };
        self.driver.file(FileUser::Loading.token(loading.token(0)), open);
        self.core.tasks.loading = Some(Box::new(loading));
        self.core.timers.is_busy = true; // progress is reported
    }

    /// An operation on the file has completed.
    pub(crate) fn on_loading_file(&mut self, done: FileDone) {
        let of_token = FileUser::number(done.token);
        let current = self.core.tasks.loading.as_mut();
        let Some((number, loading)) = current.and_then(|l| Some((l.number_of(of_token)?, l)))
        else {
            return self.close_late(&done);
        };
        let load = &self.core.shared.load;
        match loading.reading.on_done(number, done.outcome) {
            Ok(Read::Opened(len)) => {
                load.set_total(len);
                if load.planned().reload.is_none() {
                    self.begin_building();
                } else if len == 0 {
                    loading.pipe.fail(LoadError::no_snapshot());
                }
            }
            Ok(Read::Block) => self.take_blocks(),
            Err(error) => loading.pipe.fail(error),
        }
        self.tend_loading();
    }

    /// An operation of a loading which is over has completed. If that could not start its threads,
    /// its file was being opened when it ended.
    fn close_late(&mut self, done: &FileDone) {
        if let Ok(FileValue::Opened { file, .. }) = done.outcome {
            self.driver.file(done.token, FileOp::Close { file });
        }
    }

    /// Passes on what was read.
    fn take_blocks(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        while let Some(block) = loading.reading.take() {
            if loading.stage == Stage::Opening {
                if !SIGNATURES.iter().any(|signature| block.starts_with(signature)) {
                    return loading.pipe.fail(LoadError::no_snapshot());
                }
                loading.stage = Stage::Emptying;
            }
            loading.pipe.add(block);
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
            let mut guard = self.access.world(self.core.turn.unix_ms());
            guard.flush_all();
            guard.finish();
            drop(guard);
            self.core.shared.load.forget_functions();
            self.core.tasks.is_reclaiming = true;
        }
        self.access.open_world();
        self.core.release_reload();
        self.begin_building();
    }

    fn begin_building(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        loading.stage = Stage::Building;
        let shared = &self.core.shared;
        let config = shared.config.lock().expect("no panic while the configuration is held");
        loading.pipe.begin(Scanner::new(ScanOptions {
            length: Some(loading.reading.len()),
            verify: config.rdb_checksum,
            databases: Some(u32::from(config.command.databases)),
            skip_unknown: config.rdb_skip_unknown,
        }));
    }

    /// Reads more, or ends loading once the threads have ended.
    pub(crate) fn tend_loading(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if let Some(end) = loading.pipe.end() {
            return self.end_loading(end);
        }
        while let Some((number, op)) = loading.reading.next(loading.pipe.queued()) {
            self.driver.file(FileUser::Loading.token(loading.token(number)), op);
        }
        if loading.reading.is_complete() && !loading.is_read {
            loading.is_read = true;
            loading.pipe.end_of_file();
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
            let path = load.planned().path;
            log::notice(format_args!("Loading {}: {progress}", path.display()));
        }
        if let Err(why) = load.tell(News::Loading(&progress)) {
            log::warning(format_args!("{why}"));
        }
    }

    /// The server ends while it loads: the threads end at their next key.
    pub(crate) fn cancel_loading(&mut self) {
        self.core.tasks.loading = None;
    }

    fn end_loading(&mut self, end: Result<Summary, LoadError>) {
        let Some(mut loading) = self.core.tasks.loading.take() else { return };
        if let Some(close) = loading.reading.close() {
            self.driver.file(FileUser::Loading.token(loading.token(0)), close);
        }
        let shared = self.core.shared.clone();
        let (load, Plan { path, reload }) = (&shared.load, shared.load.planned());
        load.join();
        let ended = match end {
            Ok(summary) => {
                let seconds = self.core.clock.now().since(loading.began) as f64 / S as f64;
                report::done(&path, load.loaded(), &summary, load.functions().len(), seconds);
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
                    self.answer_reload(reload, None);
                }
            },
            Err(_) if shared.shutting_down.load(Acquire) => {}
            Err(why) => {
                log::warning(format_args!("{why}"));
                if let Some(reload) = reload.filter(|_| loading.stage == Stage::Opening) {
                    load.give_up();
                    self.core.release_reload();
                    return self.answer_reload(reload, Some(command::Error::ReloadFailed));
                }
                load.fail(why);
                shared.begin_shutdown();
            }
        }
    }

    /// Answers the client of DEBUG RELOAD.
    fn answer_reload(&self, reload: Reload, error: Option<command::Error>) {
        let (worker, conn) = reload.asker;
        self.core.shared.post(worker, Message::Reloaded(conn, error));
    }
}
