//! DEBUG, behind `enable-debug-command`.

mod print;
mod text;
mod values;

use crate::admin::debug::text::struct_sizes;
use crate::admin::debug::values::{debug_digests, debug_sds_len, debug_table_of};
use crate::execute::caller::Caller;
use crate::execute::outcome::{Called, Outcome};
use crate::sessions::session::Suspended;
use crate::shared::{ArmedPanic, PanicAt};
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::atomic::Ordering::Relaxed;
use command::ops::DebugOp;
use command::server::debug::{reply_sample, reply_string_match};
use command::server::{populate, switches};
use command::{Done, Error, Resumable};
use config::value::parse_memory;
use keyspace::{Guard, Intent, Parked};
use resp::{OutBuf, Reply};
use std::time::Duration;

/// The largest DEBUG QUICKLIST-PACKED-THRESHOLD, as in Redis.
const PACKED_THRESHOLD_MAX: u64 = (4 << 30) - (1 << 20);
/// It plays a journal.
const NOT_PLAYED: &str = "ERR DEBUG SAFE-UP-TO is not possible while there is an append-only file";
/// Longest text that DEBUG STRINGMATCH-LEN matches, bytes.
const MATCH_LEN_MAX: usize = 1 << 20;
/// How often DEBUG HOLD checks whether it must end.
const HOLD_NAP: Duration = Duration::from_millis(1);

impl Core {
    /// Carries out a DEBUG subcommand.
    pub(crate) fn debug_op(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        op: DebugOp,
    ) -> Result<Called, Error> {
        let db = caller.db;
        let reply = &mut caller.reply(out);
        match op {
            DebugOp::Sleep { seconds } => return Ok(self.debug_sleep(out, caller, seconds).into()),
            DebugOp::Hold { key, seconds } => {
                return Ok(self.debug_hold(guard, reply, &key, seconds));
            }
            DebugOp::Listpack { key } => return self.debug_listpack(guard, out, caller, &key),
            DebugOp::Quicklist { key, full } => {
                return self.debug_quicklist(guard, out, caller, &key, full);
            }
            DebugOp::Populate(_) if self.shared.load.is_on() => return Err(Error::Loading),
            DebugOp::Populate(populate) => {
                return self.run_in_steps(guard, out, caller, populate::begin(populate));
            }
            DebugOp::Reload { saves, flushes } => {
                return self.debug_reload(guard, caller, saves, flushes);
            }
            DebugOp::LoadAof => return self.debug_load_aof(guard, caller),
            DebugOp::PanicInCommand { command, after_changes, after_runs, is_error } => {
                let at = panic_place(command.as_deref(), is_error)?;
                self.arm_panic(ArmedPanic { at, after_changes, runs_left: after_runs, is_error });
                reply.ok();
            }
            DebugOp::SkipChecksums(on) => answer_ok(reply, || switches::skip_checksums(on)),
            DebugOp::QuicklistPackedThreshold { size } => {
                switches::write_plain_from(packed_threshold(&size)?);
                reply.ok();
            }
            DebugOp::SetActiveExpire(on) => {
                answer_ok(reply, || self.shared.active_expire.store(on, Relaxed));
            }
            DebugOp::PauseCron(on) => {
                answer_ok(reply, || self.shared.cron_paused.store(on, Relaxed));
            }
            DebugOp::MoveClients(on) => self.move_clients(reply, on),
            DebugOp::DictResizing(on) => {
                answer_ok(reply, || self.shared.keyspace.set_shrinking(on));
            }
            DebugOp::Leak(bytes) => answer_ok(reply, || _ = Box::leak(bytes)),
            DebugOp::ChangeReplId => self.change_replication_id(reply),
            DebugOp::Log(text) => log_text(reply, &text),
            DebugOp::Object { key } => self.debug_object(guard, reply, db, &key)?,
            DebugOp::SdsLen { key } => debug_sds_len(guard, reply, db, &key)?,
            DebugOp::HtStats { db } => self.debug_table(guard, reply, db)?,
            DebugOp::HtStatsKey { key } => debug_table_of(guard, reply, db, &key)?,
            DebugOp::Digest => self.debug_digest(guard, reply),
            DebugOp::DigestValue(keys) => debug_digests(guard, reply, db, &keys),
            DebugOp::SafeUpTo(_) if self.shared.journal.is_on() => {
                return Err(Error::made(NOT_PLAYED));
            }
            DebugOp::SafeUpTo(safe) => self.debug_safe_up_to(guard, reply, safe),
            DebugOp::StringMatchLen { len, pattern } => {
                reply_string_match(reply, len, &pattern, MATCH_LEN_MAX);
            }
            DebugOp::Protocol(sample) => reply_sample(reply, sample)?,
            DebugOp::StructSize => reply.simple(&struct_sizes()),
            DebugOp::Error(text) => return Err(Error::made(String::from_utf8_lossy(&text))),
            DebugOp::Help => command::help::write(reply, "debug"),
        }
        Ok(Outcome::Done.into())
    }

