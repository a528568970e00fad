//! `sheafdb restore` and `sheafdb undo`, on folders made by hand and of a running server.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sheafdb_tests::folder::{Folder, names};
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::program::{finish, spawn};
use sheafdb_tests::rdb_state::state;
use sheafdb_tests::render;
use sheafdb_tests::rewrite::is_rewriting;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Each line is a record; a transaction has its commands separated by `;`. A record with `3:` is
/// made in database 3.
const RECORDS: &[&str] = &[
    "SET text 1",
    "RPUSH list a b c",
    "3:SET text other",
    "HSET hash f 1 g 2",
    "SET text 2;LPOP list;INCR counter",
    "SADD set 1 2 3",
    "PEXPIREAT text 33000000000000",
    "3:DEL text",
    "ZADD zset 1 a 2.5 b",
    "XADD stream 1-1 f v",
    "DEL hash;SET new 1",
    "APPEND new 2",
    "SETRANGE text 3 x",
    "3:RENAME none there;SET late 1",
];
/// The number of the record before the first one.
const BEFORE: u64 = 100;
/// Behind so many records there are bases.
const BASES: [usize; 3] = [0, 6, 10];
/// Between these two records three numbers have no command.
const GAP_BEHIND: usize = 8;
/// The time of the first record, and between each two.
const BEGUN_MS: i64 = 1_700_000_000_000;
const STEP_MS: i64 = 250;

fn ask(wire: &mut Wire, line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    wire.command(&words).expect("an answer")
}

fn number(record: usize) -> u64 {
    BEFORE + record as u64 + if record > GAP_BEHIND { 3 } else { 0 }
}

/// Two records share a group.
fn time(record: usize) -> i64 {
    BEGUN_MS + record.div_ceil(2) as i64 * STEP_MS
}

/// The bytes of a record, with its annotation if it begins a group, a file, or follows a gap.
fn written(record: usize, begins_file: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if begins_file || record % 2 == 1 || record == GAP_BEHIND + 1 {
        out.extend(format!("#NUM:{}:{}\r\n", number(record), time(record)).bytes());
    }
    let line = RECORDS[record - 1];
    let (db, commands) = line.strip_prefix("3:").map_or(("0", line), |commands| ("3", commands));
    out.extend(encode(&["SELECT", db]));
    let commands: Vec<&str> = commands.split(';').collect();
    let is_transaction = commands.len() > 1;
    if is_transaction {
        out.extend(encode(&["MULTI"]));
        out.extend(b"#PRODUCER:skipped\r\n");
    }
    for command in commands {
        out.extend(encode(&command.split(' ').collect::<Vec<_>>()));
    }
    if is_transaction {
        out.extend(encode(&["EXEC"]));
    }
    out
}

/// A snapshot of a server with the field which says the moment.
fn base(wire: &mut Wire, folder: &Folder, record: usize) -> Vec<u8> {
    ask(wire, "SAVE");
    let mut file = fs::read(folder.file()).expect("it was saved");
    let moment = format!("{}:{}", number(record), time(record));
    let name = b"sheafdb-moment";
    let mut field = vec![0xfa, name.len() as u8];
    field.extend(name);
    field.push(moment.len() as u8);
    field.extend(moment.bytes());
    // Behind magic and version; the checksum is left out.
    file.splice(9..9, field);
    let end = file.len() - 8;
    file[end..].fill(0);
    file
}

/// A data directory with history, and what a server holds behind each record.
struct Made {
    folder: Folder,
    states: Vec<String>,
}

