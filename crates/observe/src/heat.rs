//! A heat map of the last 24 hours: how many values fell into each row of each minute. For service
//! times: time from left to right, latency from bottom to top.
//!
//! ```text
//! row   0          1            2            ...   22                  23
//! ns    .. 1,023   .. 2,047     .. 4,095     ...   .. 4.29 s           above
//! ```
//!
//! 1,440 columns of 24 counts of 4 bytes: 138 KB, allocated with the first value. Columns stand in
//! a ring by the minute of the wall clock. A minute without values has no column.

use base::sync::{Mutex, MutexGuard, PoisonError};

/// Columns: the minutes of a day.
pub const MINUTES: usize = 24 * 60;
/// Rows of a column.
pub const ROWS: usize = 24;
/// Milliseconds of a column.
const MINUTE_MS: i64 = 60_000;
/// Row 0 ends at 2 to this power, in nanoseconds.
const FIRST_BITS: u32 = 10;

/// Counts of one column, by row.
pub type Rows = [u32; ROWS];

/// The row of a time.
#[inline]
pub const fn row_of(ns: u64) -> usize {
    let bits = u64::BITS - (ns >> FIRST_BITS).leading_zeros();
    if bits as usize >= ROWS { ROWS - 1 } else { bits as usize }
}

/// The largest time of a row in nanoseconds; none for the last one, which is open.
pub const fn row_max(row: usize) -> Option<u64> {
    if row + 1 < ROWS { Some((1 << (FIRST_BITS + row as u32)) - 1) } else { None }
}

/// Counts that their worker has not added to the map yet.
#[derive(Debug, Default)]
pub struct Unfolded {
    rows: [u64; ROWS],
    /// When the last of them was counted, milliseconds since 1970; 0 if there are none.
    unix_ms: i64,
}

impl Unfolded {
    /// Counts `n` values of `ns` nanoseconds at this time.
    #[inline]
    pub fn record(&mut self, unix_ms: i64, n: u64, ns: u64) {
        self.rows[row_of(ns)] += n;
        self.unix_ms = unix_ms;
    }
}

/// The map.
#[derive(Debug, Default)]
pub struct HeatMap(Mutex<Map>);

#[derive(Debug, Default)]
struct Map {
    /// Minute and counts; the place is the minute modulo [`MINUTES`].
    columns: Vec<(i64, Rows)>,
    /// The latest minute with values.
    latest: i64,
}

impl HeatMap {
    /// Adds a worker's counts to the column of their last minute. If the wall clock was set back,
    /// they count in the latest column: columns never change behind it.
    pub fn fold(&self, counts: &mut Unfolded) {
        let unix_ms = std::mem::take(&mut counts.unix_ms);
        if unix_ms == 0 {
            return;
        }
        let minute = unix_ms.div_euclid(MINUTE_MS);
        let mut map = self.lock();
        if map.columns.is_empty() {
            map.columns = vec![(i64::MIN, [0; ROWS]); MINUTES];
            map.latest = minute;
        }
        map.latest = map.latest.max(minute);
        let minute = map.latest;
        let column = &mut map.columns[minute.rem_euclid(MINUTES as i64) as usize];
        if column.0 != minute {
            *column = (minute, [0; ROWS]);
        }
        for (sum, n) in column.1.iter_mut().zip(&mut counts.rows) {
            let n = u32::try_from(std::mem::take(n)).unwrap_or(u32::MAX);
            *sum = sum.saturating_add(n);
        }
    }

    /// The columns of the 24 hours before the end of this minute, oldest first; none for minutes
    /// without values.
    pub fn columns(&self, minute: i64) -> Vec<(i64, Rows)> {
        let map = self.lock();
        let last = minute.max(map.latest);
        let kept = last - MINUTES as i64;
        let mut columns: Vec<_> =
            map.columns.iter().filter(|(at, _)| *at > kept).copied().collect();
        columns.sort_unstable_by_key(|(at, _)| *at);
        columns
    }

    fn lock(&self) -> MutexGuard<'_, Map> {
        // No code panics in the middle of an update under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds values of this minute: how many, and nanoseconds.
    fn add(map: &HeatMap, minute: i64, values: &[(u64, u64)]) {
        let mut counts = Unfolded::default();
        let at = minute * MINUTE_MS + 59_999;
        for (n, ns) in values {
            counts.record(at, *n, *ns);
        }
        map.fold(&mut counts);
        map.fold(&mut counts); // nothing is left in it
    }

    /// Minutes and the rows that are not empty.
    fn shown(map: &HeatMap, minute: i64) -> Vec<(i64, Vec<(usize, u32)>)> {
        let rows = |rows: Rows| rows.into_iter().enumerate().filter(|(_, n)| *n > 0).collect();
        map.columns(minute).into_iter().map(|(at, r)| (at, rows(r))).collect()
    }

    #[test]
    fn the_rows_are_contiguous_powers_of_two() {
        assert_eq!((row_of(0), row_of(1_023), row_of(1_024)), (0, 0, 1));
        for row in 0..ROWS - 1 {
            let max = row_max(row).expect("not the last");
            assert_eq!((row_of(max), row_of(max + 1)), (row, row + 1));
        }
        assert_eq!(row_max(ROWS - 1), None);
        assert_eq!(row_of(u64::MAX), ROWS - 1);
    }

    #[test]
    fn workers_add_to_the_column_of_their_minute() {
        let map = HeatMap::default();
        add(&map, 7, &[]);
        assert_eq!(shown(&map, 7), []);
        add(&map, 7, &[(2, 500), (3, 5_000)]);
        add(&map, 7, &[(1, 500)]);
        add(&map, 9, &[(u64::MAX, u64::MAX)]);
        add(&map, 9, &[(1, u64::MAX)]);
        let expected = [(7, vec![(0, 3), (3, 3)]), (9, vec![(ROWS - 1, u32::MAX)])];
        assert_eq!(shown(&map, 9), expected);
    }

    #[test]
    fn a_day_is_kept_and_what_is_older_is_replaced() {
        let map = HeatMap::default();
        let day = MINUTES as i64;
        for minute in 0..day + 2 {
            add(&map, minute, &[(1, 0)]);
        }
        let columns = map.columns(day + 1);
        assert_eq!((columns.len(), columns[0].0), (MINUTES, 2));
        assert_eq!(map.columns(day + 11)[0].0, 12, "nothing happened for ten minutes");
        assert_eq!(map.columns(3 * day), []);
        // The wall clock is set back: nothing behind the latest column changes.
        add(&map, 5, &[(4, 0)]);
        assert_eq!(
            map.columns(day + 1).last().map(|(at, rows)| (*at, rows[0])),
            Some((day + 1, 5))
        );
        // And far ahead: all is older than a day.
        add(&map, 9 * day, &[(1, 0)]);
        assert_eq!(shown(&map, 9 * day), [(9 * day, vec![(0, 1)])]);
    }
}
