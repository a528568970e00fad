//! Append-only files of a real redis-server 7.0 are loaded with the same data, and files made by
//! hand as redis-server loads them; what cannot be loaded ends the start.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sheafdb_tests::differential::{Mix, execute, generate};
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::program::{finish, spawn};
use sheafdb_tests::rdb_state::state;
use sheafdb_tests::rewrite::is_rewriting;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{PATIENCE, Value, Wire, encode};

mod own_commands;
mod recorded;

const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";
const INCR: &str = "appendonlydir/appendonly.aof.1.incr.aof";
/// Unix milliseconds, in 3015.
const FAR: &str = "33000000000000";

fn start(binary: &Binary, folder: &Folder, more: &[&str]) -> ServerProcess {
    let words = ["--dir", folder.path(), "--appendonly", "yes"];
    ServerProcess::start(binary, &[&words[..], more].concat())
}

fn redis(folder: &Folder, more: &[&str]) -> ServerProcess {
    start(&Binary::redis(), folder, more)
}

fn ours(folder: &Folder, threads: &str) -> ServerProcess {
    start(&Binary::under_test(), folder, &["--threads", threads])
}

fn ask(wire: &mut Wire, words: &[&str]) -> Value {
    wire.command(words).expect("an answer")
}

/// Everything that the server holds, but when consumers were seen: that is the time of loading.
fn held(server: &ServerProcess) -> String {
    let all = state(&mut server.connect(), false);
    let line = |line: &str| match line.find(" seen ").filter(|_| line.starts_with("  consumer ")) {
        Some(end) => line[..end].to_owned(),
        None => line.to_owned(),
    };
    all.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_same(expected: &str, got: &str, what: &str) {
    if expected == got {
        return;
    }
    let only = |mark: &str, these: &str, others: &str| {
        let others: Vec<_> = others.lines().collect();
        let lines = these.lines().filter(|line| !others.contains(line)).take(20);
        lines.map(|line| format!("{mark} {line}")).collect::<Vec<_>>().join("\n")
    };
    let (less, more) = (only("-", expected, got), only("+", got, expected));
    panic!("{what}: expected (-) and got (+), or another order\n{less}\n{more}");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

fn copy_of(folder: &Folder, name: &str) -> Folder {
    let copy = Folder::new(name);
    copy_folder(Path::new(folder.path()), Path::new(copy.path()));
    copy
}

fn commands(lines: &[&[&str]]) -> Vec<u8> {
    lines.iter().flat_map(|line| encode(line)).collect()
}

/// A folder with one file of changes.
fn folder_with(name: &str, incr: &[u8]) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir(folder.at("appendonlydir")).expect("a folder");
    fs::write(folder.at(INCR), incr).expect("a file");
    fs::write(folder.at(MANIFEST), "file appendonly.aof.1.incr.aof seq 1 type i\n")
        .expect("a file");
    folder
}

fn rewrite(server: &ServerProcess) {
    let mut wire = server.connect();
    assert!(!matches!(ask(&mut wire, &["BGREWRITEAOF"]), Value::Error(_)));
    until("the rewrite", || !is_rewriting(&mut wire));
}

/// No key expires while states are compared. (Those that expire soon are changed once more.)
fn keep_all(server: &ServerProcess) {
    let mut wire = server.connect();
    for db in 0..16 {
        ask(&mut wire, &["SELECT", &db.to_string()]);
        let Value::Array(keys) = ask(&mut wire, &["KEYS", "*"]) else { panic!("no keys") };
        for key in keys {
            let Value::Bulk(key) = key else { panic!("no key") };
            if matches!(wire.command(&[b"PTTL", &key[..]]).expect("a time"), Value::Int(1..)) {
                wire.command(&[b"PEXPIREAT", &key[..], FAR.as_bytes()]).expect("an answer");
            }
        }
    }
}

/// What redis-server has written, with random commands of every family, is loaded with the same
/// data: without and with a base, in both of its formats, by one thread and by several.
#[test]
fn random_workloads_of_redis_are_loaded_with_the_same_data() {
    let mix = Mix::of_changes();
    let mut keys = 0;
    for round in 0..9_u64 {
        let folder = Folder::new(&format!("aof-random-{round}"));
        let preamble = if round % 3 == 2 { "no" } else { "yes" };
        // Each sequence begins with FLUSHALL, which half of the servers do not know.
        let more = ["--aof-use-rdb-preamble", preamble, "--rename-command", "FLUSHALL", "X"];
        let redis = redis(&folder, if round % 2 == 0 { &more } else { &more[..2] });
        for n in 0..60 {
            execute(redis.addr, &generate(round * 1000 + n, &mix), PATIENCE, false);
            if round % 3 > 0 && n == 50 {
                rewrite(&redis);
            }
        }
        keep_all(&redis);
        redis.end();
        // As redis-server loads it: it writes down most changes, but not all. (BITFIELD which fails
        // may make a string longer.)
        let expected = {
            let copy = copy_of(&folder, &format!("aof-random-again-{round}"));
            held(&self::redis(&copy, &[]))
        };
        keys += expected.lines().filter(|line| !line.starts_with(' ')).count();
        for threads in ["1", "4"] {
            let copy = copy_of(&folder, &format!("aof-random-copy-{round}"));
            let got = held(&ours(&copy, threads));
            assert_same(&expected, &got, &format!("round {round}, {threads} threads"));
        }
    }
    assert!(keys > 150, "{keys}");
}

/// However many lines about producers cannot be read, the log says it once, with their number.
#[test]
fn damaged_lines_about_producers_are_one_warning() {
    let block = b"*1\r\n$5\r\nMULTI\r\n*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1\r\nv\r\n\
        #PRODUCER:list:no number:p\r\n*1\r\n$4\r\nEXEC\r\n";
    let folder = folder_with("aof-unread", &block.repeat(20_000));
    let server = ours(&folder, "2");
    assert_eq!(ask(&mut server.connect(), &["LLEN", "l"]), Value::Int(20_000));
    let log = server.log();
    assert_eq!(log.matches("cannot be read").count(), 1, "{} bytes of log", log.len());
    assert!(log.contains("the numbers of 20000 producers cannot be read"), "{log}");
}

/// Commands of one and of several slots, transactions, and commands on whole databases, so dense
/// that their order matters everywhere.
fn entangled(rng: &mut Rng, count: usize) -> Vec<u8> {
    let mut out = commands(&[&["SELECT", "0"]]);
    let key = |rng: &mut Rng| format!("k{}", rng.below(60));
    for n in 0..count {
        let (a, b, text) = (key(rng), key(rng), format!("{n},"));
        let mut say = |line: &[&str]| out.extend(encode(line));
        match rng.below(40) {
            0 => say(&["RENAME", &a, &b]),
            1 => say(&["COPY", &a, &b, "REPLACE"]),
            2 => say(&["MSET", &a, &text, &b, &text]),
            3 => say(&["SELECT", &rng.below(3).to_string()]),
            4 if rng.below(20) == 0 => say(&["SWAPDB", "0", "1"]),
            5 if rng.below(40) == 0 => say(&["FLUSHDB"]),
            6 if rng.below(100) == 0 => say(&["FLUSHALL"]),
            7..=10 => {
                say(&["MULTI"]);
                say(&["APPEND", &a, &text]);
                for _ in 0..rng.below(4) {
                    say(&["APPEND", &key(rng), &text]);
                }
                if rng.below(8) == 0 {
                    say(&["SELECT", &rng.below(3).to_string()]);
                    say(&["MOVE", &b, "2"]);
                }
                say(&["EXEC"]);
            }
            11 => say(&["DEL", &a, &b]),
            12 => say(&["LMOVE", &format!("l{a}"), &format!("l{b}"), "LEFT", "RIGHT"]),
            13..=16 => say(&["RPUSH", &format!("l{a}"), &text]),
            17 => say(&["SORT", &format!("l{a}"), "BY", "w*", "ALPHA", "STORE", &format!("l{b}")]),
            18 => say(&["#not a command"]),
            _ => say(&["APPEND", &a, &text]),
        }
        if out.ends_with(b"*1\r\n$14\r\n#not a command\r\n") {
            let len = out.len() - b"*1\r\n$14\r\n#not a command\r\n".len();
            out.truncate(len);
            out.extend(b"#TS:1700000000\r\n");
        }
    }
    out
}

#[test]
fn commands_of_several_slots_keep_their_order() {
    for (seed, count) in [(1, 20_000), (2, 3_000), (3, 200_000)] {
        let bytes = entangled(&mut Rng::new(seed), count);
        let folder = folder_with(&format!("aof-order-{seed}"), &bytes);
        let expected = {
            let copy = copy_of(&folder, "aof-order-redis");
            held(&redis(&copy, &[]))
        };
        assert!(expected.lines().count() > 100, "{expected}");
        for threads in ["1", "2", "4"] {
            let got = held(&ours(&folder, threads));
            assert_same(&expected, &got, &format!("seed {seed}, {threads} threads"));
        }
    }
}

/// A key that was given more time before its time came, which is past when the file is loaded: in a
/// file of changes and in both kinds of base.
#[test]
fn keys_that_were_kept_in_time_are_kept() {
    const SOON: Duration = Duration::from_millis(1500);
    for (base, preamble) in [("none", "yes"), ("rdb", "yes"), ("aof", "no")] {
        let folder = Folder::new(&format!("aof-kept-{base}"));
        // (It is killed, so each reply waits for its sync.)
        let always = ["--aof-use-rdb-preamble", preamble, "--appendfsync", "always"];
        let redis = redis(&folder, &always);
        let mut wire = redis.connect();
        let soon = SOON.as_millis().to_string();
        for key in ["persisted", "renamed", "replaced", "later", "gone"] {
            ask(&mut wire, &["SET", key, "v", "PX", &soon]);
        }
        ask(&mut wire, &["HSET", "hash", "f", "1"]);
        ask(&mut wire, &["PEXPIRE", "hash", &soon]);
        ask(&mut wire, &["SET", "getex", "v"]);
        ask(&mut wire, &["GETEX", "getex", "PX", &soon]);
        if base != "none" {
            rewrite(&redis);
        }
        ask(&mut wire, &["PERSIST", "persisted"]);
        ask(&mut wire, &["RENAME", "renamed", "new"]);
        ask(&mut wire, &["PERSIST", "new"]);
        ask(&mut wire, &["APPEND", "replaced", "w"]);
        ask(&mut wire, &["SET", "replaced", "x", "KEEPTTL"]);
        ask(&mut wire, &["PEXPIREAT", "replaced", FAR]);
        ask(&mut wire, &["PEXPIREAT", "later", FAR]);
        ask(&mut wire, &["HINCRBY", "hash", "f", "1"]);
        ask(&mut wire, &["PERSIST", "hash"]);
        ask(&mut wire, &["PERSIST", "getex"]);
        let expected = held(&redis);
        // Killed before it writes that "gone" is gone.
        drop(redis);
        std::thread::sleep(SOON);
        for threads in ["1", "4"] {
            let server = ours(&folder, threads);
            let mut wire = server.connect();
            until("it goes", || ask(&mut wire, &["EXISTS", "gone"]) == Value::Int(0));
            let kept: Vec<_> = expected.lines().collect();
            let at = kept.iter().position(|line| line.contains("\"gone\"")).expect("it was there");
            let expected = [&kept[..at], &kept[at + 2..]].concat().join("\n");
            assert_same(&expected, &held(&server), base);
        }
    }
}

/// The single file of older servers, with and without an RDB preamble, becomes the base.
#[test]
fn an_old_single_file_is_moved_into_the_folder() {
    for preamble in ["yes", "no"] {
        let made = Folder::new("aof-old-made");
        let redis = redis(&made, &["--aof-use-rdb-preamble", preamble]);
        let mut wire = redis.connect();
        for n in 0..500 {
            ask(&mut wire, &["RPUSH", &format!("list {}", n % 50), &n.to_string()]);
        }
        rewrite(&redis);
        for n in 0..500 {
            ask(&mut wire, &["INCR", &format!("number {}", n % 50)]);
        }
        let expected = held(&redis);
        redis.end();
        let base = if preamble == "yes" { "rdb" } else { "aof" };
        let parts = [format!("2.base.{base}"), "2.incr.aof".to_owned()];
        let part = |name: &String| {
            fs::read(made.at(&format!("appendonlydir/appendonly.aof.{name}"))).expect("a file")
        };
        let folder = Folder::new("aof-old");
        fs::write(folder.at("appendonly.aof"), parts.iter().map(part).collect::<Vec<_>>().concat())
            .expect("a file");
        for threads in ["4", "1"] {
            assert_same(&expected, &held(&ours(&folder, threads)), preamble);
            assert_eq!(folder.names(), ["appendonlydir"]);
            let manifest = fs::read_to_string(folder.at(MANIFEST)).expect("a manifest");
            // (Each start begins a file for what is written from then on.)
            let changes = manifest.strip_prefix("file appendonly.aof seq 1 type b\n");
            let changes = changes.expect("the base first");
            assert!(changes.lines().all(|line| line.ends_with(" type i")), "{manifest}");
        }
        // Killed between the manifest and the move: the next start completes it.
        fs::rename(folder.at("appendonlydir/appendonly.aof"), folder.at("appendonly.aof"))
            .expect("moved back");
        assert_same(&expected, &held(&ours(&folder, "1")), "moved again");
        assert_eq!(folder.names(), ["appendonlydir"]);
        assert_same(&expected, &held(&self::redis(&folder, &[])), "redis-server loads it");
    }
}

/// The start on a folder, which fails: its only line on standard error.
fn refused(folder: &Folder, more: &[&str]) -> String {
    let port = free_addr().expect("a port").port().to_string();
    let mut command = Command::new(&Binary::under_test().path);
    command.args(["--port", &port, "--admin-port", "0", "--dir", folder.path()]);
    command.args(["--appendonly", "yes"]).args(more);
    let out = finish(spawn(&mut command));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    let (errors, log) = (text(&out.stderr), text(&out.stdout));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(!log.contains("Ready to accept"), "{log}");
    errors
}

/// A small file, and where it may be cut: behind each command, and each transaction.
fn small() -> (Vec<u8>, Vec<usize>) {
    let lines: [&[&str]; 9] = [
        &["SELECT", "0"],
        &["SET", "a", "1"],
        &["RPUSH", "l", "x", "y"],
        &["MULTI"],
        &["INCR", "a"],
        &["INCR", "b"],
        &["EXEC"],
        &["MSET", "c", "1", "d", "2"],
        &["SET", "long", "0123456789012345678901234567890123456789"],
    ];
    let (mut out, mut ends, mut is_open) = (Vec::new(), vec![0], false);
    for line in lines {
        out.extend(encode(line));
        is_open = (is_open || line[0] == "MULTI") && line[0] != "EXEC";
        if !is_open {
            ends.push(out.len());
        }
    }
    (out, ends)
}

#[test]
fn a_truncated_end_is_cut_off_or_refused() {
    let (whole, ends) = small();
    for at in (1..whole.len()).step_by(7).chain(ends.iter().copied()) {
        let folder = folder_with("aof-cut", &whole[..at]);
        let end = *ends.iter().rfind(|end| **end <= at).expect("0 is an end");
        let threads = if at % 2 == 0 { "1" } else { "3" };
        if end < at {
            let why = refused(&folder, &["--aof-load-truncated", "no"]);
            let file = folder.at(INCR).display().to_string();
            assert!(
                why.starts_with(&format!("sheafdb: {file} cannot be loaded: at byte ")),
                "{why}"
            );
            let fix = format!("sheafdb check-aof --fix {}", folder.at(MANIFEST).display());
            assert!(why.contains(&fix), "{why}");
            assert_eq!(fs::read(folder.at(INCR)).expect("untouched"), &whole[..at]);
        }
        let expected = {
            let copy = folder_with("aof-cut-redis", &whole[..end]);
            held(&redis(&copy, &[]))
        };
        let server = ours(&folder, threads);
        assert_same(&expected, &held(&server), &format!("cut at {at}"));
        assert_eq!(server.log().contains("are cut off"), end < at, "{}", server.log());
        assert_eq!(fs::read(folder.at(INCR)).expect("cut"), &whole[..end], "cut at {at}");
    }
}

#[test]
fn damage_elsewhere_ends_the_start() {
    let (whole, ends) = small();
    let mut middle = whole.clone();
    middle[ends[2]] = b'x';
    let unknown = [&whole[..], &commands(&[&["FROBNICATE", "a"]])].concat();
    let arity = [&whole[..], &commands(&[&["SET", "a"]])].concat();
    let database = [&whole[..], &commands(&[&["SELECT", "99"]])].concat();
    let function = [&whole[..], &commands(&[&["FUNCTION", "RESTORE", "x"]])].concat();
    let cases: [(&[u8], String); 6] = [
        (&middle, format!("at byte {}: a command begins with '*', but here is 'x'", ends[2])),
        (b"no commands at all", "at byte 0: a command begins with '*'".into()),
        (&unknown, format!("at byte {}: unknown command 'FROBNICATE'", whole.len())),
        (&arity, format!("at byte {}: 'set' with 2 words", whole.len())),
        (&database, format!("at byte {}: database 99: there are only 16", whole.len())),
        (&function, format!("at byte {}: FUNCTION RESTORE: ", whole.len())),
    ];
    for (bytes, expected) in cases {
        let folder = folder_with("aof-damaged", bytes);
        let why = refused(&folder, &["--threads", "2"]);
        assert!(why.contains(&expected), "{why}: {expected}");
        assert_eq!(fs::read(folder.at(INCR)).expect("untouched"), bytes);
    }
    // Cut off, and not the last one.
    let folder = folder_with("aof-not-last", &whole[..whole.len() - 1]);
    fs::write(folder.at("appendonlydir/second"), &whole).expect("a file");
    let manifest = "file appendonly.aof.1.incr.aof seq 1 type i\nfile second seq 2 type i\n";
    fs::write(folder.at(MANIFEST), manifest).expect("a file");
    let why = refused(&folder, &[]);
    assert!(why.contains("and it is not the last file"), "{why}");
}

/// Whatever the bytes are, the server starts or says in one line why not.
#[test]
fn damage_at_random_never_panics() {
    let mut rng = Rng::new(7);
    let whole = entangled(&mut rng, 400);
    let (mut starts, mut refusals) = (0, 0);
    for round in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            match rng.below(4) {
                0 => bytes[at] = rng.below(256) as u8,
                1 => bytes[at] ^= 1 << rng.below(8),
                2 => drop(bytes.drain(at..(at + rng.below(40)).min(bytes.len()))),
                _ => bytes.splice(at..at, rng.bytes(3)).for_each(drop),
            }
        }
        let folder = folder_with("aof-noise", &bytes);
        let threads = if round % 2 == 0 { "1" } else { "4" };
        let words = ["--dir", folder.path(), "--appendonly", "yes", "--threads", threads];
        match ServerProcess::start_once(&Binary::under_test(), &words) {
            Ok(server) => {
                starts += 1;
                assert!(!server.log().contains("panic"), "{}", server.log());
            }
            Err(log) => {
                refusals += 1;
                assert!(log.contains(" cannot be loaded: at byte "), "{log}");
                assert!(!log.contains("panic"), "{log}");
            }
        }
    }
    assert!(starts > 0 && refusals > 0, "{starts} {refusals}");
}

