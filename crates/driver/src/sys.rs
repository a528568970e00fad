//! The socket options that `rustix` does not have.

#![allow(unsafe_code)]

use rustix::fd::{AsRawFd, BorrowedFd};

/// Words of a socket's memory figures; the last counts what was dropped.
const MEMINFO_WORDS: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Packets that the system dropped at this socket (`SO_MEMINFO`). At a listening TCP socket these
/// are the connection attempts that found its queue full.
pub fn drops(fd: BorrowedFd<'_>) -> u64 {
    let mut words = [0u32; MEMINFO_WORDS];
    let mut len = size_of_val(&words) as libc::socklen_t;
    // SAFETY: `words` is writable for `len` bytes, and both outlive the call, which writes no more
    // than `len`.
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

/// From the next poll on, the socket is readable when so many bytes have arrived (`SO_RCVLOWAT`),
/// at the end of its input, and when TCP has no room for so many. Unix sockets ignore it.
pub fn set_low_water(fd: BorrowedFd<'_>, bytes: usize) {
    let bytes = bytes.clamp(1, i32::MAX as usize) as libc::c_int;
    // SAFETY: `bytes` is readable for the length that is passed, and outlives the call. The result
    // is not needed: without the option the socket is only reported earlier.
    let _ = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
}

/// Bytes of `struct tcp_info` up to and with `tcpi_data_segs_in`, and where that begins
/// (`linux/tcp.h`).
const TCP_INFO_BYTES: usize = 156;
const TCP_INFO_DATA_SEGS_IN: usize = 152;

/// Segments with data that this TCP socket has received (`TCP_INFO`, modulo 2^32); `None` where the
/// system does not tell: no TCP socket, or a kernel before 4.6.
pub fn data_segments_in(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut info = [0u8; TCP_INFO_BYTES];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: `info` is writable for `len` bytes, and both outlive the call, which writes no more
    // than `len`.
    let failed = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let told = failed == 0 && len as usize == TCP_INFO_BYTES;
    let (field, _) = info[TCP_INFO_DATA_SEGS_IN..].split_first_chunk()?;
    told.then(|| u32::from_ne_bytes(*field))
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
        // A queue of one holds two connections. The others are dropped.
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

    #[test]
    fn segments_with_data_are_counted() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("is bound");
        let mut client = std::net::TcpStream::connect(address).expect("it listens");
        let (mut server, _) = listener.accept().expect("it came");
        server.set_nodelay(true).expect("it is TCP");
        assert_eq!(data_segments_in(client.as_fd()), Some(0));
        for _ in 0..5 {
            server.write_all(b"x").expect("there is room");
        }
        client.read_exact(&mut [0; 5]).expect("all have come");
        assert_eq!(data_segments_in(client.as_fd()), Some(5));
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert_eq!(data_segments_in(one.as_fd()), None);
    }
}
