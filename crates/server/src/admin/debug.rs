//! DEBUG, behind `enable-debug-command`.

use crate::session::Suspended;
use crate::worker::{Core, Outcome};
use base::sync::atomic::Ordering::{Relaxed, Release};
use command::Error;
use command::ops::{DebugOp, Populate};
use command::server::debug::{reply_sample, reply_string_match};
use driver::ConnId;
use keyspace::Guard;
use resp::{OutBuf, Reply};

/// Longest text that DEBUG STRINGMATCH-LEN matches, bytes.
const MATCH_LEN_MAX: usize = 1 << 20;

impl Core {
    /// Carries out a DEBUG subcommand.
    pub(crate) fn debug_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        op: DebugOp,
    ) -> Result<Outcome, Error> {
        let Some(s) = self.session_mut(conn) else { return Ok(Outcome::Done) };
        let (proto, db) = (s.proto, s.db);
        let mut reply = Reply::new(out, proto);
        match op {
            DebugOp::Sleep { seconds } => {
                if self.in_exec {
                    // Inside EXEC there is nobody to come back to: the whole transaction waits here.
                    let until = self.clock.now().plus((seconds * 1e9) as u64);
                    while self.clock.now() < until {
                        base::sync::thread::yield_now();
                    }
                    reply.ok();
                    return Ok(Outcome::Done);
                }
                let until = self.clock.now().plus((seconds * 1e9) as u64);
                self.suspend(conn, Suspended::Sleep(until));
                self.sleeping = Some((conn, until));
                return Ok(Outcome::Waiting);
            }
            DebugOp::Object { key } => {
                let key = guard.keyspace().key(&key);
                let now = guard.now();
                let text = guard.visit(key.slot, |guard| {
                    guard.peek(db, &key).map(|entry| command::server::describe(entry, now))
                });
                reply.simple(&text.ok_or(Error::NoSuchKey)?);
            }
            DebugOp::SetActiveExpire(on) => {
                self.shared.active_expire.store(on, Relaxed);
                reply.ok();
            }
            DebugOp::StringMatchLen { len, pattern } => {
                reply_string_match(&mut reply, len, &pattern, MATCH_LEN_MAX);
            }
            DebugOp::Protocol(sample) => reply_sample(&mut reply, sample)?,
            DebugOp::Populate(populate) => return self.populate(guard, out, conn, populate),
            DebugOp::PanicInCommand { command, after_changes } => {
                let id = match command {
                    Some(name) => Some(command::by_full_name(&name).ok_or(Error::InvalidCommand)?),
                    None => None,
                };
                let mut armed = self.shared.panic_in.lock().expect("no panic while it is held");
                *armed = Some((id, after_changes));
                drop(armed);
                self.shared.armed.store(true, Relaxed);
                self.shared.config_version.fetch_add(1, Release);
                self.refresh_gates();
                reply.ok();
            }
            DebugOp::Help => command::help::write(&mut reply, "debug"),
        }
        Ok(Outcome::Done)
    }

    fn populate(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        populate: Populate,
    ) -> Result<Outcome, Error> {
        let Some((_, id)) = self.running else { return Ok(Outcome::Done) };
        self.begin_task(guard, out, conn, id, command::server::populate::begin(populate))
    }
}
