//! A save under way, at the worker which writes its file; and its end.

use crate::boot::process;
use crate::execute::caller::Caller;
use crate::log;
use crate::persist::save::output::Output;
use crate::persist::save::pipe::Order;
use crate::persist::save::status::{Run, Wanted, Why};
use crate::persist::save::writing::{Failure, Part};
use crate::persist::save::{FromWalker, Running};
use crate::sessions::session::{Session, Suspended};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::sync::atomic::Ordering::Relaxed;
use command::Error;
use driver::{ConnId, Driver, FileError, FileValue};
use std::path::Path;

/// How often a supervisor is told that a shutdown saves.
const EXTEND_EVERY_NS: u64 = 5_000_000_000;

/// The reply to a session that has waited for a save.
pub(crate) enum Answer {
    Ok,
    Text(&'static str),
    Error(Error),
}

impl Core {
    /// Hands the operations of the run to the driver, and written buffers to its thread.
    pub(crate) fn drain_output(&mut self) {
        let Some(running) = &mut self.tasks.saving.running else { return };
        for buffer in running.output.take_returned() {
            running.pipe.give_back(buffer);
        }
        let user = |part| match part {
            Part::Stage => FileUser::Saving,
            Part::Write => FileUser::SavingWrite,
            Part::EarlySync => FileUser::SavingSync,
        };
        let ops = running.output.take_ops().into_iter();
        self.tasks.file_ops.extend(ops.map(|(part, op)| (user(part), op)));
    }

    /// Gives the run of the server up, wherever it is, if it is one of these.
    pub(crate) fn give_up_save(&mut self, why: &'static str, of: impl Fn(&Run) -> bool) {
        let Some(worker) = self.shared.saves.give_up(why, of) else { return };
        if worker != self.id {
            return self.shared.post(worker, Message::GiveUpSave);
        }
        self.follow_give_up();
    }

    /// Stops the run of this worker if it is given up; one without a moment is not begun. The file
    /// that is there stays.
    pub(crate) fn follow_give_up(&mut self) {
        if let Some(why) = self.shared.saves.given_up(self.id) {
            self.stop_save(why);
        }
    }

