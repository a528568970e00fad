//! Framing and assembling follow one grammar, however the bytes are split.

use crate::support::{Handler, by_assembler, by_session};
use proptest::prelude::*;
use resp::{Args, Assembler, Beginning, Framed, Limits, OwnedRequest, ProtocolError, frame};

/// The contents of a byte stream: requests, and possibly an error at its end.
type Parsed = (Requests, Option<ProtocolError>);

/// The requests seen.
#[derive(Debug, PartialEq, Eq, Default)]
struct Requests(Vec<Vec<Vec<u8>>>);

impl Handler for Requests {
    fn request(&mut self, args: Args<'_>) -> Option<Limits> {
        self.0.push(owned(args));
        None
    }
}

fn owned(args: Args<'_>) -> Vec<Vec<u8>> {
    args.iter().map(<[u8]>::to_vec).collect()
}

/// Every way to parse the same bytes must see the same requests.
fn check(bytes: &[u8], cuts: &[usize], limits: Limits) -> Parsed {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let pieces = || cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
    let whole = by_session([bytes], limits, Requests::default());
    assert_eq!(whole, by_session(pieces(), limits, Requests::default()), "split at {cuts:?}");
    assert_eq!(whole, by_assembler([bytes], limits, Requests::default()));
    assert_eq!(
        whole,
        by_assembler(pieces(), limits, Requests::default()),
        "assembled, split at {cuts:?}"
    );
    agree_on_beginnings(bytes, &limits);
    whole
}

/// A remembered beginning does not change how a request with the same beginning is framed.
fn agree_on_beginnings(bytes: &[u8], limits: &Limits) {
    let (mut at, mut seen) = (0, vec![Beginning::default()]);
    loop {
        let (mut spans, mut blobs) = (Vec::new(), Vec::new());
        let framed = frame(bytes, at, &mut spans, &mut blobs, limits);
        for beginning in &seen {
            let mut alike = Vec::new();
            match beginning.frame(bytes, at, &mut alike) {
                Some(end) => assert_eq!((Framed::Complete { end }, alike), (framed, spans.clone())),
                None => assert!(alike.is_empty()),
            }
        }
        match framed {
            Framed::Complete { end } => {
                seen.push(Beginning::of(bytes, at, &spans));
                at = end;
            }
            Framed::Empty { end } => at = end,
            _ => break,
        }
    }
}

fn encode(requests: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for request in requests {
        bytes.extend(format!("*{}\r\n", request.len()).bytes());
        for arg in request {
            bytes.extend(format!("${}\r\n", arg.len()).bytes());
            bytes.extend(arg);
            bytes.extend(b"\r\n");
        }
    }
    bytes
}

/// Arguments of all lengths at which a header grows or another code path is taken.
fn argument() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![
        8 => 0usize..12,
        4 => 90usize..110,
        2 => 990usize..1010,
        1 => prop::sample::select(vec![9_999, 10_000, 32_767, 32_768, 33_000, 70_000]),
    ];
    (len, any::<u8>(), any::<u8>()).prop_map(|(len, first, step)| {
        (0..len).map(|at| first.wrapping_add((at as u8).wrapping_mul(step))).collect()
    })
}

fn request() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let count = prop_oneof![16 => 1usize..6, 2 => 9usize..13, 1 => 98usize..103];
    count.prop_flat_map(|count| prop::collection::vec(argument(), count))
}

/// Parts of the grammar, complete and broken, in any order.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"*",
        b"$",
        b"\r\n",
        b"\r",
        b"\n",
        b"0",
        b"1",
        b"2",
        b"9",
        b"10",
        b"11",
        b"16384",
        b"16385",
        b"32768",
        b"-1",
        b"+",
        b" ",
        b"\t",
        b"\x0b",
        b"'",
        b"\"",
        b"\\",
        b"\\x4",
        b"\\x41",
        b"a",
        b"PING",
        b"*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n",
        b"$4\r\nPING\r\n",
        b"*1\r\n",
        b"*0\r\n",
        b"PING\r\n",
        b"ECHO \"a b\" 'c'\r\n",
        b"\0",
        b"\xff",
        b"536870912",
        b"536870913",
        b"2147483647",
        b"2147483648",
        b"9223372036854775808",
    ];
    let any_bytes = prop::collection::vec(any::<u8>(), 0..5);
    let fragment = prop_oneof![
        12 => prop::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => any_bytes,
        1 => (prop::sample::select(b"1a \"*".to_vec()), 30_000usize..70_000)
            .prop_map(|(byte, len)| vec![byte; len]),
    ];
    prop::collection::vec(fragment, 0..24).prop_map(|parts| parts.concat())
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 0..6)
}

