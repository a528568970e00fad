//! CONFIG REWRITE: a helper thread waits for the disk, and nobody else does.
//!
//! There is one such thread at most. Who asks while it writes waits for its next run, which serves
//! all who have asked by then. What is written is the configuration as it was when somebody asked
//! last; so what stands behind CONFIG REWRITE in a transaction is not in the file.
//!
//! Inside EXEC the commands behind CONFIG REWRITE run at once, and the reply to all of them leaves
//! when the file is written.

use super::outbox::copy;
use super::{Caller, Core, Hold, Outcome, Worker};
use crate::client_memory::Share;
use crate::config::Config;
use crate::message::Message;
use crate::session::{ReplyMode, Session, Suspended};
use crate::shared::Shared;
use base::MonoNs;
use base::sync::{Arc, Mutex, MutexGuard};
use command::{CommandId, Error};
use driver::{ConnId, Driver};
use resp::{OutBuf, OutPos};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a run ended: the text of the error reply.
pub type Written = Result<(), Arc<str>>;

/// Writes the configuration file for everybody.
#[derive(Default)]
pub struct Rewriter(Mutex<Runs>);

#[derive(Default)]
struct Runs {
    /// What the next run writes, if anybody has asked for one.
    next: Option<Box<Config>>,
    /// The number of the last run that has begun.
    begun: u64,
    /// A thread is there, and looks for what is next before it ends.
    is_served: bool,
}

impl Rewriter {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().expect("no panic while the runs are held")
    }

    /// Has the file written as the settings are now. The number of the run that does it.
    fn ask(&self, shared: &Arc<Shared>) -> std::io::Result<u64> {
        let mut runs = self.runs();
        if !runs.is_served {
            let shared = Arc::clone(shared);
            driver::spawn_helper("rewriter", move || shared.rewriter.serve(&shared))?;
            runs.is_served = true;
        }
        let config = shared.config.lock().expect("no panic while the configuration is held");
        runs.next = Some(Box::new(config.clone()));
        Ok(runs.begun + 1)
    }

    /// What is to be written next, and the number of its run; the thread ends if there is nothing.
    fn next(&self) -> Option<(Box<Config>, u64)> {
        let mut runs = self.runs();
        let next = runs.next.take();
        runs.is_served = next.is_some();
        runs.begun += u64::from(next.is_some());
        next.map(|config| (config, runs.begun))
    }

    fn serve(&self, shared: &Shared) {
        while let Some((config, run)) = self.next() {
            // Whatever happens here, who waits must be answered. A panic leaves the old file or the
            // new one, and a file beside it that the next run replaces.
            let written = catch_unwind(AssertUnwindSafe(|| {
                crate::config::rewrite::rewrite_file(&config).map_err(|e| e.to_string())
            }));
            let written = written.unwrap_or_else(|_| Err(failed("a panic")));
            let written = written.map_err(Arc::from);
            for worker in 0..shared.workers.len() {
                shared.post(worker, Message::Rewritten { run, written: written.clone() });
            }
        }
    }
}

/// A session that waits for a run.
pub struct AwaitsRun {
    run: u64,
    started: MonoNs,
    /// Of an EXEC: its reply, parted where the outcome of a CONFIG REWRITE is missing.
    reply: Option<Box<ParkedReply>>,
}

/// The reply of an EXEC that waits for the file.
struct ParkedReply {
    /// The command whose outcome is missing.
    id: Option<CommandId>,
    /// The outcome stands behind each of these but the last one.
    parts: Vec<OutBuf>,
    /// Bytes of all of them.
    len: usize,
    hold: Hold,
    /// Its bytes count as long as it is there.
    held: Share,
}

/// What the running EXEC has asked for.
pub struct Asked {
    run: u64,
    /// The command, for its errors.
    id: Option<CommandId>,
    /// Where in its reply an outcome is missing. (There is none for who wants no reply.)
    places: Vec<OutPos>,
}

impl Core {
    /// CONFIG REWRITE.
    pub(crate) fn config_rewrite(&mut self, caller: &Caller, at: OutPos) -> Result<Outcome, Error> {
        let shared = Arc::clone(&self.shared);
        if shared.facts.config_file.is_empty() {
            return Err(Error::NoConfigFile);
        }
        let run = shared.rewriter.ask(&shared);
        let run = run.map_err(|e| Error::made(failed(&crate::config::load::io_text(&e))))?;
        if caller.is_in_exec() {
            let is_wanted = caller.session(self).reply_mode == ReplyMode::On;
            let id = self.running.map(|(_, id)| id);
            let asked = self.rewrites.get_or_insert_with(|| Asked { run, id, places: Vec::new() });
            asked.run = run;
            asked.places.extend(is_wanted.then_some(at));
        } else {
            let started = self.clock.now();
            let wait = AwaitsRun { run, started, reply: None };
            self.suspend(caller, Suspended::Rewriting(Box::new(wait)));
        }
        Ok(Outcome::Waiting)
    }

    /// The queue has run: if it has asked for the file to be written, its reply, which begins here,
    /// waits for that.
    pub(super) fn park_reply(
        &mut self,
        caller: &Caller,
        from: OutPos,
        out: &mut OutBuf,
        hold: Hold,
    ) {
        let Some(asked) = self.rewrites.take() else { return };
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
    /// A run has ended: who has waited for it is answered.
    pub(super) fn on_rewritten(&mut self, run: u64, written: &Written) {
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
            self.core.note_time(&caller, id, long.request.args(), ns, sizes);
        }
        match wait.reply {
            Some(parked) => self.answer_exec(&caller, *parked, written),
            None => self.answer(conn, |core, out| match written {
                Ok(()) => caller.reply(out).ok(),
                Err(why) => core.refuse(out, caller.proto, id, &Error::made(why.to_string()), true),
            }),
        }
    }

    /// What is not wanted of it was dropped as it was written.
    fn answer_exec(&mut self, caller: &Caller, parked: ParkedReply, written: &Written) {
        let conn = caller.conn();
        let (_, out) = self.driver.io();
        self.core.output.open(conn.index, out);
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
        self.core.output.hold_at(parked.hold);
        drop(parked.held);
        self.end_answer(conn);
    }
}

fn failed(why: &str) -> String {
    format!("ERR Rewriting config file: {why}")
}
