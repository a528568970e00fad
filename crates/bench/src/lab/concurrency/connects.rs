//! Many connections at once: how long each took to be established, and what the listen queue
//! counted.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::analysis::findings::Connects;
use crate::host;
use crate::lab::subject;
use crate::lab::target::Started;

/// An established connection that took longer had to send its SYN again, which it does after 1 s.
pub const SLOW: Duration = Duration::from_millis(900);

/// Connections under way.
#[derive(Debug)]
pub struct Burst {
    poll: OwnedFd,
    sockets: Vec<OwnedFd>,
    since: Instant,
    /// What became of each.
    ends: Vec<Option<End>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Established(Duration),
    Refused,
}

impl Burst {
    /// Begins so many connections without waiting for any.
    pub fn begin(to: SocketAddr, count: usize) -> Result<Self, Errno> {
        driver::raise_file_limit(u32::try_from(count).unwrap_or(u32::MAX));
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut burst =
            Self { poll, sockets: Vec::new(), since: Instant::now(), ends: vec![None; count] };
        for at in 0..count {
            let socket = socket_with(family, SocketType::STREAM, flags, None)?;
            match connect(&socket, &to) {
                Ok(()) => burst.ends[at] = Some(End::Established(burst.since.elapsed())),
                Err(Errno::INPROGRESS) => {
                    let data = epoll::EventData::new_u64(at as u64);
                    epoll::add(&burst.poll, &socket, data, epoll::EventFlags::OUT)?;
                }
                Err(_) => burst.ends[at] = Some(End::Refused),
            }
            burst.sockets.push(socket);
        }
        Ok(burst)
    }

    /// Waits until all have an end, or until so long after the beginning.
    pub fn wait(&mut self, until: Duration) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(512);
        while self.ends.iter().any(Option::is_none) {
            let left = until.saturating_sub(self.since.elapsed());
            if left.is_zero() {
                break;
            }
            events.clear();
            let timeout =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match epoll::wait(&self.poll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in &events {
                self.end(event.data.u64() as usize)?;
            }
        }
        Ok(())
    }

    /// Time since the beginning.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    fn end(&mut self, at: usize) -> Result<(), Errno> {
        let socket = &self.sockets[at];
        self.ends[at] = Some(match sockopt::socket_error(socket)? {
            Ok(()) => End::Established(self.since.elapsed()),
            Err(_) => End::Refused,
        });
        epoll::delete(&self.poll, socket)
    }

    /// What was seen so far; connections without an end count as failed.
    pub fn seen(&self) -> Connects {
        let took = |end: &Option<End>| match end {
            Some(End::Established(took)) => Some(*took),
            _ => None,
        };
        let slowest = self.ends.iter().filter_map(took).max().unwrap_or_default();
        Connects {
            asked: self.ends.len(),
            slow: self.ends.iter().filter_map(took).filter(|took| *took >= SLOW).count(),
            failed: self.ends.iter().filter(|end| end.is_none()).count(),
            slowest_us: slowest.as_secs_f64() * 1e6,
            ..Connects::default()
        }
    }
}

/// Who counts overflows of a listen queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The server, in `INFO io`.
    Io,
    /// A model, in `INFO model`.
    Model,
    /// The kernel, for the whole machine.
    Kernel,
}

impl Counter {
    /// Who counts for this target: the server itself if it does, else the kernel if it is this one.
    pub fn of(target: &Started) -> Option<Self> {
        let all = [Self::Io, Self::Model, Self::Kernel];
        all.into_iter().find(|counter| counter.read(target).is_some())
    }

    /// Overflows so far.
    pub fn read(self, target: &Started) -> Option<u64> {
        match self {
            Self::Io => subject::info_field(&target.address(), "io", "io_listen_overflows"),
            Self::Model => subject::info_field(&target.address(), "model", "overflows"),
            Self::Kernel => {
                let local = target.tcp.is_some_and(|tcp| host::is_local(tcp.ip()));
                local.then(|| kernel("ListenOverflows")).flatten()
            }
        }
    }

    /// How a table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "INFO io",
            Self::Model => "INFO model",
            Self::Kernel => "kernel, whole machine",
        }
    }
}

/// Connections that the kernel dropped at listen queues, for whatever reason.
fn kernel_drops() -> Option<u64> {
    kernel("ListenDrops")
}

fn kernel(name: &str) -> Option<u64> {
    extended(&std::fs::read_to_string("/proc/net/netstat").ok()?, name)
}

/// A counter of `/proc/net/netstat`, where a line of names stands above a line of values.
fn extended(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_ascii_whitespace().position(|one| one == name)?;
    values.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// A burst at a server that is left alone.
pub fn measure(
    target: &Started,
    count: usize,
    wait: Duration,
) -> Result<Option<(Connects, Option<Counter>)>, Errno> {
    let Some(to) = target.tcp else { return Ok(None) };
    let burst = || {
        let mut burst = Burst::begin(to, count)?;
        burst.wait(wait)?;
        Ok(Some(burst.seen()))
    };
    counted(target, burst)
}

/// What became of a burst, with what the counters grew by meanwhile.
///
/// Counters of the whole machine are left out when no connection had to wait: what they counted
/// then belongs to other programs.
pub fn counted<E>(
    target: &Started,
    burst: impl FnOnce() -> Result<Option<Connects>, E>,
) -> Result<Option<(Connects, Option<Counter>)>, E> {
    let counter = Counter::of(target);
    let read = || (counter.and_then(|counter| counter.read(target)), kernel_drops());
    let before = read();
    let Some(mut seen) = burst()? else { return Ok(None) };
    add_growth(&mut seen, counter, before, read());
    Ok(Some((seen, counter)))
}

/// Enters what the counters grew by.
fn add_growth(
    seen: &mut Connects,
    counter: Option<Counter>,
    before: (Option<u64>, Option<u64>),
    after: (Option<u64>, Option<u64>),
) {
    let grew = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
    if counter == Some(Counter::Kernel) {
        if seen.slow + seen.failed > 0 {
            seen.overflows = grew(before.0, after.0);
            seen.drops = grew(before.1, after.1);
        }
    } else {
        seen.overflows = grew(before.0, after.0);
        // The kernel counts each of these drops as an overflow, for one listener as for all.
        seen.drops = seen.overflows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_in_the_column_of_its_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 17 18\nIpExt: A\nIpExt: 1\n";
        assert_eq!(extended(text, "ListenOverflows"), Some(17));
        assert_eq!(extended(text, "ListenDrops"), Some(18));
        assert_eq!(extended(text, "A"), None);
        assert!(kernel("ListenOverflows").is_some(), "Linux counts them");
    }

    #[test]
    fn machine_wide_counters_are_used_only_if_a_connection_waited() {
        let (before, after) = ((Some(5), Some(5)), (Some(9), Some(10)));
        let mut seen = Connects { asked: 4, ..Connects::default() };
        add_growth(&mut seen, Some(Counter::Kernel), before, after);
        assert_eq!((seen.overflows, seen.drops), (None, None));
        seen.slow = 1;
        add_growth(&mut seen, Some(Counter::Kernel), before, after);
        assert_eq!((seen.overflows, seen.drops), (Some(4), Some(5)));
        seen.slow = 0;
        add_growth(&mut seen, Some(Counter::Io), before, after);
        assert_eq!(seen.overflows, Some(4));
    }
}
