//! LZF, the format of compressed strings.
//!
//! ```text
//! 000LLLLL                       L + 1 bytes as they are follow (1 to 32)
//! LLLOOOOO OOOOOOOO              L + 2 bytes (L from 1 to 6) from O + 1 bytes back
//! 111OOOOO LLLLLLLL OOOOOOOO     L + 9 bytes (9 to 264) from O + 1 bytes back
//! ```
//!
//! What is copied may reach into what the copy itself makes. The compressor is greedy: a table of
//! the last place of every hash of three bytes, one candidate a place.

use crate::Error;

/// The most that a byte of compressed text can become: three bytes make 264.
pub const GROWTH_MAX: usize = 88;

/// Longest run of bytes as they are.
const LITERALS_MAX: usize = 32;
/// Shortest and longest copy.
const COPY_MIN: usize = 3;
const COPY_MAX: usize = 264;
/// Copies up to here have their length in the first byte.
const COPY_SHORT: usize = 8;
/// How far back a copy reaches.
const REACH: usize = 1 << 13;
/// Sizes of the table, as powers of two.
const TABLE_BITS_MIN: u32 = 8;
const TABLE_BITS_MAX: u32 = 14;
/// After so many places without a copy, as a power of two, steps become longer.
const PATIENCE: u32 = 6;

/// Appends the `len` bytes that `input` stands for to `out`, which is left in any state on error.
pub fn decompress(input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    if len > input.len().saturating_mul(GROWTH_MAX) {
        return Err(Error::Corrupt);
    }
    out.reserve_exact(len);
    let start = out.len();
    let end = start + len;
    let mut input = input.iter();
    let mut next = || input.next().map(|&byte| usize::from(byte)).ok_or(Error::Corrupt);
    while out.len() < end {
        let first = next()?;
        let (run, high) = (first >> 5, first & 0x1f);
        if run == 0 {
            if out.len() + high + 1 > end {
                return Err(Error::Corrupt);
            }
            for _ in 0..=high {
                out.push(next()? as u8);
            }
            continue;
        }
        let copy = if run == 7 { next()? + 9 } else { run + 2 };
        let back = (high << 8 | next()?) + 1;
        if back > out.len() - start || out.len() + copy > end {
            return Err(Error::Corrupt);
        }
        repeat(out, back, copy);
    }
    if input.next().is_some() { Err(Error::Corrupt) } else { Ok(()) }
}

/// Appends `len` bytes from `back` bytes before the end on.
fn repeat(out: &mut Vec<u8>, back: usize, len: usize) {
    let from = out.len() - back;
    let mut left = len;
    while left > 0 {
        // Twice as much stands there after every round.
        let piece = left.min(out.len() - from);
        out.extend_from_within(from..from + piece);
        left -= piece;
    }
}

/// Compresses; keeps its table from one string to the next.
#[derive(Clone, Debug, Default)]
pub struct Compressor {
    /// Last places of hashes: place + 1 + `base`. What is not above `base` is of a former string.
    table: Vec<u32>,
    base: u32,
    out: Vec<u8>,
}

impl Compressor {
    /// `input` compressed, if that takes at most `most` bytes.
    pub fn compress(&mut self, input: &[u8], most: usize) -> Option<&[u8]> {
        let bits = self.prepare(input.len())?;
        let base = self.base;
        self.base += input.len() as u32;
        self.out.clear();
        let (mut at, mut plain, mut misses) = (0, 0, 0usize);
        while at + COPY_MIN <= input.len() {
            let place = &mut self.table[hash(&input[at..], bits)];
            let before = place.checked_sub(base + 1).map(|before| before as usize);
            *place = base + at as u32 + 1;
            let copied = before
                .filter(|before| at - before <= REACH)
                .map(|before| (before, common(&input[before..], &input[at..])))
                .filter(|&(_, len)| len >= COPY_MIN);
            let Some((before, len)) = copied else {
                misses += 1;
                at += 1 + (misses >> PATIENCE);
                continue;
            };
            put_plain(&mut self.out, &input[plain..at]);
            put_copy(&mut self.out, at - before - 1, len);
            if self.out.len() > most {
                return None;
            }
            // The places inside the copy are found from its last ones on.
            for inside in at + len.saturating_sub(2)..at + len {
                if inside + COPY_MIN <= input.len() {
                    self.table[hash(&input[inside..], bits)] = base + inside as u32 + 1;
                }
            }
            misses = 0;
            at += len;
            plain = at;
        }
        put_plain(&mut self.out, &input[plain..]);
        (self.out.len() <= most).then_some(&self.out)
    }

    /// Makes the table fit; says how many bits of a hash it takes. `None` if the input is too long
    /// to be addressed.
    fn prepare(&mut self, len: usize) -> Option<u32> {
        let bits = (len.max(1).ilog2() + 1).clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
        let len = u32::try_from(len).ok().filter(|&len| len < u32::MAX)?;
        if self.base.checked_add(len).is_none_or(|end| end == u32::MAX) {
            self.table.clear();
            self.base = 0;
        }
        if self.table.len() < 1 << bits {
            self.table.resize(1 << bits, 0);
        }
        Some(bits)
    }
}

