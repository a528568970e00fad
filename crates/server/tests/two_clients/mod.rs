//! A worker with a few connections: some send long commands, another short ones.

use base::sync::Arc;
use driver::Driver;
use driver::loopback::Loopback;
use server::config::Config;
use server::worker::Worker;
use server::worker::message::Message;

/// A worker whose network the test plays.
pub type TestWorker = Worker<Loopback<Message>>;

/// The connections are 0 and 1. What is freed in the background is.
pub fn worker() -> TestWorker {
    worker_on(Loopback::new(7), 2, Config::default())
}

/// A worker on this network, with so many connections. There are no files, so it does not save.
pub fn worker_on(mut driver: Loopback<Message>, clients: usize, mut config: Config) -> TestWorker {
    config.save_points = Vec::new();
    for _ in 0..clients {
        driver.connect().expect("a pair of sockets");
    }
    let shared = server::boot::make_shared(config, &mut driver, 1, || (0, 0));
    let shared = Arc::new(shared);
    assert!(shared.mailboxes.set(vec![driver.mailbox()]).is_ok(), "set once");
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
