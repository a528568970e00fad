//! The engine over a back end whose results a test chooses.

use super::*;
use crate::files::Inode;
use std::collections::VecDeque;

/// What a call was, without its memory.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Open,
    Measure,
    /// Offset, bytes wanted.
    Read(u64, usize),
    /// Offset, bytes.
    Write(Option<u64>, Vec<u8>),
    Sync,
    Close,
}

/// A reply to a call.
type Reply = Result<RawValue<u32>, Errno>;

/// Answers each call with the next reply; an open file is a number.
#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    calls: Vec<Call>,
    /// Calls of which the test says when they complete.
    is_held: bool,
    done: Vec<RawDone<u32>>,
}

impl RawFiles for Script {
    type File = u32;

    fn submit_file(&mut self, number: u32, op: RawOp<u32>) {
        let result = self.replies.pop_front().expect("a reply for each call");
        let (call, mut buffer) = match op {
            RawOp::Open { .. } => (Call::Open, vec![]),
            RawOp::Measure { .. } => (Call::Measure, vec![]),
            RawOp::Read { at, room, buffer, .. } => (Call::Read(at, room), buffer),
            RawOp::Write { at, bytes, from, room, .. } => {
                (Call::Write(at, bytes[from..from + room].to_vec()), bytes)
            }
            RawOp::Sync { .. } => (Call::Sync, vec![]),
            RawOp::Close { .. } => (Call::Close, vec![]),
            other => panic!("no test does this: {other:?}"),
        };
        if let (Call::Read(..), Ok(RawValue::Count(count))) = (&call, &result) {
            buffer.resize(buffer.len() + count, b'r');
        }
        self.calls.push(call);
        self.done.push(RawDone { number, buffer, result });
    }

    fn completed_files(&mut self, into: &mut Vec<RawDone<u32>>) {
        if !self.is_held {
            into.append(&mut self.done);
        }
    }
}

const INODE: Inode = Inode { device: 1, number: 7 };
const STATUS: RawValue<u32> = RawValue::Status { len: 9, mode: 0, is_folder: false, inode: INODE };
const HOW: OpenHow = OpenHow {
    read: true,
    write: true,
    append: false,
    create: false,
    create_new: false,
    truncate: false,
    mode: 0,
};

/// Runs an operation over these replies.
fn run(files: &mut Files<u32>, op: FileOp, replies: Vec<Reply>) -> (Outcome, Vec<Call>) {
    let mut script = Script { replies: replies.into(), ..Script::default() };
    files.start(&mut script, 5, op);
    while !files.has_done() {
        files.advance_all(&mut script);
    }
    assert!(script.replies.is_empty(), "not called: {:?}", script.replies);
    let done = files.next_done().expect("it has completed");
    assert_eq!((done.token, files.next_done()), (5, None));
    (done.outcome, script.calls)
}

