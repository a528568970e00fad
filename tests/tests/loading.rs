//! Files of a real redis-server 7.0 are loaded with the same data; a file which cannot be loaded
//! ends the start; a supervisor is told how it goes.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use rustix::fs::{CWD, FileType};
use sheafdb_tests::folder::Folder;
use sheafdb_tests::http;
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::program::{finish, spawn};
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// A server on this folder.
fn start(folder: &Folder, more: &[&str]) -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &[&["--dir", folder.path()][..], more].concat())
}

fn ask(wire: &mut Wire, words: &[&str]) -> Value {
    wire.command(words).expect("an answer")
}

fn bytes(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) | Value::Verbatim(bytes) | Value::Simple(bytes) => bytes,
        other => panic!("no text: {other:?}"),
    }
}

fn info(wire: &mut Wire, field: &str) -> String {
    let text = String::from_utf8(bytes(ask(wire, &["INFO"]))).expect("text");
    let line = text.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field}")).trim().to_owned()
}

/// A command.
type Words = Vec<Vec<u8>>;

fn words(line: &[&str]) -> Words {
    line.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Commands which are sent together: their replies fit into the buffers of both ends.
const TOGETHER: usize = 64;

/// The replies to all commands, of which many are under way at a time.
fn ask_all(wire: &mut Wire, commands: &[Words]) -> Vec<Value> {
    let mut replies = Vec::with_capacity(commands.len());
    for some in commands.chunks(TOGETHER) {
        let bytes: Vec<u8> = some.iter().flat_map(|words| encode(words)).collect();
        wire.send(&bytes).expect("sent");
        replies.extend(some.iter().map(|_| wire.receive().expect("an answer")));
    }
    replies
}

/// Fills three databases with values of every type and size, some of which expire.
fn fill(wire: &mut Wire, rng: &mut Rng) {
    let mut commands = Vec::new();
    for db in ["0", "3", "15"] {
        commands.push(words(&["SELECT", db]));
        for n in 0..400 {
            value(&mut commands, rng, n);
        }
    }
    // Long ones, which come in parts.
    let long = "0123456789abcdef".repeat(200_000);
    commands.push(words(&["SET", "long", &long]));
    let noise: String = (0..400_000).map(|_| char::from(b' ' + rng.below(90) as u8)).collect();
    commands.push(words(&["SET", "noise", &noise]));
    for part in 0..20 {
        let elements: Vec<String> = (0..3000).map(|n| format!("element {part} {n}")).collect();
        for (command, key) in [("RPUSH", "long list"), ("SADD", "long set")] {
            let texts = elements.iter().map(|text| text.as_bytes().to_vec());
            commands.push(words(&[command, key]).into_iter().chain(texts).collect());
        }
        let mut zadd = words(&["ZADD", "long zset"]);
        let mut hset = words(&["HSET", "long hash"]);
        for (n, element) in elements.iter().enumerate() {
            let (score, element) = (format!("{}.25", part * n).into_bytes(), element.as_bytes());
            zadd.extend([score.clone(), element.to_vec()]);
            hset.extend([element.to_vec(), score]);
        }
        commands.extend([zadd, hset]);
    }
    for (reply, command) in ask_all(wire, &commands).iter().zip(&commands) {
        assert!(!matches!(reply, Value::Error(_)), "{reply:?}: {:?}", command.first());
    }
}

fn value(commands: &mut Vec<Words>, rng: &mut Rng, n: usize) {
    let key = format!("key {n}");
    let count = if rng.below(4) == 0 { rng.below(300) } else { 1 + rng.below(12) };
    let wide = rng.below(3) == 0;
    let word = |i: usize| if wide { format!("{i}{}", "w".repeat(80)) } else { i.to_string() };
    let mut say = |line: &[&str]| commands.push(words(line));
    match n % 7 {
        0 => say(&["SET", &key, &n.to_string()]),
        1 => say(&["SET", &key, &"x".repeat(count * count)]),
        kind => {
            for i in 0..=count {
                let (text, id) = (word(i), format!("{}-{i}", i + 1));
                match kind {
                    2 => say(&["RPUSH", &key, &text]),
                    3 => say(&["SADD", &key, &text]),
                    4 => say(&["ZADD", &key, &id[..id.len() / 2], &text]),
                    5 => say(&["HSET", &key, &text, &id]),
                    _ => say(&["XADD", &key, &id, "field", &text]),
                }
            }
            if kind == 6 {
                say(&["XGROUP", "CREATE", &key, "g", "0"]);
                say(&["XREADGROUP", "GROUP", "g", "me", "COUNT", "3", "STREAMS", &key, ">"]);
            }
        }
    }
    if n.is_multiple_of(5) {
        say(&["PEXPIREAT", &key, &format!("{}", 33_000_000_000_000_usize + n)]);
    }
}

/// Compares every key of a database with what the server makes of the other one's DUMP. Returns
/// their number.
fn compare(theirs: &mut Wire, ours: &mut Wire, db: &str) -> usize {
    let [expected, found] = [&mut *theirs, ours].map(|wire| {
        ask(wire, &["SELECT", db]);
        let Value::Array(names) = ask(wire, &["KEYS", "*"]) else { panic!("no keys") };
        let mut names: Vec<_> = names.into_iter().map(bytes).collect();
        names.sort();
        names
    });
    assert_eq!(expected, found, "database {db}");
    let of_each = |command: &str| -> Vec<Words> {
        found.iter().map(|name| vec![command.as_bytes().to_vec(), name.clone()]).collect()
    };
    let expiries = ask_all(ours, &of_each("PEXPIRETIME"));
    assert_eq!(expiries, ask_all(theirs, &of_each("PEXPIRETIME")), "expiries of database {db}");
    let dumps = ask_all(theirs, &of_each("DUMP"));
    for ((name, expiry), dump) in found.iter().zip(expiries).zip(dumps) {
        let shown = String::from_utf8_lossy(name);
        let ttl = if let Value::Int(at @ 1..) = expiry { at.to_string() } else { "0".into() };
        let mut restore = words(&["RESTORE", "copy", &ttl]);
        restore.extend([bytes(dump), b"ABSTTL".to_vec()]);
        let replies = ask_all(
            ours,
            &[
                restore,
                words(&["DEBUG", "DIGEST-VALUE", &shown, "copy"]),
                words(&["OBJECT", "ENCODING", &shown]),
                words(&["OBJECT", "ENCODING", "copy"]),
                words(&["DEL", "copy"]),
            ],
        );
        assert_eq!(replies[0], Value::Simple(b"OK".to_vec()), "{shown}");
        let Value::Array(digests) = &replies[1] else { panic!("{:?}", replies[1]) };
        assert_eq!(digests[0], digests[1], "{shown} of database {db}");
        assert_eq!(replies[2], replies[3], "encoding of {shown} of database {db}");
    }
    found.len()
}

#[test]
fn a_file_of_redis_is_loaded_with_the_same_data() {
    for (seed, compression, threads) in [(1, "yes", "1"), (2, "no", "3")] {
        let folder = Folder::new(&format!("load-redis-{seed}"));
        let dir = folder.path();
        let arguments = ["--dir", dir, "--rdbcompression", compression];
        let redis = ServerProcess::start(&Binary::redis(), &arguments);
        let mut theirs = redis.connect();
        fill(&mut theirs, &mut Rng::new(seed));
        assert_eq!(ask(&mut theirs, &["SAVE"]), Value::Simple(b"OK".to_vec()));
        let server = start(&folder, &["--threads", threads]);
        let mut ours = server.connect();
        assert_eq!(info(&mut ours, "rdb_changes_since_last_save"), "0");
        let mut keys = 0;
        for db in ["0", "3", "15"] {
            keys += compare(&mut theirs, &mut ours, db);
        }
        assert!(keys > 1200, "{keys}");
        assert_eq!(info(&mut ours, "rdb_last_load_keys_loaded"), keys.to_string());
        assert_eq!(info(&mut ours, "rdb_last_load_keys_expired"), "0");
        assert_eq!(info(&mut ours, "loading"), "0");
        let log = server.log();
        assert!(log.contains("Loading RDB produced by version 7.0."), "{log}");
        let done = format!("Done loading RDB, keys loaded: {keys}, keys expired: 0.");
        let at = log.find(&done).unwrap_or_else(|| panic!("{done}: {log}"));
        assert!(log[at..].contains("Ready to accept connections"), "{log}");
    }
}

const HEAD: &[u8] = b"REDIS0010";
const END: &[u8] = b"\xff\0\0\0\0\0\0\0\0";

fn made(parts: &[&[u8]]) -> Vec<u8> {
    [HEAD, &parts.concat(), END].concat()
}

#[test]
fn expired_keys_are_left_out_and_uses_are_kept() {
    let folder = Folder::new("load-uses");
    let old = b"\xfc\xe8\x03\0\0\0\0\0\0\0\x01e\x011";
    let idle = b"\xf8\x40\xc8\0\x01i\x011"; // 200 seconds
    let frequent = b"\xf9\x37\0\x01f\x011";
    fs::write(folder.file(), made(&[b"\xfe\0", old, idle, frequent, b"\0\x01p\x011"]))
        .expect("a file");
    let server = start(&folder, &[]);
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, &["DBSIZE"]), Value::Int(3));
    assert_eq!(info(&mut wire, "rdb_last_load_keys_expired"), "1");
    assert_eq!(info(&mut wire, "rdb_last_load_keys_loaded"), "3");
    assert_eq!(info(&mut wire, "expired_keys"), "0");
    let Value::Int(idle) = ask(&mut wire, &["OBJECT", "IDLETIME", "i"]) else { panic!("none") };
    assert!((200..260).contains(&idle), "{idle}");
    let Value::Int(fresh) = ask(&mut wire, &["OBJECT", "IDLETIME", "f"]) else { panic!("none") };
    assert!(fresh < 60, "{fresh}");
}

