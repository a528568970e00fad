//! Intsets: sets of integers, ascending, all of one width.
//!
//! ```text
//! width in bytes, u32 LE (2, 4 or 8) | members, u32 LE | member LE, signed ...
//! ```

use crate::{Error, Reader};

/// Calls `each` with every member of an intset, ascending; says how many there are.
pub fn read(bytes: &[u8], mut each: impl FnMut(i64) -> Result<(), Error>) -> Result<u64, Error> {
    let mut reader = Reader::new(bytes);
    let width = u32::from_le_bytes(reader.array()?) as usize;
    let count = u32::from_le_bytes(reader.array()?) as usize;
    let body = reader.rest();
    if !matches!(width, 2 | 4 | 8) || count.checked_mul(width) != Some(body.len()) {
        return Err(Error::Corrupt);
    }
    let mut last = None;
    for member in body.chunks_exact(width) {
        let mut word = [if member[width - 1] < 0x80 { 0 } else { 0xff }; 8];
        word[..width].copy_from_slice(member);
        let value = i64::from_le_bytes(word);
        if last.is_some_and(|last| last >= value) {
            return Err(Error::Corrupt);
        }
        last = Some(value);
        each(value)?;
    }
    Ok(count as u64)
}

/// Appends the intset of `members`, which are ascending and no more than a `u32` counts.
pub fn write(out: &mut Vec<u8>, members: &[i64]) {
    let fits = |low, high| members.iter().all(|&n| (low..=high).contains(&n));
    let width = if fits(i64::from(i16::MIN), i64::from(i16::MAX)) {
        2
    } else if fits(i64::from(i32::MIN), i64::from(i32::MAX)) {
        4
    } else {
        8
    };
    let count = u32::try_from(members.len()).expect("an intset has fewer than 2^32 members");
    out.extend_from_slice(&(width as u32).to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    for member in members {
        out.extend_from_slice(&member.to_le_bytes()[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(bytes: &[u8]) -> Result<Vec<i64>, Error> {
        let mut members = Vec::new();
        let count = read(bytes, |member| {
            members.push(member);
            Ok(())
        })?;
        assert_eq!(count, members.len() as u64);
        Ok(members)
    }

    #[test]
    fn inconsistent_intsets_are_refused() {
        assert_eq!(members(b"\x02\0\0\0\x02\0\0\0\xff\xff\x01\0"), Ok(vec![-1, 1]));
        for bad in [
            &b"\x02\0\0\0\x02\0\0\0\x01\0\xff\xff"[..], // descending
            b"\x02\0\0\0\x02\0\0\0\x01\0\x01\0",        // twice
            b"\x03\0\0\0\x01\0\0\0\0\0\0",              // invalid width
            b"\x02\0\0\0\x01\0\0\0",                    // too short
            b"\x02\0\0\0\x01\0\0\0\0\0\0",              // too long
            b"\x02\0\0\0\xff\xff\xff\xff",
            b"\x02\0\0",
        ] {
            assert!(members(bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn members_round_trip(all in prop::collection::btree_set(any::<i64>(), 0..50), by in 0..64u32) {
            let all: std::collections::BTreeSet<i64> = all.into_iter().map(|n| n >> by).collect();
            let all: Vec<i64> = all.into_iter().collect();
            let mut bytes = Vec::new();
            write(&mut bytes, &all);
            prop_assert_eq!(members(&bytes), Ok(all));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = members(&bytes);
        }
    }
}
