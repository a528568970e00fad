//! What a save captures while clients write: its bound, who waits behind it, and where its bytes
//! are shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sheafdb_tests::big::figure;
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::until;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Wire, encode};

const MIB: usize = 1 << 20;

/// A server whose files are in a folder; `None` if the reference is under test.
fn start(folder: &Folder, extra: &[&str]) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    (binary.kind == Kind::SheafDb).then(|| {
        let own = ["--dir", folder.path(), "--enable-protected-configs", "yes"];
        let args: Vec<&str> = own.iter().chain(extra).copied().collect();
        ServerProcess::start(&binary, &args)
    })
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).unwrap_or_else(|e| panic!("'{line}': {e}")))
}

fn send(wire: &mut Wire, line: &str) {
    let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    wire.send(&encode(&words)).expect("the connection is open");
}

/// Waits until no save is under way.
fn await_save(wire: &mut Wire) {
    until("the save ends", || figure(wire, "persistence", "rdb_bgsave_in_progress") == 0);
}

/// The reference with the file of this folder.
fn redis_with(folder: &Folder) -> ServerProcess {
    let redis = ServerProcess::start(&Binary::redis(), &["--dir", folder.path()]);
    let mut wire = redis.connect();
    until("it has loaded", || !ask(&mut wire, "DBSIZE").starts_with("-LOADING"));
    redis
}

/// Beside a save writers copy the pages of a long string which they change. The copies are counted,
/// and past the bound writes wait until the string is written.
#[test]
fn copies_beside_a_save_are_bounded() {
    const PAGE: usize = 64 << 10;
    const PAGES: usize = 1600;
    const BOUND: i64 = 64 << 20;
    let folder = Folder::new("copies");
    let slow = ["--rdb-key-save-delay", "1000000000", "--threads", "2"];
    let Some(server) = start(&folder, &slow) else { return };
    let wire = &mut server.connect();
    // (A short write copies 4 KiB, this one its page.)
    let write = |wire: &mut Wire, text: &str| {
        let text = text.repeat(7000);
        for page in 0..PAGES {
            let reply = ask(wire, &format!("SETRANGE long {} {text}", page * PAGE));
            assert!(reply.starts_with(':'), "{reply}");
        }
    };
    write(wire, "before");
    assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
    let is_written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut other = server.connect();
        let is_written = &is_written;
        scope.spawn(move || {
            write(&mut other, "during");
            is_written.store(true, Ordering::Release);
        });
        until("the bound is reached", || figure(wire, "persistence", "current_cow_size") >= BOUND);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!is_written.load(Ordering::Acquire), "writes wait");
        assert_eq!(ask(wire, "CONFIG SET rdb-key-save-delay 0"), "+OK");
    });
    await_save(wire);
    let peak = figure(wire, "persistence", "rdb_last_cow_size");
    assert!((BOUND..BOUND + (4 << 20)).contains(&peak), "{peak} of {} bytes", PAGE * PAGES);
    let redis = redis_with(&folder);
    let other = &mut redis.connect();
    for page in [0, 1, PAGES / 2, PAGES - 1] {
        let at = page * PAGE;
        let range = format!("GETRANGE long {at} {}", at + 5);
        assert_eq!(ask(other, &range), "\"before\"");
        assert_eq!(ask(wire, &range), "\"during\"");
    }
}

/// A server with 100 keys of 1 MiB, and a save that makes no progress.
fn start_stuck(folder: &Folder, threads: &str) -> Option<ServerProcess> {
    let server = start(folder, &["--rdb-key-save-delay", "1000000000", "--threads", threads])?;
    let wire = &mut server.connect();
    write_keys(wire, 0..100);
    assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
    until("the save reaches a key", || {
        figure(wire, "persistence", "current_save_keys_processed") > 0
    });
    Some(server)
}

fn write_keys(wire: &mut Wire, numbers: std::ops::Range<usize>) {
    for n in numbers {
        let line = format!("SETRANGE k{n} {} x", MIB - 1);
        assert_eq!(ask(wire, &line), format!(":{MIB}"), "{line}");
    }
}

/// While a save held writes, CLIENT PAUSE of all commands let reads pass.
#[test]
fn a_pause_of_all_commands_holds_reads_while_a_save_holds_writes() {
    const PAUSE: Duration = Duration::from_millis(700);
    for threads in ["1", "3"] {
        let folder = Folder::new(&format!("pause-{threads}"));
        let Some(server) = start_stuck(&folder, threads) else { return };
        let [mut wire, mut reader, mut writer] = [(); 3].map(|()| server.connect());
        let mut n = 0;
        while figure(&mut wire, "persistence", "current_cow_size") <= 64 * MIB as i64 {
            assert_eq!(ask(&mut wire, &format!("DEL k{n}")), ":1", "no write waits yet");
            n += 1;
        }
        send(&mut writer, "SET new 1");
        assert!(!writer.has_reply(Duration::from_millis(50)).expect("it is open"));
        assert_eq!(ask(&mut reader, "STRLEN k99"), format!(":{MIB}"), "reads do not wait");
        let paused = Instant::now();
        assert_eq!(ask(&mut wire, &format!("CLIENT PAUSE {} ALL", PAUSE.as_millis())), "+OK");
        assert_eq!(ask(&mut reader, "EXISTS new"), ":0");
        // (The clock of the pause may be set, that of the test cannot.)
        assert!(paused.elapsed() > PAUSE / 2, "{threads} threads: {:?}", paused.elapsed());
        assert!(
            !writer.has_reply(Duration::from_millis(1)).expect("it is open"),
            "its save makes no progress"
        );
    }
}

/// What is captured for a save is memory of the server, but not of the data: `maxmemory` does not
/// count it, as Redis does not count what its child holds.
#[test]
fn captured_values_do_not_count_as_data() {
    let folder = Folder::new("captured");
    let Some(server) = start_stuck(&folder, "2") else { return };
    let wire = &mut server.connect();
    let [used, data] =
        ["used_memory", "used_memory_dataset"].map(|name| figure(wire, "memory", name));
    // What the save needs for itself is not counted either.
    let own = 0..MIB as i64;
    let not_counted = |wire: &mut Wire| figure(wire, "memory", "mem_not_counted_for_evict");
    assert!(own.contains(&not_counted(wire)), "{}", not_counted(wire));
    for n in 0..50 {
        assert_eq!(ask(wire, &format!("DEL k{n}")), ":1");
    }
    let captured = figure(wire, "persistence", "current_cow_size");
    assert!(captured > 40 * MIB as i64, "{captured}");
    let more = not_counted(wire) - captured;
    assert!(own.contains(&more), "{more} more than the {captured} bytes that are captured");
    let left = figure(wire, "memory", "used_memory_dataset");
    assert!((left - (data - 50 * MIB as i64)).abs() < MIB as i64, "{left} of {data}");
    let now = figure(wire, "memory", "used_memory");
    assert!(now > used - 10 * MIB as i64, "{now} of {used}: the server still holds them");
    // There is room for 50 new keys, not for those and the captured ones.
    let max = used + 20 * MIB as i64;
    assert_eq!(ask(wire, &format!("CONFIG SET maxmemory {max}")), "+OK");
    write_keys(wire, 100..150);
    let mut n = 150;
    while !ask(wire, &format!("SETRANGE k{n} {} x", MIB - 1)).starts_with("-OOM") {
        n += 1;
        assert!(n < 200, "the bound counts what is written");
    }
}
