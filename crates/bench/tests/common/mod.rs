//! Shared by the tests of models.
#![allow(dead_code, unused_imports)] // each test program uses a part of it

mod undisturbed;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bench::models::{Flush, Front, Model, Options, Running, serve};
use client::{Address, Client, Value};

pub use undisturbed::undisturbed;

/// Longer than any operation which is not stuck.
pub const LONG: Duration = Duration::from_secs(20);
/// Long enough to conclude that an operation is stuck.
pub const STUCK: Duration = Duration::from_millis(300);

/// Starts a model.
pub fn start(model: Model, options: &Options) -> Running {
    serve(model, options).expect("a port of its own")
}

/// Every model that speaks Redis's protocol, with both fronts of the single writer.
pub fn resp_models() -> Vec<(Model, Options)> {
    let plain = Options::default();
    let few = Options { threads: Some(3), ..plain.clone() };
    let loops = Options { front: Front::Loops, ..few.clone() };
    vec![
        (Model::Sequential, plain.clone()),
        (Model::ThreadPerConnection, plain.clone()),
        (Model::Pool, plain.clone()),
        (Model::EventLoop, plain.clone()),
        (Model::EventLoops, few),
        (Model::SingleWriter, plain),
        (Model::SingleWriter, loops),
    ]
}

/// The same with each flush policy which strands no reply.
pub fn resp_models_by_flush() -> Vec<(Model, Options)> {
    let flushed = |flush| {
        resp_models().into_iter().map(move |(model, options)| (model, Options { flush, ..options }))
    };
    [Flush::Idle, Flush::Reply, Flush::Size].into_iter().flat_map(flushed).collect()
}

/// A connection with this timeout for a reply.
pub fn connect_for(running: &Running, timeout: Duration) -> Client {
    let address = Address::Tcp(running.address.to_string());
    Client::connect(&address, timeout).expect("it listens")
}

/// A connection.
pub fn connect(running: &Running) -> Client {
    connect_for(running, LONG)
}

/// A bare connection.
pub fn stream(running: &Running) -> TcpStream {
    let stream = TcpStream::connect(running.address).expect("it listens");
    stream.set_nodelay(true).expect("it is TCP");
    stream.set_read_timeout(Some(LONG)).expect("not zero");
    stream.set_write_timeout(Some(LONG)).expect("not zero");
    stream
}

/// Sends bytes in pieces of this size while reading everything up to the end.
pub fn exchange(running: &Running, bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut stream = stream(running);
    let mut writer = stream.try_clone().expect("a second handle");
    let mut replies = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for piece in bytes.chunks(piece) {
                // The server may have closed after an error.
                if writer.write_all(piece).is_err() {
                    return;
                }
            }
            let _ = writer.shutdown(Shutdown::Write);
        });
        // The server may close before it has read everything. Then the end is a reset.
        if let Err(error) = stream.read_to_end(&mut replies) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "replies, then the end");
        }
    });
    replies
}

/// Waits until a condition holds: a counter may lag behind what the network shows.
pub fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !holds() {
        if since.elapsed() > LONG {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// The reply of PING.
pub fn pong() -> Value {
    Value::simple("PONG")
}

/// Whether a PING is answered.
pub fn is_served(client: &mut Client, timeout: Duration) -> bool {
    client.set_timeout(Some(timeout)).expect("not zero");
    client.call(&[b"PING"]).is_ok_and(|reply| reply == pong())
}
