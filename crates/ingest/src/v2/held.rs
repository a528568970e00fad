//! Which messages of a producer the server holds, and which of those that arrive are new.
//!
//! ```text
//! numbers   1 ... last | last + 1 ...
//! held      <--------->|
//! arrived        <-----|-------->         first ..= first + count - 1
//!                 duplicates, new          first > last + 1: Fault::Gap
//! ```

use crate::v2::Fault;

/// The highest number that is held of a producer; `None` before its first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The number.
    pub last: Option<u64>,
}

/// Messages that may be taken: the first `duplicates` are held already, the others are new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admit {
    /// How many are held already.
    pub duplicates: u64,
}

impl Held {
    /// Checks `count` messages, the first of which has the number `first`.
    ///
    /// # Errors
    /// [`Fault::Gap`] if numbers between the held ones and these are missing, or if one of these
    /// has no valid number.
    pub const fn admit(&self, first: u64, count: u64) -> Result<Admit, Fault> {
        if first == 0 || (count > 0 && u64::MAX - first < count - 1) {
            return Err(Fault::Gap);
        }
        let Some(last) = self.last else { return Ok(Admit { duplicates: 0 }) };
        if first - 1 > last {
            return Err(Fault::Gap);
        }
        let held = last - (first - 1);
        Ok(Admit { duplicates: if held < count { held } else { count } })
    }

    /// Records that everything up to `last` is held now; never decreases.
    pub fn hold(&mut self, last: u64) {
        self.last = self.last.max(Some(last));
    }

    /// The number for Welcome and Error frames: 0 if nothing is held.
    pub fn last_id(&self) -> u64 {
        self.last.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(last: u64, first: u64, count: u64) -> Result<u64, Fault> {
        Held { last: Some(last) }.admit(first, count).map(|a| a.duplicates)
    }

    #[test]
    fn an_unknown_producer_may_start_at_any_number_but_0() {
        let held = Held::default();
        for first in [1, 2, 1 << 40, u64::MAX] {
            assert_eq!(held.admit(first, 1), Ok(Admit { duplicates: 0 }));
        }
        assert_eq!(held.admit(0, 1), Err(Fault::Gap));
        assert_eq!(held.last_id(), 0);
    }

    #[test]
    fn stored_numbers_are_duplicates_and_missing_ones_a_gap() {
        assert_eq!(admit(10, 11, 5), Ok(0));
        assert_eq!(admit(10, 10, 5), Ok(1));
        assert_eq!(admit(10, 8, 5), Ok(3));
        assert_eq!(admit(10, 1, 5), Ok(5));
        assert_eq!(admit(10, 6, 5), Ok(5));
        assert_eq!(admit(10, 12, 1), Err(Fault::Gap));
        assert_eq!(admit(10, 0, 1), Err(Fault::Gap));
    }

    #[test]
    fn numbers_are_admitted_up_to_the_largest() {
        assert_eq!(admit(u64::MAX - 1, u64::MAX, 1), Ok(0));
        assert_eq!(admit(u64::MAX, u64::MAX, 1), Ok(1));
        assert_eq!(admit(u64::MAX - 1, u64::MAX, 2), Err(Fault::Gap));
        assert_eq!(admit(u64::MAX, 1, u64::MAX), Ok(u64::MAX));
        assert_eq!(admit(5, 2, u64::MAX), Err(Fault::Gap));
        assert_eq!(admit(5, 3, 0), Ok(0));
    }

    #[test]
    fn the_stored_number_never_decreases() {
        let mut held = Held::default();
        held.hold(7);
        held.hold(3);
        assert_eq!(held.last_id(), 7);
    }
}
