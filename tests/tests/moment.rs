//! KEYS of a small database is atomic: a key which is renamed all the time is listed once, under
//! one of its names.

use std::sync::atomic::{AtomicBool, Ordering};

use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::Value;

/// Number of names of the key.
const NAMES: usize = 16;
/// Other keys, so that KEYS takes some time.
const OTHERS: usize = 1_000;
const READS: usize = 300;

#[test]
fn a_renamed_key_is_listed_once() {
    let binary = Binary::under_test();
    for threads in ["1", "2", "4"] {
        let settings = ["--threads", threads];
        let server = match binary.kind {
            Kind::SheafDb => ServerProcess::start(&binary, &settings),
            Kind::Redis => ServerProcess::start(&binary, &[]),
        };
        let wire = &mut server.connect();
        wire.command(&["DEBUG", "POPULATE", &OTHERS.to_string()]).expect("answered");
        wire.command(&["SET", "ring:0", "v"]).expect("answered");
        let ended = AtomicBool::new(false);
        let renames = std::thread::scope(|scope| {
            let renamer = scope.spawn(|| {
                let wire = &mut server.connect();
                let mut at = 0;
                while !ended.load(Ordering::Acquire) {
                    let name = |at: usize| format!("ring:{}", at % NAMES);
                    let reply = wire.command(&["RENAME", &name(at), &name(at + 1)]);
                    assert_eq!(reply.expect("answered"), Value::Simple(b"OK".to_vec()));
                    at += 1;
                }
                at
            });
            let end = SetAtEnd(&ended);
            for _ in 0..READS {
                let Ok(Value::Array(keys)) = wire.command(&["KEYS", "ring:*"]) else {
                    panic!("a list")
                };
                assert_eq!(keys.len(), 1, "{threads} threads: {keys:?}");
            }
            drop(end);
            renamer.join().expect("it renamed")
        });
        println!("{threads} threads: {READS} KEYS and {renames} renames");
    }
}