fn made(name: &str) -> Option<Made> {
    let binary = Binary::under_test();
    if binary.kind == Kind::Redis {
        return None;
    }
    let folder = Folder::new(name);
    let aof = folder.at("appendonlydir");
    fs::create_dir(&aof).expect("a folder");
    let reference = ServerProcess::start(&binary, &["--dir", folder.path()]);
    let mut wire = reference.connect();
    let (mut states, mut lists, mut seq) = (Vec::new(), Vec::new(), 0);
    let mut incr = Vec::new();
    for record in 0..=RECORDS.len() {
        if record > 0 {
            let begins_file = BASES.contains(&(record - 1)) || record == RECORDS.len();
            if begins_file {
                seq += 1;
                lists.push(format!("file i{seq} seq {seq} type i\n"));
                incr.clear();
            }
            incr.extend(written(record, begins_file));
            fs::write(aof.join(format!("i{seq}")), &incr).expect("a file");
            let line = RECORDS[record - 1];
            let (db, commands) = line.strip_prefix("3:").map_or((0, line), |rest| (3, rest));
            ask(&mut wire, &format!("SELECT {db}"));
            for command in commands.split(';') {
                ask(&mut wire, command);
            }
        }
        states.push(state(&mut wire, false));
        if BASES.contains(&record) {
            let name = format!("b{record}");
            fs::write(aof.join(&name), base(&mut wire, &folder, record)).expect("a file");
            lists.push(format!("file {name} seq {} type b\n", record + 1));
        }
    }
    fs::remove_file(folder.file()).expect("it was saved");
    let current = lists.iter().rposition(|line| line.contains(" type b")).expect("a base");
    fs::write(aof.join("appendonly.aof.history"), lists[..current].concat()).expect("a file");
    fs::write(aof.join("appendonly.aof.manifest"), lists[current..].concat()).expect("a file");
    Some(Made { folder, states })
}

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(Binary::under_test().path);
    command.args(arguments).stdin(Stdio::null());
    command.env_remove("SHEAFDB_PASSWORD").env_remove("REDISCLI_AUTH");
    command.output().expect("it runs")
}

#[track_caller]
fn works(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
fn fails(output: &Output, why: &str) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(why), "{text}");
}

fn restore(from: &Folder, point: &str, to: &Path) -> Output {
    let _ = fs::remove_dir_all(to);
    program(&["restore", "--until", point, from.path(), "-o", to.to_str().expect("plain")])
}

/// What a server holds which starts on a folder.
fn loaded(binary: &Binary, folder: &Path) -> String {
    let dir = folder.to_str().expect("plain");
    let server = ServerProcess::start(binary, &["--dir", dir, "--appendonly", "yes"]);
    state(&mut server.connect(), false)
}

#[test]
fn each_number_restores_the_data_behind_its_record() {
    let Some(Made { folder, states }) = made("pit-number") else { return };
    let new = folder.at("new");
    for (record, expected) in states.iter().enumerate() {
        let text = works(&restore(&folder, &number(record).to_string(), &new));
        let last = if BASES.contains(&record) { "that of the base" } else { "number" };
        assert!(text.contains(&format!("last record: {last}")), "{record}: {text}");
        if record % 4 == 1 {
            assert_eq!(&loaded(&Binary::redis(), &new), expected, "{record}: {text}");
            works(&restore(&folder, &number(record).to_string(), &new));
        }
        assert_eq!(&loaded(&Binary::under_test(), &new), expected, "{record}: {text}");
        works(&program(&[
            "check-aof",
            new.join("appendonlydir/appendonly.aof.manifest").to_str().expect("plain"),
        ]));
    }
}

/// A number without a command restores what was there then.
#[test]
fn numbers_in_a_gap_restore_the_record_before() {
    let Some(Made { folder, states }) = made("pit-gap") else { return };
    let new = folder.at("new");
    let text = works(&restore(&folder, &(number(GAP_BEHIND) + 2).to_string(), &new));
    assert!(text.contains("no commands for the numbers 109 to 110"), "{text}");
    assert_eq!(loaded(&Binary::under_test(), &new), states[GAP_BEHIND]);
}

