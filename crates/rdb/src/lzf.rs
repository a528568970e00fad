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
    let mut rest = input;
    while out.len() < end {
        let used = sequence(rest, start, end - out.len(), out)?;
        rest = &rest[used..];
    }
    if rest.is_empty() { Ok(()) } else { Err(Error::Corrupt) }
}

/// Appends what the first sequence of compressed bytes stands for, at most `left` bytes, to a text
/// which begins at `start`; says how many bytes the sequence has.
fn sequence(input: &[u8], start: usize, left: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
    let byte = |at: usize| input.get(at).map(|&byte| usize::from(byte)).ok_or(Error::Corrupt);
    let first = byte(0)?;
    let (run, high) = (first >> 5, first & 0x1f);
    if run == 0 {
        let plain = input.get(1..high + 2).ok_or(Error::Corrupt)?;
        if plain.len() > left {
            return Err(Error::Corrupt);
        }
        out.extend_from_slice(plain);
        return Ok(high + 2);
    }
    let (copy, at) = if run == 7 { (byte(1)? + 9, 2) } else { (run + 2, 1) };
    let back = (high << 8 | byte(at)?) + 1;
    if back > out.len() - start || copy > left {
        return Err(Error::Corrupt);
    }
    repeat(out, back, copy);
    Ok(at + 1)
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

/// How far a compressor has come in a string.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// The next place.
    at: usize,
    /// The first byte that is not written.
    plain: usize,
    /// Places since the last copy.
    misses: usize,
}

/// A part of a string.
#[derive(Clone, Copy)]
struct Window<'a> {
    bytes: &'a [u8],
    /// Where it begins in the string.
    start: usize,
    /// It reaches to the end of the string.
    is_last: bool,
}

impl<'a> Window<'a> {
    fn end(self) -> usize {
        self.start + self.bytes.len()
    }

    /// The bytes from a place on.
    fn from(self, at: usize) -> &'a [u8] {
        &self.bytes[at - self.start..]
    }

    fn part(self, from: usize, to: usize) -> &'a [u8] {
        &self.bytes[from - self.start..to - self.start]
    }
}

impl Compressor {
    /// `input` compressed, if that takes at most `most` bytes.
    pub fn compress(&mut self, input: &[u8], most: usize) -> Option<&[u8]> {
        let bits = self.prepare(input.len())?;
        let base = self.base;
        self.base += input.len() as u32;
        self.out.clear();
        let (window, mut position) =
            (Window { bytes: input, start: 0, is_last: true }, Position::default());
        if !self.advance(window, &mut position, (base, bits), most) {
            return None;
        }
        let plain = &input[position.plain..];
        // Every run of bytes as they are takes a byte more.
        if self.out.len() + plain.len() + plain.len().div_ceil(LITERALS_MAX) > most {
            return None;
        }
        put_plain(&mut self.out, plain);
        Some(&self.out)
    }

