//! Records of changes as they are handed over: transactions, numbers, rollbacks, cuts.
#![cfg(not(shuttle))]

use base::out::{OutBuf, OutPos};
use base::sync::Arc;
use base::sync::atomic::{AtomicU32, Ordering};
use base::{Blob, DbIndex, SeqNo, UnixMs};
use keyspace::journal::{Batch, Part, Run};
use keyspace::{Access, Due, Event, Guard, Intent, Keyspace, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use value::NewStr;

const NOW: UnixMs = UnixMs(1_000_000);
const DB: DbIndex = DbIndex(0);

/// Accesses of a keyspace which records.
fn recording(workers: usize) -> Vec<Access> {
    let ks = Arc::new(Keyspace::new(&Options { databases: 4, hash_secret: 1, workers }));
    let mut all: Vec<Access> = (0..workers).map(|n| Access::new(ks.clone(), n)).collect();
    all[0].try_world().expect("nobody is inside");
    all[0].world(NOW).set_recording(true);
    all[0].open_world();
    all
}

fn guard<'a>(access: &'a mut Access, name: &[u8]) -> Guard<'a> {
    let slot = access.keyspace().key(name).slot;
    access.lock_one(slot, NOW, Intent::Write).expect("free")
}

fn put(guard: &mut Guard<'_>, db: DbIndex, name: &[u8], expiry: Option<i64>) {
    let key = guard.keyspace().key(name);
    guard.insert(Event::SILENT, db, &key, NewStr::Int(1), expiry.map(UnixMs));
}

/// A change with its record.
fn set(guard: &mut Guard<'_>, db: DbIndex, name: &[u8]) {
    put(guard, db, name, None);
    guard.record(db, &[b"SET", name, b"1"]);
}

fn take(access: &Access) -> Vec<Batch> {
    let mut batches = Vec::new();
    access.keyspace().journal().take(&mut batches);
    batches
}

