//! What a restore says.

use std::fmt::Write as _;

use super::choice;
use super::cut::Last;
use super::point::Point;
use crate::aof_file::shown;

/// A file which was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: Vec<u8>,
    pub is_base: bool,
    /// Bytes that were kept, of all.
    pub bytes: u64,
    pub length: u64,
    pub records: u64,
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What the base says about its moment.
    pub moment: Last,
    /// The files, the base first.
    pub parts: Vec<Part>,
    /// What a user should know.
    pub notes: Vec<String>,
    /// The last record, or the base.
    pub last: Last,
    /// How a server is started with it.
    pub start: String,
}

impl Restored {
    /// The lines for the user.
    pub fn text(&self, point: Point) -> String {
        let mut text = format!("restored up to {point}\n");
        for part in &self.parts {
            let name = shown(&part.name);
            let kept = if part.bytes == part.length {
                format!("{} bytes", part.bytes)
            } else {
                format!("{} of {} bytes", part.bytes, part.length)
            };
            let _ = if part.is_base {
                writeln!(text, "base  {name}: {}, {kept}", choice::text(self.moment))
            } else {
                writeln!(text, "incr  {name}: {} records, {kept}", part.records)
            };
        }
        let _ = writeln!(text, "{}", self.last_text());
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        let bytes: u64 = self.parts.iter().map(|part| part.bytes).sum();
        let _ = writeln!(text, "{bytes} bytes; start it: {}", self.start);
        text
    }

    /// Which record is the last one.
    pub fn last_text(&self) -> String {
        if self.parts.iter().any(|part| part.records > 0) {
            format!("last record: {}", choice::text(self.last))
        } else {
            format!("last record: that of the base, {}", choice::text(self.moment))
        }
    }
}
