//! Saves over files in memory, in which each operation fails once, and whose writes complete in any
//! order.

use super::*;
use base::prng::Prng;
use driver::Inode;
use std::collections::BTreeMap;

const FILE: FileId = FileId { index: 0, generation: 7 };
const NAME: &str = "/data/dump.rdb";
const OLD: &[u8] = b"the old file";

/// Files and their contents. One file is open at a time.
#[derive(Default)]
struct Disk {
    files: BTreeMap<PathBuf, Vec<u8>>,
    open: Option<PathBuf>,
    /// The length of the open file at its last sync.
    synced: usize,
    /// Operations so far, by name.
    log: Vec<&'static str>,
}

impl Disk {
    fn run(&mut self, op: FileOp) -> Result<FileValue, Errno> {
        let (name, result) = match op {
            FileOp::Open { path, how } => {
                assert!(how.create_new && how.write);
                let is_new = self.files.insert(path.clone(), Vec::new()).is_none();
                self.open = Some(path);
                let opened = FileValue::Opened { file: FILE, len: 0, inode: Inode::default() };
                ("open", if is_new { Ok(opened) } else { Err(Errno::EXIST) })
            }
            FileOp::Write { file: FILE, at, bytes } => {
                let path = self.open.as_ref().expect("it is open");
                let contents = self.files.get_mut(path).expect("it is there");
                let (at, len) = (at as usize, bytes.len());
                contents.resize(contents.len().max(at + len), 0);
                contents[at..at + len].copy_from_slice(&bytes);
                ("write", Ok(FileValue::Written(bytes)))
            }
            FileOp::SyncData { file: FILE } => {
                let path = self.open.as_ref().expect("it is open");
                self.synced = self.files[path].len();
                ("sync", Ok(FileValue::Done))
            }
            FileOp::Close { file: FILE } => {
                self.open.take().expect("it is open");
                ("close", Ok(FileValue::Done))
            }
            FileOp::Rename { from, to } => {
                assert_eq!(self.open, None, "it is closed");
                let file = self.files.remove(&from).expect("it is there");
                assert_eq!(self.synced, file.len(), "all of it is durable before it has its name");
                self.files.insert(to, file);
                ("rename", Ok(FileValue::Done))
            }
            FileOp::Unlink { path } => {
                let removed = self.files.remove(&path).ok_or(Errno::NOENT);
                ("unlink", removed.map(|_| FileValue::Done))
            }
            FileOp::SyncFolder { folder } => {
                assert_eq!(folder, Path::new("/data"));
                ("sync folder", Ok(FileValue::Done))
            }
            other => unreachable!("a save has no such operation: {other:?}"),
        };
        self.log.push(name);
        result
    }
}

/// How a save is run.
#[derive(Clone, Copy, Default)]
struct Plan {
    /// The operation that fails.
    fails: Option<usize>,
    /// Before which operation it is given up.
    given_up: Option<usize>,
    /// Draws which operation in flight completes next.
    seed: u64,
    syncs_early: bool,
    has_leftover: bool,
}

fn part(at: usize) -> Vec<u8> {
    vec![b'a' + (at % 26) as u8; 1 << 20]
}

const PARTS: usize = 10;

