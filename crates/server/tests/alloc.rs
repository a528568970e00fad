//! A GET or SET of an existing small key allocates nothing, from its request bytes to its reply. An
//! ingest message allocates nothing either. For other changes the test fixes the number of
//! allocations.
#![allow(unsafe_code)] // an allocator that counts

use base::sync::Arc;
use driver::loopback::Loopback;
use ingest::Strategy;
use server::config::Config;
use server::config::ingest::IngestListen;
use server::ingest::ports::{IngestPort, Terms};
use server::worker::Worker;
use server::worker::message::Message;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations and reallocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// Bytes of the largest of them.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(size: usize) {
    // The counters of an ending thread are gone. Such a thread is not measured.
    let _ = COUNT.try_with(|n| n.set(n.get() + 1));
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on; the block came from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promise is handed on; the block came from the same allocator.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type TestWorker = Worker<Loopback<Message>>;

/// Requests per pipeline: one window.
const WINDOW: usize = 32;
const KEYS: usize = 320;
const REQUESTS: usize = 10_000;

fn worker() -> TestWorker {
    let mut driver = Loopback::new(7);
    driver.connect().expect("a pair of sockets");
    let shared = server::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
    let mut worker = Worker::new(driver, Arc::new(shared), 0, Vec::new());
    worker.turn();
    worker
}

fn encode(args: &[&str]) -> Vec<u8> {
    let args: Vec<String> = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
    format!("*{}\r\n{}", args.len(), args.concat()).into_bytes()
}

/// Pipelines of one window each, which together use all keys.
fn pipelines(request: impl Fn(&str) -> Vec<u8>) -> Vec<Vec<u8>> {
    let keys: Vec<String> = (0..KEYS).map(|n| format!("key:{n:012}")).collect();
    keys.chunks(WINDOW).map(|keys| keys.iter().flat_map(|key| request(key)).collect()).collect()
}

/// Sends pipelines until this many requests were answered. Returns the allocations made meanwhile.
fn run(worker: &mut TestWorker, pipelines: &[Vec<u8>], requests: usize, reply: &[u8]) -> u64 {
    let before = COUNT.get();
    for pipeline in pipelines.iter().cycle().take(requests.div_ceil(WINDOW)) {
        worker.driver().forget(0);
        worker.driver().write(0, pipeline);
        worker.turn();
        let sent = worker.driver().received(0);
        assert_eq!(sent.len(), WINDOW * reply.len());
        assert!(sent.chunks(reply.len()).all(|one| one == reply));
    }
    COUNT.get() - before
}

#[test]
fn no_allocation_per_get_or_set_of_an_existing_small_key() {
    let mut worker = worker();
    let (first, second) = ("v".repeat(64), "w".repeat(64));
    let set_first = pipelines(|key| encode(&["SET", key, &first]));
    let set_second = pipelines(|key| encode(&["SET", key, &second]));
    let get = pipelines(|key| encode(&["GET", key]));
    let bulk = |value: &str| format!("${}\r\n{value}\r\n", value.len()).into_bytes();
    // New keys sometimes allocate buckets and spans of entries, which shows that the counter works.
    let new = run(&mut worker, &set_first, KEYS, b"+OK\r\n");
    assert!((1..KEYS as u64 / 10).contains(&new), "{new} allocations for {KEYS} new keys");
    // Buffers grow to their final size.
    run(&mut worker, &set_second, KEYS, b"+OK\r\n");
    run(&mut worker, &get, KEYS, &bulk(&second));

    assert_eq!(run(&mut worker, &get, REQUESTS, &bulk(&second)), 0, "GET");
    assert_eq!(run(&mut worker, &set_first, REQUESTS, b"+OK\r\n"), 0, "SET");
    assert_eq!(run(&mut worker, &get, REQUESTS, &bulk(&first)), 0, "GET after SET");
}

/// Members of a collection stored in its entry, and of one stored outside it.
const FEW: usize = 4;
const MANY: usize = 1000;

/// Sends pipelines until this many requests were answered, none with an error. Returns the
/// allocations made meanwhile.
fn run_without_error(worker: &mut TestWorker, pipelines: &[Vec<u8>], requests: usize) -> u64 {
    let before = COUNT.get();
    for pipeline in pipelines.iter().cycle().take(requests.div_ceil(WINDOW)) {
        worker.driver().forget(0);
        worker.driver().write(0, pipeline);
        worker.turn();
        let sent = worker.driver().received(0);
        assert!(sent.split(|byte| *byte == b'\n').count() > WINDOW, "all are answered");
        assert!(!sent.starts_with(b"-") && !sent.windows(2).any(|two| two == b"\n-"));
    }
    COUNT.get() - before
}