#[test]
fn each_time_restores_whole_groups() {
    let Some(Made { folder, states }) = made("pit-time") else { return };
    let new = folder.at("new");
    for (group, ms) in (0..=RECORDS.len() / 2).map(|group| (group, time(2 * group))) {
        let forms = [format!("@{}.{:03}", ms / 1000, ms % 1000), format!("@{}", ms as f64 / 1e3)];
        let until = if group % 2 == 0 { &forms[0] } else { &forms[1] };
        works(&restore(&folder, until, &new));
        assert_eq!(loaded(&Binary::under_test(), &new), states[2 * group], "{until}");
    }
    let text = works(&restore(&folder, "2023-11-14T23:13:20.999+01:00", &new));
    assert!(text.contains("number 106, 2023-11-14T22:13:20.750Z"), "{text}");
    let text = works(&restore(&folder, "2123-11-14T23:13:20+01:00", &new));
    assert!(text.contains("nothing later than number 117, 2023-11-14T22:13:21.750Z"), "{text}");
}

#[test]
fn what_cannot_be_restored_is_refused() {
    let Some(Made { folder, .. }) = made("pit-refused") else { return };
    let new = folder.at("new");
    fails(&restore(&folder, "99", &new), "number 99 is before the oldest data");
    fails(&restore(&folder, "118", &new), "no record 118: the last one in the files is number 117");
    fails(&restore(&folder, "2020-01-01T00:00:00Z", &new), "is before the oldest data");
    fails(&restore(&folder, "tomorrow", &new), "a point is a time such as");
    fails(&program(&["restore", "--until", "101", folder.path()]), "-o NEWDIR is missing");
    let own = folder.path();
    fails(&program(&["restore", "--until", "101", own, "-o", own]), "a new or empty folder");
    fails(&program(&["restore", "--until", "101", "/none", "-o", own]), "/none is no folder");
    works(&program(&["restore", "--help"]));
    assert!(!new.exists(), "what fails leaves nothing");
    // The file behind the second base ends within record 9, though another file follows.
    let file = folder.at("appendonlydir/i2");
    let whole = fs::read(&file).expect("it is there");
    fs::write(&file, &whole[..whole.len() - written(10, false).len() - 1]).expect("a file");
    let damaged = restore(&folder, &number(9).to_string(), &new);
    fails(&damaged, "appendonlydir/i2 is damaged at byte");
    fails(&damaged, "sheafdb check-aof ");
    for record in [8, 11] {
        works(&restore(&folder, &number(record).to_string(), &new));
    }
}

/// The last file may be cut by a crash, or be written at this moment.
#[test]
fn a_cut_end_of_the_last_file_is_left_out() {
    let Some(Made { folder, states }) = made("pit-cut") else { return };
    let new = folder.at("new");
    let file = folder.at("appendonlydir/i4");
    let whole = fs::read(&file).expect("it is there");
    fs::write(&file, &whole[..whole.len() - 1]).expect("a file");
    let text = works(&restore(&folder, "@1900000000", &new));
    assert!(text.contains("note: i4 ends within"), "{text}");
    assert_eq!(loaded(&Binary::under_test(), &new), states[RECORDS.len() - 1]);
}

/// A folder of redis-server with annotations of its own is exact to the second.
#[test]
fn a_folder_of_redis_is_restored_by_seconds() {
    if Binary::under_test().kind == Kind::Redis {
        return;
    }
    let folder = Folder::new("pit-redis");
    let words = ["--dir", folder.path(), "--appendonly", "yes", "--aof-timestamp-enabled", "yes"];
    let mut redis = ServerProcess::start(&Binary::redis(), &words);
    let mut wire = redis.connect();
    let second = |wire: &mut Wire| {
        let Value::Array(parts) = ask(wire, "TIME") else { panic!("no time") };
        let Value::Bulk(seconds) = &parts[0] else { panic!("no second") };
        String::from_utf8_lossy(seconds).parse::<u64>().expect("a number")
    };
    ask(&mut wire, "SET key old");
    let old = state(&mut wire, false);
    let written = second(&mut wire);
    until("the next second but one", || second(&mut wire) > written + 1);
    ask(&mut wire, "SET key new");
    redis.terminate();
    assert!(redis.wait_exit(LIMIT).is_some(), "it ends");
    let new = folder.at("new");
    works(&restore(&folder, &format!("@{written}.5"), &new));
    assert_eq!(loaded(&Binary::under_test(), &new), old);
    works(&restore(&folder, &format!("@{written}"), &new));
    assert_eq!(loaded(&Binary::redis(), &new), old);
    fails(&restore(&folder, "7", &new), "no annotations with numbers");
}

