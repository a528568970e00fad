//! Loading an append-only file as worker 0 sees it: its files are found, loaded one after the
//! other, and mended.
//!
//! ```text
//! Finding ---> Opening ---> Building ---> Opening (the next file, or the commands behind an RDB
//!    |            ^             |                  preamble)
//!    | no file    '-------------+-- the last one --> Mending --> the server is open
//!    '------------------------------------------------------------^
//! ```
//!
//! DEBUG LOADAOF (`persist/reload.rs`) goes from Finding to Emptying, where the data is removed. It
//! mends nothing.

use crate::log;
use crate::persist::load::fault::LoadError;
use crate::persist::load::finding;
use crate::persist::load::folder::Found;
use crate::persist::load::loading::{End, Feed, Stage};
use crate::persist::load::mending::{self, Mending};
use crate::persist::load::reading::Reading;
use crate::persist::load::replay;
use crate::persist::load::replay::dispatch::Replayed;
use crate::persist::load::report;
use crate::persist::load::state::Reload;
use crate::worker::Worker;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::{MonoNs, SeqNo};
use command::Error;
use driver::{Driver, FileError, FileValue};
use journal::Numbering;
use std::path::Path;

impl<D: Driver<Message = Message>> Worker<D> {
    /// The operation of the search or of the mending has completed.
    pub(crate) fn on_parts_file(&mut self, outcome: Result<FileValue, FileError>) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        let Some(parts) = &mut loading.parts else { return };
        if let Some(finding) = &mut parts.finding {
            let next = finding.advance(outcome);
            self.follow_finding(next);
        } else if let Some(mending) = &mut parts.mending {
            let next = mending.advance(&outcome);
            self.follow_mending(next);
        }
    }

    fn follow_finding(&mut self, next: finding::Next) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        match next {
            finding::Next::Op(op) => {
                self.driver.file(FileUser::Loading.token(loading.token(0)), op);
            }
            finding::Next::Refused(path, why) => self.refuse_part(&path, &why),
            finding::Next::Found(found) => {
                self.core.shared.load.set_total(found.len());
                let Some(parts) = &mut loading.parts else { return };
                parts.finding = None;
                found.warn();
                parts.found = *found;
                if self.core.shared.load.planned().reload.is_none() {
                    return self.begin_part(0);
                }
                if parts.found.manifest.is_none() {
                    let folder = parts.found.place.folder();
                    return self.refuse_part(&folder, "there is no append-only file");
                }
                loading.stage = Stage::Emptying;
            }
        }
    }

    /// Opens the file at hand, whose first `from` bytes are loaded; or all are loaded.
    pub(crate) fn begin_part(&mut self, from: u64) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        let Some(parts) = &mut loading.parts else { return };
        let Some(part) = parts.found.parts.get(parts.at) else { return self.mend() };
        parts.from = from;
        loading.path.clone_from(&part.path);
        let (reading, open) = Reading::begin(part.path.clone(), from);
        self.core.tasks.loadings += 1; // reads of the last file may be in flight
        loading.number = self.core.tasks.loadings;
        loading.reading = reading;
        loading.stage = Stage::Opening;
        loading.is_read = false;
        self.driver.file(FileUser::Loading.token(loading.token(0)), open);
    }

    /// The file at hand is open.
    pub(crate) fn on_part_opened(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if loading.reading.is_complete() {
            self.end_file();
            self.next_part();
        }
    }

    /// The file at hand begins with these bytes: starts the threads that load it.
    pub(crate) fn begin_feed(&mut self, is_snapshot: bool) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        let Some(parts) = &loading.parts else { return };
        if is_snapshot && parts.from == 0 {
            log::notice(format_args!("Reading RDB base file on AOF loading..."));
            return self.start_builders();
        }
        let shared = self.core.shared.clone();
        let from = (parts.from, parts.numbering, parts.position);
        let lanes = replay::start(&mut self.access, &shared, &loading.path, from);
        loading.feed = Feed::Commands(lanes);
        loading.stage = Stage::Building;
    }

    /// Closes the file at hand; its threads have ended.
    fn end_file(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if let Some(close) = loading.reading.close() {
            self.driver.file(FileUser::Loading.token(loading.token(0)), close);
        }
        loading.feed = Feed::None;
        self.core.shared.load.join();
    }

    /// The threads of the file at hand have ended.
    pub(crate) fn end_part(&mut self, end: Result<End, LoadError>) {
        self.end_file();
        let Some(loading) = &mut self.core.tasks.loading else { return };
        report::unread(&loading.path, &self.core.shared.load);
        match end {
            Err(error) => {
                let path = loading.path.clone();
                let Some(parts) = &loading.parts else { return };
                let check = parts.to_check();
                let hint = if error.is_damage { repair_hint(&check) } else { String::new() };
                self.refuse_part(&path, &format!("{}{hint}", error.text));
            }
            Ok(End::Snapshot(summary)) => {
                let load = &self.core.shared.load;
                if let Some(parts) = &mut loading.parts {
                    parts.numbering = Numbering::behind(load.base_number());
                    parts.position = load.take_base_position();
                }
                report::base(&loading.path, load.loaded(), &summary, load.functions().len());
                if summary.bytes < loading.reading.len() {
                    self.begin_part(summary.bytes);
                } else {
                    self.next_part();
                }
            }
            Ok(End::Commands(replayed)) => self.end_commands(replayed),
        }
    }

    fn end_commands(&mut self, replayed: Replayed) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        let Some(parts) = &mut loading.parts else { return };
        (parts.numbering, parts.position) = (replayed.numbering, replayed.position);
        let Some(damage) = replayed.truncated else { return self.next_part() };
        let may_cut = {
            let config = self.core.shared.config.lock();
            config.expect("no panic while the configuration is held").aof_load_truncated
        };
        let (path, check) = (loading.path.clone(), parts.to_check());
        if !parts.is_last() {
            let hint = repair_hint(&check);
            let why = format!("{damage}, and it is not the last file{hint}");
            return self.refuse_part(&path, &why);
        }
        if !may_cut {
            let hint = repair_hint(&check);
            let why = format!("{damage}{hint}, or set aof-load-truncated to yes");
            return self.refuse_part(&path, &why);
        }
        if self.core.tasks.journal.is_some() {
            // The writer stands behind these bytes, and has not written them.
            return self.refuse_part(&path, &format!("{damage}{}", repair_hint(&check)));
        }
        let (len, to) = (loading.reading.len(), replayed.valid_up_to);
        let is_reload = self.core.shared.load.planned().reload.is_some();
        log::warning(format_args!(
            "{}: {damage}: the last {} bytes are {}, at byte {to}, because \
             aof-load-truncated is set",
            path.display(),
            len - to,
            if is_reload { "left out" } else { "cut off" }
        ));
        parts.cut = Some(to);
        self.next_part();
    }

    fn next_part(&mut self) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        if let Some(parts) = &mut loading.parts {
            parts.at += 1;
        }
        self.begin_part(0);
    }

    /// All files are loaded. DEBUG LOADAOF only reads them: somebody writes to the last one, or it
    /// is replaced when the append-only file begins.
    fn mend(&mut self) {
        if self.core.shared.load.planned().reload.is_some() {
            return self.end_parts();
        }
        let Some(loading) = &mut self.core.tasks.loading else { return };
        let Some(parts) = &mut loading.parts else { return };
        let mut mending = Mending::new();
        match (parts.found.parts.last_mut(), parts.cut) {
            (Some(last), Some(to)) => {
                mending.truncate(&last.path, to);
                last.len = to;
            }
            (Some(last), None) => mending.sync(&last.path, last.len),
            (None, _) => {}
        }
        if parts.found.is_old {
            mending.move_old(&parts.found);
        }
        let next = mending.begin();
        parts.mending = Some(mending);
        loading.stage = Stage::Mending;
        self.core.tasks.loadings += 1; // the last file is being closed
        loading.number = self.core.tasks.loadings;
        self.follow_mending(next);
    }

    fn follow_mending(&mut self, next: mending::Next) {
        let Some(loading) = &mut self.core.tasks.loading else { return };
        match next {
            mending::Next::Op(op) => {
                self.driver.file(FileUser::Loading.token(loading.token(0)), op);
            }
            mending::Next::Failed(path, errno) => {
                let why = config::load::io_text(&errno.into());
                self.refuse_part(&path, &format!("it cannot be written: {why}"));
            }
            mending::Next::Done => self.end_parts(),
        }
    }

    /// Everything is loaded: the server opens.
    fn end_parts(&mut self) {
        let Some(mut loading) = self.core.tasks.loading.take() else { return };
        let Some(parts) = loading.parts.take() else { return };
        let shared = self.core.shared.clone();
        let mut found = Found { position: parts.position, ..parts.found };
        // Numbers go on: what is in these files has others than what is recorded from now on.
        shared.keyspace.numbers().resume_behind(SeqNo(parts.numbering.highest()));
        if let Some(reload) = shared.load.planned().reload {
            return self.end_reloaded_parts(reload, loading.began);
        }
        if found.is_old {
            let place = &found.place;
            log::notice(format_args!(
                "Moved {} into {}, where it is the base of the append-only file",
                place.old_file().display(),
                place.folder().display()
            ));
            found.parts[0].path = place.file(place.name_bytes());
            found.is_old = false;
        }
        let ns = self.core.clock.now().since(loading.began);
        if found.manifest.is_some() {
            report::append_only(shared.load.failed(), ns as f64 / 1e9);
        }
        shared.load.set_found(found);
        // What was loaded is on the disk already.
        shared.saves.forget_changes(shared.keyspace.changes());
        self.restore_producers();
        self.begin_journal(); // the server opens once that is complete
    }

    /// As [`Worker::end_parts`], of DEBUG LOADAOF: the server goes on, and so does its writer.
    fn end_reloaded_parts(&mut self, reload: Reload, began: MonoNs) {
        let shared = self.core.shared.clone();
        let ns = self.core.clock.now().since(began);
        report::append_only(shared.load.failed(), ns as f64 / 1e9);
        shared.saves.forget_changes(shared.keyspace.changes());
        shared.load.take_producers(); // those which are known have numbers as high
        match shared.load.become_ready() {
            Ok(()) => {
                log::notice(format_args!("DB reloaded by DEBUG LOADAOF"));
                self.end_reload(reload, None);
            }
            Err(why) => self.fail_start(why),
        }
    }

    /// A file cannot be loaded, or written to: the start fails, or DEBUG LOADAOF.
    fn refuse_part(&mut self, path: &Path, why: &str) {
        self.end_file();
        let Some(loading) = self.core.tasks.loading.take() else { return };
        let reload = self.core.shared.load.planned().reload;
        let kept = reload.filter(|_| loading.stage == Stage::Finding);
        let why = format!("{} cannot be loaded: {why}", path.display());
        self.fail_load(kept, why, Error::made(NOT_LOADED));
    }
}

const NOT_LOADED: &str = "ERR Error trying to load the append-only file, see the log";

/// What to do about a damaged file.
fn repair_hint(check: &Path) -> String {
    format!("; make a copy, then repair it with: sheafdb check-aof --fix {}", check.display())
}
