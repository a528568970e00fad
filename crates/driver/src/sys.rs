//! The socket option that `rustix` does not have.

#![allow(unsafe_code)]

use rustix::fd::{AsRawFd, BorrowedFd};

/// Words of a socket's memory figures; the last counts what was dropped.
const MEMINFO_WORDS: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Packets that the system dropped at this socket (`SO_MEMINFO`). At a listening TCP socket these are the
/// connection attempts that found its queue full.
pub fn drops(fd: BorrowedFd<'_>) -> u64 {
    let mut words = [0u32; MEMINFO_WORDS];
    let mut len = size_of_val(&words) as libc::socklen_t;
    // SAFETY: `words` is writable for `len` bytes, and both outlive the call, which writes no more than `len`.
    let failed = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if failed == 0 { u64::from(words[MEMINFO_DROPS]) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use rustix::io::Errno;
    use rustix::net;
    use std::time::{Duration, Instant};

    #[test]
    fn connections_beyond_the_queue_are_counted() {
        let flags = net::SocketFlags::NONBLOCK | net::SocketFlags::CLOEXEC;
        let socket = || {
            net::socket_with(net::AddressFamily::INET, net::SocketType::STREAM, flags, None)
                .expect("a socket")
        };
        let listener = socket();
        let any: std::net::SocketAddr = "127.0.0.1:0".parse().expect("an address");
        net::bind(&listener, &any).expect("a free port");
        net::listen(&listener, 1).expect("listens");
        assert_eq!(drops(listener.as_fd()), 0);
        let at = net::getsockname(&listener).expect("is bound");
        // Two fit (a queue of one holds one more); the others are dropped.
        let clients: Vec<_> = (0..6)
            .map(|_| {
                let client = socket();
                match net::connect(&client, &at) {
                    Ok(()) | Err(Errno::INPROGRESS) => client,
                    Err(e) => panic!("{e}"),
                }
            })
            .collect();
        let since = Instant::now();
        while drops(listener.as_fd()) < 4 {
            assert!(since.elapsed() < Duration::from_secs(5), "{}", drops(listener.as_fd()));
            std::thread::yield_now();
        }
        drop(clients);
    }
}