/// The start on a file, which fails: its standard error and its log.
fn refused(folder: &Folder, more: &[&str]) -> (String, String) {
    let port = free_addr().expect("a port").port().to_string();
    let mut command = Command::new(&Binary::under_test().path);
    command.args(["--port", &port, "--admin-port", "0", "--dir", folder.path()]).args(more);
    let out = finish(spawn(&mut command));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    (text(&out.stderr), text(&out.stdout))
}

#[test]
fn a_damaged_file_ends_the_start_with_one_line() {
    let folder = Folder::new("load-damaged");
    let key = b"\xfe\0\0\x01a\x011";
    let cut = made(&[key]);
    let cases: [(Vec<u8>, &str); 10] = [
        (Vec::new(), "at byte 0: "),
        (b"no RDB file at all".to_vec(), "at byte 0: "),
        (cut[..cut.len() - 9].to_vec(), "at byte 16"),
        (made(&[key, b"\0\x01b\x40\xff1"]), "key 'b', type 0: something reaches beyond"),
        (made(&[key, b"\x63\x01b\x011"]), "type 99"),
        (made(&[key, b"\0\x01a\x012"]), "key 'a': the key occurs twice"),
        (made(&[b"\xfe\x10\0\x01a\x011"]), "byte 11, database 16: there are only 16 databases"),
        (made(&[key, b"\xfe\x40\x63"]), "database 99: there are only 16 databases"),
        ([HEAD, key, b"\xff\x01\x02\x03\x04\x05\x06\x07\x08"].concat(), "checksum"),
        (b"REDIS0099\xff".to_vec(), "at byte "),
    ];
    for (bytes, expected) in cases {
        fs::write(folder.file(), &bytes).expect("a file");
        let (errors, log) = refused(&folder, &["--pidfile", "s.pid"]);
        let path = folder.file().display().to_string();
        assert_eq!(errors.lines().count(), 1, "{errors}");
        let start = format!("sheafdb: {path} cannot be loaded: ");
        assert!(errors.starts_with(&start) && errors.contains(expected), "{errors}: {expected}");
        let line = errors.trim_end().trim_start_matches("sheafdb: ");
        assert_eq!(log.lines().filter(|l| l.ends_with(line)).count(), 1, "{log}");
        assert!(!log.contains("Ready to accept"), "{log}");
        assert_eq!(fs::read(folder.file()).expect("untouched"), bytes);
        assert!(!folder.at("s.pid").exists());
    }
    fs::remove_file(folder.file()).expect("a file");
    fs::create_dir(folder.file()).expect("a folder");
    assert!(refused(&folder, &[]).0.contains("Is a directory"));
}

