//! Every kind of failed request makes the run fail.

mod common;
mod support;

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bench::load::{Address, Amount, Command, Driver, Nil, Populate, Spec, run};
use bench::result::{Failures, Measurement};
use common::undisturbed;
use support::{Reply, Server, bulk, ok};

fn measured(spec: &Spec) -> Measurement {
    run(spec).expect("the load runs")
}

fn kinds(found: &Failures) -> (u64, u64, u64, u64) {
    (found.errors, found.lost, found.nil, found.wrong)
}

fn get() -> Vec<Command> {
    vec![Command::new(&["GET", "__key__"])]
}

/// SET and GET on a map. Request number `bad` of each connection is answered by `spoil`.
fn store(bad: u64, spoil: impl Fn(Option<Vec<u8>>) -> Reply + Send + Sync + 'static) -> Server {
    let map: Mutex<HashMap<Vec<u8>, Vec<u8>>> = Mutex::default();
    Server::start(move |number, args| {
        let mut map = map.lock().expect("nobody panicked");
        let old = map.get(&args[1]).cloned();
        if number == bad {
            return spoil(old);
        }
        if args[0] == b"SET" {
            map.insert(args[1].clone(), args[2].clone());
            return ok();
        }
        old.map_or(Reply::Bytes(b"$-1\r\n".to_vec()), |value| bulk(&value))
    })
}

#[test]
fn a_correct_server_causes_no_failure() {
    let server = store(u64::MAX, |_| ok());
    for driver in [Driver::LockStep, Driver::Window, Driver::Multiplexed { callers: 12 }] {
        for verify in [false, true] {
            let mix = vec![
                Command::new(&["SET", "__key__", "__data__"]),
                Command { weight: 3, ..Command::new(&["GET", "__key__"]) },
            ];
            let mut spec = Spec {
                commands: mix,
                connections: 4,
                threads: 2,
                pipeline: 7,
                data: (0, 300),
                amount: Amount::Requests(5001),
                driver,
                verify,
                misses: 0.25,
                ..server.spec()
            };
            spec.keys.maximum = 99;
            let found = measured(&spec);
            assert!(found.failures.is_empty(), "{driver:?} {verify}: {:?}", found.failures);
            assert_eq!(found.requests, 5001, "{driver:?} {verify}");
            assert!(found.in_flight_max <= 28, "{driver:?}: {}", found.in_flight_max);
        }
    }
}

#[test]
fn an_error_reply_fails_the_run_and_is_reported() {
    let server = store(10, |_| Reply::Bytes(b"-ERR on purpose\r\n".to_vec()));
    for verify in [false, true] {
        let spec = Spec { amount: Amount::Requests(100), verify, ..server.spec() };
        let found = measured(&spec);
        assert_eq!(kinds(&found.failures), (1, 0, 0, 0));
        assert_eq!((found.requests, &found.failures.first_error[..]), (99, "ERR on purpose"));
    }
}

#[test]
fn nil_fails_the_run_where_a_value_is_expected() {
    let nil = |_| Reply::Bytes(b"$-1\r\n".to_vec());
    let server = store(10, nil);
    for verify in [false, true] {
        let spec = Spec { commands: get(), amount: Amount::Requests(100), verify, ..server.spec() };
        let found = measured(&spec);
        assert_eq!(kinds(&found.failures), (0, 0, 1, 0), "verify {verify}");
        if !verify {
            let allowed = measured(&Spec { nil: Nil::Allowed, ..spec });
            assert!(allowed.failures.is_empty());
        }
    }
    let empty = store(u64::MAX, nil);
    let spec = Spec {
        commands: get(),
        amount: Amount::Requests(50),
        populate: Populate::No,
        ..empty.spec()
    };
    assert_eq!(kinds(&measured(&spec).failures), (0, 0, 50, 0), "nobody wrote the keys");
}

