//! Protocol 2, bytes of a producer: the result does not depend on how the bytes are divided into
//! blocks; no message comes twice or out of order, or exceeds limits or credit; and
//! acknowledgements cover exactly the accepted messages.

use base::MonoNs;
use base::prng::Prng;
use ingest::v2::{Acking, Acks, Event, Fault, Held, Hello, Intake, Limits, Reader, ServerFrame};
use ingest::{Layout, Messages};

use crate::Target;

/// Small, so that random sizes are on both sides.
const LIMITS: Limits = Limits { max_message: 40, max_frame: 300 };

/// The target.
pub const TARGET: Target = Target {
    name: "ingest2_intake",
    feed,
    dictionary: &[
        b"\x2a\0\0\0\x01\0\0\0SHFI\x02\0",
        b"\x01\0\0\0\x01\0\0\0",
        b"\x0c\0\0\0\x02\0\0\0",
        b"\x15\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0hello",
        b"\x02\0\0\0\0\0\0\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\0\x03\0\0\0",
        b"\0\0\0\0\x04\0\0\0",
        b"\x28\0\0\0",
        b"\x29\0\0\0",
        b"\x2c\x01\0\0",
        b"\x05\0\0\0",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
    ],
};

/// A parsed item, independent of the division into blocks.
#[derive(Debug, PartialEq)]
enum Item {
    Hello(Acking),
    Message(u64, Vec<u8>),
    Flush,
    Bye,
    Fault(Fault),
}

/// Input: a byte that seeds the cuts, one for the credit, then the stream.
fn feed(input: &[u8]) {
    let Some(([seed, credit], stream)) = input.split_first_chunk() else { return };
    let credit = if *credit == 0xff { u64::MAX } else { u64::from(*credit) * 4 };
    let whole = take(stream, credit, |rest| rest);
    let mut prng = Prng::new(u64::from(*seed));
    let cut = take(stream, credit, |rest| 1 + prng.below(rest.min(64) as u64) as usize);
    assert_eq!(cut, whole);
    let fault = |item: &Item| matches!(item, Item::Fault(_));
    assert!(whole.iter().rev().skip(1).all(|item| !fault(item)), "a fault is the last");
    acknowledge(&whole, Acking::ALL[usize::from(*seed) % Acking::ALL.len()]);
}

/// The items which an intake finds in blocks of these lengths.
fn take(stream: &[u8], credit: u64, mut length: impl FnMut(usize) -> usize) -> Vec<Item> {
    let (mut items, mut intake, mut rest) = (Vec::new(), Intake::new(LIMITS), stream);
    intake.grant(credit);
    while !rest.is_empty() {
        let (mut block, tail) = rest.split_at(length(rest.len()));
        rest = tail;
        while let Some(event) = intake.next(&mut block) {
            match event {
                Event::Hello(Hello { acking, producer, .. }) => {
                    assert!((1..=64).contains(&producer.len()));
                    items.push(Item::Hello(acking));
                }
                Event::Flush => items.push(Item::Flush),
                Event::Bye => items.push(Item::Bye),
                Event::Fault(why) => items.push(Item::Fault(why)),
                Event::Messages { first, count, bytes } => {
                    assert!(first > 0 && count > 0 && u64::MAX - first >= count - 1);
                    let before = items.len();
                    for (id, payload) in Messages::new(bytes, Layout::Numbered(first)) {
                        assert!(payload.len() <= LIMITS.max_message as usize);
                        items.push(Item::Message(id, payload.to_vec()));
                    }
                    assert_eq!((items.len() - before) as u64, count);
                }
            }
        }
        assert!(intake.received() <= credit && intake.buffered() <= 8192);
    }
    items
}

/// Acknowledges the items like a server: each message once, in order, only messages which are held.
fn acknowledge(items: &[Item], acking: Acking) {
    let (mut held, mut acks, mut out) = (Held::default(), Acks::new(acking, 3, 20, 0), Vec::new());
    let (mut taken, mut now) = (0, MonoNs(0));
    for item in items {
        now = now.plus(7_000);
        match item {
            Item::Message(id, _) => {
                let Ok(admit) = held.admit(*id, 1) else { break };
                let known = held.last.is_some_and(|last| *id <= last);
                assert_eq!(admit.duplicates, u64::from(known));
                held.hold(*id);
                acks.add_taken(held.last_id(), 1, now);
                taken += 1;
                acks.read_done(now, &mut out);
            }
            Item::Flush => drop(acks.flush(&mut out, true)),
            _ => drop(acks.tick(now, &mut out)),
        }
    }
    acks.flush(&mut out, false);
    let (mut input, mut reader, mut last, mut covered) = (&out[..], Reader::new(), 0, 0);
    while let Some(frame) = reader.next(&mut input) {
        let Ok(ServerFrame::Ack(ack)) = frame else { panic!("only acknowledgements: {frame:?}") };
        assert!(ack.id >= last && ack.id <= held.last_id());
        last = ack.id;
        covered += ack.covered();
    }
    assert_eq!((covered, last), (taken, held.last_id()));
}