/// The values of all keys of database 0 which match, in the order of their names.
fn values(wire: &mut Wire, pattern: &str) -> String {
    let Value::Array(mut keys) = ask(wire, &format!("KEYS {pattern}")) else { panic!("no keys") };
    keys.sort_by_key(|key| format!("{key:?}"));
    let mut lines = Vec::new();
    for key in keys {
        let Value::Bulk(key) = key else { panic!("no key") };
        let key = String::from_utf8_lossy(&key).into_owned();
        let (dump, at) =
            (ask(wire, &format!("DUMP {key}")), ask(wire, &format!("PEXPIRETIME {key}")));
        lines.push(format!("{key} {} {}", render::line(&dump), render::line(&at)));
    }
    lines.join("\n")
}

fn undo(server: &ServerProcess, temporary: &Path, more: &[&str]) -> Output {
    let port = server.addr.port().to_string();
    let temporary = temporary.to_str().expect("plain");
    program(&[&["undo", "--port", &port, "--temp", temporary][..], more].concat())
}

#[test]
fn undo_brings_keys_back_as_they_were() {
    let Some(Made { folder, .. }) = made("pit-undo") else { return };
    // What they were: the data behind record 9.
    let new = folder.at("new");
    let point = number(9).to_string();
    works(&restore(&folder, &point, &new));
    let dir = new.to_str().expect("plain");
    let old = ServerProcess::start(&Binary::under_test(), &["--dir", dir, "--appendonly", "yes"]);
    let expected = values(&mut old.connect(), "*");
    let temporary = folder.at("temp");
    fs::create_dir(&temporary).expect("a folder");

    let server = ServerProcess::start(&Binary::under_test(), &["--dir", folder.path()]);
    let mut wire = server.connect();
    for line in ["SET text 1", "SET list x", "SADD set 1 2 3", "SET late 1", "SET other 1"] {
        ask(&mut wire, line);
    }
    ask(&mut wire, "SELECT 3");
    ask(&mut wire, "SET text mine");
    ask(&mut wire, "SELECT 0");
    let before = values(&mut wire, "*");

    let dry = works(&undo(&server, &temporary, &["--keys", "*", "--to", &point, "--dry-run"]));
    for line in [
        "\"text\": restore (it has another value)",
        "\"hash\": restore (it is missing)",
        "\"late\": delete (it did not exist)",
        "keys \"*\": 5 would be restored, 2 would be deleted, 1 unchanged",
    ] {
        assert!(dry.contains(line), "{line}: {dry}");
    }
    assert_eq!(values(&mut wire, "*"), before, "a dry run changes nothing");

    let text = works(&undo(&server, &temporary, &["--keys", "l[ai]*t*", "--to", &point]));
    assert!(text.contains("1 restored, 1 deleted, 0 unchanged"), "{text}");
    let text = works(&undo(&server, &temporary, &["--keys", "other", "--to", &point]));
    assert!(text.contains("0 restored, 1 deleted, 0 unchanged"), "{text}");
    let text = works(&undo(&server, &temporary, &["--keys", "*", "--to", &point]));
    assert!(text.contains("4 restored, 0 deleted, 2 unchanged"), "{text}");
    assert_eq!(values(&mut wire, "*"), expected);
    ask(&mut wire, "SELECT 3");
    assert_eq!(ask(&mut wire, "GET text"), Value::Bulk(b"mine".to_vec()), "of another database");
    let text = works(&undo(&server, &temporary, &["--keys", "*", "--to", &point, "--db", "3"]));
    assert!(text.contains("database 3, keys \"*\": 0 restored, 1 deleted"), "{text}");
    assert_eq!(names(&temporary), [""; 0], "nothing is left");
}

