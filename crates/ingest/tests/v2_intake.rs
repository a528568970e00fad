//! Properties of protocol 2's intake which test vectors do not show: copies, memory, credit, and
//! its counters.

use ingest::v2::{
    DATA_HEADER_BYTES, Event, Fault, Hello, Intake, Level, Limits, Reader, ServerFrame, SinkKind,
    write_data_header, write_error, write_flush, write_hello, write_message,
};

const LIMITS: Limits = Limits { max_message: 1 << 20, max_frame: (1 << 20) + 12 };

fn welcomed(credit: u64) -> Intake {
    let mut intake = Intake::new(LIMITS);
    let mut hello = Vec::new();
    write_hello(&mut hello, &Hello { producer: b"p", ..Hello::default() });
    assert!(matches!(intake.next(&mut &hello[..]), Some(Event::Hello(_))));
    assert_eq!(intake.next(&mut &b""[..]), None);
    intake.grant(credit);
    intake
}

fn data(first: u64, sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    write_data_header(&mut out, first, sizes.iter().map(|size| size + 4).sum());
    for size in sizes {
        write_message(&mut out, &vec![0xab; *size]);
    }
    out
}

#[test]
fn complete_messages_are_yielded_without_a_copy() {
    let bytes = [data(1, &[13; 100]), data(101, &[0])].concat();
    let mut intake = welcomed(u64::MAX);
    let mut input = &bytes[..];
    let Some(Event::Messages { first: 1, count: 100, bytes: all }) = intake.next(&mut input) else {
        panic!("a hundred messages")
    };
    assert_eq!(all.as_ptr(), bytes[DATA_HEADER_BYTES..].as_ptr());
    assert_eq!(all.len(), 1700);
    assert!(matches!(intake.next(&mut input), Some(Event::Messages { first: 101, count: 1, .. })));
    assert_eq!(intake.next(&mut input), None);
    assert_eq!((intake.buffered(), intake.is_between()), (0, true));
    assert_eq!(intake.received(), bytes.len() as u64);
}

#[test]
fn memory_follows_received_bytes_and_a_large_buffer_is_freed() {
    let bytes = data(1, &[1 << 20]);
    let mut intake = welcomed(u64::MAX);
    let mut came = 0;
    for piece in bytes[..bytes.len() - 1].chunks(1000) {
        let mut input = piece;
        assert_eq!(intake.next(&mut input), None);
        assert!(!intake.is_between());
        came += piece.len();
        assert!(intake.buffered() <= 2 * came.max(8), "{} of {came}", intake.buffered());
    }
    assert!(intake.buffered() <= (1 << 20) + 4);
    let mut input = &bytes[bytes.len() - 1..];
    assert!(matches!(
        intake.next(&mut input),
        Some(Event::Messages { first: 1, count: 1, bytes }) if bytes.len() == (1 << 20) + 4
    ));
    assert_eq!(intake.next(&mut input), None);
    assert_eq!((intake.buffered(), intake.is_between()), (0, true));
}

#[test]
fn credit_is_enforced_to_the_byte() {
    let bytes = [data(1, &[5, 5]), data(3, &[5])].concat();
    let end = bytes.len();
    for cut in 1..end {
        let mut intake = welcomed(end as u64 - 1);
        let mut found = Vec::new();
        for mut input in [&bytes[..cut], &bytes[cut..]] {
            while let Some(event) = intake.next(&mut input) {
                found.push(match event {
                    Event::Messages { first, count, .. } => (first, count),
                    Event::Fault(Fault::Credit) => (0, 0),
                    other => panic!("{other:?}"),
                });
            }
        }
        assert_eq!(found.pop(), Some((0, 0)), "a byte too much");
        assert_eq!(found.iter().map(|(_, count)| count).sum::<u64>(), 2);
        assert_eq!(intake.received(), end as u64 - 1);
    }
    // A later, larger grant applies. A smaller one does not.
    let mut intake = welcomed(end as u64 - 1);
    let mut input = &bytes[..end - 1];
    while intake.next(&mut input).is_some() {}
    intake.grant(end as u64);
    intake.grant(1);
    assert!(matches!(
        intake.next(&mut &bytes[end - 1..]),
        Some(Event::Messages { first: 3, count: 1, .. })
    ));
    let mut flush = Vec::new();
    write_flush(&mut flush);
    assert_eq!(intake.next(&mut &flush[..]), Some(Event::Flush), "other frames need none");
}

#[test]
fn no_event_follows_a_fault() {
    let mut bytes = data(1, &[1]);
    bytes[5] = 1;
    bytes.extend(data(1, &[1]));
    let mut intake = welcomed(u64::MAX);
    let mut input = &bytes[..];
    assert_eq!(intake.next(&mut input), Some(Event::Fault(Fault::Malformed)));
    assert_eq!(intake.next(&mut input), None);
    assert!(!intake.is_between());
}

#[test]
fn a_hello_with_unsupported_options_is_refused() {
    let good = Hello { producer: b"p", ..Hello::default() };
    let key = [b'k'; 4096];
    let list = Hello { sink: SinkKind::List, key: &key, ..good };
    let null = Hello { sink: SinkKind::Null, db: 7, ..good };
    for hello in [good, list, null] {
        assert_eq!(hello.check(), Ok(()));
        let mut bytes = Vec::new();
        write_hello(&mut bytes, &hello);
        let mut intake = Intake::new(LIMITS);
        assert_eq!(intake.next(&mut &bytes[..]), Some(Event::Hello(hello)));
    }
    assert_eq!(Hello { level: Level::Fsynced, ..good }.check(), Ok(()));
    let counted = Hello { sink: SinkKind::Null, key: b"", ..good };
    assert_eq!(Hello { level: Level::Fsynced, ..counted }.check(), Err(Fault::Level));
    assert_eq!(Hello { key: b"", ..list }.check(), Err(Fault::Sink));
    assert_eq!(Hello { key: b"k", ..null }.check(), Err(Fault::Sink));
    assert_eq!(Hello { db: 1, ..good }.check(), Err(Fault::Sink));
}

#[test]
fn a_long_error_text_is_truncated() {
    let mut bytes = Vec::new();
    write_error(&mut bytes, 3, 4, &"x".repeat(70_000).into_bytes());
    let mut reader = Reader::new();
    let mut input = &bytes[..];
    let Some(Ok(ServerFrame::Error { code: 3, id: 4, text })) = reader.next(&mut input) else {
        panic!("an error frame")
    };
    assert_eq!(text, "x".repeat(65_535).as_bytes());
}
