//! Files of `tests/rdb/files`, which real servers wrote or which were made by hand, are loaded with
//! the recorded state; what the server saves is loaded by redis-server with the same state.
//!
//! `RDB_FILE=part-of-a-name` runs the files of that name alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::program::root;
use sheafdb_tests::rdb_state::state;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

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
        let lines = self.state.split_inclusive('\n');
        lines.filter(|line| !line.starts_with("function ")).collect()
    }

    /// Whether a field of a hash expires; redis-server 7.0 has none.
    fn has_field_times(&self) -> bool {
        self.state.lines().any(|line| line.starts_with("  ") && line.contains("\" expires "))
    }
}

/// A folder with a snapshot file.
fn folder_with(name: &str, rdb: &[u8]) -> Folder {
    let folder = Folder::new(&format!("rdb-files-{name}"));
    fs::write(folder.file(), rdb).expect("a file");
    folder
}

fn start(folder: &Folder, binary: &Binary, args: &[String]) -> ServerProcess {
    let mut words = vec!["--dir", folder.path()];
    words.extend(args.iter().map(String::as_str));
    ServerProcess::start(binary, &words)
}

/// The lines that differ; nothing if there are none. The active times of consumers are compared
/// where both servers know them.
fn difference(what: &str, expected: &str, got: &str) -> Option<String> {
    let has_active = |state: &str| state.contains(" active ");
    let (expected, got) = if has_active(expected) && has_active(got) {
        (expected.to_owned(), got.to_owned())
    } else {
        (without_active(expected), without_active(got))
    };
    if expected == got {
        return None;
    }
    let (expected, got): (Vec<_>, Vec<_>) = (expected.lines().collect(), got.lines().collect());
    let only = |mark: &str, these: &[&str], others: &[&str]| {
        let lines = these.iter().filter(|line| !others.contains(line)).take(20);
        lines.map(|line| format!("{mark} {line}")).collect::<Vec<_>>().join("\n")
    };
    let (missing, more) = (only("-", &expected, &got), only("+", &got, &expected));
    Some(format!("{what}: expected (-) and got (+), or another order\n{missing}\n{more}\n"))
}

