//! Files behind a driver, on the system's own: with a helper thread (epoll) and with a ring.

mod common;

use common::{Real, Ring, World};
use driver::reactor::Reactor;
use driver::{Driver, Event, FileDone, FileError, FileId, FileOp, FileValue, OpenHow};
use rustix::io::Errno;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
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
            let until = self.driver.now().plus(1_000_000_000);
            self.driver.wait(Some(until));
            while let Some(event) = self.driver.next() {
                match event {
                    Event::File(completed) => done.push(completed),
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

impl<W: World> Drop for Disk<W> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

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

    /// Names come, change and go.
    pub fn names_and_folders<W: World>() {
        let mut disk = Disk::<W>::new("names");
        let (a, b, folder) = (disk.path("a"), disk.path("b"), disk.path("folder"));
        let file = disk.create("a");
        disk.run(FileOp::Write { file, at: 0, bytes: b"12345".to_vec() }).expect("written");
        assert_eq!(disk.run(FileOp::SetMode { file, mode: 0o640 }), Ok(FileValue::Done));
        let status = FileValue::Status { len: 5, mode: 0o640, is_folder: false };
        assert_eq!(disk.run(FileOp::Status { path: a.clone() }), Ok(status.clone()));
        std::fs::write(&b, "old").expect("a file");
        let renamed = disk.run(FileOp::Rename { from: a.clone(), to: b.clone() });
        assert_eq!(renamed, Ok(FileValue::Done));
        assert_eq!(disk.run(FileOp::Status { path: a.clone() }), failed(Errno::NOENT));
        assert_eq!(disk.run(FileOp::Status { path: b.clone() }), Ok(status));
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
        assert_eq!(disk.run(FileOp::Unlink { path: folder }), failed(Errno::ISDIR));
        assert_eq!(disk.run(FileOp::Unlink { path: b.clone() }), Ok(FileValue::Done));
        assert_eq!(disk.run(FileOp::Unlink { path: b }), failed(Errno::NOENT));
    }
}
