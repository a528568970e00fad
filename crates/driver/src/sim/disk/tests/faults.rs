//! Faults of operations, and space.

use super::super::{BLOCK_BYTES, DiskFaults};
use super::{CREATE_NEW, FOLDER, Machine, READ_WRITE};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::Path;

const BLOCK: usize = BLOCK_BYTES as usize;

fn with_capacity(blocks: u64) -> Machine {
    Machine::new(0, DiskFaults { capacity_bytes: blocks * BLOCK_BYTES, ..DiskFaults::NONE })
}

#[test]
fn a_full_disk_accepts_a_part_and_then_nothing() {
    let mut machine = with_capacity(3);
    let file = machine.open("/f", CREATE_NEW).expect("a name takes no block");
    let store = &mut machine.store;
    assert_eq!(store.write(file, Some(100), &[1; BLOCK]), Ok(BLOCK));
    let two_blocks = store.write(file, Some(2 * BLOCK_BYTES - 1), &[2; 3 * BLOCK]);
    assert_eq!(two_blocks, Ok(BLOCK + 1));
    assert_eq!(store.write(file, Some(3 * BLOCK_BYTES), &[3]), Err(Errno::NOSPC));
    assert_eq!(store.write(file, Some(0), &[4; 100]), Ok(100), "the block is there already");
    assert_eq!(store.used_bytes(), 3 * BLOCK_BYTES);
    assert_eq!((store.counts.full, store.counts.short_writes), (1, 1));
    // An open file without a name keeps its space.
    store.unlink(Path::new("/f")).expect("it is there");
    assert_eq!(store.used_bytes(), 3 * BLOCK_BYTES);
    store.truncate(file, BLOCK_BYTES).expect("no faults");
    assert_eq!(store.used_bytes(), BLOCK_BYTES);
    store.close(file).expect("it is open");
    assert_eq!(store.used_bytes(), 0);
}

#[test]
fn reserved_space_is_there_when_the_disk_is_full() {
    let mut machine = with_capacity(4);
    let journal = machine.open("/journal", CREATE_NEW).expect("a name takes no block");
    let other = machine.open("/other", CREATE_NEW).expect("a name takes no block");
    let store = &mut machine.store;
    assert_eq!(store.preallocate(journal, 0, 5 * BLOCK_BYTES), Err(Errno::NOSPC));
    assert_eq!(store.preallocate(journal, 0, 3 * BLOCK_BYTES), Ok(()));
    assert_eq!(store.measure(journal).expect("it is open").0, 0, "the length stays");
    assert_eq!(store.write(other, Some(0), &[1; 2 * BLOCK]), Ok(BLOCK));
    assert_eq!(store.write(other, Some(BLOCK_BYTES), &[1]), Err(Errno::NOSPC));
    assert_eq!(store.write(journal, Some(0), &[2; 3 * BLOCK]), Ok(3 * BLOCK));
    assert_eq!(store.write(journal, Some(3 * BLOCK_BYTES), &[2]), Err(Errno::NOSPC));
}

/// A reservation which was not synced may be lost with the machine.
#[test]
fn reserved_space_and_crashes() {
    let (mut kept, mut lost) = (0, 0);
    for (seed, synced) in (0..100).flat_map(|seed| [(seed, true), (seed, false)]) {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        machine.store.install(Path::new("/f"), b"", 0o600).expect("room");
        let file = machine.open("/f", READ_WRITE).expect("a file");
        machine.store.preallocate(file, 0, 10 * BLOCK_BYTES).expect("room");
        if synced {
            machine.sync(file).expect("no faults");
        }
        machine.crash();
        match machine.store.used_bytes() / BLOCK_BYTES {
            10 => kept += u32::from(!synced),
            0 if !synced => lost += 1,
            blocks => panic!("{blocks} blocks"),
        }
    }
    assert!(kept > 20 && lost > 20, "{kept} {lost}");
}

