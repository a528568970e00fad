//! Tests of the transaction, with servers that reply by a script.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use client::Address;
use journal::{Item, Reader};
use rdb::{Owned, Saver};

use super::*;
use crate::connection::Login;

/// A server with one key, which gives these replies to EXEC and keeps the names of all commands.
/// (Requests have the form of an append-only file.)
fn serve(name: &str, value: &str, execs: &[&str]) -> (Asked, std::thread::JoinHandle<String>) {
    let path = std::env::temp_dir().join(format!("undo-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket");
    let login = Login { address: Address::Unix(path.clone()), user: None, password: None };
    let payload = Saver::default().dump(&Owned::String(value.as_bytes().to_vec()));
    let mut execs: VecDeque<String> = execs.iter().map(|&reply| reply.to_owned()).collect();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let (mut reader, mut block, mut names) = (Reader::new(0), [0; 4096], Vec::new());
        let mut is_queueing = false;
        loop {
            let item = match reader.next().expect("requests are whole") {
                Some(Item::Command(words)) => {
                    String::from_utf8_lossy(words.get(0).expect("a name")).into_owned()
                }
                _ => match stream.read(&mut block) {
                    Ok(count @ 1..) => {
                        reader.feed(&block[..count]);
                        continue;
                    }
                    _ => return names.join(" "),
                },
            };
            let mut reply = match item.as_str() {
                "MEMORY" => b":50\r\n".to_vec(),
                "PEXPIRETIME" => b":-1\r\n".to_vec(),
                "DUMP" => format!("${}\r\n", payload.len()).into_bytes(),
                "EXEC" => execs.pop_front().expect("no more of them").into_bytes(),
                "RESTORE" if is_queueing => b"+QUEUED\r\n".to_vec(),
                _ => b"+OK\r\n".to_vec(),
            };
            if item == "DUMP" {
                reply.extend_from_slice(&payload);
                reply.extend_from_slice(b"\r\n");
            }
            is_queueing |= item == "MULTI";
            stream.write_all(&reply).expect("the client reads");
            names.push(item);
        }
    });
    let asked = Asked::connect(&login, Duration::from_secs(60)).expect("it listens");
    let _ = std::fs::remove_file(path);
    (asked, thread)
}

fn outcome(name: &str, old: &str, execs: &[&str], is_dry: bool) -> (Result<Plan, Failure>, String) {
    let (mut old, _) = serve(&format!("{name}-old"), old, &[]);
    let (mut now, thread) = serve(&format!("{name}-now"), "2", execs);
    let plan = Undo { old: &mut old, now: &mut now, pattern: b"k", is_dry }.run();
    drop(now);
    (plan, thread.join().expect("no panic"))
}

const PLANNED: &str = "WATCH MEMORY DUMP PEXPIRETIME";
const QUEUED: &str = "MEMORY MULTI RESTORE EXEC";

#[test]
fn a_key_is_watched_compared_and_restored() {
    let (plan, names) = outcome("once", "1", &["*1\r\n+OK\r\n"], false);
    let expected = Plan { actions: vec![(b"k".to_vec(), Action::Change)], unchanged: 0 };
    assert_eq!(plan, Ok(expected));
    assert_eq!(names, format!("{PLANNED} {QUEUED}"));
}

#[test]
fn what_others_change_meanwhile_begins_all_again() {
    let (plan, names) = outcome("twice", "1", &["*-1\r\n", "*1\r\n+OK\r\n"], false);
    assert!(plan.is_ok());
    assert_eq!(names, format!("{PLANNED} {QUEUED} {PLANNED} {QUEUED}"));
    let (plan, names) = outcome("always", "1", &["*-1\r\n"; TRIES], false);
    assert!(plan.expect_err("it gives up").contains("nothing was changed"), "{names}");
    assert_eq!(names.matches("EXEC").count(), TRIES);
}

#[test]
fn a_dry_run_and_equal_values_change_nothing() {
    let (plan, names) = outcome("dry", "1", &[], true);
    assert_eq!(plan.map(|plan| plan.actions.len()), Ok(1));
    assert_eq!(Some(names.as_str()), PLANNED.strip_prefix("WATCH "));
    let (plan, names) = outcome("same", "2", &[], false);
    assert_eq!(plan, Ok(Plan { actions: Vec::new(), unchanged: 1 }));
    assert_eq!(names, PLANNED);
}

#[test]
fn an_error_names_what_was_refused() {
    let (plan, _) = outcome("refused", "1", &["-EXECABORT Transaction discarded\r\n"], false);
    let why = plan.expect_err("it is refused");
    assert!(why.contains("nothing was changed: the server refuses EXEC: EXECABORT"), "{why}");
    let (plan, _) = outcome("one", "1", &["*1\r\n-ERR Bad data format\r\n"], false);
    let why = plan.expect_err("it is refused");
    assert!(why.contains("'k' could not be brought back") && why.contains("Bad data"), "{why}");
}
