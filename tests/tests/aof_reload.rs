//! DEBUG RELOAD and DEBUG LOADAOF beside an append-only file: both bring back the data which the
//! file has. (`crash` does both at random, and kills the server meanwhile.)

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use sheafdb_tests::differential::{Delivery, Mix, Sequence, execute, generate};
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::rdb_state::databases;
use sheafdb_tests::render;
use sheafdb_tests::rewrite::is_rewriting;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{PATIENCE, Value, Wire};

/// Both, and what they are refused with when their data cannot be loaded.
const BOTH: [&str; 2] = ["DEBUG RELOAD", "DEBUG LOADAOF"];
const NOT_LOADED: &str = "-ERR Error trying to load the append-only file, see the log";
const LOADING: &str = "-LOADING Redis is loading the dataset in memory";
/// Keys of the sequences expire within so long, or much later.
const DUE: Duration = Duration::from_millis(20);

/// `None` without SheafDB.
fn start(folder: &Folder, more: &[&str]) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    let words = ["--dir", folder.path()];
    (binary.kind == Kind::SheafDb)
        .then(|| ServerProcess::start(&binary, &[&words[..], more].concat()))
}

fn ask(wire: &mut Wire, text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).map_or_else(|_| "closed".into(), |reply| render::line(&reply))
}

fn info(wire: &mut Wire, name: &str) -> String {
    let Ok(Value::Bulk(text)) = wire.command(&["INFO", "persistence"]) else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
}

/// The files of the folder, sorted, with their contents.
fn files(folder: &Folder) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder.at("appendonlydir")).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// Everything that is held, but the times at which streams were read.
fn held(server: &ServerProcess) -> String {
    let is_time = |word: &str| ["seen", "active", "delivered"].contains(&word);
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        // The word and the number behind it.
        let is_left_out = |at: usize| is_time(words[at]) || at > 0 && is_time(words[at - 1]);
        (0..words.len())
            .filter(|at| !is_left_out(*at))
            .map(|at| words[at])
            .collect::<Vec<_>>()
            .join(" ")
    };
    let all = databases(&mut server.connect(), 0..16);
    all.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Random changes of every family.
fn sequence(round: u64) -> Sequence {
    let mix = Mix::of_changes();
    let first = 9_000_000 + round * 5;
    let steps = (first..first + 5).flat_map(|seed| generate(seed, &mix).steps).collect();
    Sequence { proto: 2, delivery: Delivery::OneByOne, steps }
}

/// Random data stays what it is, no record is left, and a server which is killed behind it starts
/// with the same data; so does one which has written more.
#[test]
fn random_data_stays_and_nothing_is_recorded() {
    for round in 0..6_u64 {
        let folder = Folder::new(&format!("aof-reload-{round}"));
        let fsync = ["always", "everysec", "no"][round as usize % 3];
        let threads = if round % 2 == 0 { "1" } else { "3" };
        let more = ["--appendonly", "yes", "--appendfsync", fsync, "--threads", threads];
        let Some(server) = start(&folder, &more) else { return };
        let mut wire = server.connect();
        assert_eq!(execute(server.addr, &sequence(round), PATIENCE, false).broken, None, "{round}");
        if round % 2 == 1 {
            assert!(ask(&mut wire, "BGREWRITEAOF").starts_with('+'));
            until("it is rewritten", || !is_rewriting(&mut wire));
        }
        assert_eq!(ask(&mut wire, "SET last write"), "+OK");
        thread::sleep(DUE);
        // What is due is removed now, and not between two looks.
        let before = held(&server);
        assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 0"), "+OK");
        let digest = ask(&mut wire, "DEBUG DIGEST");
        let number = info(&mut wire, "journal_last_number");
        for reload in BOTH {
            assert_eq!(ask(&mut wire, reload), "+OK", "{}", server.log());
            let what = format!("round {round}, {reload}");
            assert_eq!(ask(&mut wire, "DEBUG DIGEST"), digest, "{what}");
            assert_eq!(held(&server), before, "{what}");
            assert_eq!(info(&mut wire, "journal_last_number"), number, "{what}");
            assert_eq!(info(&mut wire, "rdb_changes_since_last_save"), "0", "{what}");
            assert_eq!(info(&mut wire, "loading"), "0", "{what}");
        }
        // Writing goes on, and a reply waits for the disk as always.
        assert_eq!(ask(&mut wire, "SET more text"), "+OK");
        assert_eq!(ask(&mut wire, BOTH[1]), "+OK", "it writes everything first");
        let after = held(&server);
        server.kill();
        let Some(server) = start(&folder, &more) else { return };
        assert_eq!(held(&server), after, "round {round}, restarted");
    }
}

