//! Without faults the simulated disk returns what the system's own files return: the same random
//! operations on both, one after the other, and the same outcome of each.

use crate::common::{Real, World};
use base::prng::Prng;
use driver::sim::{DiskFaults, Faults, SimDisk, SimNet};
use driver::{Driver, Event, FileDone, FileId, FileOp, FileValue, Inode, OpenHow};
use std::path::{Path, PathBuf};

/// Files, and folders that are made by the operations.
const NAMES: [&str; 8] = ["a", "b", "d", "d/a", "d/e", "d/e/a", "f", "f/b"];
const OPERATIONS: u32 = 150;

fn run(driver: &mut impl Driver<Message = u32>, op: FileOp) -> FileDone {
    driver.file(1, op);
    loop {
        let until = driver.now().plus(1_000_000_000);
        driver.wait(Some(until));
        if let Some(Event::File(done)) = driver.next() {
            return *done;
        }
    }
}

/// Without what depends on the file system: the order of names, the length of a folder, and which
/// file it is.
fn comparable(done: FileDone) -> FileDone {
    let outcome = done.outcome.map(|value| match value {
        FileValue::Names(mut names) => {
            names.sort();
            FileValue::Names(names)
        }
        FileValue::Status { len, mode, is_folder, .. } => {
            let len = if is_folder { 0 } else { len };
            FileValue::Status { len, mode, is_folder, inode: Inode::default() }
        }
        FileValue::Opened { file, len, .. } => {
            FileValue::Opened { file, len, inode: Inode::default() }
        }
        value => value,
    });
    FileDone { outcome, ..done }
}

/// A random operation in `folder`, mostly on one of the open files.
fn draw(dice: &mut Prng, folder: &Path, open: &[FileId]) -> FileOp {
    let mut path = || folder.join(NAMES[dice.below(NAMES.len() as u64) as usize]);
    let (path, to): (PathBuf, PathBuf) = (path(), path());
    let kind = dice.below(if open.is_empty() { 10 } else { 22 });
    let (at, count) = (dice.below(9000), dice.below(3000));
    let mode = [0o600, 0o640, 0o700][dice.below(3) as usize];
    if kind < 10 {
        return match kind {
            0..3 => FileOp::Open { path, how: draw_how(dice) },
            3 => FileOp::Rename { from: path, to },
            4 => FileOp::Unlink { path },
            5 => FileOp::CreateFolder { path, mode: 0o700 },
            6 => FileOp::List { folder: path },
            7 => FileOp::Status { path },
            8 => FileOp::RemoveFolder { path },
            _ => FileOp::SyncFolder { folder: path },
        };
    }
    let file = open[dice.below(open.len() as u64) as usize];
    let mut bytes = vec![0; count as usize];
    dice.fill(&mut bytes);
    match kind {
        10..13 => FileOp::Read { file, at, bytes: count as usize + 1 },
        13 | 14 => FileOp::Write { file, at, bytes },
        15 | 16 => FileOp::Append { file, bytes },
        17 => FileOp::Truncate { file, to: at },
        18 => FileOp::Preallocate { file, from: at, bytes: count + 1 },
        19 => FileOp::SetMode { file, mode },
        20 => FileOp::Forget { file, to: at },
        _ => FileOp::Close { file },
    }
}

fn draw_how(dice: &mut Prng) -> OpenHow {
    let write = dice.chance(3, 4);
    OpenHow {
        read: !write || dice.chance(2, 3),
        write,
        append: write && dice.chance(1, 3),
        create: write && dice.chance(2, 3),
        create_new: write && dice.chance(1, 6),
        truncate: write && dice.chance(1, 4),
        mode: 0o600,
    }
}

#[test]
fn the_simulated_disk_returns_what_the_system_returns() {
    let folder = std::env::temp_dir().join(format!("sheafdb-disk-agrees-{}", std::process::id()));
    let (mut succeeded, mut failed) = (0, 0);
    for seed in 0..60 {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        let disk = SimDisk::new(seed, DiskFaults::NONE);
        disk.install_folder(&folder).expect("room");
        let mut simulated = SimNet::new(seed, Faults::NONE).driver_on::<u32>(&disk);
        let mut real = Real::new().driver();
        let (mut dice, mut open) = (Prng::new(!seed), Vec::new());
        for number in 0..OPERATIONS {
            let op = draw(&mut dice, &folder, &open);
            // A folder may be opened for reading, and its length depends on the file system.
            if matches!(&op, FileOp::Open { path, how } if !how.write && path.is_dir()) {
                continue;
            }
            let expected = comparable(run(&mut real, op.clone()));
            let found = comparable(run(&mut simulated, op.clone()));
            assert_eq!(found, expected, "seed {seed}, operation {number}: {op:?}");
            match (&found.outcome, &op) {
                (Ok(FileValue::Opened { file, .. }), _) => open.push(*file),
                (Ok(_), FileOp::Close { file }) => open.retain(|other| other != file),
                _ => (),
            }
            succeeded += u32::from(found.outcome.is_ok());
            failed += u32::from(found.outcome.is_err());
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(succeeded > 2000 && failed > 1000, "{succeeded} {failed}");
}
