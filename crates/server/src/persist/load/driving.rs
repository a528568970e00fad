//! Loading as worker 0 sees it: it reads the file, keeps the threads supplied, reports progress,
//! and opens the server at the end, or ends it.

use crate::log;
use crate::persist::load::fault::LoadError;
use crate::persist::load::loading::Loading;
use crate::persist::load::pipe::Pipe;
use crate::persist::load::reading::{Read, Reading};
use crate::persist::load::state::News;
use crate::persist::load::{report, threads};
use crate::worker::Worker;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::sync::Arc;
use base::sync::atomic::Ordering::Acquire;
use driver::{Driver, FileDone};
use rdb::file::{ScanOptions, Scanner, Summary};

const S: u64 = 1_000_000_000;
/// How often the log and a supervisor are told of progress.
const REPORT_NS: u64 = 5 * S;

impl<D: Driver<Message = Message>> Worker<D> {
    /// Begins to load, if a file is to be loaded and this is worker 0.
    pub(crate) fn begin_loading(&mut self) {
        let shared = self.core.shared.clone();
        if self.core.id != 0 || !shared.load.is_on() {
            return;
        }
        let (now, unix_ms) = (self.core.turn.now(), self.core.turn.unix_ms());
        let (reading, open) = Reading::begin(shared.load.path());
        let count = threads::count(shared.workers.len());
        let pipe = Arc::new(Pipe::new(count));
        shared.load.begin(now, unix_ms);
        threads::start(&pipe, count, &mut self.access, &shared, unix_ms);
        let (is_read, began, report_at) = (false, now, now);
        self.core.tasks.loading =
            Some(Box::new(Loading { reading, pipe, is_read, began, report_at }));
        self.driver.file(FileUser::Loading.token(0), open);
    }

    /// An operation on the file has completed.
    pub(crate) fn on_loading_file(&mut self, done: FileDone) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        match loading.reading.on_done(FileUser::number(done.token), done.outcome) {
            Ok(Read::Opened(len)) => {
                let shared = &self.core.shared;
                shared.load.set_total(len);
                let config =
                    shared.config.lock().expect("no panic while the configuration is held");
                loading.pipe.begin(Scanner::new(ScanOptions {
                    length: Some(len),
                    verify: config.rdb_checksum,
                    databases: Some(u32::from(config.command.databases)),
                    skip_unknown: config.rdb_skip_unknown,
                }));
            }
            Ok(Read::Block) => {
                while let Some(block) = loading.reading.take() {
                    loading.pipe.add(block);
                }
            }
            Err(error) => loading.pipe.fail(error),
        }
        self.tend_loading();
    }

    /// Reads more, or ends loading once the threads have ended.
    pub(crate) fn tend_loading(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if let Some(end) = loading.pipe.end() {
            return self.end_loading(end);
        }
        while let Some((number, op)) = loading.reading.next(loading.pipe.queued()) {
            self.driver.file(FileUser::Loading.token(number), op);
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
            log::notice(format_args!("Loading {}: {progress}", load.path().display()));
        }
        if let Err(why) = load.tell(News::Loading(&progress)) {
            log::warning(format_args!("{why}"));
        }
    }

    /// The server ends while it loads: the threads end at their next key.
    pub(crate) fn cancel_loading(&mut self) {
        if let Some(loading) = self.core.tasks.loading.take() {
            loading.pipe.cancel();
        }
    }

    fn end_loading(&mut self, end: Result<Summary, LoadError>) {
        let Some(mut loading) = self.core.tasks.loading.take() else { return };
        if let Some(close) = loading.reading.close() {
            self.driver.file(FileUser::Loading.token(0), close);
        }
        let shared = self.core.shared.clone();
        let (load, path) = (&shared.load, shared.load.path());
        let ended = match end {
            Ok(summary) => {
                let seconds = self.core.clock.now().since(loading.began) as f64 / S as f64;
                report::done(&path, load.loaded(), &summary, load.functions().len(), seconds);
                // What was loaded is saved already.
                shared.saves.forget_changes(shared.keyspace.changes());
                load.become_ready()
            }
            Err(e) => Err(format!("{} cannot be loaded: {}", path.display(), e.text)),
        };
        match ended {
            Ok(()) => log::notice(format_args!("Ready to accept connections")),
            Err(_) if shared.shutting_down.load(Acquire) => {}
            Err(why) => {
                log::warning(format_args!("{why}"));
                load.fail(why);
                shared.begin_shutdown();
            }
        }
    }
}
