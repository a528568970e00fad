//! `DEBUG RELOAD`: every value is written in the RDB format and read back, key by key in steps;
//! there is no file between. Each key is replaced under its slot's lock, so others never see it
//! missing.

use base::DbIndex;
use keyspace::{Event, Intent, Parked};
use rdb::Saver;
use value::Big;

use super::digest::of_value;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::error::{Error, ReloadFailed};
use crate::parts::{Built, Stored, is_packed};

/// Keys that one step takes at most.
const STEP_KEYS_MAX: usize = 64;
/// Bytes of values that one step writes, but for a single longer one.
const STEP_BYTES_MAX: usize = 64 * 1024;

/// Starts the work over so many databases; its end replies.
pub fn begin(databases: u16) -> Box<dyn Resumable> {
    Box::new(Reloading { databases, db: 0, cursor: 0, names: Vec::new() })
}

struct Reloading {
    databases: u16,
    db: u16,
    /// Where the walk over the database goes on.
    cursor: u64,
    /// Keys found, and not taken yet.
    names: Vec<Box<[u8]>>,
}

impl Resumable for Reloading {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if self.names.is_empty() {
            if self.db == self.databases {
                ctx.reply.ok();
                return Ok(Progress::Complete);
            }
            let names = &mut self.names;
            let count = STEP_KEYS_MAX as u64;
            let next = ctx.guard.scan(DbIndex::new(self.db), self.cursor, count, |entry| {
                names.push(entry.key().into());
            });
            match next {
                Ok(next) => self.cursor = next,
                Err(parked) => return Ok(Progress::Park(parked)),
            }
        }
        let mut bytes = 0;
        while bytes < STEP_BYTES_MAX
            && let Some(name) = self.names.pop()
        {
            match reload(ctx, DbIndex::new(self.db), &name) {
                Ok(len) => bytes += len?,
                Err(parked) => {
                    self.names.push(name);
                    return Ok(Progress::Park(parked));
                }
            }
        }
        if self.names.is_empty() && self.cursor == 0 {
            self.db += 1;
        }
        Ok(Progress::More)
    }
}

/// Writes and reads one value; the bytes between.
fn reload(ctx: &mut Ctx<'_, '_>, db: DbIndex, name: &[u8]) -> Result<Result<usize, Error>, Parked> {
    let (settings, now) = (ctx.settings, ctx.now);
    let uses = ctx.guard.uses();
    let key = ctx.guard.keyspace().key(name);
    ctx.guard.visit(key.slot, Intent::Write, |guard| {
        let Some(entry) = guard.peek(db, &key) else { return Ok(0) };
        let (before, expiry) = (of_value(entry), entry.expiry());
        let (idle, frequency) = (entry.idle_seconds(now), entry.frequency(uses, now));
        // Fields whose time has come are not read back.
        let loses_fields = entry.big().and_then(Big::next_due).is_some_and(|due| due <= now.0);
        let payload = Saver::default().dump(&Stored::of(entry));
        let mut built = Built::new(settings, is_packed(&payload));
        let wrong = || Error::from(ReloadFailed { db: db.0, key: name.into() });
        rdb::restore(&payload, &mut built).map_err(|_| wrong())?;
        built.insert(Event::SILENT, guard, db, &key, expiry);
        if let Some(mut entry) = guard.entry_mut(Event::SILENT, db, &key) {
            match frequency {
                Some(count) => entry.set_frequency(count),
                None => entry.set_idle(idle),
            }
        }
        let after = guard.peek(db, &key).map(of_value);
        if loses_fields || after == Some(before) { Ok(payload.len()) } else { Err(wrong()) }
    })
}
