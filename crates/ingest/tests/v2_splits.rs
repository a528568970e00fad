//! However protocol 2 is split or joined, and whatever is wrong with it, a plain second
//! implementation finds the same messages and the same fault, each message once and in order.

use ingest::v2::{
    self, Ack, Event, Fault, Hello, Intake, Limits, Reader, ServerFrame, SinkKind, Welcome,
};
use ingest::{Layout, Messages};
use proptest::prelude::*;

const LIMITS: Limits = Limits { max_message: 1000, max_frame: 3000 };

/// The received events, independent of their grouping.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Hello(Vec<u8>),
    Message(u64, Vec<u8>),
    Flush,
    Bye,
    Fault(Fault),
}

/// What a producer sends besides Hello.
#[derive(Clone, Debug)]
enum Sent {
    /// First number and sizes of the payloads.
    Data(u64, Vec<usize>),
    Flush,
    Bye,
}

fn payload(id: u64, size: usize) -> Vec<u8> {
    (0..size).map(|n| (id as u8).wrapping_mul(31).wrapping_add(n as u8)).collect()
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let size = prop_oneof![
        4 => Just(13usize),
        2 => 0..40usize,
        1 => 0..=1000usize,
    ];
    let runs = prop::collection::vec((size, 1..12usize), 1..5);
    let first = prop_oneof![9 => 1..100u64, 1 => u64::MAX - 20..=u64::MAX];
    let data = (first, runs).prop_map(|(first, runs)| {
        let mut sizes: Vec<usize> =
            runs.into_iter().flat_map(|(size, n)| std::iter::repeat_n(size, n)).collect();
        let mut bytes = 8;
        sizes.retain(|size| {
            bytes += 4 + size;
            bytes <= LIMITS.max_frame as usize
        });
        Sent::Data(first, sizes)
    });
    let one = prop_oneof![8 => data, 1 => Just(Sent::Flush), 1 => Just(Sent::Bye)];
    prop::collection::vec(one, 0..8)
}

/// The bytes, and the positions of the lengths of frames and of the sizes of their last messages,
/// where small changes matter most.
fn encode(sent: &[Sent]) -> (Vec<u8>, Vec<usize>) {
    let (mut out, mut marks) = (Vec::new(), vec![0]);
    let key = [b'k'; 300];
    let sink = SinkKind::Stream;
    let hello = Hello { producer: b"someone", key: &key, sink, ..Hello::default() };
    v2::write_hello(&mut out, &hello);
    for one in sent {
        marks.push(out.len());
        match one {
            Sent::Flush => v2::write_flush(&mut out),
            Sent::Bye => v2::write_bye(&mut out),
            Sent::Data(first, sizes) => {
                v2::write_data_header(&mut out, *first, sizes.iter().map(|s| s + 4).sum());
                for (n, size) in sizes.iter().enumerate() {
                    if n + 1 == sizes.len() {
                        marks.push(out.len());
                    }
                    v2::write_message(&mut out, &payload(first.wrapping_add(n as u64), *size));
                }
            }
        }
    }
    (out, marks)
}

