//! DEBUG, behind `enable-debug-command`.

mod print;
mod text;

use crate::admin::debug::text::{struct_sizes, tables_text, value_text};
use crate::execute::caller::Caller;
use crate::execute::command::{Called, Outcome};
use crate::sessions::session::Suspended;
use crate::shared::{ArmedPanic, PanicAt};
use crate::worker::core::Core;
use base::DbIndex;
use base::sync::atomic::Ordering::Relaxed;
use command::ops::DebugOp;
use command::server::debug::{reply_sample, reply_string_match};
use command::server::digest::{Digest, of_value};
use command::{Done, Error, Resumable};
use config::value::parse_memory;
use keyspace::{Entry, Guard, Intent, Parked};
use resp::OutBuf;
use std::time::Duration;

/// DEBUG QUICKLIST-PACKED-THRESHOLD takes no more, as recorded.
const PACKED_THRESHOLD_MAX: u64 = (4 << 30) - (1 << 20);
/// Longest text that DEBUG STRINGMATCH-LEN matches, bytes.
const MATCH_LEN_MAX: usize = 1 << 20;
/// DEBUG runs under World, but for what `command::server::debug::spares_world` names.
const ALL_HELD: &str = "DEBUG holds everything";
/// How often DEBUG HOLD looks whether it is to end.
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
        let mut reply = caller.reply(out);
        match op {
            DebugOp::Sleep { seconds } => {
                if !caller.may_suspend {
                    // Inside EXEC there is nobody to come back to: the whole transaction waits
                    // here.
                    let until = self.clock.now().plus((seconds * 1e9) as u64);
                    while self.clock.now() < until {
                        base::sync::thread::yield_now();
                    }
                    reply.ok();
                    return Ok(Outcome::Done.into());
                }
                let until = self.clock.now().plus((seconds * 1e9) as u64);
                self.suspend(caller, Suspended::Sleep(until));
                self.tasks.sleeping = Some((caller.conn(), until));
                return Ok(Outcome::Waiting.into());
            }
            DebugOp::Hold { key, seconds } => {
                if let Err(parked) = self.hold(guard, &key, seconds) {
                    return Ok(Called::Left(Done::Park(parked)));
                }
                reply.ok();
            }
            DebugOp::Object { key } => {
                let key = guard.keyspace().key(&key);
                let now = guard.now();
                let text = guard.visit(key.slot, Intent::Read, |guard| {
                    let settings = &self.settings.command;
                    guard.peek(db, &key).map(|e| command::server::describe(e, now, settings))
                });
                let text = text.expect(ALL_HELD);
                reply.simple(&text.ok_or(Error::NoSuchKey)?);
            }
            DebugOp::Listpack { key } => {
                let printed =
                    self.print_value(guard, db, &key, Error::NotListpack, |entry, _| {
                        command::server::listpack_text(entry)
                    })?;
                if let Err(parked) = printed {
                    return Ok(Called::Left(Done::Park(parked)));
                }
                reply.simple("Listpack structure printed on stdout");
            }
            DebugOp::Quicklist { key, full } => {
                let not = Error::NotQuicklist;
                let printed = self.print_value(guard, db, &key, not, |entry, settings| {
                    command::server::quicklist_text(entry, settings, full)
                })?;
                if let Err(parked) = printed {
                    return Ok(Called::Left(Done::Park(parked)));
                }
                reply.simple("Quicklist structure printed on stdout");
            }
            DebugOp::SkipChecksums(on) => {
                command::server::switches::skip_checksums(on);
                reply.ok();
            }
            DebugOp::SetActiveExpire(on) => {
                self.shared.active_expire.store(on, Relaxed);
                reply.ok();
            }
            DebugOp::StringMatchLen { len, pattern } => {
                reply_string_match(&mut reply, len, &pattern, MATCH_LEN_MAX);
            }
            DebugOp::Protocol(sample) => reply_sample(&mut reply, sample)?,
            DebugOp::Populate(populate) => {
                return self.go_on_with(
                    guard,
                    out,
                    caller,
                    command::server::populate::begin(populate),
                );
            }
            DebugOp::PanicInCommand { command, after_changes, after_runs, is_error } => {
                let place = match command.as_deref() {
                    None => PanicAt::AnyCommand,
                    Some(b"sweep") if !is_error => PanicAt::Sweep,
                    Some(b"turn") if !is_error => PanicAt::Turn,
                    Some(name) => {
                        PanicAt::Command(command::by_full_name(name).ok_or(Error::InvalidCommand)?)
                    }
                };
                let mut armed = self.shared.panic_in.lock().expect("no panic while it is held");
                *armed =
                    Some(ArmedPanic { at: place, after_changes, runs_left: after_runs, is_error });
                drop(armed);
                self.shared.armed.store(true, Relaxed);
                self.publish_fence();
                reply.ok();
            }
            DebugOp::ChangeReplId => {
                let id = crate::boot::random_id(|| self.tally.draw());
                *self.shared.replid.lock().expect("no panic while the id is held") = id;
                reply.ok();
            }
            DebugOp::QuicklistPackedThreshold { size } => {
                let size = parse_memory(&size).ok_or(Error::PackedThreshold)?;
                if size > PACKED_THRESHOLD_MAX {
                    return Err(Error::PackedThreshold);
                }
                command::server::switches::write_plain_from(size as usize);
                reply.ok();
            }
            DebugOp::DictResizing(on) => {
                self.shared.keyspace.set_shrinking(on);
                reply.ok();
            }
            DebugOp::HtStats { db } => {
                let databases = self.settings.command.databases;
                let index = u16::try_from(db).ok().filter(|db| *db < databases);
                let db = DbIndex::new(index.ok_or(Error::HtStatsDb)?);
                let text = tables_text(guard, db);
                reply.verbatim(*b"txt", text.as_bytes());
            }
            DebugOp::HtStatsKey { key } => {
                let key = guard.keyspace().key(&key);
                let found = guard.visit(key.slot, Intent::Read, |guard| {
                    guard.peek(db, &key).map(|entry| entry.big().and_then(value_text))
                });
                let found = found.expect(ALL_HELD);
                let text = found.ok_or(Error::NoSuchKey)?.ok_or(Error::NoHashTable)?;
                reply.verbatim(*b"txt", text.as_bytes());
            }
            DebugOp::Digest => {
                let mut digest = Digest::default();
                for db in 0..self.settings.command.databases {
                    let add = |entry: Entry<'_>| digest.add_entry(db, entry);
                    guard.scan(DbIndex::new(db), 0, u64::MAX, add).expect(ALL_HELD);
                }
                reply.simple(&digest.text());
            }
            DebugOp::DigestValue(keys) => {
                reply.array(keys.len());
                for key in &keys {
                    let key = guard.keyspace().key(key);
                    let digest = guard
                        .visit(key.slot, Intent::Read, |guard| guard.peek(db, &key).map(of_value));
                    reply.simple(&digest.expect(ALL_HELD).unwrap_or_default().text());
                }
            }
            DebugOp::Error(text) => {
                return Err(Error::made(String::from_utf8_lossy(&text)));
            }
            DebugOp::Log(text) => {
                let text = String::from_utf8_lossy(&text);
                crate::log::warning(format_args!("DEBUG LOG: {}", text.escape_debug()));
                reply.ok();
            }
            DebugOp::StructSize => reply.simple(&struct_sizes()),
            DebugOp::Reload => {
                let databases = self.settings.command.databases;
                return self.go_on_with(
                    guard,
                    out,
                    caller,
                    command::server::reload::begin(databases),
                );
            }
            DebugOp::SdsLen { key } => {
                let key = guard.keyspace().key(&key);
                let text = guard.visit(key.slot, Intent::Read, |guard| {
                    guard.peek(db, &key).map(command::server::text_lengths)
                });
                let text = text.expect(ALL_HELD);
                reply.simple(&text.ok_or(Error::NoSuchKey)?.ok_or(Error::NotSds)?);
            }
            DebugOp::PauseCron(on) => {
                self.shared.cron_paused.store(on, Relaxed);
                reply.ok();
            }
            DebugOp::Leak(bytes) => {
                Box::leak(bytes);
                reply.ok();
            }
            DebugOp::SafeUpTo(safe) => {
                if safe.is_none() {
                    guard.forget_numbers();
                }
                self.publish_safe(safe);
                reply.integer(self.shared.keyspace.numbers().last().0 as i64);
            }
            DebugOp::Help => command::help::write(&mut reply, "debug"),
        }
        Ok(Outcome::Done.into())
    }

    /// Prints what a text says of a value on standard output; `not` is the error where it says
    /// nothing. The text is made under the slot of its key, and written when that is released.
    fn print_value(
        &self,
        guard: &mut Guard<'_>,
        db: DbIndex,
        key: &[u8],
        not: Error,
        text: impl FnOnce(Entry<'_>, &command::Settings) -> Option<String>,
    ) -> Result<Result<(), Parked>, Error> {
        let key = guard.keyspace().key(key);
        let found = guard.visit(key.slot, Intent::Read, |guard| {
            guard.try_mark_long()?;
            Ok(guard.peek(db, &key).map(|entry| text(entry, &self.settings.command)))
        });
        match found.and_then(|found| found) {
            Ok(found) => {
                crate::admin::debug::print::print(found.ok_or(Error::NoSuchKey)?.ok_or(not)?)
                    .map(Ok)
            }
            Err(parked) => Ok(Err(parked)),
        }
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

    /// Goes on in steps; inside EXEC at once.
    fn go_on_with(
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
