//! `aof-use-rdb-preamble no`: bases of commands which this server writes, loaded by it and by
//! redis-server.

use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sheafdb_tests::rdb_state::databases;

use super::*;

const NO: [&str; 4] = ["--aof-use-rdb-preamble", "no", "--appendfsync", "always"];

fn server(folder: &Folder, more: &[&str]) -> ServerProcess {
    start(&Binary::under_test(), folder, &[&NO[..], &["--threads", "2"], more].concat())
}

/// Everything that the server holds, each line of long values, too; but when consumers were seen,
/// and pending entries which are gone: no command makes them.
fn all(server: &ServerProcess) -> String {
    let (mut entries, mut kept) = (HashSet::new(), Vec::new());
    for line in databases(&mut server.connect(), 0..16).lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().take(2).collect();
        match words[..] {
            ["entry", id] if line.starts_with(' ') => drop(entries.insert(id.to_owned())),
            ["pending", id] if line.starts_with(' ') && !entries.contains(id) => continue,
            _ if !line.starts_with(' ') => entries.clear(),
            _ => {}
        }
        let is_consumer = line.starts_with("  consumer ");
        let end = line.find(" seen ").filter(|_| is_consumer).unwrap_or(line.len());
        kept.push(line[..end].to_owned());
    }
    kept.join("\n")
}

/// The name of the base.
fn base(folder: &Folder) -> String {
    let manifest = fs::read_to_string(folder.at(MANIFEST)).expect("a manifest");
    let line = manifest.lines().find(|line| line.ends_with(" type b")).expect("a base");
    line.split(' ').nth(1).expect("its name").to_owned()
}

fn check(program: &Path, words: &[&str], folder: &Folder) {
    let manifest = folder.at(MANIFEST);
    let out = finish(spawn(Command::new(program).args(words).arg(manifest)));
    let told = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{}: {told}", program.display());
}

/// Random data of all families, a rewrite between them, a kill.
#[test]
fn random_data_is_the_same_behind_a_kill_here_and_in_redis() {
    let mix = Mix::of_changes();
    let mut keys = 0;
    for round in 0..4_u64 {
        let folder = Folder::new(&format!("aof-own-{round}"));
        {
            // Each sequence begins with FLUSHALL, which this server does not know.
            let redis = redis(&folder, &["--rename-command", "FLUSHALL", "X"]);
            for n in 0..60 {
                execute(redis.addr, &generate(90_000 + round * 1000 + n, &mix), PATIENCE, false);
            }
            keep_all(&redis);
            redis.end();
        }
        let live = server(&folder, &[]);
        rewrite(&live);
        for n in 0..20 {
            ask(&mut live.connect(), &["RPUSH", "behind the base", &n.to_string()]);
        }
        let expected = all(&live);
        keys += expected.lines().filter(|line| !line.starts_with(' ')).count();
        drop(live); // killed
        assert!(base(&folder).ends_with(".base.aof"));
        check(Path::new("redis-check-aof"), &[], &folder);
        check(&Binary::under_test().path, &["check-aof"], &folder);
        let theirs = copy_of(&folder, "aof-own-redis");
        assert_same(&expected, &all(&redis(&theirs, &[])), &format!("round {round}, redis"));
        for threads in ["1", "4"] {
            let copy = copy_of(&folder, "aof-own-copy");
            let again = ours(&copy, threads);
            assert_same(&expected, &all(&again), &format!("round {round}, {threads} threads"));
            // What was loaded of commands is written as commands again.
            ask(&mut again.connect(), &["CONFIG", "SET", "aof-use-rdb-preamble", "no"]);
            rewrite(&again);
            drop(again);
            assert_same(&expected, &all(&ours(&copy, threads)), "written again");
        }
    }
    assert!(keys > 100, "{keys}");
}

