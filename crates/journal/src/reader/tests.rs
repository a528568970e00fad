//! Tests of the reader.

use proptest::prelude::*;

use super::*;

const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// All items of a file in blocks of this size as text, then what ended it, and how far it is valid.
fn read(file: &[u8], block: usize) -> (Vec<String>, Result<(), Damage>, u64) {
    let mut reader = Reader::new(0);
    let mut items = Vec::new();
    let mut blocks = file.chunks(block.max(1));
    let ended = loop {
        match reader.next() {
            Ok(Some(Item::Command(words))) => {
                let shown: Vec<_> = words.iter().map(|w| w.escape_ascii().to_string()).collect();
                items.push(format!("{} {}", words.at, shown.join(" ")));
                assert_eq!(words.get(words.len()), None);
            }
            Ok(Some(Item::Annotation { at, end, multi, text })) => {
                items.push(format!("{at} {}", text.escape_ascii()));
                assert_eq!((end, multi), (reader.at(), reader.multi()), "at {at}");
            }
            Ok(None) => match blocks.next() {
                Some(block) => reader.feed(block),
                None => break reader.finish(),
            },
            Err(damage) => {
                assert_eq!(reader.next(), Err(damage));
                assert_eq!(reader.finish(), Err(damage));
                break Err(damage);
            }
        }
        assert!(reader.valid_up_to() <= reader.at());
        assert_eq!(reader.multi().is_none(), reader.valid_up_to() == reader.at());
    };
    (items, ended, reader.valid_up_to())
}

/// What is wrong with a file, where, and how far it is valid.
fn wrong(parts: &[&[u8]]) -> (u64, DamageKind, u64) {
    let file = parts.concat();
    let (items, ended, valid) = read(&file, usize::MAX);
    for block in 1..20 {
        assert_eq!(read(&file, block), (items.clone(), ended, valid), "in blocks of {block}");
    }
    let damage = ended.expect_err("the file is damaged");
    assert_eq!(damage.valid_up_to, valid);
    (damage.at, damage.kind, valid)
}

#[test]
fn commands_and_annotations_are_read_in_order() {
    let file = [b"#TS:1700000000\r\n", SET, MULTI, b"#TS:2\n", SET, EXEC, b"#\r\n"].concat();
    let expected = ["0 #TS:1700000000", "16 SET k v", "43 MULTI", "58 #TS:2", "64 SET k v"];
    for block in 1..=file.len() {
        let (items, ended, valid) = read(&file, block);
        assert_eq!((ended, valid), (Ok(()), file.len() as u64));
        assert_eq!(items[..5], expected);
        assert_eq!(items[5..], ["91 EXEC", "105 #"]);
    }
}

#[test]
fn a_file_may_end_behind_every_whole_command() {
    let file = [b"#TS:5\r\n", SET, MULTI, SET, b"#TS:6\r\n", EXEC, SET].concat();
    let ends = [0, 7, 34, 97, 124];
    for cut in 0..=file.len() {
        let last = *ends.iter().rfind(|&&end| end <= cut).expect("0 is one");
        let (_, ended, valid) = read(&file[..cut], 5);
        assert_eq!(valid, last as u64, "cut at {cut}");
        assert_eq!(ended.is_ok(), last == cut, "cut at {cut}");
        if let Err(damage) = ended {
            assert_eq!(damage.kind, DamageKind::Truncated);
            let is_open = (49..97).contains(&cut);
            assert_eq!(damage.multi, is_open.then_some(34), "cut at {cut}");
        }
    }
}

/// A power failure may leave a file which is longer than what was written to it.
#[test]
fn zero_bytes_at_the_end_are_a_truncated_end() {
    let file = [b"#TS:5\r\n", SET, MULTI, SET, b"#TS:6\r\n", EXEC, SET].concat();
    for cut in 0..=file.len() {
        let (_, _, valid) = read(&file[..cut], 7);
        for zeros in [1, 2, 30, 5000] {
            let mut bytes = file[..cut].to_vec();
            bytes.resize(cut + zeros, 0);
            for block in [1, 7, 100_000] {
                let (_, ended, whole) = read(&bytes, block);
                let damage = ended.expect_err("zero bytes are no command");
                assert_eq!((damage.kind, whole), (DamageKind::Truncated, valid), "cut at {cut}");
            }
        }
    }
}

/// The offsets are those which `redis-check-aof` 7.0 names for the same bytes, except for an open
/// transaction.
#[test]
fn damage_names_its_place() {
    use DamageKind as Kind;
    assert_eq!(wrong(&[SET, b"PING\r\n"]), (27, Kind::NoCommand(b'P'), 27));
    assert_eq!(wrong(&[SET, &[0; 10]]), (27, Kind::Truncated, 27));
    assert_eq!(wrong(&[SET, &[0; 10], b"*"]), (27, Kind::NoCommand(0), 27));
    assert_eq!(wrong(&[SET, b"\r\n", SET]), (27, Kind::NoCommand(b'\r'), 27));
    assert_eq!(wrong(&[SET, b"*1\r\n+4\r\nPING\r\n"]), (31, Kind::NoArgument(b'+'), 27));
    assert_eq!(wrong(&[SET, b"*1\r\n#TS:5\r\n"]), (31, Kind::NoArgument(b'#'), 27));
    assert_eq!(wrong(&[SET, b"*1\n$4\r\nPING\r\n"]), (27, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*1\r$4\r\nPING\r\n"]), (27, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*x\r\n"]), (27, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*1x\r\n$4\r\nPING\r\n"]), (27, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*1\r\n$4x\r\nPING\r\n"]), (31, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*1\r\n$-1\r\n"]), (31, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*1\r\n$4\r\nPINGxx"]), (35, Kind::LineEnd, 27));
    assert_eq!(wrong(&[SET, b"*1\r\n$4\r\nPING\nX"]), (35, Kind::LineEnd, 27));
    assert_eq!(wrong(&[SET, b"*3\r\n$3\r\nSE"]), (35, Kind::Truncated, 27));
    assert_eq!(wrong(&[SET, b"*3\r"]), (27, Kind::Truncated, 27));
    assert_eq!(wrong(&[SET, MULTI, SET, MULTI]), (77, Kind::NestedMulti, 27));
    assert_eq!(wrong(&[SET, EXEC]), (35, Kind::StrayExec, 27));
    assert_eq!(wrong(&[SET, MULTI, SET]), (69, Kind::Truncated, 27));
}

