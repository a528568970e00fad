//! Runs over files in memory, in which each operation fails once.

use super::*;
use driver::Inode;
use std::collections::BTreeMap;
use std::ffi::OsString;

const CONF: &str = "/etc/server.conf";

/// Files, their contents and permissions. One file is open at a time.
#[derive(Clone, Default)]
struct Disk {
    files: BTreeMap<PathBuf, (Vec<u8>, u32)>,
    open: Option<PathBuf>,
    /// Operations so far, by name.
    log: Vec<&'static str>,
}

const FILE: FileId = FileId { index: 0, generation: 7 };

impl Disk {
    fn with(files: &[(&str, &str, u32)]) -> Self {
        let file = |(path, text, mode): &(&str, &str, u32)| {
            (PathBuf::from(path), (text.as_bytes().to_vec(), *mode))
        };
        Self { files: files.iter().map(file).collect(), ..Self::default() }
    }

    fn text(&self, path: &str) -> Option<(&str, u32)> {
        let (text, mode) = self.files.get(Path::new(path))?;
        Some((std::str::from_utf8(text).expect("text"), *mode))
    }

    fn opened(&mut self) -> &mut (Vec<u8>, u32) {
        let open = self.open.as_ref().expect("it is open");
        self.files.get_mut(open).expect("it is there")
    }

    fn run(&mut self, op: FileOp) -> Result<FileValue, Errno> {
        let (name, result) = match op {
            FileOp::Open { path, how } => ("open", self.open(path, how)),
            FileOp::Read { at: 0, .. } => ("read", Ok(FileValue::Bytes(self.opened().0.clone()))),
            FileOp::Write { at: 0, bytes, .. } => {
                self.opened().0.clone_from(&bytes);
                ("write", Ok(FileValue::Written(bytes)))
            }
            FileOp::SetMode { mode, .. } => {
                self.opened().1 = mode;
                ("mode", Ok(FileValue::Done))
            }
            FileOp::SyncData { .. } => ("sync", Ok(FileValue::Done)),
            FileOp::Close { file: FILE } => {
                self.open.take().expect("it is open");
                ("close", Ok(FileValue::Done))
            }
            FileOp::Rename { from, to } => {
                let file = self.files.remove(&from).expect("it is there");
                self.files.insert(to, file);
                ("rename", Ok(FileValue::Done))
            }
            FileOp::Unlink { path } => {
                let removed = self.files.remove(&path).ok_or(Errno::NOENT);
                ("unlink", removed.map(|_| FileValue::Done))
            }
            FileOp::Status { path } => {
                let file = self.files.get(&path).ok_or(Errno::NOENT);
                let status = |(text, mode): &(Vec<u8>, u32)| FileValue::Status {
                    len: text.len() as u64,
                    mode: *mode,
                    is_folder: false,
                    inode: Inode::default(),
                };
                ("status", file.map(status))
            }
            FileOp::List { folder } => {
                let names = self.files.keys().filter(|path| path.parent() == Some(&folder));
                let name = |path: &PathBuf| OsString::from(path.file_name().expect("a file"));
                ("list", Ok(FileValue::Names(names.map(name).collect())))
            }
            FileOp::SyncFolder { folder } => {
                assert_eq!(folder, Path::new("/etc"));
                ("sync folder", Ok(FileValue::Done))
            }
            other => panic!("no run does this: {other:?}"),
        };
        self.log.push(name);
        result
    }

    fn open(&mut self, path: PathBuf, how: OpenHow) -> Result<FileValue, Errno> {
        assert!(self.open.is_none(), "the other one is closed");
        match (self.files.get(&path), how.create_new) {
            (None, false) => return Err(Errno::NOENT),
            (Some(_), true) => return Err(Errno::EXIST),
            (None, true) => drop(self.files.insert(path.clone(), (Vec::new(), how.mode))),
            (Some(_), false) => {}
        }
        self.open = Some(path);
        let len = self.opened().0.len() as u64;
        Ok(FileValue::Opened { file: FILE, len, inode: Inode::default() })
    }
}

