//! What DEBUG reports of keys, values and tables.

use crate::admin::debug::print::print;
use crate::admin::debug::text::{tables_text, value_text};
use crate::execute::caller::Caller;
use crate::execute::outcome::{Called, Outcome};
use crate::worker::core::Core;
use base::DbIndex;
use command::server::digest::{Digest, of_value};
use command::{Done, Error};
use keyspace::{Entry, Guard, Intent, Parked};
use resp::{OutBuf, Reply};

/// DEBUG runs under World, except the subcommands that `command::server::debug::spares_world`
/// lists.
const ALL_HELD: &str = "DEBUG holds everything";

impl Core {
    pub(super) fn debug_listpack(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        key: &[u8],
    ) -> Result<Called, Error> {
        let printed = self.print_value(guard, caller.db, key, Error::NotListpack, |entry, _| {
            command::server::listpack_text(entry)
        })?;
        Ok(reply_printed(printed, &mut caller.reply(out), "Listpack structure printed on stdout"))
    }

    pub(super) fn debug_quicklist(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        key: &[u8],
        full: bool,
    ) -> Result<Called, Error> {
        let not = Error::NotQuicklist;
        let printed = self.print_value(guard, caller.db, key, not, |entry, settings| {
            command::server::quicklist_text(entry, settings, full)
        })?;
        Ok(reply_printed(printed, &mut caller.reply(out), "Quicklist structure printed on stdout"))
    }

    pub(super) fn debug_object(
        &self,
        guard: &mut Guard<'_>,
        reply: &mut Reply<'_>,
        db: DbIndex,
        key: &[u8],
    ) -> Result<(), Error> {
        let (now, settings) = (guard.now(), &self.settings.command);
        let text = peek(guard, db, key, |e| command::server::describe(e, now, settings));
        reply.simple(&text.ok_or(Error::NoSuchKey)?);
        Ok(())
    }

    pub(super) fn debug_table(
        &self,
        guard: &mut Guard<'_>,
        reply: &mut Reply<'_>,
        db: i64,
    ) -> Result<(), Error> {
        let databases = self.settings.command.databases;
        let index = u16::try_from(db).ok().filter(|db| *db < databases);
        let db = DbIndex::new(index.ok_or(Error::HtStatsDb)?);
        reply.verbatim(*b"txt", tables_text(guard, db).as_bytes());
        Ok(())
    }

    pub(super) fn debug_digest(&self, guard: &mut Guard<'_>, reply: &mut Reply<'_>) {
        let mut digest = Digest::default();
        for db in 0..self.settings.command.databases {
            let add = |entry: Entry<'_>| digest.add_entry(db, entry);
            guard.scan(DbIndex::new(db), 0, u64::MAX, add).expect(ALL_HELD);
        }
        reply.simple(&digest.text());
    }

    /// Prints the text that `text` makes of a value on standard output; `not` is the error if it
    /// makes none. The text is made under the lock of its key's slot, and written after that.
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
            Ok(found) => print(found.ok_or(Error::NoSuchKey)?.ok_or(not)?).map(Ok),
            Err(parked) => Ok(Err(parked)),
        }
    }
}

/// Replies with `text` if the value was printed; parks otherwise.
fn reply_printed(printed: Result<(), Parked>, reply: &mut Reply<'_>, text: &str) -> Called {
    if let Err(parked) = printed {
        return Called::Left(Done::Park(parked));
    }
    reply.simple(text);
    Outcome::Done.into()
}

/// Describes a key's entry; `None` if there is no such key. This does not count as a use of it.
fn peek<T>(
    guard: &mut Guard<'_>,
    db: DbIndex,
    key: &[u8],
    describe: impl FnOnce(Entry<'_>) -> T,
) -> Option<T> {
    let key = guard.keyspace().key(key);
    let found = guard.visit(key.slot, Intent::Read, |guard| guard.peek(db, &key).map(describe));
    found.expect(ALL_HELD)
}

pub(super) fn debug_sds_len(
    guard: &mut Guard<'_>,
    reply: &mut Reply<'_>,
    db: DbIndex,
    key: &[u8],
) -> Result<(), Error> {
    let text = peek(guard, db, key, command::server::text_lengths);
    reply.simple(&text.ok_or(Error::NoSuchKey)?.ok_or(Error::NotSds)?);
    Ok(())
}

pub(super) fn debug_table_of(
    guard: &mut Guard<'_>,
    reply: &mut Reply<'_>,
    db: DbIndex,
    key: &[u8],
) -> Result<(), Error> {
    let text = peek(guard, db, key, |entry| entry.big().and_then(value_text));
    let text = text.ok_or(Error::NoSuchKey)?.ok_or(Error::NoHashTable)?;
    reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

pub(super) fn debug_digests(
    guard: &mut Guard<'_>,
    reply: &mut Reply<'_>,
    db: DbIndex,
    keys: &[Box<[u8]>],
) {
    reply.array(keys.len());
    for key in keys {
        reply.simple(&peek(guard, db, key, of_value).unwrap_or_default().text());
    }
}
