//! `DEBUG OBJECT`: facts about a key in one line.

use base::UnixMs;
use keyspace::Entry;
use rdb::primitive::put_length;
use rdb::{Item, Nodes, Options, Saver, Source};
use std::fmt::Write;
use value::{Encoding, Str};

use crate::ctx::Settings;
use crate::list::limit::node_limits;
use crate::parts::Stored;

/// The access clock counts seconds modulo this.
const CLOCK_SECONDS: i64 = 1 << 24;

/// What `DEBUG OBJECT` says. The address is that of the value's memory; the serialized length is
/// what an uncompressed snapshot would take for it.
pub fn describe(entry: Entry<'_>, now: UnixMs, settings: &Settings) -> String {
    let address = match (entry.packed(), entry.big()) {
        (Some(packed), _) => packed.as_ptr(),
        (None, Some(big)) => std::ptr::from_ref(big).cast(),
        (None, None) => match entry.str() {
            Str::Bytes(bytes) => bytes.as_ptr(),
            Str::Blob(blob) => blob.pages().next().map_or(std::ptr::null(), <[u8]>::as_ptr),
            Str::Int(_) => entry.key().as_ptr_range().end,
        },
    };
    let len = match entry.is_string().then(|| entry.str()) {
        Some(Str::Blob(blob)) => text_len(blob.len()),
        _ => serialized_len(&Stored::of(entry)),
    };
    let idle = entry.idle_seconds(now);
    let used = (now.0 / 1000 - idle as i64).rem_euclid(CLOCK_SECONDS);
    let mut text = format!(
        "Value at:{address:p} refcount:1 encoding:{} serializedlength:{len} lru:{used} lru_seconds_idle:{idle}",
        entry.encoding().name(),
    );
    if entry.encoding() == Encoding::Quicklist {
        let (nodes, len) = (nodes(entry, settings), Stored::of(entry).len());
        let _ = write!(
            text,
            " ql_nodes:{} ql_avg_node:{:.2} ql_listpack_max:{} ql_compressed:0 ql_uncompressed_size:{}",
            nodes.count,
            len as f64 / nodes.count as f64,
            settings.list_max_listpack_size,
            nodes.bytes,
        );
    }
    text
}

/// The nodes that a list would have in Redis, had it been filled from one end.
fn nodes(entry: Entry<'_>, settings: &Settings) -> Nodes {
    Saver::new(Options::default()).nodes_of(&Stored::of(entry), node_limits(settings))
}

/// What `DEBUG LISTPACK` prints of a value: its elements. `None` if it is not called so.
pub fn listpack_text(entry: Entry<'_>) -> Option<String> {
    if entry.encoding() != Encoding::Listpack {
        return None;
    }
    let stored = Stored::of(entry);
    let mut text = format!("listpack: {} elements\n", stored.len());
    elements(&mut text, &stored);
    Some(text)
}

/// What `DEBUG QUICKLIST` prints of a list, with its elements if `full`. `None` if it is not called
/// so.
pub fn quicklist_text(entry: Entry<'_>, settings: &Settings, full: bool) -> Option<String> {
    if entry.encoding() != Encoding::Quicklist {
        return None;
    }
    let (stored, nodes) = (Stored::of(entry), nodes(entry, settings));
    let (len, count, bytes) = (stored.len(), nodes.count, nodes.bytes);
    let mut text = format!("quicklist: {len} elements in {count} nodes of {bytes} bytes\n");
    if full {
        elements(&mut text, &stored);
    }
    Some(text)
}

fn elements(text: &mut String, stored: &Stored<'_>) {
    let mut at = 0;
    let mut line = |bytes: &[u8]| {
        let _ = writeln!(text, "{at}: {} bytes: {}", bytes.len(), bytes.escape_ascii());
        at += 1;
    };
    stored.each(|item| match item {
        Item::Element(bytes) => line(bytes),
        Item::Field(field, value, _) => {
            line(field);
            line(value);
        }
        Item::Member(member, score) => {
            line(member);
            line(score.to_string().as_bytes());
        }
    });
}

/// What `DEBUG SDSLEN` says of a key and its text, in bytes: lengths, room to grow in place, and
/// allocations. A short text stands in its key's allocation, so it has none of its own. `None` for
/// what is no text: numbers and collections.
pub fn text_lengths(entry: Entry<'_>) -> Option<String> {
    let (allocated, used) = entry.allocation();
    let (len, room, own) = match entry.is_string().then(|| entry.str())? {
        Str::Int(_) => return None,
        Str::Bytes(bytes) => (bytes.len(), allocated - used, 0),
        Str::Blob(blob) => {
            (blob.len(), blob.capacity().saturating_sub(blob.len()), blob.capacity())
        }
    };
    Some(format!(
        "key_sds_len:{}, key_sds_avail:0, key_zmalloc: {allocated}, val_sds_len:{len}, \
         val_sds_avail:{room}, val_zmalloc: {own}",
        entry.key().len(),
    ))
}

/// The bytes that a string of `len` bytes takes in a snapshot, if it is no integer.
fn text_len(len: usize) -> usize {
    let mut head = Vec::new();
    put_length(&mut head, len as u64);
    head.len() + len
}

/// The bytes that a value takes in a snapshot.
fn serialized_len(stored: &Stored<'_>) -> usize {
    let mut saver = Saver::new(Options { compress: false, ..Options::default() });
    let (plan, mut out) = (saver.plan(stored), Vec::new());
    saver.value(&plan, stored, &mut out);
    out.len()
}

#[cfg(test)]
mod tests {
    use super::text_len;
    use crate::parts::Stored;
    use value::Str;

    fn len(text: Str<'_>) -> usize {
        super::serialized_len(&Stored::text(text))
    }

    /// Recorded from a server with `rdbcompression no`.
    #[test]
    fn serialized_lengths_are_as_recorded() {
        let ints = [(0, 2), (127, 2), (-128, 2), (128, 3), (-32_768, 3), (32_768, 5)];
        let big = [(i64::from(i32::MAX), 5), (1 << 31, 11), (i64::MIN, 21)];
        for (int, expected) in ints.into_iter().chain(big) {
            assert_eq!(len(Str::Int(int)), expected, "{int}");
        }
        for (n, expected) in [(0, 1), (63, 64), (64, 66), (16_383, 16_385), (16_384, 16_389)] {
            let mut prng = base::prng::Prng::new(7);
            let text: Vec<u8> = (0..n).map(|_| prng.draw() as u8).collect();
            assert_eq!(len(Str::Bytes(&text)), expected, "{n}");
            assert_eq!(text_len(n), expected, "{n}");
        }
        assert_eq!(len(Str::Bytes(b"12")), 2);
        assert_eq!(len(Str::Bytes(b"012")), 4);
    }
}
