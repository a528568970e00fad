//! A panic in any part of a command closes only its own connection: in a step, in prepared work,
//! while a waiting client is served, while keys are removed. A panic in a save costs that save.
//! DEBUG PANIC-IN-COMMAND causes panics in each of these places.

use std::thread::sleep;
use std::time::{Duration, Instant};

use sheafdb_tests::big::figure;
use sheafdb_tests::folder::Folder;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{PATIENCE, Wire, encode};

/// Runs a test on a server of one and of two workers.
fn on_both(test: impl Fn(&mut ServerProcess)) {
    let binary = Binary::under_test();
    if binary.kind == Kind::Redis {
        return;
    }
    for threads in ["1", "2"] {
        let mut server = ServerProcess::start(&binary, &["--threads", threads]);
        test(&mut server);
        assert_eq!(ask(&mut server.connect(), "PING"), "+PONG", "it serves on");
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// A command line and its reply in one line; `closed` if the connection ends.
fn ask(wire: &mut Wire, line: &str) -> String {
    wire.command(&words(line)).map_or_else(|_| "closed".into(), |reply| render::line(&reply))
}

fn send(wire: &mut Wire, line: &str) {
    wire.send(&encode(&words(line))).expect("the connection is open");
}

fn receive(wire: &mut Wire) -> String {
    wire.receive().map_or_else(|_| "closed".into(), |reply| render::line(&reply))
}

fn arm(server: &ServerProcess, what: &str) {
    assert_eq!(ask(&mut server.connect(), &format!("DEBUG PANIC-IN-COMMAND {what}")), "+OK");
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(2));
    }
}

fn until_blocked(wire: &mut Wire, count: usize) {
    let line = format!("blocked_clients:{count}\r\n");
    until("they wait", || ask(wire, "INFO clients").contains(&render_crlf(&line)));
}

fn until_saved(wire: &mut Wire) {
    until("the save ends", || figure(wire, "persistence", "rdb_bgsave_in_progress") == 0);
}

/// A text as `render` shows it inside of quotes.
fn render_crlf(text: &str) -> String {
    text.replace('\r', "\\r").replace('\n', "\\n")
}

/// Earlier, a panic of a waiter's command closed the client which had pushed, and the waiter, whose
/// ticket was claimed, was never answered.
#[test]
fn a_panic_while_serving_closes_only_the_served_client() {
    on_both(|server| {
        let (mut pusher, mut first, mut second) =
            (server.connect(), server.connect(), server.connect());
        for (waits, further) in [("BLPOP q 0", ""), ("BLMOVE q far LEFT RIGHT 0", "far")] {
            let name = waits.split(' ').next().unwrap_or_default();
            send(&mut first, waits);
            until_blocked(&mut pusher, 1);
            send(&mut second, "BLPOP q 0");
            until_blocked(&mut pusher, 2);
            arm(server, &format!("{name} 1"));
            assert_eq!(ask(&mut pusher, "RPUSH q one"), ":1", "{waits}");
            assert_eq!(receive(&mut second), "*2 \"q\" \"one\"", "{waits}");
            assert_eq!(receive(&mut first), "closed", "{waits}");
            assert_eq!(ask(&mut pusher, &format!("EXISTS q {further}")), ":0", "{waits}");
            until_blocked(&mut pusher, 0);
            first = server.connect();
        }
        assert!(server.log().contains("Command 'blmove' of client"), "{}", server.log());
    });
}

/// A panic in a step closes one client. It does not end the worker, whose other clients would hang.
#[test]
fn a_panic_in_a_step_closes_only_its_client() {
    on_both(|server| {
        let mut setup = server.connect();
        for set in ["s", "t"] {
            let members: Vec<String> = (0..30_000).map(|n| format!("{set}{n}")).collect();
            ask(&mut setup, &format!("SADD {set} {}", members.join(" ")));
        }
        // With few keys KEYS runs in one step.
        assert_eq!(ask(&mut setup, "DEBUG POPULATE 3000 many"), "+OK");
        let victims =
            ["SMEMBERS s", "SORT s ALPHA", "SUNIONSTORE d s t", "KEYS *", "DEBUG POPULATE 100000"];
        for victim in victims {
            let name = victim.split(' ').next().unwrap_or_default();
            // The handler itself is the first step; a server operation has no handler.
            let runs = usize::from(!matches!(name, "DEBUG"));
            for later in [runs, runs + 1] {
                let (mut wire, mut other) = (server.connect(), server.connect());
                arm(server, &format!("{name} 0 {later}"));
                send(&mut wire, victim);
                send(&mut wire, "ECHO behind");
                let is_closed = loop {
                    match wire.receive() {
                        Ok(reply) if render::line(&reply) == "\"behind\"" => break false,
                        Ok(_) => {} // the part of the reply sent before the panic
                        Err(e) => {
                            assert_ne!(e.kind(), std::io::ErrorKind::WouldBlock, "{victim} hangs");
                            break true;
                        }
                    }
                };
                // Without a second step the panic is still armed.
                assert!(is_closed || later > runs, "{victim} {later}");
                assert_eq!(ask(&mut other, "EXISTS d"), ":0", "{victim}");
                ask(&mut other, "DEL d");
            }
        }
        arm(server, "TIME 0"); // disarm the panic
        assert_eq!(ask(&mut setup, "SUNIONSTORE d s t"), ":60000");
    });
}

