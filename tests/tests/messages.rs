//! Messages at scale: a million channels, 10,000 patterns, subscribers that never read beside
//! hundreds of megabytes of messages, clients that track and never read, and a soak of clients that
//! come and go. Everything is judged by what arrives and by counted bytes. The debug build takes a
//! quarter of most sizes.

use sheafdb_tests::big::figure;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

mod caches;
mod channels;
mod flow;
mod readers;
mod soak;

/// Used memory of two quiet moments differs by less than this, whatever happened between them:
/// buffers that a worker keeps, memory that an allocating thread keeps for itself, tables.
const LEFT_BYTES_MAX: i64 = 3 << 20;

/// A server with so many workers. (The reference has no such setting.)
fn start(threads: usize, extra: &[&str]) -> ServerProcess {
    let (binary, threads) = (Binary::under_test(), threads.to_string());
    let own = ["--threads", &threads];
    let own = if binary.kind == Kind::SheafDb { &own[..] } else { &[] };
    ServerProcess::start(&binary, &[own, extra].concat())
}

/// A size for the release build, or a quarter of it.
fn sized(of_release: usize) -> usize {
    let is_release = std::env::var("SHEAFDB_PROFILE").is_ok_and(|profile| profile == "release");
    if is_release { of_release } else { of_release / 4 }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn ask(wire: &mut Wire, line: &str) -> Value {
    wire.command(&words(line)).unwrap_or_else(|e| panic!("'{line}': {e}"))
}

fn ok(wire: &mut Wire, line: &str) {
    assert_eq!(ask(wire, line), Value::Simple(b"OK".to_vec()), "'{line}'");
}

/// Bytes in use, as the allocator counts them.
fn used(wire: &mut Wire) -> i64 {
    figure(wire, "memory", "used_memory")
}
