//! A loop over one hot operation, to be counted under callgrind:
//! `frame_count OPERATION ROUNDS`, where the difference between two numbers of rounds is the cost.

use std::hint::black_box;

use resp::{BigArg, Framed, Limits, OutBuf, Proto, Reply, Span, frame};

/// Requests in the buffer, as in a deep pipeline.
const PIPELINE: usize = 64;

fn main() {
    let mut words = std::env::args().skip(1);
    let operation = words.next().unwrap_or_default();
    let rounds: usize = words.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let (key, value) = ("k".repeat(16), "v".repeat(64));
    match operation.as_str() {
        "get" => frame_loop(&["GET", &key], rounds),
        "set" => frame_loop(&["SET", &key, &value], rounds),
        "set1k" => frame_loop(&["SET", &key, &"v".repeat(1024)], rounds),
        "set10k" => frame_loop(&["SET", &key, &"v".repeat(10_240)], rounds),
        "mset10" => {
            let mut request = vec!["MSET"];
            request.extend([key.as_str(), value.as_str()].repeat(10));
            frame_loop(&request, rounds);
        }
        "ok" => reply_loop(rounds, |mut reply| reply.ok()),
        "bulk" => reply_loop(rounds, |mut reply| reply.bulk(black_box(value.as_bytes()))),
        "integer" => reply_loop(rounds, |mut reply| reply.integer(black_box(1_234_567))),
        "null" => reply_loop(rounds, |mut reply| reply.null()),
        _ => eprintln!("frame_count get|set|set1k|set10k|mset10|ok|bulk|integer|null ROUNDS"),
    }
}

fn encode(args: &[&str]) -> Vec<u8> {
    let args = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len()));
    let args: Vec<String> = args.collect();
    format!("*{}\r\n{}", args.len(), args.concat()).into_bytes()
}

fn frame_loop(args: &[&str], rounds: usize) {
    let buf = encode(args).repeat(PIPELINE);
    let (mut spans, mut blobs) = (Vec::new(), Vec::new());
    let limits = black_box(Limits::default());
    for _ in 0..rounds {
        spans.clear();
        pass(black_box(&buf), &mut spans, &mut blobs, &limits);
        assert_eq!(black_box(&spans).len(), PIPELINE * args.len());
    }
}

#[inline(never)]
fn pass(buf: &[u8], spans: &mut Vec<Span>, blobs: &mut Vec<BigArg>, limits: &Limits) {
    let mut at = 0;
    while at < buf.len() {
        match frame(buf, at, spans, blobs, limits) {
            Framed::Complete { end } => at = end,
            other => unreachable!("a valid request: {other:?}"),
        }
    }
}

fn reply_loop(rounds: usize, write: impl Fn(Reply<'_>)) {
    let mut out = OutBuf::new();
    for _ in 0..rounds {
        out.clear();
        for _ in 0..PIPELINE {
            write(Reply::new(black_box(&mut out), black_box(Proto::Resp3)));
        }
    }
}
