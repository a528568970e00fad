//! Two tests on one connection: do all replies of a batch come while nothing more is sent, and when
//! do the first and the last of a batch come?

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use client::{Decoder, Error, Value};
use rustix::net::sockopt::{self, Timeout};

use crate::analysis::findings::Stranding;
use crate::analysis::little;
use crate::load::{Address, Stream};

/// Replies that have not come after this time stay behind: longer than any delayed acknowledgement
/// (200 ms on Linux).
const WAIT: Duration = Duration::from_millis(400);
/// Longest wait for one reply where the server is not under suspicion.
const REPLY: Duration = Duration::from_secs(5);
/// The reply that pushes out what a server has kept back is larger than what any gathers.
const PUSH_BYTES: usize = 512 << 10;
/// The key that holds it.
const PUSH_KEY: &[u8] = b"sheafdb-bench:pushes-replies-out";

/// Batches on one connection, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batches {
    /// Requests in each.
    pub pipeline: usize,
    /// How many batches.
    pub count: u64,
    /// Microseconds until the first reply of a batch, on average.
    pub first_us: f64,
    /// Microseconds until the last.
    pub last_us: f64,
    /// Replies per second.
    pub throughput: f64,
    /// Bytes of a reply.
    pub reply_bytes: f64,
    /// Segments with data that came, where the system tells.
    pub segments: Option<u64>,
}

impl Batches {
    /// Replies of all batches.
    pub fn replies(&self) -> u64 {
        self.count * self.pipeline as u64
    }

    /// Little's law with the latency that a benchmark reports which takes a batch for answered when
    /// its first reply comes.
    pub fn by_the_first(&self) -> String {
        little::sentence(self.pipeline as f64, self.throughput, self.first_us / 1e6)
    }
}

/// A connection that counts what it receives.
struct Counted {
    stream: Stream,
    bytes: u64,
}

/// Sends `asked` requests, waits, and sends one more. `None` if the server does not get that far.
pub fn stranding(address: &Address, asked: usize) -> Option<Stranding> {
    let mut connection = open(address, WAIT).ok()?;
    let value = vec![b'x'; PUSH_BYTES];
    let mut batch = client::encode(&[b"SET", PUSH_KEY, &value]);
    for _ in 1..asked {
        batch.extend(client::encode(&[b"PING"]));
    }
    connection.source_mut().write_all(&batch).ok()?;
    let received = replies(&mut connection, asked)?;
    let mut after = received;
    if received < asked {
        connection.source_mut().write_all(&client::encode(&[b"GET", PUSH_KEY])).ok()?;
        after += replies(&mut connection, asked - received)?;
    }
    // The reply does not matter.
    let _ = connection.source_mut().write_all(&client::encode(&[b"DEL", PUSH_KEY]));
    let waited_s = WAIT.as_secs_f64();
    Some(Stranding { asked, received, waited_s, received_after_nudge: after })
}

/// How many replies come before a wait is in vain, `most` at most; `None` if the connection ends or
/// an error is answered: then nothing is known.
fn replies(connection: &mut Decoder<Counted>, most: usize) -> Option<usize> {
    for came in 0..most {
        match connection.read() {
            Ok(Value::Error(_)) => return None,
            Ok(_) => {}
            Err(Error::Timeout) => return Some(came),
            Err(_) => return None,
        }
    }
    Some(most)
}

/// Sends batches of PING for so many seconds, each when the one before is answered. `None` if a
/// reply is an error or does not come.
pub fn batches(address: &Address, pipeline: usize, seconds: f64) -> Option<Batches> {
    let mut connection = open(address, REPLY).ok()?;
    let batch = client::encode(&[b"PING"]).repeat(pipeline);
    let segments = |connection: &Decoder<Counted>| {
        driver::data_segments_in(connection.source().stream.as_fd()).map(u64::from)
    };
    let before = segments(&connection);
    let (mut count, mut first_s, mut last_s) = (0u64, 0.0, 0.0);
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds {
        let sent = Instant::now();
        connection.source_mut().write_all(&batch).ok()?;
        for at in 0..pipeline {
            if connection.read().ok()?.is_error() {
                return None;
            }
            if at == 0 {
                first_s += sent.elapsed().as_secs_f64();
            }
        }
        last_s += sent.elapsed().as_secs_f64();
        count += 1;
    }
    let elapsed = started.elapsed().as_secs_f64();
    let replies = (count * pipeline as u64).max(1) as f64;
    Some(Batches {
        pipeline,
        count,
        first_us: first_s * 1e6 / count.max(1) as f64,
        last_us: last_s * 1e6 / count.max(1) as f64,
        throughput: replies / elapsed,
        reply_bytes: connection.source().bytes as f64 / replies,
        segments: segments(&connection).zip(before).map(|(now, then)| now.wrapping_sub(then)),
    })
}

fn open(address: &Address, timeout: Duration) -> io::Result<Decoder<Counted>> {
    let stream = Stream::to(address, REPLY)?;
    if matches!(address, Address::Tcp(_)) {
        sockopt::set_tcp_nodelay(stream.as_fd(), true)?;
    }
    stream.set_timeouts(Some(REPLY))?;
    sockopt::set_socket_timeout(stream.as_fd(), Timeout::Recv, Some(timeout))?;
    Ok(Decoder::new(Counted { stream, bytes: 0 }))
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = (&mut self.stream).read(buf)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

impl Write for Counted {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.stream.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Flush, Model, Options, serve};

    fn with(flush: Flush, run: impl Fn(&Address)) {
        let options = Options { flush, ..Options::default() };
        for model in [Model::EventLoop, Model::ThreadPerConnection] {
            let running = serve(model, &options).expect("a port of its own");
            run(&Address::Tcp(running.address));
        }
    }

    #[test]
    fn segments_show_a_send_per_reply() {
        crate::undisturbed::undisturbed(try_segments_show_a_send_per_reply);
    }

    fn try_segments_show_a_send_per_reply() {
        let per_reply = |batches: &Batches| {
            batches.segments.expect("TCP tells") as f64 / batches.replies() as f64
        };
        with(Flush::Reply, |address| {
            let seen = batches(address, 30, 0.1).expect("it answers");
            assert!(per_reply(&seen) > 0.5 && seen.count > 0, "{seen:?}");
            assert!((seen.reply_bytes - 7.0).abs() < 1e-9, "{seen:?}");
            assert!(seen.first_us < seen.last_us, "{seen:?}");
        });
        with(Flush::Idle, |address| {
            let seen = batches(address, 30, 0.1).expect("it answers");
            assert!(per_reply(&seen) < 0.2, "{seen:?}");
        });
    }

    #[test]
    fn stranded_replies_are_released_by_further_requests() {
        crate::undisturbed::undisturbed(try_stranded_replies_are_released_by_further_requests);
    }

    fn try_stranded_replies_are_released_by_further_requests() {
        with(Flush::Strand, |address| {
            let seen = stranding(address, 30).expect("it takes requests");
            assert_eq!((seen.received, seen.received_after_nudge), (0, 30));
        });
        for flush in [Flush::Idle, Flush::Reply, Flush::Size] {
            with(flush, |address| {
                let seen = stranding(address, 30).expect("it takes requests");
                assert_eq!((seen.received, seen.received_after_nudge), (30, 30), "{flush:?}");
            });
        }
    }

    #[test]
    fn a_server_without_an_answer_gives_no_result() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = Address::Tcp(nobody.local_addr().expect("is bound"));
        drop(nobody);
        assert_eq!(stranding(&address, 3), None);
        assert_eq!(batches(&address, 3, 0.1), None);
    }
}
