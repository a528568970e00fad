//! A GET or SET of an existing small key allocates nothing, from its bytes to its reply's; nor does an ingest message.
#![allow(unsafe_code)] // an allocator that counts

use base::sync::Arc;
use driver::loopback::Loopback;
use ingest::{Sink, Strategy};
use server::config::Config;
use server::ingest_ports::IngestPort;
use server::message::Message;
use server::worker::Worker;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread, growth included.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // A thread that ends has no counter any more and is none of those that are measured.
    let _ = COUNT.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on; the block came from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
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

/// Pipelines of one window each, over all keys.
fn pipelines(request: impl Fn(&str) -> Vec<u8>) -> Vec<Vec<u8>> {
    let keys: Vec<String> = (0..KEYS).map(|n| format!("key:{n:012}")).collect();
    keys.chunks(WINDOW).map(|keys| keys.iter().flat_map(|key| request(key)).collect()).collect()
}

/// Sends pipelines until so many requests were answered; the allocations that took.
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
    // New keys do allocate: the counter sees what a worker does.
    let new = run(&mut worker, &set_first, KEYS, b"+OK\r\n");
    assert!(new >= KEYS as u64, "{new} allocations for {KEYS} new keys");
    // Buffers find their size.
    run(&mut worker, &set_second, KEYS, b"+OK\r\n");
    run(&mut worker, &get, KEYS, &bulk(&second));

    assert_eq!(run(&mut worker, &get, REQUESTS, &bulk(&second)), 0, "GET");
    assert_eq!(run(&mut worker, &set_first, REQUESTS, b"+OK\r\n"), 0, "SET");
    assert_eq!(run(&mut worker, &get, REQUESTS, &bulk(&first)), 0, "GET after SET");
}

/// A worker whose one connection speaks this strategy.
fn ingest_worker(strategy: Strategy) -> TestWorker {
    let mut driver = Loopback::new(7);
    driver.connect().expect("a pair of sockets");
    let mut shared = server::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
    let port = IngestPort::new(driver::ListenerId(0), "here".into(), strategy, Sink::Null, 1);
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
                // Cut in another place each time.
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