fn without_active(state: &str) -> String {
    let line = |line: &str| {
        let is_consumer = line.starts_with("  consumer ");
        let end = line.rfind(" active ").filter(|_| is_consumer).unwrap_or(line.len());
        line[..end].to_owned()
    };
    state.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn resp3(server: &ServerProcess) -> Wire {
    let mut wire = server.connect();
    wire.command(&["HELLO", "3"]).expect("HELLO is answered");
    wire
}

#[test]
fn every_file_is_loaded_with_the_recorded_state() {
    let mut wrong = String::new();
    for file in Recorded::all() {
        let folder = folder_with(&file.name, &file.rdb);
        let server = start(&folder, &Binary::under_test(), &file.args);
        let expected = file.data();
        let got = state(&mut server.connect(), false);
        wrong.extend(difference(&file.name, &expected, &got));
        // Reading the values has changed when and how often they were used.
        if file.args.is_empty() {
            let again = state(&mut resp3(&server), false);
            wrong.extend(difference(&format!("{} in RESP3", file.name), &got, &again));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What this server saves is loaded by redis-server, with the recorded state. Files of fields that
/// expire are for newer ones.
#[test]
fn redis_loads_what_is_saved_with_the_same_state() {
    let (ours, redis) = (Binary::under_test(), Binary::redis());
    let mut wrong = String::new();
    for file in Recorded::all().into_iter().filter(|file| !file.has_field_times()) {
        let folder = folder_with(&format!("back-{}", file.name), &file.rdb);
        {
            let server = start(&folder, &ours, &file.args);
            let saved = server.connect().command(&["SAVE"]).expect("SAVE is answered");
            assert_eq!(saved, Value::Simple(b"OK".to_vec()), "{}", file.name);
        }
        let rdb = fs::read(folder.file()).expect("it was saved");
        assert!(rdb.starts_with(b"REDIS0010"), "{}", file.name);
        let server = start(&folder, &redis, &file.args);
        let got = state(&mut server.connect(), true);
        wrong.extend(difference(&file.name, &file.state, &got));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Fields that expire are kept by both types that hold them.
#[test]
fn fields_that_expire_are_saved_for_redis_and_for_valkey() {
    let ours = Binary::under_test();
    let all: Vec<_> = Recorded::all().into_iter().filter(Recorded::has_field_times).collect();
    for (file, (version, magic)) in
        all.iter().flat_map(|file| [("0", "REDIS0012"), ("80", "VALKEY080")].map(|v| (file, v)))
    {
        let folder = folder_with(&format!("fields-{}-{version}", file.name), &file.rdb);
        {
            let server = start(&folder, &ours, &["--rdb-version".into(), version.into()]);
            let saved = server.connect().command(&["SAVE"]).expect("SAVE is answered");
            assert_eq!(saved, Value::Simple(b"OK".to_vec()), "{}", file.name);
        }
        let rdb = fs::read(folder.file()).expect("it was saved");
        assert!(rdb.starts_with(magic.as_bytes()), "{}: {magic}", file.name);
        let expected = file.data();
        let server = start(&folder, &ours, &[]);
        let got = state(&mut server.connect(), false);
        let wrong = difference(&format!("{} as {magic}", file.name), &expected, &got);
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }
}

/// A damaged file of `tests/rdb/damaged.txt`.
struct Damaged {
    name: String,
    rdb: Vec<u8>,
    /// What is expected of this server: `loads N keys`, or `refuses`.
    outcome: String,
}

impl Damaged {
    fn parse(block: &str) -> Self {
        let mut lines = block.lines();
        let name = lines.next().expect("a name").to_owned();
        let (mut hex, mut outcome) = (String::new(), String::new());
        for line in lines {
            if let Some(digits) = line.strip_prefix("  ") {
                hex.push_str(digits);
            } else if let Some(told) = line.strip_prefix("redis ").or(line.strip_prefix("ours ")) {
                // What is ours comes last.
                told.split(':').next().expect("a word").clone_into(&mut outcome);
            }
        }
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        let rdb = (0..hex.len()).step_by(2).map(byte).collect();
        Self { name, rdb, outcome }
    }

    fn all() -> Vec<Self> {
        let text = fs::read_to_string(root().join("tests/rdb/damaged.txt")).expect("the table");
        let all: Vec<Self> = text.split("\n\n").skip(1).map(Self::parse).collect();
        let wanted = std::env::var("RDB_FILE").unwrap_or_default();
        all.into_iter().filter(|file| file.name.contains(&wanted)).collect()
    }

    /// What this server does with it; with the lines it logged if it ended.
    fn outcome(&self, number: usize, args: &[&str]) -> (String, String) {
        let folder = folder_with(&format!("damaged-{number}"), &self.rdb);
        match ServerProcess::start_once(
            &Binary::under_test(),
            &[&["--dir", folder.path()], args].concat(),
        ) {
            Ok(server) => (format!("loads {} keys", keys(&mut server.connect())), String::new()),
            Err(log) => ("refuses".to_owned(), log),
        }
    }
}

/// The keys in all databases.
fn keys(wire: &mut Wire) -> i64 {
    let mut size = |db: u32| {
        wire.command(&["SELECT", &db.to_string()]).expect("it has this database");
        match wire.command(&["DBSIZE"]) {
            Ok(Value::Int(n)) => n,
            other => panic!("no number: {other:?}"),
        }
    };
    (0..16).map(&mut size).sum()
}

/// A damaged file ends the start with one line that names the file and the byte, and never leaves
/// an empty server beside it; what Redis loads although it is odd is loaded.
#[test]
fn damaged_files_are_refused_with_file_and_offset() {
    let all = Damaged::all();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some((number, file)) = {
            let number = next.fetch_add(1, Ordering::Relaxed);
            all.get(number).map(|file| (number, file))
        } {
            let (got, log) = file.outcome(number, &[]);
            let is_told = got != "refuses" || log.contains("dump.rdb cannot be loaded: at byte ");
            let has_ended = got != "refuses" || log.contains("exit status: 1");
            if got != file.outcome || !is_told || !has_ended {
                let why = log.lines().last().unwrap_or_default();
                let what = format!("{}: expected {}, {got} {why}", file.name, file.outcome);
                wrong.lock().expect("no thread panicked").push(what);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().expect("no thread panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `rdb-skip-unknown` skips what ends where it says, and nothing else.
#[test]
fn values_of_modules_are_skipped_if_that_is_set() {
    let all = Damaged::all();
    for (name, expected) in [
        ("module value", "loads 1 keys"),
        ("data of a module", "loads 1 keys"),
        ("module value without end", "refuses"),
        ("module value, unknown part", "refuses"),
        ("module value before 4.0", "refuses"),
        ("data of a module without end", "refuses"),
        ("type or opcode 30", "refuses"),
    ] {
        let Some(at) = all.iter().position(|file| file.name == name) else { continue };
        let (got, log) = all[at].outcome(all.len() + at, &["--rdb-skip-unknown", "yes"]);
        assert_eq!(got, expected, "{name}: {log}");
    }
}
