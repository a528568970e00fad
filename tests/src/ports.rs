//! Ports for servers under test. No other test gets the same one, in this process or in another,
//! so none meets the server of another test at its own address.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// The first port. All are below the range of those which the system gives clients.
const FIRST: u16 = 10_000;
/// Behind the last port.
const END: u16 = 32_000;
/// Ports of a block. A process locks the file of a block for as long as it runs.
const BLOCK: u16 = 20;

/// The block of which this process gives ports now.
struct Blocks {
    /// Its next port.
    next: u16,
    /// Its end; no block is taken yet if this is `next`.
    end: u16,
    /// The locked files of all its blocks.
    locked: Vec<File>,
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { next: 0, end: 0, locked: Vec::new() });

/// A local address on which no program listens.
///
/// # Errors
/// If all ports are taken, or the files of the blocks cannot be made.
pub fn free_addr() -> io::Result<SocketAddr> {
    free_row(1).map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// The first of so many ports in a row on which no program listens, at most 20.
///
/// # Errors
/// As [`free_addr`].
pub fn free_row(count: u16) -> io::Result<u16> {
    assert!(count <= BLOCK, "a row is part of a block");
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if blocks.next + count > blocks.end {
            blocks.take()?;
        }
        let first = blocks.next;
        blocks.next += count;
        // A program that is no test of ours may listen there.
        let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if (first..first + count).all(is_free) {
            return Ok(first);
        }
    }
}

impl Blocks {
    /// Takes a block which no process has.
    fn take(&mut self) -> io::Result<()> {
        let name = format!("sheafdb-ports-{}", rustix::process::getuid().as_raw());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder)?;
        let blocks = u32::from((END - FIRST) / BLOCK);
        // Processes begin at different places, so one does not get the ports of the one before it.
        let from = std::process::id().wrapping_mul(7919);
        for n in 0..blocks {
            let block = (from.wrapping_add(n) % blocks) as u16;
            let file = File::create(folder.join(block.to_string()))?;
            if file.try_lock().is_ok() {
                self.next = FIRST + block * BLOCK;
                self.end = self.next + BLOCK;
                self.locked.push(file);
                return Ok(());
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "no block of ports is free"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_port_is_given_twice() {
        let ports: HashSet<u16> = (0..100).map(|_| free_addr().expect("a port").port()).collect();
        assert_eq!(ports.len(), 100);
        let rows: HashSet<u16> = (0..100).map(|_| free_row(5).expect("a row")).collect();
        assert!(rows.iter().all(|first| (*first..first + 5).all(|port| !ports.contains(&port))));
    }

    #[test]
    fn another_process_gets_another_block() {
        let mut others = Blocks { next: 0, end: 0, locked: Vec::new() };
        let port = free_addr().expect("a port").port();
        others.take().expect("a block"); // a file is locked by whoever opened it, not by a process
        assert!(!(others.next..others.end).contains(&port), "{port}");
    }
}
