//! Reads beside a disk that is full, with `appendfsync always`: nobody is shown what is not on the
//! disk, nor waits for it longer than `disk-wait-ms`, and all other reads go on. And what WAITAOF
//! says beside one.

use std::fs;
use std::time::Duration;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Wire, encode};

use super::disk::{Filled, Mount, SIZE, await_recovery, fails, fill, is_refused};

/// How long a reply is waited for that must not come. (Nothing fails if that is too short.)
const NO_REPLY: Duration = Duration::from_millis(30);

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn ask(wire: &mut Wire, text: &str) -> String {
    render::line(&wire.command(&words(text)).unwrap_or_else(|e| panic!("'{text}': {e}")))
}

fn start(mount: &Mount, fsync: &str) -> ServerProcess {
    let dir = mount.0.to_str().expect("plain");
    let words = ["--dir", dir, "--appendonly", "yes", "--appendfsync", fsync, "--threads", "2"];
    ServerProcess::start(&Binary::under_test(), &words)
}

/// A server on a full disk. Of two keys, one is on the disk, and one in memory only: its name is
/// `filled.keys`.
fn on_full_disk(mount: &Mount, wait: &str) -> (ServerProcess, Filled) {
    fs::write(mount.0.join("filler"), vec![0; 1 << 20]).expect("there is space");
    let server = start(mount, "always");
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, &format!("CONFIG SET disk-wait-ms {wait}")), "+OK");
    assert_eq!(ask(&mut wire, "SET old 1"), "+OK");
    assert_eq!(ask(&mut wire, "SET brief 1 PX 1"), "+OK");
    assert_eq!(ask(&mut wire, "PFADD hll a"), ":1");
    let filled = fill(&server, 0);
    assert!(filled.waits.is_some(), "the first that is not written has no reply");
    until("it is noticed", || fails(&server));
    (server, filled)
}

fn make_space(mount: &Mount) {
    fs::remove_file(mount.0.join("filler")).expect("it is there");
}

/// Requests that would show the key which is in memory only. The last one of each is a read.
fn reads(key: &str) -> Vec<Vec<String>> {
    let one = |text: &str| vec![text.replace('@', key)];
    let exec =
        |text: &str| ["MULTI", text, "EXEC"].iter().map(|text| text.replace('@', key)).collect();
    vec![
        one("STRLEN @"),
        one("LLEN @"), // that it is no list is shown by an error
        one("GET @"),
        one("EXISTS old @"),
        one("MGET old @"),
        one("DBSIZE"),
        one("KEYS *"),
        one("SCAN 0"),
        one("OBJECT ENCODING @"),
        exec("GET @"),
        exec("DBSIZE"),
        exec("SCAN 0"),
    ]
}

/// Sends all requests, each of the list on a connection of its own, and reads all replies but the
/// last ones.
fn send_reads(server: &ServerProcess, key: &str) -> Vec<(String, Wire)> {
    let mut sent = Vec::new();
    for requests in reads(key) {
        let mut wire = server.connect();
        for (at, request) in requests.iter().enumerate() {
            wire.send(&encode(&words(request))).expect("sent");
            if at + 1 < requests.len() {
                wire.receive().expect("an answer");
            }
        }
        sent.push((requests.join("; "), wire));
    }
    sent
}

fn assert_none_is_answered(sent: &mut [(String, Wire)]) {
    std::thread::sleep(NO_REPLY);
    for (what, wire) in sent {
        assert!(!wire.has_reply(Duration::from_millis(1)).expect("it is open"), "{what}");
    }
}

fn assert_refused(what: &str, reply: &str) {
    let begins = ["-MISCONF ", "-EXECABORT Transaction discarded because of: MISCONF "];
    assert!(
        begins.iter().any(|begin| reply.starts_with(begin)) && reply.contains("No space left"),
        "{what}: {reply}"
    );
}

#[test]
fn a_read_of_what_is_not_on_the_disk_is_refused_after_a_time() {
    let folder = Folder::new("disk-reads");
    let Some(mount) = Mount::new(folder.at("disk"), SIZE) else { return };
    let (server, mut filled) = on_full_disk(&mount, "1000000");
    let key = format!("key{}", filled.keys);
    let mut wire = server.connect();
    for _ in 0..2 {
        let mut sent = send_reads(&server, &key);
        assert_none_is_answered(&mut sent);
        // All other reads go on, and so do commands that read nothing.
        for (request, reply) in [
            ("GET old", "\"1\""),
            ("MGET old brief", "*2 \"1\" null-bulk"),
            ("STRLEN key0", ":20000"),
            ("PTTL old", ":-1"),
            ("MULTI", "+OK"),
            ("GET old", "+QUEUED"),
            ("EXEC", "*1 \"1\""),
            ("ECHO hello", "\"hello\""),
            ("PFCOUNT hll", ":1"), // which it would cache otherwise, as a change
            ("MULTI", "+OK"),
            ("PFCOUNT hll", "+QUEUED"),
            ("EXEC", "*1 :1"),
        ] {
            assert_eq!(ask(&mut wire, request), reply, "{request}");
        }
        assert_eq!(ask(&mut wire, &format!("WATCH {key}")), "+OK", "it shows nothing");
        assert_eq!(ask(&mut wire, "UNWATCH"), "+OK");
        assert_eq!(ask(&mut wire, "CONFIG SET disk-wait-ms 1"), "+OK");
        for (what, wire) in &mut sent {
            let reply = render::line(&wire.receive().expect("an answer"));
            assert_refused(what, &reply);
            assert_eq!(ask(wire, "GET old"), "\"1\"", "{what}");
        }
        for (what, mut wire) in send_reads(&server, &key) {
            assert_refused(&what, &render::line(&wire.receive().expect("an answer")));
        }
        assert!(is_refused(&wire.command(&["SET", "old", "2"]).expect("an answer")));
        assert_eq!(ask(&mut wire, "CONFIG SET disk-wait-ms 0"), "+OK");
    }
    // Nobody is refused while there is no limit, and everybody is answered once it is written.
    let mut sent = send_reads(&server, &key);
    assert_none_is_answered(&mut sent);
    let (_, gone) = sent.pop().expect("there are some");
    drop(gone);
    make_space(&mount);
    await_recovery(&server, &mut filled);
    for (what, wire) in &mut sent {
        let reply = render::line(&wire.receive().expect("an answer"));
        assert!(!reply.starts_with("-MISCONF"), "{what}: {reply}");
    }
    assert_eq!(ask(&mut wire, &format!("STRLEN {key}")), ":20000");
}

#[test]
fn waitaof_says_0_until_the_disk_has_space() {
    let folder = Folder::new("disk-waitaof");
    let Some(mount) = Mount::new(folder.at("disk"), SIZE) else { return };
    fs::write(mount.0.join("filler"), vec![0; 1 << 20]).expect("there is space");
    let server = start(&mount, "everysec");
    let mut wire = server.connect();
    let text = "x".repeat(20_000);
    let mut n = 0;
    until("the disk is full", || {
        n += 1;
        is_refused(&wire.command(&["SET", &format!("key{n}"), &text]).expect("an answer"))
    });
    assert_eq!(ask(&mut wire, "WAITAOF 1 0 50"), "*2 :0 :0");
    let mut waiting = server.connect();
    assert_eq!(ask(&mut waiting, "WAITAOF 1 0 0"), "*2 :1 :0", "it has written nothing");
    wire.send(&encode(&words("WAITAOF 1 0 0"))).expect("sent");
    make_space(&mount);
    assert_eq!(render::line(&wire.receive().expect("an answer")), "*2 :1 :0");
}
