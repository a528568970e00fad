//! How the append-only file begins and ends, and how it is rewritten.
//!
//! | what | how |
//! |---|---|
//! | the server starts, the folder was loaded | `resume`: a new segment behind the others |
//! | the server starts with an empty folder | a rewrite, before clients are served |
//! | CONFIG SET appendonly yes | a rewrite, while clients are served |
//! | BGREWRITEAOF, or it has grown enough | a rewrite |
//! | its folder is gone | a rewrite, while writes are refused |
//! | CONFIG SET appendonly no | recording ends at a cut; what was recorded is written |
//!
//! A rewrite is a save whose file is the new base. At its moment, under World, the journal is cut:
//! what is recorded behind it goes into a new segment. So nothing is written twice, and no client
//! waits. The manifest names the base and that segment once the base is complete.

use crate::boot::replication_id;
use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::log;
use crate::persist::journal::steps::Steps;
use crate::persist::journal::writer::Writer;
use crate::persist::journal::{Journal, Whole};
use crate::persist::load::finding::{Finding, Next};
use crate::persist::load::folder::{Found, Place};
use crate::persist::save::Running;
use crate::persist::save::status::{Wanted, Why};
use crate::persist::save::writing::Failure;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::retry::Work;
use crate::worker::tasks::FileUser;
use base::SeqNo;
use base::sync::Arc;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use command::Error;
use config::load::io_text;
use driver::{Driver, FileError, FileOp, FileValue};
use journal::manifest::BaseFormat;
use journal::{Extent, Moment};
use resp::OutBuf;
use rustix::io::Errno;
use std::path::PathBuf;

/// How often the size of the file is compared with that of its base, and whether it is there.
const CHECK_NS: u64 = 1_000_000_000;
/// How long behind a failed begin the next one is tried.
const AGAIN_NS: u64 = 5_000_000_000;
/// The number of a cut in the journal; which one it is follows from the order.
const CUT: u32 = 1;

/// Where the base of a rewrite is written to.
pub(crate) struct BasePlace {
    pub folder: PathBuf,
    pub name: PathBuf,
    /// The number of the cut and its time, and where the stream of replication is there.
    pub extent: Extent,
    pub format: BaseFormat,
}

const STARTED: &str = "Background append only file rewriting started";
const SCHEDULED: &str = "Background append only file rewriting scheduled";

impl Core {
    pub(crate) fn is_appendonly(&self) -> bool {
        self.shared.config.lock().expect("no panic while the configuration is held").appendonly
    }

    /// The stream of replication has another id, from the next record on.
    pub(crate) fn follow_replication_id(&mut self) {
        // (What is left of one which ends is of the stream of before.)
        if let Some(journal) = self.tasks.journal.as_mut().filter(|journal| !journal.is_ending) {
            journal.writer.rename(self.shared.stream.shown().position.id);
        }
    }

    /// `aof-use-rdb-preamble`.
    fn base_format(&self) -> BaseFormat {
        let config = self.shared.config.lock().expect("no panic while the configuration is held");
        if config.aof_base_is_rdb { BaseFormat::Rdb } else { BaseFormat::Commands }
    }

    /// A writer for the folder that was found, whose first number is the next one.
    fn new_journal(&mut self, found: Found, opens_server: bool) -> Box<Journal> {
        // The files may be of another server, which wrote no numbers.
        let numbers = self.shared.keyspace.numbers();
        numbers.resume_behind(SeqNo(found.history.last_number()));
        let next = SeqNo(numbers.last().0 + 1);
        let stream = &self.shared.stream;
        let position = if opens_server {
            stream.resume(found.position)
        } else {
            stream.rename(replication_id(|| self.tally.draw()))
        };
        Box::new(Journal {
            writer: Writer::new(found, next, position),
            whole: Whole::No,
            taken: Vec::new(),
            opens_server,
            is_ending: false,
            wake_at: None,
            trouble_since: None,
            takeover_fails: false,
            check_at: self.turn.now(),
        })
    }

