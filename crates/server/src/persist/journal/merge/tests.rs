//! Batches in any order and in any portions: what is written, and what it says of itself.

use super::*;
use base::Blob;
use base::out::BlobPart;
use keyspace::journal::Readers;

const MAX: usize = 1 << 20;

fn id(digit: char) -> ReplId {
    ReplId::parse(digit.to_string().repeat(40).as_bytes()).expect("40 digits")
}

fn new(next: u64) -> Merger {
    Merger::new(SeqNo(next), Position { id: id('a'), offset: 100 })
}

/// The annotations with which a file begins.
fn head(number: u64, ms: i64, offset: u64) -> String {
    format!("#NUM:{number}:{ms} #OFFSET:{offset}:{} ", id('a'))
}

/// A batch of runs: the numbers, the database and the text of each.
fn batch(runs: &[(u64, u32, u16, &str)]) -> Batch {
    let mut batch = Batch::default();
    for &(first, count, db, text) in runs {
        batch.out.bytes.extend_from_slice(text.as_bytes());
        let db = (!text.is_empty()).then(|| DbIndex::new(db));
        let (end, first) = (batch.out.position(), SeqNo(first));
        batch.runs.push(Run { first, count, db_in: db, db_out: db, end, cut: 0 });
    }
    batch
}

fn merged(merger: &mut Merger) -> (Merged, String) {
    merged_at(merger, 5)
}

fn merged_at(merger: &mut Merger, unix_ms: i64) -> (Merged, String) {
    let mut out = Vec::new();
    let merged = merger.merge(&mut out, MAX, unix_ms);
    (merged, String::from_utf8(out).expect("text").replace("\r\n", " "))
}

#[test]
fn runs_are_written_in_the_order_of_their_numbers() {
    let mut merger = new(7);
    merger.push(batch(&[(9, 2, 0, "c"), (12, 1, 0, "e")]));
    assert!(!merger.is_ready(), "7 is not there");
    assert_eq!(merged(&mut merger), (Merged::All, String::new()));
    merger.push(batch(&[(7, 2, 0, "ab"), (11, 1, 3, "d")]));
    assert!(merger.is_ready());
    let text = head(7, 5, 100) + "*2 $6 SELECT $1 0 abc*2 $6 SELECT $1 3 d*2 $6 SELECT $1 0 e";
    assert_eq!(merged(&mut merger), (Merged::All, text));
    assert_eq!((merger.last(), merger.bytes()), (SeqNo(12), 0));
    assert_eq!(merger.offset(), 100 + 3 * 23 + 5);
    assert_eq!(merger.take_done().count(), 2);
    merger.push(batch(&[(14, 1, 0, "g")]));
    assert_eq!(merged(&mut merger).1, "", "13 was not handed over");
    merger.push(batch(&[(13, 1, 0, "")]));
    let text = "#NUM:14:5 #OFFSET:174 g";
    assert_eq!(merged(&mut merger).1, text, "behind a number without a command");
}

#[test]
fn a_cut_ends_what_is_written_and_a_new_file_selects_again() {
    let mut merger = new(1);
    let mut with_cut = batch(&[(1, 1, 0, "a"), (2, 1, 0, ""), (3, 1, 0, "b")]);
    with_cut.runs[1].cut = 5;
    merger.push(with_cut);
    let first = head(1, 5, 100) + "*2 $6 SELECT $1 0 a";
    assert_eq!(merged(&mut merger), (Merged::Cut(5), first));
    merger.begin_file();
    let second = head(3, 5, 124) + "*2 $6 SELECT $1 0 b";
    assert_eq!(merged(&mut merger), (Merged::All, second));
}

#[test]
fn an_annotation_stands_in_each_millisecond_and_where_numbers_are_left_out() {
    let mut merger = new(1);
    let mut write = |runs: &[(u64, u32, u16, &str)], unix_ms| {
        merger.push(batch(runs));
        merged_at(&mut merger, unix_ms).1
    };
    let first = head(1, 7, 100) + "*2 $6 SELECT $1 0 a";
    assert_eq!(write(&[(1, 1, 0, "a")], 7), first);
    assert_eq!(write(&[(2, 3, 0, "bcd"), (5, 1, 0, "e")], 7), "bcde", "the same millisecond");
    assert_eq!(write(&[(6, 1, 0, "f")], 6), "f", "a clock which was set back");
    assert_eq!(write(&[(7, 2, 0, "")], 9), "", "nothing has this time");
    assert_eq!(write(&[(9, 1, 0, "g")], 7), "#NUM:9:7 #OFFSET:129 g");
    let later = write(&[(10, 1, 0, "h"), (11, 1, 0, "i")], 8);
    assert_eq!(later, "#NUM:10:8 #OFFSET:130 hi");
    merger.begin_file();
    merger.push(batch(&[(12, 1, 0, "j")]));
    let text = head(12, 8, 132) + "*2 $6 SELECT $1 0 j";
    assert_eq!(merged_at(&mut merger, 3).1, text, "times never fall");
    merger.rename(id('b'));
    merger.push(batch(&[(13, 1, 0, "k")]));
    let text = format!("#NUM:13:8 #OFFSET:156:{} k", id('b'));
    assert_eq!(merged_at(&mut merger, 8).1, text);
}