/// The commands of a batch, their words behind blanks, those of one run on a line.
fn texts(batch: &Batch) -> Vec<String> {
    let mut from = OutPos::default();
    let text = |run: &Run| {
        let mut out = OutBuf::new();
        out.bytes.extend_from_slice(&batch.out.bytes[from.bytes..run.end.bytes]);
        for part in &batch.out.blobs[from.blobs..run.end.blobs] {
            out.blobs.push(part.moved_to(part.position - from.bytes));
        }
        from = run.end;
        let text = String::from_utf8(out.to_vec()).expect("text");
        let words = text.split("\r\n").filter(|word| !word.starts_with('$'));
        words
            .map(|word| if word.starts_with('*') { ";" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    batch.runs.iter().map(text).map(|text| text.trim_matches([' ', ';']).to_owned()).collect()
}

/// The one batch of a section which `f` has used.
fn section(access: &mut Access, f: impl FnOnce(&mut Access)) -> Batch {
    assert!(access.enter());
    f(access);
    assert!(take(access).is_empty(), "handed over before the section has ended");
    access.leave();
    let mut batches = take(access);
    assert_eq!(batches.len(), 1);
    assert_eq!(access.keyspace().journal().bytes(), 0);
    batches.pop().expect("one")
}

#[test]
fn consecutive_records_of_a_database_are_one_run() {
    let mut all = recording(1);
    let batch = section(&mut all[0], |access| {
        for (db, name) in [(0, b"a"), (0, b"b"), (1, b"a"), (1, b"b")] {
            let mut guard = guard(access, name);
            set(&mut guard, DbIndex(db), name);
            guard.finish();
        }
    });
    assert_eq!(texts(&batch), ["SET a 1 ; SET b 1", "SET a 1 ; SET b 1"]);
    let runs: Vec<_> = batch.runs.iter().map(|run| (run.first.0, run.count, run.db_in)).collect();
    assert_eq!(runs, [(1, 2, Some(DbIndex(0))), (3, 2, Some(DbIndex(1)))]);
    assert_eq!(batch.len(), batch.out.bytes.len());
}

/// The bytes of a batch which only the file gets.
fn for_the_file(batch: &Batch) -> Vec<&str> {
    let text = |part: &Part| {
        assert!(!part.readers.has_replicas());
        std::str::from_utf8(&batch.out.bytes[part.from..part.to]).expect("text")
    };
    batch.parts.iter().map(text).collect()
}

/// An annotation is for the file alone, wherever what is around it is put.
#[test]
fn an_annotation_names_its_reader() {
    let mut all = recording(1);
    let note = |guard: &mut Guard<'_>, text: &str| {
        guard.annotate(|line| line.extend_from_slice(text.as_bytes()));
    };
    let batch = section(&mut all[0], |access| {
        let mut guard = guard(access, b"a");
        note(&mut guard, "#0\r\n");
        set(&mut guard, DB, b"a");
        note(&mut guard, "#1\r\n");
        guard.finish();
        set(&mut guard, DB, b"a");
        guard.finish();
        set(&mut guard, DB, b"a");
        note(&mut guard, "#2\r\n");
        note(&mut guard, "#3\r\n");
        guard.record_with(DbIndex(3), 2, |record| {
            record.word(b"BIG");
            record.blob(&Blob::from(&b"value"[..]));
        });
        let mark = guard.mark();
        set(&mut guard, DB, b"a");
        note(&mut guard, "#gone\r\n");
        guard.rollback_to(mark);
        set(&mut guard, DB, b"a");
        note(&mut guard, "#4\r\n");
        guard.finish();
        set(&mut guard, DB, b"a");
        guard.rollback();
    });
    assert_eq!(
        texts(&batch),
        ["MULTI ; SET a 1 #1 ; EXEC ; SET a 1 ; MULTI ; SET a 1 #2 #3 ; SELECT 3 ; BIG value ; \
             SELECT 0 ; SET a 1 #4 ; EXEC"]
    );
    assert_eq!(for_the_file(&batch), ["#1\r\n", "#2\r\n", "#3\r\n", "#4\r\n"]);
    all[0].keyspace().journal().give_back(batch);
    let next = section(&mut all[0], |access| {
        let mut guard = guard(access, b"a");
        set(&mut guard, DB, b"a");
        guard.finish();
    });
    assert_eq!((texts(&next).len(), for_the_file(&next).len()), (1, 0), "memory is used again");
}

#[test]
fn what_is_committed_together_is_a_transaction() {
    let mut all = recording(1);
    let batch = section(&mut all[0], |access| {
        let mut guard = guard(access, b"a");
        set(&mut guard, DbIndex(2), b"a");
        set(&mut guard, DbIndex(2), b"a");
        set(&mut guard, DbIndex(3), b"a");
        guard.record_raw(DbIndex(3), b"*1\r\n$4\r\nPING\r\n");
        guard.record_with(DbIndex(0), 2, |record| {
            record.word(b"BIG");
            record.blob(&Blob::from(&b"value"[..]));
        });
        guard.finish();
        set(&mut guard, DbIndex(0), b"a");
        guard.finish();
    });
    let text =
        "MULTI ; SET a 1 ; SET a 1 ; SELECT 3 ; SET a 1 ; PING ; SELECT 0 ; BIG value ; EXEC";
    assert_eq!(texts(&batch), [format!("{text} ; SET a 1")], "and the next one follows it");
    let Run { first, count, db_in, db_out, cut, .. } = batch.runs[0];
    assert_eq!((first.0, count, db_in, db_out, cut), (1, 2, Some(DbIndex(2)), Some(DB), 0));
    assert_eq!(batch.out.blobs.len(), 1, "a reference");
}

/// Each number has a run, whoever draws it.
#[test]
fn numbers_of_all_accesses_are_contiguous() {
    let mut all = recording(3);
    for access in &mut all {
        assert!(access.enter());
    }
    for turn in 0..30 {
        let access = &mut all[turn * 7 % 3];
        for n in 0..turn % 4 {
            let mut guard = guard(access, b"a");
            set(&mut guard, DbIndex(n as u32), b"a");
            guard.finish();
        }
    }
    all.iter_mut().for_each(Access::leave);
    let batches = take(&all[0]);
    assert_eq!(batches.len(), 3);
    let runs = batches.iter().flat_map(|batch| &batch.runs);
    let mut numbers: Vec<u64> = runs.flat_map(|run| run.first.0..=run.last().0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(all[0].keyspace().numbers().last(), SeqNo(numbers.len() as u64));
    let journal = all[0].keyspace().journal();
    assert_eq!((journal.unrecorded(), journal.bytes()), (0, 0));
}

/// A rollback takes back what a command has left. The removal of a key that it found due stays.
#[test]
fn a_rollback_keeps_the_removal_of_keys_that_were_due() {
    for whole in [true, false] {
        let mut all = recording(1);
        let batch = section(&mut all[0], |access| {
            let mut guard = guard(access, b"a");
            put(&mut guard, DB, b"a", Some(NOW.0 - 1));
            guard.record(DB, &[b"MADE"]);
            guard.finish();
            set(&mut guard, DbIndex(1), b"a");
            let mark = guard.mark();
            set(&mut guard, DbIndex(2), b"a");
            let key = guard.keyspace().key(b"a");
            assert!(guard.read(DB, &key).is_none());
            set(&mut guard, DB, b"a");
            assert!(guard.has_recorded_since(mark) && guard.has_changed_since(mark));
            if whole {
                guard.rollback();
            } else {
                guard.rollback_to(mark);
                assert!(!guard.has_recorded_since(mark) && !guard.has_changed_since(mark));
            }
            guard.finish();
        });
        let second = if whole { "DEL a" } else { "MULTI ; SET a 1 ; SELECT 0 ; DEL a ; EXEC" };
        assert_eq!(texts(&batch).join(" ; "), format!("MADE ; {second}"));
    }
}

/// What is committed in parts has one number and one record, also if a later part is taken back.
#[test]
fn parts_of_a_transaction_are_one_record() {
    for end in ["finish", "rollback to", "rollback", "drop", "panic"] {
        let mut all = recording(1);
        let batch = section(&mut all[0], |access| {
            let work = AssertUnwindSafe(|| {
                let mut guard = guard(access, b"a");
                set(&mut guard, DB, b"a");
                guard.commit_part();
                set(&mut guard, DbIndex(1), b"a");
                guard.commit_part();
                assert!(guard.has_unnumbered(), "{end}");
                let mark = guard.mark();
                set(&mut guard, DbIndex(2), b"a");
                match end {
                    "finish" => guard.finish(),
                    "rollback to" => guard.rollback_to(mark),
                    "rollback" => guard.rollback(),
                    "drop" => {}
                    _ => panic!("in a later part"),
                }
            });
            assert_eq!(catch_unwind(work).is_err(), end == "panic");
            let mut guard = guard(access, b"a");
            assert_eq!((guard.seq(), guard.has_unnumbered()), (SeqNo(1), false), "{end}");
            let key = guard.keyspace().key(b"a");
            let has = [0, 1, 2].map(|db| guard.read(DbIndex(db), &key).is_some());
            let is_whole = ["finish", "drop"].contains(&end);
            assert_eq!(has, [true, true, is_whole], "{end}");
        });
        let is_whole = ["finish", "drop"].contains(&end);
        let last = if is_whole { " ; SELECT 2 ; SET a 1" } else { "" };
        let text = format!("MULTI ; SET a 1 ; SELECT 1 ; SET a 1{last} ; EXEC");
        assert_eq!(texts(&batch), [text], "{end}");
        assert_eq!(batch.runs[0].count, 1, "{end}");
    }
}

/// What is loaded into a keyspace which records leaves no record, and slots keep their numbers.
#[test]
fn an_exempt_access_leaves_no_records_and_no_numbers() {
    let mut all = recording(1);
    section(&mut all[0], |access| {
        set(&mut guard(access, b"a"), DB, b"a");
    });
    let mut further = all[0].further().expect("room");
    further.set_exempt_from_records(true);
    all[0].set_exempt_from_records(true);
    all[0].try_world().expect("nobody is inside");
    let mut world = all[0].world(NOW);
    assert_eq!(world.flush_all(), 1);
    world.finish();
    drop(world);
    all[0].open_world();
    assert!(further.enter());
    let mut loading = guard(&mut further, b"a");
    assert!(!loading.is_recording());
    put(&mut loading, DB, b"a", None);
    loading.finish();
    drop(loading);
    further.leave();
    let keyspace = all[0].keyspace().clone();
    assert_eq!((keyspace.numbers().last(), keyspace.journal().unrecorded()), (SeqNo(1), 0));
    assert!(take(&all[0]).is_empty());
    all[0].set_exempt_from_records(false);
    let batch = section(&mut all[0], |access| {
        let mut guard = guard(access, b"a");
        assert_eq!(guard.seq(), SeqNo(1), "the number of what the data shows");
        set(&mut guard, DB, b"a");
    });
    assert_eq!((texts(&batch), batch.runs[0].first), (vec!["SET a 1".to_owned()], SeqNo(2)));
}

/// A key that a command makes due and finds so itself is back when it is rolled back.
#[test]
fn a_rollback_takes_back_the_removal_of_a_key_that_the_command_made_due() {
    let mut all = recording(1);
    let batch = section(&mut all[0], |access| {
        let mut guard = guard(access, b"a");
        set(&mut guard, DB, b"a");
        guard.finish();
        let key = guard.keyspace().key(b"a");
        let mark = guard.mark();
        guard.entry_mut(Event::SILENT, DB, &key).expect("there").set_expiry(Some(UnixMs(1)));
        assert!(guard.read(DB, &key).is_none());
        guard.rollback_to(mark);
        guard.finish();
        assert!(guard.read(DB, &key).is_some());
        set(&mut guard, DB, b"a");
        guard.finish();
    });
    assert_eq!(texts(&batch), ["SET a 1 ; SET a 1"]);
    assert_eq!(batch.runs[0].count, 2, "a rollback draws no number");
}

#[test]
fn a_guard_that_is_dropped_without_an_end_leaves_its_records() {
    let mut all = recording(1);
    let batch = section(&mut all[0], |access| set(&mut guard(access, b"a"), DB, b"a"));
    assert_eq!(texts(&batch), ["SET a 1"]);
    let batch = section(&mut all[0], |access| {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut guard = guard(access, b"a");
            put(&mut guard, DbIndex(1), b"a", Some(1));
            guard.record(DbIndex(1), &[b"MADE"]);
            guard.finish();
            let key = guard.keyspace().key(b"a");
            assert!(guard.read(DbIndex(1), &key).is_none());
            set(&mut guard, DB, b"a");
            panic!("in a handler");
        }));
        assert!(panicked.is_err());
        set(&mut guard(access, b"a"), DB, b"a");
    });
    assert_eq!(texts(&batch), ["MADE ; DEL a", "SET a 1"]);
}

