//! CRC-64/Redis (Jones's polynomial 0xad93d23594c935a9, both ends reflected, start 0, nothing
//! added at the end): the checksum of RDB files and DUMP payloads.
//!
//! Eight bytes a step over eight tables of 256 ("slicing"), 16 KiB in all.

/// Bytes processed per step.
const STEP: usize = 8;

/// The polynomial with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// `TABLES[k][b]`: what byte `b` contributes when `k` more bytes follow it in the same step.
static TABLES: [[u64; 256]; STEP] = tables();

const fn tables() -> [[u64; 256]; STEP] {
    let mut tables = [[0u64; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
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
            tables[k][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// Extends `crc`, the checksum of earlier bytes, by `bytes`. The checksum of no bytes is 0.
///
/// ```
/// use base::crc64::crc64;
/// assert_eq!(crc64(crc64(0, b"12345"), b"6789"), 0xe9c6_d914_c4b8_d9ca);
/// ```
pub fn crc64(mut crc: u64, bytes: &[u8]) -> u64 {
    let t = &TABLES;
    let mut steps = bytes.chunks_exact(STEP);
    for step in &mut steps {
        let word = u64::from_le_bytes(step.try_into().expect("chunks_exact yields STEP bytes"));
        let b = (word ^ crc).to_le_bytes();
        crc = t[7][b[0] as usize]
            ^ t[6][b[1] as usize]
            ^ t[5][b[2] as usize]
            ^ t[4][b[3] as usize]
            ^ t[3][b[4] as usize]
            ^ t[2][b[5] as usize]
            ^ t[1][b[6] as usize]
            ^ t[0][b[7] as usize];
    }
    for &byte in steps.remainder() {
        crc = (crc >> 8) ^ t[0][(crc as u8 ^ byte) as usize];
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bit by bit, directly from the definition.
    fn slow(crc: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(crc, |crc, &byte| {
            (0..8).fold(crc ^ u64::from(byte), |crc, _| {
                if crc & 1 != 0 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 }
            })
        })
    }

    #[test]
    fn the_checksum_matches_the_published_check_value() {
        assert_eq!(crc64(0, b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(0, b""), 0);
        assert_eq!(POLYNOMIAL.reverse_bits(), 0xad93_d235_94c9_35a9);
    }

    proptest! {
        #[test]
        fn the_sliced_checksum_agrees_with_the_bitwise_one(start: u64, bytes: Vec<u8>, cut: prop::sample::Index) {
            prop_assert_eq!(crc64(start, &bytes), slow(start, &bytes));
            let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(crc64(crc64(start, head), tail), slow(start, &bytes));
        }
    }
}
