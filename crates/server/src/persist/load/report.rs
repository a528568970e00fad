//! What loading writes to the log and tells a supervisor.

use crate::log;
use crate::persist::load::state::{Load, Loaded, Progress};
use journal::{Moment, moment, stream};
use rdb::file::{Shown, Summary};
use std::fmt;
use std::path::Path;

const MIB: f64 = 1_048_576.0;

/// Progress in words, as in the log and in a supervisor's status.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} % ({:.1} of {:.1} MiB), {} keys, {} seconds left",
            self.percent(),
            self.bytes as f64 / MIB,
            self.total_bytes as f64 / MIB,
            self.keys,
            self.seconds_left
        )
    }
}

/// Logs an aux field which says where the file comes from, in the words of Redis, and keeps what
/// INFO shows. Others are ignored.
pub(crate) fn aux(name: &[u8], text: &[u8], load: &Load) {
    let number = || std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    match name {
        b"redis-ver" => {
            log::notice(format_args!("Loading RDB produced by version {}", Shown(text)));
        }
        b"valkey-ver" => {
            let version = Shown(text);
            log::notice(format_args!("Loading RDB produced by Valkey version {version}"));
        }
        b"ctime" => {
            let now = driver::clock::unix_ns() / 1_000_000_000;
            let age = number().map_or(0, |at| now.saturating_sub(at as i64).max(0));
            log::notice(format_args!("RDB age {age} seconds"));
        }
        b"used-mem" => {
            let bytes = number().unwrap_or(0);
            load.set_used_memory(bytes);
            let mib = bytes as f64 / MIB;
            log::notice(format_args!("RDB memory usage when created {mib:.2} Mb"));
        }
        name if name == moment::AUX.as_bytes() => {
            load.set_base_number(Moment::parse(text).map_or(0, |moment| moment.number));
        }
        name if name == stream::AUX_ID.as_bytes() => load.set_base_id(text),
        name if name == stream::AUX_OFFSET.as_bytes() => load.set_base_offset(text),
        _ => {}
    }
}

/// Logs that a snapshot file was loaded.
pub(crate) fn done(path: &Path, loaded: Loaded, summary: &Summary, functions: usize, seconds: f64) {
    keys(loaded);
    left_out(path, summary, functions);
    log::notice(format_args!("DB loaded from disk: {seconds:.3} seconds"));
}

/// Logs that the RDB part of an append-only file was loaded.
pub(crate) fn base(path: &Path, loaded: Loaded, summary: &Summary, functions: usize) {
    keys(loaded);
    left_out(path, summary, functions);
}

/// Logs that an append-only file was loaded, of which so many commands have failed.
pub(crate) fn append_only(failed: u64, seconds: f64) {
    if failed > 0 {
        log::warning(format_args!("{failed} commands of the append-only file have failed"));
    }
    log::notice(format_args!("DB loaded from append only file: {seconds:.3} seconds"));
}

/// Logs what was left out of a file because it cannot be read.
pub(crate) fn unread(path: &Path, load: &Load) {
    if let Some(why) = load.take_unread().warning() {
        log::warning(format_args!("{}: {why}", path.display()));
    }
}

fn keys(loaded: Loaded) {
    let Loaded { keys, expired, empty } = loaded;
    if empty == 0 {
        log::notice(format_args!(
            "Done loading RDB, keys loaded: {keys}, keys expired: {expired}."
        ));
    } else {
        log::warning(format_args!(
            "Done loading RDB, keys loaded: {keys}, keys expired: {expired}, empty keys skipped: \
             {empty}."
        ));
    }
}

fn left_out(path: &Path, summary: &Summary, functions: usize) {
    let (skipped, aux) = (summary.skipped_keys, summary.skipped_aux);
    if skipped + aux > 0 {
        log::warning(format_args!(
            "{}: {skipped} keys and {aux} other fields of modules were skipped, because \
             rdb-skip-unknown is set; they are lost with the next save",
            path.display()
        ));
    }
    if functions > 0 {
        log::notice(format_args!(
            "{functions} libraries of functions are kept for the next snapshot; this version does \
             not run them"
        ));
    }
}