/// Some changes need no record: they have a number whose run is empty. A change which has none and
/// needs one is a defect: counted, and in debug builds a panic.
#[test]
fn a_change_without_a_record_is_counted() {
    let mut all = recording(1);
    let batch = section(&mut all[0], |access| {
        let mut guard = guard(access, b"a");
        put(&mut guard, DB, b"a", None);
        guard.record_nothing();
        guard.finish();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            put(&mut guard, DB, b"a", None);
            guard.finish();
        }));
        assert_eq!(ran.is_err(), cfg!(debug_assertions));
        guard.rollback();
        set(&mut guard, DbIndex(3), b"a");
        guard.finish();
    });
    assert_eq!(all[0].keyspace().journal().unrecorded(), 1);
    assert_eq!(texts(&batch), ["", "SET a 1"], "an empty run joins no other");
    let [empty, set] = &batch.runs[..] else { panic!("{:?}", batch.runs) };
    assert_eq!((empty.first, empty.db_in, empty.db_out), (SeqNo(1), None, None));
    assert_eq!((set.first, set.db_in), (SeqNo(empty.last().0 + 1), Some(DbIndex(3))));
}

#[test]
fn a_cut_has_a_number_and_a_run_of_its_own() {
    let mut all = recording(2);
    let access = &mut all[0];
    assert!(access.enter());
    set(&mut guard(access, b"a"), DB, b"a");
    access.leave();
    access.try_world().expect("nobody is inside");
    let mut world = access.world(NOW);
    set(&mut world, DB, b"b");
    assert_eq!(world.record_cut(7), SeqNo(3));
    set(&mut world, DB, b"c");
    world.finish();
    drop(world);
    access.open_world();
    assert!(access.enter());
    set(&mut guard(access, b"d"), DB, b"d");
    access.leave();
    let batches = take(access);
    let shown: Vec<String> = batches.iter().flat_map(texts).collect();
    assert_eq!(shown.join(" | "), "SET a 1 | SET b 1 |  | SET c 1 | SET d 1");
    let runs = batches.iter().flat_map(|batch| &batch.runs);
    let cuts: Vec<_> = runs.map(|run| (run.first.0, run.count, run.cut)).collect();
    assert_eq!(cuts, [(1, 1, 0), (2, 1, 0), (3, 1, 7), (4, 1, 0), (5, 1, 0)]);
}

