//! CONFIG REWRITE: a helper thread waits for the disk, and nobody else does.

use super::{Caller, Core, Outcome, Worker};
use crate::message::Message;
use crate::session::Suspended;
use crate::shared::Shared;
use base::MonoNs;
use base::sync::{Arc, PoisonError};
use command::Error;
use driver::{ConnId, Driver};
use resp::OutBuf;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Writes the file. Two do not write at once; the configuration is copied, and nobody waits for its lock meanwhile.
fn rewrite(shared: &Shared) -> Result<(), Error> {
    // A panic leaves the old file or the new one, and a file beside it that the next one replaces.
    let _only_one = shared.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
    let config = shared.config.lock().expect("no panic while the configuration is held").clone();
    crate::config::rewrite::rewrite_file(&config)
        .map_err(|e| Error::ConfigRewrite(Box::new(e.to_string().into())))
}

impl Core {
    /// CONFIG REWRITE; inside EXEC, which waits for nobody, the worker writes itself.
    pub(crate) fn config_rewrite(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
    ) -> Result<Outcome, Error> {
        let shared = Arc::clone(&self.shared);
        if shared.facts.config_file.is_empty() {
            return Err(Error::NoConfigFile);
        }
        if caller.may_suspend {
            let (conn, worker, started) = (caller.conn(), self.id, self.clock.now());
            let run = move || {
                // Whatever happens here, the session must be answered.
                let written = catch_unwind(AssertUnwindSafe(|| rewrite(&shared)));
                let result = written.unwrap_or_else(|_| {
                    let text = "ERR Rewriting config file: a panic".to_owned();
                    Err(Error::ConfigRewrite(Box::new(text.into())))
                });
                shared.post(worker, Message::Rewritten { conn, started, result });
            };
            match driver::spawn_helper("rewriter", run) {
                Ok(_) => {
                    self.suspend(caller, Suspended::Rewriting);
                    return Ok(Outcome::Waiting);
                }
                Err(e) => crate::log::warning(format_args!(
                    "cannot start a thread for CONFIG REWRITE, a worker does it: {e}"
                )),
            }
        }
        rewrite(&self.shared)?;
        caller.reply(out).ok();
        Ok(Outcome::Done)
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// The file of one of our sessions is written, or is not.
    pub(super) fn on_rewritten(
        &mut self,
        conn: ConnId,
        started: MonoNs,
        result: Result<(), Error>,
    ) {
        let session = self.core.session_mut(conn);
        let Some(s) = session.filter(|s| matches!(s.suspended, Suspended::Rewriting)) else {
            return; // the client is gone
        };
        let (caller, long) = (Caller::of_step(s), s.take_long());
        let mut id = None;
        if let Some(long) = &long {
            let args = long.request.args();
            id = long.id.map(|id| command::resolve(id, args).unwrap_or(id));
            let ns = self.core.clock.now().since(started);
            self.core.note_time(&caller, id, args, ns, long.sizes);
        }
        self.answer(conn, |core, out| match result {
            Ok(()) => caller.reply(out).ok(),
            Err(e) => core.refuse(out, caller.proto, id, &e, true),
        });
    }
}
