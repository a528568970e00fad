//! The files with numbers of producers, as redis-server and its tools see them; what a restart
//! keeps, and what the settings mean.

use std::process::{Command, Stdio};
use std::time::Duration;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::producer::{Answer, Hello, Producer, data};
use sheafdb_tests::program::{finish, spawn};
use sheafdb_tests::rdb_state::databases;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::Value;

use super::world::is_complete;

struct Served {
    server: ServerProcess,
    ingest: std::net::SocketAddr,
}

fn start(folder: &Folder, more: &[&str]) -> Served {
    let ingest = free_addr().expect("a free port");
    let listen = format!("{ingest} protocol=2");
    let words =
        ["--dir", folder.path(), "--threads", "2", "--save", "", "--ingest-listen", &listen];
    let server = ServerProcess::start(&Binary::under_test(), &[&words[..], more].concat());
    Served { server, ingest }
}

fn redis(folder: &str, more: &[&str]) -> ServerProcess {
    let binary = Binary { path: "redis-server".into(), kind: Kind::Redis };
    ServerProcess::start(&binary, &[&["--dir", folder], more].concat())
}

/// A producer with a name and a key that need quotes, and long enough for any bound.
fn hello(sink: u8, level: u8) -> Hello {
    let key = format!("{sink} \" \\ \r\n{}", "é".repeat(1_500));
    Hello { sink, level, ..Hello::new(&"\u{7f}\n".repeat(32), &key) }
}

fn send(served: &Served, hello: &Hello, first: u64, count: u64) -> Producer {
    let (mut producer, answer) = Producer::greet(served.ingest, hello);
    assert!(matches!(answer, Answer::Welcome(last, _) if last + 1 == first), "{answer:?}");
    let payloads: Vec<Vec<u8>> = (first..first + count).map(|n| format!("m{n}").into()).collect();
    let words: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    producer.send(&data(first, &words));
    producer.until_acked(first + count - 1);
    producer
}

fn last(served: &Served, hello: &Hello) -> (u64, u64) {
    match Producer::greet(served.ingest, hello) {
        (producer, Answer::Welcome(last, _)) => (last, producer.durable),
        (_, other) => panic!("{other:?}"),
    }
}

fn rewrite(served: &Served) {
    let mut wire = served.server.connect();
    wire.command(&["BGREWRITEAOF"]).expect("an answer");
    until("the base is complete", || is_complete(&mut wire));
}

/// A program looks at a file and finds it good; what it says.
fn passes(program: &str, args: &[&str]) -> String {
    let out = finish(spawn(Command::new(program).args(args).stdin(Stdio::null())));
    let told = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{program} {args:?}: {told}");
    told
}

#[test]
fn redis_takes_files_with_numbers_of_producers() {
    for preamble in ["yes", "no"] {
        redis_takes_files(preamble);
    }
}

fn redis_takes_files(preamble: &str) {
    let folder = Folder::new("ingest-files");
    let appending = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
    let served = start(&folder, &appending);
    let (list, stream) = (hello(2, 1), hello(3, 1));
    send(&served, &list, 1, 5);
    send(&served, &stream, 1, 7);
    rewrite(&served);
    let mut wire = served.server.connect();
    send(&served, &list, 6, 5);
    send(&served, &stream, 8, 1);
    wire.command(&["SAVE"]).expect("an answer");
    let ours = databases(&mut wire, 0..16);
    served.server.end();
    let files = folder.at("appendonlydir");
    let at = |name: &str| files.join(name).to_str().expect("plain").to_owned();
    let base = folder.at("dump.rdb").to_str().expect("plain").to_owned();
    let own = Binary::under_test().path.to_str().expect("plain").to_owned();
    for name in std::fs::read_dir(&files).expect("a folder") {
        let name = name.expect("an entry").file_name().into_string().expect("plain");
        if name.ends_with(".base.aof") {
            assert_eq!(preamble, "no");
            let bytes = std::fs::read(at(&name)).expect("a base");
            let lines = bytes.split(|byte| *byte == b'\n');
            assert_eq!(lines.filter(|line| line.starts_with(b"#PRODUCER:")).count(), 2);
        } else if name.contains(".base.") {
            let told = passes("redis-check-rdb", &[&at(&name)]);
            assert!(told.contains("sheafdb-producer"), "{told}");
            passes(&own, &["check-rdb", &at(&name)]);
        }
    }
    assert!(passes("redis-check-rdb", &[&base]).contains("sheafdb-producer"));
    passes("redis-check-aof", &[&at("appendonly.aof.manifest")]);
    passes(&own, &["check-aof", &at("appendonly.aof.manifest")]);
    let theirs = redis(folder.path(), &["--appendonly", "yes"]);
    assert_eq!(databases(&mut theirs.connect(), 0..16), ours, "the append-only file");
    theirs.end();
    // The numbers of the base are those of its messages, and those behind it follow.
    let served = start(&folder, &appending);
    assert_eq!((last(&served, &list), last(&served, &stream)), ((10, 10), (8, 8)));
    rewrite(&served);
    drop(served.server.kill());
    let served = start(&folder, &appending);
    assert_eq!((last(&served, &list), last(&served, &stream)), ((10, 10), (8, 8)));
    served.server.end();
    std::fs::remove_dir_all(&files).expect("it is there");
    let theirs = redis(folder.path(), &[]);
    assert_eq!(databases(&mut theirs.connect(), 0..16), ours, "the snapshot");
    drop(theirs);
    // The same snapshot here: the numbers which belong to it.
    let served = start(&folder, &[]);
    assert_eq!((last(&served, &list), last(&served, &stream)), ((10, 0), (8, 0)));
}