#[test]
fn without_a_reader_there_are_neither_records_nor_numbers() {
    let mut all = recording(1);
    let access = &mut all[0];
    access.try_world().expect("nobody is inside");
    access.world(NOW).set_recording(false);
    access.open_world();
    assert!(access.enter());
    let mut guard = guard(access, b"a");
    assert!(!guard.is_recording());
    put(&mut guard, DB, b"a", Some(1));
    guard.finish();
    set(&mut guard, DB, b"a");
    guard.record_raw(DB, b"raw");
    guard.record_with(DB, 1, |_| panic!("it is not asked for"));
    guard.record_nothing();
    guard.finish();
    drop(guard);
    access.leave();
    assert!(take(access).is_empty());
    assert_eq!(access.keyspace().numbers().last(), SeqNo(0));
}

/// Who ignores what is due sees keys which it does not remove.
#[test]
fn ignoring_what_is_due_leaves_nothing() {
    let mut all = recording(1);
    let batch = section(&mut all[0], |access| {
        let mut guard = guard(access, b"a");
        guard.set_due(Due::Ignore);
        put(&mut guard, DB, b"a", Some(1));
        guard.record(DB, &[b"MADE"]);
        guard.finish();
        let key = guard.keyspace().key(b"a");
        assert!(guard.read(DB, &key).is_some() && guard.ignores_due());
        guard.finish();
        guard.set_due(Due::Hide);
        assert!(guard.read(DB, &key).is_none());
        guard.finish();
        set(&mut guard, DB, b"a");
        guard.finish();
    });
    let replaced = "MADE ; MULTI ; DEL a ; SET a 1 ; EXEC";
    assert_eq!(texts(&batch), [replaced], "what is hidden and replaced is removed");
}

