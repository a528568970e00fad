//! What is found in made-up folders.

use super::*;
use driver::Inode;
use std::collections::BTreeMap;

/// Files by path; a folder's contents are `None`.
type Disk = BTreeMap<&'static str, Option<&'static str>>;

fn place() -> Place {
    Place { dir: "/d".into(), folder: "f".into(), name: "a".into() }
}

fn failed(errno: Errno) -> Outcome {
    Err(FileError { errno, written: 0 })
}

/// Answers an operation as a disk would.
fn answer(disk: &Disk, op: &FileOp) -> Outcome {
    let file = |path: &PathBuf| FileId { index: path.ends_with("a.history").into(), generation: 0 };
    let texts = ["/d/f/a.manifest", "/d/f/a.history"];
    let at = |path: &PathBuf| disk.get(path.to_str().expect("plain"));
    match op {
        FileOp::List { folder } => match at(folder) {
            None => failed(Errno::NOENT),
            Some(Some(_)) => failed(Errno::NOTDIR),
            Some(None) => {
                let below = format!("{}/", folder.display());
                let names = disk.keys().filter_map(|path| path.strip_prefix(&below));
                Ok(FileValue::Names(names.map(OsString::from).collect()))
            }
        },
        FileOp::Open { path, .. } => match at(path) {
            Some(Some(text)) => Ok(FileValue::Opened {
                file: file(path),
                len: text.len() as u64,
                inode: Inode::default(),
            }),
            _ => failed(Errno::NOENT),
        },
        FileOp::Read { file, .. } => {
            Ok(FileValue::Bytes(disk[texts[file.index as usize]].unwrap_or("").into()))
        }
        FileOp::Close { .. } => Ok(FileValue::Done),
        FileOp::Status { path } => match at(path) {
            None => failed(Errno::NOENT),
            Some(text) => Ok(FileValue::Status {
                len: text.map_or(0, |text| text.len() as u64),
                mode: 0o644,
                is_folder: text.is_none(),
                inode: Inode::default(),
            }),
        },
        other => panic!("a search changes nothing: {other:?}"),
    }
}

type Files = [(&'static str, Option<&'static str>)];

fn search(files: &Files) -> Result<Found, String> {
    search_to(true, files)
}

/// The search, for loading or for a new base.
fn search_to(loads: bool, files: &Files) -> Result<Found, String> {
    let disk: Disk = files.iter().copied().collect();
    let (mut finding, mut op) = Finding::begin(place(), loads);
    loop {
        match finding.advance(answer(&disk, &op)) {
            Next::Op(next) => op = next,
            Next::Found(found) => return Ok(*found),
            Next::Refused(path, why) => return Err(format!("{}: {why}", path.display())),
        }
    }
}

/// Paths and lengths of what is loaded.
fn parts(found: &Found) -> Vec<(&str, u64)> {
    found.parts.iter().map(|part| (part.path.to_str().expect("plain"), part.len)).collect()
}

const MANIFEST: &str = "file a.2.base.rdb seq 2 type b\nfile a.1.incr.aof seq 1 type h\n\
                        file a.2.incr.aof seq 2 type i\nfile a.3.incr.aof seq 3 type i\n";

#[test]
fn the_files_of_a_manifest_are_loaded_in_its_order() {
    let found = search(&[
        ("/d/f", None),
        ("/d/f/a.manifest", Some(MANIFEST)),
        ("/d/f/a.2.base.rdb", Some("12345")),
        ("/d/f/a.2.incr.aof", Some("")),
        ("/d/f/a.3.incr.aof", Some("123")),
        ("/d/f/a.9.incr.aof", Some("which nobody lists")),
        ("/d/a", Some("an old one")),
    ])
    .expect("all is there");
    let expected = [("/d/f/a.2.base.rdb", 5), ("/d/f/a.2.incr.aof", 0), ("/d/f/a.3.incr.aof", 3)];
    assert_eq!(parts(&found), expected);
    assert_eq!((found.base_len(), found.last_len(), found.len()), (5, 3, 8));
    assert!(!found.is_old && found.manifest.is_some_and(|manifest| manifest.history.len() == 1));
}

/// Regression: CONFIG SET appendonly yes was refused for ever. The data in memory counts.
#[test]
fn a_new_base_needs_no_file_of_before() {
    let folder = ("/d/f", None);
    let manifest = ("/d/f/a.manifest", Some(MANIFEST));
    let base = ("/d/f/a.2.base.rdb", Some("1"));
    let missing = |files: &Files| {
        let found = search_to(false, files).expect("nothing is loaded");
        assert!(found.manifest.is_some());
        found.missing.map(|path| path.display().to_string())
    };
    assert_eq!(missing(&[folder, manifest]).as_deref(), Some("/d/f/a.2.base.rdb"));
    assert_eq!(missing(&[folder, manifest, base]).as_deref(), Some("/d/f/a.2.incr.aof"));
    let files = [base, ("/d/f/a.2.incr.aof", Some("")), ("/d/f/a.3.incr.aof", Some("123"))];
    assert_eq!(missing(&[&[folder, manifest], &files[..]].concat()), None);
    let stray = search_to(false, &[folder, base]).expect_err("data which nobody would load");
    assert!(stray.contains("restore the manifest"), "{stray}");
}