    /// The append-only file is to be rewritten. False if that is wanted or under way already.
    pub(crate) fn want_rewrite(&self) -> bool {
        let wanted = Wanted { worker: 0, why: Why::Rewrite, asker: None };
        let is_free = !self.shared.journal.is_rewriting.load(Relaxed);
        let is_new = is_free && self.shared.saves.want(wanted);
        if is_new {
            self.shared.journal.is_scheduled.store(true, Relaxed);
            self.claim_next_save();
        }
        is_new
    }

    /// BGREWRITEAOF. Without an append-only file it makes one, as it would be at this moment.
    ///
    /// # Errors
    /// [`Error::RewriteUnderWay`].
    pub(crate) fn rewrite_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
    ) -> Result<Outcome, Error> {
        let status = &self.shared.journal;
        let is_busy = self.shared.saves.state().run.is_some();
        let is_new = if status.is_on() {
            self.want_rewrite()
        } else {
            let is_new = !status.is_scheduled.swap(true, Relaxed);
            if is_new {
                self.shared.post(0, Message::RewriteAppendOnly);
            }
            is_new
        };
        if !is_new {
            return Err(Error::RewriteUnderWay);
        }
        let text = if is_busy { SCHEDULED } else { STARTED };
        caller.reply(out).simple(text);
        Ok(Outcome::Done)
    }

    /// Behind a failed rewrite nothing more is expected of it.
    pub(crate) fn fail_rewrite(&mut self) {
        let status = &self.shared.journal;
        status.rewrite_failed.store(true, Relaxed);
        status.failures.fetch_add(1, Relaxed);
        status.is_scheduled.store(false, Relaxed);
        let Some(journal) = &mut self.tasks.journal else { return };
        journal.writer.end_rewrite(None, self.turn.now());
        if journal.writer.is_complete() {
            return;
        }
        // Without its first base the folder cannot be loaded: the journal ends.
        journal.is_ending = true;
        // A server that is told to end while it begins has not failed.
        if journal.opens_server && !self.shared.shutting_down.load(Acquire) {
            self.shared.load.fail("the append-only file cannot be begun; see the log".to_owned());
            self.shared.begin_shutdown();
        }
    }

    /// The run of a rewrite is over.
    pub(crate) fn end_rewrite(&mut self, running: &Running, outcome: &Result<u64, Failure>) {
        self.shared.saves.end_rewrite();
        let seconds = self.turn.now().since(running.since) / 1_000_000_000;
        match outcome {
            Ok(bytes) => {
                if let Some(journal) = &mut self.tasks.journal {
                    journal.writer.end_rewrite(Some(*bytes), self.turn.now());
                }
                let status = &self.shared.journal;
                status.rewrite_failed.store(false, Relaxed);
                status.failures.store(0, Relaxed);
                let captured = self.shared.saves.state().last_captured;
                status.last_captured.store(captured, Relaxed);
                status.last_rewrite_s.store(seconds as i64, Relaxed);
                status.rewrites.fetch_add(1, Relaxed);
                log::notice(format_args!(
                    "Background AOF rewrite: the new base is complete, {bytes} bytes"
                ));
            }
            Err(why) => {
                log::warning(format_args!("Background AOF rewrite error: {why}"));
                self.fail_rewrite();
            }
        }
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Under World, at the moment of a save which is a rewrite: cuts the journal, which begins with
    /// that if there is none. Returns where the base goes.
    pub(crate) fn cut_journal(&mut self) -> BasePlace {
        let core = &mut self.core;
        if core.tasks.journal.is_none() {
            let opens_server = core.shared.load.is_starting();
            let found = core.tasks.found.take().expect("it was searched before");
            core.tasks.journal = Some(core.new_journal(found, opens_server));
            self.access.world(core.turn.unix_ms()).set_recording(true);
            core.shared.journal.is_on.store(true, Relaxed);
        }
        let number = self.access.world(core.turn.unix_ms()).record_cut(CUT).0;
        // The clock is read behind the number: nothing before that is younger.
        let moment = Moment { number, unix_ms: self.driver.unix_ms().0 };
        let format = core.base_format();
        let status = &core.shared.journal;
        // INFO reads them in the other order, so it finds one of both set.
        status.is_rewriting.store(true, Release);
        status.is_scheduled.store(false, Release);
        status.rewrite_since_s.store(core.turn.unix_ms().0 / 1000, Relaxed);
        let journal = core.tasks.journal.as_mut().expect("it was made above");
        let base = journal.writer.begin_rewrite(format, moment);
        let place = BasePlace {
            folder: journal.writer.folder().clone(),
            name: PathBuf::from(String::from_utf8_lossy(&base.name).into_owned()),
            extent: Extent { moment, position: None },
            format,
        };
        core.publish_fence(); // whoever enters behind this numbers its changes
        place
    }

    /// World is open again, so what was recorded before the cut is handed over: where the cut is in
    /// the stream of replication.
    pub(crate) fn locate_cut(&mut self, mut place: BasePlace) -> BasePlace {
        if let Some(journal) = &mut self.core.tasks.journal {
            journal.take(self.core.shared.keyspace.journal());
            place.extent = journal.writer.locate_rewrite().unwrap_or(place.extent);
        }
        place
    }

    /// The data is loaded: the append-only file begins, and then the server opens.
    pub(crate) fn begin_journal(&mut self) {
        let found = self.core.shared.load.take_found().expect("loading has just found it");
        let exists = found.manifest.is_some();
        self.core.tasks.found = Some(found);
        if exists {
            self.core.tasks.starts_journal = true;
            self.start_journal();
        } else {
            self.make_folder();
        }
    }

    /// Goes on with the append-only file that was loaded, as soon as World can be taken.
    #[cold]
    pub(crate) fn start_journal(&mut self) {
        let now = self.core.turn.now();
        if self.access.try_world().is_err() {
            return self.core.tasks.retries.postpone(Work::Journal, now);
        }
        self.core.tasks.starts_journal = false;
        let found = self.core.tasks.found.take().expect("it was just loaded");
        let mut journal = self.core.new_journal(found, true);
        self.access.world(self.core.turn.unix_ms()).set_recording(true);
        journal.writer.resume();
        self.core.tasks.journal = Some(journal);
        self.core.shared.journal.is_on.store(true, Relaxed);
        self.core.publish_fence();
        self.access.open_world();
    }

    /// What follows when the writer has come so far: the server opens, a rewrite is due, or the
    /// journal ends.
    pub(crate) fn check_journal_stage(&mut self) {
        let now = self.core.turn.now();
        let Some(journal) = &mut self.core.tasks.journal else { return };
        let is_due = now >= journal.check_at;
        if is_due {
            journal.check_at = now.plus(CHECK_NS);
        }
        if journal.opens_server && journal.writer.is_complete() && journal.writer.is_idle() {
            journal.opens_server = false;
            return self.open_server();
        }
        let is_one_shot = journal.writer.is_complete() && !journal.writer.is_rewriting();
        if is_one_shot && is_due && !self.core.is_appendonly() {
            self.follow_appendonly();
        }
        let Some(journal) = &mut self.core.tasks.journal else { return };
        if journal.is_ending {
            return self.end_journal();
        }
        if is_due {
            if let Some(op) = journal.writer.look() {
                self.core.tasks.file_ops.push((FileUser::JournalLook, op));
            }
            if journal.writer.needs_base(now) {
                return self.begin_base_anew();
            }
            self.check_journal_size();
        }
    }

    /// The files are gone: all data goes into a new base.
    #[cold]
    fn begin_base_anew(&mut self) {
        if self.core.shutdown.has_begun() {
            return;
        }
        // What is being written goes to a folder that is gone.
        self.core.give_up_save("the files of before are gone", |run| {
            run.wanted.why == Why::Rewrite && run.has_moment && run.given_up.is_none()
        });
        if self.core.want_rewrite() {
            log::notice(format_args!("The append-only file begins anew, with a new base"));
        }
    }

    /// Wants a rewrite if the file has grown enough.
    fn check_journal_size(&mut self) {
        let core = &self.core;
        let Some(journal) = &core.tasks.journal else { return };
        let (size, base) = (journal.writer.size(), journal.writer.base_bytes.max(1));
        let percentage = core.settings.aof_rewrite_percentage;
        let has_grown = size.saturating_sub(base).saturating_mul(100) / base >= percentage;
        if percentage > 0
            && size > core.settings.aof_rewrite_min_size
            && has_grown
            && journal.writer.may_rewrite(core.turn.now())
            && journal.writer.trouble().is_none()
            && core.want_rewrite()
        {
            let growth = size.saturating_sub(base).saturating_mul(100) / base;
            log::notice(format_args!("Starting automatic rewriting of AOF on {growth}% growth"));
        }
    }

    /// Begins or ends the append-only file as the setting says (CONFIG SET appendonly).
    pub(crate) fn follow_appendonly(&mut self) {
        let (is_wanted, place) = {
            let config = self.core.shared.config.lock();
            let config = config.expect("no panic while the configuration is held");
            if !config.appendonly {
                self.core.shared.journal.end_completeness();
            }
            (config.appendonly, Place::of(&config))
        };
        let tasks = &mut self.core.tasks;
        tasks.journal_again_at = None;
        let is_finding = tasks.is_finding_journal();
        match &mut tasks.journal {
            None if self.core.shared.load.is_on() || is_finding => {}
            None if is_wanted => self.find_journal(place),
            None => self.core.shared.journal.refuse(None),
            Some(journal) if !is_wanted && !journal.opens_server => {
                journal.is_ending = true;
                self.core.give_up_save("the append-only file was turned off", |run| {
                    run.wanted.why == Why::Rewrite
                });
            }
            Some(_) => {}
        }
    }

    /// BGREWRITEAOF while nothing is appended: the file is begun, and ends when it is complete.
    pub(crate) fn rewrite_without_journal(&mut self) {
        let tasks = &self.core.tasks;
        if tasks.journal.is_some() {
            _ = self.core.want_rewrite();
        } else if !tasks.is_finding_journal() && !self.core.shared.load.is_on() {
            let place = {
                let config = self.core.shared.config.lock();
                Place::of(&config.expect("no panic while the configuration is held"))
            };
            self.find_journal(place);
        }
    }

    /// Makes the folder ready for its first base; the rewrite follows.
    fn make_folder(&mut self) {
        let tasks = &mut self.core.tasks;
        let found = tasks.found.as_ref().expect("it was just found");
        if found.manifest.is_some() {
            _ = self.core.want_rewrite();
            return;
        }
        let mut steps = Steps::default();
        steps.prepare(&found.place);
        let first = steps.start().expect("there are steps");
        tasks.folder_steps = steps;
        tasks.file_ops.push((FileUser::JournalFolder, first));
    }

    /// A step of that has completed.
    pub(crate) fn on_journal_folder(&mut self, outcome: Result<FileValue, FileError>) {
        let tasks = &mut self.core.tasks;
        if let Err(failed) = tasks.folder_steps.complete(outcome.map_err(|e| e.errno)) {
            if let Some(file) = tasks.folder_steps.give_up() {
                tasks.file_ops.push((FileUser::JournalUnawaited, FileOp::Close { file }));
            }
            return self.fail_folder(failed.what, failed.errno);
        }
        match tasks.folder_steps.start() {
            Some(op) => tasks.file_ops.push((FileUser::JournalFolder, op)),
            None => _ = self.core.want_rewrite(),
        }
    }

    /// The folder cannot be made ready: the start fails, or it is tried again later.
    #[cold]
    fn fail_folder(&mut self, what: &'static str, errno: Errno) {
        let why = io_text(&errno.into());
        let why = format!("the append-only file cannot be begun: cannot {what}: {why}");
        if self.core.shared.load.is_starting() {
            return self.fail_start(why);
        }
        log::warning(format_args!("{why}"));
        let status = &self.core.shared.journal;
        status.is_scheduled.store(false, Relaxed);
        status.rewrite_failed.store(true, Relaxed);
        self.core.tasks.journal_again_at = Some(self.core.turn.now().plus(AGAIN_NS));
    }

    fn find_journal(&mut self, place: Place) {
        let (finding, op) = Finding::begin(place, false);
        self.core.tasks.finding = Some(Box::new(finding));
        self.core.tasks.file_ops.push((FileUser::JournalFind, op));
    }

    /// A step of the search for what is in the folder has completed.
    pub(crate) fn on_journal_found(&mut self, outcome: Result<FileValue, FileError>) {
        let Some(finding) = &mut self.core.tasks.finding else { return };
        match finding.advance(outcome) {
            Next::Op(op) => self.core.tasks.file_ops.push((FileUser::JournalFind, op)),
            Next::Found(found) => {
                self.core.tasks.finding = None;
                // An old single file stays where it is: the data in memory counts.
                let other_bytes = if found.is_old { 0 } else { found.len() };
                found.warn();
                let mut manifest = found.manifest.filter(|_| !found.is_old);
                if let Some(manifest) = manifest.as_mut().filter(|_| found.missing.is_some()) {
                    manifest.retire_all();
                }
                let parts = Vec::new();
                self.core.tasks.found = Some(Found { manifest, parts, other_bytes, ..*found });
                self.make_folder();
            }
            Next::Refused(path, why) => {
                self.core.tasks.finding = None;
                let status = &self.core.shared.journal;
                status.is_scheduled.store(false, Relaxed);
                status.rewrite_failed.store(true, Relaxed);
                let why = format!("{}: {why}", path.display());
                if status.trouble().as_ref() != Some(&why) {
                    log::warning(format_args!("The append-only file cannot begin: {why}"));
                }
                if self.core.is_appendonly() {
                    status.refuse(Some(why));
                    // The disk may work again, or somebody may mend what is there.
                    let again_at = self.core.turn.now().plus(AGAIN_NS);
                    self.core.tasks.journal_again_at = Some(again_at);
                }
            }
        }
    }

    /// Ends recording, then closes the file once everything is written.
    #[cold]
    fn end_journal(&mut self) {
        let (shared, now) = (Arc::clone(&self.core.shared), self.core.turn.now());
        if shared.keyspace.journal().is_recording() {
            if self.access.try_world().is_err() {
                return self.core.tasks.retries.postpone(Work::Journal, now);
            }
            // What is changed behind this has no number, and must not count as synced (WAITAOF).
            shared.journal.publish_synced(None);
            let mut guard = self.access.world(self.core.turn.unix_ms());
            guard.set_recording(false);
            guard.forget_numbers();
            drop(guard);
            // Nor is it counted.
            shared.stream.rename(replication_id(|| self.core.tally.draw()));
            self.core.publish_fence();
            self.access.open_world();
        }
        let Some(journal) = &mut self.core.tasks.journal else { return };
        if journal.writer.is_in_flight() {
            // The next one would take what completes for its own.
            return self.core.tasks.retries.postpone(Work::Journal, now);
        }
        let is_written = journal.may_end(shared.keyspace.journal());
        match journal.writer.trouble() {
            None if !is_written => {
                return self.core.tasks.retries.postpone(Work::Journal, now);
            }
            Some(_) => log::warning(format_args!(
                "The append-only file is turned off while it cannot be written: what was not \
                 written stays in memory only"
            )),
            None => {}
        }
        shared.journal.set_trouble(None);
        let found = journal.writer.found();
        if let Some(op) = journal.writer.close() {
            self.core.tasks.file_ops.push((FileUser::JournalUnawaited, op));
        }
        // Numbers without a command may be left. The next file begins behind them: it would wait
        // for ever if it found them.
        shared.keyspace.journal().take(&mut journal.taken);
        self.core.tasks.journal = None;
        self.core.tasks.found = Some(found);
        // CONFIG SET appendonly yes may have come meanwhile.
        let pause = &mut self.core.tasks.base_pause;
        self.core.tasks.journal_again_at = Some(if shared.journal.rewrite_failed.load(Relaxed) {
            pause.begin(now)
        } else {
            pause.end();
            now
        });
        // A rewrite that had begun ends with it.
        shared.journal.is_rewriting.store(false, Relaxed);
        shared.journal.end_completeness();
        shared.journal.is_on.store(false, Relaxed);
        shared.journal.memory.store(0, Relaxed);
        shared.journal.publish_synced(None);
        shared.journal.is_stuck.store(false, Relaxed);
        shared.journal.set_hangs(false);
        shared.journal.hold_writes(0, false);
        shared.safe_seq.store(u64::MAX, SeqCst);
        shared.journal.holds_replies.store(false, Relaxed);
        shared.post_others(self.core.id, || Message::Released);
    }
}