#[test]
fn the_writer_is_woken_once_by_the_first_batch() {
    let mut all = recording(1);
    let woken = Arc::new(AtomicU32::new(0));
    let access = &mut all[0];
    let ks = Arc::clone(access.keyspace());
    let rings = Arc::clone(&woken);
    ks.journal().set_waker(Box::new(move || {
        rings.fetch_add(1, Ordering::SeqCst);
    }));
    let mut change = || {
        assert!(access.enter());
        set(&mut guard(access, b"a"), DB, b"a");
        access.leave();
    };
    change();
    assert_eq!(woken.load(Ordering::SeqCst), 0, "it does not sleep");
    assert!(!ks.journal().sleep(), "there is something to do");
    let mut batches = Vec::new();
    ks.journal().take(&mut batches);
    assert!(ks.journal().sleep());
    change();
    change();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    ks.journal().take(&mut batches);
    assert_eq!(batches.len(), 3);
    batches.drain(..).for_each(|batch| ks.journal().give_back(batch));
    change();
    ks.journal().take(&mut batches);
    assert_eq!(texts(&batches[0]), ["SET a 1"], "memory that was given back is empty");
}

/// Set for the process that is to end.
#[cfg(debug_assertions)]
const ROLE: &str = "RECORDS_TEST_LAST_NUMBER";

/// A panic between a number and its entry ends the process, although its command is called under a
/// net: the journal would wait for that number for ever.
#[test]
#[cfg(debug_assertions)] // the sum which is too large panics only there
fn a_panic_between_number_and_entry_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    if std::env::var_os(ROLE).is_some() {
        let mut all = recording(1);
        assert!(all[0].enter());
        all[0].keyspace().numbers().resume_behind(SeqNo(u64::MAX - 1));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            for name in [b"a", b"b"] {
                let mut guard = guard(&mut all[0], name);
                set(&mut guard, DB, name);
                guard.finish();
            }
        }));
        println!("the process goes on: {}", caught.is_err());
        std::process::exit(0);
    }
    let me = std::env::current_exe().expect("this program");
    let name = "records::a_panic_between_number_and_entry_ends_the_process";
    let mut child = std::process::Command::new(me);
    child.args(["--exact", name, "--nocapture"]).env(ROLE, "1");
    let output = child.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(!told.contains("the process goes on"), "{told}");
    assert_eq!(output.status.signal(), Some(6), "it aborts: {output:?}");
}
