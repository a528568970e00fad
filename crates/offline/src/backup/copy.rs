//! One pass over a snapshot: it is checked and hashed while its bytes go on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Read};

use rdb::file::ScanOptions;
use sha2::Sha256;

use super::Failure;
use crate::check::Check;
use crate::check_rdb::BLOCK;
use crate::progress::Progress;

/// The SHA-256 of a file under way.
#[derive(Clone, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// The next bytes. O(bytes).
    pub fn update(&mut self, bytes: &[u8]) {
        sha2::Digest::update(&mut self.0, bytes);
    }

    /// The digest of all bytes, in hexadecimal digits.
    pub fn finish(self) -> String {
        let hash = sha2::Digest::finalize(self.0);
        hash.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}"); // a text takes everything
            text
        })
    }
}

/// What passed.
#[derive(Debug, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of the file.
    pub bytes: u64,
    /// Their SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Keys by database.
    pub keys: BTreeMap<u32, u64>,
    /// The moment which the file shows, seconds since 1970.
    pub created_s: Option<i64>,
}

/// Reads a snapshot of `length` bytes to its end, gives each block to `sink`, and checks all of it:
/// the structure, every value, the checksum, and that nothing follows. A terminal shows
/// a bar.
pub fn pass(
    source: &mut impl Read,
    length: u64,
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Copied, Failure> {
    let mut progress = Progress::new(length, io::stderr().is_terminal());
    let passed = blocks(source, length, &mut sink, &mut progress);
    progress.clear();
    passed
}

fn blocks(
    source: &mut impl Read,
    length: u64,
    sink: &mut impl FnMut(&[u8]) -> io::Result<()>,
    progress: &mut Progress,
) -> Result<Copied, Failure> {
    let options = ScanOptions { length: Some(length), verify: true, ..ScanOptions::default() };
    let (mut check, mut hash, mut bytes) = (Check::new(options), Digest::default(), 0);
    let (mut block, mut end) = (vec![0; BLOCK], None);
    loop {
        let count = match source.read(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(|error| format!("the snapshot cannot be read: {error}"))?,
        };
        if end.is_none() {
            let checked = check.block(&block[..count]);
            check.lines.clear();
            end = checked
                .map_err(|error| format!("the snapshot is wrong {error}"))?
                .map(|summary| summary.bytes);
        }
        if count == 0 {
            break;
        }
        bytes += count as u64;
        hash.update(&block[..count]);
        sink(&block[..count]).map_err(|error| format!("the copy cannot be written: {error}"))?;
        progress.at(bytes, check.report.keys());
    }
    if bytes != length || end != Some(bytes) {
        let end = end.unwrap_or_default();
        return Err(format!("the snapshot ends at byte {end}, and has {bytes} of {length} bytes"));
    }
    let keys = check.report.databases();
    Ok(Copied { bytes, sha256: hash.finish(), keys, created_s: check.created_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One key in database 2, without a checksum.
    const FILE: &[u8] = b"REDIS0010\xfe\x02\0\x01k\x01v\xff\0\0\0\0\0\0\0\0";

    #[test]
    fn the_bytes_go_on_and_are_counted() {
        let mut copy = Vec::new();
        let sink = |block: &[u8]| {
            copy.extend_from_slice(block);
            Ok(())
        };
        let copied = pass(&mut &FILE[..], FILE.len() as u64, sink).expect("it is whole");
        assert_eq!(copied.keys, BTreeMap::from([(2, 1)]));
        assert_eq!((copied.bytes, copy.as_slice()), (FILE.len() as u64, FILE));
    }

    /// The example of FIPS 180-4.
    #[test]
    fn the_hash_is_written_in_digits() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let mut digest = Digest::default();
        digest.update(b"ab");
        digest.update(b"c");
        assert_eq!(digest.finish(), expected);
    }

    #[test]
    fn a_file_that_is_cut_or_has_more_is_wrong() {
        let outcome = |bytes: &[u8], length| pass(&mut &bytes[..], length, |_| Ok(()));
        let length = FILE.len() as u64;
        for cut in 0..FILE.len() {
            assert!(outcome(&FILE[..cut], length).is_err(), "{cut} of {length} bytes");
            assert!(outcome(&FILE[..cut], cut as u64).is_err(), "{cut} bytes");
        }
        let more = [FILE, b"x"].concat();
        assert!(outcome(&more, more.len() as u64).is_err());
        assert!(outcome(&more, length).is_err());
    }
}
