//! Sorting of much in steps: texts in pieces, rows with what they are sorted by, sorted runs that
//! are merged as they are taken. SORT and the combinations of large sorted sets stand on it.

pub mod order;
pub mod runs;
