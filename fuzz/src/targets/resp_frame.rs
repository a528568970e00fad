//! Framing in place: spans lie inside their request, and a shorter buffer never gives a different
//! result.

use resp::{Args, Framed, Limits, Span, frame};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "resp_frame",
    feed,
    dictionary: &[
        b"*",
        b"$",
        b"\r\n",
        b"\r",
        b"\n",
        b"*0\r\n",
        b"*1\r\n",
        b"*2\r\n",
        b"*3\r\n",
        b"*9\r\n",
        b"*10\r\n",
        b"*11\r\n",
        b"*-1\r\n",
        b"*2147483647\r\n",
        b"*2147483648\r\n",
        b"$0\r\n\r\n",
        b"$1\r\na\r\n",
        b"$3\r\nSET\r\n",
        b"$3\r\nGET\r\n",
        b"$10\r\n0123456789\r\n",
        b"$100\r\n",
        b"$9999\r\n",
        b"$10000\r\n",
        b"$16384\r\n",
        b"$16385\r\n",
        b"$32767\r\n",
        b"$32768\r\n",
        b"$1048576\r\n",
        b"$1048577\r\n",
        b"$-1\r\n",
        b"$01\r\n",
        b"$1\rX",
        b"*1\r\n$4\r\nPING\r\n",
        b"PING\r\n",
        b"ECHO \"a\\x20b\" 'c'\r\n",
        b"\"",
        b"'",
        b"\\",
        b" ",
        b"\0",
        b"\xff",
    ],
};

/// Maximum number of prefixes of a request which are tried.
const CUTS_MAX: usize = 24;

fn feed(input: &[u8]) {
    for authenticated in [true, false] {
        stream(input, &Limits::new(0, authenticated));
    }
}

fn stream(input: &[u8], limits: &Limits) {
    let (mut spans, mut blobs) = (vec![Span::default()], Vec::new());
    let mut at = 0;
    loop {
        let (spans_before, blobs_before) = (spans.len(), blobs.len());
        let framed = frame(input, at, &mut spans, &mut blobs, limits);
        if !matches!(framed, Framed::Complete { .. }) {
            assert_eq!(
                (spans.len(), blobs.len()),
                (spans_before, blobs_before),
                "left as they were"
            );
        }
        let end = match framed {
            Framed::Complete { end } => {
                let args = Args::new(input, &spans[spans_before..], &blobs);
                arguments(args, &spans[spans_before..], at, end);
                end
            }
            Framed::Empty { end } => end,
            Framed::Incomplete | Framed::Big | Framed::Error(_) => input.len(),
        };
        cuts(input, at, end, framed, limits);
        if !matches!(framed, Framed::Complete { .. } | Framed::Empty { .. }) {
            return;
        }
        assert!(
            end > at && end <= input.len(),
            "a request ends after its start and inside the input"
        );
        at = end;
    }
}

/// Arguments are in order, do not overlap, and lie inside their request.
fn arguments(args: Args<'_>, spans: &[Span], at: usize, end: usize) {
    assert!(!args.is_empty(), "a request has a name");
    let mut from = at;
    for (index, span) in spans.iter().enumerate() {
        if args.blob(index).is_none() {
            assert!(span.start as usize >= from);
            from = span.start as usize + span.len as usize;
            assert!(from <= end);
        }
        std::hint::black_box(args.get(index).len());
    }
    assert_eq!(args.iter().len(), spans.len());
}

/// The request is found in exactly its own bytes, and in no shorter prefix.
fn cuts(input: &[u8], at: usize, end: usize, whole: Framed, limits: &Limits) {
    let state = |end: usize| {
        let (mut spans, mut blobs) = (Vec::new(), Vec::new());
        frame(&input[..end], at, &mut spans, &mut blobs, limits)
    };
    if matches!(whole, Framed::Complete { .. } | Framed::Empty { .. }) {
        assert_eq!(state(end), whole, "bytes after the request change nothing");
    }
    let step = ((end - at) / CUTS_MAX).max(1);
    for cut in (at..end).step_by(step).chain((end - at > 1).then(|| end - 1)) {
        match state(cut) {
            Framed::Incomplete | Framed::Big => {}
            error @ Framed::Error(_) => {
                assert_eq!(error, whole, "an error in a prefix stays the same error");
            }
            found => panic!("{found:?} in {cut} bytes, {whole:?} in {}", input.len()),
        }
    }
}