/// Runs a save of [`PARTS`] parts, of which some come while others are being written.
fn run(plan: Plan) -> (Disk, Result<u64, Failure>) {
    let mut disk = Disk::default();
    disk.files.insert(NAME.into(), OLD.to_vec());
    let mut writing = Writing::begin(Path::new("/data"), Path::new("dump.rdb"), plan.syncs_early);
    if plan.has_leftover {
        disk.files.insert(writing.beside.clone(), b"left over".to_vec());
    }
    let (mut dice, mut pushed, mut returned) = (Prng::new(plan.seed), 0, 0);
    let (mut gives_up, mut lost) = (true, 0);
    let mut in_flight: Vec<(Part, FileOp)> = Vec::new();
    loop {
        in_flight.extend(writing.take_ops());
        returned += writing.take_returned().len();
        if let Some(outcome) = writing.outcome() {
            assert!(in_flight.is_empty(), "nothing is in flight at the end");
            assert!(outcome.is_err() || pushed == PARTS);
            assert_eq!(returned + lost, pushed, "every buffer comes back, unless its write fails");
            let outcome = outcome.map_err(Clone::clone);
            return (disk, outcome);
        }
        if gives_up && plan.given_up == Some(disk.log.len()) {
            gives_up = false;
            writing.give_up("enough");
            continue;
        }
        if pushed < PARTS && (in_flight.is_empty() || dice.draw() % 2 == 0) {
            writing.push(part(pushed));
            pushed += 1;
            if pushed == PARTS {
                writing.end();
            }
            continue;
        }
        assert!(!in_flight.is_empty(), "it waits for nothing");
        let (which, op) = in_flight.swap_remove(dice.draw() as usize % in_flight.len());
        let outcome = if plan.fails == Some(disk.log.len()) {
            // A close takes effect also if it fails.
            if matches!(op, FileOp::Close { .. }) {
                disk.open = None;
            }
            lost += usize::from(matches!(op, FileOp::Write { .. }));
            disk.log.push("failed");
            Err(Errno::IO)
        } else {
            disk.run(op)
        };
        writing.complete(which, outcome.map_err(|errno| FileError { errno, written: 0 }));
    }
}

fn new_file() -> Vec<u8> {
    (0..PARTS).flat_map(part).collect()
}

#[test]
fn the_file_has_all_bytes_in_order_whatever_completes_first() {
    for seed in 0..200 {
        let plan = Plan { seed, syncs_early: seed % 2 == 0, has_leftover: true, ..Plan::default() };
        let (disk, outcome) = run(plan);
        assert_eq!(outcome, Ok((PARTS << 20) as u64));
        assert!(disk.files[Path::new(NAME)] == new_file(), "seed {seed}");
        assert_eq!(disk.files.len(), 1, "no temporary file stays");
        let syncs = disk.log.iter().filter(|op| **op == "sync").count();
        assert_eq!(syncs > 1, plan.syncs_early, "seed {seed}: {syncs} syncs");
    }
}

/// Whatever fails, the old file stays, unless the new one has its name already.
#[test]
fn each_operation_fails_in_turn() {
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let plan = Plan { seed, syncs_early: true, ..Plan::default() };
        let whole = run(plan).0.log;
        for (at, op) in whole.iter().enumerate() {
            let (disk, outcome) = run(Plan { fails: Some(at), ..plan });
            let left = &disk.files[Path::new(NAME)];
            let is_renamed = disk.log.contains(&"rename");
            assert!(if is_renamed { *left == new_file() } else { left == OLD }, "{:?}", disk.log);
            assert_eq!(disk.open, None, "{:?}", disk.log);
            if *op == "close" {
                // Its outcome says nothing about the bytes, which are synced.
                assert!(outcome.is_ok() && is_renamed);
                continue;
            }
            assert_eq!(disk.files.len(), 1, "no temporary file stays: {:?}", disk.log);
            let why = outcome.expect_err("an operation failed").to_string();
            assert!(why.ends_with(": Input/output error"), "{why}");
            let what = why.rsplit_once(" '").expect("it names a path").0;
            kinds.insert(what.to_owned());
        }
    }
    let all = ["create", "remove", "replace", "sync", "sync the folder", "write"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all.map(|kind| format!("cannot {kind}")));
}

/// Given up before any operation: the old file stays, or the new one is there whole.
#[test]
fn a_save_is_given_up_at_any_time() {
    let (mut given_up, mut too_late) = (0, 0);
    for seed in 0..20 {
        let plan = Plan { seed, syncs_early: true, ..Plan::default() };
        for at in 0..run(plan).0.log.len() {
            let (disk, outcome) = run(Plan { given_up: Some(at), ..plan });
            let left = &disk.files[Path::new(NAME)];
            match outcome {
                Ok(_) => assert!(*left == new_file()),
                Err(why) => {
                    assert_eq!(why, Failure::GivenUp("enough".into()));
                    assert!(left == OLD);
                }
            }
            let count = if *left == OLD { &mut given_up } else { &mut too_late };
            *count += 1;
            assert_eq!((disk.files.len(), disk.open), (1, None));
        }
    }
    assert!(given_up > 200 && too_late >= 40, "{given_up} {too_late}");
}