/// Allocations of `REQUESTS` changes to a collection which has this many members at first.
fn changes(
    members: usize,
    fill: &dyn Fn(usize) -> Vec<u8>,
    change: &dyn Fn(usize) -> Vec<u8>,
) -> u64 {
    let mut worker = worker();
    for member in 0..members {
        worker.driver().forget(0);
        worker.driver().write(0, &fill(member));
        worker.turn();
    }
    // Each member at least twice, so that a change can be reversed.
    let requests: Vec<Vec<u8>> = (0..(2 * members).next_multiple_of(WINDOW)).map(change).collect();
    let pipelines: Vec<Vec<u8>> = requests.chunks(WINDOW).map(<[Vec<u8>]>::concat).collect();
    // Buffers grow to their final size.
    run_without_error(&mut worker, &pipelines, requests.len());
    run_without_error(&mut worker, &pipelines, REQUESTS)
}

/// Other common changes of a cache. The table states how often each one allocates and why, so that
/// an additional allocation is noticed.
#[test]
fn changes_to_existing_values_allocate_as_listed() {
    let texts = ["v", "w"].map(|letter| letter.repeat(64));
    let member = |n: usize| format!("member:{n:09}");
    let requests = REQUESTS.next_multiple_of(WINDOW) as u64;

    let incr = |_| encode(&["INCR", "n"]);
    assert_eq!(changes(1, &|_| encode(&["SET", "n", "1000000"]), &incr), 0, "INCR");

    for members in [FEW, MANY] {
        let hset = |n: usize| encode(&["HSET", "h", &member(n % members), &texts[n / members % 2]]);
        assert_eq!(changes(members, &hset, &hset), 0, "HSET, {members} fields");
        let sadd = |n: usize| encode(&["SADD", "s", &member(n % members)]);
        assert_eq!(changes(members, &sadd, &sadd), 0, "SADD, {members} members");

        let push = |_| encode(&["LPUSH", "l", &texts[0]]);
        let both = |n| if n % 2 == 0 { push(n) } else { encode(&["LPOP", "l"]) };
        // A small list is stored in its entry. A list of another size needs a new entry, for which
        // the worker keeps spare room.
        assert_eq!(changes(members, &push, &both), 0, "LPUSH and LPOP, {members} elements");

        // All scores have the same size.
        let score = |n: usize| (1000 + n * 7 % 1009).to_string();
        let zadd = |n: usize| encode(&["ZADD", "z", &score(n), &member(n % members)]);
        let cost = changes(members, &zadd, &zadd);
        if members == FEW {
            // The change is made to a copy, which then replaces the value.
            assert_eq!(cost, requests, "ZADD, {members} members");
        } else {
            // A page of scores is compacted now and then, after members have left it.
            assert!(cost <= requests / 500, "ZADD, {members} members: {cost}");
        }
    }
}

/// A worker with one connection, which uses this strategy.
fn ingest_worker(strategy: Strategy) -> TestWorker {
    let mut driver = Loopback::new(7);
    driver.connect().expect("a pair of sockets");
    let mut shared = server::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
    let port = IngestPort::new(driver::ListenerId(0), "here".into(), Terms::classic(strategy), 1);
    shared.ingest.open.push(port);
    let mut worker = Worker::new(driver, Arc::new(shared), 0, Vec::new());
    worker.turn();
    worker
}

#[test]
fn no_allocation_per_ingest_message() {
    const BLOCK: u64 = 3_000;
    for strategy in Strategy::ALL {
        let mut worker = ingest_worker(strategy);
        let size = match strategy.order() {
            ingest::Order::Big => 5u32.to_be_bytes(),
            ingest::Order::Little => 5u32.to_le_bytes(),
        };
        let message = |id: u64| [&id.to_le_bytes()[..], &size, b"hello"].concat();
        let block: Vec<u8> = (0..BLOCK).flat_map(message).collect();
        let mut acks = 0;
        let mut run = |worker: &mut TestWorker, blocks: usize| {
            let before = COUNT.get();
            for n in 0..blocks {
                worker.driver().forget(0);
                // The stream is split at different places each time.
                let cut = n * 7919 % block.len();
                for part in [&block[..cut], &block[cut..]] {
                    worker.driver().write(0, part);
                    worker.turn();
                }
                worker.driver().advance(6_000_000);
                worker.turn();
                acks += worker.driver().received(0).len();
            }
            COUNT.get() - before
        };
        let first = run(&mut worker, 400);
        assert!(first > 0, "{strategy}: the counter sees what a worker does");
        assert_eq!(run(&mut worker, 400), 0, "{strategy}");
        assert!(acks >= 800 * 8, "{strategy}: {acks} bytes of acknowledgements");
    }
}