/// The plainest parser: it has the complete stream.
fn plain(mut bytes: &[u8], credit: u64) -> Vec<Item> {
    let (mut items, mut greeted, mut received) = (Vec::new(), false, 0u64);
    let u32_at = |b: &[u8], at: usize| u32::from_le_bytes(*b[at..].first_chunk().expect("4 bytes"));
    let fault = |items: &mut Vec<Item>, why| items.push(Item::Fault(why));
    while bytes.len() >= 8 {
        let (length, kind) = (u32_at(bytes, 0) as usize, bytes[4]);
        let clean = bytes[5..8] == [0; 3];
        bytes = &bytes[8..];
        let verdict = match kind {
            k if !greeted && k != 1 => Some(Fault::NoHello),
            _ if !clean => Some(Fault::Malformed),
            1 if greeted => Some(Fault::Malformed),
            1 if length > 8192 => Some(Fault::TooLarge),
            2 if length > LIMITS.max_frame as usize => Some(Fault::TooLarge),
            2 if length < 12 => Some(Fault::Malformed),
            2 if received + 8 > credit => Some(Fault::Credit),
            3 | 4 if length > 0 => Some(Fault::Malformed),
            1..=4 => None,
            _ => Some(Fault::Malformed),
        };
        if let Some(why) = verdict {
            fault(&mut items, why);
            return items;
        }
        match kind {
            1 => {
                let Some((body, rest)) = bytes.split_at_checked(length) else { return items };
                bytes = rest;
                match Hello::parse(body).and_then(|h| h.check().map(|()| h)) {
                    Ok(hello) => items.push(Item::Hello(hello.key.to_vec())),
                    Err(why) => {
                        fault(&mut items, why);
                        return items;
                    }
                }
                greeted = true;
            }
            2 => {
                received += 8;
                let granted = (credit - received).min(bytes.len() as u64) as usize;
                let over = granted < bytes.len().min(length);
                match data(&bytes[..granted.min(length)], length, &mut items) {
                    // Missing bytes are a fault of credit if they are there but were not granted.
                    Ok(false) if over => fault(&mut items, Fault::Credit),
                    Ok(true) => {
                        bytes = &bytes[length..];
                        received += length as u64;
                        continue;
                    }
                    Ok(false) => {}
                    Err(why) => fault(&mut items, why),
                }
                return items;
            }
            3 => items.push(Item::Flush),
            _ => items.push(Item::Bye),
        }
    }
    items
}

/// Takes messages from the available part of a body of `length`. Returns whether it was complete.
fn data(mut body: &[u8], length: usize, items: &mut Vec<Item>) -> Result<bool, Fault> {
    let Some((first, rest)) = body.split_first_chunk::<8>() else { return Ok(false) };
    let mut id = u64::from_le_bytes(*first);
    let mut left = length - 8;
    body = rest;
    if id == 0 {
        return Err(Fault::Gap);
    }
    let mut ended = false;
    while left > 0 {
        if left < 4 {
            return Err(Fault::Malformed);
        }
        if ended {
            return Err(Fault::Gap);
        }
        let Some((size, rest)) = body.split_first_chunk::<4>() else { return Ok(false) };
        let size = u32::from_le_bytes(*size);
        if size > LIMITS.max_message {
            return Err(Fault::TooLarge);
        }
        if 4 + size as usize > left {
            return Err(Fault::Malformed);
        }
        let Some((payload, rest)) = rest.split_at_checked(size as usize) else { return Ok(false) };
        items.push(Item::Message(id, payload.to_vec()));
        ended = id == u64::MAX;
        id = id.wrapping_add(1);
        left -= 4 + size as usize;
        body = rest;
    }
    Ok(true)
}

/// What the intake finds in blocks of these sizes, repeated.
fn cut(bytes: &[u8], sizes: &[usize], credit: u64) -> (Vec<Item>, Intake) {
    let (mut items, mut intake) = (Vec::new(), Intake::new(LIMITS));
    intake.grant(credit);
    let (mut rest, mut sizes) = (bytes, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().map_or(1, |size| (*size).min(rest.len()));
        let (mut input, tail) = rest.split_at(size);
        let block = input.as_ptr_range();
        while let Some(event) = intake.next(&mut input) {
            match event {
                Event::Hello(hello) => items.push(Item::Hello(hello.key.to_vec())),
                Event::Flush => items.push(Item::Flush),
                Event::Bye => items.push(Item::Bye),
                Event::Fault(why) => items.push(Item::Fault(why)),
                Event::Messages { first, count, bytes } => {
                    let in_place = block.contains(&bytes.as_ptr());
                    assert!(in_place || count == 1, "only a cut message is copied");
                    let mut all = Messages::new(bytes, Layout::Numbered(first));
                    let before = items.len();
                    items.extend(all.by_ref().map(|(id, p)| Item::Message(id, p.to_vec())));
                    assert_eq!((items.len() - before) as u64, count);
                    assert!(all.remaining().is_empty());
                }
            }
        }
        let over = matches!(items.last(), Some(Item::Fault(_)));
        assert!(over || input.is_empty(), "all is taken");
        assert!(intake.buffered() <= 8192, "{}", intake.buffered());
        rest = tail;
    }
    (items, intake)
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![3 => 1..16usize, 2 => 1..200usize, 1 => 1..3000usize];
    prop::collection::vec(size, 1..8)
}

