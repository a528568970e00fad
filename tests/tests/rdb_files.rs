//! Files of `tests/rdb/files`, which real servers wrote or which were made by hand, are loaded with
//! the recorded state; what the server saves is loaded by redis-server with the same state.
//!
//! `RDB_FILE=part-of-a-name` runs the files of that name alone.

use std::fs;
use std::path::{Path, PathBuf};

use sheafdb_tests::program::root;
use sheafdb_tests::rdb_state::state;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

/// The newest version that redis-server 7.0 loads.
const VERSION_7_0: u32 = 10;

/// A file, and what it holds.
struct Recorded {
    name: String,
    rdb: Vec<u8>,
    /// Arguments of a server which is to load it.
    args: Vec<String>,
    /// The state after that.
    state: String,
}

impl Recorded {
    fn read(path: &Path) -> Self {
        let rdb = fs::read(path).expect("a file of this repository");
        let text = fs::read_to_string(path.with_extension("txt")).expect("its state is beside it");
        let (args, state) = match text.strip_prefix("args ") {
            Some(rest) => rest.split_once('\n').expect("a line"),
            None => ("", text.as_str()),
        };
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let args = args.split_whitespace().map(str::to_owned).collect();
        Self { name, rdb, args, state: state.to_owned() }
    }

    /// All of them, or those whose name contains `RDB_FILE`.
    fn all() -> Vec<Self> {
        let wanted = std::env::var("RDB_FILE").unwrap_or_default();
        let folder = root().join("tests/rdb/files");
        let entries = fs::read_dir(folder).expect("a folder of this repository");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a name").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "rdb"));
        paths.sort();
        let mut all: Vec<Self> = paths.iter().map(|path| Self::read(path)).collect();
        all.retain(|file| file.name.contains(&wanted));
        assert!(!all.is_empty(), "no file is called '{wanted}'");
        all
    }

    /// The state without its functions, which only some servers report.
    fn data(&self) -> String {
        let lines = self.state.lines().filter(|line| !line.starts_with("function "));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// The version at its beginning.
    fn version(&self) -> u32 {
        let digits = self.rdb[..9].iter().filter(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
    }
}

/// A folder with a snapshot file, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, rdb: &[u8]) -> Self {
        let name = format!("sheafdb-rdb-files-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join("dump.rdb"), rdb).expect("a file");
        Self(path)
    }

    fn start(&self, binary: &Binary, args: &[String]) -> ServerProcess {
        let dir = self.0.display().to_string();
        let mut words = vec!["--dir", dir.as_str()];
        words.extend(args.iter().map(String::as_str));
        ServerProcess::start(binary, &words)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Fails with the lines that differ.
fn compare(what: &str, expected: &str, got: &str) {
    if expected == got {
        return;
    }
    let (expected, got): (Vec<_>, Vec<_>) = (expected.lines().collect(), got.lines().collect());
    let only = |mark: &str, these: &[&str], others: &[&str]| -> String {
        let lines = these.iter().filter(|line| !others.contains(line)).take(20);
        lines.map(|line| format!("\n{mark} {line}")).collect()
    };
    let (missing, more) = (only("-", &expected, &got), only("+", &got, &expected));
    panic!("{what}: expected (-) and got (+){missing}{more}");
}

/// The active times of consumers are left out where the recording server does not know them.
fn like(expected: &str, got: &str) -> String {
    if expected.contains(" active ") {
        return got.to_owned();
    }
    let line = |line: &str| {
        let is_consumer = line.starts_with("  consumer ");
        let end = line.rfind(" active ").filter(|_| is_consumer).unwrap_or(line.len());
        format!("{}\n", &line[..end])
    };
    got.lines().map(line).collect()
}

fn resp3(server: &ServerProcess) -> Wire {
    let mut wire = server.connect();
    wire.command(&["HELLO", "3"]).expect("HELLO is answered");
    wire
}

#[test]
fn every_file_is_loaded_with_the_recorded_state() {
    for file in Recorded::all() {
        let folder = Folder::new(&file.name, &file.rdb);
        let server = folder.start(&Binary::under_test(), &file.args);
        let expected = file.data();
        // RESP3 comes second: by then RESP2 has used the keys, so it does not see how often and
        // when they were used.
        let got = state(&mut server.connect(), false);
        compare(&file.name, &expected, &like(&expected, &got));
        if file.args.is_empty() {
            let got = state(&mut resp3(&server), false);
            compare(&format!("{} in RESP3", file.name), &expected, &like(&expected, &got));
        }
    }
}

/// DEBUG DIGEST-VALUE of every key, in the order of databases and names.
fn digests(wire: &mut Wire) -> Vec<(u32, Vec<u8>, Value)> {
    let mut all = Vec::new();
    for db in 0..16 {
        wire.command(&["SELECT", &db.to_string()]).expect("it has this database");
        let keys = wire.command(&["KEYS", "*"]).expect("KEYS is answered");
        let Value::Array(keys) = keys else { panic!("no keys: {keys:?}") };
        for key in keys {
            let Value::Bulk(key) = key else { panic!("no name: {key:?}") };
            let digest = wire.command(&[b"DEBUG", b"DIGEST-VALUE".as_slice(), &key]);
            all.push((db, key, digest.expect("a digest")));
        }
    }
    all.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    all
}

#[test]
fn values_have_the_digests_that_redis_has_after_loading_the_same_file() {
    let (ours, redis) = (Binary::under_test(), Binary::redis());
    for file in Recorded::all().into_iter().filter(|file| file.version() <= VERSION_7_0) {
        let folder = Folder::new(&format!("digest-{}", file.name), &file.rdb);
        let theirs = digests(&mut folder.start(&redis, &file.args).connect());
        let got = digests(&mut folder.start(&ours, &file.args).connect());
        for (theirs, got) in theirs.iter().zip(&got) {
            assert_eq!(theirs, got, "{}: {}", file.name, theirs.1.escape_ascii());
        }
        assert_eq!(theirs.len(), got.len(), "{}", file.name);
    }
}