    /// Compresses what can be decided from the bytes of the window; false if it takes more than
    /// `most` bytes.
    fn advance(
        &mut self,
        text: Window<'_>,
        position: &mut Position,
        (base, bits): (u32, u32),
        most: usize,
    ) -> bool {
        let Position { mut at, mut plain, mut misses } = *position;
        // A copy from here, and the places in it, must be within what is known.
        let beyond = if text.is_last { 0 } else { COPY_MAX };
        while at + COPY_MIN + beyond <= text.end() {
            let place = &mut self.table[hash(text.from(at), bits)];
            let before = place.checked_sub(base + 1).map(|before| before as usize);
            *place = base + at as u32 + 1;
            let copied = before
                .filter(|before| at - before <= REACH)
                .map(|before| (before, common(text.from(before), text.from(at))))
                .filter(|&(_, len)| len >= COPY_MIN);
            let Some((before, len)) = copied else {
                misses += 1;
                at += 1 + (misses >> PATIENCE);
                continue;
            };
            put_plain(&mut self.out, text.part(plain, at));
            put_copy(&mut self.out, at - before - 1, len);
            if self.out.len() > most {
                return false;
            }
            // The places inside the copy are found from its last ones on.
            for inside in at + len.saturating_sub(2)..at + len {
                if inside + COPY_MIN <= text.end() {
                    self.table[hash(text.from(inside), bits)] = base + inside as u32 + 1;
                }
            }
            misses = 0;
            at += len;
            plain = at;
        }
        *position = Position { at, plain, misses };
        true
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

/// Compresses a string which comes in pieces, into the same bytes as [`Compressor::compress`].
#[derive(Debug, Default)]
pub struct PieceCompressor {
    compressor: Compressor,
    bits: u32,
    /// Bytes of the whole string.
    len: usize,
    position: Position,
    /// The bytes that are needed again, and those not yet compressed.
    window: Vec<u8>,
    /// Where the window begins in the string.
    start: usize,
}

impl PieceCompressor {
    /// For a string of `len` bytes; none if that is too long.
    pub fn new(len: usize) -> Option<Self> {
        let mut compressor = Compressor::default();
        let bits = compressor.prepare(len)?;
        Some(Self { compressor, bits, len, ..Self::default() })
    }

    /// Takes the next bytes of the string, and returns the next compressed ones.
    ///
    /// # Panics
    /// If there are more bytes than were announced.
    pub fn push(&mut self, piece: &[u8]) -> &[u8] {
        self.window.extend_from_slice(piece);
        let end = self.start + self.window.len();
        assert!(end <= self.len, "as long as announced");
        let is_last = end == self.len;
        let text = Window { bytes: &self.window, start: self.start, is_last };
        self.compressor.out.clear();
        let (position, base) = (&mut self.position, self.compressor.base);
        self.compressor.advance(text, position, (base, self.bits), usize::MAX);
        // A run of bytes as they are is written early, but cut where it would be cut later.
        let known = if is_last { end } else { end.min(position.at) };
        let run = known - position.plain;
        let whole = if is_last { run } else { run / LITERALS_MAX * LITERALS_MAX };
        put_plain(&mut self.compressor.out, text.part(position.plain, position.plain + whole));
        position.plain += whole;
        let keep = position.plain.min(position.at.saturating_sub(REACH)).min(end);
        self.window.drain(..keep - self.start);
        self.start = keep;
        &self.compressor.out
    }
}

/// Decompresses a string which comes in pieces.
#[derive(Debug, Default)]
pub struct PieceDecompressor {
    /// Compressed bytes that are not complete.
    input: Vec<u8>,
    /// The last bytes of the text that can be copied, and the new ones.
    text: Vec<u8>,
    /// Bytes of the text that are still to come.
    left: usize,
}

/// The longest sequence of compressed bytes that belong together.
const SEQUENCE_MAX: usize = 1 + LITERALS_MAX;

impl PieceDecompressor {
    /// For a text of `len` bytes.
    pub fn new(len: usize) -> Self {
        Self { left: len, ..Self::default() }
    }

    /// Takes the next compressed bytes, and returns the next ones of the text. With the last of
    /// them the text is complete, otherwise they are corrupt.
    pub fn push(&mut self, piece: &[u8], is_last: bool) -> Result<&[u8], Error> {
        let known = self.text.len().saturating_sub(REACH);
        self.text.drain(..known);
        let old = self.text.len();
        self.input.extend_from_slice(piece);
        let mut at = 0;
        while at < self.input.len() && (is_last || self.input.len() - at >= SEQUENCE_MAX) {
            let before = self.text.len();
            at += sequence(&self.input[at..], 0, self.left, &mut self.text)?;
            self.left -= self.text.len() - before;
        }
        self.input.drain(..at);
        if is_last && self.left > 0 { Err(Error::Corrupt) } else { Ok(&self.text[old..]) }
    }
}

/// A hash of the first three bytes.
fn hash(bytes: &[u8], bits: u32) -> usize {
    let three = match bytes.first_chunk::<4>() {
        Some(&four) => u32::from_le_bytes(four) << 8,
        None => u32::from_le_bytes([0, bytes[0], bytes[1], bytes[2]]),
    };
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

        /// Whatever the pieces are, they become the same bytes, and back.
        #[test]
        fn pieces_make_the_same_bytes(
            texts in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 1..3000),
                (any::<u8>(), 1..20_000usize).prop_map(|(byte, n)| vec![byte; n]),
                (prop::collection::vec(any::<u8>(), 1..600), 1..30usize)
                    .prop_map(|(a, n)| a.repeat(n)),
            ], 1..6),
            sizes in prop::collection::vec(1..9000usize, 1..5),
        ) {
            let text = texts.concat();
            let whole = Compressor::default().compress(&text, usize::MAX).expect("fits").to_vec();
            let pieces = |bytes: &[u8]| {
                let (mut rest, mut cut) = (bytes, Vec::new());
                for size in sizes.iter().cycle() {
                    let (piece, behind) = rest.split_at((*size).min(rest.len()));
                    cut.push(piece.to_vec());
                    rest = behind;
                    if rest.is_empty() {
                        return cut;
                    }
                }
                unreachable!("cycles")
            };
            let mut compressor = PieceCompressor::new(text.len()).expect("short");
            let packed: Vec<u8> =
                pieces(&text).iter().flat_map(|piece| compressor.push(piece).to_vec()).collect();
            prop_assert!(packed == whole);
            let mut decompressor = PieceDecompressor::new(text.len());
            let (mut plain, cut) = (Vec::new(), pieces(&packed));
            for (n, piece) in cut.iter().enumerate() {
                let next = decompressor.push(piece, n + 1 == cut.len()).expect("it is right");
                plain.extend_from_slice(next);
            }
            prop_assert!(plain == text);
        }

        #[test]
        fn any_bytes_are_expanded_without_a_panic(bytes: Vec<u8>, len in 0..5000usize) {
            let whole = plain(&bytes, len);
            if let Ok(out) = &whole {
                prop_assert_eq!(out.len(), len);
            }
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let mut pieces = PieceDecompressor::new(len);
            let mut text = pieces.push(first, false).map(<[u8]>::to_vec);
            if let Ok(text) = &mut text {
                text.extend_from_slice(pieces.push(second, true).unwrap_or_default());
            }
            if let Ok(whole) = whole {
                prop_assert_eq!(text, Ok(whole));
            }
        }
    }
}