/// A key that is due and was not removed yet is there behind a reload, too: whoever finds it
/// removes it, and says so in the file. (It was left out once, so what was pushed behind that was
/// appended to the old list when the file was loaded.)
#[test]
fn what_is_due_is_removed_by_a_record() {
    for reload in BOTH {
        let folder = Folder::new(&format!("aof-reload-due-{}", reload.len()));
        let more = ["--appendonly", "yes", "--appendfsync", "always"];
        let Some(server) = start(&folder, &more) else { return };
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 0"), "+OK");
        assert_eq!(ask(&mut wire, "RPUSH list old"), ":1");
        assert_eq!(ask(&mut wire, "HSET hash a old b old"), ":2");
        assert_eq!(ask(&mut wire, "PEXPIRE list 1"), ":1");
        assert_eq!(ask(&mut wire, "HPEXPIRE hash 1 FIELDS 1 a"), "*1 :1");
        thread::sleep(DUE);
        assert_eq!(ask(&mut wire, reload), "+OK");
        assert_eq!(ask(&mut wire, "RPUSH list new"), ":1");
        assert_eq!(ask(&mut wire, "HINCRBY hash a 1"), ":1");
        let before = held(&server);
        server.kill();
        let Some(server) = start(&folder, &more) else { return };
        assert_eq!(held(&server), before, "{reload}");
        assert_eq!(ask(&mut server.connect(), "LRANGE list 0 -1"), "*1 \"new\"");
    }
}

/// Counters of a client, until it is told to stop or the server is gone: what was acknowledged.
fn count(mut wire: Wire, name: &str, stop: &AtomicBool, changes: &AtomicU64) -> i64 {
    let mut acknowledged = 0;
    while !stop.load(Ordering::Acquire) {
        match wire.command(&["INCR", name]) {
            Ok(Value::Int(n)) => {
                assert!(n > acknowledged, "{name}: {n} behind {acknowledged}");
                acknowledged = n;
                changes.fetch_add(1, Ordering::Relaxed);
            }
            Ok(reply) => assert_eq!(render::line(&reply), LOADING),
            Err(_) => break,
        }
    }
    acknowledged
}

/// Clients write meanwhile, and the server is killed behind that or within it: with `always`
/// nothing that was acknowledged is lost, and a client never sees an older value.
#[test]
fn nothing_acknowledged_is_lost_beside_writers() {
    for (threads, within) in [("1", false), ("2", false), ("4", true), ("2", true)] {
        let folder = Folder::new(&format!("aof-reload-beside-{threads}-{within}"));
        let more = ["--appendonly", "yes", "--appendfsync", "always", "--threads", threads];
        let Some(server) = start(&folder, &more) else { return };
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "DEBUG POPULATE 20000 k 100"), "+OK");
        let (stop, changes) = (AtomicBool::new(false), AtomicU64::new(0));
        let names = ["a", "b", "c", "d"];
        let counted = thread::scope(|scope| {
            let _end = SetAtEnd(&stop);
            let clients = names.map(|name| {
                let (wire, stop, changes) = (server.connect(), &stop, &changes);
                scope.spawn(move || count(wire, name, stop, changes))
            });
            for round in 0..12 {
                assert_eq!(ask(&mut wire, BOTH[round % 2]), "+OK", "{}", server.log());
                let before = changes.load(Ordering::Relaxed);
                until("changes are made", || changes.load(Ordering::Relaxed) > before + 20);
            }
            if within {
                assert_eq!(ask(&mut wire, "CONFIG SET key-load-delay 1000"), "+OK");
                let words = ["DEBUG", ["RELOAD", "LOADAOF"][usize::from(threads == "2")]];
                wire.send(&sheafdb_tests::wire::encode(&words)).expect("sent");
                let mut other = server.connect();
                until("it loads", || info(&mut other, "loading") == "1");
            }
            server.kill();
            clients.map(|client| client.join().expect("no panic"))
        });
        let Some(server) = start(&folder, &more) else { return };
        let mut wire = server.connect();
        for (name, counted) in names.into_iter().zip(counted) {
            let found = ask(&mut wire, &format!("INCRBY {name} 0"));
            let found: i64 = found[1..].parse().expect("a number");
            assert!(counted > 0, "{name} was never counted");
            assert!(found == counted || found == counted + 1, "{name}: {found}, not {counted}");
        }
        assert_eq!(ask(&mut wire, "EXISTS k:0 k:19999"), ":2");
    }
}

