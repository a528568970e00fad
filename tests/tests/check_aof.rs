//! `sheafdb check-aof` beside `redis-check-aof`, on files which redis-server wrote and which were
//! then cut or damaged: exit status, the byte up to which a file is whole, the place of the damage,
//! and the bytes which a repair leaves.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sheafdb_tests::folder::Folder;
use sheafdb_tests::program::{finish, spawn};
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};

mod made;
mod manifests;
mod written;

const MANIFEST: &str = "appendonly.aof.manifest";

/// What a program said about a file.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    status: Option<i32>,
    /// `ok_up_to` of each file.
    valid: Vec<u64>,
    /// The offset of the damage.
    damage: Option<u64>,
}

/// The server which writes the files: that of `redis-check-aof`, so never another oracle.
fn redis() -> Binary {
    Binary { path: "redis-server".into(), kind: Kind::Redis }
}

/// A verdict and all text.
struct Told {
    verdict: Verdict,
    text: String,
}

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Redis,
    Ours,
}

impl Program {
    fn command(self) -> Command {
        static OURS: LazyLock<PathBuf> = LazyLock::new(|| Binary::under_test().path);
        match self {
            Self::Redis => Command::new("redis-check-aof"),
            Self::Ours => {
                let mut command = Command::new(&*OURS);
                command.arg("check-aof");
                command
            }
        }
    }

    /// Checks a file with these options, and answers its question.
    fn check(self, options: &[&str], file: &Path, answer: &str) -> Told {
        tell(self.command().args(options).arg(file), answer)
    }
}

fn tell(command: &mut Command, answer: &str) -> Told {
    let mut child = spawn(command.stdin(Stdio::piped()));
    // (A program which asks nothing may have ended.)
    let _ = child.stdin.take().expect("a pipe").write_all(answer.as_bytes());
    let out = finish(child);
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    let numbers = |mark: &str| {
        let behind = text.match_indices(mark).map(|(at, _)| text[at + mark.len()..].trim_start());
        behind
            .map(|rest| rest.split([',', ':', '\n']).next().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    let valid = numbers("ok_up_to=").iter().map(|n| n.parse().expect("a number")).collect();
    let places = numbers("0x");
    let damage = places.first().map(|n| u64::from_str_radix(n, 16).expect("an offset"));
    Told { verdict: Verdict { status: out.status.code(), valid, damage }, text }
}

/// Checks a file with both.
fn both(options: &[&str], file: &Path, answer: &str) -> (Told, Told) {
    let ask = |program: Program| program.check(options, file, answer);
    (ask(Program::Redis), ask(Program::Ours))
}

/// That both say the same about a file. Redis names no place for bytes which begin no command, for
/// a file that ends behind a length, and a useless one for an open transaction.
fn assert_same(file: &Path, what: &str) -> Verdict {
    let (redis, ours) = both(&[], file, "");
    let has_place = redis.verdict.damage.is_some() && !redis.text.contains("Reached EOF before");
    let expected = (redis.verdict.status, &redis.verdict.valid);
    let text = format!("{what}\n{}\n{}", redis.text, ours.text);
    assert_eq!((ours.verdict.status, &ours.verdict.valid), expected, "{text}");
    if has_place {
        assert_eq!(ours.verdict.damage, redis.verdict.damage, "{text}");
    }
    assert_eq!(ours.verdict.status == Some(0), ours.verdict.damage.is_none(), "{text}");
    ours.verdict
}

/// A folder of this test alone.
fn folder(name: &str) -> Folder {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    Folder::new(&format!("check-aof-{name}-{}", COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// A copy of a folder of append-only files.
fn copy(from: &Path, name: &str) -> Folder {
    let folder = folder(name);
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), folder.path().to_owned() + "/" + &name_of(&entry.path()))
            .expect("a copy");
    }
    folder
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Contents of all files, by name.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut all: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (name_of(&path), fs::read(&path).expect("a file")))
        .collect();
    all.sort();
    all
}

/// How a server writes its append-only file.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    timestamps: bool,
    /// The BASE file is an RDB file.
    preamble: bool,
    /// It is rewritten in the middle.
    rewritten: bool,
    /// A second rewrite is interrupted, so that there are two INCR files.
    interrupted: bool,
}

const WAYS: [Way; 4] = [
    Way { name: "plain", timestamps: false, preamble: true, rewritten: false, interrupted: false },
    Way { name: "times", timestamps: true, preamble: true, rewritten: true, interrupted: false },
    Way {
        name: "commands",
        timestamps: true,
        preamble: false,
        rewritten: true,
        interrupted: false,
    },
    Way { name: "two", timestamps: false, preamble: true, rewritten: true, interrupted: true },
];

impl Way {
    /// The folder of append-only files of a server which worked in this way for a moment, and was
    /// ended. It is in `Folder`.
    fn write(self) -> (Folder, PathBuf) {
        let folder = folder(self.name);
        let yes = |is: bool| if is { "yes" } else { "no" };
        let words = [
            ["--dir", folder.path()],
            ["--appendonly", "yes"],
            ["--appendfsync", "always"],
            ["--aof-timestamp-enabled", yes(self.timestamps)],
            ["--aof-use-rdb-preamble", yes(self.preamble)],
        ];
        let mut server = ServerProcess::start(&redis(), words.as_flattened());
        let files = folder.at("appendonlydir");
        change(&server, "one");
        if self.rewritten {
            rewrite(&server, &files, 2);
            change(&server, "two");
        }
        if self.interrupted {
            send(&server, &["CONFIG", "SET", "rdb-key-save-delay", "10000000"]);
            rewrite(&server, &files, 3);
            change(&server, "three");
        }
        server.terminate();
        server.wait_exit(Duration::from_secs(30)).expect("it ends");
        (folder, files)
    }
}

fn send(server: &ServerProcess, words: &[&str]) {
    server.connect().command(words).expect("an answer");
}

/// Starts a rewrite, and waits until changes go to the INCR file of this number.
fn rewrite(server: &ServerProcess, files: &Path, seq: u32) {
    send(server, &["BGREWRITEAOF"]);
    let (name, base) = (format!("{seq}.incr.aof"), format!(".{seq}.base."));
    let is_interrupted = seq == 3;
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(files.join(MANIFEST)).expect("a manifest");
        if text.contains(&name) && (is_interrupted || text.contains(&base)) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{text}");
        sleep(Duration::from_millis(5));
    }
}

/// Changes in several databases, alone, in a transaction, and by a script.
fn change(server: &ServerProcess, text: &str) {
    let mut wire = server.connect();
    let script = "redis.call('SET', 'q', ARGV[1]) redis.call('INCR', 'n')";
    let commands: [&[&str]; 10] = [
        &["SET", "k", text],
        &["SELECT", "3"],
        &["RPUSH", "list", text, "", "\r\n"],
        &["MULTI"],
        &["SET", "a", text],
        &["SELECT", "0"],
        &["HSET", "h", "field", text],
        &["EXEC"],
        &["EVAL", script, "0", text],
        &["SET", "long", &"x".repeat(200)],
    ];
    for words in commands {
        wire.command(words).expect("an answer");
    }
}

/// The last file of a manifest.
fn last_file(files: &Path) -> PathBuf {
    let text = fs::read_to_string(files.join(MANIFEST)).expect("a manifest");
    let line = text.lines().last().expect("a line");
    files.join(line.split(' ').nth(1).expect("a name"))
}