#[test]
fn missing_files_end_the_start_and_nothing_at_all_is_an_empty_server() {
    let (whole, _) = small();
    let folder = folder_with("aof-missing", &whole);
    let manifest = fs::read(folder.at(MANIFEST)).expect("a manifest");
    fs::remove_file(folder.at(MANIFEST)).expect("removed");
    assert!(refused(&folder, &[]).contains("it is not there, but the folder has appendonly.aof.1"));
    for (text, expected) in [
        (&b""[..], "it lists no file"),
        (b"# a comment\n", "it lists no file"),
        (b"file a seq 1 type i", "manifest cannot be loaded: line 1: "),
        (b"file ../a seq 1 type i\n", "manifest cannot be loaded: line 1: "),
        (b"file b seq 1 type b\n", "/b cannot be loaded: "),
    ] {
        fs::write(folder.at(MANIFEST), text).expect("a file");
        let why = refused(&folder, &[]);
        assert!(why.contains(expected), "{why}: {expected}");
    }
    fs::write(folder.at(MANIFEST), manifest).expect("a file");
    fs::remove_file(folder.at(INCR)).expect("removed");
    assert!(refused(&folder, &[]).contains("manifest lists it: No such file"));
    // A file without bytes is no data: whoever was to write the manifest was killed.
    fs::write(folder.at(INCR), "").expect("a file");
    fs::remove_file(folder.at(MANIFEST)).expect("removed");
    let server = ours(&folder, "2");
    assert_eq!(ask(&mut server.connect(), &["DBSIZE"]), Value::Int(0));
    let server = ours(&Folder::new("aof-nothing"), "1");
    assert_eq!(ask(&mut server.connect(), &["DBSIZE"]), Value::Int(0));
}

