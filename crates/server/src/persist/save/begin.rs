//! How a save begins: who wants it, and the moment which its file shows.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::ingest::producers::Producer;
use crate::log;
use crate::persist::backup;
use crate::persist::backup::filing::Filing;
use crate::persist::journal::begin::BasePlace;
use crate::persist::save::Running;
use crate::persist::save::job::{Format, Job};
use crate::persist::save::output::Output;
use crate::persist::save::run::Answer;
use crate::persist::save::status::{Run, Wanted, Why};
use crate::persist::save::walker;
use crate::persist::save::writing::Writing;
use crate::sessions::session::Suspended;
use crate::settings::live;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::retry::Work;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::Error;
use command::ops::SaveMode;
use command::save::{FileOptions, Recorded};
use config::RdbVersion;
use driver::{ConnId, Driver};
use journal::manifest::BaseFormat;
use keyspace::snapshot::{CAPTURED_BYTES_MAX, Snapshot};
use keyspace::{Access, Uses};

use resp::OutBuf;
use std::path::PathBuf;

const STARTED: &str = "Background saving started";
const SCHEDULED: &str = "Background saving scheduled";

/// The settings of one save.
struct Terms {
    folder: PathBuf,
    name: PathBuf,
    syncs_early: bool,
    base_syncs_early: bool,
    version: RdbVersion,
    compress: bool,
    checksum: bool,
    recorded: Recorded,
    is_delayed: bool,
    backup_folder: PathBuf,
    backups_kept: usize,
}

impl Terms {
    fn output(&self, why: Why, moment_s: i64, base: Option<BasePlace>) -> Output {
        if let Some(BasePlace { folder, name, .. }) = base {
            return Output::File(Box::new(Writing::begin(&folder, &name, self.base_syncs_early)));
        }
        if why == Why::Backup {
            let (root, name) = (self.folder.join(&self.backup_folder), backup::name(moment_s));
            let filing = Filing::begin(&root, name, self.backups_kept, self.syncs_early);
            return Output::Backup(Box::new(filing));
        }
        Output::File(Box::new(Writing::begin(&self.folder, &self.name, self.syncs_early)))
    }
}

impl Terms {
    /// Of an RDB file that holds this moment.
    fn format(&self, snapshot: &Snapshot) -> Result<Format, String> {
        let version = version_for(self.version, snapshot)?;
        let (compress, checksum) = (self.compress, self.checksum);
        Ok(Format::Rdb(FileOptions { compress, checksum, version }))
    }
}

/// A moment: what walks over it, the changes up to it, the numbers of producers that belong to it,
/// and where the base of a rewrite goes.
type Cut = (Snapshot, Access, u64, Vec<(Arc<Producer>, u64)>, Option<BasePlace>);

/// How an attempt to begin ended.
enum Begun {
    Running(Box<Running>),
    /// World cannot be taken, or the walk of the save before is not over.
    Later,
    Failed(String),
}

