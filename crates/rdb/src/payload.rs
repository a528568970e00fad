//! The payload of DUMP and RESTORE: type, value, version (u16 LE), CRC-64 of all before it (LE).

use base::crc64::crc64;

use crate::switches::skips_checksums;
use crate::{Dialect, Error, Reader, Sink, load};

/// Bytes of the checksum, and of it with the version.
const CHECKSUM: usize = 8;
pub(crate) const TRAILER: usize = 2 + CHECKSUM;

/// Checks the trailer of a payload; what is before it, and its version.
pub fn open(payload: &[u8]) -> Result<(&[u8], u16), Error> {
    let (body, version) = split(payload)?;
    // The version first: an unknown one cannot be read, whatever the checksum says.
    if Dialect::of(version).is_none() {
        return Err(Error::Envelope);
    }
    let (checked, sum) = payload.split_last_chunk::<CHECKSUM>().ok_or(Error::Envelope)?;
    if !skips_checksums() && crc64(0, checked) != u64::from_le_bytes(*sum) {
        return Err(Error::Envelope);
    }
    Ok((body, version))
}

/// What is before the trailer of a payload, and its version.
pub(crate) fn split(payload: &[u8]) -> Result<(&[u8], u16), Error> {
    let (checked, _) = payload.split_last_chunk::<CHECKSUM>().ok_or(Error::Envelope)?;
    let (body, version) = checked.split_last_chunk::<2>().ok_or(Error::Envelope)?;
    Ok((body, u16::from_le_bytes(*version)))
}

/// Puts the trailer behind type and value.
pub fn seal(payload: &mut Vec<u8>, version: u16) {
    payload.reserve_exact(TRAILER);
    payload.extend_from_slice(&version.to_le_bytes());
    let sum = crc64(0, payload);
    payload.extend_from_slice(&sum.to_le_bytes());
}

/// Reads a payload into `sink`. As in Redis, bytes behind the value do not matter: the checksum
/// has vouched for them.
pub fn restore(payload: &[u8], sink: &mut impl Sink) -> Result<(), Error> {
    let (body, version) = open(payload)?;
    let dialect = Dialect::of(version).ok_or(Error::Envelope)?;
    let mut reader = Reader::new(body);
    let id = reader.byte()?;
    load(id, dialect, &mut reader, sink)
}