/// What is refused, and leaves everything as it is.
#[test]
fn what_cannot_be_reloaded_is_refused() {
    let folder = Folder::new("aof-reload-refused");
    let Some(server) = start(&folder, &["--appendonly", "yes", "--threads", "2"]) else { return };
    let (mut wire, mut other) = (server.connect(), server.connect());
    assert_eq!(ask(&mut wire, "SET a 1"), "+OK");
    assert_eq!(ask(&mut wire, "SAVE"), "+OK");
    assert_eq!(ask(&mut wire, "SET a 2"), "+OK");
    for text in ["DEBUG RELOAD NOSAVE", "DEBUG RELOAD NOFLUSH NOSAVE MERGE"] {
        let reply = ask(&mut wire, text);
        assert!(reply.starts_with("-ERR DEBUG RELOAD NOSAVE is not possible"), "{reply}");
    }
    assert_eq!(ask(&mut wire, "DEBUG RELOAD NOFLUSH"), "+OK", "it replaces each key by itself");
    assert_eq!(ask(&mut wire, "MULTI"), "+OK");
    for text in BOTH {
        assert_eq!(ask(&mut wire, text), "+QUEUED");
    }
    let in_multi = "-ERR Command not allowed inside a transaction";
    assert_eq!(ask(&mut wire, "EXEC"), format!("*2 {in_multi} {in_multi}"));
    // A rewrite would remove the files which are read; writes would wait as long as it takes.
    assert_eq!(ask(&mut wire, "CONFIG SET rdb-key-save-delay 2000000000"), "+OK");
    assert!(ask(&mut wire, "BGREWRITEAOF").starts_with('+'));
    until("it is rewritten", || info(&mut wire, "aof_rewrite_in_progress") == "1");
    let under_way = "-ERR Background append only file rewriting already in progress";
    assert_eq!(ask(&mut wire, "DEBUG LOADAOF"), under_way);
    assert_eq!(ask(&mut wire, "DEBUG RELOAD"), "-ERR Background save already in progress");
    assert_eq!(ask(&mut other, "SET b 1"), "+OK", "writes do not wait");
    assert_eq!(ask(&mut other, "CONFIG SET rdb-key-save-delay 0"), "+OK");
    until("it is over", || !is_rewriting(&mut wire));
    // While it is loaded, clients are answered as at the start.
    assert_eq!(ask(&mut wire, "DEBUG POPULATE 1000"), "+OK");
    assert_eq!(ask(&mut other, "CONFIG SET key-load-delay 2000000000"), "+OK");
    wire.send(&sheafdb_tests::wire::encode(&["DEBUG", "LOADAOF"])).expect("sent");
    until("it loads", || info(&mut other, "loading") == "1");
    for text in ["GET a", "SET a 3", "DEBUG RELOAD", "DEBUG LOADAOF", "DBSIZE"] {
        assert_eq!(ask(&mut other, text), LOADING, "{text}");
    }
    assert_eq!(ask(&mut other, "CONFIG SET key-load-delay 0"), "+OK");
    assert_eq!(render::line(&wire.receive().expect("a reply")), "+OK");
    assert_eq!(ask(&mut other, "MGET a b key:999"), "*3 \"2\" \"1\" \"value:999\"");
}