/// Runs to the end. The operation of number `fails` fails without effect.
fn run(disk: &mut Disk, fails: Option<usize>) -> Result<(), Errno> {
    let (mut config, _) = Config::default().set(&[(b"hz", b"77")], true).expect("valid settings");
    config.file = Some(CONF.into());
    let (mut rewriting, mut op) = Rewriting::begin(1, Box::new(config));
    for number in 0.. {
        let outcome = if fails == Some(number) {
            // Also a close that fails has closed.
            disk.open.take_if(|_| matches!(op, FileOp::Close { .. }));
            Err(Errno::IO)
        } else {
            disk.run(op)
        };
        match rewriting.advance(outcome.map_err(|errno| FileError { errno, written: 0 })) {
            Next::Op(next) => op = next,
            Next::Over(written) => {
                assert!(disk.open.is_none(), "all is closed");
                return written;
            }
        }
    }
    unreachable!("a run ends")
}

#[test]
fn a_run_replaces_the_file_and_keeps_its_permissions() {
    let mut disk = Disk::with(&[(CONF, "# mine\nhz 10\n", 0o640)]);
    assert_eq!(run(&mut disk, None), Ok(()));
    assert_eq!(disk.text(CONF), Some(("# mine\nhz 77\n", 0o640)));
    assert_eq!(disk.files.len(), 1, "no temporary file stays");
    let order = [
        "open",
        "read",
        "close",
        "unlink",
        "open",
        "status",
        "mode",
        "write",
        "sync",
        "close",
        "rename",
        "sync folder",
    ];
    assert_eq!(disk.log, order);
}

#[test]
fn a_new_file_is_private() {
    let mut disk = Disk::with(&[]);
    assert_eq!(run(&mut disk, None), Ok(()));
    let (text, mode) = disk.text(CONF).expect("it is written");
    assert_eq!((text.ends_with("hz 77\n"), mode), (true, 0o600));
}

#[test]
fn a_leftover_is_removed_and_never_written_to() {
    let leftover = format!("{CONF}.{}.tmp", driver::process_id());
    let mut disk = Disk::with(&[(CONF, "hz 10\n", 0o600), (&leftover, "old", 0o666)]);
    assert_eq!(run(&mut disk, None), Ok(()));
    assert_eq!((disk.text(CONF), disk.files.len()), (Some(("hz 77\n", 0o600)), 1));
}

#[test]
fn included_files_are_asked_for() {
    let main = "hz 10\ninclude /etc/*/x.conf\ninclude /etc/one\n";
    let mut disk = Disk::with(&[(CONF, main, 0o600), ("/etc/one", "timeout 5\n", 0o600)]);
    assert_eq!(run(&mut disk, None), Ok(()));
    let expected = main.replace("hz 10", "hz 77");
    let (text, _) = disk.text(CONF).expect("it is written");
    // The included file sets a timeout, which is not the server's.
    assert!(text.starts_with(&expected) && text.ends_with("timeout 0\n"), "{text}");
}

/// Whatever fails: everything is closed, the old text or the new one stands there, no other file
/// stays, and the error is reported, except where the run can do without.
#[test]
fn each_operation_may_fail() {
    let old = "hz 10\ninclude /etc/one\n";
    let files = [(CONF, old, 0o640), ("/etc/one", "timeout 5\n", 0o600)];
    let mut whole = Disk::with(&files);
    assert_eq!(run(&mut whole, None), Ok(()));
    let new = whole.text(CONF).expect("it is written");
    let mut failed = 0;
    for number in 0..whole.log.len() {
        let mut disk = Disk::with(&files);
        let written = run(&mut disk, Some(number));
        assert_eq!(disk.files.len(), 2, "operation {number}, {}", whole.log[number]);
        let text = disk.text(CONF).expect("it stays");
        match (whole.log[number], written) {
            ("sync folder", Err(Errno::IO)) | ("close", Ok(())) => assert_eq!(text, new),
            // It stays private, or what is included stays unknown.
            ("status", Ok(())) => assert_eq!(text, (new.0, 0o600)),
            ("open" | "read", Ok(())) => assert!(text.0.starts_with("hz 77\n"), "{}", text.0),
            (_, Err(Errno::IO)) => {
                failed += 1;
                assert_eq!(text, (old, 0o640), "operation {number}, {}", whole.log[number]);
            }
            (name, other) => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(failed, 8, "open and read the old file, unlink, open, mode, write, sync, rename");
}