/// Fills long values of each type.
fn fill(wire: &mut Wire) {
    let mut send = |lines: Vec<Vec<u8>>| {
        for some in lines.chunks(500) {
            wire.send(&some.concat()).expect("sent");
            for _ in some {
                let reply = wire.receive().expect("an answer");
                assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
            }
        }
    };
    let many = |line: &dyn Fn(usize) -> Vec<String>| {
        let encoded = |n: usize| {
            let words = line(n);
            encode(&words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        (0..50_000).map(encoded).collect::<Vec<_>>()
    };
    let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    send(many(&|n| words(format!("RPUSH list element-{n}"))));
    send(many(&|n| words(format!("SADD set member-{n}"))));
    send(many(&|n| words(format!("ZADD zset {}.1 member-{n}", n % 977))));
    send(many(&|n| words(format!("HSET hash field-{n} value-{n}"))));
    send(many(&|n| words(format!("HSET times field-{n} value-{n}"))));
    send(many(&|n| words(format!("XADD stream {}-1 f {n}", n + 1))));
    let fields: Vec<String> = (0..1000).map(|n| format!("field-{}", n * 7)).collect();
    let timed = format!("HPEXPIREAT times {FAR} FIELDS 1000 {}", fields.join(" "));
    for line in [
        &timed,
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group one COUNT 3000 STREAMS stream >",
        "XREADGROUP GROUP group two COUNT 2000 STREAMS stream >",
        &format!("SET text {}", "text of many bytes; ".replace(' ', "_").repeat(300_000)),
    ] {
        send(vec![encode(&line.split(' ').collect::<Vec<_>>())]);
    }
}

/// Long values are written in steps, while clients change them.
#[test]
fn long_values_and_what_changes_meanwhile_are_the_same_behind_a_kill() {
    let folder = Folder::new("aof-own-long");
    let live = server(&folder, &["--rdb-key-save-delay", "100000"]);
    fill(&mut live.connect());
    let is_over = AtomicBool::new(false);
    let changes = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut wire, mut n) = (live.connect(), 0_usize);
            while !is_over.load(Ordering::Relaxed) {
                let (at, id) = ((n * 7919 % 50_000).to_string(), format!("{}-1", n % 5000 + 1));
                let (field, member) = (format!("field-{at}"), format!("member-{at}"));
                let text = n.to_string();
                for words in [
                    &["LSET", "list", &at, "changed"][..],
                    &["SREM", "set", &member],
                    &["ZADD", "zset", &text, &member],
                    &["HSET", "hash", &field, &text],
                    &["HDEL", "times", &field],
                    &["XACK", "stream", "group", &id],
                    &["SETRANGE", "text", &at, "changed"],
                    &["INCR", "counter"],
                ] {
                    let reply = ask(&mut wire, words);
                    assert!(!matches!(reply, Value::Error(_)), "{words:?}: {reply:?}");
                }
                n += 1;
            }
            n
        });
        rewrite(&live);
        is_over.store(true, Ordering::Relaxed);
        writer.join().expect("it writes")
    });
    assert!(changes > 10, "{changes}");
    let expected = all(&live);
    drop(live); // killed
    check(Path::new("redis-check-aof"), &[], &folder);
    for threads in ["1", "4"] {
        let copy = copy_of(&folder, "aof-own-long-copy");
        assert_same(&expected, &all(&ours(&copy, threads)), threads);
    }
}

/// Redis loads what is long as well, without times of fields, which 7.0 does not know.
#[test]
fn redis_loads_long_values() {
    let folder = Folder::new("aof-own-redis-long");
    let live = server(&folder, &[]);
    let mut wire = live.connect();
    fill(&mut wire);
    ask(&mut wire, &["DEL", "times"]);
    rewrite(&live);
    let expected = all(&live);
    drop(live);
    assert_same(&expected, &all(&redis(&folder, &[])), "redis");
}

/// The setting counts at the begin of each rewrite; libraries stay.
#[test]
fn the_format_is_that_of_the_setting_at_each_rewrite() {
    let folder = Folder::new("aof-own-setting");
    {
        let redis = redis(&folder, &[]);
        let mut wire = redis.connect();
        let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
        ask(&mut wire, &["FUNCTION", "LOAD", code]);
        ask(&mut wire, &["SET", "key", "value"]);
        redis.end();
    }
    let live = ours(&folder, "2");
    for (value, end) in [("no", ".base.aof"), ("yes", ".base.rdb"), ("no", ".base.aof")] {
        ask(&mut live.connect(), &["CONFIG", "SET", "aof-use-rdb-preamble", value]);
        rewrite(&live);
        assert!(base(&folder).ends_with(end), "{value}: {}", base(&folder));
    }
    live.end();
    let bytes = fs::read(folder.at("appendonlydir").join(base(&folder))).expect("a base");
    assert!(bytes.starts_with(b"#BASE:"));
    let redis = redis(&folder, &[]);
    let mut wire = redis.connect();
    assert_eq!(ask(&mut wire, &["GET", "key"]), Value::Bulk(b"value".to_vec()));
    assert_eq!(ask(&mut wire, &["FCALL", "f", "0"]), Value::Int(1));
}

/// Keys and fields whose time was taken away before it came, and is past when the base is loaded.
#[test]
fn what_was_kept_in_time_is_kept() {
    const SOON: Duration = Duration::from_millis(1500);
    let folder = Folder::new("aof-own-kept");
    let live = server(&folder, &[]);
    let mut wire = live.connect();
    let soon = SOON.as_millis().to_string();
    ask(&mut wire, &["SET", "key", "v", "PX", &soon]);
    ask(&mut wire, &["HSET", "hash", "kept", "1", "gone", "2"]);
    ask(&mut wire, &["HPEXPIRE", "hash", &soon, "FIELDS", "2", "kept", "gone"]);
    rewrite(&live);
    ask(&mut wire, &["PERSIST", "key"]);
    ask(&mut wire, &["HPERSIST", "hash", "FIELDS", "1", "kept"]);
    drop(live); // killed
    thread::sleep(SOON);
    let again = ours(&folder, "2");
    let mut wire = again.connect();
    until("it goes", || ask(&mut wire, &["HEXISTS", "hash", "gone"]) == Value::Int(0));
    assert_eq!(ask(&mut wire, &["GET", "key"]), Value::Bulk(b"v".to_vec()));
    assert_eq!(ask(&mut wire, &["HGET", "hash", "kept"]), Value::Bulk(b"1".to_vec()));
    assert_eq!(ask(&mut wire, &["PTTL", "key"]), Value::Int(-1));
}
