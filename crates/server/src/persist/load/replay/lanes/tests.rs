//! Who runs what, and when.

use super::*;
use keyspace::{Keyspace, Options};

fn keyspace() -> Arc<Keyspace> {
    Arc::new(Keyspace::new(&Options { databases: 4, hash_secret: 1, workers: 1 }))
}

/// Two keys of different threads.
fn keys(keyspace: &Keyspace) -> [String; 2] {
    let of = |lane: usize| {
        let mut names = (0..).map(|n| format!("k{n}"));
        names.find(|name| keyspace.key(name.as_bytes()).slot.index() % 2 == lane)
    };
    [0, 1].map(|lane| of(lane).expect("every slot has keys"))
}

fn command(words: &[&str]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let words: Vec<_> = words.collect();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}

/// Lanes for two threads, whose first blocks are these.
fn lanes(keyspace: &Arc<Keyspace>, blocks: Vec<Vec<u8>>) -> Lanes {
    let lanes = Lanes::new(2, Dispatcher::new(0, keyspace.clone(), 4, 2));
    for block in blocks {
        lanes.add(block);
    }
    lanes
}

/// Takes a block to sort, and sorts it.
fn sort(lanes: &Lanes, thread: usize) {
    let Work::Read(mut dispatcher, block, spare) = lanes.take(thread) else {
        panic!("a block is there")
    };
    let end = match block {
        Some(block) => dispatcher.block(&block, spare, || false).map(|()| None),
        None => dispatcher.finish().map(Some),
    };
    lanes.sorted(dispatcher, end);
}

fn run(lanes: &Lanes, thread: usize) -> Chunk {
    match lanes.take(thread) {
        Work::Run(chunk) => chunk,
        Work::Read(..) => panic!("a block"),
        Work::End => panic!("the end"),
    }
}

/// True if the thread would wait.
fn waits(lanes: &Lanes, thread: usize) -> bool {
    lanes.state().next(thread).is_none()
}

#[test]
fn each_thread_runs_its_own_slots_and_reads_while_little_is_queued() {
    let ks = keyspace();
    let [a, b] = keys(&ks);
    let block = [command(&["SET", &a, "1"]), command(&["SET", &b, "1"])].concat();
    let lanes = lanes(&ks, vec![block.clone(), block]);
    sort(&lanes, 1);
    sort(&lanes, 0);
    let (first, second) = (run(&lanes, 0), run(&lanes, 1));
    assert_eq!(first.args(0).get(1), a.as_bytes());
    assert_eq!(second.args(0).get(1), b.as_bytes());
    lanes.ran(first);
    let third = run(&lanes, 0);
    assert_eq!(third.args(0).get(1), a.as_bytes());
    assert!(waits(&lanes, 0));
    lanes.ran(third);
    lanes.ran(second);
    let last = run(&lanes, 1);
    lanes.end_of_file();
    sort(&lanes, 0);
    lanes.ran(last);
    assert!(matches!(lanes.take(0), Work::End) && matches!(lanes.take(1), Work::End));
    assert!(!lanes.leave() && lanes.end().is_none() && lanes.leave());
    assert!(matches!(lanes.end(), Some(Ok(Replayed { truncated: None, .. }))));
}

#[test]
fn what_runs_alone_has_nobody_beside_it() {
    let ks = keyspace();
    let [a, b] = keys(&ks);
    let blocks = vec![
        command(&["SET", &a, "1"]),
        command(&["MSET", &a, "1", &b, "1"]),
        [command(&["SET", &a, "2"]), command(&["SET", &b, "2"])].concat(),
    ];
    let lanes = lanes(&ks, blocks);
    sort(&lanes, 0);
    sort(&lanes, 0);
    sort(&lanes, 0);
    let first = run(&lanes, 0);
    assert!(waits(&lanes, 0) && waits(&lanes, 1), "a command is being run");
    lanes.ran(first);
    let alone = run(&lanes, 1);
    assert_eq!(alone.args(0).get(0), b"MSET");
    assert!(waits(&lanes, 0) && waits(&lanes, 1), "one runs alone");
    lanes.ran(alone);
    assert_eq!(run(&lanes, 0).args(0).get(2), b"2");
    assert_eq!(run(&lanes, 1).args(0).get(2), b"2");
}

/// At the bound nobody reads.
#[test]
fn no_more_is_sorted_than_allowed() {
    let ks = keyspace();
    let [a, _] = keys(&ks);
    let value = "v".repeat(1 << 20);
    let block = command(&["SET", &a, &value]);
    let lanes = lanes(&ks, vec![block.clone(); 12]);
    let mut sorted = 0;
    // The other thread has nothing to run.
    while !waits_or_takes(&lanes, &mut sorted) {}
    assert_eq!(sorted, QUEUED_MAX.div_ceil(block.len()));
    assert_eq!(lanes.queued(), 12 - sorted);
}

fn waits_or_takes(lanes: &Lanes, sorted: &mut usize) -> bool {
    let Some(Work::Read(mut dispatcher, Some(block), spare)) = lanes.state().next(1) else {
        return true;
    };
    dispatcher.block(&block, spare, || false).expect("a good file");
    lanes.sorted(dispatcher, Ok(None));
    *sorted += 1;
    false
}

#[test]
fn an_error_ends_all_threads_and_the_first_one_counts() {
    let lanes = lanes(&keyspace(), vec![b"x".to_vec()]);
    lanes.fail(LoadError::at(9, "later"));
    lanes.fail(LoadError::at(3, "first"));
    assert!(matches!(lanes.take(0), Work::End) && matches!(lanes.take(1), Work::End));
    assert!(!lanes.leave() && lanes.leave());
    assert!(matches!(lanes.end(), Some(Err(error)) if error.offset == 3));
    let lanes = Lanes::new(1, Dispatcher::new(0, keyspace(), 4, 1));
    lanes.cancel();
    assert!(matches!(lanes.take(0), Work::End) && lanes.leave() && lanes.end().is_none());
}
