//! Files of commands: any bytes are items and damage with its place, which do not depend on the
//! blocks in which the bytes come, nor do the numbers of the records. A simple second reader of
//! whole files says the same about what is valid. What is read can be written again. Memory follows
//! the bytes, not what they claim.

use journal::producer::{self, Field};
use journal::{Damage, Follow, Item, Moment, Numbering, Position, Reader, record};

use crate::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "aof_reader",
    feed,
    dictionary: &[
        b"*1\r\n$5\r\nMULTI\r\n",
        b"*1\r\n$4\r\nEXEC\r\n",
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
        b"#TS:1700000000\r\n",
        b"#TS:5\n",
        b"#NUM:17:1700000000123\r\n",
        b"#NUM:9223372036854775807:-9223372036854775808\n",
        b"#NUM:9223372036854775808:0\r\n",
        b"#NUM:18446744073709551616:9223372036854775808\r\n",
        b"#NUM:1:\r\n",
        b"#BASE:16:1700000000099\r\n",
        b"#OFFSET:4711\r\n",
        b"#OFFSET:4611686018427387903:0123456789abcdef0123456789abcdef01234567\r\n",
        b"#PRODUCER:list:7:\"a\"\r\n",
        b"#PRODUCER:stream:18446744073709551615:\"\\x00\"\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"*2147483647\r\n",
        b"*18446744073709551615\r\n",
        b"$0\r\n\r\n",
        b"$-1\r\n",
        b"$2147483628\r\n",
        b"$18446744073709551616\r\n",
        b"\r\n",
        b"\0\0\0\0",
    ],
};

/// What a reader gave.
#[derive(Debug, PartialEq)]
struct Seen {
    items: Vec<(u64, Vec<Vec<u8>>)>,
    end: Result<(), Damage>,
    valid: u64,
    /// The number of the last record, and the highest one.
    numbers: (Option<u64>, u64),
    /// Where the stream of replication is at the end of what is valid.
    position: Option<Position>,
}

/// Input: a byte that chooses the blocks, the file.
fn feed(input: &[u8]) {
    let [block, file @ ..] = input else { return };
    let whole = read(file, file.len());
    assert_eq!(read(file, usize::from(*block) + 1), whole, "in blocks of {block}");
    assert_eq!(whole.valid, valid(file) as u64);
    match whole.end {
        Ok(()) => assert_eq!(whole.valid, file.len() as u64),
        Err(damage) => assert!(damage.at <= file.len() as u64 && damage.valid_up_to == whole.valid),
    }
    // What is valid is whole.
    let kept = read(&file[..whole.valid as usize], 1000);
    assert_eq!((kept.end, kept.position), (Ok(()), whole.position));
    let mut again = Vec::new();
    for (_, words) in &whole.items {
        record::write_command(&mut again, words.iter().map(Vec::as_slice));
    }
    let plain = |seen: Seen| seen.items.into_iter().map(|(_, words)| words).collect::<Vec<_>>();
    assert_eq!(plain(read(&again, 1000)), plain(whole));
}

/// The commands of a file, and how it ends.
fn read(file: &[u8], block: usize) -> Seen {
    let mut reader = Reader::new(0);
    let (mut items, mut blocks) = (Vec::new(), file.chunks(block.max(1)));
    let (mut numbering, mut is_open) = (Numbering::default(), false);
    let mut stream = Follow::begin(None, 0);
    let end = loop {
        match reader.next() {
            Ok(Some(Item::Command(words))) => {
                assert!(!words.is_empty());
                let name = words.iter().next().expect("a name").to_ascii_uppercase();
                is_open = name == b"MULTI" || is_open && name != b"EXEC";
                if !is_open && name != b"SELECT" {
                    count_record(&mut numbering);
                }
                items.push((words.at, words.iter().map(<[u8]>::to_vec).collect()));
            }
            Ok(Some(Item::Annotation { at, end, multi, text })) => {
                assert!(file[at as usize..].starts_with(text) && text.starts_with(b"#"));
                assert!(end <= file.len() as u64);
                stream.annotation(text, (at, end), multi);
                check_line(text);
                check_moment(text, &mut numbering);
            }
            Ok(None) => match blocks.next() {
                Some(block) => reader.feed(block),
                None => break reader.finish(),
            },
            Err(damage) => break Err(damage),
        }
        assert!(reader.valid_up_to() <= reader.at() && reader.at() <= file.len() as u64);
        // (A vector may grow to twice what it needs; an argument has 6 bytes at least and its place
        // has 8.)
        assert!(reader.memory() <= 5 * file.len() + 1024, "{} bytes", reader.memory());
    };
    assert!(end.is_ok() || reader.finish() == end);
    let numbers = (numbering.last(), numbering.highest());
    let valid = reader.valid_up_to();
    let position = stream.end(valid, reader.multi());
    Seen { items, end, valid, numbers, position }
}

