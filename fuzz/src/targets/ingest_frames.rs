//! Ingest frames: a simple second implementation finds the same messages, however the bytes are
//! divided into blocks, and no acknowledgement covers an incomplete message.

use base::MonoNs;
use base::prng::Prng;
use ingest::{Frames, HEADER_BYTES, Id, Order, Policy, Strategy};

use crate::Target;

/// Payloads up to here are allowed: small, so that random sizes are on both sides.
const PAYLOAD_MAX: u32 = 300;

/// The target.
pub const TARGET: Target = Target {
    name: "ingest_frames",
    feed,
    dictionary: &[
        b"\0\0\0\0",
        b"\x05\0\0\0",
        b"\0\0\0\x05",
        b"\x2c\x01\0\0",
        b"\x2d\x01\0\0",
        b"\0\0\x01\x2c",
        b"\0\0\x01\x2d",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0\0\0\0\0\x05\0\0\0hello",
        b"\x01\0\0\0\0\0\0\0\0\0\0\0",
        b"\x02\0\0\0\0\0\0\0\0\0\0\x05hello",
    ],
};

/// Input: a byte that seeds the cuts and chooses the strategy, then the stream.
fn feed(input: &[u8]) {
    let Some((first, stream)) = input.split_first() else { return };
    let strategy = Strategy::ALL[*first as usize % Strategy::ALL.len()];
    let (expected, oversized) = whole(stream, strategy.order());
    let mut prng = Prng::new(u64::from(*first));
    let mut frames = Frames::new(strategy.order());
    let mut policy = Policy::new(strategy, MonoNs(0));
    let (mut ids, mut covered, mut over, mut at) = (Vec::new(), 0, false, 0);
    while at < stream.len() && !over {
        let len = 1 + prng.below((stream.len() - at).min(64) as u64) as usize;
        let block = &stream[at..at + len];
        at += len;
        let mut out = Vec::new();
        let report = policy.receive(block, MonoNs(at as u64), PAYLOAD_MAX, &mut out);
        let scan = frames.each(block, PAYLOAD_MAX, |id| ids.push(id));
        assert_eq!((scan.whole, scan.oversized), (report.messages, report.oversized));
        over = scan.oversized;
        if strategy == Strategy::RequestReply {
            assert_eq!(out, ids[ids.len() - scan.whole as usize..].concat());
            covered = ids.len() as u64;
            continue;
        }
        for ack in out.chunks(12) {
            covered += u64::from(u32::from_le_bytes([ack[8], ack[9], ack[10], ack[11]])) + 1;
            assert_eq!(ack[..8], ids[covered as usize - 1], "the last message covered");
        }
    }
    assert_eq!((&ids, over), (&expected, oversized));
    let mut out = Vec::new();
    policy.flush(&mut out);
    covered +=
        out.get(8..12).map_or(0, |n| u64::from(u32::from_le_bytes([n[0], n[1], n[2], n[3]])) + 1);
    assert_eq!(covered, ids.len() as u64, "each message once");
}

/// A simple definition: the ids of complete messages, and whether an oversized one follows.
fn whole(mut stream: &[u8], order: Order) -> (Vec<Id>, bool) {
    let mut ids = Vec::new();
    while stream.len() >= HEADER_BYTES {
        let size = [stream[8], stream[9], stream[10], stream[11]];
        let size = match order {
            Order::Big => u32::from_be_bytes(size),
            Order::Little => u32::from_le_bytes(size),
        };
        if size > PAYLOAD_MAX {
            return (ids, true);
        }
        let Some(rest) = stream[HEADER_BYTES..].get(size as usize..) else { break };
        ids.push(*stream.first_chunk().expect("it has a header"));
        stream = rest;
    }
    (ids, false)
}