/// The positions of the line ends of each header and argument.
fn line_ends(requests: &[Vec<Vec<u8>>]) -> Vec<usize> {
    let (mut at, mut ends) = (0, Vec::new());
    let mut line = |len: usize| {
        ends.push(at + len);
        at += len + 2;
    };
    for request in requests {
        line(1 + request.len().to_string().len());
        for arg in request {
            line(1 + arg.len().to_string().len());
            line(arg.len());
        }
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_valid_stream_is_parsed_for_any_split(
        requests in prop::collection::vec(request(), 1..5),
        cuts in cuts(),
    ) {
        let bytes = encode(&requests);
        let parsed = check(&bytes, &cuts, Limits::default());
        prop_assert_eq!(parsed, (Requests(requests), None));
    }

    #[test]
    fn a_wrong_byte_in_a_line_end_is_an_error_at_its_request(
        requests in prop::collection::vec(request(), 1..5),
        cuts in cuts(),
        place: prop::sample::Index,
        is_second: bool,
        wrong: u8,
    ) {
        let requests = [&requests[..], &requests].concat(); // so that beginnings repeat
        let mut bytes = encode(&requests);
        let at = *place.get(&line_ends(&requests)) + usize::from(is_second);
        prop_assert!(b"\r\n".contains(&bytes[at]));
        prop_assume!(wrong != bytes[at]);
        bytes[at] = wrong;
        let whole = |count: &usize| encode(&requests[..*count]).len() <= at;
        let before = (0..requests.len()).filter(whole).max().unwrap_or(0);
        let (seen, error) = check(&bytes, &cuts, Limits::default());
        prop_assert_eq!(seen.0, &requests[..before]);
        // A header without its CR is longer, and its contents are no number.
        prop_assert!(error.is_some(), "{} at {at}", bytes.escape_ascii());
        if is_second {
            prop_assert_eq!(error, Some(ProtocolError::InvalidLineEnd));
        }
    }

    #[test]
    fn fragments_are_parsed_alike_for_any_split(
        bytes in fragments(),
        cuts in cuts(),
        authenticated: bool,
    ) {
        check(&bytes, &cuts, Limits::new(0, authenticated));
    }

    #[test]
    fn random_bytes_are_parsed_alike_for_any_split(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cuts in cuts(),
    ) {
        check(&bytes, &cuts, Limits::default());
    }

    #[test]
    fn a_copied_request_has_the_same_arguments(request in request()) {
        let bytes = encode(std::slice::from_ref(&request));
        let mut assembler = Assembler::new(Limits::default());
        prop_assert_eq!(assembler.feed(&bytes), Ok((bytes.len(), true)));
        let copy = OwnedRequest::new(assembler.args());
        prop_assert_eq!(owned(copy.args()), request);
        for index in 0..copy.args().len() {
            let pair = (assembler.args().blob(index), copy.args().blob(index));
            let shared = match pair {
                (Some(original), Some(shared)) => original.is_same(shared),
                pair => pair == (None, None),
            };
            prop_assert!(shared, "a big buffer is shared");
        }
    }
}

#[test]
fn requests_are_parsed_from_single_bytes() {
    let big = vec![b'v'; 40_000];
    let requests = vec![
        vec![b"SET".to_vec(), b"key".to_vec(), big],
        vec![b"PING".to_vec()],
        vec![Vec::new(), b"x".repeat(101)],
    ];
    let mut bytes = encode(&requests);
    bytes.extend(b"\r\n*0\r\n*-3\r\nECHO \"a\\x20b\" 'c'\r\n");
    let mut expected = requests;
    expected.push(vec![b"ECHO".to_vec(), b"a b".to_vec(), b"c".to_vec()]);
    let parsed = by_session(bytes.chunks(1), Limits::default(), Requests::default());
    assert_eq!(parsed, (Requests(expected), None));
    assert_eq!(parsed, by_assembler(bytes.chunks(1), Limits::default(), Requests::default()));
}

/// Regression: with a header's carriage return as the last received byte, the argument seemed to
/// start beyond the buffer, and its missing length was negative.
#[test]
fn a_header_may_end_at_the_end_of_the_buffer() {
    for bytes in [&b"*1\r\n$12\r"[..], b"*1\r\n$123\r", b"*1\r\n$1234\r", b"*1\r\n$1\r"] {
        for end in 0..=bytes.len() {
            let (mut spans, mut blobs) = (Vec::new(), Vec::new());
            let framed = frame(&bytes[..end], 0, &mut spans, &mut blobs, &Limits::default());
            assert_eq!(framed, Framed::Incomplete, "{}", bytes[..end].escape_ascii());
        }
    }
}

#[test]
fn large_requests_are_passed_to_an_assembler() {
    let limits = Limits::default();
    let state = |bytes: &[u8]| frame(bytes, 0, &mut Vec::new(), &mut Vec::new(), &limits);
    assert_eq!(state(b"*2\r\n$3\r\nSET\r\n$32767\r\n"), Framed::Incomplete);
    assert_eq!(state(b"*2\r\n$3\r\nSET\r\n$32768\r\n"), Framed::Big);
    assert_eq!(state(&b"a".repeat(32 * 1024)), Framed::Incomplete);
    assert_eq!(state(&b"a".repeat(32 * 1024 + 1)), Framed::Big);
    let whole = encode(&[vec![b"SET".to_vec(), vec![b'v'; 40_000]]]);
    assert_eq!(state(&whole), Framed::Complete { end: whole.len() }, "complete is never big");
}

/// Short headers are parsed by arithmetic on four bytes at once, in which a byte adjacent to the
/// digits must not be taken for one. Tries every header of up to five bytes from the edge values.
#[test]
fn bytes_adjacent_to_the_digits_are_refused() {
    let edges = *b"/019:\r-$*\0\xff";
    let mut headers = vec![Vec::new()];
    for _ in 0..4 {
        let longer = headers.iter().flat_map(|header: &Vec<u8>| {
            edges.iter().map(move |byte| [&header[..], &[*byte]].concat())
        });
        headers = longer.collect();
    }
    assert_eq!(headers.len(), edges.len().pow(4));
    let tail = [&b"\r\n"[..], &b"x\r\n".repeat(40)].concat();
    for header in &headers {
        for start in [&b"*1\r\n$"[..], b"*2\r\n$1\r\na\r\n$", b"*4\r\n$", b"*", b"*1\r\n"] {
            check(&[start, header, &tail].concat(), &[], Limits::default());
        }
        let arguments = b"$1\r\na\r\n".repeat(12);
        check(&[b"*", &header[..2], b"\r\n", &arguments].concat(), &[], Limits::default());
        check(&[b"*", &header[..1], b"\r\n", &arguments].concat(), &[], Limits::default());
    }
}
