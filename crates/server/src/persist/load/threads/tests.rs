//! A scan, and its end in the middle.

use super::*;
use driver::Driver;
use driver::sim::{Faults, SimDriver, SimNet};
use rdb::file::ScanOptions;

const LIBRARIES: u32 = 1_000;

/// A file that has so many libraries of functions and nothing else.
fn file() -> Vec<u8> {
    let mut bytes = b"REDIS0010".to_vec();
    for n in 0..LIBRARIES {
        bytes.extend([0xf5, 4]);
        bytes.extend(n.to_be_bytes());
    }
    bytes.extend([0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

fn shared() -> Arc<Shared> {
    let net = SimNet::new(1, Faults::NONE);
    let mut driver: SimDriver<Message> = net.driver();
    let shared = crate::boot::make_shared(config::Config::default(), &mut driver, 1, || (0, 0));
    assert!(shared.mailboxes.set(vec![driver.mailbox()]).is_ok(), "set once");
    Arc::new(shared)
}

/// Scans the file as one block. Returns how many libraries were found.
fn scanned(pipe: &Pipe) -> usize {
    let shared = shared();
    scan(Box::new(Scanner::new(ScanOptions::default())), Some(file()), pipe, &shared);
    shared.load.functions().len()
}

/// Earlier a scan was over only at the end of its block, and SHUTDOWN waited for that.
#[test]
fn a_scan_that_nobody_wants_ends_at_the_next_item() {
    assert_eq!(scanned(&Pipe::new(1)), LIBRARIES as usize);
    let pipe = Pipe::new(1);
    pipe.cancel();
    assert_eq!(scanned(&pipe), 0);
    assert!(matches!(pipe.take(), Work::End));
}
