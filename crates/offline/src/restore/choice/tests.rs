//! Tests of the choice of a base.

use super::super::made::{Folder, Incr, rdb};
use super::*;

fn place(folder: &Folder) -> Place {
    Place { folder: folder.0.clone(), name: b"a.aof".to_vec() }
}

fn base(moment: &str) -> Vec<u8> {
    rdb(&[("redis-ver", "7.2.0"), ("ctime", "1"), ("sheafdb-moment", moment)], &[("k", "v")])
}

fn incr(number: u64, ms: i64) -> Vec<u8> {
    Incr::default().note(number, ms).record("SET a 1").bytes
}

/// Three bases: of the numbers 10, 20 and 30, made at 1000, 2000 and 3000 ms.
fn kept(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.put(
        "a.aof.history",
        "file b1 seq 1 type b\nfile i1 seq 1 type i\n\
                                 file b2 seq 2 type b\nfile i2 seq 2 type i\n",
    );
    folder.put(
        "a.aof.manifest",
        "file b3 seq 3 type b\nfile i3 seq 3 type i\n\
                                  file i4 seq 4 type i\n",
    );
    for (at, name) in ["b1", "b2", "b3"].into_iter().enumerate() {
        folder.put(name, base(&format!("{0}0:{0}000", at + 1)));
    }
    for (at, name) in ["i1", "i2", "i3", "i4"].into_iter().enumerate() {
        folder.put(name, incr(at as u64 * 10 + 11, at as i64 * 1000 + 1500));
    }
    folder
}

fn names(chain: &Chain) -> String {
    let all = chain.base.iter().chain(&chain.incr);
    let names: Vec<_> = all.map(|file| String::from_utf8_lossy(&file.info.name)).collect();
    names.join(" ")
}

#[track_caller]
fn refused(place: &Place, point: Point) -> String {
    match choose(place, point) {
        Err(Stop::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_newest_base_before_the_point_is_taken() {
    let folder = kept("newest");
    let chosen = |point| choose(&place(&folder), point).expect("a chain");
    for (number, expected) in [(10, "b1 i1"), (19, "b1 i1"), (20, "b2 i2"), (29, "b2 i2")] {
        let chain = chosen(Point::Number(number));
        assert_eq!((names(&chain).as_str(), chain.is_to_end), (expected, false), "{number}");
        let next = (number / 10 + 1) * 10;
        assert_eq!(chain.next_base, Some(next), "{number}");
    }
    for (ms, expected) in [(1000, "b1 i1"), (1999, "b1 i1"), (2000, "b2 i2"), (2999, "b2 i2")] {
        assert_eq!(names(&chosen(Point::Time(ms))), expected, "{ms}");
    }
    for point in [Point::Number(30), Point::Number(99), Point::Time(3000), Point::Time(99_999)] {
        let chain = chosen(point);
        assert_eq!((names(&chain).as_str(), chain.is_to_end), ("b3 i3 i4", true));
        let made = Some(Made::Until(3000));
        assert_eq!(chain.moment, Last { number: Some(30), made });
        assert_eq!(chain.next_base, None);
    }
}

#[test]
fn a_point_before_the_oldest_base_is_refused() {
    let folder = kept("before");
    let why = refused(&place(&folder), Point::Number(9));
    assert!(why.contains("number 9 is before") && why.contains("b1 has number 10"), "{why}");
    let why = refused(&place(&folder), Point::Time(999));
    assert!(why.contains("1970-01-01T00:00:00.999Z is before"), "{why}");
}

/// Only the files that are needed must be there.
#[test]
fn a_missing_file_is_looked_for_again() {
    let folder = kept("missing");
    std::fs::remove_file(folder.0.join("b1")).expect("it is there");
    assert!(choose(&place(&folder), Point::Number(25)).is_ok());
    let gone = choose(&place(&folder), Point::Number(15));
    assert!(matches!(gone, Err(Stop::Gone(path)) if path.ends_with("b1")));
    std::fs::remove_file(folder.0.join("i4")).expect("it is there");
    assert!(matches!(choose(&place(&folder), Point::Number(35)), Err(Stop::Gone(_))));
}

/// A base of another server says only when it was made.
#[test]
fn a_base_without_a_moment_counts_by_its_second() {
    let folder = Folder::new("foreign");
    folder.put("a.aof.manifest", "file b seq 1 type b\nfile i seq 1 type i\n");
    folder.put("b", rdb(&[("ctime", "5")], &[]));
    folder.put("i", Incr::default().second(6).record("SET a 1").bytes);
    let place = place(&folder);
    let chain = choose(&place, Point::Time(5_000)).expect("a chain");
    assert_eq!(chain.moment, Last { number: None, made: Some(Made::Second(5)) });
    assert!(refused(&place, Point::Time(4_999)).contains("the second 1970-01-01T00:00:05Z"));
    assert!(refused(&place, Point::Number(1)).contains("no annotations with numbers"));
}

/// The first annotation tells what the base does not: a number, or a time.
#[test]
fn the_first_annotation_behind_a_base_tells_its_moment() {
    let folder = Folder::new("behind");
    folder.put(
        "a.aof.manifest",
        "file b seq 1 type b\nfile i seq 1 type i\n\
                                  file j seq 2 type i\n",
    );
    folder.put("b", Incr::default().record("SET a 1").bytes);
    folder.put("i", "");
    folder.put("j", incr(7, 5_500));
    let place = place(&folder);
    for point in [Point::Number(6), Point::Time(5_500)] {
        let chain = choose(&place, point).expect("a chain");
        assert_eq!((names(&chain).as_str(), chain.moment), ("b i j", Last::default()));
    }
    assert!(refused(&place, Point::Number(5)).contains("before the oldest"));
    assert!(refused(&place, Point::Time(5_499)).contains("before the oldest"));
    folder.put("j", Incr::default().second(5).record("SET a 1").bytes);
    assert!(choose(&place, Point::Time(5_000)).is_ok());
    folder.put("j", Incr::default().record("SET a 1").bytes);
    assert!(refused(&place, Point::Time(5_000)).contains("nobody knows when"));
}

/// In the second of a foreign base changes behind it may be meant, too.
#[test]
fn a_foreign_base_ends_the_files_before_it() {
    let folder = kept("foreign-later");
    folder.put("b3", rdb(&[("ctime", "3")], &[]));
    let chain = choose(&place(&folder), Point::Time(2_900)).expect("a chain");
    assert_eq!((names(&chain).as_str(), chain.is_to_end), ("b2 i2", false));
}

#[test]
fn a_damaged_base_does_not_hide_an_older_one() {
    let folder = kept("damaged");
    folder.put("b3", "REDIS0010 and nothing of use");
    let chain = choose(&place(&folder), Point::Number(25)).expect("a chain");
    assert_eq!(names(&chain), "b2 i2 i3 i4");
}

#[test]
fn a_folder_without_a_base_begins_with_nothing() {
    let folder = Folder::new("nothing");
    folder.put("a.aof.manifest", "file i seq 1 type i\n");
    folder.put("i", incr(1, 500));
    let chain = choose(&place(&folder), Point::Number(0)).expect("a chain");
    assert_eq!((names(&chain).as_str(), chain.moment), ("i", Last::default()));
}

#[test]
fn random_heads_never_panic() {
    let whole = base("10:1000");
    for at in 0..whole.len() {
        rdb_moment(&whole[..at]);
        for byte in [0, 0x40, 0x80, 0xc0, 0xfa, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            rdb_moment(&damaged);
        }
    }
    assert!(rdb_moment(&whole).has_number);
}
