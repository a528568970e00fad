//! CONFIG REWRITE: a helper thread writes the file, so that no worker waits for the disk.
//!
//! There is at most one such thread. Clients which ask while it writes wait for its next run, which
//! answers all of them. It writes the configuration as it was at the last request; so changes
//! behind CONFIG REWRITE in a transaction are not in the file.
//!
//! Inside EXEC the commands behind CONFIG REWRITE run at once. The reply of EXEC leaves when the
//! file is written.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::sessions::outbox::copy;
use crate::sessions::output::Hold;
use crate::sessions::session::{ReplyMode, Session, Suspended};
use crate::settings::rewriter::{Asked, AwaitsRun, ParkedReply, Written};
use crate::shared::Shared;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use command::Error;
use driver::{ConnId, Driver};
use resp::{OutBuf, OutPos};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Requests a run which writes the current settings. Returns its number.
fn request_run(shared: &Arc<Shared>) -> std::io::Result<u64> {
    let mut runs = shared.rewriter.runs();
    if !runs.is_served {
        let shared = Arc::clone(shared);
        driver::spawn_helper("rewriter", move || write_runs(&shared))?;
        runs.is_served = true;
    }
    let config = shared.config.lock().expect("no panic while the configuration is held");
    runs.next = Some(Box::new(config.clone()));
    Ok(runs.begun + 1)
}

/// The thread: runs until no further run is requested.
fn write_runs(shared: &Shared) {
    while let Some((config, run)) = shared.rewriter.next() {
        // Waiting clients must be answered in any case. A panic leaves the old file or the new one,
        // and perhaps a temporary file, which the next run replaces.
        let written = catch_unwind(AssertUnwindSafe(|| {
            config::rewrite::rewrite_file(&config).map_err(|e| e.to_string())
        }));
        let written = written.unwrap_or_else(|_| Err(failed("a panic")));
        let written = written.map_err(Arc::from);
        for worker in 0..shared.workers.len() {
            shared.post(worker, Message::Rewritten { run, written: written.clone() });
        }
    }
}

impl Core {
    /// CONFIG REWRITE.
    pub(crate) fn config_rewrite(&mut self, caller: &Caller, at: OutPos) -> Result<Outcome, Error> {
        let shared = Arc::clone(&self.shared);
        if shared.facts.config_file.is_empty() {
            return Err(Error::NoConfigFile);
        }
        let run = request_run(&shared);
        let run = run.map_err(|e| Error::made(failed(&config::load::io_text(&e))))?;
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