#[test]
fn undo_says_why_it_cannot() {
    let Some(Made { folder, .. }) = made("pit-undo-not") else { return };
    let temporary = folder.at("temp");
    fs::create_dir(&temporary).expect("a folder");
    let server = ServerProcess::start(&Binary::under_test(), &["--dir", folder.path()]);
    let run = |more: &[&str]| undo(&server, &temporary, more);
    fails(&run(&["--keys", "*", "--to", "99"]), "before the oldest data");
    fails(&run(&["--keys", "*", "--to", "999"]), "there is no record 999");
    fails(&run(&["--keys", "*", "--to", "101", "--dir", "/none"]), "/none is no folder");
    fails(&run(&["--keys", "*", "--to", "101", "--db", "16"]), "refuses SELECT");
    fails(&run(&["--keys", "*"]), "--to is missing");
    works(&run(&["--help"]));
    assert_eq!(names(&temporary), [""; 0], "nothing is left");
    // The server with the old data does not start: a command that nobody knows.
    let path = folder.at("appendonlydir/i1");
    let mut file = fs::read(&path).expect("it is there");
    let at = file.windows(5).position(|word| word == b"RPUSH").expect("it is there");
    file[at] = b'X';
    fs::write(&path, file).expect("a file");
    fails(&run(&["--keys", "*", "--to", "103"]), "the server with the old data has ended");
    assert_eq!(names(&temporary), [""; 0], "nothing is left");
}

/// How a server is told to keep history.
const HISTORY: [&str; 2] = ["--aof-history", "1gb"];

/// A real server with rewrites, each number and each moment of its history, while it runs.
#[test]
fn the_history_of_a_running_server_is_restored() {
    let binary = Binary::under_test();
    if binary.kind == Kind::Redis {
        return;
    }
    // A server which does not know the setting keeps no history.
    let plain = ServerProcess::start(&binary, &[]);
    if ask(&mut plain.connect(), &format!("CONFIG GET {}", &HISTORY[0][2..]))
        == Value::Array(vec![])
    {
        return;
    }
    drop(plain);
    for preamble in ["yes", "no"] {
        the_history_is_restored(&binary, preamble);
    }
}

fn the_history_is_restored(binary: &Binary, preamble: &str) {
    let folder = Folder::new("pit-real");
    let words = ["--dir", folder.path(), "--appendonly", "yes"];
    let format = ["--aof-use-rdb-preamble", preamble];
    let server = ServerProcess::start(binary, &[&words[..], &HISTORY, &format].concat());
    let mut wire = server.connect();
    let info = |wire: &mut Wire, name: &str| {
        let Value::Bulk(info) = ask(wire, "INFO persistence") else { panic!("no text") };
        let info = String::from_utf8_lossy(&info).into_owned();
        let mut lines = info.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.expect("the field is there").trim_end().parse::<u64>().expect("a number")
    };
    let mut known = Vec::new();
    for round in 0..12 {
        for line in [&format!("SET text {round}"), &format!("RPUSH list {round}"), "INCR counter"] {
            ask(&mut wire, line);
        }
        let last = info(&mut wire, "journal_last_number");
        until("it is durable", || info(&mut wire, "journal_durable_number") >= last);
        known.push((last, state(&mut wire, false)));
        if round % 4 == 3 {
            ask(&mut wire, "BGREWRITEAOF");
            until("the rewrite", || !is_rewriting(&mut wire));
        }
    }
    let new = folder.at("new");
    for (number, expected) in &known {
        let text = works(&restore(&folder, &number.to_string(), &new));
        assert_eq!(&loaded(binary, &new), expected, "{number}: {text}");
    }
    let (number, _) = &known[5];
    let temporary = folder.at("temp");
    fs::create_dir(&temporary).expect("a folder");
    works(&undo(&server, &temporary, &["--keys", "*", "--to", &number.to_string()]));
    assert_eq!(state(&mut wire, false), known[5].1);
    // Undone is a change like any other: it can be undone.
    let (number, _) = known.last().expect("there are some");
    works(&undo(&server, &temporary, &["--keys", "*", "--to", &number.to_string()]));
    assert_eq!(state(&mut wire, false), known.last().expect("there are some").1);
}

