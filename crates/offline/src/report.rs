//! What a file has: counts by database and by type.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use base::UnixMs;
use rdb::Kind;

/// Counts of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Database {
    keys: u64,
    expires: u64,
    expired: u64,
}

/// Counts of a kind of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Values {
    keys: u64,
    elements: u64,
    /// Bytes in the file.
    bytes: u64,
    longest: u64,
}

/// Counts of a file.
#[derive(Debug, Default)]
pub struct Report {
    databases: BTreeMap<u32, Database>,
    values: BTreeMap<&'static str, Values>,
    /// Libraries of functions.
    pub functions: u64,
}

impl Report {
    /// Counts a key.
    pub fn count(&mut self, db: u32, expiry: Option<UnixMs>, now: UnixMs) {
        let database = self.databases.entry(db).or_default();
        database.keys += 1;
        database.expires += u64::from(expiry.is_some());
        database.expired += u64::from(expiry.is_some_and(|at| at <= now));
    }

    /// Whether a key of this database was counted.
    pub fn has(&self, db: u32) -> bool {
        self.databases.contains_key(&db)
    }

    /// Counts a value of so many elements and bytes.
    pub fn count_value(&mut self, kind: Kind, elements: u64, bytes: u64) {
        let values = self.values.entry(kind_text(kind)).or_default();
        values.keys += 1;
        values.elements += elements;
        values.bytes += bytes;
        values.longest = values.longest.max(bytes);
    }

    /// Keys so far.
    pub fn keys(&self) -> u64 {
        self.databases.values().map(|database| database.keys).sum()
    }

    /// The databases that have keys, and how many.
    pub fn databases(&self) -> BTreeMap<u32, u64> {
        self.databases.iter().map(|(db, counts)| (*db, counts.keys)).collect()
    }

    /// Prints all counts; the first three lines are those of `redis-check-rdb`.
    pub fn print(&self, out: &mut impl Write) -> Result<()> {
        let sum = |of: fn(&Database) -> u64| self.databases.values().map(of).sum::<u64>();
        writeln!(out, "[info] {} keys read", self.keys())?;
        writeln!(out, "[info] {} expires", sum(|database| database.expires))?;
        writeln!(out, "[info] {} already expired", sum(|database| database.expired))?;
        if self.functions > 0 {
            writeln!(out, "[info] {} libraries of functions", self.functions)?;
        }
        for (db, Database { keys, expires, expired }) in &self.databases {
            let line = format!("{keys} keys, {expires} expires, {expired} already expired");
            writeln!(out, "[info] database {db}: {line}")?;
        }
        for (kind, Values { keys, elements, bytes, longest }) in &self.values {
            let (bytes, longest) = (bytes_text(*bytes as f64), bytes_text(*longest as f64));
            let line = format!("{keys} keys, {elements} elements, {bytes}, the longest {longest}");
            writeln!(out, "[info] {kind}: {line}")?;
        }
        Ok(())
    }
}

/// The name of a kind, as TYPE replies.
fn kind_text(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "string",
        Kind::List => "list",
        Kind::Set => "set",
        Kind::Zset => "zset",
        Kind::Hash => "hash",
        Kind::Stream => "stream",
    }
}

/// A number of bytes in a unit that leaves few digits.
pub fn bytes_text(bytes: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", bytes / size),
        None => format!("{bytes:.0} bytes"),
    }
}
