//! `sheafdb-bench collections` with real servers: replies are compared before they are measured.

use bench::collections::memory::{self, Kind};
use bench::collections::reads::{self, Options};
use bench::lab::target::{Started, Target};
use client::Client;
use std::time::Duration;

fn start(name: &str) -> Started {
    let text = format!("{name}=redis-server");
    let target = Target::parse(&text).expect("a target");
    target.start().expect("redis-server is needed: make deps")
}

fn options(figures: &[&str]) -> Options {
    Options {
        figures: figures.iter().map(|name| (*name).to_owned()).collect(),
        seconds: 0.05,
        repetitions: 1,
        divisor: 1000,
        load_only: false,
    }
}

#[test]
fn every_figure_is_loaded_compared_and_measured() {
    let targets = [start("a"), start("b")];
    let result =
        reads::run(&targets, &options(&[]), &mut |_| ()).expect("both are the same server");
    let names: Vec<&str> = result.rows.iter().map(|row| row.figure).collect();
    assert_eq!(names, reads::names());
    // (A server may have had no processor within so short a time.)
    for target in 0..2 {
        let sum: f64 = result.rows.iter().map(|row| row.cpu_us[target]).sum();
        assert!(sum > 0.0, "{:?}", result.rows);
    }
    assert_eq!(result.measurements.len(), 2 * names.len());
    let unknown = reads::run(&targets, &options(&["zrang"]), &mut |_| ());
    assert!(unknown.is_err_and(|why| why.contains("'zrang'") && why.contains("zrank")));
}

/// An existing collection with the right number of elements is not loaded again, so different
/// contents are detected.
#[test]
fn a_different_reply_ends_the_run() {
    let targets = [start("a"), start("b")];
    let mut client =
        Client::connect(&targets[1].address(), Duration::from_secs(5)).expect("it listens");
    for n in 0..1000 {
        let element = format!("else{n:04}");
        client.call(&[b"RPUSH", b"bench:list", element.as_bytes()]).expect("a reply");
    }
    let why = reads::run(&targets, &options(&["lrange_100"]), &mut |_| ());
    let why = why.expect_err("the lists differ");
    assert!(why.contains("lrange_100: a and b differ in reply 0"), "{why}");
    client.call(&[b"RPUSH", b"bench:list", b"more"]).expect("a reply");
    let why = reads::run(&targets, &options(&["lrange_100"]), &mut |_| ());
    assert!(why.expect_err("there are too many").contains("right number"));
}

#[test]
fn memory_per_element_is_plausible() {
    let targets = [Target::parse("redis-server").expect("a target")];
    let kinds = [Kind::Set, Kind::Zset, Kind::Stream];
    let rows = memory::run(&targets, &kinds, &[(100, 500)], 8, &mut |_| ()).expect("it is there");
    let used: Vec<f64> = rows.iter().map(|row| row.bytes[0].used).collect();
    // A hash table of strings, and a packed list of members and scores.
    assert!((30.0..120.0).contains(&used[0]), "{rows:?}");
    assert!((12.0..40.0).contains(&used[1]), "{rows:?}");
    // Three values, their lengths, and the entry's own elements.
    assert!((35.0..60.0).contains(&used[2]), "{rows:?}");
    let running = [Target::parse("127.0.0.1:1").expect("a target")];
    assert!(memory::run(&running, &kinds, &[(1, 1)], 8, &mut |_| ()).is_err());
}
