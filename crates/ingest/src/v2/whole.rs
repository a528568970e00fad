//! Finds the ends of consecutive messages in the body of a Data frame.
//!
//! ```text
//!  0         4                 4 + size
//!  +---------+-- - - - - - - --+---------+-- - -
//!  | size, 4 | payload         | size, 4 | ...
//!  +---------+-- - - - - - - --+---------+-- - -
//! ```
//!
//! Cost: one load and one comparison per message. Messages of equal size are taken four at a time,
//! so that finding the next one does not wait for a load.

/// Bytes of a message's size.
pub(crate) const SIZE_BYTES: usize = 4;
/// Messages taken at once if their sizes are equal.
const RUN: usize = 4;

/// How many messages at the front of `body` are whole and not too large, and where they end.
#[inline]
pub(crate) fn whole(body: &[u8], payload_max: u32) -> (u64, usize) {
    let (mut count, mut at) = (0, 0);
    let mut next = size_at(body, 0);
    while let Some(size) = next {
        let step = SIZE_BYTES + size as usize;
        if size > payload_max || body.len() - at < step {
            break;
        }
        count += 1;
        at += step;
        next = size_at(body, at);
        // Runs of the same size.
        while next.is_some_and(|next| next == size)
            && let Some(run) = body[at..].get(..RUN * step)
            && (1..RUN).all(|n| run[n * step..].starts_with(&size.to_le_bytes()))
        {
            count += RUN as u64;
            at += RUN * step;
            next = size_at(body, at);
        }
    }
    (count, at)
}

/// Where the first `count` messages end; they are whole.
#[cold]
pub(crate) fn end_of(body: &[u8], count: u64) -> usize {
    (0..count).fold(0, |at, _| at + SIZE_BYTES + size_at(body, at).map_or(0, |size| size as usize))
}

#[inline(always)]
fn size_at(body: &[u8], at: usize) -> Option<u32> {
    body.get(at..)?.first_chunk().map(|size| u32::from_le_bytes(*size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::write_message;

    fn messages(sizes: &[usize]) -> Vec<u8> {
        let mut out = Vec::new();
        for size in sizes {
            write_message(&mut out, &vec![0xff; *size]);
        }
        out
    }

    #[test]
    fn runs_of_equal_sizes_end_at_a_change() {
        let sizes = [5, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 3, 5, 5, 5, 5];
        let bytes = messages(&sizes);
        let mut ends = vec![0];
        for size in sizes {
            ends.push(ends[ends.len() - 1] + SIZE_BYTES + size);
        }
        for len in 0..=bytes.len() {
            let count = ends.iter().rposition(|end| *end <= len).expect("0 is there");
            assert_eq!(whole(&bytes[..len], 5), (count as u64, ends[count]), "{len}");
        }
        for (count, end) in ends.iter().enumerate() {
            assert_eq!(end_of(&bytes, count as u64), *end);
        }
    }

    #[test]
    fn counting_stops_before_a_message_which_is_too_large() {
        let bytes = messages(&[4, 4, 4, 4, 5, 4, 4, 4, 4]);
        assert_eq!(whole(&bytes, 5), (9, bytes.len()));
        assert_eq!(whole(&bytes, 4), (4, 32));
        assert_eq!(whole(&bytes, 3), (0, 0));
        assert_eq!(whole(&[0xff; 12], u32::MAX), (0, 0));
    }
}
