//! The share of expired keys which are not removed yet is sampled a bounded number of times per
//! second, however often a worker turns.

use base::DbIndex;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use driver::Driver;
use driver::loopback::Loopback;
use server::config::Config;
use server::worker::Worker;
use server::worker::expiry::STALE_NS;
use server::worker::message::Message;

type TestWorker = Worker<Loopback<Message>>;

const KEYS: usize = 60_000;
const LOOKS: u64 = 200;
const DB: DbIndex = DbIndex(0);

fn encode(args: &[&str]) -> Vec<u8> {
    let args: Vec<String> = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
    format!("*{}\r\n{}", args.len(), args.concat()).into_bytes()
}

/// Sends requests, and turns until each has its OK.
fn ok(worker: &mut TestWorker, requests: &[Vec<u8>]) {
    worker.driver().forget(0);
    worker.driver().write(0, &requests.concat());
    while worker.driver().received(0).len() < requests.len() * b"+OK\r\n".len() {
        worker.turn();
    }
    assert_eq!(worker.driver().received(0), b"+OK\r\n".repeat(requests.len()));
}

/// The worker takes at most one sample per interval, however often it expires keys. Once all keys
/// are removed, the sample is zero.
#[test]
fn the_share_of_expired_keys_is_sampled_at_intervals() {
    let mut driver = Loopback::new(7);
    driver.connect().expect("a pair of sockets");
    let shared = server::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
    let shared = Arc::new(shared);
    let mut worker = Worker::new(driver, shared.clone(), 0, Vec::new());
    worker.turn();
    shared.active_expire.store(false, Relaxed);
    let names: Vec<String> = (0..KEYS).map(|n| format!("key:{n}")).collect();
    for names in names.chunks(32) {
        let set = |name: &String| encode(&["SET", name, "v", "PX", "1"]);
        ok(&mut worker, &names.iter().map(set).collect::<Vec<_>>());
    }
    let sample = || [0, 1].map(|at: usize| shared.workers[0].stale[at].get());
    let (started, mut last, mut samples) = (worker.driver().now().0, sample(), 0);
    for _ in 0..LOOKS {
        // No other timer is due: the worker sleeps until its next sample. (Each sample reads
        // different slots.)
        worker.turn();
        samples += u64::from(std::mem::replace(&mut last, sample()) != last);
    }
    let most = (worker.driver().now().0 - started) / STALE_NS + 2;
    println!("{samples} samples in {LOOKS} looks, {most} at most");
    assert!((most / 2..=most).contains(&samples), "{samples} samples, {most} at most");
    assert!(LOOKS > most + most / 3, "{LOOKS} looks are too few to tell");
    shared.active_expire.store(true, Relaxed);
    while sample() != [0, 0] {
        worker.turn();
    }
    assert_eq!(shared.keyspace.db_expires(DB), 0);
}
