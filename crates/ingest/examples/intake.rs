//! A loop over what one read of protocol 2 costs, to be counted under callgrind: `intake WORK
//! ROUNDS`, where the difference between two numbers of rounds is the cost. One round is 1024
//! messages of 17 bytes with their sizes.

use std::hint::black_box;

use base::MonoNs;
use ingest::v2::{
    Acking, Acks, Event, Held, Hello, Intake, Limits, write_data_header, write_hello, write_message,
};

const MESSAGES: u64 = 1024;
const PAYLOAD: [u8; 13] = *b"payload bytes";
const LIMITS: Limits = Limits { max_message: 1 << 20, max_frame: 1 << 21 };

fn main() {
    let mut words = std::env::args().skip(1);
    let work = words.next().unwrap_or_default();
    let rounds: usize = words.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    match work.as_str() {
        // All in one frame; sizes that change; a frame for each; cut as by a small buffer.
        "run" => intake(&frames(MESSAGES, |_| 13), rounds, usize::MAX),
        "mixed" => intake(&frames(MESSAGES, |n| 8 + (n * 7 % 11) as usize), rounds, usize::MAX),
        "single" => intake(&frames(1, |_| 13), rounds, usize::MAX),
        "cut" => intake(&frames(MESSAGES, |_| 13), rounds, 256),
        _ => eprintln!("intake run|mixed|single|cut ROUNDS"),
    }
}

/// The messages in frames of `together`; their numbers begin at 1 in each round.
fn frames(together: u64, size: impl Fn(u64) -> usize) -> Vec<u8> {
    let payload = PAYLOAD.repeat(2);
    let mut out = Vec::new();
    for first in (0..MESSAGES).step_by(together as usize) {
        let mut messages = Vec::new();
        for n in first..first + together {
            write_message(&mut messages, &payload[..size(n)]);
        }
        write_data_header(&mut out, first + 1, messages.len());
        out.extend(messages);
    }
    out
}

fn intake(bytes: &[u8], rounds: usize, block: usize) {
    let mut intake = Intake::new(black_box(LIMITS));
    let mut hello = Vec::new();
    write_hello(&mut hello, &Hello { producer: b"p", ..Hello::default() });
    assert!(intake.next(&mut &hello[..]).is_some());
    intake.grant(u64::MAX);
    let mut out = Vec::new();
    for _ in 0..rounds {
        let mut acks = Acks::new(black_box(Acking::Batched), 0, 0, 0);
        out.clear();
        let mut taken = 0;
        for read in black_box(bytes).chunks(block) {
            taken += pass(&mut intake, &mut acks, read, &mut out);
        }
        assert_eq!(taken, MESSAGES);
        black_box(&out);
    }
}

/// What a worker does with a read, but for the sink.
#[inline(never)]
fn pass(intake: &mut Intake, acks: &mut Acks, read: &[u8], out: &mut Vec<u8>) -> u64 {
    let (mut input, mut taken, mut held) = (read, 0, Held::default());
    while let Some(event) = intake.next(&mut input) {
        let Event::Messages { first, count, bytes } = event else { unreachable!("only Data") };
        assert_eq!(held.admit(first, count).map(|admit| admit.duplicates), Ok(0));
        held.hold(first + (count - 1));
        black_box(bytes);
        acks.add_taken(held.last_id(), count, MonoNs(1));
        taken += count;
    }
    acks.read_done(MonoNs(1), out);
    taken
}
