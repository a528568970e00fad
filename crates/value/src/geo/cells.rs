//! Cells of the map that cover an area.

use super::place::{LAT, LAT_MAX, LON_MAX, STEPS, interleave};
use std::ops::{Range, RangeInclusive};

/// The row of cells that a latitude is in.
pub(super) fn row(lat: f64, steps: u32) -> i64 {
    (LAT.cell(lat, steps) as i64).min((1 << steps) - 1)
}

/// The column of cells that a longitude is in, which may lie beyond the date line.
pub(super) fn column(lon: f64, steps: u32) -> i64 {
    ((lon + LON_MAX) / (2.0 * LON_MAX) * f64::from(1_u32 << steps)).floor() as i64
}

/// The scores of these cells in intervals, ascending. Beyond the date line the columns go on at the
/// other side, but not where the eastern edge has a column of its own.
pub(super) fn cells(
    steps: u32,
    rows: RangeInclusive<i64>,
    columns: RangeInclusive<i64>,
    is_east: bool,
) -> Vec<Range<u64>> {
    let (count, shift) = (1_i64 << steps, 2 * (STEPS - steps));
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for row in rows {
        for column in columns.clone() {
            let column = if is_east { column } else { column.rem_euclid(count) };
            let cell = interleave(column as u32, row as u32);
            ranges.push(cell << shift..(cell + 1) << shift);
        }
    }
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let joined = next.start <= range.end;
        if joined {
            range.end = range.end.max(next.end);
        }
        joined
    });
    ranges
}

/// Cells that cover an area, in each direction.
const CELLS_MAX: f64 = 6.0;
/// Intervals of [`Area::ranges`] at most: one more column and row where the area begins inside a
/// cell, and whole circles of longitude at a coarse step.
pub const RANGES_MAX: usize = 16 * 16;

pub(super) fn is_few(steps: u32, lon: f64, height: f64) -> bool {
    let cells = f64::from(1_u32 << steps);
    let wide = (2.0 * lon).min(2.0 * LON_MAX) / (2.0 * LON_MAX) * cells;
    let high = height / (2.0 * LAT_MAX) * cells;
    wide <= CELLS_MAX && high <= CELLS_MAX
}
