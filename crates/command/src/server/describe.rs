//! `DEBUG OBJECT`: facts about a key in one line.

use base::UnixMs;
use base::num::parse_i64;
use keyspace::Entry;
use value::{IntText, Str};

/// The access clock counts seconds modulo this.
const CLOCK_SECONDS: i64 = 1 << 24;

/// What `DEBUG OBJECT` says. The address is that of the value's memory; the serialized length is
/// that of an uncompressed snapshot for a string, and the bytes that a collection takes.
pub fn describe(entry: Entry<'_>, now: UnixMs) -> String {
    let (address, len) = if entry.is_string() {
        let address = match entry.str() {
            Str::Bytes(bytes) => bytes.as_ptr(),
            Str::Blob(blob) => blob.as_slice().as_ptr(),
            Str::Int(_) => entry.key().as_ptr_range().end,
        };
        (address, serialized_len(entry.str()))
    } else if let Some(big) = entry.big() {
        (std::ptr::from_ref(big).cast(), big.memory())
    } else {
        let packed = entry.packed().unwrap_or_default();
        (packed.as_ptr(), packed.len())
    };
    let idle = entry.idle_seconds(now);
    let used = (now.0 / 1000 - idle as i64).rem_euclid(CLOCK_SECONDS);
    format!(
        "Value at:{address:p} refcount:1 encoding:{} serializedlength:{len} lru:{used} lru_seconds_idle:{idle}",
        entry.encoding().name(),
    )
}

/// The length of a string in a snapshot: an integer of up to 32 bits in 2, 3 or 5 bytes, else the
/// text behind its length in 1, 2, 5 or 9 bytes.
fn serialized_len(text: Str<'_>) -> usize {
    const INT_TEXT_MAX: usize = 11;
    let len = text.len();
    let int = (len <= INT_TEXT_MAX)
        .then(|| parse_i64(text.bytes(&mut IntText::default())))
        .flatten()
        .and_then(|int| i32::try_from(int).ok());
    match (int, len) {
        (Some(-0x80..0x80), _) => 2,
        (Some(-0x8000..0x8000), _) => 3,
        (Some(_), _) => 5,
        (None, ..0x40) => 1 + len,
        (None, ..0x4000) => 2 + len,
        (None, ..=0xFFFF_FFFF) => 5 + len,
        (None, _) => 9 + len,
    }
}

#[cfg(test)]
mod tests {
    use super::serialized_len;
    use value::Str;

    /// As a server with `rdbcompression no` says.
    #[test]
    fn serialized_lengths() {
        let ints = [(0, 2), (127, 2), (-128, 2), (128, 3), (-32_768, 3), (32_768, 5)];
        let big = [(i64::from(i32::MAX), 5), (1 << 31, 11), (i64::MIN, 21)];
        for (int, len) in ints.into_iter().chain(big) {
            assert_eq!(serialized_len(Str::Int(int)), len, "{int}");
        }
        for (len, expected) in [(0, 1), (63, 64), (64, 66), (16_383, 16_385), (16_384, 16_389)] {
            assert_eq!(serialized_len(Str::Bytes(&vec![b'a'; len])), expected, "{len}");
        }
        assert_eq!(serialized_len(Str::Bytes(b"12")), 2);
        assert_eq!(serialized_len(Str::Bytes(b"012")), 4);
    }
}