/// The server with the old data of a running `sheafdb undo`, once it is one.
fn private_server(undo: &Child) -> Option<Pid> {
    let parent = format!(" {} ", undo.id());
    let is_server = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name may have blanks; behind it stand the state and the parent.
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        behind.get(2..).is_some_and(|behind| behind.starts_with(&parent))
            && words.split(|byte| *byte == 0).nth(1) == Some(b"--dir")
    };
    let names = fs::read_dir("/proc").expect("a list").flatten();
    let mut pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(is_server).and_then(Pid::from_raw)
}

/// `sheafdb undo` whose server with the old data stands still, most likely before it has loaded
/// them.
fn held_undo(server: &ServerProcess, temporary: &Path) -> (Child, Pid) {
    let (port, temporary) = (server.addr.port().to_string(), temporary.to_str().expect("plain"));
    loop {
        let words = ["undo", "--port", &port, "--temp", temporary, "--keys", "*", "--to"];
        let mut command = Command::new(Binary::under_test().path);
        command.args(words).arg(number(9).to_string());
        let mut child = spawn(&mut command);
        let mut found = None;
        until("it has a server", || {
            found = private_server(&child);
            found.is_some() || child.try_wait().is_ok_and(|status| status.is_some())
        });
        if let Some(pid) = found
            && kill_process(pid, Signal::STOP).is_ok()
            && child.try_wait().is_ok_and(|status| status.is_none())
        {
            return (child, pid);
        }
        // It was over before this test has looked.
        let _ = child.kill();
        finish(child);
    }
}

/// However `undo` ends, its server does not stay.
#[test]
fn the_server_of_a_killed_undo_ends() {
    let Some(Made { folder, .. }) = made("pit-undo-killed") else { return };
    let server = ServerProcess::start(&Binary::under_test(), &["--dir", folder.path()]);
    let temporary = folder.at("temp");
    fs::create_dir(&temporary).expect("a folder");
    let (mut child, pid) = held_undo(&server, &temporary);
    child.kill().expect("it runs");
    finish(child);
    let process = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    // (Nobody may have waited for it; then it has no words any more.)
    let is_there = || fs::read(&process).is_ok_and(|words| !words.is_empty());
    until("its server ends", || !is_there());
}

/// The running server closes connections which are silent for a second.
#[test]
fn undo_works_beside_a_timeout() {
    let Some(Made { folder, .. }) = made("pit-undo-timeout") else { return };
    let more = ["--dir", folder.path(), "--timeout", "1"];
    let server = ServerProcess::start(&Binary::under_test(), &more);
    let temporary = folder.at("temp");
    fs::create_dir(&temporary).expect("a folder");
    ask(&mut server.connect(), "SET new mine");
    let (child, pid) = held_undo(&server, &temporary);
    // Long enough for the server to close what `undo` leaves open.
    until("nobody is connected", || {
        let clients = render::line(&ask(&mut server.connect(), "INFO clients"));
        clients.contains("connected_clients:1\\r")
    });
    kill_process(pid, Signal::CONT).expect("it runs");
    let out = finish(child);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_ne!(render::line(&ask(&mut server.connect(), "GET new")), "\"mine\"");
}
