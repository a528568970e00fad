//! `DEBUG POPULATE`, in steps that take one slot at a time.

use keyspace::{Event, Intent, Parked};
use value::string::encode;

use crate::ctx::{Ctx, Progress, Resumable};
use crate::error::Error;
use crate::ops::Populate;

/// Keys that one step makes at most.
const STEP_KEYS_MAX: u64 = 256;
/// Bytes of values that one step makes at most, but for a single longer one.
const STEP_BYTES_MAX: u64 = 256 * 1024;

/// Starts the work; every step makes some keys.
pub fn begin(populate: Populate) -> Box<dyn Resumable> {
    Box::new(Populating { populate, next: 0 })
}

struct Populating {
    populate: Populate,
    /// Number of the next key.
    next: u64,
}

impl Resumable for Populating {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if self.populate.value_len > ctx.settings.bulk_len_max {
            return Err(Error::StringTooLong);
        }
        let keys = (STEP_BYTES_MAX / self.populate.value_len.max(1)).clamp(1, STEP_KEYS_MAX);
        let end = self.next.saturating_add(keys).min(self.populate.count);
        while self.next < end {
            if let Err(parked) = self.make(ctx, self.next) {
                return Ok(Progress::Park(parked));
            }
            self.next += 1;
        }
        let finished = end == self.populate.count;
        if finished {
            ctx.reply.ok();
        }
        Ok(Progress::complete_if(finished))
    }
}

impl Populating {
    fn make(&self, ctx: &mut Ctx<'_, '_>, number: u64) -> Result<(), Parked> {
        let name = [&self.populate.prefix[..], format!(":{number}").as_bytes()].concat();
        let mut value = format!("value:{number}").into_bytes();
        if self.populate.value_len > 0 {
            value.resize(self.populate.value_len as usize, 0);
        }
        let db = ctx.db;
        let key = ctx.guard.keyspace().key(&name);
        ctx.guard.visit(key.slot, Intent::Write, |guard| {
            if !guard.contains(db, &key) {
                guard.insert(Event::SILENT, db, &key, encode(&value), None);
                guard.record(db, &[b"SET", &name, &value]);
            }
        })
    }
}
