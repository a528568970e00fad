//! CONFIG REWRITE: runs that write the file, and the sessions which wait for them. No worker waits
//! for the disk: a run is a sequence of operations on files (`rewriting`).
//!
//! There is at most one run at a time in a server, on the worker which began it. Clients which ask
//! meanwhile, on any worker, wait for the next run, which answers all of them; the same worker
//! begins it when the first one is over. A run writes the configuration as it was at the last
//! request; so changes behind CONFIG REWRITE in a transaction are not in the file.
//!
//! Inside EXEC the commands behind CONFIG REWRITE run at once. The reply of EXEC leaves when the
//! file is written.
//!
//! A worker that shuts down ends its run first, within the time that it has for its clients.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::sessions::outbox::copy;
use crate::sessions::output::Hold;
use crate::sessions::session::{ReplyMode, Session, Suspended};
use crate::settings::rewriter::{Asked, AwaitsRun, ParkedReply, Written};
use crate::settings::rewriting::{Next, Rewriting};
use crate::shared::Shared;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::sync::Arc;
use command::Error;
use driver::{ConnId, Driver, FileError, FileValue};
use resp::{OutBuf, OutPos};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Requests a run which writes the current settings. Returns its number, and true if the caller has
/// to begin it because no worker makes runs.
fn request_run(shared: &Shared) -> (u64, bool) {
    let mut runs = shared.rewriter.runs();
    let config = shared.config.lock().expect("no panic while the configuration is held");
    runs.next = Some(Box::new(config.clone()));
    (runs.begun + 1, !std::mem::replace(&mut runs.is_served, true))
}

impl Core {
    /// CONFIG REWRITE.
    pub(crate) fn config_rewrite(&mut self, caller: &Caller, at: OutPos) -> Result<Outcome, Error> {
        let shared = Arc::clone(&self.shared);
        if shared.facts.config_file.is_empty() {
            return Err(Error::NoConfigFile);
        }
        let (run, is_first) = request_run(&shared);
        if is_first {
            self.begin_run();
        }
        if caller.is_in_exec() {
            let is_wanted = caller.session(self).reply_mode == ReplyMode::On;
            let id = self.running.id();
            let asked =
                self.running.rewrites.get_or_insert_with(|| Asked { run, id, places: Vec::new() });
            asked.run = run;
            asked.places.extend(is_wanted.then_some(at));
        } else {
            let started = self.clock.now();
            let wait = AwaitsRun { run, started, reply: None };
            self.suspend(caller, Suspended::Rewriting(Box::new(wait)));
        }
        Ok(Outcome::Waiting)
    }

    /// Begins the next run, if one is requested.
    fn begin_run(&mut self) {
        self.tasks.rewriting = self.shared.rewriter.next().map(|(config, run)| {
            let (rewriting, op) = Rewriting::begin(run, config);
            self.tasks.file_ops.push((FileUser::Rewriting, op));
            Box::new(rewriting)
        });
    }

