//! Signals and limits of the system cost a save at most, and never the server with its data.

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::LIMIT;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::Wire;

/// A server whose files are in a folder that outlives it; `None` if the reference is under test.
fn start(folder: &Folder) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    let args = ["--dir", folder.path(), "--save", "3600 1", "--rdbcompression", "no"];
    (binary.kind == Kind::SheafDb).then(|| ServerProcess::start(&binary, &args))
}

fn pid(server: &ServerProcess) -> Pid {
    Pid::from_raw(server.pid() as i32).expect("it has a number")
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).expect("the server runs"))
}

/// A terminal which closed ended the server (SIGHUP). Redis ignores that.
#[test]
fn a_terminal_that_closes_ends_nothing() {
    let folder = Folder::new("terminal");
    let Some(mut server) = start(&folder) else { return };
    assert_eq!(ask(&mut server.connect(), "SET k v"), "+OK");
    // Who does not ignore this one has ended before the next one is handled.
    kill_process(pid(&server), Signal::HUP).expect("the server runs");
    server.terminate();
    assert!(server.wait_exit(LIMIT).expect("it ends").success());
    assert_eq!(folder.names(), ["dump.rdb"]);
}

/// A snapshot file which reached the limit of `ulimit -f` ended the server (SIGXFSZ): with epoll
/// the write is done by one of its threads. In Redis it ends the forked child.
#[test]
fn a_limit_of_file_sizes_fails_the_save_alone() {
    let folder = Folder::new("file-size");
    let Some(server) = start(&folder) else { return };
    let wire = &mut server.connect();
    assert_eq!(ask(wire, "SETRANGE long 1000000 x"), ":1000001");
    let limit = |bytes| Rlimit { current: bytes, maximum: None };
    prlimit(Some(pid(&server)), Resource::Fsize, limit(Some(100_000))).expect("it has a limit");
    assert_eq!(ask(wire, "SAVE"), "-ERR");
    assert!(server.log().contains("File too large"), "{}", server.log());
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    prlimit(Some(pid(&server)), Resource::Fsize, limit(None)).expect("it has none");
    assert_eq!(ask(wire, "SAVE"), "+OK");
}

/// Where no thread can be started a save fails. It had taken its moment before: then nobody walked,
/// the next save waited for that walk for ever, and writers captured all that they changed.
#[test]
fn a_save_that_gets_no_thread_fails_alone() {
    let folder = Folder::new("no-thread");
    let Some(server) = start(&folder) else { return };
    let wire = &mut server.connect();
    assert_eq!(ask(wire, "SET k v"), "+OK");
    let status = std::fs::read_to_string(format!("/proc/{}/statm", server.pid())).expect("it runs");
    let pages: u64 = status.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    // There is no room for the stack of another thread.
    let limit = |bytes| Rlimit { current: bytes, maximum: None };
    let room = pages * rustix::param::page_size() as u64 + (256 << 10);
    prlimit(Some(pid(&server)), Resource::As, limit(Some(room))).expect("it has a limit");
    for command in ["SAVE", "BGSAVE", "SAVE"] {
        let reply = ask(wire, command);
        assert!(reply.starts_with("-ERR cannot start a thread that saves"), "{command}: {reply}");
    }
    assert_eq!(ask(wire, "SHUTDOWN SAVE"), "-ERR Errors trying to SHUTDOWN. Check logs.");
    prlimit(Some(pid(&server)), Resource::As, limit(None)).expect("it has none");
    assert_eq!(ask(wire, "SAVE"), "+OK");
    assert_eq!(ask(wire, "SET k w"), "+OK");
}
