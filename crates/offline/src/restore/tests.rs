//! Tests of whole restores, on folders made by hand.

use super::made::{Folder, Incr, rdb};
use super::*;

/// A data directory with history. The records 11 to 13 come behind the base of number 10, and 21
/// and 22 behind that of number 20.
fn kept(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir(folder.0.join("appendonlydir")).expect("a folder");
    let files = [
        ("history", "file h.b seq 1 type b\nfile h.i seq 1 type i\n".as_bytes().to_vec()),
        ("manifest", b"file b seq 2 type b\nfile i seq 2 type i\nfile j seq 3 type i\n".to_vec()),
    ];
    for (name, text) in files {
        folder.put(&format!("appendonlydir/appendonly.aof.{name}"), text);
    }
    let put = |name: &str, bytes: Vec<u8>| folder.put(&format!("appendonlydir/{name}"), bytes);
    put("h.b", rdb(&[("sheafdb-moment", "10:1000")], &[("k", "10")]));
    put("b", rdb(&[("sheafdb-moment", "20:2000")], &[("k", "20")]));
    let first = Incr::default().note(11, 1100).record("SET k 11");
    put("h.i", first.transaction(&["SET k 12", "SET l 12"]).record("SET k 13").bytes);
    put("i", Incr::default().note(21, 2100).record("SET k 21").bytes);
    put("j", Incr::default().note(22, 2200).record("SET k 22").bytes);
    folder
}

fn source(folder: &Folder) -> Source {
    Source { dir: folder.0.clone(), folder: None, name: None }
}

fn restored(folder: &Folder, point: Point) -> Result<Restored, String> {
    let output = folder.0.join("new");
    let _ = std::fs::remove_dir_all(&output);
    let restored = restore(&source(folder), point, &output);
    assert_eq!(output.exists(), restored.is_ok(), "what fails leaves nothing");
    restored
}

fn new_file(folder: &Folder, name: &str) -> Vec<u8> {
    std::fs::read(folder.0.join("new/appendonlydir").join(name)).expect("it was made")
}

#[test]
fn the_files_up_to_the_point_are_copied() {
    let folder = kept("files");
    let Restored { last, parts, .. } = restored(&folder, Point::Number(12)).expect("restored");
    assert_eq!((last.number, parts.len()), (Some(12), 2));
    let manifest = "file appendonly.aof.1.base.rdb seq 1 type b\n\
                    file appendonly.aof.1.incr.aof seq 1 type i\n";
    assert_eq!(new_file(&folder, "appendonly.aof.manifest"), manifest.as_bytes());
    let incr = new_file(&folder, "appendonly.aof.1.incr.aof");
    assert!(incr.ends_with(b"EXEC\r\n"), "{}", incr.escape_ascii());

    let Restored { last, parts, .. } = restored(&folder, Point::Time(2200)).expect("restored");
    assert_eq!((last.number, parts.len()), (Some(22), 3));
    let manifest = new_file(&folder, "appendonly.aof.manifest");
    assert!(manifest.ends_with(b"file appendonly.aof.2.incr.aof seq 2 type i\n"));
    let whole = std::fs::read(folder.0.join("appendonlydir/j")).expect("it is there");
    assert_eq!(new_file(&folder, "appendonly.aof.2.incr.aof"), whole);
}

