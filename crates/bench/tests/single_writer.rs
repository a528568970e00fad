//! A single writer: every request of every connection wakes the one thread which owns the data. The
//! only test of its program, because it samples the program's threads.

mod common;

use std::fs;

use bench::models::{Front, Model, Options};
use common::{connect, eventually, start, undisturbed};

/// Voluntary context switches of the threads with this name, which is how often they slept.
fn sleeps(name: &str) -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status"));
    let all = tasks.flatten().filter_map(|task| status(task).ok());
    let field = |status: &str, name: &str| {
        status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    all.filter(|status| field(status, "Name:").as_deref() == Some(name))
        .filter_map(|status| field(&status, "voluntary_ctxt_switches:")?.parse::<u64>().ok())
        .sum()
}

#[test]
fn each_request_wakes_the_writer_with_either_front() {
    undisturbed(|| {
        for front in [Front::Threads, Front::Loops] {
            let options = Options { front, threads: Some(2), ..Options::default() };
            let running = start(Model::SingleWriter, &options);
            let mut clients: Vec<_> = (0..4).map(|_| connect(&running)).collect();
            let before = sleeps("writer");
            for n in 0..200 {
                let reply = clients[n % 4].call(&[b"INCR", b"n"]).expect("a reply");
                assert_eq!(reply.as_integer(), Some(n as i64 + 1), "one table: {front:?}");
            }
            let woken = sleeps("writer") - before;
            assert!(woken >= 150, "{front:?}: 200 requests, one by one, woke it {woken} times");
            running.stop();
            assert!(eventually(|| sleeps("writer") == 0), "{front:?}: it ends with its model");
        }
        let running = start(Model::ThreadPerConnection, &Options::default());
        connect(&running).call(&[b"INCR", b"n"]).expect("a reply");
        assert_eq!(sleeps("writer"), 0, "others have none");
    });
}