    /// Stops the run of this worker, unless its file is being renamed.
    pub(crate) fn stop_save(&mut self, why: &'static str) {
        let Some(running) = &mut self.tasks.saving.running else { return };
        running.output.give_up(why);
        if running.output.has_failed() {
            running.is_given_up = true;
            running.pipe.give_order(Order::Abort);
        }
        self.drain_output();
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// The thread that walks has sent something.
    pub(crate) fn on_walker(&mut self, number: u64, what: FromWalker) {
        if matches!(what, FromWalker::Over) {
            return self.core.shared.walkers.join(number);
        }
        let core = &mut self.core;
        let Some(running) = core.tasks.saving.running.as_mut().filter(|r| r.number == number)
        else {
            return; // of a run that has ended without it
        };
        match what {
            FromWalker::Bytes(bytes) => running.output.push(bytes),
            FromWalker::End(manifest) => running.output.end(manifest),
            FromWalker::Failed(why) => running.output.give_up(&why),
            FromWalker::Over => unreachable!("it is handled above"),
        }
        core.drain_output();
        self.end_save_if_over();
    }

    /// An operation on the file has completed.
    pub(crate) fn on_saving(&mut self, part: Part, outcome: Result<FileValue, FileError>) {
        let core = &mut self.core;
        let running = core.tasks.saving.running.as_mut().expect("its operation was in flight");
        running.output.complete(part, outcome);
        if running.output.has_failed() {
            running.pipe.give_order(Order::Abort);
        }
        core.drain_output();
        self.end_save_if_over();
    }

    /// Ends the run if nothing of it is left to do.
    pub(crate) fn end_save_if_over(&mut self) {
        let is_over = |r: &mut Box<Running>| r.output.outcome().is_some();
        if let Some(running) = self.core.tasks.saving.running.take_if(is_over) {
            let outcome = running.output.outcome().expect("it is over").map_err(Clone::clone);
            match &running.output {
                Output::File(_) if running.wanted.why == Why::Rewrite => {
                    self.core.end_rewrite(&running, &outcome);
                }
                Output::File(_) => self.end_save(&running, &outcome),
                Output::Backup(filing) => self.core.end_backup(&running, filing, outcome),
            }
            self.core.claim_next_save();
            self.core.timers.save_at = Some(self.core.turn.now());
        }
    }

    fn end_save(&mut self, running: &Running, outcome: &Result<u64, Failure>) {
        let now = (self.core.turn.now(), self.core.turn.unix_ms().0 / 1000);
        let seconds = now.0.since(running.since) as f64 / 1e9;
        let saves = &self.core.shared.saves;
        let keys = saves.progress.keys.load(Relaxed);
        match outcome {
            Ok(bytes) => log::notice(format_args!(
                "DB saved on disk: {keys} keys, {bytes} bytes in {seconds:.3} seconds"
            )),
            Err(why) if running.is_given_up => {
                log::notice(format_args!("Saving was given up: {why}"));
            }
            Err(why) => log::warning(format_args!("{}: {why}", error_of(running.wanted.why))),
        }
        if running.is_given_up {
            saves.end_given_up();
        } else {
            saves.end(now, outcome.is_ok().then_some(running.changes));
            let saved = match &running.output {
                Output::File(writing) if outcome.is_ok() => Some(writing.file()),
                _ => None,
            };
            let answer = saved.map_or(Answer::Error(Error::SaveFailed), |_| Answer::Ok);
            self.report_save(running.wanted, saved, &answer);
        }
    }

    /// A save could not begin.
    pub(crate) fn fail_save(&mut self, wanted: Wanted, text: &str) {
        let now = (self.core.turn.now(), self.core.turn.unix_ms().0 / 1000);
        log::warning(format_args!("{}: {text}", error_of(wanted.why)));
        match wanted.why {
            Why::Backup => self.core.shared.saves.end_backup(None),
            Why::Rewrite => {
                self.core.shared.saves.end_rewrite();
                self.core.fail_rewrite();
            }
            _ => self.core.shared.saves.end(now, None),
        }
        self.report_save(wanted, None, &Answer::Error(Error::made(format!("ERR {text}"))));
        self.core.claim_next_save();
        self.core.timers.save_at = Some(now.0);
    }

    /// Tells who waits for a save how it has ended. `saved` is the new file.
    fn report_save(&mut self, wanted: Wanted, saved: Option<&Path>, answer: &Answer) {
        match (wanted.why, saved) {
            (Why::Command | Why::Background, _) => self.answer_saver(wanted.asker, answer),
            (Why::Flush | Why::Backup | Why::Rewrite, _) => {}
            (Why::Reload { flushes }, Some(file)) => {
                let conn = wanted.asker.expect("a client has asked for it");
                self.core.plan_reload(file.to_owned(), flushes, conn);
            }
            (Why::Reload { .. }, None) => {
                self.core.release_reload();
                self.answer_saver(wanted.asker, answer);
            }
            (Why::Shutdown, _) => self.end_final_save(saved.is_some()),
        }
    }

    /// The save before the end of the server is over. If it has failed, the server goes on, unless
    /// it was told to end in any case.
    fn end_final_save(&mut self, is_saved: bool) {
        let shared = self.core.shared.clone();
        if shared.shutting_down.load(Relaxed) {
            return; // SHUTDOWN NOSAVE, or a second SIGINT
        }
        // SHUTDOWN ABORT may come while the file is renamed, and then another SHUTDOWN.
        let Some(ends) = shared.saves.conclude_final(is_saved) else { return };
        if ends {
            if !is_saved {
                log::warning(format_args!("Error trying to save the DB. Exit anyway."));
            }
            return shared.begin_shutdown();
        }
        log::warning(format_args!(
            "Errors trying to shut down the server. Check the logs for more information."
        ));
        self.core.stay();
    }

    /// Tells a supervisor now and then that the save before the end is still under way.
    pub(crate) fn extend_final_save(&mut self) {
        let saving = &mut self.core.tasks.saving;
        let now = self.core.turn.now();
        if now >= saving.extend_at && saving.is_final() {
            saving.extend_at = now.plus(EXTEND_EVERY_NS);
            let shared = &self.core.shared;
            let config = shared.config.lock().expect("no panic while the configuration is held");
            process::notify_saving(config.supervised);
        }
    }

    /// The server does not end: answers the sessions which wanted that, and stops the save before
    /// the end if this worker writes it.
    pub(crate) fn on_shutdown_failed(&mut self) {
        self.core.follow_give_up();
        for conn in std::mem::take(&mut self.core.tasks.saving.enders) {
            self.answer_saver(Some(conn), &Answer::Error(Error::ShutdownFailed));
        }
        self.core.refresh_gates();
    }

    /// Answers a session which has waited for a save, if it is still there.
    pub(crate) fn answer_saver(&mut self, conn: Option<ConnId>, answer: &Answer) {
        let Some(conn) = conn else { return };
        let waits = |s: &&mut Session| matches!(s.suspended, Suspended::Saving(_));
        let Some(s) = self.core.session_mut(conn).filter(waits) else { return };
        let (caller, long) = (Caller::of_step(s), s.take_long());
        let Suspended::Saving(since) = s.suspended else { unreachable!("it waits for a save") };
        let id = long.as_ref().and_then(|long| long.id);
        if let Some(long) = &long {
            let ns = long.ns + self.core.clock.now().since(since);
            self.core.record_command(&caller, id, long.request.args(), ns, long.sizes);
        }
        self.answer(conn, |core, out| match answer {
            Answer::Ok => caller.reply(out).ok(),
            Answer::Text(text) => caller.reply(out).simple(text),
            Answer::Error(e) => core.refuse(out, caller.proto, id, e, true),
        });
    }
}

fn error_of(why: Why) -> &'static str {
    match why {
        Why::Background | Why::Flush => "Background saving error",
        Why::Backup => "Backup error",
        Why::Rewrite => "Background AOF rewrite error",
        Why::Command | Why::Reload { .. } => "Error saving the DB",
        Why::Shutdown => "Error trying to save the DB",
    }
}
