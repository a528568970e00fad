//! Backups which the server makes of itself (`backup-schedule`).
//!
//! A backup is a save like any other, by the same run, walk and thread (`persist/save/`), with
//! another place to write to: a new folder with a manifest, which is the format of
//! `sheafdb backup` (`docs/backup.md`).
//!
//! ```text
//! backup-dir/sheafdb-20261123T030000Z/dump.rdb         its moment, UTC
//!                                     manifest.json    written last: the backup is whole
//! ```
//!
//! `due.rs` begins a backup when the schedule says so. `filing.rs` returns the operations on files
//! of one backup; `pruning.rs` those which remove old ones. `status.rs` holds what INFO says.

pub(crate) mod due;
pub(crate) mod filing;
pub(crate) mod pruning;
pub mod status;

use base::calendar::{self, Date};

/// The name of the snapshot in each backup.
pub(crate) const SNAPSHOT: &str = "dump.rdb";
/// What the names of backups begin with.
const PREFIX: &str = "sheafdb-";

/// The name of a backup whose moment is at `unix_s`. Names sort by time.
pub(crate) fn name(unix_s: i64) -> String {
    let (Date { year, month, day }, [hour, minute, second]) = calendar::split(unix_s);
    format!("{PREFIX}{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Whether this is a name that [`name`] gives.
pub(crate) fn is_name(text: &str) -> bool {
    let is_like =
        |byte: u8, like: u8| if like == b'0' { byte.is_ascii_digit() } else { byte == like };
    let pattern = b"00000000T000000Z";
    text.strip_prefix(PREFIX).is_some_and(|time| {
        time.len() == pattern.len() && time.bytes().zip(*pattern).all(|(b, like)| is_like(b, like))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_times_and_sort_by_them() {
        assert_eq!(name(1_795_472_160), "sheafdb-20261123T221600Z");
        assert!(is_name(&name(0)) && name(0) < name(1_795_472_160));
        for other in ["", "sheafdb-", "sheafdb-2026", "sheafdb-20261123T221600", "dump.rdb"] {
            assert!(!is_name(other), "{other}");
        }
        assert!(!is_name("sheafdb-20261123T221600Zx") && !is_name("sheafdb-2026112xT221600Z"));
    }
}
