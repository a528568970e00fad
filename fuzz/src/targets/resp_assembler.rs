//! Requests: framing in place and assembling agree on any bytes, in one piece or in many.

use base::prng::Prng;
use resp::{Assembler, BigArg, Framed, Limits, OwnedRequest, ProtocolError, Span, frame};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "resp_assembler",
    feed,
    dictionary: &[
        b"*1\r\n",
        b"*2\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"$0\r\n\r\n",
        b"$1\r\na\r\n",
        b"$3\r\nSET\r\n",
        b"$-1\r\n",
        b"\r\n",
        b"\n",
        b"*",
        b"$",
        b"\"",
        b"'",
        b"\\x41",
        b"\\x",
        b"PING\r\n",
        b" ",
        b"$536870912\r\n",
        b"$536870913\r\n",
        b"*2147483647\r\n",
        b"*2147483648\r\n",
        b"*1048576\r\n",
        b"$32768\r\n",
        b"$32767\r\n",
        b"*11\r\n",
        b"$16385\r\n",
        b"+",
        b"-",
        b":",
        b"\0",
    ],
};

/// Bound on memory relative to the bytes received: spare capacity, and the records of arguments.
const MEMORY_FACTOR: usize = 64;
const MEMORY_START: usize = 1024;

/// Maximum number of requests checked per input.
const REQUESTS_MAX: usize = 64;

/// The result of parsing the bytes once.
#[derive(Debug, PartialEq)]
struct Reading {
    requests: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

fn feed(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let limits = Limits::new(0, choice & 1 == 0);
    let whole = framed(bytes, &limits, bytes.len());
    // The same bytes, arriving in pieces.
    let piece = 1 + usize::from(choice >> 1);
    assert_eq!(whole, framed(bytes, &limits, piece), "in pieces of {piece}");
    assert_eq!(whole, assembled(bytes, &limits, bytes.len().max(1)), "assembled");
    assert_eq!(whole, assembled(bytes, &limits, piece), "assembled from pieces of {piece}");
    // Pieces of uneven length.
    let mut rng = Prng::new(u64::from(choice));
    let uneven = 1 + rng.below(40) as usize;
    assert_eq!(whole, assembled(bytes, &limits, uneven), "assembled from pieces of {uneven}");
}

/// Framing in place while `piece` more bytes arrive at each step; big requests continue in an
/// assembler, as in a session.
fn framed(bytes: &[u8], limits: &Limits, piece: usize) -> Reading {
    let (mut spans, mut blobs): (Vec<Span>, Vec<BigArg>) = (Vec::new(), Vec::new());
    let mut reading = Reading { requests: Vec::new(), error: None };
    let (mut at, mut there) = (0, piece.min(bytes.len()));
    while reading.requests.len() < REQUESTS_MAX {
        spans.clear();
        blobs.clear();
        match frame(&bytes[..there], at, &mut spans, &mut blobs, limits) {
            Framed::Complete { end } => {
                assert!(end > at && end <= there, "a request ends inside what is there");
                let args = resp::Args::new(&bytes[..there], &spans, &blobs);
                assert!(!args.is_empty(), "a request without arguments is empty");
                reading.requests.push(args.iter().map(<[u8]>::to_vec).collect());
                at = end;
            }
            Framed::Empty { end } => {
                assert!(end > at && end <= there, "a blank ends inside what is there");
                assert!(spans.is_empty(), "nothing is pushed for a blank");
                at = end;
            }
            Framed::Incomplete => {
                assert!(spans.is_empty() && blobs.is_empty(), "nothing is pushed too early");
                if there == bytes.len() {
                    return reading;
                }
                there = (there + piece.max(1)).min(bytes.len());
            }
            Framed::Big => {
                let mut assembler = Assembler::new(*limits);
                match assembler.feed(&bytes[at..]) {
                    Ok((used, true)) => {
                        at += used;
                        there = there.max(at);
                        push(&mut reading, &assembler.take_request());
                    }
                    Ok((_, false)) => return reading,
                    Err(error) => {
                        reading.error = Some(error);
                        return reading;
                    }
                }
            }
            Framed::Error(error) => {
                reading.error = Some(error);
                return reading;
            }
        }
    }
    reading
}

fn push(reading: &mut Reading, request: &OwnedRequest) {
    let args = request.args();
    if !args.is_empty() {
        reading.requests.push(args.iter().map(<[u8]>::to_vec).collect());
    }
}

/// Every request through an assembler which gets pieces of these lengths.
fn assembled(bytes: &[u8], limits: &Limits, piece: usize) -> Reading {
    let mut reading = Reading { requests: Vec::new(), error: None };
    let mut assembler = Assembler::new(*limits);
    let (mut at, mut started) = (0, 0);
    while at < bytes.len() && reading.requests.len() < REQUESTS_MAX {
        let end = (at + piece).min(bytes.len());
        match assembler.feed(&bytes[at..end]) {
            Ok((used, complete)) => {
                assert!(used > 0, "an assembler makes progress");
                at += used;
                let held_max = MEMORY_START + MEMORY_FACTOR * (at - started);
                assert!(
                    assembler.memory() <= held_max,
                    "memory is reserved for bytes which were only announced"
                );
                if complete {
                    started = at;
                    let mut done = std::mem::replace(&mut assembler, Assembler::new(*limits));
                    push(&mut reading, &done.take_request());
                }
            }
            Err(error) => {
                reading.error = Some(error);
                return reading;
            }
        }
    }
    reading
}
