//! Positions in a list, from indexes which may count from its end.

/// The position that an index means, which counts from the end if negative.
pub(super) fn position(index: i64, len: u64) -> Option<u64> {
    let at = if index < 0 { len.checked_sub(index.unsigned_abs())? } else { index as u64 };
    (at < len).then_some(at)
}

/// The positions between two indexes, both included: the first, and how many.
pub(super) fn bounds(start: i64, stop: i64, len: u64) -> (u64, u64) {
    let len = len as i64;
    let from = if start < 0 { (start + len).max(0) } else { start };
    let to = if stop < 0 { stop + len } else { stop.min(len - 1) };
    if from > to { (0, 0) } else { (from as u64, (to - from) as u64 + 1) }
}

#[cfg(test)]
mod tests {
    use super::{bounds, position};

    #[test]
    fn indexes_count_from_both_ends() {
        assert_eq!(position(0, 0), None);
        assert_eq!((position(2, 3), position(3, 3)), (Some(2), None));
        assert_eq!((position(-3, 3), position(-4, 3)), (Some(0), None));
        assert_eq!((position(i64::MIN, 3), position(i64::MAX, 3)), (None, None));
    }

    #[test]
    fn ranges_are_clamped_to_the_list() {
        assert_eq!(bounds(0, -1, 5), (0, 5));
        assert_eq!(bounds(-3, -2, 5), (2, 2));
        assert_eq!(bounds(-100, 100, 5), (0, 5));
        assert_eq!(bounds(3, 1, 5), (0, 0));
        assert_eq!(bounds(5, 9, 5), (0, 0));
        assert_eq!(bounds(0, -6, 5), (0, 0));
        assert_eq!(bounds(i64::MIN, i64::MAX, 5), (0, 5));
        assert_eq!(bounds(i64::MAX, i64::MIN, 5), (0, 0));
    }
}