/// After a failed sync a second one succeeds. Whether the data are durable then depends on what
/// became of the pages.
#[test]
fn a_sync_that_succeeds_after_a_failed_one_may_have_written_nothing() {
    const NEW: [u8; 2048] = [b'n'; 2048];
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..600 {
        let faults = DiskFaults { sync_error_one_in: 1, ..DiskFaults::NONE };
        let mut machine = Machine::new(seed, faults);
        machine.store.install(Path::new("/f"), &[b'o'; 2048], 0o600).expect("room");
        let file = machine.open("/f", READ_WRITE).expect("a file");
        machine.store.write(file, Some(0), &NEW).expect("no faults");
        assert_eq!(machine.sync(file), Err(Errno::IO));
        machine.store.faults = DiskFaults::NONE;
        let read = machine.store.read(file, 0, 2048).expect("no faults");
        assert_eq!(machine.sync(file), Ok(()));
        machine.crash();
        let left = machine.contents("/f").expect("its name is durable");
        let counts = machine.store.counts;
        let outcome = match (counts.syncs_kept, counts.syncs_lost, counts.syncs_evicted) {
            (1, 0, 0) => {
                assert!(read == NEW && left == NEW, "the pages were still dirty");
                "kept"
            }
            (0, 1, 0) => {
                assert_eq!(read, NEW, "the pages are in memory");
                if left == NEW { "written after all" } else { "lost" }
            }
            (0, 0, 1) => {
                assert_eq!(read, left, "reads see the disk");
                if left == NEW { "written after all" } else { "evicted" }
            }
            other => panic!("{other:?}"),
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    assert_eq!(outcomes.len(), 4, "{outcomes:?}");
    assert!(outcomes.values().all(|count| *count > 50), "{outcomes:?}");
}

/// A write to a page that was marked clean makes all of the page dirty again.
#[test]
fn a_lost_page_is_written_with_the_next_change_of_it() {
    for seed in 0..200 {
        let faults = DiskFaults { sync_error_one_in: 1, ..DiskFaults::NONE };
        let mut machine = Machine::new(seed, faults);
        machine.store.install(Path::new("/f"), &[b'o'; 1024], 0o600).expect("room");
        let file = machine.open("/f", READ_WRITE).expect("a file");
        machine.store.write(file, Some(0), &[b'n'; 1024]).expect("no faults");
        assert_eq!(machine.sync(file), Err(Errno::IO));
        machine.store.faults = DiskFaults::NONE;
        machine.store.write(file, Some(0), b"!").expect("no faults");
        let read = machine.store.read(file, 0, 512).expect("no faults");
        assert_eq!(machine.sync(file), Ok(()));
        machine.crash();
        assert_eq!(machine.contents("/f").expect("a file")[..512], read);
    }
}

#[test]
fn operations_fail_or_fall_short_as_often_as_they_are_told_to() {
    let faults = DiskFaults {
        read_error_one_in: 4,
        write_error_one_in: 4,
        name_error_one_in: 4,
        short_read_one_in: 4,
        short_write_one_in: 4,
        ..DiskFaults::NONE
    };
    let mut machine = Machine::new(7, DiskFaults::NONE);
    machine.store.install(Path::new("/f"), &[1; 100], 0o600).expect("room");
    let file = machine.open("/f", READ_WRITE).expect("a file");
    machine.store.faults = faults;
    let (mut read, mut written, mut truncated, mut named) = (vec![], vec![], vec![], vec![]);
    for _ in 0..1000 {
        let store = &mut machine.store;
        read.push(store.read(file, 0, 100).map(|bytes| bytes.len()));
        written.push(store.write(file, Some(0), &[2; 100]));
        truncated.push(store.truncate(file, 100).map(|()| 100));
        named.push(store.status(Path::new("/f")).map(|(len, ..)| len as usize));
    }
    for (results, falls_short) in
        [(&read, true), (&written, true), (&truncated, false), (&named, false)]
    {
        let failed = results.iter().filter(|result| **result == Err(Errno::IO)).count();
        assert!(failed.abs_diff(250) < 70, "{failed}");
        let whole = results.iter().filter(|result| **result == Ok(100)).count();
        let short = results.iter().filter(|r| matches!(r, Ok(1..=99))).count();
        assert_eq!(failed + whole + short, 1000);
        assert!(if falls_short { short.abs_diff(188) < 70 } else { short == 0 }, "{short}");
    }
    let counts = machine.store.counts;
    let counted: BTreeMap<&str, u64> =
        counts.by_kind().into_iter().filter(|(_, n)| *n > 0).collect();
    let kinds: Vec<&str> = counted.keys().copied().collect();
    assert_eq!(
        kinds,
        ["name_errors", "read_errors", "short_reads", "short_writes", "write_errors"]
    );
}

/// A write that failed may have written a part.
#[test]
fn a_failed_write_leaves_any_part_of_itself() {
    let mut seen = BTreeMap::new();
    for seed in 0..300 {
        let faults = DiskFaults { write_error_one_in: 1, ..DiskFaults::NONE };
        let mut machine = Machine::new(seed, faults);
        machine.store.install(Path::new("/f"), b"---", 0o600).expect("room");
        let file = machine.open("/f", READ_WRITE).expect("a file");
        assert_eq!(machine.store.write(file, Some(0), b"new"), Err(Errno::IO));
        *seen.entry(machine.contents("/f").expect("a file")).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[test]
fn handles_say_what_they_are_for_and_end_with_the_machine() {
    let mut machine = Machine::new(0, DiskFaults::NONE);
    machine.store.install(Path::new("/f"), b"1234", 0o600).expect("room");
    let reader = machine.open("/f", FOLDER).expect("a file");
    let append = crate::OpenHow { append: true, read: false, ..READ_WRITE };
    let writer = machine.open("/f", append).expect("a file");
    let store = &mut machine.store;
    assert_eq!(store.write(reader, Some(0), b"x"), Err(Errno::BADF));
    assert_eq!(store.truncate(reader, 0), Err(Errno::INVAL));
    assert_eq!(store.read(writer, 0, 4), Err(Errno::BADF));
    assert_eq!(store.write(writer, None, b"5"), Ok(1));
    assert_eq!(store.read(reader, 3, 9), Ok(b"45".to_vec()));
    let sync = store.changes_end();
    assert_eq!(store.sync(writer, sync), Ok(()));
    machine.crash();
    assert_eq!(machine.store.read(reader, 0, 4), Err(Errno::BADF));
    assert_eq!(machine.sync(writer), Err(Errno::BADF));
    assert_eq!(machine.store.close(writer), Err(Errno::BADF));
    assert_eq!(machine.contents("/f"), Some(b"12345".to_vec()));
}
