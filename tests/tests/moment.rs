//! KEYS of a small database sees it at one moment: a key that is renamed all the time is seen once,
//! under one of its names.

use std::sync::atomic::{AtomicBool, Ordering};

use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::Value;

/// Names that the key has one after the other.
const NAMES: usize = 16;
/// Keys that stay, so that a look takes a while.
const OTHERS: usize = 1_000;
const LOOKS: usize = 300;

#[test]
fn a_renamed_key_is_seen_once() {
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
            for _ in 0..LOOKS {
                let Ok(Value::Array(keys)) = wire.command(&["KEYS", "ring:*"]) else {
                    panic!("a list")
                };
                assert_eq!(keys.len(), 1, "{threads} threads: {keys:?}");
            }
            drop(end);
            renamer.join().expect("it renamed")
        });
        println!("{threads} threads: {LOOKS} looks beside {renames} renames");
    }
}