/// The libraries of functions of a file are kept for the next snapshot, as those of an RDB file.
#[test]
fn libraries_of_functions_are_kept() {
    let library = |name: &str, text: &str| {
        format!("#!lua name={name}\nredis.register_function('{text}', function() return 1 end)")
    };
    let folder = Folder::new("aof-functions");
    let expected = {
        let redis = redis(&folder, &[]);
        let mut wire = redis.connect();
        let mut load = |words: &[&str]| {
            let reply = ask(&mut wire, &[&["FUNCTION"], words].concat());
            assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
        };
        load(&["LOAD", &library("forgotten", "a")]);
        load(&["FLUSH"]);
        load(&["LOAD", &library("base", "b")]);
        load(&["LOAD", &library("deleted", "c")]);
        rewrite(&redis);
        load(&["DELETE", "deleted"]);
        load(&["LOAD", &library("new", "d")]);
        load(&["LOAD", "REPLACE", &library("base", "e")]);
        state(&mut redis.connect(), true)
    };
    {
        let server = ours(&folder, "2");
        let saved = ask(&mut server.connect(), &["SAVE"]);
        assert_eq!(saved, Value::Simple(b"OK".to_vec()));
    }
    assert!(folder.file().exists());
    let loaded = ServerProcess::start(&Binary::redis(), &["--dir", folder.path()]);
    let got = state(&mut loaded.connect(), true);
    assert!(got.contains("function"), "{got}");
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&expected), sorted(&got));
}
