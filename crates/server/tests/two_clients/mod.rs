//! A worker with two connections: one sends long commands, the other short ones.

use base::sync::Arc;
use driver::loopback::Loopback;
use server::config::Config;
use server::worker::Worker;
use server::worker::message::Message;

/// A worker whose network the test plays.
pub type TestWorker = Worker<Loopback<Message>>;

/// The connections are 0 and 1. What is freed in the background is.
pub fn worker() -> TestWorker {
    let mut driver = Loopback::new(7);
    driver.connect().expect("a pair of sockets");
    driver.connect().expect("a pair of sockets");
    let shared = server::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
    let shared = Arc::new(shared);
    let reclaimer = shared.keyspace.reclaimer().clone();
    std::thread::spawn(move || reclaimer.serve());
    let mut worker = Worker::new(driver, shared, 0, Vec::new());
    worker.turn();
    worker
}

/// A request.
pub fn encode(args: &[&str]) -> Vec<u8> {
    let args: Vec<String> = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
    format!("*{}\r\n{}", args.len(), args.concat()).into_bytes()
}