    /// DEBUG SLEEP holds World for a time. Inside EXEC it cannot suspend, so it blocks the worker.
    fn debug_sleep(&mut self, out: &mut OutBuf, caller: &Caller, seconds: f64) -> Outcome {
        let until = self.clock.now().plus((seconds * 1e9) as u64);
        if !caller.may_suspend {
            while self.clock.now() < until {
                base::sync::thread::yield_now();
            }
            caller.reply(out).ok();
            return Outcome::Done;
        }
        self.suspend(caller, Suspended::Sleep(until));
        self.tasks.sleeping = Some((caller.conn(), until));
        Outcome::Waiting
    }

    fn debug_hold(
        &mut self,
        guard: &mut Guard<'_>,
        reply: &mut Reply<'_>,
        key: &[u8],
        seconds: f64,
    ) -> Called {
        if let Err(parked) = self.hold(guard, key, seconds) {
            return Called::Left(Done::Park(parked));
        }
        reply.ok();
        Outcome::Done.into()
    }

    fn arm_panic(&mut self, panic: ArmedPanic) {
        *self.shared.panic_in.lock().expect("no panic while it is held") = Some(panic);
        self.shared.armed.store(true, Relaxed);
        self.publish_fence();
    }

    fn move_clients(&self, reply: &mut Reply<'_>, on: bool) {
        self.shared.loads.is_forced.store(on, Relaxed);
        reply.ok();
    }

    fn change_replication_id(&mut self, reply: &mut Reply<'_>) {
        self.shared.stream.rename(crate::boot::replication_id(|| self.tally.draw()));
        self.shared.post(0, Message::Renamed);
        reply.ok();
    }

    fn debug_safe_up_to(
        &mut self,
        guard: &mut Guard<'_>,
        reply: &mut Reply<'_>,
        safe: Option<u64>,
    ) {
        if safe.is_none() {
            guard.forget_numbers();
        }
        self.publish_safe(safe);
        reply.integer(self.shared.keyspace.numbers().last().0 as i64);
    }

    /// DEBUG HOLD: a command that takes long under its key's slot.
    fn hold(&mut self, guard: &mut Guard<'_>, key: &[u8], seconds: f64) -> Result<(), Parked> {
        let holds = &self.shared.ended_holds;
        if seconds == 0.0 {
            holds.fetch_add(1, Relaxed);
            return Ok(());
        }
        let ended = holds.load(Relaxed);
        let until = self.clock.now().plus((seconds * 1e9) as u64);
        guard.visit(guard.keyspace().key(key).slot, Intent::Read, |guard| {
            guard.try_mark_long()?;
            while self.clock.now() < until && holds.load(Relaxed) == ended {
                base::sync::thread::sleep(HOLD_NAP);
            }
            Ok(())
        })?
    }

    /// Runs the work in steps; inside EXEC in one go.
    fn run_in_steps(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        work: Box<dyn Resumable>,
    ) -> Result<Called, Error> {
        if !caller.may_suspend {
            self.run_all(guard, out, caller, work)?;
            return Ok(Outcome::Done.into());
        }
        Ok(Called::Left(Done::Steps(work)))
    }
}

/// Calls `set`, then replies OK.
fn answer_ok(reply: &mut Reply<'_>, set: impl FnOnce()) {
    set();
    reply.ok();
}

/// Where DEBUG PANIC-IN-COMMAND is to panic.
fn panic_place(command: Option<&[u8]>, is_error: bool) -> Result<PanicAt, Error> {
    Ok(match command {
        None => PanicAt::AnyCommand,
        Some(b"sweep") if !is_error => PanicAt::Sweep,
        Some(b"saver") if !is_error => PanicAt::Saver,
        Some(b"turn") if !is_error => PanicAt::Turn,
        Some(name) => PanicAt::Command(command::by_full_name(name).ok_or(Error::InvalidCommand)?),
    })
}

fn packed_threshold(size: &[u8]) -> Result<usize, Error> {
    let size = parse_memory(size).filter(|size| *size <= PACKED_THRESHOLD_MAX);
    size.map(|size| size as usize).ok_or(Error::PackedThreshold)
}

fn log_text(reply: &mut Reply<'_>, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    crate::log::warning(format_args!("DEBUG LOG: {}", text.escape_debug()));
    reply.ok();
}
