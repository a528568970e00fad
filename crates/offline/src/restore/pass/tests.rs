//! Tests of the pass over one file: where it is cut, damage, random bytes.

use super::super::cut::{Last, Made};
use super::super::made::{Incr, rdb};
use super::super::point::Point;
use super::*;

/// Records of every form: alone, behind SELECT, in transactions, behind numbers without a command.
fn example() -> Incr {
    Incr::default()
        .note(11, 1_000)
        .select(0)
        .record("SET a 1")
        .record("SET b 1")
        .note(13, 1_002)
        .transaction(&["SELECT 1", "SET a 2", "SET b 2"])
        .text("#PRODUCER:x\r\n")
        .select(3)
        .note(20, 1_002)
        .record("SET c 3")
        .note(21, 1_010)
        .transaction(&["SET d 4"])
        .record("set e 5")
}

fn passed(bytes: &[u8], is_base: bool, cut: &mut Cut) -> Result<(End, Vec<u8>), Wrong> {
    let mut copy = Vec::new();
    let end = pass(&mut &bytes[..], bytes.len() as u64, is_base, cut, &mut |block| {
        copy.extend_from_slice(block);
        Ok(())
    })?;
    copy.truncate(cut.end as usize);
    Ok((end, copy))
}

fn behind(number: u64) -> Last {
    Last { number: Some(number), made: None }
}

#[test]
fn each_number_is_cut_behind_its_record() {
    let example = example();
    for number in 10..23 {
        let mut cut = Cut::new(Point::Number(number), behind(10));
        let (end, copy) = passed(&example.bytes, false, &mut cut).expect("it is whole");
        let counted = example.ends.iter().filter(|(at, _)| *at <= number);
        let expected = counted.clone().next_back().map_or(0, |(_, end)| *end);
        assert_eq!(copy, &example.bytes[..expected], "{number}");
        assert_eq!(cut.records, counted.count() as u64, "{number}");
        assert_eq!(end, End::Reached, "{number}");
    }
    let mut cut = Cut::new(Point::Number(23), behind(10));
    assert_eq!(passed(&example.bytes, false, &mut cut).expect("it is whole").0, End::Whole);
}

#[test]
fn each_time_is_cut_behind_its_group() {
    let example = example();
    let times = [(999, 0, None), (1_000, 2, Some(12)), (1_001, 2, Some(12))];
    let more = [(1_002, 4, Some(20)), (1_009, 4, Some(20)), (1_010, 6, Some(22))];
    for (ms, records, number) in times.into_iter().chain(more) {
        let mut cut = Cut::new(Point::Time(ms), Last::default());
        let (end, copy) = passed(&example.bytes, false, &mut cut).expect("it is whole");
        let expected = if records == 0 { 0 } else { example.ends[records - 1].1 };
        assert_eq!((copy.len(), cut.last.number), (expected, number), "{ms}");
        assert_eq!(end == End::Whole, ms == 1_010);
    }
}

#[test]
fn the_seconds_of_other_servers_are_cut_too() {
    let mut incr = Incr::default().second(5).record("SET a 1").second(6);
    incr = incr.record("SET a 2").second(8).record("SET a 3");
    for (ms, records) in [(4_999, 0), (5_000, 1), (5_999, 1), (6_000, 2), (7_999, 2), (8_000, 3)] {
        let mut cut = Cut::new(Point::Time(ms), Last::default());
        passed(&incr.bytes, false, &mut cut).expect("it is whole");
        assert_eq!(cut.records, records, "{ms}");
    }
}

/// A single file of an older server: an RDB file, and commands behind it.
#[test]
fn the_commands_behind_an_rdb_file_are_cut() {
    let head = rdb(&[("ctime", "4")], &[("k", "v")]);
    let tail = Incr::default().second(5).record("SET a 1").second(6).record("SET a 2");
    let file = [&head[..], &tail.bytes].concat();
    let mut cut = Cut::new(Point::Time(5_000), Last::default());
    let (end, copy) = passed(&file, true, &mut cut).expect("it is whole");
    assert_eq!((end, copy.len()), (End::Reached, head.len() + tail.ends[0].1));
    let mut cut = Cut::new(Point::Time(9_000), Last::default());
    assert_eq!(passed(&head, true, &mut cut).expect("it is whole").1, head);
}