/// Removed keys stay removed, and all expired keys are removed, although one removal has panicked.
#[test]
fn a_panic_in_the_expiry_sweep_closes_no_client() {
    on_both(|server| {
        let mut wire = server.connect();
        for after in [0, 1, 7] {
            assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 0"), "+OK");
            for key in 0..20 {
                assert_eq!(ask(&mut wire, &format!("SET {{one}}{key} v PX 1")), "+OK");
            }
            arm(server, &format!("SWEEP {after}"));
            assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 1"), "+OK");
            until("all keys are removed", || ask(&mut wire, "DBSIZE") == ":0");
        }
        until("it is logged", || server.log().contains("Panic while expired keys were removed"));
    });
}

/// The target has the key. The failed removal must neither end the server nor leave the slot
/// frozen.
#[test]
fn a_panic_while_migrated_keys_are_removed_keeps_the_keys() {
    on_both(|server| {
        let target = ServerProcess::start(&Binary::under_test(), &[]);
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "SET k v"), "+OK");
        arm(server, "MIGRATE 1");
        let port = target.addr.port();
        let migrate = format!("MIGRATE 127.0.0.1 {port} k 0 30000");
        assert!(ask(&mut wire, &migrate).starts_with("-IOERR"), "it could not be removed");
        assert_eq!(ask(&mut wire, "APPEND k w"), ":2");
        assert_eq!(ask(&mut target.connect(), "GET k"), "\"v\"");
        assert_eq!(ask(&mut wire, &format!("{migrate} REPLACE")), "+OK");
        assert_eq!(ask(&mut wire, "EXISTS k"), ":0");
    });
}

/// Earlier, a panic in the thread that walks ended the server.
#[test]
fn a_panic_in_a_save_costs_that_save() {
    let binary = Binary::under_test();
    if binary.kind == Kind::Redis {
        return;
    }
    for threads in ["1", "2"] {
        let folder = Folder::new("panic-in-save");
        let own = ["--dir", folder.path(), "--save", "3600 1000000", "--threads", threads];
        let server = ServerProcess::start(&binary, &own);
        let wire = &mut server.connect();
        assert_eq!(ask(wire, "DEBUG POPULATE 3000 short"), "+OK");
        assert_eq!(ask(wire, "DEBUG POPULATE 80 long 1048576"), "+OK");
        for after in [0, 7, 2_900] {
            fail_background_save(&server, wire, &folder, after);
        }
        arm(&server, "SAVER 2900 1"); // the save after the next one
        assert_eq!(ask(wire, "SAVE"), "+OK");
        assert!(ask(wire, "SAVE").starts_with("-ERR"));
        assert_eq!(folder.names(), ["dump.rdb"]);
        assert_eq!(ask(wire, "DEBUG RELOAD NOSAVE"), "+OK");
        assert_eq!(ask(wire, "DBSIZE"), ":3080");
        assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
        until_saved(wire);
        assert!(ask(wire, "INFO persistence").contains("rdb_last_bgsave_status:ok"));
    }
}

/// A background save of 80 MiB which panics behind so many keys: how it is reported, what it
/// leaves, and that writers do not wait for its walk.
fn fail_background_save(server: &ServerProcess, wire: &mut Wire, folder: &Folder, after: u32) {
    arm(server, &format!("SAVER {after}"));
    assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
    until_saved(wire);
    let info = ask(wire, "INFO persistence");
    assert!(info.contains("rdb_last_bgsave_status:err"), "{after}: {info}");
    let log = server.log();
    assert!(log.contains("Background saving error: the thread that saves has panicked"), "{log}");
    assert!(ask(wire, "SET k v").starts_with("-MISCONF"), "as behind any save that failed");
    assert_eq!(folder.names(), [""; 0], "{after}: the temporary file is removed");
    assert_eq!(ask(wire, "CONFIG SET stop-writes-on-bgsave-error no"), "+OK");
    // More than may be captured. Unless the walk goes on, these writes wait for ever.
    let long = vec![b'x'; 1 << 20];
    for key in 0..80 {
        let set = wire.command(&[b"SET", format!("long:{key}").as_bytes(), &long]);
        assert_eq!(set.map(|reply| render::line(&reply)).ok().as_deref(), Some("+OK"));
    }
    assert_eq!(ask(wire, "CONFIG SET stop-writes-on-bgsave-error yes"), "+OK");
}
