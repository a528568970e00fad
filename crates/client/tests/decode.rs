//! Replies of every type are decoded, however they are split. Anything else is refused.

use std::io::{self, Read};

use client::{DEPTH_MAX, Decoder, Error, LINE_MAX, Value};
use proptest::prelude::*;

/// Yields its bytes in pieces and then ends.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.piece.min(self.bytes.len()).min(buf.len());
        let (now, later) = self.bytes.split_at(len);
        buf[..len].copy_from_slice(now);
        self.bytes = later;
        Ok(len)
    }
}

fn decode_all(bytes: &[u8], piece: usize) -> (Vec<Value>, Error) {
    let mut decoder = Decoder::new(Pieces { bytes, piece });
    let mut values = Vec::new();
    loop {
        match decoder.read() {
            Ok(value) => values.push(value),
            Err(error) => return (values, error),
        }
    }
}

#[test]
fn every_type_is_decoded_from_pieces_of_any_size() {
    let bytes = b"+OK\r\n-ERR no\r\n:-12\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n*0\r\n\
        *2\r\n:1\r\n*1\r\n$-1\r\n%1\r\n+k\r\n,3.14\r\n~1\r\n#t\r\n>1\r\n#f\r\n,-inf\r\n\
        =8\r\ntxt:a\nb\r\r\n(123\r\n|1\r\n+a\r\n:1\r\n+v\r\n!5\r\nE a\nb\r\n+\r\n";
    let array = |members: &[Value]| Value::Array(members.to_vec());
    let expected = [
        Value::ok(),
        Value::error("ERR no"),
        Value::Integer(-12),
        Value::bulk("a\r\n"),
        Value::bulk(""),
        Value::Null,
        Value::NullArray,
        Value::Null,
        array(&[]),
        array(&[Value::Integer(1), array(&[Value::Null])]),
        Value::Map(vec![(Value::simple("k"), Value::Double(b"3.14".to_vec()))]),
        Value::Set(vec![Value::Bool(true)]),
        Value::Push(vec![Value::Bool(false)]),
        Value::Double(b"-inf".to_vec()),
        Value::Verbatim { format: *b"txt", text: b"a\nb\r".to_vec() },
        Value::BigNumber(b"123".to_vec()),
        Value::Attributed {
            attributes: vec![(Value::simple("a"), Value::Integer(1))],
            value: Box::new(Value::simple("v")),
        },
        Value::error("E a\nb"),
        Value::simple(""),
    ];
    for piece in [1, 2, 3, 7, 1000] {
        let (values, error) = decode_all(bytes, piece);
        assert_eq!(values, expected, "in pieces of {piece}");
        assert!(matches!(error, Error::Closed), "{error}");
    }
}

#[test]
fn malformed_replies_are_refused() {
    let bad: [&[u8]; 14] = [
        b"\r\n",
        b"PONG\r\n",
        b":1x\r\n",
        b":\r\n",
        b"$-2\r\n",
        b"*-2\r\n",
        b"%-1\r\n",
        b"$1\r\nabc\r\n",
        b"$9223372036854775808\r\n",
        b"#x\r\n",
        b"_x\r\n",
        b"=3\r\ntxt\r\n",
        b"=4\r\ntxt-\r\n",
        b"*1\r\n?\r\n",
    ];
    for bytes in bad {
        let (values, error) = decode_all(bytes, 1000);
        assert!(values.is_empty() && matches!(error, Error::Protocol(_)), "{error}");
    }
}

#[test]
fn nesting_and_line_length_are_limited() {
    let nested = |depth: usize| [&b"*1\r\n".repeat(depth)[..], b":1\r\n"].concat();
    assert_eq!(decode_all(&nested(DEPTH_MAX), 1000).0.len(), 1);
    assert!(matches!(decode_all(&nested(DEPTH_MAX + 1), 1000).1, Error::Protocol(_)));
    let line = |len: usize| [&b"+".repeat(len)[..], b"\r\n"].concat();
    assert_eq!(decode_all(&line(LINE_MAX), 1 << 16).0.len(), 1);
    assert!(matches!(decode_all(&line(2 * LINE_MAX), 1 << 16).1, Error::Protocol(_)));
}

#[test]
fn an_announced_length_allocates_nothing() {
    for bytes in [&b"*9223372036854775807\r\n:1\r\n"[..], b"$9223372036854775807\r\nabc"] {
        assert!(matches!(decode_all(bytes, 1000), (values, Error::Closed) if values.is_empty()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_decoded_alike_in_any_pieces(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "*", "$", "%", "|", "~", ">", "+", "-", ":", ",", "=", "_", "#t", "1", "2", "-1",
                "\r\n", "\r", "\n", "txt:", "*2\r\n", "$1\r\na\r\n", ":7\r\n", "%1\r\n",
            ]),
            0..30,
        ),
        piece in 1usize..9,
    ) {
        let bytes = parts.concat().into_bytes();
        let (whole, whole_error) = decode_all(&bytes, usize::MAX);
        let (values, error) = decode_all(&bytes, piece);
        prop_assert_eq!(values, whole);
        prop_assert_eq!(error.to_string(), whole_error.to_string());
    }
}
