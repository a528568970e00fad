//! The order of the journal: what workers did at the same time to the same few keys is what a
//! server makes of the file.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, sleep};
use std::time::Duration;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::rdb_state::databases;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

use super::mirror::{difference, plain};
use super::ops::words;
use super::world::redis;

/// Rounds of a run; `CRASH_ROUNDS` sets another number.
const ROUNDS: usize = 12;
/// Clients of a round.
const CLIENTS: usize = 4;
/// An expiry that does not come while a test runs.
const FAR_MS: usize = 100_000_000;
/// The longest other expiry, and some more.
pub(super) const DUE: Duration = Duration::from_millis(30);

#[test]
fn what_workers_did_at_once_is_in_the_file_in_that_order() {
    let rounds = super::env_number("CRASH_ROUNDS").map_or(ROUNDS, |n| n as usize);
    for round in 0..rounds {
        let folder = Folder::new(&format!("order-{round}"));
        let fsync = if round.is_multiple_of(3) { "always" } else { "everysec" };
        let threads = if round.is_multiple_of(4) { "2" } else { "4" };
        let server = start(folder.path(), &["--threads", threads, "--appendfsync", fsync]);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            start_clients(scope, server.addr, round, &is_over);
            sleep(Duration::from_millis(60));
            if round.is_multiple_of(2) {
                server.connect().command(&["BGREWRITEAOF"]).expect("an answer");
            }
            sleep(Duration::from_millis(140));
            is_over.store(true, Ordering::Relaxed);
        });
        sleep(DUE);
        assert_same(&folder, &server, &format!("round {round}"), true);
    }
}

/// Clients which change the same few keys until it is over.
pub(super) fn start_clients<'s>(
    scope: &'s Scope<'s, '_>,
    addr: SocketAddr,
    round: usize,
    is_over: &'s AtomicBool,
) {
    for client in 0..CLIENTS {
        let seed = (round * CLIENTS + client) as u64;
        scope.spawn(move || work(addr, &mut Rng::new(seed), is_over));
    }
}

fn start(folder: &str, more: &[&str]) -> ServerProcess {
    let words = ["--dir", folder, "--appendonly", "yes"];
    ServerProcess::start(&Binary::under_test(), &[&words[..], more].concat())
}

/// A second server makes the same of a copy of the folder, and redis-server, too, if `is_known`.
/// Returns the state.
pub fn assert_same(folder: &Folder, server: &ServerProcess, what: &str, is_known: bool) -> String {
    let live = plain(&databases(&mut server.connect(), 0..16));
    await_written(&mut server.connect());
    let copy = folder.at("copy");
    copy_files(&folder.at("appendonlydir"), &copy.join("appendonlydir"));
    let name = copy.to_str().expect("plain");
    if is_known {
        let redis = ServerProcess::start(&redis(), &["--dir", name, "--appendonly", "yes"]);
        let theirs = plain(&databases(&mut redis.connect(), 0..16));
        assert!(theirs == live, "{what}, redis-server:\n{}", difference(&live, &theirs));
    }
    let again = start(name, &["--threads", "2"]);
    let ours = plain(&databases(&mut again.connect(), 0..16));
    assert!(ours == live, "{what}:\n{}", difference(&live, &ours));
    drop(again);
    fs::remove_dir_all(&copy).expect("it is there");
    live
}

/// Waits until everything that was recorded by now is in the file and synced, and no rewrite is
/// under way. (`aof_buffer_length` is what worker 0 knows of: it may not have looked yet.)
pub fn await_written(wire: &mut Wire) {
    let mut last = None;
    until("everything is written", || {
        let info = wire.command(&["INFO", "persistence"]).expect("an answer");
        let (Value::Bulk(text) | Value::Verbatim(text)) = info else { panic!("{info:?}") };
        let text = String::from_utf8_lossy(&text).into_owned();
        let number = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
        };
        let last = *last.get_or_insert_with(|| number("journal_last_number"));
        number("journal_durable_number") >= last
            && number("aof_buffer_length") == 0
            && number("aof_rewrite_in_progress") == 0
            && number("aof_rewrite_scheduled") == 0
    });
}

/// Copies the files of a folder into another one.
pub fn copy_files(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

/// Changes eight keys, alone and together.
fn work(addr: SocketAddr, rng: &mut Rng, is_over: &AtomicBool) {
    let mut wire = Wire::connect(addr).expect("the server accepts connections");
    let mut n = rng.below(1000) * 100_000;
    while !is_over.load(Ordering::Relaxed) {
        n += 1;
        let count = rng.pick(&[1, 1, 3, 6]);
        let mut lines: Vec<String> = (0..count).map(|_| line(rng, n)).collect();
        if count > 1 {
            lines.insert(0, "MULTI".into());
            lines.push("EXEC".into());
        }
        let bytes: Vec<u8> = lines.iter().flat_map(|line| encode(&words(line))).collect();
        wire.send(&bytes).expect("sent");
        for _ in &lines {
            wire.receive().expect("an answer");
        }
    }
}

fn line(rng: &mut Rng, n: usize) -> String {
    // Some keys are still there when the files are compared, with their time.
    let ms = if rng.chance(30) { FAR_MS + rng.below(1000) } else { 1 + rng.below(15) };
    let two = rng.below(2);
    let lines = [
        format!("APPEND string {n};"),
        format!("SET string {n} PX {ms}"),
        format!("GETSET string {n}"),
        format!("INCR number{two}"),
        format!("PEXPIRE number{two} {ms}"),
        "RENAME number0 number1".into(),
        format!("RPUSH list0 {n}"),
        format!("LPUSH list1 {n}"),
        "BLMOVE list0 list1 LEFT RIGHT 0.01".into(),
        "BRPOPLPUSH list1 list0 0.01".into(),
        "BLPOP list1 0.01".into(),
        "LTRIM list0 -30 -1".into(),
        format!("LSET list0 -1 {n}"),
        format!("PEXPIRE list{two} {ms}"),
        format!("SADD set {n}"),
        "SPOP set 2".into(),
        format!("PEXPIRE set {ms}"),
        format!("HSET hash {} {n}", n % 7),
        "HINCRBYFLOAT hash sum 0.25".into(),
        format!("PEXPIRE hash {ms}"),
        format!("ZADD zset {} {n}", n % 9),
        "BZPOPMIN zset 0.01".into(),
        "ZREMRANGEBYRANK zset 0 2".into(),
        "XADD stream MAXLEN ~ 30 * n 1".into(),
        "XTRIM stream MAXLEN ~ 10".into(),
        format!("COPY list{two} string REPLACE"),
        "DEL string".into(),
        "SELECT 1".into(),
        "SELECT 0".into(),
        format!("MOVE set {two}"),
        "FLUSHDB".into(),
    ];
    let last = if rng.chance(5) { lines.len() } else { lines.len() - 1 };
    lines[rng.below(last)].clone()
}