#[test]
fn numbers_are_those_of_the_data_that_a_restart_finds() {
    let folder = Folder::new("ingest-restart");
    let list = hello(2, 1);
    let served = start(&folder, &[]);
    drop(send(&served, &list, 1, 3));
    let mut wire = served.server.connect();
    wire.command(&["SAVE"]).expect("an answer");
    drop(send(&served, &list, 4, 3));
    drop(served.server.kill());
    // 4 to 6 are gone, and so is their number: they come again, and are there once.
    let served = start(&folder, &[]);
    let resumes = Hello { flags: 1, ..list.clone() };
    assert_eq!(last(&served, &resumes), (3, 0));
    drop(send(&served, &resumes, 4, 3));
    let mut wire = served.server.connect();
    // FLUSHALL changes keys, and forgets no number.
    wire.command(&["FLUSHALL"]).expect("an answer");
    assert_eq!(last(&served, &resumes), (6, 0));
    wire.command(&["SAVE"]).expect("an answer");
    drop(served.server.kill());
    let served = start(&folder, &[]);
    assert_eq!(last(&served, &resumes), (6, 0));
    assert_eq!(served.server.connect().command(&["DBSIZE"]).expect("a number"), Value::Int(0));
    drop(served.server.kill());
    // Beyond its bound, those which the file names last are kept.
    let served = start(&folder, &["--ingest-producers-max", "1"]);
    assert_eq!(last(&served, &resumes), (6, 0));
}

/// Everything up to the last number is fsynced, with the first Welcome behind a restart, too.
#[test]
fn a_restart_says_what_is_fsynced() {
    let folder = Folder::new("ingest-fsynced");
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    let (stream, fsynced) = (hello(3, 1), hello(3, 2));
    let served = start(&folder, &always);
    drop(send(&served, &stream, 1, 3));
    let producer = send(&served, &fsynced, 4, 3);
    assert_eq!(producer.durable, 6);
    drop(producer);
    drop(served.server.kill());
    let served = start(&folder, &always);
    assert_eq!(last(&served, &stream), (6, 6));
    assert_eq!(last(&served, &fsynced), (6, 6));
}

#[test]
fn the_level_needs_a_file_that_is_synced() {
    let folder = Folder::new("ingest-level");
    let served = start(&folder, &[]);
    let (stream, fsynced) = (hello(3, 1), hello(3, 2));
    let refused = |hello: &Hello| match Producer::greet(served.ingest, hello).1 {
        Answer::Error(7, _, text) => text,
        other => panic!("{other:?}"),
    };
    drop(send(&served, &stream, 1, 3));
    assert!(refused(&fsynced).contains("no append-only file"));
    let mut wire = served.server.connect();
    let mut set = |name: &str, value: &str| {
        let reply = wire.command(&["CONFIG", "SET", name, value]).expect("an answer");
        assert_eq!(reply, Value::Simple(b"OK".to_vec()), "{name} {value}");
        if value == "yes" {
            until("the file is complete", || is_complete(&mut wire));
        }
    };
    set("appendonly", "yes");
    // What was sent before there was a file is in its base.
    let producer = send(&served, &fsynced, 4, 3);
    assert_eq!(producer.durable, 6);
    let null = Hello { key: String::new(), ..hello(1, 2) };
    assert!(!refused(&null).is_empty());
    // The setting changes under a connection: it ends, and comes back later.
    let mut connected = vec![producer];
    for (name, off, on) in [("appendfsync", "no", "everysec"), ("appendonly", "no", "yes")] {
        set(name, off);
        for mut producer in connected.drain(..) {
            assert_eq!(producer.error(), (7, 6), "{name}");
        }
        assert!(refused(&fsynced).starts_with("fsynced: "));
        // What was synced before stays so, while there is a file.
        let durable = if name == "appendfsync" { 6 } else { 0 };
        assert_eq!(last(&served, &stream), (6, durable), "{name}");
        set(name, on);
        let (producer, answer) = Producer::greet(served.ingest, &fsynced);
        assert!(matches!(answer, Answer::Welcome(6, _)), "{answer:?}");
        assert_eq!(producer.durable, 6);
        connected.push(producer);
    }
    // With `always` the number of another level is known, too.
    set("appendfsync", "always");
    drop(connected);
    let mut producer = send(&served, &stream, 7, 2);
    until("it is called fsynced", || {
        std::thread::sleep(Duration::from_millis(5));
        producer.send(&sheafdb_tests::producer::flush());
        producer.hear().is_ok() && producer.durable == 8
    });
}