/// All of a base of commands counts, and none of its commands is a record.
#[test]
fn a_base_of_commands_is_no_record() {
    let head = Incr::default().text("#BASE:10:900\r\n");
    for base in [&head.bytes.clone(), &head.record("SET a 1").transaction(&["PERSIST b"]).bytes] {
        for point in [Point::Number(10), Point::Number(30), Point::Time(900)] {
            let mut cut = Cut::new(point, behind(10));
            let (end, copy) = passed(base, true, &mut cut).expect("it is whole");
            assert_eq!((end, cut.records, cut.last.number), (End::Whole, 0, Some(10)));
            assert!(&copy == base && !cut.is_untimed);
        }
    }
    // The next file has records.
    let mut cut = Cut::new(Point::Number(11), behind(10));
    let base = Incr::default().text("#BASE:10:900\r\n").record("SET a 1").bytes;
    passed(&base, true, &mut cut).expect("it is whole");
    let example = example();
    let (end, copy) = passed(&example.bytes, false, &mut cut).expect("it is whole");
    assert_eq!((end, copy.len()), (End::Reached, example.ends[0].1));
    // Elsewhere the line says nothing.
    let other = Incr::default().text("#BASE:10:900\r\n").record("SET a 1").bytes;
    let mut cut = Cut::new(Point::Number(11), behind(10));
    passed(&other, false, &mut cut).expect("it is whole");
    assert_eq!((cut.records, cut.last.number), (1, Some(11)));
}

/// A block holds several records, and a record several blocks.
#[test]
fn blocks_do_not_matter() {
    let long = "x".repeat(3 << 20);
    let incr = Incr::default().note(1, 1).record(&format!("SET a {long}")).record("SET b 1");
    let mut cut = Cut::new(Point::Number(1), behind(0));
    let (_, copy) = passed(&incr.bytes, false, &mut cut).expect("it is whole");
    assert_eq!(copy.len(), incr.ends[0].1);
    let value = "y".repeat(3 << 20);
    let base = rdb(&[], &[("k", &value), ("l", "1")]);
    let mut cut = Cut::new(Point::Number(1), behind(0));
    assert!(matches!(passed(&base, true, &mut cut), Ok((End::Whole, copy)) if copy == base));
}

#[test]
fn an_end_within_a_record_keeps_the_records_before_it() {
    let example = example();
    for cut_at in 0..example.bytes.len() {
        let mut cut = Cut::new(Point::Time(9_999), Last::default());
        let (end, copy) = passed(&example.bytes[..cut_at], false, &mut cut).expect("no damage");
        let expected = example.ends.iter().rfind(|(_, end)| *end <= cut_at);
        assert_eq!(copy.len(), expected.map_or(0, |(_, end)| *end), "{cut_at}");
        assert!(matches!(end, End::Whole | End::Truncated(_)));
    }
}

#[test]
fn damage_is_named_by_its_place() {
    let mut file = Incr::default().note(1, 1).record("SET a 1").bytes;
    let at = file.len();
    file.extend_from_slice(b"\0\0\0\0*");
    let mut cut = Cut::new(Point::Number(9), behind(0));
    let wrong = passed(&file, false, &mut cut).expect_err("it is damaged").to_string();
    assert!(wrong.contains(&format!("damaged at byte {at}: a command begins")), "{wrong}");
    let file = Incr::default().note(1, 1).text("#NUM:x\r\n").bytes;
    let mut cut = Cut::new(Point::Number(9), behind(0));
    let wrong = passed(&file, false, &mut cut).expect_err("it is damaged").to_string();
    assert_eq!(wrong, "is damaged at byte 10: an annotation which cannot be read");
    let mut base = rdb(&[], &[("k", "v")]);
    let last = base.len() - 1;
    base[last] ^= 1;
    let mut cut = Cut::new(Point::Number(9), behind(0));
    let wrong = passed(&base, true, &mut cut).expect_err("it is damaged").to_string();
    assert!(wrong.contains("checksum"), "{wrong}");
}

/// What is cut or flipped gives an outcome, never a panic, and keeps no more than there is.
#[test]
fn random_damage_never_panics() {
    let head = rdb(&[("sheafdb-moment", "10:900"), ("ctime", "1")], &[("k", "v"), ("l", "w")]);
    let file = [&head[..], &example().bytes].concat();
    let mut state = 7_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) as usize % below
    };
    for round in 0..20_000 {
        let mut damaged = file.clone();
        for _ in 0..random(4) {
            let at = random(damaged.len());
            damaged[at] = random(256) as u8;
        }
        damaged.truncate(random(file.len() + 1));
        let point = if round % 2 == 0 {
            Point::Number(random(30) as u64)
        } else {
            Point::Time(random(2_000) as i64)
        };
        let mut cut = Cut::new(point, behind(10));
        if passed(&damaged, true, &mut cut).is_ok() {
            assert!(cut.end <= damaged.len() as u64);
        }
    }
}

#[test]
fn the_time_of_the_last_record_is_known() {
    let mut cut = Cut::new(Point::Number(20), behind(10));
    passed(&example().bytes, false, &mut cut).expect("it is whole");
    assert_eq!(cut.last, Last { number: Some(20), made: Some(Made::Until(1_002)) });
}
