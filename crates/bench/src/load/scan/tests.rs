//! The scanner compared with the blocking client's decoder, with input split anywhere.

use client::{Decoder, Value};
use proptest::prelude::*;

use super::*;

/// Records all calls of the scanner.
#[derive(Default, Debug, PartialEq, Eq)]
struct Notes<const WHOLE: bool> {
    values: Vec<(Kind, Vec<u8>, bool)>,
    replies: Vec<usize>,
}

impl<const WHOLE: bool> Sink for Notes<WHOLE> {
    const WHOLE: bool = WHOLE;
    fn value(&mut self, kind: Kind, text: &[u8], nested: bool) {
        let text = if WHOLE || kind != Kind::Bulk { text.to_vec() } else { Vec::new() };
        self.values.push((kind, text, nested));
    }
    fn reply(&mut self) {
        self.replies.push(self.values.len());
    }
}

/// Feeds `bytes` in pieces which end at `cuts`, like a connection.
fn fed<const WHOLE: bool>(bytes: &[u8], cuts: &[usize]) -> Result<Notes<WHOLE>, Malformed> {
    let (mut scanner, mut notes) = (Scanner::default(), Notes::default());
    let (mut kept, mut from) = (Vec::new(), 0);
    for &to in cuts.iter().chain([&bytes.len()]) {
        kept.extend_from_slice(&bytes[from..to]);
        let used = scanner.scan(&kept, &mut notes)?;
        kept.drain(..used);
        from = to;
    }
    assert!(kept.is_empty() && scanner.is_between(), "all of it is whole replies");
    Ok(notes)
}

/// The expected calls, from the decoder's values.
fn flat(value: &Value, nested: bool, out: &mut Vec<(Kind, Vec<u8>, bool)>) {
    let mut members: Vec<&Value> = Vec::new();
    let (kind, text) = match value {
        Value::Simple(text) | Value::Double(text) | Value::BigNumber(text) => {
            (Kind::Simple, text.clone())
        }
        Value::Bool(is) => (Kind::Simple, if *is { b"t".to_vec() } else { b"f".to_vec() }),
        Value::Error(text) => (Kind::Error, text.clone()),
        Value::Integer(number) => (Kind::Integer, number.to_string().into_bytes()),
        Value::Bulk(text) => (Kind::Bulk, text.clone()),
        Value::Verbatim { format, text } => (Kind::Bulk, [&format[..], b":", text].concat()),
        Value::Null | Value::NullArray => (Kind::Nil, Vec::new()),
        Value::Array(of) | Value::Set(of) => {
            members.extend(of);
            (Kind::Aggregate(of.len() as u64), Vec::new())
        }
        Value::Map(pairs) => {
            members.extend(pairs.iter().flat_map(|(key, value)| [key, value]));
            (Kind::Aggregate(pairs.len() as u64 * 2), Vec::new())
        }
        Value::Attributed { value, .. } => return flat(value, nested, out),
        Value::Push(_) => return,
    };
    out.push((kind, text, nested));
    for member in members {
        flat(member, true, out);
    }
}

fn decoded(bytes: &[u8]) -> Notes<true> {
    let (mut decoder, mut notes) = (Decoder::new(bytes), Notes::default());
    while let Ok(value) = decoder.read() {
        if !matches!(value, Value::Push(_)) {
            flat(&value, false, &mut notes.values);
            notes.replies.push(notes.values.len());
        }
    }
    notes
}

fn leaf() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        Just(b"+OK\r\n".to_vec()),
        Just(b"+\r\n".to_vec()),
        Just(b"-ERR no\r\n".to_vec()),
        any::<i64>().prop_map(|n| format!(":{n}\r\n").into_bytes()),
        Just(b"$-1\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
        Just(b"_\r\n".to_vec()),
        Just(b"#t\r\n".to_vec()),
        Just(b",1.5\r\n".to_vec()),
        Just(b"(12345678901234567890\r\n".to_vec()),
        bytes.clone().prop_map(|b| bulk('$', &b)),
        bytes.clone().prop_map(|b| bulk('!', &b)),
        bytes.prop_map(|b| bulk('=', &[b"txt:", &b[..]].concat())),
        Just(bulk('$', &[b'\n'; 70_000])),
    ]
}

