//! Disks that fail: full, read-only, and a folder that is removed. A file system in memory stands
//! for the disk; where it may not be mounted, the tests are skipped (`permitted`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::permitted::skip;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

use super::order::await_written;

/// Size of the disk.
pub(super) const SIZE: &str = "size=4m";

/// A mounted file system, unmounted when it is dropped.
pub(super) struct Mount(pub(super) PathBuf);

impl Mount {
    /// `None` if this process may not mount.
    pub(super) fn new(at: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir_all(&at).expect("a folder");
        let mut command = Command::new("mount");
        let out = command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&at).output();
        match out {
            Ok(out) if out.status.success() => Some(Self(at)),
            other => {
                skip(&format!("a file system cannot be mounted: {other:?}"));
                None
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A server may still be ending there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn start(dir: &str, fsync: &str) -> ServerProcess {
    let words = ["--dir", dir, "--appendonly", "yes", "--appendfsync", fsync, "--threads", "2"];
    ServerProcess::start(&Binary::under_test(), &words)
}

pub(super) fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with(b"MISCONF"))
}

pub(super) fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// Whether INFO has this line.
fn info(server: &ServerProcess, line: &str) -> bool {
    let info = server.connect().command(&["INFO", "persistence"]).expect("an answer");
    let (Value::Bulk(text) | Value::Verbatim(text)) = info else { panic!("{info:?}") };
    String::from_utf8_lossy(&text).lines().any(|one| one == line)
}

/// Whether the disk fails. With `appendfsync always` no reply leaves then, so the log tells.
pub(super) fn fails(server: &ServerProcess) -> bool {
    let log = server.log();
    log.rfind("Writes are refused") > log.rfind("The append-only file is written again")
}

/// What was written until the disk failed.
pub(super) struct Filled {
    /// How many keys were acknowledged.
    pub(super) keys: usize,
    /// Waits for the reply to the key behind these: it is in memory and cannot be written.
    pub(super) waits: Option<Wire>,
}

/// Writes keys of 20,000 bytes until one is not acknowledged.
pub(super) fn fill(server: &ServerProcess, from: usize) -> Filled {
    let text = "x".repeat(20_000);
    for keys in from.. {
        let mut wire = server.connect();
        wire.send(&encode(&["SET", &format!("key{keys}"), &text])).expect("sent");
        let mut has_reply = false;
        until("it is answered, or the disk fails", || {
            has_reply = wire.has_reply(Duration::from_millis(1)).expect("it is open");
            has_reply || fails(server)
        });
        if !has_reply && !wire.has_reply(Duration::from_millis(1)).expect("it is open") {
            return Filled { keys, waits: Some(wire) };
        }
        let reply = wire.receive().expect("an answer");
        if is_refused(&reply) {
            return Filled { keys, waits: None };
        }
        assert_eq!(reply, ok());
    }
    unreachable!("the disk is small")
}

/// Writes are refused, and reads go on. (With `always` both wait with what is in memory.)
fn assert_refuses(server: &ServerProcess) {
    until("writes are refused", || fails(server));
    let mut wire = server.connect();
    assert!(is_refused(&wire.command(&["DEL", "key0"]).expect("an answer")));
    assert_eq!(wire.command(&["STRLEN", "key0"]).expect("an answer"), Value::Int(20_000));
}

/// By itself it writes again: also what waited is acknowledged.
pub(super) fn await_recovery(server: &ServerProcess, filled: &mut Filled) {
    until("writes work again", || {
        server.connect().command(&["SET", "again", "1"]).expect("an answer") == ok()
    });
    if let Some(mut wire) = filled.waits.take() {
        assert_eq!(wire.receive().expect("an answer"), ok());
        filled.keys += 1;
    }
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    for fsync in ["always", "everysec"] {
        let folder = Folder::new(&format!("disk-full-{fsync}"));
        let Some(mount) = Mount::new(folder.at("disk"), SIZE) else { return };
        let dir = mount.0.to_str().expect("plain").to_owned();
        let filler = mount.0.join("filler");
        fs::write(&filler, vec![0; 1 << 20]).expect("there is space");
        let server = start(&dir, fsync);
        let mut filled = fill(&server, 0);
        if fsync == "everysec" {
            assert_refuses(&server);
        }
        fs::remove_file(&filler).expect("it is there");
        await_recovery(&server, &mut filled);
        let first = filled.keys;
        let mut filled = fill(&server, first);
        assert!(filled.keys > first + 20, "{first} {}", filled.keys);
        if fsync == "everysec" {
            assert_refuses(&server);
            // What was acknowledged and not written stays in memory until there is space.
            remount(&mount, "remount,size=8m");
            await_recovery(&server, &mut filled);
            await_written(&mut server.connect());
            server.kill();
        } else {
            server.kill();
            remount(&mount, "remount,size=8m");
        }
        let second = filled.keys;
        let server = start(&dir, fsync);
        let mut wire = server.connect();
        for n in 0..second {
            let len = wire.command(&["STRLEN", &format!("key{n}")]).expect("an answer");
            assert_eq!(len, Value::Int(20_000), "{fsync}: key{n} of {second}");
        }
        drop(server);
    }
}

fn remount(mount: &Mount, options: &str) {
    let status = Command::new("mount").args(["-o", options]).arg(&mount.0).status();
    assert!(status.expect("mount runs").success(), "{options}");
}

/// A read-only file system is mounted over the folder: the file is not there any more, and new ones
/// cannot be made.
#[test]
fn a_folder_that_cannot_be_written_refuses_writes_until_it_can() {
    let folder = Folder::new("disk-read-only");
    let server = start(folder.path(), "always");
    let text = "x".repeat(20_000);
    let reply = server.connect().command(&["SET", "key0", &text]).expect("an answer");
    assert_eq!(reply, ok());
    let Some(mount) = Mount::new(folder.at("appendonlydir"), "ro") else { return };
    until("it is noticed", || fails(&server));
    let mut filled = fill(&server, 1);
    drop(mount);
    await_recovery(&server, &mut filled);
    server.kill();
    let server = start(folder.path(), "always");
    let mut wire = server.connect();
    for n in 0..filled.keys {
        let len = wire.command(&["STRLEN", &format!("key{n}")]).expect("an answer");
        assert_eq!(len, Value::Int(20_000), "key{n} of {}", filled.keys);
    }
}

/// What happens to the files of a running server.
#[derive(Clone, Copy, Debug)]
enum Gone {
    /// The folder is removed.
    Folder,
    /// It is renamed, and an old copy stands in its place.
    Copied,
    /// Only the file that is appended to is removed.
    Segment,
}

fn remove(folder: &Folder, gone: Gone) {
    let dir = folder.at("appendonlydir");
    let files = || fs::read_dir(&dir).expect("it is there").map(|entry| entry.expect("a file"));
    match gone {
        Gone::Folder => fs::remove_dir_all(&dir).expect("it is there"),
        Gone::Copied => {
            let copy = folder.at("copy");
            fs::create_dir(&copy).expect("a folder");
            for file in files() {
                fs::copy(file.path(), copy.join(file.file_name())).expect("it is there");
            }
            fs::rename(&dir, folder.at("moved")).expect("it is there");
            fs::rename(&copy, &dir).expect("it is there");
        }
        Gone::Segment => {
            let paths = files().map(|file| file.path());
            let last = paths.filter(|path| path.to_string_lossy().ends_with(".incr.aof")).max();
            fs::remove_file(last.expect("a segment")).expect("it is there");
        }
    }
}

/// Regression: the open file went on without a name. Writes were acknowledged, and a restart found
/// nothing of them. A new base makes all of it durable, by itself.
#[test]
fn files_that_are_removed_are_made_again() {
    for (fsync, gone) in [
        ("always", Gone::Folder),
        ("everysec", Gone::Folder),
        ("always", Gone::Copied),
        ("everysec", Gone::Segment),
    ] {
        let folder = Folder::new(&format!("disk-removed-{fsync}-{gone:?}"));
        let server = start(folder.path(), fsync);
        let mut wire = server.connect();
        assert_eq!(wire.command(&["SET", "a", "1"]).expect("an answer"), ok());
        await_written(&mut wire);
        remove(&folder, gone);
        // Either it is acknowledged before anybody notices, or it is refused, or it waits.
        let mut early = server.connect();
        early.send(&encode(&["SET", "b", "1"])).expect("sent");
        until("it is noticed, and a new base begun", || {
            server.log().contains("The append-only file begins anew")
        });
        until("writes work", || {
            server.connect().command(&["SET", "c", "1"]).expect("an answer") == ok()
        });
        let is_refused = is_refused(&early.receive().expect("an answer"));
        assert!(info(&server, "aof_last_write_status:ok"), "{gone:?}");
        await_written(&mut wire);
        server.kill();
        let server = start(folder.path(), fsync);
        for key in ["a", "b", "c"] {
            let value = server.connect().command(&["GET", key]).expect("an answer");
            let is_there = value == Value::Bulk(b"1".to_vec());
            assert!(is_there || key == "b" && is_refused, "{fsync}, {gone:?}: {key}: {value:?}");
        }
    }
}