#[test]
fn what_is_missing_is_refused_with_its_path() {
    let folder = ("/d/f", None);
    let manifest = ("/d/f/a.manifest", Some(MANIFEST));
    let base = ("/d/f/a.2.base.rdb", Some("1"));
    let refused = |files: &[(&'static str, Option<&'static str>)]| {
        search(files).expect_err("something is wrong")
    };
    let missing = "/d/f/a.manifest lists it: No such file or directory";
    let path = "/d/f/a.2.base.rdb";
    assert!(refused(&[folder, manifest]).starts_with(&format!("{path}: {missing}")));
    let path = "/d/f/a.2.incr.aof";
    assert!(refused(&[folder, manifest, base]).starts_with(&format!("{path}: {missing}")));
    let is_folder = refused(&[folder, manifest, (base.0, None)]);
    assert!(is_folder.contains("Is a directory"), "{is_folder}");
    let empty = refused(&[folder, ("/d/f/a.manifest", Some(""))]);
    assert!(empty.starts_with("/d/f/a.manifest: "), "{empty}");
    let stray = refused(&[folder, base, ("/d/a", Some("an old one"))]);
    assert!(stray.starts_with("/d/f/a.manifest: it is not there, but"), "{stray}");
    assert!(refused(&[("/d/f", Some("a file"))]).starts_with("/d/f: "));
}

#[test]
fn nothing_and_empty_leftovers_are_nothing() {
    for files in [&[][..], &[("/d/f", None), ("/d/f/a.1.incr.aof", Some(""))]] {
        let found = search(files).expect("nothing is wrong");
        assert_eq!(found, Found { place: place(), ..Found::default() });
        assert!(found.is_empty());
    }
    // Other names are none of ours.
    let others = [("/d/f", None), ("/d/f/b.1.incr.aof", Some("x")), ("/d/f/a.txt", Some("x"))];
    assert!(search(&others).expect("nothing is wrong").manifest.is_none());
}

#[test]
fn an_old_single_file_is_the_base() {
    let old = ("/d/a", Some("1234"));
    let folder = ("/d/f", None);
    let manifest = ("/d/f/a.manifest", Some("file a seq 1 type b\nfile b seq 1 type i\n"));
    let found = search(&[old]).expect("it is there");
    assert_eq!(parts(&found), [("/d/a", 4)]);
    assert!(found.is_old);
    assert_eq!(found.manifest.map(|m| m.text()), Some(b"file a seq 1 type b\n".to_vec()));
    // Its manifest was written, but it was not moved; and then it was.
    let incr = ("/d/f/b", Some("12"));
    let found = search(&[folder, manifest, old, incr]).expect("it is found");
    assert_eq!((parts(&found), found.is_old), (vec![("/d/a", 4), ("/d/f/b", 2)], true));
    let found = search(&[folder, manifest, old, incr, ("/d/f/a", Some("5"))]).expect("it is found");
    assert_eq!((parts(&found), found.is_old), (vec![("/d/f/a", 1), ("/d/f/b", 2)], false));
}

/// Nothing about kept history is refused: the data does not need it.
#[test]
fn kept_history_is_found_and_not_refused() {
    let data = [
        ("/d/f", None),
        ("/d/f/a.manifest", Some("file a.2.base.rdb seq 2 type b\n")),
        ("/d/f/a.2.base.rdb", Some("12345")),
        ("/d/f/a.1.base.rdb", Some("12")),
        ("/d/f/a.1.incr.aof", Some("345")),
    ];
    let list = "file a.1.base.rdb seq 1 type b until 4:5\nfile a.1.incr.aof seq 1 type i\n";
    let with = |list: Option<&'static str>, files: usize| {
        let list = ("/d/f/a.history", list);
        let all: Vec<_> = data[..files].iter().copied().chain([list]).collect();
        let found = search(&all).expect("nothing is refused");
        assert_eq!(found.len(), 5);
        found.history
    };
    let found = with(Some(list), 5);
    assert_eq!((found.bytes(), found.trouble(), found.is_listed()), (5, None, true));
    let missing = with(Some(list), 4);
    assert_eq!(missing.bytes(), 2);
    assert!(missing.trouble().expect("a file is missing").starts_with("1 of its files"));
    for damaged in [Some("file a.1.base.rdb"), Some("\0"), None] {
        let damaged = with(damaged, 5);
        assert!(damaged.trouble().expect("it is damaged").starts_with("it cannot be read"));
        assert!(!damaged.is_listed() && damaged.bytes() == 0);
    }
}