fn opened(how: OpenHow) -> (Files<u32>, FileId) {
    let mut files = Files::new();
    let replies = vec![Ok(RawValue::File(3)), Ok(STATUS)];
    let (outcome, calls) = run(&mut files, FileOp::Open { path: "a".into(), how }, replies);
    let Ok(FileValue::Opened { file, len: 9, inode: INODE }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(calls, [Call::Open, Call::Measure]);
    (files, file)
}

#[test]
fn short_reads_are_continued_to_the_end_of_the_file() {
    let (mut files, file) = opened(HOW);
    let read = FileOp::Read { file, at: 100, bytes: 10 };
    let counts = |counts: &[usize]| counts.iter().map(|n| Ok(RawValue::Count(*n))).collect();
    let (outcome, calls) = run(&mut files, read.clone(), counts(&[4, 5, 1]));
    assert_eq!(outcome, Ok(FileValue::Bytes(vec![b'r'; 10])));
    assert_eq!(calls, [Call::Read(100, 10), Call::Read(104, 6), Call::Read(109, 1)]);
    let (outcome, calls) = run(&mut files, read.clone(), counts(&[4, 0]));
    assert_eq!((outcome, calls.len()), (Ok(FileValue::Bytes(vec![b'r'; 4])), 2));
    let replies = vec![Ok(RawValue::Count(4)), Err(Errno::IO)];
    assert_eq!(run(&mut files, read, replies).0, Err(Errno::IO.into()));
    // A long read is read in pieces.
    let read = FileOp::Read { file, at: 0, bytes: READ_MAX + 1 };
    let (_, calls) = run(&mut files, read, counts(&[READ_MAX, 1]));
    assert_eq!(calls, [Call::Read(0, READ_MAX), Call::Read(READ_MAX as u64, 1)]);
}

#[test]
fn short_writes_are_continued_and_an_error_says_how_far() {
    for append in [false, true] {
        let (mut files, file) = opened(OpenHow { append, ..HOW });
        let bytes = b"abcdef".to_vec();
        let op = if append {
            FileOp::Append { file, bytes: bytes.clone() }
        } else {
            FileOp::Write { file, at: 100, bytes: bytes.clone() }
        };
        let at = |n: u64| (!append).then_some(100 + n);
        let counts = |counts: &[usize]| counts.iter().map(|n| Ok(RawValue::Count(*n))).collect();
        let (outcome, calls) = run(&mut files, op.clone(), counts(&[1, 3, 2]));
        assert_eq!(outcome, Ok(FileValue::Written(bytes)));
        let part = |n, bytes: &[u8]| Call::Write(at(n), bytes.to_vec());
        assert_eq!(calls, [part(0, b"abcdef"), part(1, b"bcdef"), part(4, b"ef")]);
        let replies = vec![Ok(RawValue::Count(4)), Err(Errno::NOSPC)];
        let error = FileError { errno: Errno::NOSPC, written: 4 };
        assert_eq!(run(&mut files, op.clone(), replies).0, Err(error));
        // Nothing written and no error: it must not be tried for ever.
        let error = FileError { errno: Errno::IO, written: 2 };
        assert_eq!(run(&mut files, op, counts(&[2, 0])).0, Err(error));
    }
}

#[test]
fn what_is_not_reported_is_closed() {
    let mut files = Files::new();
    let open = FileOp::Open { path: "a".into(), how: HOW };
    let replies = vec![Ok(RawValue::File(3)), Err(Errno::IO), Ok(RawValue::Done)];
    let (outcome, calls) = run(&mut files, open, replies);
    assert_eq!(outcome, Err(Errno::IO.into()));
    assert_eq!(calls, [Call::Open, Call::Measure, Call::Close]);
    let sync = FileOp::SyncFolder { folder: "f".into() };
    for synced in [Ok(()), Err(Errno::IO)] {
        let reply = synced.map(|()| RawValue::Done);
        let replies = vec![Ok(RawValue::File(3)), reply, Ok(RawValue::Done)];
        let (outcome, calls) = run(&mut files, sync.clone(), replies);
        assert_eq!(outcome, synced.map(|()| FileValue::Done).map_err(FileError::from));
        assert_eq!(calls, [Call::Open, Call::Sync, Call::Close]);
    }
}

#[test]
fn a_close_comes_after_the_last_operation() {
    let (mut files, file) = opened(HOW);
    let count = || Ok(RawValue::Count(1));
    let replies = [count(), count(), Ok(RawValue::Done)];
    let mut script = Script { replies: replies.into(), is_held: true, ..Script::default() };
    for token in [1, 2] {
        let bytes = vec![b'w'];
        files.start(&mut script, token, FileOp::Write { file, at: token, bytes });
    }
    files.start(&mut script, 3, FileOp::Close { file });
    files.advance_all(&mut script);
    assert_eq!((script.calls.len(), files.has_done()), (2, false));
    let first = script.done.remove(0);
    files.on_call(&mut script, first);
    assert_eq!((script.calls.len(), files.next_done().map(|d| d.token)), (2, Some(1)));
    let second = script.done.remove(0);
    files.on_call(&mut script, second);
    assert_eq!(script.calls.last(), Some(&Call::Close));
    assert_eq!((files.next_done().map(|d| d.token), files.has_done()), (Some(2), false));
    script.is_held = false;
    files.advance_all(&mut script);
    assert_eq!(files.next_done().map(|d| (d.token, d.outcome)), Some((3, Ok(FileValue::Done))));
}

#[test]
fn an_identifier_is_of_one_file() {
    let (mut files, file) = opened(HOW);
    assert_eq!(
        run(&mut files, FileOp::Close { file }, vec![Ok(RawValue::Done)]).0.ok(),
        Some(FileValue::Done)
    );
    let open = FileOp::Open { path: "b".into(), how: HOW };
    let (outcome, _) = run(&mut files, open, vec![Ok(RawValue::File(4)), Ok(STATUS)]);
    let Ok(FileValue::Opened { file: next, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((next.index, next == file), (file.index, false));
    for op in [FileOp::SyncData { file }, FileOp::Close { file }] {
        assert_eq!(run(&mut files, op, vec![]), (Err(Errno::BADF.into()), vec![]));
    }
}
