//! The operations, in order.

use super::*;
use crate::persist::load::folder::{Part, Place};
use driver::Inode;
use journal::manifest::Manifest;

const FILE: FileId = FileId { index: 3, generation: 1 };

/// A word for each operation until the end. The operation with this number fails.
fn run(mut mending: Mending, fails: Option<(usize, Errno)>) -> (Vec<String>, Next) {
    let (mut words, mut next) = (Vec::new(), mending.begin());
    while let Next::Op(op) = next {
        let number = words.len();
        words.push(match &op {
            FileOp::Open { path, how } if how.create => format!("create {}", path.display()),
            FileOp::Open { path, .. } => format!("open {}", path.display()),
            FileOp::Truncate { file: FILE, to } => format!("truncate {to}"),
            FileOp::Read { file: FILE, at, bytes } => format!("read {at} {bytes}"),
            FileOp::Write { file: FILE, at, bytes } if bytes.iter().all(|byte| *byte == 0) => {
                format!("write {at} {}", bytes.len())
            }
            FileOp::Write { file: FILE, at: 0, bytes } => {
                format!("write {}", String::from_utf8_lossy(bytes))
            }
            FileOp::SyncData { file: FILE } => "sync".to_owned(),
            FileOp::Close { file: FILE } => "close".to_owned(),
            FileOp::CreateFolder { path, .. } => format!("folder {}", path.display()),
            FileOp::Rename { from, to } => format!("rename {} {}", from.display(), to.display()),
            FileOp::SyncFolder { folder } => format!("sync {}", folder.display()),
            other => panic!("not expected: {other:?}"),
        });
        let outcome = match fails {
            Some((at, errno)) if at == number => Err(FileError { errno, written: 0 }),
            _ if matches!(op, FileOp::Open { .. }) => {
                Ok(FileValue::Opened { file: FILE, len: 9, inode: Inode::default() })
            }
            _ => Ok(match op {
                FileOp::Read { bytes, .. } => FileValue::Bytes(vec![0; bytes]),
                _ => FileValue::Done,
            }),
        };
        next = mending.advance(&outcome);
    }
    (words, next)
}

fn found() -> Found {
    let place = Place { dir: "/d".into(), folder: "f".into(), name: "a".into() };
    let parts = vec![Part { path: "/d/a".into(), len: 9 }];
    let manifest = Some(Manifest::of_old_file(b"a"));
    Found { place, manifest, parts, is_old: true, ..Found::default() }
}

const MOVED: [&str; 11] = [
    "folder /d/f",
    "sync /d",
    "create /d/f/temp-a.manifest",
    "write file a seq 1 type b\n",
    "sync",
    "close",
    "rename /d/f/temp-a.manifest /d/f/a.manifest",
    "sync /d/f",
    "rename /d/a /d/f/a",
    "sync /d/f",
    "sync /d",
];

#[test]
fn a_truncated_file_is_cut_and_synced() {
    let mut mending = Mending::new();
    mending.truncate(Path::new("/x"), 7);
    let (words, next) = run(mending, None);
    let expected = ["open /x", "truncate 7", "read 0 7", "write 0 7", "sync", "close"];
    assert_eq!(words, expected);
    assert!(matches!(next, Next::Done));
    assert!(matches!(Mending::new().begin(), Next::Done));
}

/// Regression: a sync of the killed server had failed, and the end of the file was shown by the
/// system, and was not on the disk. (Simulated seed 1572.)
#[test]
fn the_end_of_the_last_file_is_written_again() {
    let mut mending = Mending::new();
    mending.sync(Path::new("/x"), TAIL_BYTES + PIECE_BYTES / 2);
    let (words, _) = run(mending, None);
    let pieces = (TAIL_BYTES / PIECE_BYTES) as usize;
    assert_eq!(words.len(), 3 + 2 * pieces);
    let begin = PIECE_BYTES / 2;
    assert_eq!(
        words[1..3],
        [format!("read {begin} {PIECE_BYTES}"), format!("write {begin} {PIECE_BYTES}")]
    );
    let last = TAIL_BYTES - PIECE_BYTES / 2;
    assert_eq!(words[words.len() - 3], format!("write {last} {PIECE_BYTES}"));
}

#[test]
fn the_manifest_of_a_moved_file_is_durable_before_it_is_moved() {
    let mut mending = Mending::new();
    mending.move_old(&found());
    let (words, next) = run(mending, None);
    assert_eq!(words, MOVED);
    assert!(matches!(next, Next::Done));
}

#[test]
fn every_operation_may_fail() {
    for at in 0..MOVED.len() {
        let mut mending = Mending::new();
        mending.move_old(&found());
        let (words, next) = run(mending, Some((at, Errno::IO)));
        let mut expected = MOVED[..=at].to_vec();
        expected.extend((at == 3 || at == 4).then_some("close"));
        assert_eq!(words, expected);
        assert!(matches!(next, Next::Failed(path, Errno::IO) if path.starts_with("/d")), "{at}");
    }
    // The folder may be there.
    let mut mending = Mending::new();
    mending.move_old(&found());
    let (words, next) = run(mending, Some((0, Errno::EXIST)));
    assert_eq!((words.len(), matches!(next, Next::Done)), (MOVED.len(), true));
}