/// Values of modules: an error, unless they are to be skipped.
#[test]
fn values_of_modules_end_the_start_or_are_skipped() {
    let folder = Folder::new("load-modules");
    // Type 7: a module's id, then tagged parts up to 0. Here one number.
    let mut module = b"\x07\x01m\x81".to_vec();
    module.extend((0x0123_4567_89ab_cdef_u64 & !0x3ff | 1).to_be_bytes());
    module.extend([2, 7, 0]);
    fs::write(folder.file(), made(&[b"\xfe\0", &module, b"\0\x01a\x011"])).expect("a file");
    let (errors, _) = refused(&folder, &[]);
    assert!(errors.contains("key 'm'") && errors.contains("module"), "{errors}");
    let server = start(&folder, &["--rdb-skip-unknown", "yes"]);
    assert_eq!(ask(&mut server.connect(), &["DBSIZE"]), Value::Int(1));
    assert!(server.log().contains("1 keys and 0 other fields of modules were skipped"));
}

/// systemd hears that it takes longer before it hears that the server is ready, which is when the
/// data is there.
#[test]
fn a_supervisor_hears_of_loading_and_then_that_the_server_is_ready() {
    let folder = Folder::new("load-notify");
    let entry = |n: u32| [b"\0\x06".to_vec(), format!("{n:06}").into(), b"\x011".to_vec()].concat();
    let all: Vec<u8> = (0..200_000).flat_map(entry).collect();
    fs::write(folder.file(), made(&[b"\xfe\0", &all])).expect("a file");
    let path = folder.at("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    let port = free_addr().expect("a port");
    let mut command = Command::new(&Binary::under_test().path);
    command.args(["--port", &port.port().to_string(), "--admin-port", "0"]);
    command.args(["--dir", folder.path(), "--supervised", "systemd"]).env("NOTIFY_SOCKET", &path);
    let child = spawn(&mut command);
    let hear = || {
        let mut text = [0; 256];
        loop {
            match socket.recv(&mut text) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                told => {
                    return String::from_utf8_lossy(&text[..told.expect("a word")]).into_owned();
                }
            }
        }
    };
    let first = hear();
    assert!(first.starts_with("EXTEND_TIMEOUT_USEC=60000000\nSTATUS=Loading: "), "{first}");
    let mut word = hear();
    while word.starts_with("EXTEND_TIMEOUT_USEC=") {
        word = hear();
    }
    assert_eq!(word, "READY=1\n");
    let mut wire = Wire::connect(port).expect("it listens");
    assert_eq!(ask(&mut wire, &["DBSIZE"]), Value::Int(200_000));
    assert_eq!(hear(), "STATUS=Ready to accept connections\n");
    wire.send(b"SHUTDOWN NOSAVE\r\n").expect("sent");
    assert_eq!(hear(), "STOPPING=1\n");
    assert!(finish(child).status.success());
}

