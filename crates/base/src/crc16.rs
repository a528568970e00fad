//! CRC16-XMODEM (polynomial 0x1021, start 0) and the hash slot of a key.
//!
//! Eight bytes a step over eight tables of 256 ("slicing"), 4 KiB in all: 2.7 ns for a key of 16
//! bytes against 17 to 21 ns bytewise.

use crate::types::SlotId;

/// Bytes processed per step.
const STEP: usize = 8;

/// `TABLES[k][b]`: what byte `b` contributes when `k` more bytes follow it in the same step.
static TABLES: [[u16; 256]; STEP] = tables();

const fn tables() -> [[u16; 256]; STEP] {
    let mut tables = [[0u16; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The checksum of `bytes`. Leading zeros do not change a sum that starts at 0, so the first bytes
/// are padded with leading zeros to a whole step.
#[inline(always)]
pub fn crc16(bytes: &[u8]) -> u16 {
    let (head, mut steps) = bytes.as_rchunks::<STEP>();
    // The first step is apart, because a sum of 0 needs no mixing.
    let mut crc = 0;
    if !head.is_empty() {
        crc = step(0, &behind_zeros(bytes, head.len()));
    } else if let Some((first, behind)) = steps.split_first() {
        crc = step(0, first);
        steps = behind;
    }
    for bytes in steps {
        crc = step(crc, bytes);
    }
    crc
}

/// Processes eight bytes.
#[inline(always)]
fn step(crc: u16, b: &[u8; STEP]) -> u16 {
    let t = &TABLES;
    t[7][(b[0] ^ (crc >> 8) as u8) as usize]
        ^ t[6][(b[1] ^ crc as u8) as usize]
        ^ t[5][b[2] as usize]
        ^ t[4][b[3] as usize]
        ^ t[3][b[4] as usize]
        ^ t[2][b[5] as usize]
        ^ t[1][b[6] as usize]
        ^ t[0][b[7] as usize]
}

/// The first `n` bytes, 1 to 7, behind zeros.
#[inline(always)]
fn behind_zeros(bytes: &[u8], n: usize) -> [u8; STEP] {
    match bytes.first_chunk::<STEP>() {
        Some(first) => (u64::from_be_bytes(*first) >> ((STEP - n) * 8)).to_be_bytes(),
        None => few(bytes),
    }
}

/// Up to seven bytes, behind zeros. Parts may overlap: they agree on the bytes that both contain.
#[inline(always)]
fn few(bytes: &[u8]) -> [u8; STEP] {
    let n = bytes.len();
    let word = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        u64::from(first) << ((n - 4) * 8) | u64::from(last)
    } else if n > 0 {
        let byte = |at: usize| u64::from(bytes[at]) << ((n - 1 - at) * 8);
        byte(0) | byte(n / 2) | byte(n - 1)
    } else {
        0
    };
    word.to_be_bytes()
}

/// The slot of `key`: of the part between its first `{` and the next `}` if that is not empty,
/// else of the whole key.
#[inline(always)]
pub fn key_slot(key: &[u8]) -> SlotId {
    let hashed = if has_brace(key) { hash_tag(key) } else { key };
    SlotId::new(crc16(hashed))
}

/// True if `key` holds a `{`. Tests whole words without branches, so that a usual key without a tag
/// costs a few instructions: the tail is tested with the last eight bytes, which may overlap the
/// last whole word.
#[inline(always)]
fn has_brace(key: &[u8]) -> bool {
    let (Some(first), Some(last)) = (key.first_chunk::<STEP>(), key.last_chunk::<STEP>()) else {
        return brace_bytes(&few(key)) != 0;
    };
    let mut found = brace_bytes(first) | brace_bytes(last);
    if key.len() > 2 * STEP {
        for word in key[STEP..].as_chunks().0 {
            found |= brace_bytes(word);
        }
    }
    found != 0
}

/// Non-zero if and only if one of the eight bytes is `{` (the classic test for a zero byte, after
/// turning `{` into zero; false positives can only appear above a true one).
#[inline(always)]
const fn brace_bytes(word: &[u8; STEP]) -> u64 {
    let zeroed = u64::from_le_bytes(*word) ^ (0x0101_0101_0101_0101 * b'{' as u64);
    zeroed.wrapping_sub(0x0101_0101_0101_0101) & !zeroed & 0x8080_8080_8080_8080
}

#[cold]
fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let after = &key[open + 1..];
    match after.iter().position(|&byte| byte == b'}') {
        None | Some(0) => key,
        Some(len) => &after[..len],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bit by bit, directly from the definition.
    fn slow(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0u16, |crc, &byte| {
            (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
                if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 }
            })
        })
    }

    #[test]
    fn the_checksum_matches_the_published_check_value() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    /// Lengths which are not multiples of a step, and a brace at each position.
    #[test]
    fn short_inputs_of_every_length_are_right() {
        for len in 0..40usize {
            let bytes: Vec<u8> = (0..len).map(|at| 0x80 | (at * 37) as u8).collect();
            assert_eq!(crc16(&bytes), slow(&bytes), "{len} bytes");
            assert!(!has_brace(&bytes), "{len} bytes");
            for at in 0..len {
                let mut bytes = bytes.clone();
                bytes[at] = b'{';
                assert!(has_brace(&bytes), "at {at} of {len}");
            }
        }
    }

    /// Recorded from CLUSTER KEYSLOT: one `slot<TAB>key` per line, with `\xHH` for other bytes.
    #[test]
    fn slots_match_a_recording_of_the_real_server() {
        let mut lines = 0;
        for line in include_str!("../tests/golden/keyslot.txt").lines() {
            let (slot, key) = line.split_once('\t').expect("slot, tab, key");
            let key = crate::golden::unescape(key);
            assert_eq!(key_slot(&key).index().to_string(), slot, "{line}");
            lines += 1;
        }
        assert!(lines > 100, "the recording is there: {lines}");
    }

    proptest! {
        #[test]
        fn the_sliced_checksum_agrees_with_the_bitwise_one(bytes: Vec<u8>) {
            prop_assert_eq!(crc16(&bytes), slow(&bytes));
        }

        #[test]
        fn the_brace_search_agrees_with_a_linear_search(bytes in prop::collection::vec(prop_oneof![
            Just(b'{'), Just(b'|'), Just(b'z'), Just(0u8), Just(0xfbu8), any::<u8>()], 0..40)) {
            prop_assert_eq!(has_brace(&bytes), bytes.contains(&b'{'));
        }

        #[test]
        fn keys_with_one_hash_tag_share_a_slot(a: Vec<u8>, b: Vec<u8>, tag in "[a-z]{1,20}") {
            let key = |prefix: &[u8], suffix: &[u8]| {
                let prefix: Vec<u8> = prefix.iter().copied().filter(|&c| c != b'{').collect();
                key_slot(&[prefix.as_slice(), b"{", tag.as_bytes(), b"}", suffix].concat())
            };
            prop_assert_eq!(key(&a, &b), key(&b, &a));
            prop_assert_eq!(key(&a, &b), key_slot(tag.as_bytes()));
        }
    }
}
