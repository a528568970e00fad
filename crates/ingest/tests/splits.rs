//! However the stream is split or joined, the same messages are found, and each is acknowledged
//! once, in order, and not before its last byte.

use base::MonoNs;
use ingest::{BLOCKS_MAX, Frames, Id, Order, Policy, Strategy, TICK_NS};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

const PAYLOAD_MAX: u32 = 3_000;

/// Messages as (id, payload size).
fn messages() -> impl proptest::strategy::Strategy<Value = Vec<(u64, u32)>> {
    let size = prop_oneof![
        4 => Just(5u32),
        2 => 0..40u32,
        1 => 0..=PAYLOAD_MAX,
    ];
    // Runs of equal sizes, and ids in no order.
    let run = (any::<u64>(), size, 1..12usize);
    prop::collection::vec(run, 1..12).prop_map(|runs| {
        let of = |(id, size, n): (u64, u32, usize)| {
            (0..n as u64).map(move |k| (id.wrapping_mul(k + 1), size))
        };
        runs.into_iter().flat_map(of).collect()
    })
}

fn encode(messages: &[(u64, u32)], order: Order) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (id, size) in messages {
        bytes.extend(id.to_le_bytes());
        bytes.extend(match order {
            Order::Big => size.to_be_bytes(),
            Order::Little => size.to_le_bytes(),
        });
        bytes.extend(std::iter::repeat_n(0xee, *size as usize));
    }
    bytes
}

/// The stream in blocks of these sizes, repeated.
fn cut<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut blocks = Vec::new();
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (block, tail) = rest.split_at((*size).min(rest.len()));
        blocks.push(block);
        rest = tail;
    }
    blocks
}

fn sizes() -> impl proptest::strategy::Strategy<Value = Vec<usize>> {
    let size = prop_oneof![3 => 1..16usize, 2 => 1..200usize, 1 => 1..5000usize];
    prop::collection::vec(size, 1..8)
}

/// Decoded acknowledgements: (id, messages covered).
fn acks(strategy: Strategy, out: &[u8]) -> Vec<(Id, u64)> {
    let id = |ack: &[u8]| *ack.first_chunk::<8>().expect("an id");
    if strategy == Strategy::RequestReply {
        return out.chunks(8).map(|ack| (id(ack), 1)).collect();
    }
    let covered = |ack: &[u8]| u32::from_le_bytes(*ack[8..].first_chunk().expect("12 bytes"));
    out.chunks(12).map(|ack| (id(ack), u64::from(covered(ack)) + 1)).collect()
}

proptest! {
    #[test]
    fn frames_finds_the_same_messages_in_any_blocks(
        messages in messages(), sizes in sizes(), big in any::<bool>(),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let bytes = encode(&messages, order);
        let (mut counting, mut naming) = (Frames::new(order), Frames::new(order));
        let (mut ids, mut whole, mut last) = (Vec::new(), 0, None);
        for block in cut(&bytes, &sizes) {
            let scan = counting.count(block, PAYLOAD_MAX);
            prop_assert_eq!(naming.each(block, PAYLOAD_MAX, |id| ids.push(id)), scan);
            prop_assert!(!scan.oversized);
            prop_assert_eq!(scan.last.is_some(), scan.whole > 0);
            whole += scan.whole;
            last = scan.last.or(last);
            prop_assert_eq!(last, ids.last().copied());
        }
        let expected: Vec<Id> = messages.iter().map(|(id, _)| id.to_le_bytes()).collect();
        prop_assert_eq!(whole, expected.len() as u64);
        prop_assert_eq!(ids, expected);
        prop_assert!(counting.is_between());
    }

    #[test]
    fn every_message_is_acknowledged_once_in_order_after_its_last_byte(
        messages in messages(),
        sizes in sizes(),
        gaps in prop::collection::vec(0..3 * TICK_NS, 1..8),
        which in 0..Strategy::ALL.len(),
    ) {
        let strategy = Strategy::ALL[which];
        let bytes = encode(&messages, strategy.order());
        let start = MonoNs(12_345);
        let mut policy = Policy::new(strategy, start);
        let (mut now, mut received, mut acknowledged, mut counted) = (start, 0, 0, 0);
        let (mut blocks, mut silent_since) = (0, start);
        let mut ends = Vec::new();
        let mut end = 0;
        for (_, size) in &messages {
            end += 12 + *size as usize;
            ends.push(end);
        }
        for (block, gap) in cut(&bytes, &sizes).into_iter().zip(gaps.iter().cycle()) {
            let mut out = Vec::new();
            // Time passes. Acknowledgements which became due meanwhile are sent at their time.
            let until = now.plus(*gap);
            if let Some(due) = policy.due().filter(|due| *due <= until) {
                match strategy {
                    Strategy::Throttled | Strategy::HeadRest => {
                        prop_assert_eq!(due.since(start) % TICK_NS, 0);
                    }
                    _ => prop_assert_eq!(due, silent_since.plus(TICK_NS)),
                }
                prop_assert_eq!(policy.tick(due, &mut out), 1);
                blocks = 0;
            }
            now = until;
            received += block.len();
            let report = policy.receive(block, now, PAYLOAD_MAX, &mut out);
            silent_since = now;
            blocks += 1;
            counted += report.messages;
            let whole = ends.partition_point(|end| *end <= received) as u64;
            prop_assert_eq!(counted, whole);
            if report.acks > 0 {
                blocks = 0;
            }
            for (id, covered) in acks(strategy, &out) {
                acknowledged += covered;
                prop_assert!(acknowledged <= whole, "a message that is not whole");
                prop_assert_eq!(id, messages[acknowledged as usize - 1].0.to_le_bytes());
            }
            match strategy {
                Strategy::RequestReply | Strategy::Sync => prop_assert_eq!(acknowledged, whole),
                Strategy::Async => {
                    prop_assert!(blocks < BLOCKS_MAX || acknowledged == whole);
                }
                Strategy::Throttled | Strategy::HeadRest => {
                    let due = policy.due();
                    prop_assert_eq!(due.is_some(), acknowledged < whole);
                    prop_assert!(due.is_none_or(|due| due > now && due.since(now) <= TICK_NS));
                }
            }
        }
        let mut out = Vec::new();
        policy.flush(&mut out);
        acknowledged += acks(strategy, &out).iter().map(|(_, covered)| covered).sum::<u64>();
        prop_assert_eq!(acknowledged, messages.len() as u64);
    }

    #[test]
    fn an_oversized_message_ends_the_stream_for_any_split(
        messages in messages(), at in any::<prop::sample::Index>(), sizes in sizes(),
    ) {
        let mut messages = messages;
        let at = at.index(messages.len());
        messages[at].1 = PAYLOAD_MAX + 1;
        let bytes = encode(&messages, Order::Little);
        let mut frames = Frames::new(Order::Little);
        let mut whole = 0;
        for block in cut(&bytes, &sizes) {
            let scan = frames.count(block, PAYLOAD_MAX);
            whole += scan.whole;
            if scan.oversized {
                prop_assert_eq!(whole, at as u64);
                return Ok(());
            }
        }
        prop_assert!(false, "nobody noticed");
    }
}
