//! Protocol 2, bytes of the server: the frames do not depend on how the bytes are divided into
//! blocks, and encoding the frames returns the same bytes.

use base::prng::Prng;
use ingest::v2::{self, Reader, ServerFrame};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "ingest2_reader",
    feed,
    dictionary: &[
        b"\x28\0\0\0\x81\0\0\0\x02\0",
        b"\x20\0\0\0\x82\0\0\0",
        b"\x20\0\0\0\x82\x01\0\0",
        b"\x08\0\0\0\x83\0\0\0",
        b"\x10\0\0\0\x84\0\0\0",
        b"\x14\0\0\0\x84\0\0\0\x0d\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0text",
        b"\x0f\0\x01\0\x84\0\0\0",
        b"\x10\0\x01\0\x84\0\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
    ],
};

/// Input: a byte that seeds the cuts, then the stream.
fn feed(input: &[u8]) {
    let Some((seed, stream)) = input.split_first() else { return };
    let whole = read(stream, |rest| rest);
    let mut prng = Prng::new(u64::from(*seed));
    assert_eq!(read(stream, |rest| 1 + prng.below(rest.min(64) as u64) as usize), whole);
    let (written, frames) = whole;
    assert!(frames.iter().rev().skip(1).all(|frame| !frame.starts_with("Err")), "{frames:?}");
    assert!(stream.starts_with(&written), "encoded frames equal the input");
}

/// Reads blocks of these lengths; returns the frames encoded again, and as text.
fn read(stream: &[u8], mut length: impl FnMut(usize) -> usize) -> (Vec<u8>, Vec<String>) {
    let (mut out, mut frames) = (Vec::new(), Vec::new());
    let (mut reader, mut rest) = (Reader::new(), stream);
    while !rest.is_empty() {
        let (mut block, tail) = rest.split_at(length(rest.len()));
        rest = tail;
        while let Some(frame) = reader.next(&mut block) {
            frames.push(format!("{frame:?}"));
            match frame {
                Ok(ServerFrame::Welcome(welcome)) => v2::write_welcome(&mut out, &welcome),
                Ok(ServerFrame::Ack(ack)) => v2::write_ack(&mut out, &ack),
                Ok(ServerFrame::Credit(limit)) => v2::write_credit(&mut out, limit),
                Ok(ServerFrame::Error { code, id, text }) => {
                    v2::write_error(&mut out, code, id, text);
                }
                Err(_) => {}
            }
        }
    }
    (out, frames)
}
