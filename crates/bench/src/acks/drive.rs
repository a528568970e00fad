//! One thread and its connections: an epoll loop that never waits while anything can go on.

use super::connection::{Broken, Connection};
use super::{Error, Spec};
use hdrhistogram::Histogram;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::sync::Barrier;
use std::time::Instant;

/// Ready connections taken per poll.
const EVENTS_MAX: usize = 256;
/// Bytes of acknowledgements taken per read.
const ROOM: usize = 64 << 10;
/// Longest latency that is told apart, ns.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// What a thread, or all of them, did.
pub struct Tally {
    pub started: Instant,
    pub ended: Instant,
    pub acknowledged: u64,
    pub wrong: u64,
    pub first_error: Option<String>,
    pub latency_ns: Histogram<u64>,
    /// Sum of all latencies.
    pub latency_sum_s: f64,
    pub cpu_s: f64,
}

impl Tally {
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            ended: now,
            acknowledged: 0,
            wrong: 0,
            first_error: None,
            latency_ns: Histogram::new_with_max(LATENCY_MAX_NS, 3).expect("a range and digits"),
            latency_sum_s: 0.0,
            cpu_s: 0.0,
        }
    }

    /// The first one that has something takes over its times.
    pub fn add(&mut self, o: Tally) {
        let first = self.cpu_s == 0.0;
        self.started = if first { o.started } else { self.started.min(o.started) };
        self.ended = self.ended.max(o.ended);
        self.acknowledged += o.acknowledged;
        self.wrong += o.wrong;
        self.first_error = self.first_error.take().or(o.first_error);
        self.latency_ns.add(o.latency_ns).expect("the same range");
        self.latency_sum_s += o.latency_sum_s;
        self.cpu_s += o.cpu_s;
    }

    fn broke(&mut self, why: Broken) {
        let text = match why {
            Broken::Wrong(text) => {
                self.wrong += 1;
                text
            }
            Broken::Closed(text) => text,
        };
        self.first_error.get_or_insert(text);
    }
}

/// Connects, waits until every thread has, sends and checks.
pub fn run(spec: &Spec, clients: usize, gate: &Barrier) -> Result<Tally, Error> {
    let connected = connect(spec, clients);
    gate.wait(); // also when it failed: the others wait for this thread
    let (set, mut connections) = connected?;
    let mut tally = Tally::new();
    let cpu = cpu_s();
    drive(spec, &set, &mut connections, &mut tally)?;
    tally.ended = Instant::now();
    tally.cpu_s = cpu_s() - cpu;
    tally.acknowledged = connections.iter().map(|c| c.acknowledged).sum();
    Ok(tally)
}

fn connect(spec: &Spec, clients: usize) -> Result<(OwnedFd, Vec<Connection>), Error> {
    let set = epoll::create(CreateFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let mut connections = Vec::with_capacity(clients);
    for n in 0..clients {
        let stream =
            TcpStream::connect(spec.address).map_err(|e| Error::Connect(spec.address, e))?;
        stream.set_nodelay(spec.nodelay)?;
        stream.set_nonblocking(true)?;
        let data = EventData::new_u64(n as u64);
        epoll::add(&set, &stream, data, EventFlags::IN | EventFlags::OUT)
            .map_err(std::io::Error::from)?;
        connections.push(Connection::new(spec, stream));
    }
    Ok((set, connections))
}

fn drive(
    spec: &Spec,
    set: &OwnedFd,
    connections: &mut [Connection],
    tally: &mut Tally,
) -> Result<(), Error> {
    let mut left = connections.len();
    let mut room = vec![0; ROOM];
    let timeout = Timespec {
        tv_sec: spec.patience.as_secs() as i64,
        tv_nsec: spec.patience.subsec_nanos().into(),
    };
    while left > 0 {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let ready = match epoll::wait(set, &mut events, Some(&timeout)) {
            Ok((ready, _)) => &*ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(std::io::Error::from(e).into()),
        };
        if ready.is_empty() {
            let text = format!("no progress for {:?}", spec.patience);
            tally.first_error.get_or_insert(text);
            return Ok(());
        }
        for event in ready {
            let n = event.data.u64();
            let c = &mut connections[n as usize];
            let over = match serve(spec, c, event.flags, &mut room, tally) {
                Ok(over) => over,
                Err(why) => {
                    tally.broke(why);
                    true
                }
            };
            if over && !c.over {
                c.over = true;
                left -= 1;
                // What is left to say was said; the peer may be gone already.
                let _ = epoll::delete(set, &c.stream);
                let _ = c.stream.shutdown(Shutdown::Both);
            } else if !c.over {
                let wants_room = c.may_write();
                if wants_room != c.wants_room {
                    c.wants_room = wants_room;
                    let room = if wants_room { EventFlags::OUT } else { EventFlags::empty() };
                    epoll::modify(set, &c.stream, EventData::new_u64(n), EventFlags::IN | room)
                        .map_err(std::io::Error::from)?;
                }
            }
        }
    }
    Ok(())
}

/// What one connection can do now. True when it is over.
fn serve(
    spec: &Spec,
    c: &mut Connection,
    flags: EventFlags,
    room: &mut [u8],
    tally: &mut Tally,
) -> Result<bool, Broken> {
    if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR)
        && c.read(room, &mut tally.latency_ns, &mut tally.latency_sum_s)?
    {
        if !spec.acknowledged && c.has_written() {
            c.acknowledged = spec.messages;
            return Ok(true);
        }
        return Err(Broken::Closed("the server closed the connection".to_owned()));
    }
    if c.is_done() {
        return Ok(true);
    }
    let had_written = c.has_written();
    if c.may_write() {
        c.write()?;
    }
    if !spec.acknowledged && c.has_written() && !had_written {
        // The reader's end of the connection says that it has read everything.
        let _ = c.stream.shutdown(Shutdown::Write);
    }
    Ok(false)
}

/// CPU seconds of this thread.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default() / 1e9
}
