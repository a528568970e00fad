//! How a save begins: who wants it, and the moment which its file shows.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::log;
use crate::persist::save::pipe::Pipe;
use crate::persist::save::run::Answer;
use crate::persist::save::status::{Run, Why};
use crate::persist::save::walker::{self, Job};
use crate::persist::save::writing::Writing;
use crate::persist::save::{Running, Wanted};
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
use driver::Driver;
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
    version: RdbVersion,
    compress: bool,
    checksum: bool,
    recorded: Recorded,
    key_delay_us: u64,
}

/// How an attempt to begin ended.
enum Begun {
    Running(Box<Running>),
    /// World cannot be taken, or the walk of the save before is not over.
    Later,
    Failed(String),
}

impl Core {
    /// SAVE and BGSAVE. The session waits for the file, or for the moment which it will show: so
    /// its next command is not in the file. Inside EXEC, BGSAVE only notes that a save is wanted.
    pub(crate) fn save_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        mode: SaveMode,
    ) -> Result<Outcome, Error> {
        let saves = &self.shared.saves;
        if saves.state().run.is_some() {
            return Err(Error::SaveUnderWay);
        }
        if caller.is_in_exec() {
            saves.state().is_scheduled = true;
            self.timers.save_at = Some(self.turn.now());
            caller.reply(out).simple(SCHEDULED);
            return Ok(Outcome::Done);
        }
        let why = match mode {
            SaveMode::Foreground => Why::Command,
            SaveMode::Background => Why::Background,
        };
        self.claim_save(why).ok_or(Error::SaveUnderWay)?;
        let asker = Some(caller.conn());
        self.tasks.saving.wanted.push(Wanted { why, asker, is_claimed: true });
        self.suspend(caller, Suspended::Saving(self.clock.now()));
        Ok(Outcome::Waiting)
    }

    /// Claims the only run for this worker. `None` if one is under way.
    pub(crate) fn claim_save(&self, why: Why) -> Option<()> {
        let since = (self.turn.now(), self.turn.unix_ms().0 / 1000);
        self.shared.saves.claim(Run { worker: self.id, why, since })
    }

    /// A save that begins as soon as none is under way.
    pub(crate) fn want_save(&mut self, why: Why) {
        let wanted = &mut self.tasks.saving.wanted;
        if !wanted.iter().any(|w| !w.is_claimed && w.why == why) {
            wanted.push(Wanted { why, asker: None, is_claimed: false });
        }
    }

    /// FLUSHALL: a file that is being written would bring back what is gone, and so would the one
    /// that is there.
    pub(crate) fn save_flushed(&mut self) {
        self.give_up_save("FLUSHALL has removed what it saves");
        if !self.settings.save_points.is_empty() {
            self.want_save(Why::Flush);
        }
    }

    fn save_terms(&self) -> Terms {
        let config = self.shared.config.lock().expect("no panic while the configuration is held");
        Terms {
            folder: config.dir.clone(),
            name: config.dbfilename.clone(),
            syncs_early: config.save_syncs_early,
            version: config.rdb_version,
            compress: config.rdb_compression,
            checksum: config.rdb_checksum,
            recorded: match (config.maxmemory_policy.evicts, live::uses(&config)) {
                (false, _) => Recorded::Nothing,
                (true, Uses::Times) => Recorded::Idle,
                (true, uses) => Recorded::Frequency(uses),
            },
            key_delay_us: config.save_delay_us,
        }
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Begins the next save that is wanted here, if it can begin.
    #[inline]
    pub(crate) fn begin_saves(&mut self) {
        if !self.core.tasks.saving.wanted.is_empty() {
            self.begin_next_save();
        }
    }

    #[cold]
    fn begin_next_save(&mut self) {
        let now = self.core.turn.now();
        if self.core.tasks.retries.next(Work::Save, true, now).is_some_and(|at| at > now) {
            return;
        }
        let wanted = self.core.tasks.saving.wanted[0];
        let is_final = self.core.shared.saves.is_final();
        if is_final != matches!(wanted.why, Why::Shutdown { .. }) {
            return self.drop_wanted(); // the server ends, or it does not end any more
        }
        let is_claimed = wanted.is_claimed || self.core.claim_save(wanted.why).is_some();
        self.core.tasks.saving.wanted[0].is_claimed = is_claimed;
        let begun = if is_claimed { self.begin_save(wanted) } else { Begun::Later };
        if matches!(begun, Begun::Later) {
            return self.core.tasks.retries.postpone(Work::Save, now);
        }
        self.core.tasks.saving.wanted.remove(0);
        match begun {
            Begun::Later => unreachable!("it is handled above"),
            Begun::Failed(why) => self.fail_save(wanted.why, wanted.asker, &why),
            Begun::Running(running) => {
                self.core.tasks.saving.running = Some(running);
                if wanted.why == Why::Background {
                    log::notice(format_args!("Background saving started"));
                    self.answer_saver(wanted.asker, &Answer::Text(STARTED));
                }
                self.end_save_if_over();
            }
        }
    }

    /// The first save that is wanted does not begin.
    fn drop_wanted(&mut self) {
        let wanted = self.core.tasks.saving.wanted.remove(0);
        if wanted.is_claimed {
            self.core.shared.saves.end_given_up();
        }
        self.answer_saver(wanted.asker, &Answer::Error(Error::SaveFailed));
    }

    /// Takes the moment, under World, and hands it to a thread.
    fn begin_save(&mut self, wanted: Wanted) -> Begun {
        let Some((snapshot, access, changes)) = self.cut() else { return Begun::Later };
        let terms = self.core.save_terms();
        let (version, failure) = match version_for(terms.version, &snapshot) {
            Ok(version) => (version, None),
            Err(why) => (0, Some(why)),
        };
        let options = FileOptions { compress: terms.compress, checksum: terms.checksum, version };
        let (shared, pipe) = (Arc::clone(&self.core.shared), Arc::new(Pipe::default()));
        let keys: u64 = snapshot.databases().iter().map(|db| db.keys).sum();
        shared.saves.progress.keys_total.store(keys, Relaxed);
        let job = Job {
            snapshot,
            access,
            // Without a file the walk only ends.
            file: failure.is_none().then_some(options),
            recorded: terms.recorded,
            now: self.core.turn.unix_ms(),
            clock: self.core.clock.clone(),
            functions: shared.load.functions(),
            used_bytes: (shared.facts.allocator)().0,
            key_delay_us: terms.key_delay_us,
        };
        let number = match walker::start(&shared, self.core.id, &pipe, job) {
            Ok(number) => number,
            Err(why) => return Begun::Failed(format!("cannot start a thread that saves: {why}")),
        };
        if let Some(why) = failure {
            return Begun::Failed(why);
        }
        let writing = Writing::begin(&terms.folder, &terms.name, terms.syncs_early);
        Begun::Running(Box::new(Running {
            number,
            why: wanted.why,
            asker: wanted.asker,
            writing,
            pipe,
            changes,
            since: self.core.turn.now(),
            is_given_up: false,
        }))
    }

    /// The moment, and an Access to walk over it. `None`: it must be tried again.
    fn cut(&mut self) -> Option<(Snapshot, Access, u64)> {
        let shared = Arc::clone(&self.core.shared);
        self.access.try_world().ok()?;
        let further = self.access.further();
        let cut = self.access.cut(CAPTURED_BYTES_MAX);
        let changes = shared.keyspace.changes();
        let left = if cut.is_err() { self.access.abandoned_snapshot() } else { None };
        self.access.open_world();
        let access = further.ok()?;
        match (cut, left) {
            (Ok(snapshot), _) => Some((snapshot, access, changes)),
            (Err(_), None) => None,
            // A walk that nobody ends: the next one begins behind it.
            (Err(_), Some(snapshot)) => {
                let (pipe, now) = (Arc::new(Pipe::default()), self.core.turn.unix_ms());
                let job = Job::ending(snapshot, access, (now, self.core.clock.clone()));
                // If the thread cannot be started, the walk is abandoned again.
                let _ = walker::start(&shared, self.core.id, &pipe, job);
                None
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