    /// The queue of EXEC has run. If it has requested a run, the reply, which begins at `from`,
    /// waits for it.
    pub(crate) fn park_reply(
        &mut self,
        caller: &Caller,
        from: OutPos,
        out: &mut OutBuf,
        hold: Hold,
    ) {
        let Some(asked) = self.running.rewrites.take() else { return };
        let ends = asked.places.into_iter().chain([out.position()]);
        let mut begin = from;
        let part = |end| copy(std::mem::replace(&mut begin, end), end, out);
        let parts: Vec<OutBuf> = ends.map(part).collect();
        let len = out.len_between(from, out.position());
        out.truncate(from);
        let s = caller.session(self);
        let mut held = s.replies_held.another();
        held.set((len + parts.len() * size_of::<OutBuf>()) as u64);
        let reply = Some(Box::new(ParkedReply { id: asked.id, parts, len, hold, held }));
        let wait = AwaitsRun { run: asked.run, started: self.clock.now(), reply };
        self.suspend(caller, Suspended::Rewriting(Box::new(wait)));
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// An operation of the run has completed.
    pub(crate) fn on_rewriting(&mut self, outcome: Result<FileValue, FileError>) {
        let mut rewriting = self.core.tasks.rewriting.take().expect("its operation was in flight");
        // Waiting clients must be answered in any case. A panic leaves the old file or the new one,
        // and perhaps a temporary file, which the next run replaces.
        let next = catch_unwind(AssertUnwindSafe(|| rewriting.advance(outcome)));
        let written = match next {
            Ok(Next::Op(op)) => {
                self.core.tasks.file_ops.push((FileUser::Rewriting, op));
                self.core.tasks.rewriting = Some(rewriting);
                return;
            }
            Ok(Next::Over(written)) => {
                written.map_err(|errno| failed(&config::load::io_text(&errno.into())))
            }
            Err(_) => Err(failed("a panic")),
        };
        let (run, written) = (rewriting.run, written.map_err(Arc::from));
        for worker in 0..self.core.shared.workers.len() {
            self.core.shared.post(worker, Message::Rewritten { run, written: written.clone() });
        }
        self.core.begin_run();
    }

    /// A run has ended: answers the sessions which waited for it.
    pub(crate) fn on_rewritten(&mut self, run: u64, written: &Written) {
        let waits = |s: &&Session| matches!(&s.suspended, Suspended::Rewriting(w) if w.run <= run);
        let sessions = self.core.sessions.iter().flatten().map(AsRef::as_ref);
        let conns: Vec<ConnId> = sessions.filter(waits).map(|s| s.conn).collect();
        for conn in conns {
            self.end_rewriting(conn, written);
        }
    }

    fn end_rewriting(&mut self, conn: ConnId, written: &Written) {
        let Some(s) = self.core.session_mut(conn) else { return };
        let (caller, long) = (Caller::of_step(s), s.take_long());
        let Suspended::Rewriting(wait) = std::mem::replace(&mut s.suspended, Suspended::No) else {
            unreachable!("it waits for the file");
        };
        let id = long.as_ref().and_then(|long| {
            let args = long.request.args();
            long.id.map(|id| command::resolve(id, args).unwrap_or(id))
        });
        if let Some(long) = &long {
            let ns = long.ns + self.core.clock.now().since(wait.started);
            let mut sizes = long.sizes;
            sizes.reply += wait.reply.as_ref().map_or(0, |reply| reply.len as u64);
            self.core.record_command(&caller, id, long.request.args(), ns, sizes);
        }
        match wait.reply {
            Some(parked) => self.answer_exec(&caller, *parked, written),
            None => self.answer(conn, |core, out| match written {
                Ok(()) => caller.reply(out).ok(),
                Err(why) => core.refuse(out, caller.proto, id, &Error::made(why.to_string()), true),
            }),
        }
    }

    /// Sends the parked reply of an EXEC, with the outcome where it is missing. (Unwanted replies
    /// were dropped when they were written.)
    fn answer_exec(&mut self, caller: &Caller, parked: ParkedReply, written: &Written) {
        let conn = caller.conn();
        let (_, out) = self.driver.io();
        self.core.turn.output.open(conn.index, out);
        let last = parked.parts.len() - 1;
        for (at, part) in parked.parts.into_iter().enumerate() {
            out.append(part);
            if at == last {
                break;
            }
            match written {
                Ok(()) => caller.reply(out).ok(),
                Err(why) => {
                    let e = Error::made(why.to_string());
                    self.core.refuse(out, caller.proto, parked.id, &e, true);
                }
            }
        }
        self.core.turn.output.hold_at(parked.hold);
        drop(parked.held);
        self.end_answer(conn);
    }
}

fn failed(why: &str) -> String {
    format!("ERR Rewriting config file: {why}")
}
