//! Files behind a driver, on the system's own: with a helper thread (epoll) and with a ring.

mod model;

use crate::common::{Real, Ring, World};
use driver::files::{FILES_MAX, OPERATIONS_MAX};
use driver::poller::Poller;
use driver::reactor::Reactor;
use driver::{Driver, Event, FileDone, FileError, FileId, FileOp, FileValue, OpenHow};
use model::Actor;
use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

type Outcome = Result<FileValue, FileError>;

/// A driver and a folder of its own.
struct Disk<W: World> {
    driver: Reactor<W::P, u32>,
    folder: PathBuf,
    next_token: u64,
}

impl<W: World> Disk<W> {
    fn new(name: &str) -> Self {
        let world = std::any::type_name::<W>().rsplit(':').next().expect("a name");
        let folder = format!("sheafdb-files-{}-{world}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        Self { driver: W::new().driver(), folder, next_token: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts an operation; returns its token.
    fn start(&mut self, op: FileOp) -> u64 {
        self.next_token += 1;
        self.driver.file(self.next_token, op);
        self.next_token
    }

    /// Turns until `count` operations have completed; they are returned in that order.
    fn completions(&mut self, count: usize) -> Vec<FileDone> {
        let (mut done, since) = (Vec::new(), Instant::now());
        while done.len() < count {
            assert!(since.elapsed() < Duration::from_secs(60), "{} of {count}", done.len());
            // Without a wake-up the wait would last this long.
            let began = self.driver.refresh_now();
            self.driver.wait(Some(began.plus(WAIT_NS)));
            assert!(self.driver.now().since(began) < WAIT_NS, "nothing completes");
            while let Some(event) = self.driver.next() {
                match event {
                    Event::File(completed) => done.push(*completed),
                    other => panic!("nothing else happens: {other:?}"),
                }
            }
        }
        assert_eq!(done.len(), count, "{done:?}");
        done
    }

    /// Runs one operation.
    fn run(&mut self, op: FileOp) -> Outcome {
        let token = self.start(op);
        let done = self.completions(1).pop().expect("one");
        assert_eq!(done.token, token);
        done.outcome
    }

    fn open(&mut self, path: impl AsRef<Path>, how: OpenHow) -> FileId {
        match self.run(FileOp::Open { path: path.as_ref().to_owned(), how }) {
            Ok(FileValue::Opened { file, .. }) => file,
            other => panic!("{}: {other:?}", path.as_ref().display()),
        }
    }

    /// A new file in the folder, for reading and writing.
    fn create(&mut self, name: &str) -> FileId {
        self.open(self.path(name), OpenHow { create_new: true, mode: 0o600, ..READ_WRITE })
    }
}

/// Files that block.
impl<W: World> Disk<W> {
    /// A pipe which nobody writes to: the test's end, and the driver's.
    fn pipe(&mut self) -> (std::fs::File, FileId) {
        let path = self.path("pipe");
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
        let ours = std::fs::File::options().read(true).write(true).open(&path).expect("a pipe");
        (ours, self.open(&path, READ_WRITE))
    }

    /// Runs an operation that is refused, while others are in flight.
    fn run_refused(&mut self, op: FileOp) -> Errno {
        self.run(op).expect_err("it is refused").errno
    }

    /// Some turns in which nothing completes.
    fn assert_quiet(&mut self) {
        for _ in 0..20 {
            self.driver.wait(Some(self.driver.now().plus(1_000_000)));
            let event = self.driver.next();
            assert!(event.is_none(), "{event:?}");
        }
    }

    /// Open descriptors of this process for files of the folder whose names begin so.
    fn descriptors(&self, name: &str) -> usize {
        let begin = self.path(name).into_os_string().into_encoded_bytes();
        let all = std::fs::read_dir("/proc/self/fd").expect("it is there");
        let paths = all.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        paths.filter(|path| path.as_os_str().as_encoded_bytes().starts_with(&begin)).count()
    }
}

impl<W: World> Drop for Disk<W> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Longer than any operation takes.
const WAIT_NS: u64 = 40_000_000_000;

/// Set in the process that runs under a limit.
const CHILD: &str = "SHEAFDB_FILES_CHILD";

const READ_WRITE: OpenHow = OpenHow {
    read: true,
    write: true,
    append: false,
    create: false,
    create_new: false,
    truncate: false,
    mode: 0,
};
const READ: OpenHow = OpenHow { write: false, ..READ_WRITE };
const APPEND: OpenHow = OpenHow { append: true, ..READ_WRITE };

const fn failed(errno: Errno) -> Outcome {
    Err(FileError { errno, written: 0 })
}

/// One test per world.
macro_rules! on_the_system {
    ($($name:ident;)*) => {
        $(mod $name {
            #[test]
            fn epoll() {
                super::scenarios::$name::<super::Real>();
            }

            #[test]
            fn uring() {
                if <super::Ring as super::World>::is_here() {
                    super::scenarios::$name::<super::Ring>();
                }
            }
        })*
    };
}

on_the_system! {
    contents;
    names_and_folders;
    a_path_says_which_file_stands_there;
    appends;
    refusals;
    limits;
    a_close_waits_for_operations;
    a_slow_operation_holds_nobody_up;
    short_writes;
    a_driver_ends_with_operations_in_flight;
    a_model;
}

mod scenarios {
    use super::*;

    /// What is written at offsets is read, and the length follows.
    pub fn contents<W: World>() {
        let mut disk = Disk::<W>::new("contents");
        let path = disk.path("a");
        let file = disk.create("a");
        let hello = b"hello, file".to_vec();
        let written = disk.run(FileOp::Write { file, at: 0, bytes: hello.clone() });
        assert_eq!(written, Ok(FileValue::Written(hello.clone())));
        let read = disk.run(FileOp::Read { file, at: 7, bytes: 100 });
        assert_eq!(read, Ok(FileValue::Bytes(b"file".to_vec())), "less at the end of the file");
        assert_eq!(
            disk.run(FileOp::Read { file, at: 0, bytes: 5 }),
            Ok(FileValue::Bytes(b"hello".to_vec())),
        );
        let behind = disk.run(FileOp::Read { file, at: 11, bytes: 1 });
        assert_eq!(behind, Ok(FileValue::Bytes(Vec::new())));
        let hole = disk.run(FileOp::Write { file, at: 13, bytes: b"x".to_vec() });
        assert_eq!(hole, Ok(FileValue::Written(b"x".to_vec())));
        assert_eq!(std::fs::read(&path).expect("a file"), b"hello, file\0\0x");
        assert_eq!(disk.run(FileOp::Truncate { file, to: 5 }), Ok(FileValue::Done));
        assert_eq!(std::fs::read(&path).expect("a file"), b"hello");
        assert_eq!(disk.run(FileOp::Truncate { file, to: 7 }), Ok(FileValue::Done));
        assert_eq!(std::fs::read(&path).expect("a file"), b"hello\0\0");
        assert_eq!(disk.run(FileOp::SyncData { file }), Ok(FileValue::Done));
        let kept = disk.run(FileOp::Preallocate { file, from: 0, bytes: 1 << 20 });
        assert_eq!(kept, Ok(FileValue::Done));
        let status = std::fs::metadata(&path).expect("a file");
        let blocks = std::os::unix::fs::MetadataExt::blocks(&status);
        assert_eq!((status.len(), blocks >= (1 << 20) / 512), (7, true), "{blocks} blocks");
        assert_eq!(
            disk.run(FileOp::Write { file, at: 0, bytes: vec![] }),
            Ok(FileValue::Written(vec![]))
        );
        assert_eq!(disk.run(FileOp::Close { file }), Ok(FileValue::Done));
        let again = disk.run(FileOp::Open { path, how: READ });
        assert!(matches!(again, Ok(FileValue::Opened { len: 7, .. })), "{again:?}");
    }

    /// An open file and its path agree, until another file stands there.
    pub fn a_path_says_which_file_stands_there<W: World>() {
        let mut disk = Disk::<W>::new("inodes");
        let (a, b) = (disk.path("a"), disk.path("b"));
        let open = |disk: &mut Disk<W>, path: &PathBuf| {
            let how = OpenHow { create: true, mode: 0o600, ..READ_WRITE };
            match disk.run(FileOp::Open { path: path.clone(), how }) {
                Ok(FileValue::Opened { inode, .. }) => inode,
                other => panic!("{other:?}"),
            }
        };
        let stands = |disk: &mut Disk<W>, path: &PathBuf| match disk
            .run(FileOp::Status { path: path.clone() })
        {
            Ok(FileValue::Status { inode, .. }) => inode,
            other => panic!("{other:?}"),
        };
        let (first, second) = (open(&mut disk, &a), open(&mut disk, &b));
        assert_ne!(first, second);
        assert_eq!((stands(&mut disk, &a), stands(&mut disk, &b)), (first, second));
        disk.run(FileOp::Rename { from: b.clone(), to: a.clone() }).expect("renamed");
        assert_eq!(stands(&mut disk, &a), second);
    }

    /// Names come, change and go.
    pub fn names_and_folders<W: World>() {
        let mut disk = Disk::<W>::new("names");
        let (a, b, folder) = (disk.path("a"), disk.path("b"), disk.path("folder"));
        let file = disk.create("a");
        disk.run(FileOp::Write { file, at: 0, bytes: b"12345".to_vec() }).expect("written");
        assert_eq!(disk.run(FileOp::SetMode { file, mode: 0o640 }), Ok(FileValue::Done));
        let status = disk.run(FileOp::Status { path: a.clone() });
        let right =
            matches!(status, Ok(FileValue::Status { len: 5, mode: 0o640, is_folder: false, .. }));
        assert!(right, "{status:?}");
        std::fs::write(&b, "old").expect("a file");
        let renamed = disk.run(FileOp::Rename { from: a.clone(), to: b.clone() });
        assert_eq!(renamed, Ok(FileValue::Done));
        assert_eq!(disk.run(FileOp::Status { path: a.clone() }), failed(Errno::NOENT));
        assert_eq!(disk.run(FileOp::Status { path: b.clone() }), status);
        let made = disk.run(FileOp::CreateFolder { path: folder.clone(), mode: 0o700 });
        assert_eq!(made, Ok(FileValue::Done));
        let again = disk.run(FileOp::CreateFolder { path: folder.clone(), mode: 0o700 });
        assert_eq!(again, failed(Errno::EXIST));
        let status = disk.run(FileOp::Status { path: folder.clone() });
        let right = matches!(status, Ok(FileValue::Status { mode: 0o700, is_folder: true, .. }));
        assert!(right, "{status:?}");
        let Ok(FileValue::Names(mut names)) = disk.run(FileOp::List { folder: disk.path("") })
        else {
            panic!("names")
        };
        names.sort();
        assert_eq!(names, ["b", "folder"].map(OsString::from));
        assert_eq!(disk.run(FileOp::List { folder: folder.clone() }), Ok(FileValue::Names(vec![])));
        assert_eq!(disk.run(FileOp::List { folder: b.clone() }), failed(Errno::NOTDIR));
        assert_eq!(disk.run(FileOp::SyncFolder { folder: folder.clone() }), Ok(FileValue::Done));
        assert_eq!(disk.run(FileOp::SyncFolder { folder: b.clone() }), failed(Errno::NOTDIR));
        assert_eq!(disk.run(FileOp::SyncFolder { folder: a }), failed(Errno::NOENT));
        assert_eq!(disk.run(FileOp::Unlink { path: folder.clone() }), failed(Errno::ISDIR));
        let remove = |path: &PathBuf| FileOp::RemoveFolder { path: path.clone() };
        let inside = folder.join("inside");
        std::fs::write(&inside, "").expect("a file");
        assert_eq!(disk.run(remove(&folder)), failed(Errno::NOTEMPTY));
        assert_eq!(disk.run(remove(&inside)), failed(Errno::NOTDIR));
        assert_eq!(disk.run(FileOp::Unlink { path: inside }), Ok(FileValue::Done));
        assert_eq!(disk.run(remove(&folder)), Ok(FileValue::Done));
        assert_eq!(disk.run(remove(&folder)), failed(Errno::NOENT));
        assert_eq!(disk.run(FileOp::Unlink { path: b.clone() }), Ok(FileValue::Done));
        assert_eq!(disk.run(FileOp::Unlink { path: b }), failed(Errno::NOENT));
    }

    pub fn appends<W: World>() {
        let mut disk = Disk::<W>::new("appends");
        let path = disk.path("log");
        std::fs::write(&path, "begin ").expect("a file");
        let file = disk.open(&path, APPEND);
        for (bytes, all) in [("one ", "begin one "), ("two", "begin one two")] {
            let bytes = bytes.as_bytes().to_vec();
            let appended = disk.run(FileOp::Append { file, bytes: bytes.clone() });
            assert_eq!(appended, Ok(FileValue::Written(bytes)));
            assert_eq!(std::fs::read(&path).expect("a file"), all.as_bytes());
        }
        let read = disk.run(FileOp::Read { file, at: 6, bytes: 3 });
        assert_eq!(read, Ok(FileValue::Bytes(b"one".to_vec())));
        // The system would append it, whatever the offset.
        let write = disk.run(FileOp::Write { file, at: 0, bytes: b"x".to_vec() });
        assert_eq!(write, failed(Errno::INVAL));
        let plain = disk.open(&path, READ_WRITE);
        let append = disk.run(FileOp::Append { file: plain, bytes: b"x".to_vec() });
        assert_eq!(append, failed(Errno::INVAL));
        let emptied = disk.open(&path, OpenHow { truncate: true, ..READ_WRITE });
        let read = disk.run(FileOp::Read { file: emptied, at: 0, bytes: 3 });
        assert_eq!(read, Ok(FileValue::Bytes(Vec::new())));
    }

    pub fn refusals<W: World>() {
        let mut disk = Disk::<W>::new("refusals");
        let (missing, link) = (disk.path("missing"), disk.path("link"));
        let open = |path: &Path, how| FileOp::Open { path: path.to_owned(), how };
        assert_eq!(disk.run(open(&missing, READ)), failed(Errno::NOENT));
        std::os::unix::fs::symlink(&missing, &link).expect("a link");
        let new = OpenHow { create_new: true, mode: 0o600, ..READ_WRITE };
        assert_eq!(disk.run(open(&link, new)), failed(Errno::EXIST), "no link is followed");
        assert_eq!(disk.run(open(&missing, OpenHow::default())), failed(Errno::INVAL));
        let append = OpenHow { read: true, append: true, ..OpenHow::default() };
        assert_eq!(disk.run(open(&missing, append)), failed(Errno::INVAL));
        assert_eq!(disk.run(open(Path::new("a\0b"), READ)), failed(Errno::INVAL));
        // An identifier is stale from the moment in which its close is asked for.
        let file = disk.create("file");
        let (close, read) = (FileOp::Close { file }, FileOp::Read { file, at: 0, bytes: 1 });
        let tokens = [close.clone(), read.clone(), close.clone()].map(|op| disk.start(op));
        let mut done = disk.completions(3);
        done.sort_by_key(|done| done.token);
        let outcomes = [Ok(FileValue::Done), failed(Errno::BADF), failed(Errno::BADF)];
        for (done, (token, outcome)) in done.into_iter().zip(tokens.into_iter().zip(outcomes)) {
            assert_eq!((done.token, done.outcome), (token, outcome));
        }
        let next = disk.create("next");
        assert_eq!((next.index, next.generation != file.generation), (file.index, true));
        for op in [
            close,
            read,
            FileOp::Write { file, at: 0, bytes: vec![1] },
            FileOp::Append { file, bytes: vec![1] },
            FileOp::Truncate { file, to: 1 },
            FileOp::Preallocate { file, from: 0, bytes: 1 },
            FileOp::SyncData { file },
            FileOp::SetMode { file, mode: 0o777 },
        ] {
            assert_eq!(disk.run(op.clone()), failed(Errno::BADF), "{op:?}");
        }
        assert_eq!(
            disk.run(FileOp::Read { file: next, at: 0, bytes: 1 }).map_err(|e| e.errno),
            Ok(FileValue::Bytes(Vec::new()))
        );
        let read_only = disk.open(disk.path("next"), READ);
        let write = disk.run(FileOp::Write { file: read_only, at: 0, bytes: vec![1] });
        assert_eq!(write, failed(Errno::BADF));
        let huge = disk.run(FileOp::Read { file: next, at: u64::MAX, bytes: 1 });
        assert_eq!(huge, failed(Errno::INVAL));
        let all = disk.run(FileOp::Read { file: next, at: 0, bytes: usize::MAX });
        assert_eq!(all, Ok(FileValue::Bytes(Vec::new())), "no memory for what is not there");
    }

    /// At both bounds what is one too many is refused, and the others are not disturbed.
    pub fn limits<W: World>() {
        let mut disk = Disk::<W>::new("limits");
        let path = disk.path("");
        let tokens: Vec<u64> = (0..=OPERATIONS_MAX)
            .map(|_| disk.start(FileOp::Status { path: path.clone() }))
            .collect();
        let mut done = disk.completions(OPERATIONS_MAX + 1);
        done.sort_by_key(|done| done.token);
        assert!(done.iter().map(|done| done.token).eq(tokens), "each completes once");
        let last = done.pop().expect("the last");
        assert_eq!(last.outcome, failed(Errno::AGAIN));
        assert!(done.iter().all(|done| done.outcome.is_ok()));
        let file = disk.path("file");
        std::fs::write(&file, "").expect("a file");
        let open = FileOp::Open { path: file, how: READ };
        for _ in 0..FILES_MAX {
            disk.start(open.clone());
        }
        let mut files: Vec<_> = disk.completions(FILES_MAX);
        assert!(files.iter().all(|done| done.outcome.is_ok()));
        assert_eq!(disk.run(open.clone()), failed(Errno::MFILE));
        let Ok(FileValue::Opened { file, .. }) = files.pop().expect("one").outcome else {
            panic!("it is open")
        };
        assert_eq!(disk.run(FileOp::Close { file }), Ok(FileValue::Done));
        assert!(disk.run(open).is_ok(), "there is room again");
    }

    pub fn a_close_waits_for_operations<W: World>() {
        let mut disk = Disk::<W>::new("close");
        let (pipe, file) = disk.pipe();
        let read = disk.start(FileOp::Read { file, at: 0, bytes: 3 });
        let close = disk.start(FileOp::Close { file });
        assert_eq!(disk.run_refused(FileOp::SyncData { file }), Errno::BADF);
        disk.assert_quiet();
        (&pipe).write_all(b"abc").expect("there is room");
        let done = disk.completions(2);
        assert_eq!(
            [(done[0].token, &done[0].outcome), (done[1].token, &done[1].outcome)],
            [(read, &Ok(FileValue::Bytes(b"abc".to_vec()))), (close, &Ok(FileValue::Done))],
        );
        assert_eq!(disk.descriptors("pipe"), 1, "the test's own");
    }

    /// While an operation waits for its device, the worker does its other work.
    pub fn a_slow_operation_holds_nobody_up<W: World>() {
        let mut disk = Disk::<W>::new("slow");
        let (pipe, file) = disk.pipe();
        let read = disk.start(FileOp::Read { file, at: 0, bytes: 1 });
        for message in 0..100 {
            disk.driver.mailbox().post(message);
            disk.driver.wait(None);
            assert!(matches!(disk.driver.next(), Some(Event::Message(m)) if m == message));
            assert!(disk.driver.next().is_none());
        }
        if W::P::DEFERS {
            // On a ring, other operations overtake it.
            disk.run(FileOp::Status { path: disk.path("pipe") }).expect("it is there");
        }
        (&pipe).write_all(b"x").expect("there is room");
        let done = disk.completions(1).pop().expect("one");
        assert_eq!((done.token, done.outcome), (read, Ok(FileValue::Bytes(b"x".to_vec()))));
    }

    /// A write that meets a limit is written up to there; the error says how far.
    pub fn short_writes<W: World>() {
        const LIMIT: usize = 10_000;
        let name = format!("files::short_writes::{}", if W::P::DEFERS { "uring" } else { "epoll" });
        if std::env::var(CHILD).is_err() {
            // The limit is one of the process: a process of its own.
            let mut child = Command::new(std::env::current_exe().expect("this test"));
            let child = child.args(["--exact", &name, "--nocapture"]).env(CHILD, "1");
            let output = child.output().expect("it runs");
            let told = String::from_utf8_lossy(&output.stdout);
            let passed = output.status.success() && told.contains("1 passed");
            assert!(passed, "{told}{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        // The signal of this limit would end the process.
        let signalled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGXFSZ, signalled).expect("it may be handled");
        let limit = Rlimit { current: Some(LIMIT as u64), maximum: None };
        setrlimit(Resource::Fsize, limit).expect("less is allowed");
        let mut disk = Disk::<W>::new("short");
        let too_long: Vec<u8> = (0..LIMIT + 5000).map(|n| n as u8).collect();
        let file = disk.create("file");
        let full = disk.run(FileOp::Write { file, at: 4000, bytes: too_long.clone() });
        assert_eq!(full, Err(FileError { errno: Errno::FBIG, written: 6000 }));
        let file = disk.open(disk.path("log"), OpenHow { create: true, mode: 0o600, ..APPEND });
        let full = disk.run(FileOp::Append { file, bytes: too_long.clone() });
        assert_eq!(full, Err(FileError { errno: Errno::FBIG, written: LIMIT }));
        assert_eq!(std::fs::read(disk.path("log")).expect("a file"), too_long[..LIMIT]);
        let device = disk.open("/dev/full", READ_WRITE);
        let full = disk.run(FileOp::Write { file: device, at: 0, bytes: vec![1; 100] });
        assert_eq!(full, failed(Errno::NOSPC));
    }

    /// What is in flight uses its own memory only, and leaves no open file.
    pub fn a_driver_ends_with_operations_in_flight<W: World>() {
        for round in 0..20u64 {
            let mut disk = Disk::<W>::new("ends");
            let (pipe, file) = disk.pipe();
            let big = disk.create("big");
            const SIZE: usize = 50_000;
            disk.start(FileOp::Read { file, at: 0, bytes: SIZE });
            for n in 0..100 {
                disk.start(FileOp::Write { file: big, at: n * 64, bytes: vec![7; SIZE] });
                let path = disk.path(&format!("file {n}"));
                let how = OpenHow { create: true, mode: 0o600, ..READ_WRITE };
                disk.start(FileOp::Open { path, how });
            }
            disk.start(FileOp::Close { file: big });
            if round % 2 == 0 {
                // They have begun; otherwise most are queued only.
                disk.driver.wait(Some(disk.driver.now()));
            }
            let spare = W::new().driver();
            drop(std::mem::replace(&mut disk.driver, spare));
            // Who used freed memory would write into these.
            let canaries: Vec<Vec<u8>> = (0..200).map(|_| vec![0x55; SIZE]).collect();
            (&pipe).write_all(&vec![0xaa; SIZE]).expect("there is room");
            let since = Instant::now();
            while disk.descriptors("") > 1 {
                assert!(since.elapsed() < Duration::from_secs(120), "{}", disk.descriptors(""));
                std::thread::yield_now();
            }
            assert!(canaries.iter().flatten().all(|byte| *byte == 0x55));
        }
    }

    /// Random operations on many files at once, against a model in memory.
    pub fn a_model<W: World>() {
        const ACTORS: u64 = 16;
        const STEPS: u64 = 100_000 / ACTORS;
        let mut disk = Disk::<W>::new("model");
        let mut actors: Vec<Actor> =
            (0..ACTORS).map(|n| Actor::new(disk.path(&n.to_string()), n)).collect();
        for actor in &actors {
            disk.run(FileOp::CreateFolder { path: actor.folder.clone(), mode: 0o700 })
                .expect("a folder");
        }
        for _ in 0..STEPS {
            let first = disk.next_token + 1;
            for actor in &mut actors {
                disk.start(actor.next_op());
            }
            for done in disk.completions(actors.len()) {
                actors[(done.token - first) as usize].check(done.outcome);
            }
        }
        for actor in &actors {
            for (name, contents) in &actor.model.names {
                assert_eq!(&std::fs::read(actor.folder.join(name)).expect("a file"), contents);
            }
        }
    }
}