/// `redis-check-aof` takes these, but a server does not load the first two, and nobody writes the
/// others. A line without an end takes in the command which is appended to it.
#[test]
fn some_damage_is_found_which_others_let_pass() {
    use DamageKind as Kind;
    assert_eq!(wrong(&[SET, b"*0\r\n"]), (27, Kind::ArgumentCount(0), 27));
    assert_eq!(wrong(&[SET, b"*-1\r\n"]), (27, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*+1\r\n$4\r\nPING\r\n"]), (27, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"*\r\n"]), (27, Kind::Length, 27));
    assert_eq!(wrong(&[SET, b"#TS:12"]), (27, Kind::Truncated, 27));
}

#[test]
fn lengths_are_bounded() {
    use DamageKind as Kind;
    let ones = [b"*", &b"1"[..], &[b'1'; 30], b"\r\n"].concat();
    assert_eq!(wrong(&[&ones]), (0, Kind::Length, 0));
    assert_eq!(wrong(&[b"*2147483647\r\n"]), (13, Kind::Truncated, 0));
    assert_eq!(wrong(&[b"*2147483648\r\n"]), (0, Kind::ArgumentCount(1 << 31), 0));
    assert_eq!(wrong(&[b"*18446744073709551616\r\n"]), (0, Kind::ArgumentCount(u64::MAX), 0));
    // 4 bytes of the count, 13 of the length, 2 of the end.
    assert_eq!(wrong(&[b"*1\r\n$2147483628\r\nx"]), (17, Kind::Truncated, 0));
    assert_eq!(wrong(&[b"*1\r\n$2147483629\r\nx"]), (4, Kind::CommandTooLong, 0));
    assert_eq!(wrong(&[b"*1\r\n$18446744073709551615\r\n"]), (4, Kind::CommandTooLong, 0));
    let whole = [b"#", &[b'x'; ANNOTATION_MAX - 3][..], b"\r\n"].concat();
    assert_eq!(read(&whole, 7).1, Ok(()));
    let long = [b"#", &[b'x'; ANNOTATION_MAX - 2][..], b"\r\n"].concat();
    assert_eq!(wrong(&[SET, &long]), (27, Kind::AnnotationTooLong, 27));
}

#[test]
fn memory_follows_what_was_fed() {
    let mut reader = Reader::new(0);
    reader.feed(b"*2147483647\r\n$2000000000\r\n");
    assert_eq!(reader.next(), Ok(None));
    assert!(reader.memory() < 1000);
    let mut reader = Reader::new(0);
    for _ in 0..100_000 {
        reader.feed(SET);
        while reader.next().expect("whole").is_some() {}
    }
    assert!(reader.memory() < 1000, "{}", reader.memory());
    // What a long command needed is returned.
    reader.feed(b"*2\r\n$3\r\nGET\r\n$33554432\r\n");
    for _ in 0..32 {
        assert_eq!(reader.next(), Ok(None));
        reader.feed(&vec![b'x'; 1 << 20]);
    }
    reader.feed(b"\r\n");
    assert!(matches!(reader.next(), Ok(Some(Item::Command(_)))));
    reader.feed(SET);
    assert!(reader.memory() <= KEPT_BYTES + 1000);
}

#[test]
fn offsets_count_from_the_preamble() {
    let mut reader = Reader::new(1 << 40);
    reader.feed(&[SET, b"*"].concat());
    let Ok(Some(Item::Command(words))) = reader.next() else { panic!("a command") };
    assert_eq!((words.at, words.get(0)), (1 << 40, Some(&b"SET"[..])));
    assert_eq!(reader.next(), Ok(None));
    assert_eq!((reader.at(), reader.valid_up_to()), ((1 << 40) + 27, (1 << 40) + 27));
    assert_eq!(reader.finish().map_err(|damage| damage.at), Err((1 << 40) + 27));
}

#[test]
fn damage_is_a_sentence() {
    let (_, ended, _) = read(&[SET, MULTI, SET].concat(), 9);
    let text = ended.expect_err("open").to_string();
    assert_eq!(text, "at byte 69: the file ends within the transaction whose MULTI is at byte 27");
    let (_, ended, _) = read(&[SET, &[0; 3], b"*"].concat(), 9);
    let text = ended.expect_err("zeros").to_string();
    assert_eq!(text, "at byte 27: a command begins with '*', but here is '\\x00'");
}

proptest! {
    #[test]
    fn blocks_do_not_matter(file in "([*$#\r\n0-3a\0]|MULTI|EXEC|\\*1\r\n\\$1\r\nx\r\n|#T\r\n){0,40}",
                            block in 1..30_usize) {
        let file = file.as_bytes();
        prop_assert_eq!(read(file, block), read(file, file.len()));
    }
}
