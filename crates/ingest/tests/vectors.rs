//! The test vectors of `docs/formats/ingest.md`.

use base::MonoNs;
use ingest::{Policy, Strategy};

const PAYLOAD_MAX: u32 = 16;
const START: MonoNs = MonoNs(1_000_000_000);
const MS: u64 = 1_000_000;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    assert_eq!(digits.len(), hex.chars().filter(|c| !c.is_whitespace()).count(), "{hex}");
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Runs one conversation. Returns the number of acknowledgements which it expects.
fn run_conversation(story: &str) -> usize {
    let mut lines = story.lines();
    let name = lines.next().and_then(|l| l.strip_prefix("strategy ")).expect("a strategy first");
    let mut policy = Policy::new(Strategy::from_name(name).expect("a known one"), START);
    let (mut out, mut now, mut over, mut acks) = (Vec::new(), START, false, 0);
    for line in lines {
        let is_ack = line.starts_with('<');
        assert!(is_ack || out.is_empty(), "{name}: {out:02x?} is not expected before '{line}'");
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            ">" => over |= policy.receive(&bytes(rest), now, PAYLOAD_MAX, &mut out).oversized,
            "wait" => {
                now = START.plus(rest.parse::<u64>().expect("milliseconds") * MS);
                policy.tick(now, &mut out);
            }
            "<" => {
                let expected = bytes(rest);
                assert!(out.starts_with(&expected), "{name}: {out:02x?} instead of '{line}'");
                out.drain(..expected.len());
                acks += 1;
            }
            "over" => assert!(std::mem::take(&mut over), "{name}: the stream goes on"),
            other => panic!("'{other}' is no step"),
        }
    }
    assert!(out.is_empty() && !over, "{name}: {out:02x?} is left");
    acks
}

#[test]
fn the_conversations_of_the_document_are_right() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/ingest.md");
    let text = std::fs::read_to_string(path).expect("the document is there");
    let (_, rest) = text.split_once("```vectors\n").expect("it has vectors");
    let (vectors, _) = rest.split_once("```").expect("they end");
    let stories: Vec<&str> = vectors.trim().split("\n\n").collect();
    assert_eq!(stories.len(), Strategy::ALL.len(), "one story for each strategy");
    assert_eq!(stories.into_iter().map(run_conversation).sum::<usize>(), 10);
}