#[test]
fn a_wrong_value_fails_a_verified_run() {
    let stale = store(50, |old| bulk(&old.unwrap_or_default()));
    let other = store(50, |_| bulk(b"another value!!!"));
    let swallowed = store(50, |_| ok());
    // SET, GET, SET, GET, and so on: the 50th is a SET.
    let mix = vec![Command::new(&["SET", "__key__", "__data__"]), get().remove(0)];
    let spec = |server: &Server| Spec {
        commands: mix.clone(),
        data: (16, 16),
        amount: Amount::Requests(200),
        verify: true,
        ..server.spec()
    };
    let found = measured(&spec(&stale)).failures;
    assert!(found.wrong >= 1 && found.errors + found.lost + found.nil == 0, "{found:?}");
    let found = measured(&spec(&other)).failures;
    assert!(found.wrong >= 1, "{found:?}");
    let found = measured(&spec(&swallowed)).failures;
    assert!(found.wrong >= 1, "a write that was confirmed and not done: {found:?}");
    assert!(found.first_error.contains("is not the value of its write number"), "{found:?}");
}

#[test]
fn a_lost_reply_fails_after_the_timeout() {
    undisturbed(|| {
        let server = store(10, |_| Reply::Nothing);
        let spec = Spec { amount: Amount::Requests(100), timeout_s: 0.3, ..server.spec() };
        let since = Instant::now();
        let found = measured(&spec);
        assert_eq!(kinds(&found.failures), (0, 1, 0, 0));
        assert_eq!((found.requests, &found.failures.first_error[..]), (10, "no reply in time"));
        let took = since.elapsed();
        assert!((Duration::from_millis(290)..Duration::from_secs(3)).contains(&took), "{took:?}");
    });
}

/// Requests 40 to 47 are sent together. Three are answered, then the connection is closed.
#[test]
fn a_closed_connection_fails_at_once() {
    undisturbed(|| {
        let server = store(43, |_| Reply::Close);
        let spec = Spec { pipeline: 8, amount: Amount::Seconds(20.0), ..server.spec() };
        let since = Instant::now();
        let found = measured(&spec);
        assert_eq!((found.requests, found.failures.lost), (43, 5));
        assert_eq!(found.failures.first_error, "the server closed the connection");
        let two = measured(&Spec { connections: 2, ..spec });
        assert!(two.failures.lost > 0, "{:?}", two.failures);
        assert!(since.elapsed() < Duration::from_secs(4), "nobody waits for what cannot come");
    });
}

#[test]
fn unexpected_replies_and_other_protocols_fail() {
    let twice = store(10, |_| Reply::Bytes(b"+OK\r\n+OK\r\n".to_vec()));
    let found = measured(&Spec { amount: Amount::Requests(100), ..twice.spec() }).failures;
    assert!(found.lost > 0 && found.first_error.contains("a reply to no request"), "{found:?}");
    let web = store(10, |_| Reply::Bytes(b"HTTP/1.1 400 Bad Request\r\n".to_vec()));
    let found = measured(&Spec { amount: Amount::Requests(100), ..web.spec() }).failures;
    assert!(found.lost > 0 && found.first_error.contains("not a RESP reply"), "{found:?}");
}

#[test]
fn a_failed_connection_is_reported() {
    let error = |spec: &Spec| run(spec).expect_err("there is no load").to_string();
    let server = store(0, |_| Reply::Bytes(b"-WRONGPASS no\r\n".to_vec()));
    let spec = Spec { password: Some("p".to_owned()), ..server.spec() };
    assert_eq!(error(&spec), "the server refused the connection: AUTH: WRONGPASS no");
    let spec = Spec { resp3: true, ..server.spec() };
    assert_eq!(error(&spec), "the server refused the connection: HELLO: WRONGPASS no");
    let spec = Spec { commands: get(), ..server.spec() };
    assert!(error(&spec).contains("cannot write the keys that are to be read: WRONGPASS"));
    let gone = Spec { address: Address::Unix("/nowhere/at/all.sock".into()), ..server.spec() };
    assert!(error(&gone).starts_with("cannot connect to /nowhere/at/all.sock: No such file"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let refused = Spec { address: Address::Tcp(address), ..server.spec() };
    assert!(error(&refused).contains("Connection refused"), "{}", error(&refused));
}