/// A hash of the first three bytes.
fn hash(bytes: &[u8], bits: u32) -> usize {
    let three = u32::from_le_bytes([0, bytes[0], bytes[1], bytes[2]]);
    (three.wrapping_mul(0x9e37_79b1) >> (u32::BITS - bits)) as usize
}

/// How many bytes two places have in common, up to the longest copy.
fn common(earlier: &[u8], later: &[u8]) -> usize {
    earlier.iter().zip(later).take(COPY_MAX).take_while(|(a, b)| a == b).count()
}

fn put_plain(out: &mut Vec<u8>, bytes: &[u8]) {
    for run in bytes.chunks(LITERALS_MAX) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
}

fn put_copy(out: &mut Vec<u8>, offset: usize, len: usize) {
    let high = (offset >> 8) as u8;
    if len <= COPY_SHORT {
        out.extend_from_slice(&[(len as u8 - 2) << 5 | high, offset as u8]);
    } else {
        out.extend_from_slice(&[0xe0 | high, (len - 9) as u8, offset as u8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(input: &[u8], len: usize) -> Result<Vec<u8>, Error> {
        let mut out = b"before".to_vec();
        decompress(input, len, &mut out).map(|()| out.split_off(6))
    }

    #[test]
    fn copies_are_expanded_within_their_limits() {
        assert_eq!(plain(b"\x02abc", 3).as_deref(), Ok(&b"abc"[..]));
        assert_eq!(plain(b"\x01aa\xe0\x0a\0", 21), Ok(vec![b'a'; 21]));
        assert_eq!(plain(b"\x01ab\x60\x01", 7).as_deref(), Ok(&b"abababa"[..]));
        for (input, len) in [
            (&b"\x02abc"[..], 2),  // more than announced
            (b"\x02abc", 4),       // less
            (b"\x02ab", 3),        // cut
            (b"\x00a\x20\x01", 4), // before the start, where other bytes are
            (b"\x00a\xe0", 10),    // no length
            (b"\x00a\x20", 4),     // no offset
            (b"\x00a\x20\x00", 3), // a copy beyond the end
            (b"\x00a\x00", 1),     // bytes behind the end
            (b"\0", 0),            // the same
            (b"\x01aa", 1 << 40),  // more than is possible
        ] {
            assert_eq!(plain(input, len), Err(Error::Corrupt), "{}", input.escape_ascii());
        }
        assert_eq!(plain(b"", 0), Ok(vec![]));
    }

    #[test]
    fn far_and_long_copies_round_trip() {
        let mut compressor = Compressor::default();
        let mut noise = vec![0; REACH];
        base::prng::Prng::new(1).fill(&mut noise);
        for gap in [0, REACH - 5, REACH - 4, REACH] {
            let text = [b"12345".as_slice(), &noise[..gap], b"12345", &[b'x'; 1000]].concat();
            let packed = compressor.compress(&text, usize::MAX).expect("no limit").to_vec();
            assert_eq!(plain(&packed, text.len()).as_ref(), Ok(&text), "{gap}");
        }
        let packed = compressor.compress(&vec![7; 1 << 20], usize::MAX).expect("no limit");
        assert!(packed.len() <= (1 << 20) / GROWTH_MAX + 8, "{}", packed.len());
    }

    #[test]
    fn a_compressor_does_not_reference_previous_strings() {
        let mut compressor = Compressor { base: u32::MAX - 1000, ..Compressor::default() };
        for round in 0..100u8 {
            let text = [&[b'q', b'r', b's', round][..], &[b'a'; 40], b"qrs"].concat();
            let packed = compressor.compress(&text, 100).expect("it shrinks").to_vec();
            assert_eq!(plain(&packed, text.len()), Ok(text));
        }
    }

    proptest! {
        #[test]
        fn compressed_strings_round_trip(texts in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            prop::collection::vec(0u8..2, 0..3000),
            (prop::collection::vec(any::<u8>(), 1..40), 1..100usize).prop_map(|(a, n)| a.repeat(n)),
        ], 1..8)) {
            let mut compressor = Compressor::default();
            for text in texts {
                let packed = compressor.compress(&text, usize::MAX).expect("no limit").to_vec();
                prop_assert!(plain(&packed, text.len()).as_ref() == Ok(&text));
                if let Some(most) = packed.len().checked_sub(1) {
                    prop_assert_eq!(compressor.compress(&text, most).map(<[u8]>::len), None);
                }
            }
        }

        #[test]
        fn any_bytes_are_expanded_without_a_panic(bytes: Vec<u8>, len in 0..5000usize) {
            if let Ok(out) = plain(&bytes, len) {
                prop_assert_eq!(out.len(), len);
            }
        }
    }
}