/// The file is a pipe, which opens when somebody writes to it: until then the server loads.
/// (io_uring opens it at once.)
#[test]
fn a_server_which_loads_is_alive_and_not_ready() {
    let folder = Folder::new("load-alive");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, folder.file(), FileType::Fifo, mode, 0).expect("a pipe");
    let (port, admin) = (free_addr().expect("a port"), free_addr().expect("a port"));
    let mut command = Command::new(&Binary::under_test().path);
    command.args(["--port", &port.port().to_string(), "--dir", folder.path()]);
    command.args(["--admin-port", &admin.port().to_string(), "--io-backend", "epoll"]);
    let child = spawn(&mut command);
    until("it listens", || Wire::connect(port).is_ok());
    let mut wire = Wire::connect(port).expect("it listens");
    let loading = Value::Error(b"LOADING Redis is loading the dataset in memory".to_vec());
    assert_eq!(ask(&mut wire, &["PING"]), loading);
    assert_eq!(ask(&mut wire, &["GET", "a"]), loading);
    assert_eq!(info(&mut wire, "loading"), "1");
    let get = |path| http::await_answer(admin, path);
    // (While a machine stands still for seconds it says otherwise.)
    until("it is healthy", || {
        let healthy = get("/healthz");
        (healthy.status, &healthy.body[..]) == (200, "ok\n")
    });
    let ready = get("/readyz");
    assert!(ready.body.starts_with("loading: 0.0 %"), "{}", ready.body);
    assert_eq!(ready.status, 503);
    let live = get("/live.json").body;
    assert!(live.contains(r#""loading":{"bytes":0,"total_bytes":0,"keys":0,"#), "{live}");
    wire.send(b"SHUTDOWN NOSAVE\r\n").expect("sent");
    assert!(finish(child).status.success());
    assert_eq!(folder.names(), ["dump.rdb"]);
}

/// The folder of a file is not changed by loading it.
#[test]
fn loading_writes_nothing() {
    let folder = Folder::new("load-reads");
    let bytes = made(&[b"\xfe\0\0\x01a\x011"]);
    fs::write(folder.file(), &bytes).expect("a file");
    let mut server = start(&folder, &[]);
    server.terminate();
    let status = server.wait_exit(LIMIT).expect("it ends");
    assert!(status.success());
    assert_eq!(fs::read(folder.file()).expect("it is there"), bytes);
    assert!(folder.names().iter().all(|name| name == "dump.rdb"));
}