/// Each record has one more than the one before, once an annotation has said a number.
fn count_record(numbering: &mut Numbering) {
    let (last, highest) = (numbering.last(), numbering.highest());
    numbering.record();
    assert_eq!(numbering.last(), last.map(|last| last.saturating_add(1)));
    assert_eq!(numbering.highest(), highest.max(numbering.last().unwrap_or(0)));
}

/// What is read of the number and the time of a record can be written again, and counts from there;
/// the highest number never falls.
fn check_moment(text: &[u8], numbering: &mut Numbering) {
    let (last, highest) = (numbering.last(), numbering.highest());
    numbering.annotation(text);
    assert!(numbering.highest() >= highest);
    let (of_record, of_base) = (Moment::of_annotation(text), Moment::of_base(text));
    let mut again = Vec::new();
    match (of_record, of_base) {
        (Some(moment), None) => {
            moment.annotate(&mut again);
            assert_eq!(numbering.last(), Some(moment.number.saturating_sub(1)));
        }
        (None, Some(moment)) => {
            moment.annotate_base(&mut again);
            assert_eq!(numbering.last(), None, "commands of a base are no records");
            assert_eq!(numbering.next_file().last(), Some(moment.number));
        }
        _ => return assert_eq!((of_record, of_base, numbering.last()), (None, None, last)),
    }
    let again = again.strip_suffix(b"\r\n").expect("its end");
    assert_eq!((Moment::of_annotation(again), Moment::of_base(again)), (of_record, of_base));
    let moment = of_record.or(of_base).expect("one of them");
    assert_eq!(Moment::parse(moment.text().as_bytes()), Some(moment));
}

/// What is read of the number of a producer can be written again.
fn check_line(text: &[u8]) {
    if let Some(Ok(line)) = producer::read_line(text) {
        let mut again = Vec::new();
        let name = producer::quoted_name(&line.producer);
        producer::write_line(&mut again, line.kind, line.number, &name);
        let text = again.strip_suffix(b"\r\n").expect("its end");
        assert_eq!(producer::read_line(text), Some(Ok(line)));
    }
    if let Ok(field) = Field::parse(&text[1..]) {
        assert_eq!(Field::parse(&field.text()), Ok(field));
    }
}

/// How far a file is valid, by a reader which has all of it.
fn valid(file: &[u8]) -> usize {
    let (mut at, mut valid, mut is_open) = (0, 0, false);
    loop {
        let rest = &file[at..];
        if rest.starts_with(b"#") {
            let Some(end) = rest.iter().take(1023).position(|&byte| byte == b'\n') else { break };
            at += end + 1;
        } else {
            let Some((name, len)) = command(rest) else { break };
            let is_multi = name.eq_ignore_ascii_case(b"multi");
            let is_exec = name.eq_ignore_ascii_case(b"exec");
            if is_multi && is_open || is_exec && !is_open {
                break;
            }
            is_open = is_multi || is_open && !is_exec;
            at += len;
        }
        if !is_open {
            valid = at;
        }
    }
    valid
}

/// The name of a command, and the bytes of all of it.
fn command(text: &[u8]) -> Option<(&[u8], usize)> {
    let (count, mut at) = length(text, b'*')?;
    let mut name = None;
    for _ in 0..count {
        let (len, header) = length(&text[at..], b'$')?;
        let start = at + header;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let word = text.get(start..end)?;
        name = name.or(Some(word));
        at = end + 2;
        (text.get(end..at)? == b"\r\n").then_some(())?;
    }
    Some((name?, at))
}

/// A length behind its mark, and the bytes of its line.
fn length(text: &[u8], mark: u8) -> Option<(u64, usize)> {
    let end = text.windows(2).take(22).position(|two| two == b"\r\n")?;
    let digits = text[..end].strip_prefix(&[mark])?;
    let is_number = (1..=20).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    Some((number, end + 2))
}
