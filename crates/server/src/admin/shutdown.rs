//! SHUTDOWN, and the signals that end the server.
//!
//! Before a save the server goes on: reads are served, writes wait. Behind a successful save it
//! ends. A failed one ends the shutdown instead, unless it was forced. SHUTDOWN NOSAVE ends the
//! server without waiting for the save, and SHUTDOWN FORCE forces the shutdown under way. (In Redis
//! they wait like any other client meanwhile.)

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::log;
use crate::persist::save::status::{Run, Why};
use crate::sessions::session::Suspended;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::atomic::Ordering::Relaxed;
use command::Error;
use command::ops::ShutdownOp;
use resp::OutBuf;

/// What Linux calls Ctrl-C.
const SIGINT: i32 = 2;

impl Core {
    /// Ends the server; there is no reply on success, the connection just closes.
    pub(crate) fn shutdown_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        op: ShutdownOp,
    ) -> Result<Outcome, Error> {
        let (save, force) = match op {
            ShutdownOp::Abort if self.stay() => {
                caller.reply(out).ok();
                return Ok(Outcome::Done);
            }
            ShutdownOp::Abort => return Err(Error::NoShutdown),
            ShutdownOp::End { save, force, .. } => (save, force),
        };
        log::notice(format_args!("User requested shutdown..."));
        if self.would_lose_all(force) {
            return Err(Error::ShutdownFailed);
        }
        if self.end_server(save, force) {
            self.finish(caller);
            return Ok(Outcome::Done);
        }
        self.tasks.saving.enders.push(caller.conn());
        self.suspend(caller, Suspended::Saving(self.clock.now()));
        Ok(Outcome::Waiting)
    }

    /// The server does not end behind the save before its end. False if there is no such save, or
    /// if that is over and the server ends.
    pub(crate) fn stay(&self) -> bool {
        let stays = self.shared.saves.end_final();
        if stays {
            for worker in 0..self.shared.workers.len() {
                self.shared.post(worker, Message::ShutdownFailed);
            }
        }
        stays
    }

    /// A signal has come that ends the server. As in Redis, a SIGINT during the save before the end
    /// ends it without that save, with status 1; so the file that is there stays.
    pub(crate) fn on_signal(&mut self, signal: i32) {
        let words = {
            let config =
                self.shared.config.lock().expect("no panic while the configuration is held");
            if signal == SIGINT { config.on_sigint } else { config.on_sigterm }
        };
        let is_ending = self.shared.saves.is_final() || self.shared.shutting_down.load(Relaxed);
        if signal == SIGINT && is_ending {
            log::warning(format_args!("You insist... exiting now."));
            self.shared.saves.was_cut_short.store(true, Relaxed);
            return self.shared.begin_shutdown();
        }
        let name = if signal == SIGINT { "SIGINT" } else { "SIGTERM" };
        log::notice(format_args!("Received {name} scheduling shutdown..."));
        if self.would_lose_all(words.force) {
            return;
        }
        self.end_server(words.save, words.force);
    }

    /// A server without an append-only file begins one, or its files are gone, and the base is not
    /// complete: the end would lose everything. As in Redis, which does not end then.
    fn would_lose_all(&self, force: bool) -> bool {
        let journal = &self.shared.journal;
        let begins = self.settings.appendonly
            && !self.shared.load.is_on()
            && !journal.is_complete.load(Relaxed);
        let is_refused = !force && (begins || journal.is_lost.load(Relaxed));
        if is_refused {
            log::warning(format_args!(
                "The base of the append-only file is not complete: the server does not end now. \
                 SHUTDOWN FORCE ends it and may lose all data"
            ));
        }
        is_refused
    }

    /// Ends the server now (true), or behind a save: as `save` says, or where there are save
    /// points.
    fn end_server(&mut self, save: Option<bool>, force: bool) -> bool {
        // What is not loaded yet must not be overwritten.
        let may_save = !self.shared.load.is_on();
        if !(may_save && save.unwrap_or(!self.settings.save_points.is_empty())) {
            self.shared.begin_shutdown();
            return true;
        }
        if self.shared.saves.begin_final(self.id, force) {
            log::notice(format_args!("Saving the final RDB snapshot before exiting."));
            let others = |run: &Run| run.wanted.why != Why::Shutdown;
            self.give_up_save("the server ends behind another one", others);
            self.claim_next_save();
            // No worker executes a write by the old rules behind the moment of this save, because
            // that is taken under World, and who enters behind it follows the fence.
            self.publish_fence();
        }
        false
    }
}