/// A worker with one connection, whose messages go to this sink.
fn sink_worker(listen: &str) -> TestWorker {
    let mut driver = Loopback::new(7);
    driver.connect().expect("a pair of sockets");
    let mut shared = server::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
    let words: Vec<Vec<u8>> = listen.split(' ').map(Vec::from).collect();
    let listen = &IngestListen::parse_all(&words).expect("well formed")[0];
    shared.ingest.open.push(IngestPort::new(
        driver::ListenerId(0),
        "here".into(),
        listen.terms.clone(),
        1,
    ));
    let mut worker = Worker::new(driver, Arc::new(shared), 0, Vec::new());
    worker.turn();
    worker
}

/// Pages, and the bookkeeping of a block, are allocated. A single message allocates nothing.
#[test]
fn a_message_into_a_sink_allocates_only_its_pages() {
    const BLOCK: u64 = 2_000;
    for (listen, pages, blocks_cost) in [
        ("h:0 strategy=sync sink=stream:s", 100, 0),
        ("h:0 strategy=sync sink=stream:s maxlen=~100000", 100, 20),
        ("h:0 strategy=sync sink=list:l", 100, 0),
    ] {
        let mut worker = sink_worker(listen);
        let message = |id: u64| [&id.to_le_bytes()[..], &5u32.to_le_bytes(), b"hello"].concat();
        let block: Vec<u8> = (0..BLOCK).flat_map(message).collect();
        let run = |worker: &mut TestWorker, blocks: usize| {
            let before = COUNT.get();
            for n in 0..blocks {
                worker.driver().forget(0);
                // The stream is split at different places each time.
                let cut = n * 7919 % block.len();
                for part in [&block[..cut], &block[cut..]] {
                    worker.driver().write(0, part);
                    worker.turn();
                }
                assert!(!worker.driver().received(0).is_empty(), "{listen}: acknowledged");
            }
            COUNT.get() - before
        };
        run(&mut worker, 100);
        let (blocks, cost) = (100, run(&mut worker, 100));
        // A page of a hundred messages takes five or six allocations: its contents, the page, and
        // its place in the tree.
        let bound = blocks * BLOCK / pages * 6 + 2 * blocks * blocks_cost + 200;
        println!("{listen}: {cost} allocations for {} messages", blocks * BLOCK);
        assert!(cost < bound, "{listen}: {cost} allocations");
    }
}

/// A string of pages, and the pieces in which its request arrives.
const LONG: usize = 4 << 20;
const PIECE: usize = 16 << 10;

/// Sends requests in pieces. Returns the bytes of the largest allocation meanwhile.
fn largest(worker: &mut TestWorker, requests: &[Vec<u8>], reply: &[u8]) -> usize {
    worker.driver().forget(0);
    LARGEST.set(0);
    for piece in requests.iter().flat_map(|request| request.chunks(PIECE)) {
        worker.driver().write(0, piece);
        worker.turn();
    }
    // What is written ahead of a command takes some more turns.
    for _ in 0..LONG / PIECE {
        if worker.driver().received(0).len() < reply.len() {
            worker.turn();
        }
    }
    let largest = LARGEST.get();
    assert_eq!(
        worker.driver().received(0).escape_ascii().to_string(),
        reply.escape_ascii().to_string()
    );
    largest
}

/// Whatever is recorded of a request (its size, the slow log, the queue of a transaction) needs no
/// copy of a long argument as one slice.
#[test]
fn no_allocation_is_as_large_as_a_long_argument() {
    let mut worker = worker();
    let long = "v".repeat(LONG);
    let slow = encode(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    let large = encode(&["CONFIG", "SET", "commandlog-request-larger-than", "0"]);
    largest(&mut worker, &[slow, large], b"+OK\r\n+OK\r\n");
    let set = encode(&["SET", "key", &long]);
    let append = encode(&["APPEND", "key", &long]);
    let (multi, exec) = (encode(&["MULTI"]), encode(&["EXEC"]));
    let unknown = encode(&["UNKNOWN", &long]);
    let told = format!(
        "-ERR unknown command 'UNKNOWN', with args beginning with: '{}' \r\n",
        "v".repeat(128)
    );
    for (what, requests, reply) in [
        ("SET", vec![set.clone()], "+OK\r\n"),
        ("APPEND", vec![append.clone()], ":8388608\r\n"),
        (
            "EXEC",
            vec![multi, set, append, exec],
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:8388608\r\n",
        ),
        ("unknown", vec![unknown], &told),
    ] {
        let bytes = largest(&mut worker, &requests, reply.as_bytes());
        assert!(bytes < LONG / 4, "{what}: {bytes} bytes at once");
    }
}