/// A batch whose run has a line for the file alone, `len` bytes from this byte on.
fn with_part(number: u64, text: &str, from: usize, len: usize) -> Batch {
    let mut batch = batch(&[(number, 1, 0, text)]);
    batch.parts.push(Part { readers: Readers::File, from, to: from + len });
    batch
}

#[test]
fn what_is_for_the_file_alone_has_no_place_in_the_stream() {
    let mut merger = new(1);
    let mut one = with_part(1, "<#line>", 1, 5);
    one.out.bytes.extend_from_slice(b"<##><>");
    one.parts.push(Part { readers: Readers::File, from: 8, to: 10 });
    let mut end = one.out.position();
    one.runs.push(Run { first: SeqNo(3), end, ..one.runs[0] });
    end.bytes -= 2;
    one.runs[1].end = end;
    one.runs.push(Run { first: SeqNo(4), end: one.out.position(), ..one.runs[0] });
    merger.push(one);
    merger.push(batch(&[(2, 1, 0, "x")]));
    let before: Vec<_> = (1..=5).map(|n| merger.position_at(SeqNo(n))).collect();
    let offsets = [100, 125, 126, 128, 130].map(|offset| Position { id: id('a'), offset });
    assert_eq!(before, offsets.map(Some));
    assert_eq!(merger.position_at(SeqNo(6)), None, "5 was not taken over");
    let text = head(1, 5, 100) + "*2 $6 SELECT $1 0 <#line>x<##><>";
    assert_eq!(merged(&mut merger), (Merged::All, text));
    assert_eq!((merger.offset(), merger.position_at(SeqNo(5))), (130, Some(offsets[4])));
}

/// The position of a number is the same before and while what is ahead of it is written. A cut of
/// another rewrite may be ahead: behind it a database is selected again.
#[test]
fn a_position_does_not_depend_on_how_much_is_written() {
    let mut random = base::prng::Prng::new(5);
    for _ in 0..200 {
        let mut merger = new(1);
        let mut number = 1;
        let mut batches: Vec<Batch> = (0..3).map(|_| Batch::default()).collect();
        for _ in 0..random.below(12) {
            let batch = &mut batches[random.below(3) as usize];
            let (count, db) = (1 + random.below(3) as u32, random.below(2) as u16);
            let has_command = random.below(5) > 0;
            if has_command {
                batch.out.bytes.extend(vec![b'*'; 1 + random.below(50) as usize]);
                let from = batch.out.bytes.len();
                if random.below(3) == 0 {
                    batch.out.bytes.extend_from_slice(b"#line");
                    let part = Part { readers: Readers::File, from, to: from + 5 };
                    batch.parts.push(part);
                }
                if random.below(3) == 0 {
                    let value = vec![7; 100_000];
                    let part = BlobPart::whole(batch.out.bytes.len(), value.as_slice().into());
                    batch.out.blobs.push(part);
                }
                batch.out.bytes.extend_from_slice(b"\r\n");
            }
            let db_in = has_command.then(|| DbIndex::new(db));
            let (end, first) = (batch.out.position(), SeqNo(number));
            let cut = u32::from(!has_command && random.below(2) == 0);
            batch.runs.push(Run { first, count, db_in, db_out: db_in, end, cut });
            number += u64::from(count);
        }
        for batch in batches {
            merger.push(batch);
        }
        let expected = merger.position_at(SeqNo(number)).expect("all is there");
        let (mut out, mut last) = (Vec::new(), Merged::Full);
        while last != Merged::All {
            let max = out.len() + 1 + random.below(60_000) as usize;
            last = merger.merge(&mut out, max, random.below(3) as i64);
            assert_eq!(merger.position_at(SeqNo(number)), Some(expected));
            if matches!(last, Merged::Cut(_)) {
                merger.begin_file();
                assert_eq!(merger.position_at(SeqNo(number)), Some(expected));
            }
        }
        assert_eq!(merger.offset(), expected.offset);
    }
}

#[test]
fn a_big_value_is_copied_in_parts() {
    let value: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
    let mut one = batch(&[(1, 1, 0, "<>")]);
    one.out.blobs.push(BlobPart::whole(1, Blob::from(value.as_slice())));
    one.runs[0].end = one.out.position();
    let mut merger = new(1);
    merger.push(one);
    let (mut all, mut calls) = (Vec::new(), 0);
    loop {
        let mut out = Vec::new();
        let merged = merger.merge(&mut out, 70_000, 5);
        assert!(out.len() < 140_000, "bounded");
        all.extend(out);
        calls += 1;
        if merged == Merged::All {
            break;
        }
        assert_eq!(merger.last(), SeqNo(0), "not whole yet");
    }
    let begin = all.iter().position(|b| *b == b'<').expect("behind SELECT");
    assert_eq!(all[begin + 1..all.len() - 1], value);
    assert!(calls > 2 && merger.last() == SeqNo(1) && merger.bytes() == 0, "{calls} calls");
}