#[test]
fn the_report_names_files_and_the_last_record() {
    let folder = kept("report");
    let point = Point::Number(12);
    let text = restored(&folder, point).expect("restored").text(point);
    for expected in [
        "restored up to number 12\n",
        "base  h.b: number 10, 1970-01-01T00:00:01.000Z, ",
        "incr  h.i: 2 records, ",
        "last record: number 12, 1970-01-01T00:00:01.100Z\n",
        "start it: sheafdb --dir ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// The files end at 13, and the next base says 20.
#[test]
fn numbers_before_a_base_without_a_command_are_said() {
    let folder = kept("gap");
    let Restored { last, notes, .. } = restored(&folder, Point::Number(17)).expect("restored");
    assert_eq!(last.number, Some(13));
    assert!(notes[0].contains("no commands for the numbers 14 to 17"), "{notes:?}");
    let notes = restored(&folder, Point::Time(1999)).expect("restored").notes;
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn what_is_not_in_the_files_is_refused_or_said() {
    let folder = kept("beyond");
    let why = restored(&folder, Point::Number(23)).expect_err("there is no such record");
    assert!(why.contains("no record 23") && why.contains("number 22, 1970"), "{why}");
    let why = restored(&folder, Point::Number(9)).expect_err("there is no such base");
    assert!(why.contains("before the oldest"), "{why}");
    let notes = restored(&folder, Point::Time(9999)).expect("restored").notes;
    assert!(notes[0].contains("nothing later than number 22"), "{notes:?}");
}

#[test]
fn a_cut_end_is_left_out_and_said() {
    let folder = kept("cut");
    let path = folder.0.join("appendonlydir/j");
    let mut last = std::fs::read(&path).expect("it is there");
    last.extend_from_slice(b"*3\r\n$3\r\nSE");
    std::fs::write(&path, &last).expect("a file");
    let notes = restored(&folder, Point::Time(9999)).expect("restored").notes;
    assert!(notes[0].contains("its last 10 bytes are left out"), "{notes:?}");
    assert_eq!(new_file(&folder, "appendonly.aof.2.incr.aof").len(), last.len() - 10);
}

#[test]
fn damage_in_the_middle_is_named() {
    let folder = kept("middle");
    let path = folder.0.join("appendonlydir/i");
    let whole = std::fs::read(&path).expect("it is there");
    std::fs::write(&path, &whole[..whole.len() - 3]).expect("a file");
    let why = restored(&folder, Point::Time(9999)).expect_err("it is damaged");
    let check = "sheafdb check-aof ";
    assert!(why.contains("appendonlydir/i is damaged at byte") && why.contains(check), "{why}");
    assert!(restored(&folder, Point::Number(13)).is_ok(), "an older base is not concerned");
    std::fs::write(&path, [&whole[..], b"x"].concat()).expect("a file");
    assert!(restored(&folder, Point::Number(22)).is_err());
    assert!(restored(&folder, Point::Number(21)).is_ok(), "damage behind the point");
}

#[test]
fn changes_whose_time_nobody_knows_are_refused() {
    let folder = kept("untimed");
    for name in ["i", "j"] {
        folder.put(&format!("appendonlydir/{name}"), Incr::default().record("SET k 1").bytes);
    }
    let why = restored(&folder, Point::Time(9999)).expect_err("there are no times");
    assert!(why.contains("no annotations"), "{why}");
    // They have numbers: those behind the base.
    let Restored { last, .. } = restored(&folder, Point::Number(22)).expect("restored");
    assert_eq!(last.number, Some(22));
}

#[test]
fn a_folder_with_anything_in_it_is_refused() {
    let folder = kept("claimed");
    let output = folder.0.join("appendonlydir");
    let why = restore(&source(&folder), Point::Number(22), &output).expect_err("it is not empty");
    assert!(why.contains("a new or empty folder"), "{why}");
    let empty = folder.0.join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    restore(&source(&folder), Point::Number(9), &empty).expect_err("no base");
    assert_eq!(std::fs::read_dir(&empty).expect("it is left").count(), 0);
    restore(&source(&folder), Point::Number(22), &empty).expect("restored");
}

/// A rewrite may replace the files between the reading of the lists and the opening of one.
#[test]
fn a_file_which_comes_back_under_another_list_is_found() {
    let folder = kept("vanishing");
    let old = folder.0.join("appendonlydir/j");
    std::fs::remove_file(&old).expect("it is there");
    let point = Point::Number(21);
    let place = source(&folder).place().expect("a place");
    let looks = std::cell::Cell::new(0);
    let chain = patiently(&place, || {
        looks.set(looks.get() + 1);
        if looks.get() == 3 {
            let manifest = "file b seq 2 type b\nfile i seq 2 type i\n";
            folder.put("appendonlydir/appendonly.aof.manifest", manifest);
        }
        choose(&place, point)
    });
    assert_eq!((chain.expect("a chain").incr.len(), looks.get()), (1, 3));
    std::fs::remove_file(folder.0.join("appendonlydir/i")).expect("it is there");
    let why = restored(&folder, point).expect_err("it never comes back");
    assert!(why.ends_with("appendonlydir/i is missing, though it is listed"), "{why}");
}

#[test]
fn other_names_are_kept() {
    let folder = kept("names");
    std::fs::rename(folder.0.join("appendonlydir"), folder.0.join("aof dir")).expect("renamed");
    for end in ["manifest", "history"] {
        let of = |name: &str| folder.0.join(format!("aof dir/{name}.{end}"));
        std::fs::rename(of("appendonly.aof"), of("other.aof")).expect("renamed");
    }
    let output = folder.0.join("new");
    let source = Source { folder: Some("aof dir".into()), ..source(&folder) };
    let Restored { start, .. } = restore(&source, Point::Number(22), &output).expect("restored");
    assert!(output.join("aof dir/other.aof.manifest").is_file());
    assert!(start.ends_with("--appenddirname 'aof dir' --appendfilename other.aof"), "{start}");
}