/// With `appendonly no` the files which are there are loaded, as they are. (redis-server ends if
/// there are none.)
#[test]
fn without_an_append_only_file_what_is_there_is_loaded() {
    let folder = Folder::new("aof-reload-off");
    let Some(server) = start(&folder, &["--threads", "2"]) else { return };
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "SET a 1"), "+OK");
    assert_eq!(ask(&mut wire, "DEBUG LOADAOF"), NOT_LOADED, "nothing is there");
    assert_eq!(ask(&mut wire, "GET a"), "\"1\"");
    assert!(ask(&mut wire, "BGREWRITEAOF").starts_with('+'));
    until("the file is written", || {
        !is_rewriting(&mut wire)
            && folder.at("appendonlydir/appendonly.aof.1.base.rdb").exists()
            && server.log().contains("the new base is complete")
    });
    assert_eq!(ask(&mut wire, "SET a 2"), "+OK");
    assert_eq!(ask(&mut wire, "SET b 2"), "+OK");
    let mut reply = ask(&mut wire, "DEBUG LOADAOF");
    until("the file is closed", || {
        if reply.starts_with("-ERR Background append") {
            reply = ask(&mut wire, "DEBUG LOADAOF");
        }
        reply == "+OK"
    });
    // The file may have ended behind these writes: then it has them.
    let found = ask(&mut wire, "MGET a b");
    assert!(found == "*2 \"1\" (nil)" || found == "*2 \"2\" \"2\"", "{found}");
    // It begins anew behind that, with the data which is there.
    assert_eq!(ask(&mut wire, "SET c 3"), "+OK");
    assert_eq!(ask(&mut wire, "CONFIG SET appendonly yes"), "+OK");
    until("it is complete", || {
        !is_rewriting(&mut wire) && ask(&mut wire, "WAITAOF 1 0 100") == "*2 :1 :0"
    });
    // (Old files may yet be removed.)
    until("the takeover is over", || ask(&mut wire, "DEBUG LOADAOF") == "+OK");
    assert_eq!(ask(&mut wire, "GET c"), "\"3\"");
    // A folder which cannot be understood leaves the data.
    assert_eq!(ask(&mut wire, "CONFIG SET appendonly no"), "+OK");
    until("it is off", || info(&mut wire, "aof_enabled") == "0");
    fs::write(folder.at("appendonlydir/appendonly.aof.manifest"), "no manifest\n").expect("room");
    let mut reply = String::new();
    until("it was closed", || {
        reply = ask(&mut wire, "DEBUG LOADAOF");
        reply != "+OK"
    });
    assert_eq!(reply, NOT_LOADED);
    assert_eq!(ask(&mut wire, "GET c"), "\"3\"");
}

/// Behind the removal of the data it is too late: the server ends as at a start, and writes
/// nothing more to the file. redis-server ends, too.
#[test]
fn a_damaged_file_ends_the_server_and_stays_as_it_is() {
    for bytes in ["no command\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n"] {
        let folder = Folder::new(&format!("aof-reload-damaged-{}", bytes.len()));
        let Some(mut server) = start(&folder, &["--appendonly", "yes"]) else { return };
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "SET a 1"), "+OK");
        assert_eq!(ask(&mut wire, "WAITAOF 1 0 0"), "*2 :1 :0");
        let (path, mut text) = files(&folder)
            .into_iter()
            .find(|(path, _)| path.to_string_lossy().ends_with(".incr.aof"))
            .expect("a segment");
        text.extend_from_slice(bytes.as_bytes());
        fs::write(&path, &text).expect("room");
        let before = files(&folder);
        assert_eq!(ask(&mut wire, "DEBUG LOADAOF"), "closed");
        assert_eq!(server.wait_exit(LIMIT).expect("it ends").code(), Some(1));
        assert_eq!(files(&folder), before);
        assert!(server.log().contains("cannot be loaded"), "{}", server.log());
    }
}