fn bulk(kind: char, body: &[u8]) -> Vec<u8> {
    [format!("{kind}{}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat()
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    leaf().prop_recursive(4, 24, 5, |inner| {
        let many = prop::collection::vec(inner.clone(), 0..5);
        let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..3);
        let attributes = (prop::collection::vec((inner.clone(), inner.clone()), 0..2), inner);
        prop_oneof![
            many.clone().prop_map(|of| aggregate('*', of.len(), of.concat())),
            many.prop_map(|of| aggregate('~', of.len(), of.concat())),
            pairs.prop_map(|of| aggregate('%', of.len(), joined(of))),
            attributes
                .prop_map(|(of, value)| { [aggregate('|', of.len(), joined(of)), value].concat() }),
        ]
    })
}

fn joined(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<u8> {
    pairs.into_iter().flat_map(|(key, value)| [key, value].concat()).collect()
}

fn aggregate(kind: char, len: usize, members: Vec<u8>) -> Vec<u8> {
    [format!("{kind}{len}\r\n").into_bytes(), members].concat()
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let push = prop::collection::vec(value(), 0..4);
    prop_oneof![
        4 => value(),
        1 => push.prop_map(|of| aggregate('>', of.len(), of.concat())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn replies_split_anywhere_match_the_decoder(
        messages in prop::collection::vec(message(), 1..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = messages.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        let expected = decoded(&bytes);
        prop_assert_eq!(&fed::<true>(&bytes, &cuts).expect("these are replies"), &expected);
        let counted = fed::<false>(&bytes, &cuts).expect("these are replies");
        prop_assert_eq!(&counted.replies, &expected.replies);
        let kinds = |of: &[(Kind, Vec<u8>, bool)]| of.iter().map(|v| (v.0, v.2)).collect::<Vec<_>>();
        prop_assert_eq!(kinds(&counted.values), kinds(&expected.values));
    }

    #[test]
    fn any_bytes_are_scanned_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in "[-+:$*_,(#=!~%>|]",
    ) {
        let bytes = [kind.as_bytes(), &bytes].concat();
        let (mut scanner, mut notes) = (Scanner::default(), Notes::<false>::default());
        if let Ok(used) = scanner.scan(&bytes, &mut notes) {
            prop_assert!(used <= bytes.len());
        }
    }
}

#[test]
fn replies_are_scanned_byte_by_byte() {
    let bytes = b"+OK\r\n$3\r\nabc\r\n*2\r\n$-1\r\n:1\r\n>1\r\n+x\r\n|1\r\n+a\r\n+b\r\n$0\r\n\r\n";
    let cuts: Vec<usize> = (1..bytes.len()).collect();
    let notes = fed::<false>(bytes, &cuts).expect("these are replies");
    assert_eq!(notes.replies, [1, 2, 5, 6]);
}

#[test]
fn invalid_replies_are_reported_at_once() {
    let error = |bytes: &[u8]| {
        let mut notes = Notes::<false>::default();
        Scanner::default().scan(bytes, &mut notes).expect_err("no reply").0
    };
    assert_eq!(error(b"HTTP/1.1 400"), "\"HTTP/1.1 400\"");
    assert!(error(b"$abc\r\n").contains("abc"));
    assert!(error(b"$3\r\nabcde").contains("does not end"));
    assert!(error(b"$-2\r\n").contains("-2"));
    assert!(error(&b"*1\r\n".repeat(DEPTH_MAX + 1)).contains("deeper"));
    assert!(error(&[&b"+"[..], &vec![b'x'; LINE_MAX]].concat()).contains("a line over"));
    assert!(error(b"+a\nb\r\n").contains("+a"));
}
