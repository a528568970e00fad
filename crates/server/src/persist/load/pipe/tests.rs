//! The order of work, with hand-made files.

use super::*;
use rdb::file::{self, ScanOptions, Scanned};

/// The chunks of a file with one key.
fn keys(name: &str) -> Chunk {
    let mut bytes = b"REDIS0010\xfe\x00\x00".to_vec();
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend(b"\x011\xff\0\0\0\0\0\0\0\0");
    let mut scanner = Scanner::new(ScanOptions::default());
    scanner.feed(&bytes);
    loop {
        match scanner.next().expect("a good file") {
            Scanned::Chunk(file::Chunk::Keys(keys)) => return Chunk::Keys(keys),
            Scanned::Chunk(_) => {}
            other => panic!("no keys: {other:?}"),
        }
    }
}

fn part(n: u8) -> Chunk {
    Chunk::Long(LongChunk::Part(vec![n]))
}

/// A pipe whose scanner has found these chunks in a first block.
fn filled(threads: usize, chunks: Vec<Chunk>) -> Pipe {
    let pipe = Pipe::new(threads);
    pipe.begin(Scanner::new(ScanOptions::default()));
    pipe.add(vec![1]);
    let Work::Scan(scanner, Some(block)) = pipe.take() else { panic!("a block is there") };
    assert_eq!((block, pipe.queued()), (vec![1], 0));
    pipe.scanned(scanner, chunks, None);
    pipe
}

fn error(offset: u64) -> LoadError {
    LoadError::new(offset, format!("at {offset}"))
}

fn complete() -> Option<Result<Summary, LoadError>> {
    let mut scanner = Scanner::new(ScanOptions::default());
    scanner.feed(b"REDIS0010\xff\0\0\0\0\0\0\0\0");
    loop {
        match scanner.next().expect("a good file") {
            Scanned::Complete(summary) => return Some(Ok(summary)),
            Scanned::More => panic!("it is whole"),
            Scanned::Chunk(_) => {}
        }
    }
}

#[test]
fn parts_of_long_values_are_built_one_after_the_other_and_keys_beside_them() {
    let pipe = filled(4, vec![part(1), part(2), keys("a"), keys("b")]);
    assert!(matches!(pipe.take(), Work::Long(None, LongChunk::Part(p)) if p == [1]));
    // The value is out: its next part waits, the keys do not.
    assert!(matches!(pipe.take(), Work::Keys(_)));
    pipe.return_long(None);
    assert!(matches!(pipe.take(), Work::Long(None, LongChunk::Part(p)) if p == [2]));
    assert!(matches!(pipe.take(), Work::Keys(_)));
}

#[test]
fn nobody_scans_while_enough_chunks_are_ready() {
    let pipe = filled(1, vec![keys("a"), keys("b"), keys("c")]);
    pipe.add(vec![2]);
    assert!(matches!(pipe.take(), Work::Keys(_)), "three are enough for one thread");
    assert!(matches!(pipe.take(), Work::Keys(_)), "two still are");
    assert!(matches!(pipe.take(), Work::Scan(_, Some(block)) if block == [2]));
}

#[test]
fn an_error_of_a_key_is_reported_rather_than_that_of_the_scanner_behind_it() {
    let pipe = filled(2, vec![keys("a"), keys("b")]);
    pipe.end_of_file();
    let Work::Scan(scanner, None) = pipe.take() else { panic!("behind the last block") };
    pipe.scanned(scanner, Vec::new(), Some(Err(error(900))));
    assert!(matches!(pipe.take(), Work::Keys(_)), "what is before is built first");
    assert!(matches!(pipe.take(), Work::Keys(_)));
    pipe.fail(error(40));
    pipe.fail(error(20));
    pipe.fail(error(30));
    assert!(matches!(pipe.take(), Work::End));
    assert!(pipe.end().is_none(), "the threads have not ended");
    assert!(!pipe.leave() && pipe.leave());
    assert_eq!(pipe.end().map(|end| end.map_err(|e| e.offset).map(|_| ())), Some(Err(20)));
}

#[test]
fn it_is_complete_when_all_chunks_are_built() {
    let pipe = filled(1, vec![keys("a")]);
    pipe.end_of_file();
    let Work::Scan(scanner, None) = pipe.take() else { panic!("behind the last block") };
    pipe.scanned(scanner, Vec::new(), complete());
    assert!(matches!(pipe.take(), Work::Keys(_)));
    assert!(matches!(pipe.take(), Work::End));
    assert!(pipe.leave());
    assert!(matches!(pipe.end(), Some(Ok(_))));
}

#[test]
fn a_cancelled_pipe_has_no_work_and_no_end() {
    let pipe = filled(1, vec![keys("a")]);
    assert!(!pipe.cancellation().load(Relaxed));
    pipe.cancel();
    assert!(pipe.cancellation().load(Relaxed));
    assert!(matches!(pipe.take(), Work::End));
    assert!(pipe.leave() && pipe.end().is_none());
}
