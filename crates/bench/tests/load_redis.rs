//! The load generator with a real `redis-server`, over TCP and a unix socket.

mod common;

use bench::lab::target::{Started, Target};
use bench::load::{Address, Amount, Command, Driver, Pattern, Spec, run};
use common::undisturbed;

fn start() -> Started {
    let text =
        "redis=redis-server --port {port} --unixsocket {sock} --save '' --requirepass secret";
    let target = Target::parse(text).expect("a command line");
    target.start().expect("redis-server is needed: make deps")
}

fn spec_of(redis: &Started) -> Spec {
    let mut spec = Spec {
        address: Address::Tcp(redis.tcp.expect("it listens at a port")),
        password: Some("secret".to_owned()),
        amount: Amount::Requests(20_000),
        connections: 8,
        pipeline: 16,
        data: (0, 2000),
        ..Spec::default()
    };
    spec.keys.maximum = 999;
    spec
}

fn verifiable() -> Vec<Command> {
    let of = |words: &[&str], weight, pattern| Command { weight, pattern, ..Command::new(words) };
    let zipf = Pattern::Zipf { exponent: 0.99 };
    vec![
        of(&["SET", "__key__", "__data__"], 3, Pattern::Uniform),
        of(&["GET", "__key__"], 6, zipf),
        of(&["MSET", "__key__", "__data__", "__key__", "__data__"], 2, Pattern::Sequential),
        of(&["MGET", "__key__", "__key__", "__key__"], 2, Pattern::Gaussian),
        of(&["STRLEN", "__key__"], 1, Pattern::Parallel),
        of(&["EXISTS", "__key__", "__key__"], 1, zipf),
        of(&["DEL", "__key__"], 2, Pattern::Uniform),
        of(&["ECHO", "__data__"], 1, Pattern::Uniform),
        of(&["PING"], 1, Pattern::Uniform),
    ]
}

#[test]
fn every_verifiable_command_passes_with_every_driver() {
    let redis = start();
    let drivers = [
        Driver::LockStep,
        Driver::Window,
        Driver::Multiplexed { callers: 40 },
        Driver::Unbounded,
        Driver::InProcess,
    ];
    for driver in drivers {
        for resp3 in [false, true] {
            let spec = Spec {
                commands: verifiable(),
                driver,
                resp3,
                verify: true,
                misses: 0.1,
                threads: 2,
                distinct_client_seed: resp3,
                ..spec_of(&redis)
            };
            let found = run(&spec).expect("the load runs");
            assert!(found.failures.is_empty(), "{driver:?} {resp3}: {:?}", found.failures);
            assert_eq!(found.requests, 20_000);
        }
    }
}

#[test]
fn the_cpu_and_memory_of_a_local_server_are_measured() {
    undisturbed(|| {
        let redis = start();
        let socket = redis.unix.clone().expect("it has a socket");
        for address in [spec_of(&redis).address, Address::Unix(socket)] {
            let spec = Spec { address, amount: Amount::Seconds(0.5), ..spec_of(&redis) };
            let found = run(&spec).expect("the load runs");
            assert!(found.failures.is_empty(), "{:?}", found.failures);
            let server = found.server.expect("it runs here");
            assert!(server.cpu_s > 0.02 && server.resident_bytes > 1 << 20, "{server:?}");
            let per_request = server.cpu_s * 1e6 / found.requests as f64;
            assert!((server.cpu_us_per_request - per_request).abs() < 1e-6);
            assert!(found.client_cpu_s > 0.01);
        }
    });
}

#[test]
fn a_wrong_password_and_a_wrong_type_are_reported() {
    let redis = start();
    let spec = Spec { password: Some("wrong".to_owned()), ..spec_of(&redis) };
    let error = run(&spec).expect_err("it is refused").to_string();
    assert!(error.contains("AUTH: WRONGPASS"), "{error}");
    let spec = Spec {
        commands: vec![Command::new(&["SET", "k", "text"]), Command::new(&["LPUSH", "k", "x"])],
        amount: Amount::Requests(160),
        connections: 1,
        ..spec_of(&redis)
    };
    let found = run(&spec).expect("the load runs").failures;
    assert_eq!((found.errors, found.lost), (80, 0));
    assert!(found.first_error.starts_with("WRONGTYPE"), "{found:?}");
}