/// A change at a position: truncation, a byte set, bytes removed, bytes inserted, or a length
/// slightly changed.
fn fault() -> impl Strategy<Value = (u8, prop::sample::Index, u8, usize)> {
    (0..5u8, any::<prop::sample::Index>(), any::<u8>(), 1..20usize)
}

proptest! {
    #[test]
    fn valid_streams_are_parsed_alike_in_any_blocks(sent in sent(), sizes in sizes()) {
        let (bytes, _) = encode(&sent);
        let (items, intake) = cut(&bytes, &sizes, u64::MAX);
        prop_assert_eq!(&items, &plain(&bytes, u64::MAX));
        let over = matches!(items.last(), Some(Item::Fault(_)));
        // Numbers may be exhausted. No other fault is possible.
        let data: u64 = sent.iter().map(|s| match s {
            Sent::Data(_, sizes) => 16 + sizes.iter().map(|s| 4 + *s as u64).sum::<u64>(),
            _ => 0,
        }).sum();
        prop_assert!(over || (intake.is_between() && intake.received() == data));
        prop_assert!(!over || items.last() == Some(&Item::Fault(Fault::Gap)));
    }

    #[test]
    fn faults_are_found_alike_in_any_blocks(
        sent in sent(), sizes in sizes(), faults in prop::collection::vec(fault(), 0..3),
        credit in prop_oneof![Just(u64::MAX), 0..6000u64],
    ) {
        let (mut bytes, marks) = encode(&sent);
        for (what, at, value, len) in faults {
            let mark = (*at.get(&marks)).min(bytes.len() - 1);
            let at = at.index(bytes.len());
            match what {
                4 => bytes[mark] = bytes[mark].wrapping_add(value % 9).wrapping_sub(4),
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = value,
                2 => drop(bytes.drain(at..(at + len).min(bytes.len() - 1).max(at))),
                _ => drop(bytes.splice(at..at, std::iter::repeat_n(value, len))),
            }
        }
        let (items, intake) = cut(&bytes, &sizes, credit);
        prop_assert!(intake.received() <= credit);
        prop_assert_eq!(items, plain(&bytes, credit));
    }

    #[test]
    fn frames_of_a_server_are_parsed_alike_in_any_blocks(
        numbers in prop::collection::vec(any::<u64>(), 1..30), sizes in sizes(),
    ) {
        let mut bytes = Vec::new();
        let text: Vec<u8> = (0..70_000).map(|n| n as u8).collect();
        let mut expected = Vec::new();
        for n in numbers {
            match n % 4 {
                0 => {
                    let welcome = Welcome { last_id: n, credit: n, ..Welcome::default() };
                    v2::write_welcome(&mut bytes, &welcome);
                    expected.push(format!("{:?}", ServerFrame::Welcome(welcome)));
                }
                1 => {
                    let ack = Ack { id: n, skipped: n as u32, ..Ack::default() };
                    v2::write_ack(&mut bytes, &ack);
                    expected.push(format!("{:?}", ServerFrame::Ack(ack)));
                }
                2 => {
                    v2::write_credit(&mut bytes, n);
                    expected.push(format!("{:?}", ServerFrame::Credit(n)));
                }
                _ => {
                    let text = &text[..n as usize % text.len()];
                    v2::write_error(&mut bytes, n as u16, n, text);
                    let text = &text[..text.len().min(65_535)];
                    let error = ServerFrame::Error { code: n as u16, id: n, text };
                    expected.push(format!("{error:?}"));
                }
            }
        }
        let (mut found, mut reader, mut rest) = (Vec::new(), Reader::new(), &bytes[..]);
        for size in sizes.iter().cycle() {
            let (mut input, tail) = rest.split_at((*size).min(rest.len()));
            while let Some(frame) = reader.next(&mut input) {
                found.push(format!("{:?}", frame.expect("nothing is wrong")));
            }
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found, expected);
    }
}