impl Core {
    /// SAVE and BGSAVE. The session waits for the file, or for the moment which it will show: so
    /// its next command is not in the file. Inside EXEC, and behind a backup, which may take long,
    /// BGSAVE only notes that a save is wanted.
    pub(crate) fn save_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        mode: SaveMode,
    ) -> Result<Outcome, Error> {
        let (why, asker) = match mode {
            SaveMode::Foreground => (Why::Command, Some(caller.conn())),
            SaveMode::Background => {
                let waits = !caller.is_in_exec() && !self.shared.saves.state().is_backing_up();
                (Why::Background, waits.then(|| caller.conn()))
            }
        };
        self.want_save(why, asker)?;
        if asker.is_none() {
            caller.reply(out).simple(SCHEDULED);
            return Ok(Outcome::Done);
        }
        self.suspend(caller, Suspended::Saving(self.clock.now()));
        Ok(Outcome::Waiting)
    }

    /// Wants a save, which begins as soon as none is under way. (SHUTDOWN has a way of its own.)
    ///
    /// # Errors
    /// [`Error::SaveUnderWay`], but not for FLUSHALL.
    pub(crate) fn want_save(&self, why: Why, asker: Option<ConnId>) -> Result<(), Error> {
        if !self.shared.saves.want(Wanted { worker: self.id, why, asker }) {
            return Err(Error::SaveUnderWay);
        }
        self.claim_next_save();
        Ok(())
    }

    /// Claims the save that is wanted most, unless one is under way, for the worker that wants it.
    /// A server that ends saves nothing: SHUTDOWN NOSAVE leaves the file that is there.
    pub(crate) fn claim_next_save(&self) {
        let shared = &self.shared;
        if shared.shutting_down.load(Relaxed) {
            return;
        }
        let since = (self.turn.now(), self.turn.unix_ms().0 / 1000);
        if let Some(run) = shared.saves.claim_next(since) {
            shared.post(run.wanted.worker, Message::BeginSave(run.wanted));
        }
    }

    /// FLUSHALL: a file that is being written would bring back what is gone, and so would the one
    /// that is there. A backup is wanted for just that.
    pub(crate) fn save_flushed(&mut self) {
        // A moment behind this command, which holds World, is as good as that of a new save.
        let is_undone =
            |run: &Run| run.has_moment && !matches!(run.wanted.why, Why::Backup | Why::Rewrite);
        self.give_up_save("FLUSHALL has removed what it saves", is_undone);
        if !self.settings.save_points.is_empty() {
            self.want_save(Why::Flush, None).expect("it is never refused");
        }
    }

    fn save_terms(&self) -> Terms {
        let config = self.shared.config.lock().expect("no panic while the configuration is held");
        Terms {
            folder: config.dir.clone(),
            name: config.dbfilename.clone(),
            syncs_early: config.save_syncs_early,
            base_syncs_early: config.aof_syncs_early,
            version: config.rdb_version,
            compress: config.rdb_compression,
            checksum: config.rdb_checksum,
            recorded: match (config.evicts(), live::uses(&config)) {
                (false, _) => Recorded::Nothing,
                (true, Uses::Times) => Recorded::Idle,
                (true, uses) => Recorded::Frequency(uses),
            },
            is_delayed: config.save_delay_us > 0,
            backup_folder: config.backup_dir.clone(),
            backups_kept: config.backup_keep,
        }
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Begins the save which this worker has to begin, if it can begin.
    #[inline]
    pub(crate) fn begin_saves(&mut self) {
        if self.core.tasks.saving.claimed.is_some() {
            self.begin_claimed_save();
        }
    }

    #[cold]
    fn begin_claimed_save(&mut self) {
        let now = self.core.turn.now();
        if self.core.tasks.retries.next(Work::Save, true, now).is_some_and(|at| at > now) {
            return;
        }
        let wanted = self.core.tasks.saving.claimed.expect("the caller has tested it");
        if self.is_shutting_down() {
            return self.core.tasks.saving.forget_claimed();
        }
        if self.core.shared.saves.given_up(self.core.id).is_some() {
            self.core.tasks.saving.forget_claimed();
            self.core.shared.saves.end_given_up();
            return self.core.claim_next_save();
        }
        let begun = self.begin_save(wanted);
        if matches!(begun, Begun::Later) {
            return self.core.tasks.retries.postpone(Work::Save, now);
        }
        self.core.tasks.saving.forget_claimed();
        match begun {
            Begun::Later => unreachable!("it is handled above"),
            Begun::Failed(why) => self.fail_save(wanted, &why),
            Begun::Running(mut running) => {
                if wanted.why == Why::Background {
                    // It is answered here, and may wait for another save when this one ends.
                    running.wanted.asker = None;
                    log::notice(format_args!("Background saving started"));
                    self.core.shared.saves.forget_asker();
                    self.answer_saver(wanted.asker, &Answer::Text(STARTED));
                }
                self.core.tasks.saving.running = Some(running);
                self.core.drain_output();
            }
        }
    }

    /// Takes the moment, under World, and hands it to a thread.
    fn begin_save(&mut self, wanted: Wanted) -> Begun {
        let saving = &mut self.core.tasks.saving;
        if saving.ready.is_none() {
            match walker::start(&self.core.shared, self.core.id) {
                Ok(ready) => saving.ready = Some(ready),
                Err(e) => return Begun::Failed(format!("cannot start a thread that saves: {e}")),
            }
        }
        let (snapshot, access, changes, producers, base) = match self.cut(wanted.why) {
            Ok(moment) => moment,
            Err(begun) => return begun,
        };
        let (terms, moment) = (self.core.save_terms(), self.core.turn.unix_ms());
        let is_commands = base.as_ref().is_some_and(|base| base.format == BaseFormat::Commands);
        let format = if is_commands { Ok(Format::Commands) } else { terms.format(&snapshot) };
        let shared = Arc::clone(&self.core.shared);
        let keys: u64 = snapshot.databases().iter().map(|db| db.keys).sum();
        shared.saves.progress.keys_total.store(keys, Relaxed);
        let job = Job {
            snapshot,
            access,
            // Without a file the walk only ends.
            file: format.as_ref().ok().copied(),
            recorded: terms.recorded,
            now: moment,
            clock: self.core.clock.clone(),
            functions: shared.load.functions(),
            producers,
            used_bytes: (shared.facts.allocator)().0,
            base_of: base.as_ref().map(|base| base.extent),
            manifest_of: (wanted.why == Why::Backup).then(|| shared.facts.run_id.clone()),
            is_delayed: terms.is_delayed,
        };
        let ready = self.core.tasks.saving.ready.take().expect("it was started above");
        ready.begin(job);
        if let Err(why) = format {
            return Begun::Failed(why);
        }
        if wanted.why == Why::Backup {
            // World may have come late. A backup that is due up to this moment would be the same,
            // and have its name.
            shared.saves.state().backups.follow(moment.0 / 1000);
        }
        let output = terms.output(wanted.why, moment.0 / 1000, base);
        Begun::Running(Box::new(Running {
            number: ready.number,
            wanted,
            output,
            pipe: ready.pipe,
            changes,
            since: self.core.turn.now(),
            moment_s: moment.0 / 1000,
            is_given_up: false,
        }))
    }

    /// The moment, and an Access to walk over it; or how the attempt has ended.
    fn cut(&mut self, why: Why) -> Result<Cut, Begun> {
        let shared = Arc::clone(&self.core.shared);
        self.access.try_world().map_err(|_| Begun::Later)?;
        // The append-only file begins when the data is loaded, before the server opens.
        let begins_file = shared.load.is_starting() && self.core.tasks.loading.is_none();
        if shared.load.is_on() && (why != Why::Rewrite || !begins_file) {
            self.access.open_world();
            return Err(Begun::Later); // what is not loaded yet must not be missing in the file
        }
        let access = match self.access.further() {
            Ok(access) => access,
            Err(e) => {
                self.access.open_world();
                return Err(Begun::Failed(format!("cannot walk over the data: {e}")));
            }
        };
        let cut = self.access.cut(CAPTURED_BYTES_MAX);
        if cut.is_ok() {
            shared.saves.note_moment();
        }
        let base = (cut.is_ok() && why == Why::Rewrite).then(|| self.cut_journal());
        let changes = shared.keyspace.changes();
        let producers = if cut.is_ok() { shared.ingest.producers.in_keys() } else { Vec::new() };
        let left = if cut.is_err() { self.access.abandoned_snapshot() } else { None };
        self.access.open_world();
        match (cut, left) {
            (Ok(snapshot), _) => {
                let base = base.map(|place| self.locate_cut(place));
                Ok((snapshot, access, changes, producers, base))
            }
            (Err(_), None) => Err(Begun::Later),
            // A walk that nobody ends: the next one begins behind it, with another thread.
            (Err(_), Some(snapshot)) => {
                let now = self.core.turn.unix_ms();
                let job = Job::ending(snapshot, access, (now, self.core.clock.clone()));
                let ready = self.core.tasks.saving.ready.take().expect("the caller has started it");
                ready.begin(job);
                Err(Begun::Later)
            }
        }
    }
}

/// The version of a file that holds this moment.
fn version_for(wanted: RdbVersion, snapshot: &Snapshot) -> Result<u16, String> {
    let needs_12 = snapshot.databases().iter().any(|db| db.with_field_expiry > 0);
    match wanted {
        RdbVersion::Automatic => Ok(if needs_12 { 12 } else { 10 }),
        RdbVersion::Only(version @ (10 | 11)) if needs_12 => Err(format!(
            "rdb-version {version} cannot hold hashes with fields that expire; set it to 0, 12 or 80"
        )),
        RdbVersion::Only(version) => Ok(version),
    }
}
