//! Offsets in the stream of replication: in INFO, in the files, and behind a restart. A reader of
//! its own counts the bytes of the files; redis-server with a replica counts the same.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::program::root;
use sheafdb_tests::rdb_state::state;
use sheafdb_tests::rewrite::is_rewriting;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

mod recount;
mod world;
use recount::{FILES, MANIFEST, Recount, copy, field};
use world::World;

const NO_ID: &str = "0000000000000000000000000000000000000000";

fn ask(wire: &mut Wire, line: &str) -> Value {
    let reply = wire.command(&line.split(' ').collect::<Vec<_>>()).expect("an answer");
    assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    reply
}

fn info(wire: &mut Wire, section: &str) -> BTreeMap<String, String> {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("no text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

/// What INFO says about the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    id: String,
    offset: u64,
    id2: String,
    offset2: i64,
}

fn shown(wire: &mut Wire) -> Shown {
    let info = info(wire, "replication");
    assert_eq!(info["role"], "master");
    Shown {
        id: info["master_replid"].clone(),
        offset: info["master_repl_offset"].parse().expect("a number"),
        id2: info["master_replid2"].clone(),
        offset2: info["second_repl_offset"].parse().expect("a number"),
    }
}

fn persistence(wire: &mut Wire, field: &str) -> u64 {
    info(wire, "persistence")[field].parse().expect("a number")
}

fn rewrites_end(wire: &mut Wire, before: u64) {
    until("the rewrite", || persistence(wire, "aof_rewrites") > before && !is_rewriting(wire));
}

fn rewrite(wire: &mut Wire) {
    let before = persistence(wire, "aof_rewrites");
    ask(wire, "BGREWRITEAOF");
    rewrites_end(wire, before);
}

fn start(binary: &Binary, folder: &Folder, more: &[&str]) -> ServerProcess {
    let words = ["--dir", folder.path(), "--appendonly", "yes", "--appendfsync", "always"];
    ServerProcess::start(binary, &[&words[..], more].concat())
}

/// What INFO says behind a start: the id of before counts up to where its bytes end.
fn assert_goes_on(shown: &Shown, (id, offset): (Option<String>, u64), seen: &[String]) {
    assert_eq!((&shown.id2, shown.offset2), (&id.expect("an id"), offset as i64 + 1), "{shown:?}");
    assert!(shown.offset >= offset, "{shown:?}: {offset}");
    assert!(!seen.contains(&shown.id), "{shown:?}: an id names one history");
}

fn checked(program: &mut Command) -> String {
    let out = program.stdin(Stdio::null()).output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

fn check_aof(folder: &Folder) -> String {
    checked(Command::new(Binary::under_test().path).arg("check-aof").arg(folder.at(MANIFEST)))
}

#[test]
fn numbers_and_offsets_are_those_of_the_files() {
    if Binary::under_test().kind == Kind::Redis {
        return;
    }
    let (mut lines, mut producers, mut bases, mut records) = (0, 0, 0, 0);
    for seed in 1..=3 {
        let mut world = World::new(seed);
        for _ in 0..5 {
            world.run();
        }
        // What a crash has left is cut off by the next start.
        let server = start(&Binary::under_test(), &world.folder, &["--aof-history", "1gb"]);
        let mut wire = server.connect();
        world.seen.push(shown(&mut wire).id);
        world.await_count(&mut wire);
        server.end();
        let count = world.count();
        assert!(!count.is_cut);
        let text = check_aof(&world.folder);
        let (id, offset) = (count.id.as_ref().expect("an id"), count.offset);
        let said = format!("they end at offset {offset} of replication stream {id}\n");
        assert!(text.contains(&said), "{text}");
        lines += count.lines;
        producers += count.producers;
        bases += count.bases;
        records += count.behind.len();
        restores(&world, &count);
        redis_takes(&world.folder);
    }
    let is_enough = lines > 200 && producers > 20 && bases > 8 && records > 500;
    assert!(is_enough, "{lines} lines, {producers} of producers, {bases} bases, {records} records");
}

/// What is restored up to a number ends where the stream was behind that record.
fn restores(world: &World, count: &Recount) {
    let mut rng = world.rng.clone();
    let numbers: Vec<u64> = count.behind.keys().copied().collect();
    for _ in 0..4 {
        let number = rng.pick(&numbers);
        let new = Folder::new("aof-offset-restored");
        let until = number.to_string();
        let to = new.at("new");
        checked(
            Command::new(Binary::under_test().path)
                .args(["restore", "--until", &until, world.folder.path(), "-o"])
                .arg(&to),
        );
        let restored = Recount::of(&to);
        let (id, offset) = count.behind[&number].clone();
        assert_eq!(restored.position(), (Some(id), offset), "{number}");
        let words = ["--dir", to.to_str().expect("plain"), "--appendonly", "yes"];
        let server = ServerProcess::start(&Binary::under_test(), &words);
        assert_goes_on(&shown(&mut server.connect()), restored.position(), &world.seen);
    }
}

/// redis-server and redis-check-aof take the folder.
fn redis_takes(folder: &Folder) {
    checked(Command::new("redis-check-aof").arg(folder.at(MANIFEST)));
    let held = |binary: &Binary| {
        let copy = copy(folder, "aof-offset-copy");
        let server = start(binary, &copy, &[]);
        let mut wire = server.connect();
        let shown = shown(&mut wire);
        (state(&mut wire, false), shown)
    };
    let ((ours, _), (redis, redis_shown)) = (held(&Binary::under_test()), held(&Binary::redis()));
    assert_eq!(ours, redis);
    assert_eq!((&*redis_shown.id2, redis_shown.offset2), (NO_ID, -1), "it does not look at it");
}

/// Files without offsets, of an older SheafDB and of redis-server: a new stream begins with the
/// first record.
#[test]
fn files_without_offsets_begin_a_new_stream() {
    if Binary::under_test().kind == Kind::Redis {
        return;
    }
    let older = Folder::new("aof-offset-older");
    fs::create_dir(older.at(FILES)).expect("a folder");
    let recorded = root().join("tests/aof/files/sheafdb-numbers-rewritten");
    for entry in fs::read_dir(recorded).expect("a folder") {
        let entry = entry.expect("a name");
        fs::copy(entry.path(), older.at(FILES).join(entry.file_name())).expect("a copy");
    }
    let of_redis = Folder::new("aof-offset-redis");
    let redis = start(&Binary::redis(), &of_redis, &[]);
    ask(&mut redis.connect(), "SET a 1");
    redis.end();
    for folder in [older, of_redis] {
        assert!(!check_aof(&folder).contains("replication"), "nobody knows");
        let server = start(&Binary::under_test(), &folder, &[]);
        let mut wire = server.connect();
        let first = shown(&mut wire);
        assert_eq!((first.offset, &*first.id2, first.offset2), (0, NO_ID, -1));
        ask(&mut wire, "SET a 1");
        let len = (encode(&["SELECT", "0"]).len() + encode(&["SET", "a", "1"]).len()) as u64;
        until("it is counted", || shown(&mut wire).offset == len);
        server.end();
        let server = start(&Binary::under_test(), &folder, &[]);
        assert_goes_on(&shown(&mut server.connect()), (Some(first.id.clone()), len), &[first.id]);
        server.end();
    }
}

/// The data of a base has its place, and a snapshot has none: no replica was ever there.
#[test]
fn a_base_has_its_place_and_a_snapshot_has_none() {
    if Binary::under_test().kind == Kind::Redis {
        return;
    }
    let folder = Folder::new("aof-offset-base");
    let server = start(&Binary::under_test(), &folder, &[]);
    let mut wire = server.connect();
    ask(&mut wire, "SET a 1");
    rewrite(&mut wire);
    let shown = shown(&mut wire);
    let text = fs::read_to_string(folder.at(MANIFEST)).expect("a manifest");
    let base = text.split(' ').nth(1).expect("a name").to_owned();
    let base = folder.at(FILES).join(base);
    assert_eq!(field(&base, "repl-id"), Some(shown.id));
    assert_eq!(field(&base, "repl-offset"), Some(shown.offset.to_string()));
    ask(&mut wire, "SAVE");
    assert_eq!(field(&folder.file(), "repl-id"), None, "as redis-server without replicas");
}

const LINES: [&str; 9] = [
    "SET a 1",
    "SET b \u{fc}ber PXAT 33000000000000",
    "SELECT 3",
    "RPUSH list a b c",
    "MULTI",
    "INCR n",
    "EXEC",
    "SELECT 0",
    "DEL a",
];

/// The fields which do not depend on chance.
fn fields(wire: &mut Wire) -> BTreeMap<String, String> {
    let mut fields = info(wire, "replication");
    fields.retain(|name, _| name.starts_with("master_repl") || name.contains("repl_"));
    fields.remove("master_replid");
    fields
}

/// Without an append-only file nothing is counted. With one, the same commands have the same bytes
/// as those which redis-server sends to a replica; and behind a start of redis-server from a file
/// which says the position, INFO says what ours says.
#[test]
fn redis_server_counts_the_same() {
    if Binary::under_test().kind == Kind::Redis {
        return;
    }
    let (plain, redis) = (
        ServerProcess::start(&Binary::under_test(), &[]),
        ServerProcess::start(&Binary::redis(), &[]),
    );
    let (mut ours, mut theirs) = (plain.connect(), redis.connect());
    ask(&mut ours, "SET a 1");
    ask(&mut theirs, "SET a 1");
    assert_eq!(fields(&mut ours), fields(&mut theirs));

    let (here, there) = (Folder::new("aof-offset-ours"), Folder::new("aof-offset-master"));
    let server = start(&Binary::under_test(), &here, &[]);
    let quiet = ["--repl-ping-replica-period", "3600", "--repl-diskless-sync-delay", "0"];
    let quiet = [&quiet[..], &["--dir", there.path()]].concat();
    let master = ServerProcess::start(&Binary::redis(), &quiet);
    let of = format!("127.0.0.1 {}", master.addr.port());
    let replica = ServerProcess::start(&Binary::redis(), &["--replicaof", &of]);
    let mut follower = replica.connect();
    until("the replica follows", || {
        info(&mut follower, "replication")["master_link_status"] == "up"
    });
    let (mut ours, mut theirs) = (server.connect(), master.connect());
    let mut writers = [server.connect(), master.connect()];
    let begun = shown(&mut theirs).offset;
    for line in LINES {
        for wire in &mut writers {
            ask(wire, line);
        }
        let counted = shown(&mut theirs).offset - begun;
        until("it is counted", || shown(&mut ours).offset == counted);
    }
    // (A replica follows until its master ends, which may send it something.)
    // (It may still be in the save for its replica, in which SAVE is an error.)
    until("it is saved", || !matches!(theirs.command(&["SAVE"]), Ok(Value::Error(_)) | Err(_)));
    drop(replica);
    let (before, redis_before) = (shown(&mut ours), shown(&mut theirs));
    server.end();
    drop(master.kill());
    let server = start(&Binary::under_test(), &here, &[]);
    let master = ServerProcess::start(&Binary::redis(), &quiet);
    for (server, before) in [(server, before), (master, redis_before)] {
        let after = shown(&mut server.connect());
        let second = (before.id.clone(), before.offset as i64 + 1);
        assert_eq!(
            (after.id2.clone(), after.offset2, after.offset),
            (second.0, second.1, before.offset)
        );
        assert_ne!(after.id, before.id);
    }
}
