//! The heat map of service times which the live page fetches each half minute.

use crate::shared::Shared;
use base::UnixMs;
use observe::heat::{MINUTES, ROWS, Rows, row_max};
use serde::Serialize;

#[derive(Serialize)]
struct Heat {
    /// The minute of the answer, since 1970; columns are at most so many minutes before it.
    minute: i64,
    minutes: usize,
    /// The largest nanoseconds of each row but the last one, which is open.
    row_max_ns: Vec<u64>,
    /// Minutes with requests, oldest first, and their counts by row.
    columns: Vec<(i64, Rows)>,
}

/// The answer: at most 1,440 columns of 24 numbers, about 100 KB.
pub(crate) fn json(shared: &Shared, unix_ms: UnixMs) -> Result<String, serde_json::Error> {
    let minute = unix_ms.0.div_euclid(60_000);
    serde_json::to_string(&Heat {
        minute,
        minutes: MINUTES,
        row_max_ns: (0..ROWS).filter_map(row_max).collect(),
        columns: shared.heat.columns(minute),
    })
}
